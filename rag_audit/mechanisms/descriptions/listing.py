"""Listing: its sentences, and its curves in closed form."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING

from rag_audit.mechanisms.base import Mechanism, Scores, Tenant
from rag_audit.mechanisms.descriptions.base import (
    Ceiling,
    Description,
    Facts,
    Loss,
    Parameters,
    Setting,
    missed_words,
    percent,
)
from rag_audit.mechanisms.listing import Listing, ListingRules
from rag_audit.relation.coins import COIN_RANGE

if TYPE_CHECKING:
    from rag_audit.mechanisms.accounting import coins

_OPTION = "policy new --mechanism listing:KEEP:CHANCE:THRESHOLD"


def _bound(mechanism: Mechanism) -> coins.Listing | None:
    """The closed forms of randomised response; None for another mechanism."""
    from rag_audit.mechanisms.accounting import coins

    if mechanism.keep is None or mechanism.chance is None:
        return None
    return coins.Listing(mechanism.keep, mechanism.chance)


class ListingDescription(Description):
    mechanism = Listing
    words = "randomised response"
    texts_reveal = True
    does_not_prove = (
        "anything about documents that were handed out, which are known to be there: eps is about the lists"
        " alone, of up to k_max accounts; and an account that keeps nothing of what it is handed finds it no second"
        " time"
    )
    changes = Description.changes | {
        "trust.max_epsilon": f"policy.tenants.keep, chance: {_OPTION}, --k-max",
        "trust.max_K_share": f"policy.tenants.listed_max over the capacity: {_OPTION}:MOST, --tenant",
        "trust.max_score_hi": f"policy.tenants.threshold: {_OPTION}",
        "trust.min_keep": f"policy.tenants.keep: {_OPTION}",
    }
    coalition = "More accounts than this are outside eps_audit."

    @classmethod
    def epsilon_at(cls, mechanism: Mechanism, accounts: int, queries: int, delta: str) -> float:
        return mechanism.epsilon(accounts, None)

    @classmethod
    def loss(cls, mechanism: Mechanism, accounts: int, queries: int) -> Loss | None:
        return Loss(epsilon=Decimal(repr(mechanism.epsilon(accounts, None))))

    @classmethod
    def figures_depend_on(cls, mechanism: Mechanism, accounts: int, queries: int) -> int:
        return accounts

    @classmethod
    def certified(
        cls, mechanism: Mechanism, accounts: int, queries: int, delta: str | None
    ) -> tuple[float, float | None]:
        bound = _bound(mechanism)
        return mechanism.epsilon(accounts, None), None if bound is None else bound.auc_for(accounts)

    @classmethod
    def ceiling(
        cls, mechanism: Mechanism, accounts: int, queries: int, rates: Sequence[float]
    ) -> Ceiling | None:
        bound = _bound(mechanism)
        if bound is None:
            return None
        return Ceiling(accounts, bound.tradeoff(accounts), bound.tpr(accounts, "0.01"))

    @classmethod
    def parameters(cls, mechanism: Mechanism) -> Mapping[str, int | list[int] | None]:
        return {
            "keep": mechanism.keep,
            "chance": mechanism.chance,
            "threshold": mechanism.threshold,
            "listed_max": mechanism.longest,
        }

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

    @classmethod
    def explained(cls, mechanism: Mechanism) -> list[str]:
        chance = f"{(mechanism.chance or 0) / COIN_RANGE:.4g}"
        return [
            *super().explained(mechanism),
            f"positions that score at least {mechanism.threshold} and that the account does not hold yet are"
            f" candidates, and every other position is one with probability {chance}; a list holds the first"
            f" {mechanism.longest} candidates at most, whatever top_k is; each account keeps what it is handed, and"
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
    def from_facts(cls, facts: Facts) -> Mechanism:
        if facts.keep_coin is None or facts.chance_coin is None:
            return super().from_facts(facts)
        return Listing(
            Tenant(facts.capacity, facts.longest, facts.accounts_max),
            Scores(facts.score_lo, facts.score_hi, facts.lattice),
            facts.keep_coin,
            ListingRules(facts.chance_coin, facts.longest, facts.threshold or 0),  # on which no curve depends
        )
