"""Pooled listing: one growing set of listed documents for all accounts of a tenant.

A document becomes listed if one of its positions scores at least the threshold and its Bernoulli bit samples it, or if
chance lists it, whatever its content. An answer has the best K positions of all listed documents, and a place without
a positive score stays empty. Requests take effect one by one, in the order of the ledger (docs/accounting.md, "Pooled
listing"). Epsilon is the same for any number of accounts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

from rag_audit._internal.errors import PolicyError
from rag_audit.mechanisms.base import (
    ChainConstants,
    Mechanism,
    NoiseFields,
    Own,
    Scores,
    TableShape,
    Tenant,
    TenantFields,
    document_table,
    exact_scores,
    need,
)
from rag_audit.relation.bernoulli import check_probability
from rag_audit.relation.native import Elements, topk_elements
from rag_audit.relation.scores import LARGEST_SCORE

if TYPE_CHECKING:
    from rag_audit.mechanisms.accounting import bernoulli


@dataclass(frozen=True)
class PoolRules:
    """The parameters of pooled listing.

    :param flip_probability: Q, over 2^40, the probability that a query lists a document whatever its content; 0 in a
        draft, until `placed` derives it from `unrequested`
    :param threshold: the minimum raw score of a relevant position
    :param unrequested: f, the maximum probability that chance lists a given document at any query of the window, a
        decimal between 0 and 1; None in a policy, whose flip probability determines f
    """

    flip_probability: int
    threshold: int
    unrequested: str | None = None


@dataclass(frozen=True)
class PooledListing(Mechanism):
    """Pooled listing.

    >>> from rag_audit.mechanisms.base import Tenant
    >>> pooled = PooledListing(keep=1 << 39, rules=PoolRules(0, 354, "0.1"), documents=TableShape(32, 2, None))
    >>> tenant = Tenant(capacity=64, top_k=5, accounts_max=3, queries=20)
    >>> policy = pooled.placed(tenant, gains=(), noised=Scores(0, 1, 1), exact=Scores(0, 16384, 16384))
    >>> policy.queries, policy.epsilon(accounts=1, noise=None) == policy.epsilon(accounts=3, noise=None)
    (60, True)

    :param rules: the parameters
    :param documents: the shape of the document table; None only in a draft, until `by_document`
    :param windows: the windows of the chain whose random bits count, this one included: a document that they listed
        stays listed
    """

    rules: PoolRules = PoolRules(1, 1)
    documents: TableShape | None = None
    windows: int = 1

    name = "pooled-listing"
    form = "pooled-listing"
    limit = "max_epsilon"
    limits_absence = True
    pools = True
    takes_table = True
    requires_table = True
    own_fields = ("flip_probability", "threshold")

    # -- from a policy ---------------------------------------------------------------------------------------

    @classmethod
    def is_named_by(cls, part: TenantFields) -> bool:
        return part.mechanism == cls.form

    @classmethod
    def read(
        cls, part: TenantFields, own: Own, noise: NoiseFields | None, tenant: Tenant, keep: int | None
    ) -> Self:
        need(not part.noise, part, "noise", "false, because pooled listing uses random bits", part.noise)
        sampled = "a sampled share over 2^40, which pooled listing requires; 0.9 is usual"
        need(keep is not None, part, "keep", sampled, part.keep)
        for name in cls.own_fields:
            need(own[name] is not None, part, name, "a value, because pooled listing requires it", own[name])
        table = document_table(part, tenant)
        need(table is not None, part, "documents", "a document table, which pooled listing requires", None)
        field = f"policy.tenants.{part.tenant}.flip_probability"
        flip_probability, threshold = check_probability(own["flip_probability"], field), own["threshold"]
        assert threshold is not None
        return cls(tenant, exact_scores(part), keep, PoolRules(flip_probability, threshold), table)

    def placed(self, tenant: Tenant, *, gains: tuple[int, ...], noised: Scores, exact: Scores) -> Self:
        """See `Mechanism.placed`.

        :raises PolicyError: there is no document table, f is not strictly between 0 and 1, or the flip probability
            for so many queries rounds to 0
        """
        if self.documents is None:
            raise PolicyError("pooled listing needs a document table", field="--documents",
                              expected="--documents ROWS --positions-per-document POSITIONS, and --fresh-rows ROWS or"
                              " --fresh-bits", actual="none")  # fmt: skip
        rules = self.rules
        if rules.unrequested is not None:
            from rag_audit.mechanisms.accounting.documents import flip_probability_for

            m = tenant.accounts_max * tenant.queries
            rules = PoolRules(flip_probability_for(rules.unrequested, queries=m), rules.threshold)
        return replace(self, tenant=tenant, scores=exact, rules=rules)

    def by_document(self, table: TableShape) -> Self:
        return replace(self, documents=table)

    def limits(self, components: int) -> list[tuple[bool, str, str, object]]:
        threshold, reach = self.rules.threshold, LARGEST_SCORE * components
        return [(threshold <= reach, "threshold", f"at most {reach}, the largest score", threshold)]

    # -- circuit constants, committed columns and lists ------------------------------------------------------

    @property
    def flip_probability(self) -> int | None:
        return self.rules.flip_probability

    @property
    def table(self) -> TableShape | None:
        return self.documents

    @property
    def threshold(self) -> int | None:
        return self.rules.threshold

    @property
    def withholds(self) -> bool:
        """Every listed position has a score above 0, and its text is returned."""
        return False

    @property
    def queries(self) -> int:
        """m, the maximum number of records of the tenant in a window."""
        return self.tenant.accounts_max * self.tenant.queries

    def chance_queries(self, queries: int) -> int:
        """See `Mechanism.chance_queries`: a document that random bits list at the query of one account ranks for every
        account of the tenant.
        """
        return self.queries * self.windows

    @property
    def own_chain_constants(self) -> ChainConstants:
        """The flip probability over 2^40 and m, because the figures of listed documents count the random bits of all
        windows."""
        return {"flip_probability": self.rules.flip_probability, "m": self.queries}

    def over(self, windows: int) -> Self:
        return replace(self, windows=windows)

    def padded(self, positions: Sequence[int]) -> Sequence[int]:
        return [*positions, *[self.tenant.capacity] * (self.longest - len(positions))]

    def list_elements(self, salt: int, positions: Sequence[int]) -> Elements:
        return topk_elements(salt, self.padded(positions))

    def wrong_list(self, positions: Sequence[int], documents: int) -> str | None:
        if len(positions) != documents or len(positions) > self.longest:
            return (
                f"{len(positions)} positions and {documents} document openings, where K = {self.longest} is the"
                " maximum"
            )
        if len(set(positions)) != len(positions) or any(p >= self.tenant.capacity for p in positions):
            return "the listed positions are not different positions of the index"
        return None

    # -- privacy figures -------------------------------------------------------------------------------------

    @property
    def sample(self) -> bernoulli.ChanceListing | None:
        from rag_audit.mechanisms.accounting import bernoulli

        return None if self.keep is None else bernoulli.ChanceListing(self.keep, self.rules.flip_probability)

    def epsilon(self, accounts: int, noise: str | None) -> float:
        """See `Mechanism.epsilon`: the same for every number of accounts, with delta 0."""
        from rag_audit.mechanisms.accounting.documents import pooled_epsilon

        return math.inf if self.keep is None else pooled_epsilon(self.keep, self.rules.flip_probability)

    def realised(self, requested: Sequence[int], *, n: int, k: int, delta: str) -> float:
        # The theorem is valid for each transcript, for any number of queries.
        return self.epsilon(1, None)

    def exclusion_factor(self, queries: int, positions: int = 1) -> float | None:
        """See `Mechanism.exclusion_factor`. A document that chance lists at the query of one account ranks for every
        account, so the factor counts all m queries of the tenant, whatever the size of the coalition. The ledger has no
        more records."""
        from rag_audit.mechanisms.accounting.documents import pooled_factor

        if self.keep is None:
            return None
        return pooled_factor(self.keep, self.rules.flip_probability, queries=self.chance_queries(queries))

    def list_without_relevance(self, queries: int) -> float | None:
        """See `Mechanism.list_without_relevance`, for all m queries of the tenant: f."""
        return (
            None if self.sample is None else self.sample.list_without_relevance(self.chance_queries(queries))
        )
