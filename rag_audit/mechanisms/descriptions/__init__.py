"""The descriptions of mechanisms: each is one file with the interface of `base`, and this module finds them."""

from __future__ import annotations

import re
from importlib import import_module

from rag_audit import mechanisms
from rag_audit._internal.errors import PolicyError
from rag_audit.mechanisms.base import Mechanism
from rag_audit.mechanisms.descriptions.base import Description, Option

__all__ = ["ALL", "Description", "chosen", "description"]


def _found(name: str) -> type[Description]:
    """`DESCRIPTION` of the file that has the mechanism's name."""
    kind: type[Description] = import_module(f"{__name__}.{name.replace('-', '_')}").DESCRIPTION
    return kind


ALL = tuple(_found(mechanism.name) for mechanism in mechanisms.ALL)
"""Every mechanism's description, in the order of `mechanisms.ALL`."""
_BY_NAME: dict[str, type[Description]] = {kind.mechanism.name: kind for kind in ALL}


def description(name: str) -> type[Description]:
    """The description of the mechanism of a name.

    >>> description("sampling").words
    'exact answers from a sample of the index'

    :raises KeyError: no mechanism has the name, which the models of every file exclude
    """
    return _BY_NAME[name]


def chosen(written: str, *, whole: str, expected: str, relevance: int | None = None) -> Mechanism:
    """The mechanism that NAME[:KEEP[:REST]] names (`Description.chosen`).

    >>> chosen("sampling:0.5", whole="", expected="").keep == 1 << 39
    True

    :param whole: the whole value of the option, for errors
    :param expected: the forms of all values, for errors
    :param relevance: the minimum raw score of a relevant passage, measured on public texts; None if it is unknown
    :raises PolicyError: the text does not have the form, or a parameter is out of range
    """
    match = re.fullmatch(rf"({'|'.join(_BY_NAME)})(?::([0-9.]{{1,30}}))?(:.+)?", written)
    if match is None:
        raise PolicyError(
            "the option names no mechanism", field="--mechanism", expected=expected, actual=whole
        )
    option = Option(match[2], match[3] or "", whole, expected, relevance)
    return description(match[1]).chosen(option)
