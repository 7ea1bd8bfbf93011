"""The statements that are proved of a record, and the constants that fix a tenant's proofs before any record."""

from __future__ import annotations

from dataclasses import dataclass

from rag_audit.mechanisms import Mechanism
from rag_audit.mechanisms.base import SAMPLE
from rag_audit.models.manifest import ProvableConstants

STATEMENTS = ("retrieve", "embed")
"""The statements about a record in the order of work and report: `retrieve` is claims A2 to A4, `embed` claim A1. A
policy names a circuit (or protocol) for each statement that its tenant's records are proved for, always `retrieve`."""


@dataclass(frozen=True)
class Constants:
    """The constants that policy and embedder fix for the proofs of one tenant before any record exists.

    :param capacity: committed positions
    :param dimension: components of a vector
    :param top_k: K
    :param gains: gains of the noise, empty without noise
    :param lo: lower end of the score window
    :param hi: upper end of the score window
    :param lattice: R
    :param query_tokens: the number of a query's tokens that are embedded
    :param table: the constants of the embedder's table or encoder; None if A1 cannot be proved
    :param columns: the columns that the window commits to once for the tenant (`Mechanism.columns`)
    :param flip_probability: for a tenant with pooled listing, Q over 2^40
    :param threshold: for such a tenant, the minimum raw score of a relevant position
    :param by_document: for a tenant with a sample, whether all positions of a document share one bit
    :param pools: whether all accounts of the tenant share one set of listed rows
    :param rows: the number of rows of the document table; None without a table
    :param positions_per_document: the maximum number of positions of a row; None without a table
    """

    capacity: int
    dimension: int
    top_k: int
    gains: tuple[int, ...]
    lo: int
    hi: int
    lattice: int
    query_tokens: int
    table: ProvableConstants | None
    columns: tuple[str, ...] = ()
    flip_probability: int | None = None
    threshold: int | None = None
    by_document: bool = False
    pools: bool = False
    rows: int | None = None
    positions_per_document: int | None = None

    @classmethod
    def of(
        cls, mechanism: Mechanism, *, dimension: int, query_tokens: int, table: ProvableConstants | None
    ) -> Constants:
        """The constants of a tenant with a mechanism, under an embedder."""
        return cls(
            capacity=mechanism.tenant.capacity,
            dimension=dimension,
            top_k=mechanism.longest,
            gains=mechanism.gains,
            lo=mechanism.scores.lo,
            hi=mechanism.scores.hi,
            lattice=mechanism.scores.lattice,
            query_tokens=query_tokens,
            table=table,
            columns=mechanism.columns,
            flip_probability=mechanism.flip_probability,
            threshold=mechanism.threshold,
            by_document=mechanism.table is not None,
            pools=mechanism.pools,
            rows=None if mechanism.table is None else mechanism.table.rows,
            positions_per_document=None
            if mechanism.table is None
            else mechanism.table.positions_per_document,
        )

    @property
    def sampled(self) -> bool:
        """Whether positions are sampled once a window."""
        return SAMPLE in self.columns
