"""No mechanism: answers are the exact first K positions, and the window proves only integrity."""

from __future__ import annotations

from typing import Self

from rag_audit.mechanisms.base import (
    Mechanism,
    NoiseFields,
    Own,
    Tenant,
    TenantFields,
    exact_scores,
)


class Exact(Mechanism):
    """The exact first K positions.

    >>> from rag_audit.mechanisms.base import Scores, Tenant
    >>> exact = Exact(Tenant(capacity=64, top_k=5), Scores(0, 16384, 16384))
    >>> exact.epsilon(accounts=1, noise=None), exact.protects
    (inf, False)
    """

    name = "none"
    protects = False

    @classmethod
    def is_named_by(cls, part: TenantFields) -> bool:
        return part.mechanism == cls.form and not part.noise and part.keep is None

    @classmethod
    def read(
        cls, part: TenantFields, own: Own, noise: NoiseFields | None, tenant: Tenant, keep: int | None
    ) -> Self:
        return cls(tenant, exact_scores(part))
