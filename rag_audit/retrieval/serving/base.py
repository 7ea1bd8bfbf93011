"""The interface of a provider's operations under a mechanism: it draws for a slot, selects positions, and withholds
texts.

The verifier does not import this package: it checks proofs of the selection. `mechanisms` has the part that both
parties use.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

from rag_audit.mechanisms.base import SAMPLE, Mechanism
from rag_audit.retrieval.engine import Drawn, Int8Array, TenantIndex, no_noise, select_all

Columns: TypeAlias = Mapping[str, Int8Array]
"""The columns of a tenant by name (`Mechanism.columns`), each of shape (capacity,), 0 or 1."""


@dataclass(frozen=True, eq=False)
class Asked:
    """A question with the data of its slot.

    :param vector: the question's vector, shape (d,), int8 in -7..7
    :param drawn: the slot's draw (`Serving.draw`); None if the mechanism draws no values
    """

    vector: Int8Array
    drawn: Drawn | None = None


class Serving(ABC):
    """A provider's part of the mechanism of one tenant.

    :param mechanism: the tenant's mechanism
    """

    draws: ClassVar[bool] = False
    """whether each slot has a draw of its own, which may be made before its query"""

    def __init__(self, mechanism: Mechanism) -> None:
        self.mechanism = mechanism

    def draw(self, kappa: int, capacity: int) -> Drawn:
        """The draw of a slot, a pure function of the slot's key, shape (capacity,): zeros if the mechanism draws no
        values.

        :param kappa: the key of the slot
        :param capacity: the committed positions
        """
        return no_noise(capacity)

    @abstractmethod
    def select(
        self, index: TenantIndex, requested: Sequence[Asked], columns: Columns
    ) -> list[list[int] | Exception]:
        """The listed positions of each answer, in the order of the record's commitment.

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
        """The selected positions that an answer returns without a text: each position that is empty or not sampled.

        Noise and chance can list unsampled positions, and exact lists are padded with positions of score 0. The texts
        of these positions would reveal unsampled documents to the account. An empty position is withheld too, so that
        an answer does not distinguish it from an unsampled document.

        :param vector: computes the question's vector
        :param columns: as for `select`; without `keep` an answer returns every text
        :param documents: the positions that have a document
        """
        sampled = columns.get(SAMPLE)
        if sampled is None or not self.mechanism.withholds:
            return frozenset()
        return frozenset(p for p in positions if not (sampled[p] and p in documents))


class Ranking(Serving):
    """Lists of the first K positions by score, with the slot's noise where there is any (the paper's (2.1))."""

    def select(
        self, index: TenantIndex, requested: Sequence[Asked], columns: Columns
    ) -> list[list[int] | Exception]:
        """See `Serving.select`: questions of one tenant share passes over its index."""
        silent, m = no_noise(index.capacity), self.mechanism
        noised = [(one.vector, silent if one.drawn is None else one.drawn) for one in requested]
        return select_all(index, noised, m.window, m.longest, columns.get(SAMPLE))
