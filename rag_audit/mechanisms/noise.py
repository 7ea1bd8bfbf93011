"""Noise: every score gets fresh discrete Gaussian noise, and answers are the first K of the noised scores.

This is the paper's mechanism. It bounds an epsilon over all outcomes for any queries of a coalition, by composition
(docs/accounting.md). A tenant may sample its positions too; the noise alone bounds epsilon.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Self

from rag_audit._internal.errors import PolicyError
from rag_audit.mechanisms.base import (
    Ceiling,
    Facts,
    Loss,
    Mechanism,
    NoiseFields,
    Parameters,
    Scores,
    Setting,
    SettingWords,
    Tenant,
    TenantFields,
    missed_words,
    need,
    percent,
)
from rag_audit.relation.coins import COIN_RANGE
from rag_audit.relation.noise import check_gains

if TYPE_CHECKING:
    from rag_audit.mechanisms import accounting
    from rag_audit.mechanisms.accounting import coins


@dataclass(frozen=True)
class Noise(Mechanism):
    """Noise on every score, over all positions or over a sample of them.

    >>> from rag_audit.mechanisms.base import Scores, Tenant
    >>> noise = Noise(Tenant(capacity=64, top_k=5), Scores(101, 810, 64), own_gains=(1, 8))
    >>> noise.gains, noise.epsilon(accounts=2, noise="7.5")
    ((1, 8), 7.5)

    :param own_gains: the gains of the noise, which a policy of version 1 states unchecked
    """

    own_gains: tuple[int, ...] = ()

    name = "noise"
    words = "noise on every score"
    limit = "max_epsilon"
    uses_delta = True
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

    # -- from a policy ---------------------------------------------------------------------------------------

    @classmethod
    def is_named_by(cls, part: TenantFields) -> bool:
        return part.mechanism == cls.form and part.noise

    @classmethod
    def read(cls, part: TenantFields, noise: NoiseFields | None, tenant: Tenant, keep: int | None) -> Self:
        need(noise is not None, part, "noise", "false, since the policy has no noise", part.noise)
        need(part.scores is None, part, "scores", "null, since the noise has its window", part.scores)
        assert noise is not None
        check_gains(noise.gains)
        return cls.of(noise, tenant, keep)

    @classmethod
    def of(cls, noise: NoiseFields, tenant: Tenant, keep: int | None = None) -> Self:
        """The noise of a policy, as one tenant has it."""
        return cls(tenant, Scores.of(noise), keep, tuple(noise.gains))

    @property
    def own_scores(self) -> Scores | None:
        return None

    # -- circuit constants, committed columns and lists ------------------------------------------------------

    @property
    def gains(self) -> tuple[int, ...]:
        return self.own_gains

    # -- privacy figures -------------------------------------------------------------------------------------

    @property
    def distribution(self) -> accounting.Mechanism:
        """The distribution of the noise and its privacy loss.

        :raises PolicyError: the accountant refuses the gains or the lattice
        """
        from rag_audit.mechanisms import accounting

        return accounting.Mechanism(self.gains, self.scores.lattice)

    @property
    def sample(self) -> coins.NoisedSampling | None:
        from rag_audit.mechanisms.accounting import coins

        if self.keep is None:
            return None
        return coins.NoisedSampling(self.keep, self.tenant.top_k, self.tenant.capacity)

    def epsilon(self, accounts: int, noise: str | None) -> float:
        return math.inf if noise is None else float(noise)

    def epsilon_at(self, accounts: int, queries: int, delta: str) -> float:
        from rag_audit.mechanisms import accounting

        return accounting.eps_at(self.distribution, accounts * queries, delta)

    def realised(self, asked: Sequence[int], *, n: int, k: int, delta: str) -> float:
        from rag_audit.mechanisms import accounting

        return accounting.realised(self.distribution, asked, delta, n=n, k=k).eps

    def loss(self, accounts: int, queries: int) -> Loss | None:
        return Loss(noise=((self.distribution, accounts * queries),))

    def figures_depend_on(self, accounts: int, queries: int) -> int:
        return accounts * queries

    def certified(self, accounts: int, queries: int, delta: str | None) -> tuple[float, float | None]:
        from rag_audit.mechanisms import accounting
        from rag_audit.mechanisms.accounting.tradeoff import auc_bound

        try:
            distribution = self.distribution
        except PolicyError:  # its support ends before one document's shift, so nothing is certified
            return math.inf, None
        composed = accounts * queries
        epsilon = math.inf if delta is None else accounting.eps_at(distribution, composed, delta)
        return epsilon, auc_bound(distribution, composed)

    def ceiling(self, accounts: int, queries: int, rates: Sequence[float]) -> Ceiling | None:
        from rag_audit.mechanisms import accounting

        bound = accounting.roc_bound(self.distribution, accounts * queries, rates)
        points = [*zip(rates, bound, strict=True), (1.0, 1.0)]
        return Ceiling(accounts, points, bound[list(rates).index(0.01)])

    # -- a run of attacks ------------------------------------------------------------------------------------

    def parameters(self) -> Mapping[str, int | list[int] | None]:
        w = self.window
        return {"gains": [*self.gains], "lattice": w.lattice, "lo": w.lo, "hi": w.hi, "keep": self.keep}

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

    # -- sentences -------------------------------------------------------------------------------------------

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

        distribution = accounting.Mechanism(tuple(values.gains), values.lattice)
        return accounting.eps_at(distribution, accounts * queries, delta)

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
    def from_facts(cls, facts: Facts) -> Self:
        return cls(
            Tenant(facts.capacity, facts.longest, facts.accounts_max),
            Scores(facts.score_lo, facts.score_hi, facts.lattice),
            facts.keep_coin,
            tuple(facts.gains),
        )


def _kept(mechanism: Mechanism) -> float:
    """The probability with which a window keeps a position; texts of other positions are not returned."""
    return 1.0 if mechanism.keep is None else mechanism.keep / COIN_RANGE


def _share(mechanism: Mechanism) -> float:
    """The share of the positions that one answer lists."""
    return min(1.0, mechanism.tenant.top_k / mechanism.tenant.capacity)
