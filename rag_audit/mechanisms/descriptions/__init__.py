"""The descriptions of mechanisms: each is one file with the interface of `base`, and this module finds them."""

from __future__ import annotations

from importlib import import_module

from rag_audit import mechanisms
from rag_audit.mechanisms.descriptions.base import Description

__all__ = ["ALL", "Description", "description"]


def _found(name: str) -> type[Description]:
    """`DESCRIPTION` of the file that has the mechanism's name."""
    kind: type[Description] = import_module(f"{__name__}.{name}").DESCRIPTION
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
