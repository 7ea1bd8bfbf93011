"""Noise: its sentences, and its curves by the exact accountant."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import ClassVar

from rag_audit._internal.errors import PolicyError
from rag_audit._internal.words import PLAIN, Say, marked
from rag_audit.mechanisms.accounting.values import text
from rag_audit.mechanisms.base import Mechanism, Scores, TableShape, Tenant
from rag_audit.mechanisms.descriptions.base import (
    LITTLE,
    WITHOUT_NOISE,
    Ceiling,
    Description,
    Facts,
    Loss,
    Option,
    Parameters,
    Setting,
    SettingWords,
    Sizes,
    listed_at_random,
    missed_words,
    percent,
    promises_little,
)
from rag_audit.mechanisms.noise import Noise, distribution
from rag_audit.relation.bernoulli import PROBABILITY_RANGE

NOISED = ((0.0, 86), (0.0625, 83), (0.0765, 79), (0.153, 60), (0.25, 33), (0.5, 7), (1.0, 1), (4.0, 0))
"""How many of 100 questions find their passage (`WITHOUT_NOISE`), by the noise's sigma/Delta."""


def _found(sizes: Sizes) -> int:
    """How many of 100 questions find their passage, by the measured noise that is next below this one."""
    return [result for minimum, result in NOISED if sizes.noise.sigma_over_delta >= minimum][-1]


def _kept(mechanism: Mechanism) -> float:
    """The probability that a window samples a position; texts of other positions are not returned."""
    return 1.0 if mechanism.keep is None else mechanism.keep / PROBABILITY_RANGE


def _losses(mechanism: Mechanism, queries: int) -> int:
    """The losses that compose for a number of queries: one for each query and position of a document."""
    return queries * mechanism.positions_per_document


def _returned(mechanism: Mechanism, size: int | None = None) -> float:
    """The probability that unlimited noise returns a given document in one answer.

    :param size: the positions of the document; the maximum of the mechanism's document table by default
    """
    tenant, own = mechanism.tenant, mechanism.positions_per_document
    return listed_at_random(tenant.top_k, tenant.capacity, own if size is None else size)


class NoiseDescription(Description):
    mechanism = Noise
    forms: ClassVar[tuple[str, ...]] = ("noise", "noise:KEEP")
    words = marked("noise on every score")
    computed = marked(
        "Computed from the exact distribution of the noise's privacy loss, composed over all queries and"
        " rounded up; it is not a Gaussian approximation."
    )
    settings = SettingWords(
        marked("σ/Δ {}"),
        marked("sigma/Delta {}"),
        marked("σ/Δ = {}"),
        marked(
            "The unit of noise is its standard deviation divided by the maximum change of a score by one document"
            " (σ/Δ)."
        ),
    )
    changes: ClassVar[dict[str, str]] = {}
    coalition = "eps_audit does not cover more accounts than this."

    @classmethod
    def chosen(cls, option: Option) -> Mechanism:
        if option.rest:
            raise option.refused()
        return Noise(keep=option.kept())

    @classmethod
    def compared(cls, sizes: Sizes) -> list[str]:
        eps = text(sizes.eps)
        return [f"  --mechanism noise         {_found(sizes):>2}  eps_audit {eps} over all lists"]

    @classmethod
    def warnings(cls, mechanism: Mechanism, sizes: Sizes) -> list[str]:
        little = "with this noise, retrieval on public collections loses more than half of its results"
        return [
            *([little] if 2 * _found(sizes) < WITHOUT_NOISE else []),
            *([promises_little(sizes.eps, sizes)] if sizes.eps >= LITTLE else []),
        ]

    @classmethod
    def epsilon_at(cls, mechanism: Mechanism, accounts: int, queries: int, delta: str) -> float:
        from rag_audit.mechanisms import accounting

        return accounting.eps_at(distribution(mechanism), _losses(mechanism, accounts * queries), delta)

    @classmethod
    def loss(cls, mechanism: Mechanism, accounts: int, queries: int) -> Loss | None:
        return Loss(noise=((distribution(mechanism), _losses(mechanism, accounts * queries)),))

    @classmethod
    def figures_depend_on(cls, mechanism: Mechanism, accounts: int, queries: int) -> int:
        return _losses(mechanism, accounts * queries)

    @classmethod
    def certified(
        cls, mechanism: Mechanism, accounts: int, queries: int, delta: str | None
    ) -> tuple[float, float | None]:
        from rag_audit.mechanisms import accounting
        from rag_audit.mechanisms.accounting.tradeoff import auc_bound

        try:
            single = distribution(mechanism)
        except PolicyError:  # its support is below one document's shift: no bound
            return math.inf, None
        composed = _losses(mechanism, accounts * queries)
        epsilon = math.inf if delta is None else accounting.eps_at(single, composed, delta)
        return epsilon, auc_bound(single, composed)

    @classmethod
    def ceiling(
        cls, mechanism: Mechanism, accounts: int, queries: int, rates: Sequence[float]
    ) -> Ceiling | None:
        from rag_audit.mechanisms import accounting

        bound = accounting.roc_bound(distribution(mechanism), _losses(mechanism, accounts * queries), rates)
        points = [*zip(rates, bound, strict=True), (1.0, 1.0)]
        return Ceiling(accounts, points, bound[list(rates).index(0.01)])

    @classmethod
    def parameters(cls, mechanism: Mechanism) -> Mapping[str, int | list[int] | None]:
        w = mechanism.window
        return {
            "gains": [*mechanism.gains],
            "lattice": w.lattice,
            "lo": w.lo,
            "hi": w.hi,
            "keep": mechanism.keep,
        }

    @classmethod
    def described(cls, values: Parameters) -> str:
        gains = ",".join(map(str, values.gains))
        kept = "" if values.keep is None else f" of {values.keep / PROBABILITY_RANGE:.9g} sampled"
        return f"noise of gains {gains} at R {values.lattice}, scores {values.lo}..{values.hi}{kept}"

    @classmethod
    def option(cls, values: Parameters) -> str | None:
        if values.keep is not None:
            return None
        return f"noise:{','.join(map(str, values.gains))}:{values.lattice}"

    @classmethod
    def covered(cls, windows: Mapping[str, Sequence[tuple[Mechanism, int]]]) -> str | None:
        def largest(name: str) -> int:
            """The positions of the document that the sentence is about, in all windows alike."""
            return max(m.positions_per_document for m, _ in windows[name])

        def often(name: str) -> float:
            """How likely all queries of one account hand a given document out under unlimited noise, which lists any K
            of the N positions alike."""
            size = largest(name)
            return 1 - math.prod(1 - _kept(m) * (1 - (1 - _returned(m, size)) ** n) for m, n in windows[name])

        name = max(windows, key=often)
        several, queries = windows[name], sum(n for _, n in windows[name])
        first = several[0][0]
        size = largest(name)
        filling = "" if size == 1 else f" of {size} positions"
        among = f"among {first.tenant.capacity:,} positions of {name}"
        where = f"Even with unlimited noise a given document{filling} {among}"
        if len(several) == 1:
            once = percent(_kept(first) * _returned(first))
            return (
                f"{where} is returned with probability {once} a query (K = {first.tenant.top_k}),"
                f" {percent(often(name))} over {queries:,} queries."
            )
        return (
            f"{where} is returned to one account with probability {percent(often(name))} over the {queries:,}"
            f" queries of {len(several)} windows."
        )

    @classmethod
    def explained(cls, mechanism: Mechanism) -> list[str]:
        size = mechanism.positions_per_document
        several = f"losses add up over the positions of a document, of which there are at most {size}"
        return [*super().explained(mechanism), *([] if mechanism.table is None else [several])]

    @classmethod
    def setting(cls, values: Setting) -> str | None:
        return values.sigma_over_delta

    @classmethod
    def place(cls, values: Setting, *, accounts: int, queries: int, delta: str, positions: int = 1) -> float:
        from rag_audit.mechanisms import accounting

        single = accounting.Mechanism(tuple(values.gains), values.lattice)
        return accounting.eps_at(single, accounts * queries * positions, delta)

    @classmethod
    def details(cls, facts: Facts, say: Say = PLAIN) -> str:
        sigma = "" if facts.sigma_over_delta is None else f", σ/Δ {say.number(facts.sigma_over_delta)}"
        noise = say.text(
            " (rounded discrete Gaussian DGS-1, gains %(gains)s, lattice %(lattice)s%(sigma)s)",
            gains=",".join(map(str, facts.gains)),
            lattice=facts.lattice,
            sigma=sigma,
        )
        return say.joined([noise, super().details(facts, say)], "")

    @classmethod
    def cost(cls, facts: Facts) -> str:
        noise = (
            f"every score has noise with a standard deviation of {facts.sigma_over_delta} times the maximum change by"
            " one document (sigma/Delta)"
        )
        missed = missed_words(facts.keep)
        return noise if not missed else f"{noise}, and {missed} in this window"

    @classmethod
    def from_facts(cls, facts: Facts) -> Mechanism:
        table = facts.documents
        return Noise(
            Tenant(facts.capacity, facts.longest, facts.accounts_max),
            Scores(facts.score_lo, facts.score_hi, facts.lattice),
            facts.keep_over_range,
            tuple(facts.gains),
            None if table is None else TableShape(table.rows, table.positions_per_document, None),
        )


DESCRIPTION = NoiseDescription
