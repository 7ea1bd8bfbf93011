"""The sentences about a tenant without a mechanism."""

from __future__ import annotations

from rag_audit._internal.errors import PolicyError
from rag_audit._internal.words import PLAIN, Say, marked
from rag_audit.mechanisms.base import Mechanism
from rag_audit.mechanisms.descriptions.base import (
    WITHOUT_NOISE,
    Description,
    Facts,
    Option,
    Parameters,
    Sizes,
)
from rag_audit.mechanisms.none import Exact


class ExactDescription(Description):
    mechanism = Exact
    forms = ("none",)
    words = marked("exact answers without protection of the index")
    does_not_prove = marked(
        "any privacy of a tenant with mechanism none: its answers are exact, and the window only proves"
        " integrity"
    )
    no_ceiling = marked("There is no bound: a test may recognise every document.")
    coalition = (
        "No figure of this policy depends on it, because no tenant has a mechanism that hides documents."
    )

    @classmethod
    def chosen(cls, option: Option) -> Mechanism:
        if option.rest:
            raise option.refused()
        if option.keep is not None:
            raise PolicyError("the mechanism none has no sampled share; use sampling", field="--mechanism",
                              expected=f"sampling:{option.keep}", actual=option.whole)  # fmt: skip
        return Exact()

    @classmethod
    def compared(cls, sizes: Sizes) -> list[str]:
        return [f"  --mechanism none          {WITHOUT_NOISE:>2}  no privacy, only integrity"]

    @classmethod
    def warnings(cls, mechanism: Mechanism, sizes: Sizes) -> list[str]:
        return ["no mechanism hides the index; a verdict is PASS-INTEGRITY"]

    @classmethod
    def described(cls, values: Parameters) -> str:
        return "no mechanism"

    @classmethod
    def option(cls, values: Parameters) -> str | None:
        return cls.mechanism.name

    @classmethod
    def explained(cls, mechanism: Mechanism) -> list[str]:
        return [*super().explained(mechanism), *cls._exact_words(mechanism)]

    @classmethod
    def cost(cls, facts: Facts) -> str:
        return "no cost: answers are the exact top K"

    @classmethod
    def no_epsilon(cls, facts: Facts, say: Say = PLAIN) -> str:
        return say.text("There is no epsilon: answers are exact, and no mechanism hides the index.")


DESCRIPTION = ExactDescription
