"""Randomized response: its sentences, and its curves in closed form."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING

from rag_audit._internal.errors import PolicyError
from rag_audit._internal.words import counted
from rag_audit.mechanisms import defaults
from rag_audit.mechanisms.accounting.values import text
from rag_audit.mechanisms.base import Mechanism, Scores, Tenant
from rag_audit.mechanisms.descriptions.base import (
    LITTLE,
    MODERATE,
    Ceiling,
    Description,
    Facts,
    Loss,
    Option,
    Parameters,
    Setting,
    Sizes,
    missed_words,
    percent,
    promises_little,
    share_text,
)
from rag_audit.mechanisms.randomized_response import ListRules, RandomizedResponse
from rag_audit.relation.bernoulli import PROBABILITY_RANGE

if TYPE_CHECKING:
    from rag_audit.mechanisms.accounting import bernoulli

DEFAULT_LISTED_MAX = 32
"""M where a draft does not say it (`default_randomized_response`)."""
UNRELATED = 5
"""Average number of positions that chance puts into a list, if a draft does not state it
(`default_randomized_response`)."""
THRESHOLDS = {"wordllama-lexical-768": 900}
"""Minimum raw scores of relevant passages, by embedder: chosen on public collections, never on a provider's. On SQuAD,
79 % of relevant passages reach 900, as do four other passages of 2,067 (median)."""


def default_randomized_response(capacity: int) -> tuple[Fraction, int]:
    """The default flip probability and maximum list of a tenant with randomized response. Lists have at most 32
    positions, and at most the share of an index that `verifier trust new` accepts. Chance fills five of them, and at
    most half.

    :param capacity: the tenant's positions
    :returns: the probability that a position is listed at a query whatever its content, and M
    """
    maximum = max(1, min(DEFAULT_LISTED_MAX, math.floor(Fraction(defaults.K_SHARE) * capacity)))
    return min(Fraction(UNRELATED), Fraction(maximum, 2)) / capacity, maximum


KEEP = "0.7"
"""The default sampled share."""
KNOWN_DIMENSION = 768
"""Components of the default embedder's vectors, the only embedder with a known threshold."""
FOUND = 56
"""Number of 100 questions that find their passage (`WITHOUT_NOISE`) with a sampled share of 0.7: among the best five
documents of an account's disclosed set after 200 questions."""
_OPTION = "rag-audit provider policy new --mechanism randomized-response:KEEP:FLIP_PROBABILITY:THRESHOLD"


def _bound(mechanism: Mechanism) -> bernoulli.RandomizedResponse | None:
    """The closed forms of randomized response; None for another mechanism."""
    from rag_audit.mechanisms.accounting import bernoulli

    if mechanism.keep is None or mechanism.flip_probability is None:
        return None
    return bernoulli.RandomizedResponse(mechanism.keep, mechanism.flip_probability)


class RandomizedResponseDescription(Description):
    mechanism = RandomizedResponse
    forms = ("randomized-response", "randomized-response:KEEP[:FLIP_PROBABILITY:THRESHOLD[:MAXIMUM]]")
    words = "randomized response"
    texts_reveal = True
    does_not_prove = (
        "the privacy of returned documents: an account knows that a received document is present. eps only covers the"
        " lists, of up to k_max accounts. An account receives a document only once, and cannot find it later without"
        " its own copy"
    )
    changes = Description.changes | {
        "trust.max_epsilon": f"policy.tenants.keep, flip_probability: {_OPTION}, --k-max",
        "trust.max_K_share": f"policy.tenants.listed_max over the capacity: {_OPTION}:MAXIMUM, --tenant",
        "trust.max_score_hi": f"policy.tenants.threshold: {_OPTION}",
        "trust.min_keep": f"policy.tenants.keep: {_OPTION}",
    }
    coalition = "eps_audit does not cover more accounts than this."

    @classmethod
    def chosen(cls, option: Option) -> Mechanism:
        """See `Description.chosen`: an option without flip probability and threshold gets the defaults of the
        default embedder."""
        from rag_audit.mechanisms.accounting.curves import probability_over_range

        form = re.fullmatch(r"(?::([0-9.e-]{1,30}):([0-9]{1,9})(?::([0-9]{1,9}))?)?", option.rest)
        if form is None:
            raise option.refused()
        if form[2] is None and option.dimension != KNOWN_DIMENSION:
            raise PolicyError(
                "this embedder has no default threshold", field="--mechanism", actual=option.whole,
                expected=f"randomized-response:{option.keep or KEEP}:FLIP_PROBABILITY:THRESHOLD, measured",
            )  # fmt: skip
        flip_probability, longest = default_randomized_response(option.capacity)
        rules = ListRules(
            probability_over_range(form[1], "--mechanism: FLIP_PROBABILITY")
            if form[1]
            else math.floor(flip_probability * PROBABILITY_RANGE + Fraction(1, 2)),
            int(form[3] or longest),
            int(form[2] or THRESHOLDS["wordllama-lexical-768"]),
        )
        return RandomizedResponse(keep=option.kept(KEEP), rules=rules)

    @classmethod
    def largest(cls, mechanism: Mechanism, accounts: int, queries: int) -> str | None:
        bound = _bound(mechanism)
        if bound is None:
            return None
        fitting = 0
        while fitting < accounts and bound.epsilon(fitting + 1) <= MODERATE:
            fitting += 1
        if not fitting:
            return f"epsilon is above {MODERATE} for one account, whatever the number of questions"
        return (
            f"epsilon is at most {MODERATE} for a coalition of up to {counted(fitting, 'account')} of {accounts:,},"
            " whatever the number of questions"
        )

    @classmethod
    def compared(cls, sizes: Sizes) -> list[str]:
        from rag_audit.mechanisms.accounting import bernoulli, curves

        flip_probability = math.floor(default_randomized_response(sizes.capacity)[0] * PROBABILITY_RANGE)
        mechanism = bernoulli.RandomizedResponse(
            curves.probability_over_range(KEEP, "keep"), flip_probability
        )
        eps, odds = (
            text(mechanism.epsilon(sizes.k_max)),
            text(mechanism.exclusion_factor(sizes.n * sizes.k_max)),
        )
        return [
            f"  --mechanism randomized-response:{KEEP}   {FOUND:>2}  eps {eps} over all lists, for any number of"
            f" queries;"
            f" exclusion_factor {odds}; accounts store received passages"
        ]

    @classmethod
    def warnings(cls, mechanism: Mechanism, sizes: Sizes) -> list[str]:
        eps = mechanism.epsilon(sizes.k_max, None)
        above = (
            f"this epsilon is above {defaults.EPS_RANDOMIZED_RESPONSE}, the default limit of `verifier trust new`; a"
            f" larger flip"
            " probability lowers it (--mechanism randomized-response:KEEP:FLIP_PROBABILITY:THRESHOLD)"
        )
        return [
            *([promises_little(eps, sizes)] if eps >= LITTLE else []),
            *([above] if eps > float(defaults.EPS_RANDOMIZED_RESPONSE) else []),
        ]

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
        from rag_audit.mechanisms.accounting import curves

        bound = _bound(mechanism)
        return mechanism.epsilon(accounts, None), None if bound is None else curves.auc_for(bound, accounts)

    @classmethod
    def ceiling(
        cls, mechanism: Mechanism, accounts: int, queries: int, rates: Sequence[float]
    ) -> Ceiling | None:
        from rag_audit.mechanisms.accounting import curves

        bound = _bound(mechanism)
        if bound is None:
            return None
        return Ceiling(accounts, curves.tradeoff(bound, accounts), curves.tpr(bound, accounts, "0.01"))

    @classmethod
    def parameters(cls, mechanism: Mechanism) -> Mapping[str, int | list[int] | None]:
        return {
            "keep": mechanism.keep,
            "flip_probability": mechanism.flip_probability,
            "threshold": mechanism.threshold,
            "listed_max": mechanism.longest,
        }

    @classmethod
    def described(cls, values: Parameters) -> str:
        keep, flip_probability = (
            (values.keep or 0) / PROBABILITY_RANGE,
            (values.flip_probability or 0) / PROBABILITY_RANGE,
        )
        return (
            f"randomized response, {keep:.9g} sampled, flip probability {flip_probability:.9g}, threshold"
            f" {values.threshold}, at most {values.listed_max}"
        )

    @classmethod
    def option(cls, values: Parameters) -> str | None:
        keep, flip_probability = (
            (values.keep or 0) / PROBABILITY_RANGE,
            (values.flip_probability or 0) / PROBABILITY_RANGE,
        )
        return (
            f"randomized-response:{keep:.12g}:{flip_probability:.12g}:{values.threshold}:{values.listed_max}"
        )

    @classmethod
    def explained(cls, mechanism: Mechanism) -> list[str]:
        flip_probability = f"{(mechanism.flip_probability or 0) / PROBABILITY_RANGE:.4g}"
        return [
            *super().explained(mechanism),
            f"a position is a candidate if it scores at least {mechanism.threshold} and the account has not received it"
            f" yet; every other position is a candidate with probability {flip_probability}; a list has at most the"
            f" first"
            f" {mechanism.longest} candidates, for every value of top_k; each account stores the received passages and"
            " ranks them itself (`account search`)",
        ]

    @classmethod
    def for_users(cls, mechanism: Mechanism, accounts: int, queries: int) -> list[str]:
        factor = text(mechanism.exclusion_factor(accounts * queries) or math.inf)
        largest = min(accounts, defaults.K_MAX)
        return [
            f"Everything that the lists of {largest} accounts together show changes the odds that a given position"
            f" is in the index by a factor of at most e^{text(mechanism.epsilon(largest, None))}, for any number of"
            " questions.",
            "An account that asks for a document, and receives it, can read it: the figure is about the lists, not"
            " about the texts.",
            "A person who never received a given document of one position may conclude its absence at most"
            f" {factor} times more strongly than before; windows multiply this figure.",
            "An account receives a document only once, and stores it.",
        ]

    @classmethod
    def covered(cls, windows: Mapping[str, Sequence[tuple[Mechanism, int]]]) -> str | None:
        def listed(name: str) -> float:
            """How likely chance lists a given position at one of the queries of one account, at most."""
            return 1 - math.prod(
                (1 - (m.flip_probability or 0) / PROBABILITY_RANGE) ** n for m, n in windows[name]
            )

        name = max(windows, key=listed)
        queries = sum(n for _, n in windows[name])
        return (
            f"Random bits list a given position of {name} to one account with a probability of at most"
            f" {percent(listed(name))} over {queries:,} queries; full lists lower this probability."
        )

    @classmethod
    def place(
        cls, values: Setting, flip_probability: str, *, accounts: int, queries: int, delta: str
    ) -> float:
        from rag_audit.mechanisms.accounting.bernoulli import RandomizedResponse as Bound
        from rag_audit.mechanisms.accounting.curves import probability_over_range

        return Bound(
            probability_over_range(values.keep or "0", "keep"),
            probability_over_range(flip_probability, "flip_probability"),
        ).epsilon(accounts)

    @classmethod
    def details(cls, facts: Facts) -> str:
        flip_probability = share_text(float(facts.flip_probability or 0))
        return (
            super().details(facts) + f", each position listed by random bits with {flip_probability} a query"
        )

    @classmethod
    def cost(cls, facts: Facts) -> str:
        by_chance = facts.capacity * float(facts.flip_probability or 0)
        return (
            f"{missed_words(facts.keep)} in this window, each account receives a passage only once, and random bits"
            f" select about {by_chance:.2g} positions of each list"
        )

    @classmethod
    def from_facts(cls, facts: Facts) -> Mechanism:
        if facts.keep_over_range is None or facts.flip_over_range is None:
            return super().from_facts(facts)
        return RandomizedResponse(
            Tenant(facts.capacity, facts.longest, facts.accounts_max),
            Scores(facts.score_lo, facts.score_hi, facts.lattice),
            facts.keep_over_range,
            ListRules(facts.flip_over_range, facts.longest, facts.threshold or 0),  # not in curves
        )


DESCRIPTION = RandomizedResponseDescription
