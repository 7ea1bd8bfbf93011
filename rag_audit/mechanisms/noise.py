"""Noise: every score gets fresh discrete Gaussian noise, and answers are the first K of the noised scores.

This is the paper's mechanism. It bounds an epsilon over all outcomes for any queries of a coalition, by composition
(docs/accounting.md). A tenant may sample its positions too, but only the noise bounds epsilon. With a document
table the figures are for a document of at most s positions, whose losses compose over its positions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Self

from rag_audit.mechanisms.base import (
    Mechanism,
    MechanismName,
    NoiseFields,
    Own,
    Scores,
    TableShape,
    Tenant,
    TenantFields,
    document_table,
    need,
)

if TYPE_CHECKING:
    from rag_audit.mechanisms import accounting
    from rag_audit.mechanisms.accounting import bernoulli


@dataclass(frozen=True)
class Noise(Mechanism):
    """Noise on every score, over all positions or over a sample of them, or over the documents of a table.

    >>> from rag_audit.mechanisms.base import Scores, Tenant
    >>> noise = Noise(Tenant(capacity=64, top_k=5), Scores(101, 810, 64), own_gains=(1, 8))
    >>> noise.gains, noise.epsilon(accounts=2, noise="7.5")
    ((1, 8), 7.5)

    :param own_gains: the gains of the noise, which `Policy.check` checks
    :param documents: the shape of the document table; None if every position is a document of its own
    """

    own_gains: tuple[int, ...] = ()
    documents: TableShape | None = None

    name: ClassVar[MechanismName] = "noise"
    limit = "max_epsilon"
    noised = True
    uses_delta = True
    takes_table = True

    # -- from a policy ---------------------------------------------------------------------------------------

    @classmethod
    def is_named_by(cls, part: TenantFields) -> bool:
        return part.mechanism == cls.form and part.noise

    @classmethod
    def read(
        cls, part: TenantFields, own: Own, noise: NoiseFields | None, tenant: Tenant, keep: int | None
    ) -> Self:
        need(noise is not None, part, "noise", "false, because the policy has no noise", part.noise)
        need(part.scores is None, part, "scores", "null, because the noise has its own window", part.scores)
        assert noise is not None
        table = document_table(part, tenant)
        bits = "null: losses of noise add up over windows, and no bit lasts longer than its window"
        persistent = None if table is None else table.fresh_rows
        need(persistent is None, part, "documents.fresh_rows", bits, persistent)
        # Noise lists documents outside of a sample too, so the factor for the absence of a document would grow with
        # each query. The factor of one bit for a document is `accounting.documents.noised_sampling_factor`.
        every = "null with a document table: noise lists documents outside of a sample too"
        need(table is None or keep is None, part, "keep", every, part.keep)
        return cls(tenant, Scores.of(noise), keep, tuple(noise.gains), table)

    def by_document(self, table: TableShape) -> Self:
        return replace(self, documents=table)

    @property
    def table(self) -> TableShape | None:
        return self.documents

    def placed(self, tenant: Tenant, *, gains: tuple[int, ...], noised: Scores, exact: Scores) -> Self:
        return replace(self, tenant=tenant, scores=noised, own_gains=gains)

    @property
    def own_scores(self) -> Scores | None:
        return None

    # -- circuit constants, committed columns and lists ------------------------------------------------------

    @property
    def gains(self) -> tuple[int, ...]:
        return self.own_gains

    def width(self, highest: int | None) -> int:
        # Noise moves scores beyond the highest.
        return self.scores.hi - self.scores.lo

    # -- privacy figures -------------------------------------------------------------------------------------

    @property
    def sample(self) -> bernoulli.NoisedSampling | None:
        from rag_audit.mechanisms.accounting import bernoulli

        if self.keep is None:
            return None
        return bernoulli.NoisedSampling(self.keep, self.tenant.top_k, self.tenant.capacity)

    def epsilon(self, accounts: int, noise: str | None) -> float:
        return math.inf if noise is None else float(noise)

    def realised(self, requested: Sequence[int], *, n: int, k: int, delta: str) -> float:
        from rag_audit.mechanisms import accounting

        single, s = distribution(self), self.positions_per_document
        return accounting.realised(single, requested, delta, n=n, k=k, positions=s).eps


def distribution(mechanism: Mechanism) -> accounting.Mechanism:
    """The distribution of the noise and its privacy loss.

    :raises PolicyError: the accountant refuses the gains or the lattice
    """
    from rag_audit.mechanisms import accounting

    return accounting.Mechanism(mechanism.gains, mechanism.scores.lattice)
