"""Pooled listing: its sentences, and its curves in closed form."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING

from rag_audit._internal.errors import PolicyError
from rag_audit._internal.words import PLAIN, Say, marked
from rag_audit.mechanisms import defaults
from rag_audit.mechanisms.accounting.values import text
from rag_audit.mechanisms.base import Mechanism, Scores, TableShape, Tenant
from rag_audit.mechanisms.descriptions.base import (
    LITTLE,
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
    share_text,
)
from rag_audit.mechanisms.pooled_listing import PooledListing, PoolRules
from rag_audit.relation.bernoulli import PROBABILITY_RANGE

if TYPE_CHECKING:
    from rag_audit.mechanisms.accounting import bernoulli

UNREQUESTED = "0.1"
"""The default f: the maximum probability that chance lists a given document at any query of a window."""
FOUND = {"0.9": 79, "0.7": 64}
"""Number of 100 questions that find their passage (`WITHOUT_NOISE`), by the sampled share of documents; windows have
2,000 queries."""
MAX_UNREQUESTED = "0.5"
"""The maximum f of a policy: random bits list at most half of the documents that no question asks for."""
_OPTION = "rag-audit provider policy new --mechanism pooled-listing:KEEP:F:THRESHOLD"


def largest_queries(mechanism: Mechanism) -> int:
    """The largest m, queries of all accounts of the tenant, with an epsilon of at most `LITTLE` at the same f and
    sampled share."""
    from rag_audit.mechanisms.accounting import documents

    f = mechanism.list_without_relevance(1)
    if mechanism.keep is None or f is None or f >= 1:
        return 0
    return documents.largest_queries(mechanism.keep, repr(f), eps=LITTLE)


class PooledListingDescription(Description):
    mechanism = PooledListing
    forms = ("pooled-listing", "pooled-listing:KEEP[:F:THRESHOLD]")
    words = marked("one set of listed documents for all accounts")
    any_coalition = True
    observed = "all that {} see until the document is listed for the first time"
    meaning = "until a document is first listed, what {} see changes the odds of its presence by at most {}"
    settings = replace(
        Description.settings,
        note=marked("An account finds a document outside of the sample only if random bits list it."),
    )
    texts_reveal = True
    does_not_prove = marked(
        "the privacy of returned documents: eps covers everything that all accounts see until a document is listed for"
        " the first time; from then on, an account that asks for the document reads it. The accounts of the tenant are"
        " not private from one another"
    )
    changes = Description.changes | {
        "trust.max_epsilon": f"policy.tenants.keep, flip_probability: {_OPTION}, --accounts-max, --n",
        "trust.max_score_hi": "policy.tenants.scores: rag-audit provider policy new --embedder, --dimension",
        "trust.min_keep": f"policy.tenants.keep: {_OPTION}",
    }
    coalition = "eps_audit of mechanism pooled-listing is the same for every number of accounts."

    @classmethod
    def chosen(cls, option: Option) -> Mechanism:
        """See `Description.chosen`: an option without f and threshold gets 0.1 and the minimum raw score of a relevant
        passage that was measured for the embedder on public texts. The number of queries, which the policy states
        elsewhere, then determines the flip probability.

        :raises PolicyError: f is not strictly between 0 and 1, or above `MAX_UNREQUESTED`; or the threshold is missing
            or below 1
        """
        form = re.fullmatch(r"(?::([0-9.e-]{1,30}):([0-9]{1,9}))?", option.rest)
        if form is None:
            raise option.refused()
        if form[2] is None and option.relevance is None:
            raise PolicyError(
                "the score of a relevant passage is unknown for this embedder", field="--mechanism",
                expected=f"pooled-listing:{option.keep or defaults.KEEP}:F:THRESHOLD, or --relevance SCORE",
                actual=option.whole, hint="`rag-audit lab relevance` measures the score on public texts",
            )  # fmt: skip
        threshold = int(form[2] or option.relevance or 0)
        unrequested = form[1] or UNREQUESTED
        if not _is_probability(unrequested):
            raise PolicyError("f is not strictly between 0 and 1", field="--mechanism: F",
                              expected="a decimal number above 0 and below 1", actual=unrequested)  # fmt: skip
        if float(unrequested) > float(MAX_UNREQUESTED):
            raise PolicyError("random bits would list most of the documents that no question asks for",
                              field="--mechanism: F", expected=f"at most {MAX_UNREQUESTED}",
                              actual=unrequested)  # fmt: skip
        if threshold < 1:
            raise PolicyError("the threshold is out of range", field="--mechanism: THRESHOLD",
                              expected="at least 1", actual=threshold)  # fmt: skip
        return PooledListing(keep=option.kept(defaults.KEEP), rules=PoolRules(0, threshold, unrequested))

    @classmethod
    def compared(cls, sizes: Sizes) -> list[str]:
        from rag_audit.mechanisms.accounting import curves, documents

        queries, lines = sizes.every, []
        q = documents.flip_probability_for(UNREQUESTED, queries=queries)
        for share, found in FOUND.items():
            keep = curves.probability_over_range(share, "keep")
            eps, odds = documents.pooled_epsilon(keep, q), documents.pooled_factor(keep, q, queries=queries)
            lines.append(
                f"  --mechanism pooled-listing:{share}  {found}  eps {text(eps)} for any number of accounts with"
                f" {queries:,} queries in total; exclusion_factor {text(odds)}"
            )
        return lines

    @classmethod
    def warnings(cls, mechanism: Mechanism, sizes: Sizes) -> list[str]:
        eps = mechanism.epsilon(1, None)
        if eps <= LITTLE:
            return []
        return [
            f"eps {text(eps)} for any number of accounts promises little; at the same f, at most"
            f" {largest_queries(mechanism):,} queries of all accounts (--accounts-max times --n) have an eps of at"
            f" most {LITTLE:g}"
        ]

    @classmethod
    def largest(cls, mechanism: Mechanism, accounts: int, queries: int) -> str | None:
        return (
            f"the largest m with an epsilon of at most {LITTLE:g} at this f and sampled share is"
            f" {largest_queries(mechanism):,} (--accounts-max times --n)"
        )

    @classmethod
    def epsilon_at(cls, mechanism: Mechanism, accounts: int, queries: int, delta: str) -> float:
        return mechanism.epsilon(accounts, None)

    @classmethod
    def loss(cls, mechanism: Mechanism, accounts: int, queries: int) -> Loss | None:
        """See `Description.loss`. If each window draws its bits anew and begins without a listed document, the epsilons
        add. A window that carries bits and listed documents from another one adds nothing to its epsilon
        (`Loss.continues`).
        """
        eps = Decimal(repr(mechanism.epsilon(accounts, None)))
        return Loss(epsilon=eps, continues=mechanism.carries_listed_rows)

    @classmethod
    def certified(
        cls, mechanism: Mechanism, accounts: int, queries: int, delta: str | None
    ) -> tuple[float, float | None]:
        from rag_audit.mechanisms.accounting import curves

        bound = _bound(mechanism)
        return mechanism.epsilon(accounts, None), None if bound is None else curves.auc_for(bound, 1)

    @classmethod
    def ceiling(
        cls, mechanism: Mechanism, accounts: int, queries: int, rates: Sequence[float]
    ) -> Ceiling | None:
        from rag_audit.mechanisms.accounting import curves

        bound = _bound(mechanism)
        if bound is None:
            return None
        return Ceiling(accounts, curves.tradeoff(bound, 1), curves.tpr(bound, 1, "0.01"))

    @classmethod
    def parameters(cls, mechanism: Mechanism) -> Mapping[str, int | list[int] | None]:
        return {
            "keep": mechanism.keep,
            "flip_probability": mechanism.flip_probability,
            "threshold": mechanism.threshold,
        }

    @classmethod
    def described(cls, values: Parameters) -> str:
        keep, flip_probability = (
            (values.keep or 0) / PROBABILITY_RANGE,
            (values.flip_probability or 0) / PROBABILITY_RANGE,
        )
        return (
            f"pooled listing, {keep:.9g} sampled, flip probability {flip_probability:.9g}, threshold"
            f" {values.threshold}"
        )

    @classmethod
    def option(cls, values: Parameters) -> str | None:
        return None

    @classmethod
    def explained(cls, mechanism: Mechanism) -> list[str]:
        f = mechanism.list_without_relevance(1) or 0.0
        m = mechanism.tenant.accounts_max * mechanism.tenant.queries
        kept = (mechanism.keep or 0) / PROBABILITY_RANGE
        span = "chain of windows" if mechanism.persists else "window"
        return [
            cls.words,
            f"the sample contains each document with probability {kept:.4g} for the whole {span}, and other documents"
            " are listed only by chance",
            f"a document is listed from the first query on for which one of its positions scores at least"
            f" {mechanism.threshold}, if the sample contains it; chance lists each other document at a query with"
            f" probability {(mechanism.flip_probability or 0) / PROBABILITY_RANGE:.4g}, so over the {m:,} queries of"
            f" all accounts (m) it lists a given document with a probability of at most f = {f:.4g}",
            "an answer has the best top_k positions of all listed documents, with their texts, and leaves other places"
            " empty; all accounts of the tenant share the listed documents, so an account can find out what others"
            " asked about: users with individual rights must not share a tenant",
            *cls._exact_words(mechanism),
        ]

    @classmethod
    def for_users(cls, mechanism: Mechanism, accounts: int, queries: int) -> list[str]:
        factor = text(mechanism.exclusion_factor(accounts * queries) or math.inf)
        chain = mechanism.persists
        span, first = (
            ("in any window of this chain", "in this chain of windows")
            if chain
            else ("in a window", "in a window")
        )
        further = (
            "if that person asks in one window; the random bits of each further window raise this figure."
            if chain
            else "in each window; windows multiply this figure."
        )
        return [
            f"Until a document is listed for the first time {first}, everything that all accounts together see"
            " distinguishes it from any other document by a factor of at most"
            f" {_factor(mechanism.epsilon(accounts, None))}. From then on, an account that asks can read it.",
            f"A person who never received a given document {span} may conclude its absence at most {factor} times more"
            f" strongly than before, {further}",
            "Accounts of this tenant are not private from one another.",
        ]

    @classmethod
    def covered(cls, windows: Mapping[str, Sequence[tuple[Mechanism, int]]]) -> str | None:
        def listed(name: str) -> float:
            """How likely chance lists a given document at a query of any account, at most."""
            return 1 - math.prod(1 - (m.list_without_relevance(n) or 0.0) for m, n in windows[name])

        name = max(windows, key=listed)
        return (
            f"Random bits list a given document of {name} with a probability of at most {percent(listed(name))} over"
            " the queries of all accounts."
        )

    @classmethod
    def place(cls, values: Setting, *, accounts: int, queries: int, delta: str, positions: int = 1) -> float:
        from rag_audit.mechanisms.accounting import documents
        from rag_audit.mechanisms.accounting.curves import probability_over_range

        # Studies measure the default f.
        q = documents.flip_probability_for(UNREQUESTED, queries=accounts * queries)
        return documents.pooled_epsilon(probability_over_range(values.keep or "0", "keep"), q)

    @classmethod
    def details(cls, facts: Facts, say: Say = PLAIN) -> str:
        chance = say.number(share_text(float(facts.flip_probability or 0)))
        listed = say.text(", each document listed by random bits with %(share)s a query", share=chance)
        return say.joined([super().details(facts, say), listed], "")

    @classmethod
    def returned(cls, facts: Facts) -> str:
        share = f"{100 * float(facts.keep or 0):.3g}"
        return (
            f"a document with a score of at least {facts.threshold or 0} for a question of any account is listed if its"
            f" random bit permits ({share} in 100), and chance lists others; a listed document among the best matches"
            " is returned with its text"
        )

    @classmethod
    def cost(cls, facts: Facts) -> str:
        return (
            f"{missed_words(facts.keep)} in this window unless random bits list them, and a passage below the"
            " threshold is found only after its document was listed"
        )

    @classmethod
    def from_facts(cls, facts: Facts) -> Mechanism:
        if facts.keep_over_range is None or facts.flip_over_range is None:
            return super().from_facts(facts)
        return PooledListing(
            Tenant(facts.capacity, facts.longest, facts.accounts_max),
            Scores(facts.score_lo, facts.score_hi, facts.lattice),
            facts.keep_over_range,
            PoolRules(facts.flip_over_range, facts.threshold or 0),
            TableShape(1, 1, None),  # not in curves
        )


def _bound(mechanism: Mechanism) -> bernoulli.ChanceListing | None:
    """The closed forms of the random bits; None for another mechanism."""
    from rag_audit.mechanisms.accounting import bernoulli

    if mechanism.keep is None or mechanism.flip_probability is None:
        return None
    return bernoulli.ChanceListing(mechanism.keep, mechanism.flip_probability)


def _factor(eps: float) -> str:
    """e^eps as a whole number for people, rounded up; as a power above 10^12.

    >>> _factor(9.7463), _factor(400.0)
    ('17,091', 'e^400')
    """
    return f"{math.ceil(math.exp(eps)):,}" if eps < math.log(1e12) else f"e^{text(eps)}"


def _is_probability(written: str) -> bool:
    try:
        return 0 < float(written) < 1
    except ValueError:
        return False


DESCRIPTION = PooledListingDescription
