"""Sampling: the window keeps each position with one probability, and answers are exact over the kept positions.

A position that is not kept scores 0, and its text is not returned. The figure bounds how much more likely the absence
of a document becomes for accounts that never received it (docs/accounting.md, "Sampling").
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Self

from rag_audit.mechanisms.base import (
    Ceiling,
    Facts,
    Mechanism,
    NoiseFields,
    Parameters,
    Scores,
    Tenant,
    TenantFields,
    exact_scores,
    missed_words,
    share_text,
)
from rag_audit.relation.coins import COIN_RANGE

if TYPE_CHECKING:
    from rag_audit.mechanisms.accounting import coins


class Sampling(Mechanism):
    """Exact answers from a sample of the index.

    >>> from rag_audit.mechanisms.base import Scores, Tenant
    >>> half = Sampling(Tenant(capacity=64, top_k=5), Scores(0, 16384, 16384), keep=1 << 39)
    >>> half.odds_unlisted(queries=100), half.epsilon(accounts=1, noise=None)
    (2.0001, inf)
    """

    name = "sampling"
    words = "exact answers from a sample of the index"
    limit = "max_odds_unlisted"
    any_coalition = True
    texts_reveal = True
    withholds_by_score = True
    does_not_prove = (
        "anything about documents that were handed out: odds_unlisted bounds how much more likely the absence"
        " of a document becomes for accounts that never received it, it is no epsilon, and windows multiply it; the"
        " presence of a document that is asked for has no protection"
    )
    unbounded = (
        "no epsilon bounds what lists show of it. A ceiling for every test of a document's presence is below."
    )
    coalition = "odds_unlisted of mechanism sampling is the same for every number of accounts."

    @classmethod
    def is_named_by(cls, part: TenantFields) -> bool:
        return part.mechanism == cls.form and not part.noise and part.keep is not None

    @classmethod
    def read(cls, part: TenantFields, noise: NoiseFields | None, tenant: Tenant, keep: int | None) -> Self:
        return cls(tenant, exact_scores(part), keep)

    @property
    def sample(self) -> coins.Sampling | None:
        from rag_audit.mechanisms.accounting import coins

        return None if self.keep is None else coins.Sampling(self.keep)

    def certified(self, accounts: int, queries: int, delta: str | None) -> tuple[float, float | None]:
        return math.inf, None if self.sample is None else self.sample.auc

    def ceiling(self, accounts: int, queries: int, rates: Sequence[float]) -> Ceiling | None:
        # Where a position is not kept, nothing depends on it, however many accounts and queries there are.
        sample = self.sample
        if sample is None:
            return None
        points = [(0.0, sample.roc(0.0)), (float(sample.dropped), 1.0), (1.0, 1.0)]
        return Ceiling(accounts, points, sample.roc(0.01))

    @classmethod
    def described(cls, values: Parameters) -> str:
        return f"sampling, {(values.keep or 0) / COIN_RANGE:.9g} kept"

    @classmethod
    def option(cls, values: Parameters) -> str | None:
        return f"sampling:{(values.keep or 0) / COIN_RANGE:.12g}"

    def explained(self) -> list[str]:
        return [*super().explained(), *self._exact_words()]

    @classmethod
    def without_epsilon(cls, facts: Facts) -> str | None:
        odds = facts.odds_unlisted
        if odds is None or not math.isfinite(float(odds)):
            return None
        return (
            "no epsilon bounds what answers show; for accounts that never received a document its absence becomes more"
            f" likely by a factor of at most {odds}"
        )

    @classmethod
    def no_epsilon(cls, facts: Facts) -> str:
        return (
            "There is no epsilon, whatever the number of accounts: answers are exact, from a sample of"
            f" {share_text(float(facts.keep or 0))} of the positions. For accounts that never received a"
            " given document of one position, its absence becomes more likely by a factor of at most"
            f" {facts.odds_unlisted}; a document that was handed out is known to be there."
        )

    @classmethod
    def cost(cls, facts: Facts) -> str:
        return f"{missed_words(facts.keep)} in this window; the others are ranked exactly"

    @classmethod
    def from_facts(cls, facts: Facts) -> Self:
        return cls(
            Tenant(facts.capacity, facts.longest, facts.accounts_max),
            Scores(facts.score_lo, facts.score_hi, facts.lattice),
            facts.keep_coin,
        )
