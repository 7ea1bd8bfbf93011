"""The descriptions of mechanisms: each is one file with the interface of `base`, and this module is their registry."""

from __future__ import annotations

from rag_audit.mechanisms.descriptions.base import Description
from rag_audit.mechanisms.descriptions.listing import ListingDescription
from rag_audit.mechanisms.descriptions.noise import NoiseDescription
from rag_audit.mechanisms.descriptions.none import ExactDescription
from rag_audit.mechanisms.descriptions.sampling import SamplingDescription

__all__ = ["ALL", "Description", "description"]

ALL: tuple[type[Description], ...] = (
    NoiseDescription,
    SamplingDescription,
    ListingDescription,
    ExactDescription,
)
"""Every mechanism's description, in the order of `mechanisms.ALL`."""
_BY_NAME: dict[str, type[Description]] = {kind.mechanism.name: kind for kind in ALL}


def description(name: str) -> type[Description]:
    """The description of the mechanism of a name.

    >>> description("sampling").words
    'exact answers from a sample of the index'

    :raises KeyError: no mechanism has the name, which the models of every file exclude
    """
    return _BY_NAME[name]
