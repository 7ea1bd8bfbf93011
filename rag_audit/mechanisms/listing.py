"""Listing: randomised response over a sample, where chance lists each position whatever it holds.

Positions that score at least the threshold, that the window keeps and that the account does not hold yet are listed,
and every other position with a small probability (docs/accounting.md, "Listing"). The ledger commits to what each
account holds after a record, so that a document is listed to it once.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Self

from rag_audit.mechanisms.base import (
    Ceiling,
    Facts,
    Loss,
    Mechanism,
    NoiseFields,
    Parameters,
    Scores,
    Setting,
    Tenant,
    TenantFields,
    missed_words,
    need,
    percent,
)
from rag_audit.relation.coins import COIN_RANGE, check_coin
from rag_audit.relation.native import listed_commitment
from rag_audit.relation.scores import LARGEST_SCORE

if TYPE_CHECKING:
    from rag_audit.mechanisms.accounting import coins

MAX_LISTED = 1024
"""The maximum K, and the maximum M of a listing tenant. A receipt opens every listed position, and so many fit its
limit at any capacity."""


@dataclass(frozen=True)
class ListingRules:
    """What makes a list (docs/accounting.md, "Listing").

    :param chance: Q, over 2^40, the probability that a position is listed at a query whatever it holds
    :param most: M, the maximum number of positions of a list
    :param threshold: the raw score from which a position is relevant
    """

    chance: int
    most: int
    threshold: int


_OPTION = "policy new --mechanism listing:KEEP:CHANCE:THRESHOLD"


@dataclass(frozen=True)
class Listing(Mechanism):
    """Randomised response.

    >>> from rag_audit.mechanisms.base import Tenant
    >>> tenant = Tenant(capacity=64, top_k=5)
    >>> lists = Listing(tenant, Scores(353, 354, 1), keep=1 << 39, rules=ListingRules(1 << 34, 6, 354))
    >>> lists.longest, lists.epsilon(accounts=1, noise=None)
    (6, 4.1744)

    :param rules: what makes a list
    """

    rules: ListingRules = ListingRules(1, 1, 1)

    name = "listing"
    words = "randomised response"
    form = "listing"
    limit = "max_epsilon"
    grows_by_account = True
    ranked = False
    remembers = True
    texts_reveal = True
    own_fields = ("chance", "listed_max", "threshold")
    does_not_prove = (
        "anything about documents that were handed out, which are known to be there: eps is about the lists"
        " alone, of up to k_max accounts; and an account that keeps nothing of what it is handed finds it no second"
        " time"
    )
    changes = Mechanism.changes | {
        "trust.max_epsilon": f"policy.tenants.keep, chance: {_OPTION}, --k-max",
        "trust.max_K_share": f"policy.tenants.listed_max over the capacity: {_OPTION}:MOST, --tenant",
        "trust.max_score_hi": f"policy.tenants.threshold: {_OPTION}",
        "trust.min_keep": f"policy.tenants.keep: {_OPTION}",
    }
    coalition = "More accounts than this are outside eps_audit."

    # -- from a policy ---------------------------------------------------------------------------------------

    @classmethod
    def is_named_by(cls, part: TenantFields) -> bool:
        return part.mechanism == cls.form

    @classmethod
    def read(cls, part: TenantFields, noise: NoiseFields | None, tenant: Tenant, keep: int | None) -> Self:
        need(not part.noise, part, "noise", "false, since listing draws coins instead", part.noise)
        need(
            part.scores is None, part, "scores", "null, since the threshold is the score window", part.scores
        )
        need(
            keep is not None,
            part,
            "keep",
            "a share of kept positions over 2^40, which listing rests on; 0.7 is usual",
            part.keep,
        )
        for name, value in zip(cls.own_fields, (part.chance, part.listed_max, part.threshold), strict=True):
            need(value is not None, part, name, "a value, which listing needs", value)
        chance = check_coin(part.chance, f"policy.tenants.{part.tenant}.chance")
        most, threshold = part.listed_max, part.threshold
        assert most is not None and threshold is not None
        need(most <= part.capacity, part, "listed_max", f"at most the capacity, {part.capacity}", most)
        return cls.of(ListingRules(chance, most, threshold), tenant, keep)

    @classmethod
    def of(cls, rules: ListingRules, tenant: Tenant, keep: int | None) -> Self:
        """The mechanism with these rules, whose score window is the threshold."""
        return cls(tenant, Scores(lo=rules.threshold - 1, hi=rules.threshold, lattice=1), keep, rules)

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

    def list_commitment(self, salt: int, positions: Sequence[int]) -> int:
        return listed_commitment(salt, positions, self.tenant.capacity)

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

    def epsilon_at(self, accounts: int, queries: int, delta: str) -> float:
        return self.epsilon(accounts, None)

    def realised(self, asked: Sequence[int], *, n: int, k: int, delta: str) -> float:
        # The theorem holds on each transcript, for the accounts that asked.
        return self.epsilon(min(len(asked), k), None)

    def loss(self, accounts: int, queries: int) -> Loss | None:
        return Loss(epsilon=Decimal(repr(self.epsilon(accounts, None))))

    def chance_alone(self, queries: int) -> float | None:
        return None if self.sample is None else self.sample.chance_alone(queries)

    def figures_depend_on(self, accounts: int, queries: int) -> int:
        return accounts

    def certified(self, accounts: int, queries: int, delta: str | None) -> tuple[float, float | None]:
        return self.epsilon(accounts, None), None if self.sample is None else self.sample.auc_for(accounts)

    def ceiling(self, accounts: int, queries: int, rates: Sequence[float]) -> Ceiling | None:
        sample = self.sample
        return (
            None
            if sample is None
            else Ceiling(accounts, sample.tradeoff(accounts), sample.tpr(accounts, "0.01"))
        )

    # -- a run of attacks ------------------------------------------------------------------------------------

    def parameters(self) -> Mapping[str, int | list[int] | None]:
        r = self.rules
        return {"keep": self.keep, "chance": r.chance, "threshold": r.threshold, "listed_max": r.most}

    @classmethod
    def described(cls, values: Parameters) -> str:
        keep, chance = (values.keep or 0) / COIN_RANGE, (values.chance or 0) / COIN_RANGE
        return (
            f"listing, {keep:.9g} kept, chance {chance:.9g}, threshold {values.threshold}, at most"
            f" {values.listed_max}"
        )

    @classmethod
    def option(cls, values: Parameters) -> str | None:
        keep, chance = (values.keep or 0) / COIN_RANGE, (values.chance or 0) / COIN_RANGE
        return f"listing:{keep:.12g}:{chance:.12g}:{values.threshold}:{values.listed_max}"

    # -- sentences -------------------------------------------------------------------------------------------

    def explained(self) -> list[str]:
        r = self.rules
        return [
            *super().explained(),
            f"positions that score at least {r.threshold} and that the account does not hold yet are"
            f" candidates, and every other position is one with probability {r.chance / COIN_RANGE:.4g}; a list holds"
            f" the first {r.most} candidates at most, whatever top_k is; each account keeps what it is handed, and"
            " ranks it by itself (`account search`)",
        ]

    @classmethod
    def covered(cls, windows: Mapping[str, Sequence[tuple[Mechanism, int]]]) -> str | None:
        def listed(name: str) -> float:
            """How likely chance lists a given position at one of the queries of one account, at most."""
            return 1 - math.prod((1 - (m.chance or 0) / COIN_RANGE) ** n for m, n in windows[name])

        name = max(windows, key=listed)
        queries = sum(n for _, n in windows[name])
        return (
            f"Chance alone lists a given position of {name} to one account with probability"
            f" {percent(listed(name))} over {queries:,} queries, or less where lists are full."
        )

    @classmethod
    def place(cls, values: Setting, chance: str, *, accounts: int, queries: int, delta: str) -> float:
        from rag_audit.mechanisms.accounting.coins import Listing as Bound
        from rag_audit.mechanisms.accounting.coins import coin_of

        return Bound(coin_of(values.keep or "0", "keep"), coin_of(chance, "chance")).epsilon(accounts)

    @classmethod
    def cost(cls, facts: Facts) -> str:
        by_chance = facts.capacity * float(facts.chance or 0)
        return (
            f"{missed_words(facts.keep)} in this window, each account is handed a passage once, and about"
            f" {by_chance:.2g} of each list are there by chance"
        )

    @classmethod
    def from_facts(cls, facts: Facts) -> Self:
        if facts.keep_coin is None or facts.chance_coin is None:
            return super().from_facts(facts)
        return cls(
            Tenant(facts.capacity, facts.longest, facts.accounts_max),
            Scores(facts.score_lo, facts.score_hi, facts.lattice),
            facts.keep_coin,
            ListingRules(facts.chance_coin, facts.longest, facts.threshold or 0),  # on which no curve depends
        )
