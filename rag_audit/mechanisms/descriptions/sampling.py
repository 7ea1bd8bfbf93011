"""Sampling: its sentences, and its curves in closed form."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rag_audit._internal.words import PLAIN, Say, marked
from rag_audit.mechanisms import defaults
from rag_audit.mechanisms.accounting.values import text
from rag_audit.mechanisms.base import Mechanism, Scores, Tenant
from rag_audit.mechanisms.descriptions.base import (
    Ceiling,
    Description,
    Facts,
    Option,
    Parameters,
    Sizes,
    missed_words,
    share_text,
)
from rag_audit.mechanisms.sampling import Sampling
from rag_audit.relation.bernoulli import PROBABILITY_RANGE

FOUND = {"0.9": 79, "0.7": 62}
"""Number of 100 questions that find their passage (`WITHOUT_NOISE`), by the sampled share of positions."""


class SamplingDescription(Description):
    mechanism = Sampling
    forms = ("sampling", "sampling:KEEP")
    words = marked("exact answers from a sample of the index")
    any_coalition = True
    texts_reveal = True
    does_not_prove = marked(
        "the privacy of returned documents: exclusion_factor only bounds the factor for the likelihood of a document's"
        " absence, for accounts that never received it; it is not an epsilon, and windows without a document table"
        " multiply it; the presence of a document that an account asks for has no protection"
    )
    unbounded = marked(
        "no epsilon bounds the information that lists contain about it. The bound for every test of its"
        " presence is below."
    )
    coalition = "exclusion_factor of mechanism sampling is the same for every number of accounts."

    @classmethod
    def chosen(cls, option: Option) -> Mechanism:
        if option.rest:
            raise option.refused()
        return Sampling(keep=option.kept(defaults.KEEP))

    @classmethod
    def compared(cls, sizes: Sizes) -> list[str]:
        from rag_audit.mechanisms.accounting import bernoulli, curves

        lines = []
        for keep, result in FOUND.items():
            odds = text(
                bernoulli.Sampling(curves.probability_over_range(keep, "keep")).exclusion_factor(sizes.n)
            )
            lines.append(
                f"  --mechanism sampling:{keep}  {result:>2}  exclusion_factor {odds} for any accounts and queries,"
                f" no eps"
            )
        return lines

    @classmethod
    def certified(
        cls, mechanism: Mechanism, accounts: int, queries: int, delta: str | None
    ) -> tuple[float, float | None]:
        from rag_audit.mechanisms.accounting import curves

        return math.inf, None if mechanism.sample is None else curves.auc(mechanism.sample)

    @classmethod
    def ceiling(
        cls, mechanism: Mechanism, accounts: int, queries: int, rates: Sequence[float]
    ) -> Ceiling | None:
        # If a position is not sampled, no answer depends on it, for any number of accounts and queries.
        from rag_audit.mechanisms.accounting import curves

        sample = mechanism.sample
        if sample is None:
            return None
        points = [(0.0, curves.roc(sample, 0.0)), (float(sample.dropped), 1.0), (1.0, 1.0)]
        return Ceiling(accounts, points, curves.roc(sample, 0.01))

    @classmethod
    def described(cls, values: Parameters) -> str:
        return f"sampling, {(values.keep or 0) / PROBABILITY_RANGE:.9g} sampled"

    @classmethod
    def option(cls, values: Parameters) -> str | None:
        return f"sampling:{(values.keep or 0) / PROBABILITY_RANGE:.12g}"

    @classmethod
    def explained(cls, mechanism: Mechanism) -> list[str]:
        return [*super().explained(mechanism), *cls._exact_words(mechanism)]

    @classmethod
    def for_users(cls, mechanism: Mechanism, accounts: int, queries: int) -> list[str]:
        factor = text(mechanism.exclusion_factor(accounts * queries) or math.inf)
        table = mechanism.table
        if table is None:
            scope = (
                "This figure is for a document of one position in one window. The limit for a document of s positions"
                " is its s-th power, and windows multiply it."
            )
        else:
            span = (
                "in all windows of a chain together"
                if table.persistent
                else "in one window; windows multiply it"
            )
            scope = (
                f"This figure is for a document of at most {table.positions_per_document} positions, {span}."
            )
        return [
            "A person who never received a given document may conclude its absence at most"
            f" {factor} times more strongly than before. {scope}",
            "A document in the index is not hidden from a person who asks for it: if it is among the best positions and"
            f" the sample contains it ({100 * (mechanism.keep or 0) / PROBABILITY_RANGE:.3g} in 100), it is returned.",
            "A copy under another name is another document.",
        ]

    @classmethod
    def no_epsilon(cls, facts: Facts, say: Say = PLAIN) -> str:
        table, share = facts.documents, say.number(share_text(float(facts.keep or 0)))
        factor = say.number(facts.exclusion_factor or "")
        if table is None:
            return say.text(
                "There is no epsilon for any number of accounts: answers are exact, from a sample of %(share)s of the"
                " positions. For accounts that never received a given document of one position, its absence becomes"
                " more likely by a factor of at most %(factor)s (for s positions, by its s-th power); an account knows"
                " that a received document is present.",
                share=share,
                factor=factor,
            )
        return say.text(
            "There is no epsilon for any number of accounts: answers are exact, from a sample of %(share)s of the"
            " documents. For accounts that never received a given document of at most %(positions)s positions, its"
            " absence becomes more likely by a factor of at most %(factor)s; an account knows that a received document"
            " is present.",
            share=share,
            positions=table.positions_per_document,
            factor=factor,
        )

    @classmethod
    def cost(cls, facts: Facts) -> str:
        return f"{missed_words(facts.keep)} in this window; the others are ranked exactly"

    @classmethod
    def from_facts(cls, facts: Facts) -> Mechanism:
        return Sampling(
            Tenant(facts.capacity, facts.longest, facts.accounts_max),
            Scores(facts.score_lo, facts.score_hi, facts.lattice),
            facts.keep_over_range,
        )


DESCRIPTION = SamplingDescription
