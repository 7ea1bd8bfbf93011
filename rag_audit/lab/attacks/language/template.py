"""A model's chat template: Jinja that came with the model file, so it runs in a sandbox."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NoReturn

from jinja2 import TemplateError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from rag_audit.lab.attacks.interface import AttackError


def rendered(template: str, messages: Sequence[Mapping[str, str]], begin: str, end: str) -> str:
    """The text of a conversation, up to the beginning of the answer.

    :param messages: `role` and `content` of each message
    :param begin: the model's token for the beginning of a text; `end` the token for its end
    :raises AttackError: the template is no Jinja, or refuses the messages (some models have no system role)
    """

    def refuse(reason: str) -> NoReturn:
        raise TemplateError(reason)

    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"]
    )
    environment.globals["raise_exception"] = refuse
    try:
        return environment.from_string(template).render(
            messages=[dict(message) for message in messages],
            bos_token=begin,
            eos_token=end,
            add_generation_prompt=True,
        )
    except (TemplateError, TypeError, ValueError, ArithmeticError, LookupError, AttributeError) as exc:
        raise AttackError("the model's chat template does not accept the messages", field="tokenizer.chat_template",
                          expected="a template for a system message and a user's message", actual=str(exc)[:120],
                          hint="choose a model with a system role")  from exc  # fmt: skip
