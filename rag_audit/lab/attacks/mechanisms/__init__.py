"""Mechanisms under attack: one file with the interface of `base` for each mechanism that the reference engine has, and
here their registry."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec

from rag_audit._internal.errors import PolicyError
from rag_audit.lab.attacks.mechanisms.base import Attacked, Defence, Ranking, Written
from rag_audit.mechanisms import ALL as MECHANISMS
from rag_audit.relation.scores import ScoreWindow

__all__ = ["ALL", "FORMS", "Attacked", "Defence", "Ranking", "kind", "parse"]


def _attacked(name: str) -> type[Attacked] | None:
    """`ATTACKED` of the file that has the mechanism's name; None without such a file."""
    module = f"{__name__}.{name.replace('-', '_')}"
    if find_spec(module) is None:
        return None
    result: type[Attacked] = import_module(module).ATTACKED
    return result


ALL = tuple(
    attacked
    for mechanism in sorted(MECHANISMS, key=lambda mechanism: mechanism.protects)
    if (attacked := _attacked(mechanism.name)) is not None
)
"""Every mechanism that the reference engine has, those without protection first."""
FORMS = ", ".join(attacked.form for attacked in ALL)
"""The forms of all values of the option --mechanism."""
_BY_NAME = {attacked.name: attacked for attacked in ALL}


def kind(written: str) -> type[Attacked]:
    """The mechanism that a value of the option --mechanism names.

    :raises PolicyError: the reference engine has no mechanism of this name
    """
    name = written.partition(":")[0]
    if name not in _BY_NAME:
        raise PolicyError(
            "the option names no mechanism", field="--mechanism", expected=FORMS, actual=written
        )
    return _BY_NAME[name]


def parse(written: str, window: ScoreWindow, capacity: int, relevance: int | None = None) -> Attacked:
    """Read a value of the option --mechanism.

    :param window: the embedder's score window; noise uses its range
    :param capacity: number of positions
    :param relevance: the embedder's minimum raw score of a relevant passage, the default threshold of pooled listing;
        None if it is unknown
    :raises PolicyError: the text does not have the form, or a parameter is out of range
    """
    return kind(written).read(Written(written, window, capacity, FORMS, relevance))
