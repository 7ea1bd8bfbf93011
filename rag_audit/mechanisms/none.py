"""No mechanism: answers are the exact first K positions, and the window proves integrity alone."""

from __future__ import annotations

from typing import Self

from rag_audit.mechanisms.base import (
    Facts,
    Mechanism,
    NoiseFields,
    Parameters,
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
    words = "exact answers, nothing hides what is in the index"
    protects = False
    does_not_prove = (
        "any privacy of a tenant whose mechanism is none: its answers are exact, and the window proves"
        " integrity"
    )
    no_ceiling = "There is no ceiling: a test may recognise every document."
    coalition = (
        "No figure of this policy depends on it, since no tenant has a mechanism that hides documents."
    )

    @classmethod
    def is_named_by(cls, part: TenantFields) -> bool:
        return part.mechanism == cls.form and not part.noise and part.keep is None

    @classmethod
    def read(cls, part: TenantFields, noise: NoiseFields | None, tenant: Tenant, keep: int | None) -> Self:
        return cls(tenant, exact_scores(part))

    @classmethod
    def described(cls, values: Parameters) -> str:
        return "no mechanism"

    @classmethod
    def option(cls, values: Parameters) -> str | None:
        return cls.name

    def explained(self) -> list[str]:
        return [*super().explained(), *self._exact_words()]

    @classmethod
    def cost(cls, facts: Facts) -> str:
        return "nothing: answers are the exact top K"

    @classmethod
    def no_epsilon(cls, facts: Facts) -> str:
        return "There is no epsilon: answers are exact, and nothing hides what is in the index."
