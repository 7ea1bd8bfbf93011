"""Noise: its sentences, and its curves by the exact accountant."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import ClassVar

from rag_audit._internal.errors import PolicyError
from rag_audit.mechanisms.base import Mechanism, Scores, Tenant
from rag_audit.mechanisms.descriptions.base import (
    Ceiling,
    Description,
    Facts,
    Loss,
    Parameters,
    Setting,
    SettingWords,
    missed_words,
    percent,
)
from rag_audit.mechanisms.noise import Noise, distribution
from rag_audit.relation.coins import COIN_RANGE


def _kept(mechanism: Mechanism) -> float:
    """The probability with which a window keeps a position; texts of other positions are not returned."""
    return 1.0 if mechanism.keep is None else mechanism.keep / COIN_RANGE


def _share(mechanism: Mechanism) -> float:
    """The share of the positions that one answer lists."""
    return min(1.0, mechanism.tenant.top_k / mechanism.tenant.capacity)


class NoiseDescription(Description):
    mechanism = Noise
    words = "noise on every score"
    computed = (
        "Computed from the exact distribution of the noise's privacy loss, composed over all queries and"
        " rounded up; it is no Gaussian approximation."
    )
    settings = SettingWords(
        "σ/Δ {}",
        "sigma/Delta {}",
        "σ/Δ = {}",
        "Noise is given as its standard deviation over what one document can move a score (σ/Δ).",
    )
    changes: ClassVar[dict[str, str]] = {}
    coalition = "More accounts than this are outside eps_audit."

    @classmethod
    def epsilon_at(cls, mechanism: Mechanism, accounts: int, queries: int, delta: str) -> float:
        from rag_audit.mechanisms import accounting

        return accounting.eps_at(distribution(mechanism), accounts * queries, delta)

    @classmethod
    def loss(cls, mechanism: Mechanism, accounts: int, queries: int) -> Loss | None:
        return Loss(noise=((distribution(mechanism), accounts * queries),))

    @classmethod
    def figures_depend_on(cls, mechanism: Mechanism, accounts: int, queries: int) -> int:
        return accounts * queries

    @classmethod
    def certified(
        cls, mechanism: Mechanism, accounts: int, queries: int, delta: str | None
    ) -> tuple[float, float | None]:
        from rag_audit.mechanisms import accounting
        from rag_audit.mechanisms.accounting.tradeoff import auc_bound

        try:
            single = distribution(mechanism)
        except PolicyError:  # its support ends before one document's shift, so nothing is certified
            return math.inf, None
        composed = accounts * queries
        epsilon = math.inf if delta is None else accounting.eps_at(single, composed, delta)
        return epsilon, auc_bound(single, composed)

    @classmethod
    def ceiling(
        cls, mechanism: Mechanism, accounts: int, queries: int, rates: Sequence[float]
    ) -> Ceiling | None:
        from rag_audit.mechanisms import accounting

        bound = accounting.roc_bound(distribution(mechanism), accounts * queries, rates)
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
        kept = "" if values.keep is None else f" of {values.keep / COIN_RANGE:.9g} kept"
        return f"noise of gains {gains} at R {values.lattice}, scores {values.lo}..{values.hi}{kept}"

    @classmethod
    def option(cls, values: Parameters) -> str | None:
        if values.keep is not None:
            return None
        return f"noise:{','.join(map(str, values.gains))}:{values.lattice}"

    @classmethod
    def covered(cls, windows: Mapping[str, Sequence[tuple[Mechanism, int]]]) -> str | None:
        def often(name: str) -> float:
            """How likely all queries of one account hand a given document out under unlimited noise, which lists any K
            of the N positions alike."""
            return 1 - math.prod(1 - _kept(m) * (1 - (1 - _share(m)) ** n) for m, n in windows[name])

        name = max(windows, key=often)
        several, queries = windows[name], sum(n for _, n in windows[name])
        first = several[0][0]
        where = (
            f"Even with unlimited noise a given document among {first.tenant.capacity:,} positions of {name}"
        )
        if len(several) == 1:
            once = percent(_kept(first) * _share(first))
            return (
                f"{where} is handed out with probability {once} a query (K = {first.tenant.top_k}),"
                f" {percent(often(name))} over {queries:,} queries."
            )
        return (
            f"{where} is handed out to one account with probability {percent(often(name))} over the {queries:,}"
            f" queries of {len(several)} windows."
        )

    @classmethod
    def setting(cls, values: Setting) -> str | None:
        return values.sigma_over_delta

    @classmethod
    def place(cls, values: Setting, chance: str, *, accounts: int, queries: int, delta: str) -> float:
        from rag_audit.mechanisms import accounting

        single = accounting.Mechanism(tuple(values.gains), values.lattice)
        return accounting.eps_at(single, accounts * queries, delta)

    @classmethod
    def details(cls, facts: Facts) -> str:
        sigma = "" if facts.sigma_over_delta is None else f", σ/Δ {facts.sigma_over_delta}"
        gains = ",".join(map(str, facts.gains))
        return f" (rounded discrete Gaussian DGS-1, gains {gains}, lattice {facts.lattice:,}{sigma})"

    @classmethod
    def cost(cls, facts: Facts) -> str:
        noise = f"every score carries noise of {facts.sigma_over_delta} times what one document can move it"
        missed = missed_words(facts.keep)
        return noise if not missed else f"{noise}, and {missed} in this window"

    @classmethod
    def from_facts(cls, facts: Facts) -> Mechanism:
        return Noise(
            Tenant(facts.capacity, facts.longest, facts.accounts_max),
            Scores(facts.score_lo, facts.score_hi, facts.lattice),
            facts.keep_coin,
            tuple(facts.gains),
        )
