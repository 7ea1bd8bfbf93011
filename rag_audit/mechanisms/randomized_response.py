"""Randomized response over a sample: chance can list each position, whatever its content.

A position is listed if it scores at least the threshold, is in the sample, and is not yet in the account's disclosed
set. Every other position is listed with a small probability (docs/accounting.md, "Randomized response"). The ledger
commits to each account's disclosed set after a record, so that a document is listed to it once.
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
from rag_audit.relation.bernoulli import check_probability
from rag_audit.relation.native import Elements, listed_elements
from rag_audit.relation.scores import LARGEST_SCORE

if TYPE_CHECKING:
    from rag_audit.mechanisms.accounting import bernoulli

MAX_LISTED = 1024
"""The maximum K, and the maximum M of a tenant with randomized response. A receipt opens every listed position, and
this number fits its limit at any capacity."""


@dataclass(frozen=True)
class ListRules:
    """The parameters of a list (docs/accounting.md, "Randomized response").

    :param flip_probability: Q, over 2^40, the probability that a position is listed at a query whatever its content
    :param maximum: M, the maximum number of positions of a list
    :param threshold: the minimum raw score of a relevant position
    """

    flip_probability: int
    maximum: int
    threshold: int


@dataclass(frozen=True)
class RandomizedResponse(Mechanism):
    """Randomised response.

    >>> from rag_audit.mechanisms.base import Tenant
    >>> tenant = Tenant(capacity=64, top_k=5)
    >>> lists = RandomizedResponse(tenant, Scores(353, 354, 1), keep=1 << 39, rules=ListRules(1 << 34, 6, 354))
    >>> lists.longest, lists.epsilon(accounts=1, noise=None)
    (6, 4.1744)

    :param rules: the parameters of a list
    """

    rules: ListRules = ListRules(1, 1, 1)

    name = "randomized-response"
    form = "randomized-response"
    limit = "max_epsilon"
    grows_by_account = True
    ranked = False
    remembers = True
    own_fields = ("flip_probability", "listed_max", "threshold")

    # -- from a policy ---------------------------------------------------------------------------------------

    @classmethod
    def is_named_by(cls, part: TenantFields) -> bool:
        return part.mechanism == cls.form

    @classmethod
    def read(
        cls, part: TenantFields, own: Own, noise: NoiseFields | None, tenant: Tenant, keep: int | None
    ) -> Self:
        need(not part.noise, part, "noise", "false, because randomized response uses random bits", part.noise)
        need(
            part.scores is None,
            part,
            "scores",
            "null, because randomized response has a threshold",
            part.scores,
        )
        need(
            keep is not None,
            part,
            "keep",
            "a sampled share over 2^40, which randomized response requires; 0.7 is usual",
            part.keep,
        )
        for name in cls.own_fields:
            need(
                own[name] is not None,
                part,
                name,
                "a value, because randomized response requires it",
                own[name],
            )
        flip_probability = check_probability(
            own["flip_probability"], f"policy.tenants.{part.tenant}.flip_probability"
        )
        maximum, threshold = own["listed_max"], own["threshold"]
        assert maximum is not None and threshold is not None
        need(maximum <= part.capacity, part, "listed_max", f"at most the capacity, {part.capacity}", maximum)
        return cls.of(ListRules(flip_probability, maximum, threshold), tenant, keep)

    @classmethod
    def of(cls, rules: ListRules, tenant: Tenant, keep: int | None) -> Self:
        """The mechanism with these rules. Its score window is the threshold."""
        return cls(tenant, Scores(lo=rules.threshold - 1, hi=rules.threshold, lattice=1), keep, rules)

    def placed(self, tenant: Tenant, *, gains: tuple[int, ...], noised: Scores, exact: Scores) -> Self:
        return self.of(self.rules, tenant, self.keep)

    @property
    def own_scores(self) -> Scores | None:
        return None

    def limits(self, components: int) -> list[tuple[bool, str, str, object]]:
        maximum, threshold = self.rules.maximum, self.rules.threshold
        reach = LARGEST_SCORE * components
        return [
            (maximum <= MAX_LISTED, "listed_max", f"at most {MAX_LISTED}, whose receipt fits", maximum),
            (threshold <= reach, "threshold", f"at most {reach}, the largest score", threshold),
        ]

    # -- circuit constants, committed columns and lists ------------------------------------------------------

    @property
    def flip_probability(self) -> int | None:
        return self.rules.flip_probability

    @property
    def threshold(self) -> int | None:
        return self.rules.threshold

    @property
    def longest(self) -> int:
        return self.rules.maximum

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
    def sample(self) -> bernoulli.RandomizedResponse | None:
        from rag_audit.mechanisms.accounting import bernoulli

        return (
            None
            if self.keep is None
            else bernoulli.RandomizedResponse(self.keep, self.rules.flip_probability)
        )

    def epsilon(self, accounts: int, noise: str | None) -> float:
        return math.inf if self.sample is None else self.sample.epsilon(accounts)

    def realised(self, requested: Sequence[int], *, n: int, k: int, delta: str) -> float:
        # The theorem is valid for each transcript, for the accounts that asked.
        return self.epsilon(min(len(requested), k), None)

    def list_without_relevance(self, queries: int) -> float | None:
        return None if self.sample is None else self.sample.list_without_relevance(queries)
