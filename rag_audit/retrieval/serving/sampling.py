"""Sampling: a provider ranks exact scores of the sampled positions, and returns no text of a position of score 0."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence

from rag_audit.retrieval.engine import Int8Array, TenantIndex
from rag_audit.retrieval.serving.base import Columns, Ranking


class SamplingServing(Ranking):
    """Exact ranks over a sample."""

    def withheld(
        self,
        index: TenantIndex,
        vector: Callable[[], Int8Array],
        positions: Sequence[int],
        *,
        columns: Columns,
        documents: Container[int],
    ) -> frozenset[int]:
        """See `Serving.withheld`: a list is padded with positions of score 0 where fewer than K score more."""
        closed = super().withheld(index, vector, positions, columns=columns, documents=documents)
        window, query = self.mechanism.window, vector().astype(int)
        empty = (p for p in positions if not window.quantise(int(index.rows[p].astype(int) @ query)))
        return closed.union(empty)


SERVING = SamplingServing
