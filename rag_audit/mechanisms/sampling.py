"""Sampling: the window samples each position with one probability, and answers are exact over the sampled positions.

With a document table, one Bernoulli bit decides for all positions of a document, and persists from window to window.

An unsampled position scores 0, and its text is not returned. The figure bounds how much more likely the absence of a
document becomes for accounts that never received it (docs/accounting.md, "Sampling").
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

from rag_audit.mechanisms.base import (
    Mechanism,
    NoiseFields,
    Own,
    TableShape,
    Tenant,
    TenantFields,
    document_table,
    exact_scores,
)

if TYPE_CHECKING:
    from rag_audit.mechanisms.accounting import bernoulli


@dataclass(frozen=True)
class Sampling(Mechanism):
    """Exact answers from a sample of the index.

    :param documents: the shape of the document table; None if every position is a document of its own

    >>> from rag_audit.mechanisms.base import Scores, Tenant
    >>> half = Sampling(Tenant(capacity=64, top_k=5), Scores(0, 16384, 16384), keep=1 << 39)
    >>> half.exclusion_factor(queries=100), half.epsilon(accounts=1, noise=None)
    (2.0001, inf)
    """

    documents: TableShape | None = None

    name = "sampling"
    limit = "max_exclusion_factor"
    limits_absence = True
    withholds_by_score = True
    takes_table = True

    @classmethod
    def is_named_by(cls, part: TenantFields) -> bool:
        return part.mechanism == cls.form and not part.noise and part.keep is not None

    @classmethod
    def read(
        cls, part: TenantFields, own: Own, noise: NoiseFields | None, tenant: Tenant, keep: int | None
    ) -> Self:
        return cls(tenant, exact_scores(part), keep, document_table(part, tenant))

    def by_document(self, table: TableShape) -> Self:
        return replace(self, documents=table)

    @property
    def table(self) -> TableShape | None:
        return self.documents

    @property
    def sample(self) -> bernoulli.Sampling | None:
        from rag_audit.mechanisms.accounting import bernoulli

        return None if self.keep is None else bernoulli.Sampling(self.keep)
