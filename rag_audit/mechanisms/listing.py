"""Listing by randomized response over a sample: chance lists each position whatever its content.

A position is listed if it scores at least the threshold, is in the sample, and is not yet in the account's disclosed
set. Every other position is listed with a small probability (docs/accounting.md, "Listing"). The ledger commits to each
account's disclosed set after a record, so that a document is listed to it once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from rag_audit.mechanisms.base import (
    Mechanism,
    NoiseFields,
    Own,
    Scores,
    Tenant,
    TenantFields,
    need,
)
from rag_audit.relation.coins import check_coin
from rag_audit.relation.native import Elements, listed_elements
from rag_audit.relation.scores import LARGEST_SCORE

if TYPE_CHECKING:
    from rag_audit.mechanisms.accounting import coins

MAX_LISTED = 1024
"""The maximum K, and the maximum M of a tenant with randomized response. A receipt opens every listed position, and
this number fits its limit at any capacity."""


@dataclass(frozen=True)
class ListingRules:
    """The parameters of a list (docs/accounting.md, "Listing").

    :param chance: Q, over 2^40, the probability that a position is listed at a query whatever its content
    :param most: M, the maximum number of positions of a list
    :param threshold: the minimum raw score of a relevant position
    """

    chance: int
    most: int
    threshold: int


@dataclass(frozen=True)
class Listing(Mechanism):
    """Randomised response.

    >>> from rag_audit.mechanisms.base import Tenant
    >>> tenant = Tenant(capacity=64, top_k=5)
    >>> lists = Listing(tenant, Scores(353, 354, 1), keep=1 << 39, rules=ListingRules(1 << 34, 6, 354))
    >>> lists.longest, lists.epsilon(accounts=1, noise=None)
    (6, 4.1744)

    :param rules: the parameters of a list
    """

    rules: ListingRules = ListingRules(1, 1, 1)

    name = "listing"
    form = "listing"
    limit = "max_epsilon"
    grows_by_account = True
    ranked = False
    remembers = True
    own_fields = ("chance", "listed_max", "threshold")

    # -- from a policy ---------------------------------------------------------------------------------------

    @classmethod
    def is_named_by(cls, part: TenantFields) -> bool:
        return part.mechanism == cls.form

    @classmethod
    def read(
        cls, part: TenantFields, own: Own, noise: NoiseFields | None, tenant: Tenant, keep: int | None
    ) -> Self:
        need(not part.noise, part, "noise", "false, because listing uses random bits", part.noise)
        need(part.scores is None, part, "scores", "null, because listing has a threshold", part.scores)
        need(
            keep is not None,
            part,
            "keep",
            "a sampled share over 2^40, which listing requires; 0.7 is usual",
            part.keep,
        )
        for name in cls.own_fields:
            need(own[name] is not None, part, name, "a value, because listing requires it", own[name])
        chance = check_coin(own["chance"], f"policy.tenants.{part.tenant}.chance")
        most, threshold = own["listed_max"], own["threshold"]
        assert most is not None and threshold is not None
        need(most <= part.capacity, part, "listed_max", f"at most the capacity, {part.capacity}", most)
        return cls.of(ListingRules(chance, most, threshold), tenant, keep)

    @classmethod
    def of(cls, rules: ListingRules, tenant: Tenant, keep: int | None) -> Self:
        """The mechanism with these rules. Its score window is the threshold."""
        return cls(tenant, Scores(lo=rules.threshold - 1, hi=rules.threshold, lattice=1), keep, rules)

    def placed(self, tenant: Tenant, *, gains: tuple[int, ...], noised: Scores, exact: Scores) -> Self:
        return self.of(self.rules, tenant, self.keep)

    @property
    def own_scores(self) -> Scores | None:
        return None

    def limits(self, components: int) -> list[tuple[bool, str, str, object]]:
        most, threshold = self.rules.most, self.rules.threshold
        reach = LARGEST_SCORE * components
        return [
            (most <= MAX_LISTED, "listed_max", f"at most {MAX_LISTED}, whose receipt fits", most),
            (threshold <= reach, "threshold", f"at most {reach}, the largest score", threshold),
        ]

    # -- circuit constants, committed columns and lists ------------------------------------------------------

    @property
    def chance(self) -> int | None:
        return self.rules.chance

    @property
    def threshold(self) -> int | None:
        return self.rules.threshold

    @property
    def longest(self) -> int:
        return self.rules.most

    def list_elements(self, salt: int, positions: Sequence[int]) -> Elements:
        return listed_elements(salt, positions, self.tenant.capacity)

    def wrong_list(self, positions: Sequence[int], documents: int) -> str | None:
        if len(positions) != documents or len(positions) > self.longest:
            return (
                f"{len(positions)} positions and {documents} document openings, where the longest list ="
                f" {self.longest}"
            )
        if list(positions) != sorted(set(positions)) or any(p >= self.tenant.capacity for p in positions):
            return "the listed positions are not ascending positions of the index"
        return None

    # -- privacy figures -------------------------------------------------------------------------------------

    @property
    def sample(self) -> coins.Listing | None:
        from rag_audit.mechanisms.accounting import coins

        return None if self.keep is None else coins.Listing(self.keep, self.rules.chance)

    def epsilon(self, accounts: int, noise: str | None) -> float:
        return math.inf if self.sample is None else self.sample.epsilon(accounts)

    def realised(self, asked: Sequence[int], *, n: int, k: int, delta: str) -> float:
        # The theorem is valid for each transcript, for the accounts that asked.
        return self.epsilon(min(len(asked), k), None)

    def chance_alone(self, queries: int) -> float | None:
        return None if self.sample is None else self.sample.chance_alone(queries)
