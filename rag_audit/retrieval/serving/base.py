"""The interface of what a provider does under a mechanism: it draws for a slot, selects positions, and withholds texts.

The verifier imports none of this: it checks proofs of the selection (`mechanisms` has what both parties read).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

from rag_audit.mechanisms.base import KEPT, Mechanism
from rag_audit.retrieval.engine import Drawn, Int8Array, TenantIndex, no_noise, select_all

Columns: TypeAlias = Mapping[str, Int8Array]
"""The columns of a tenant by name (`Mechanism.columns`), each of shape (capacity,), 0 or 1."""


@dataclass(frozen=True, eq=False)
class Asked:
    """A question with what its slot has.

    :param vector: the question's vector, shape (d,), int8 in -7..7
    :param drawn: the slot's draw (`Serving.draw`); None where the mechanism draws nothing
    :param held: what the account holds before the record, shape (capacity,), 0 or 1; None where nothing depends on it
    """

    vector: Int8Array
    drawn: Drawn | None = None
    held: Int8Array | None = None


class Serving(ABC):
    """A provider's part of the mechanism of one tenant.

    :param mechanism: the tenant's mechanism
    """

    draws: ClassVar[bool] = False
    """whether each slot has a draw of its own, which may be made before its query"""

    def __init__(self, mechanism: Mechanism) -> None:
        self.mechanism = mechanism

    def draw(self, kappa: int, capacity: int) -> Drawn:
        """The draw of a slot, a pure function of the slot's key, shape (capacity,): zeros where nothing is drawn.

        :param kappa: the key of the slot
        :param capacity: the committed positions
        """
        return no_noise(capacity)

    @abstractmethod
    def select(
        self, index: TenantIndex, asked: Sequence[Asked], columns: Columns
    ) -> list[list[int] | Exception]:
        """The positions that each answer lists, in the order in which the record commits to them.

        :param columns: the columns that the window commits to for the tenant
        :returns: each question's positions, or the error that stopped its selection
        :raises EncodingError: an array has another shape or type
        """

    def withheld(
        self,
        index: TenantIndex,
        vector: Callable[[], Int8Array],
        positions: Sequence[int],
        *,
        columns: Columns,
        documents: Container[int],
    ) -> frozenset[int]:
        """The selected positions that an answer returns without a text: each position that is empty, or that the window
        does not keep.

        Noise and chance list positions that are not kept, and exact lists are padded with positions of score 0. With
        their texts, each of them would tell its reader what the sample hides. An empty position is withheld too, so
        that an answer does not tell it from a document that is not kept.

        :param vector: computes the question's vector
        :param columns: as for `select`; without kept positions an answer returns every text
        :param documents: the positions that have a document
        """
        kept = columns.get(KEPT)
        if kept is None:
            return frozenset()
        return frozenset(p for p in positions if not (kept[p] and p in documents))


class Ranking(Serving):
    """Lists of the first K positions by score, with the slot's noise where there is any (the paper's (2.1))."""

    def select(
        self, index: TenantIndex, asked: Sequence[Asked], columns: Columns
    ) -> list[list[int] | Exception]:
        """See `Serving.select`: questions of one tenant share passes over its index."""
        silent, m = no_noise(index.capacity), self.mechanism
        noised = [(one.vector, silent if one.drawn is None else one.drawn) for one in asked]
        return select_all(index, noised, m.window, m.longest, columns.get(KEPT))
