"""The values of several commands' options, read from text."""

from __future__ import annotations

import functools
import inspect
import math
import re
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import click

from rag_audit._internal.canonical import read_json
from rag_audit._internal.errors import PolicyError
from rag_audit.cli.common import PATH
from rag_audit.models.models import check_line
from rag_audit.models.policy import Policy
from rag_audit.models.publication import MAX_PUBLICATION_BYTES
from rag_audit.proofs.backends import SYSTEMS
from rag_audit.proofs.description import default_system
from rag_audit.proofs.policy import check_policy

Command = TypeVar("Command", bound=Callable[..., Any] | click.Command)
Value = TypeVar("Value")
Text: TypeAlias = str | tuple[str, ...] | None
"""The value that click passes for an option: a text, a sequence for a repeatable option, or None for an omitted
option."""
Read: TypeAlias = Value | tuple[Value, ...] | None
"""The value that the command receives for the option."""


def parsed(
    read: Callable[[str, str], Value],
) -> Callable[[click.Context, click.Parameter, Text], Read[Value]]:
    """An option's callback that reads its text, or each of its texts, and raises this package's errors."""

    def callback(ctx: click.Context, param: click.Parameter, value: Text) -> Read[Value]:
        if isinstance(value, tuple):
            return tuple(read(item, param.opts[0]) for item in value)
        return None if value is None else read(value, param.opts[0])

    return callback


class Real(click.FloatRange):
    """A finite number. click lets NaN, and infinity where there is no upper bound, into every range."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        result = click.FLOAT.convert(value, param, ctx)
        if not math.isfinite(result):
            self.fail(f"{value!r} is not a finite number.", param, ctx)
        return super().convert(value, param, ctx)


path_option = partial(click.option, type=PATH)
"""An option with a file or a folder as its value."""
flag_option = partial(click.option, is_flag=True)
"""An option without a value."""
default_option = partial(click.option, show_default=True)
"""An option with a default in its help text."""


def number_option(*names: str, default: int, help: str) -> Callable[[Command], Command]:
    """An option with an integer of at least 1 as its value."""
    return default_option(*names, callback=whole_number, default=str(default), help=help)


def choice_option(
    *names: str, choices: Sequence[str], default: str, help: str
) -> Callable[[Command], Command]:
    """An option with one of the choices as its value."""
    return default_option(*names, type=click.Choice(choices), default=default, help=help)


def gathered(
    argument: str, result: Callable[..., Value], *options: Callable[[Command], Command]
) -> Callable[[Command], Command]:
    """Options that the command receives as one value.

    :param argument: the command's name for the value
    :param result: a function that makes the value; its parameters are the names of its options
    """
    names = inspect.signature(result).parameters

    def decorate(command: Command) -> Command:
        @functools.wraps(command)
        def run(*arguments: Any, **values: Any) -> Any:
            own = {name: values.pop(name) for name in names if name in values}
            return command(*arguments, **values, **{argument: result(**own)})

        for option in reversed(options):
            run = option(run)
        return run  # type: ignore[return-value]

    return decorate


MAX_PROCESSES = 512
PROCESSES = click.IntRange(1, MAX_PROCESSES)
"""Processes of this machine."""
model_option = path_option(
    "--model", help="the folder of an embedder's files, or an embedder.toml with its settings"
)
previous_option = path_option(
    "--previous",
    multiple=True,
    help="an earlier window, to check the chain: its window.json or folder, or a folder of windows in any order; repeat"
    " for each",
)
skip_option = flag_option(
    "--skip-unreadable",
    help="omit and name unreadable files and lines and those without text, instead of stopping",
)
seed_option = default_option(
    "--seed", type=click.IntRange(min=0), default=0, help="seed of every draw of the run"
)


@parsed
def line(text: str, option: str) -> str:
    """Read a name that is one line of visible characters, such as a ledger's origin."""
    return check_line(text, field=option)


service_options = (
    click.option("--operator", callback=line, help="the operator of the service, for reports"),
    click.option("--purpose", callback=line, help="the purpose of the service, for reports"),
    click.option("--contact", callback=line, help="the operator's contact, for reports"),
)
"""The options about the service that reports show and no check reads."""


@parsed
def duration(text: str, option: str) -> int:
    """Read a duration such as 30s, 15m, 12h or 7d, in milliseconds."""
    match = re.fullmatch(r"([0-9]{1,6})([smhd])", text)
    if match is None:
        raise PolicyError(
            "the value is not a duration", field=option, expected="30s, 15m, 12h or 7d", actual=text
        )
    return int(match[1]) * {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}[match[2]]


@parsed
def whole_number(text: str, option: str) -> int:
    """Read an integer from 1 to 10^15 - 1."""
    if re.fullmatch(r"0*[1-9][0-9]{0,14}", text) is None:
        raise PolicyError(
            "the value is out of range", field=option, expected="an integer from 1 to 999999999999999",
            actual=text,
        )  # fmt: skip
    return int(text)


@parsed
def score_or_none(text: str, option: str) -> int:
    """Read a raw score of at least 1, or "none" as 0."""
    if text == "none":
        return 0
    if re.fullmatch(r"0*[1-9][0-9]{0,8}", text) is None:
        raise PolicyError(
            "the value is not a score", field=option, expected="an integer >= 1, or none", actual=text
        )
    return int(text)


@parsed
def gain_list(text: str, option: str) -> tuple[int, ...]:
    """Read gains such as 1,8,64."""
    if re.fullmatch(r"[0-9]{1,9}(,[0-9]{1,9})*", text) is None:
        raise PolicyError("the value is not a list of integers", field=option, expected="1,8,64", actual=text)
    return tuple(int(part) for part in text.split(","))


@parsed
def score_range(text: str, option: str) -> tuple[int, int]:
    """Read a score window lo:hi as (lo, hi)."""
    match = re.fullmatch(r"([0-9]{1,9}):([0-9]{1,9})", text)
    if match is None or int(match[1]) >= int(match[2]):
        raise PolicyError(
            "the value is not a score window", field=option, expected="lo:hi with 0 <= lo < hi", actual=text
        )
    return int(match[1]), int(match[2])


@parsed
def theta_fraction(text: str, option: str) -> tuple[int, int]:
    """Read a threshold such as 0.974 or 4/5 as (p, q)."""
    from rag_audit.estimate.clusters import MAX_DENOMINATOR  # with numpy, which most commands do not need

    if re.fullmatch(r"0?\.[0-9]{1,9}|[0-9]{1,9}/0*[1-9][0-9]{0,8}", text):
        theta = Fraction(text)
        if 0 < theta < 1 and theta.denominator <= MAX_DENOMINATOR:
            return theta.numerator, theta.denominator
    raise PolicyError("the value is not a threshold", field=option, expected="in (0, 1), in thousandths or as p/q"
        " with q <= 1000",
                      actual=text)  # fmt: skip


@parsed
def tau_span(text: str, option: str) -> tuple[int, str]:
    """Read a span such as 500 (positions), 90s or 12h as (tau, unit); 0 is the whole window."""
    match = re.fullmatch(r"([0-9]{1,9})([smhd]?)", text)
    if match is None:
        raise PolicyError("the value is not a span", field=option, expected="query records (500), or a time (90s,"
            " 15m, 12h, 7d)",
                          actual=text)  # fmt: skip
    seconds = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}
    return int(match[1]) * seconds.get(match[2], 1), "seconds" if match[2] else "positions"


@parsed
def coalition_proof_size(text: str, option: str) -> tuple[str, int | None] | None:
    """Read the size of a coalition proof: SYSTEM:64 as (system, records), only the default system as (system, None), or
    none as None."""
    default = default_system()
    if text in ("none", default):
        return None if text == "none" else (text, None)
    match = re.fullmatch(rf"({'|'.join(SYSTEMS)}):([1-9][0-9]{{0,8}})", text)
    if match is None:
        sizes = " or ".join(f"{name}:RECORDS" for name in SYSTEMS)
        raise PolicyError("the value is not the size of a coalition proof", field=option,
                          expected=f"none, {default}, {sizes}", actual=text)  # fmt: skip
    return match[1], int(match[2])


def read_policy(file: Path) -> Policy:
    """Read a policy from its file, and check it as far as is possible without an embedder.

    :raises RagAuditError: the file cannot be read, or the policy is not well-formed
    """
    result = Policy.parse(read_json(file, max_bytes=MAX_PUBLICATION_BYTES), field=file.name)
    check_policy(result, None)
    return result
