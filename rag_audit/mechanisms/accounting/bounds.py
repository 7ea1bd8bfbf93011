"""The bounds of a policy: three that may count as eps_audit, and additional figures that never count."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TypedDict

from rag_audit.mechanisms.accounting import closed_form, gaussian, rdp
from rag_audit.mechanisms.accounting.documents import noise_compositions
from rag_audit.mechanisms.accounting.exact import Composition
from rag_audit.mechanisms.accounting.pmf import SLICE_BIAS, Mechanism
from rag_audit.mechanisms.accounting.values import (
    Real,
    check_delta_split,
    count,
    epsilon,
    probability,
    round_up,
    text,
)

ADJACENCY = "indices that differ in one committed position: one document added, removed or replaced"
UNIT = "one committed position of one tenant's index"
DOCUMENT_ADJACENCY = (
    "indices that differ in one document of at most {} positions: it is added, removed or replaced"
)
DOCUMENT_UNIT = "one document of one tenant's index, with at most {} positions"

_COMMON = (
    "fresh noise for every query, drawn as DGS-1 from a seed that only the provider knows",
    "at most m queries in all by the coalition, chosen adaptively",
)
_ONE_SCORE = "scores clamped to the lattice 0..R, so one document moves one score by at most R"
_SEVERAL_SCORES = (
    "scores clamped to the lattice 0..R, so one document moves at most {} scores by at most R each",
    "uniformly random positions of all texts, so a replaced document is at the positions of the one that replaces it",
)


def _common(positions: int) -> tuple[str, ...]:
    """The assumptions of every bound for a document of so many positions."""
    of_document = [words.format(positions) for words in _SEVERAL_SCORES]
    return (*_COMMON, *([_ONE_SCORE] if positions == 1 else of_document))


class BoundJson(TypedDict):
    """`Bound` as JSON, reals as decimal strings."""

    name: str
    eps: str
    delta: str
    valid: bool
    reason: str | None
    assumptions: list[str]


class MechanismJson(TypedDict):
    """A mechanism as JSON, reals as decimal strings.

    :param infinite_loss_mass: the probability of an infinite loss in any of the coalition's queries
    """

    noise: str
    gains: list[int]
    lattice: int
    sigma: str
    sigma_over_delta: str
    infinite_loss_mass: str


class BoundSetJson(TypedDict):
    """`BoundSet` as JSON, reals as decimal strings.

    :param counts: the name of the bound that counts as eps_audit
    :param not_bounds: figures for comparison, by name
    """

    adjacency: str
    unit: str
    mechanism: MechanismJson
    n: int
    k: int
    compositions: int
    eps_acc: str
    delta_acc: str
    delta: str
    eps_audit: str
    counts: str
    bounds: list[BoundJson]
    not_bounds: dict[str, str]


@dataclass(frozen=True)
class Bound:
    """One named bound: (eps, delta) in the sense of `ADJACENCY`.

    :param eps: epsilon, rounded up; `inf` where there is no finite one
    :param delta: all of the delta that the bound spends
    :param valid: whether the bound may count as eps_audit
    :param reason: why it may not
    """

    name: str
    eps: float
    delta: float
    valid: bool
    reason: str | None
    assumptions: tuple[str, ...]

    def as_json(self) -> BoundJson:
        """JSON form, reals as decimal strings."""
        return {
            "name": self.name,
            "eps": text(self.eps),
            "delta": text(self.delta),
            "valid": self.valid,
            "reason": self.reason,
            "assumptions": list(self.assumptions),
        }


@dataclass(frozen=True)
class BoundSet:
    """Every bound of a policy for a coalition of k accounts with n queries each.

    :param comparisons: figures printed under their own names that never count
    :param positions: the maximum number of positions of a document
    """

    mechanism: Mechanism
    n: int
    k: int
    eps_acc: float
    delta_acc: float
    delta: float
    closed_form: Bound
    rdp: Bound
    exact: Bound
    comparisons: dict[str, float] = field(default_factory=dict)
    positions: int = 1

    @property
    def compositions(self) -> int:
        """The number of losses that are composed, k n s: one for each query and position of a document."""
        return noise_compositions(accounts=self.k, queries=self.n, positions=self.positions)

    @property
    def best(self) -> Bound:
        """The least valid bound, or `exact` at infinity if none is valid."""
        valid = [b for b in (self.exact, self.rdp, self.closed_form) if b.valid]
        return min(valid, key=lambda b: b.eps, default=self.exact)

    @property
    def eps_audit(self) -> float:
        """The epsilon of `best`."""
        return self.best.eps

    def as_json(self) -> BoundSetJson:
        """JSON form, reals as decimal strings."""
        one = self.positions == 1
        return {
            "adjacency": ADJACENCY if one else DOCUMENT_ADJACENCY.format(self.positions),
            "unit": UNIT if one else DOCUMENT_UNIT.format(self.positions),
            "mechanism": {
                "noise": "dgs-1",
                "gains": list(self.mechanism.gains),
                "lattice": self.mechanism.lattice,
                "sigma": text(round_up(self.mechanism.sigma, margin=0)),
                "sigma_over_delta": text(round_up(self.mechanism.sigma_over_delta, margin=0)),
                "infinite_loss_mass": text(round_up(self.mechanism.outside_mass * self.compositions)),
            },
            "n": self.n,
            "k": self.k,
            "compositions": self.compositions,
            "eps_acc": text(self.eps_acc),
            "delta_acc": text(self.delta_acc),
            "delta": text(self.delta),
            "eps_audit": text(self.eps_audit),
            "counts": self.best.name,
            "bounds": [b.as_json() for b in (self.closed_form, self.rdp, self.exact)],
            "not_bounds": {name: text(value) for name, value in self.comparisons.items()},
        }


def audit_bounds(
    mechanism: Mechanism,
    *,
    n: int,
    eps_acc: Real,
    delta_acc: Real,
    k: int,
    delta: Real,
    positions: int = 1,
) -> BoundSet:
    """Every bound for k colluding accounts with n queries each.

    >>> audit_bounds(Mechanism((1, 8, 64), 1024), n=10, eps_acc="4", delta_acc="1e-7", k=2, delta="1e-6").exact.eps
    30.259

    :param eps_acc: the policy's per-account epsilon, which only the closed form reads
    :param delta_acc: the policy's per-account delta; the closed form spends k of them out of `delta`, the
        other bounds have all of `delta`
    :param delta: delta_policy
    :param positions: s, the maximum number of positions of a document
    :raises PolicyError: eps_acc <= 0, a delta outside (0, 1), delta <= k delta_acc, or n, k or s not a positive integer
    """
    n, k = count(n, "n"), count(k, "k_max")
    eps, share = epsilon(eps_acc, "eps_acc"), probability(delta_acc, "delta_acc")
    total = probability(delta, "delta_policy")
    check_delta_split(delta, k, delta_acc)
    m = noise_compositions(accounts=k, queries=n, positions=positions)
    composition = Composition([(mechanism, m)], total)
    by_grid, by_grid_as_paper = rdp.epsilon(composition)
    gaussian = rdp.gaussian_divergences(mechanism.sigma_over_delta, m)
    comparisons = {
        "paper_leading_term": closed_form.leading_term(eps, k),
        "rdp_paper_conversion": by_grid_as_paper,
        "rdp_gaussian": rdp.convert(gaussian, total),
        "rdp_gaussian_paper_conversion": rdp.convert_as_paper(gaussian, total),
        "exact_gaussian": gaussian_epsilon(mechanism.sigma_over_delta, m, total),
    }
    return BoundSet(
        mechanism=mechanism,
        n=n,
        k=k,
        eps_acc=eps,
        delta_acc=share,
        delta=total,
        closed_form=_closed_form(mechanism, (n, k, positions), eps, share, total),
        rdp=finite_bound(
            "rdp",
            by_grid,
            total,
            "orders 2..64, worst shift, infinite losses charged to delta first",
            positions=positions,
        ),
        exact=finite_bound(
            "exact",
            _epsilon(mechanism, m, total),
            total,
            "privacy loss distribution of the worst shift",
            positions=positions,
        ),
        comparisons={name: round_up(value, margin=0) for name, value in comparisons.items()},
        positions=positions,
    )


def eps_at(mechanism: Mechanism, compositions: int, delta: Real) -> float:
    """The exact bound for any number of queries, rounded up; `inf` where infinite losses exceed delta.

    >>> eps_at(Mechanism((1, 8, 64), 1024), 20, "1e-6")
    30.259

    :raises PolicyError: compositions is not a positive integer, or delta is outside (0, 1)
    """
    return round_up(_epsilon(mechanism, count(compositions, "compositions"), probability(delta, "delta")))


@lru_cache(maxsize=256)
def _epsilon(mechanism: Mechanism, m: int, delta: float) -> float:
    """The exact epsilon of m queries, not yet rounded up. A policy's figures ask for one more than once."""
    return Composition([(mechanism, m)], delta).epsilon()


def gaussian_epsilon(sigma_over_delta: float, compositions: int, delta: float) -> float:
    """The analytic Gaussian's epsilon (Balle and Wang 2018) for m queries, which is a comparison and not a bound.

    >>> round(gaussian_epsilon(50.0, 200, 1e-6), 3)
    1.212
    """
    return gaussian.epsilon(sigma_over_delta / math.sqrt(compositions), delta)


def finite_bound(name: str, eps: float, delta: float, *notes: str, positions: int = 1) -> Bound:
    """A bound that is valid if its epsilon is finite.

    >>> finite_bound("exact", math.inf, 1e-6).valid
    False

    :param notes: its assumptions beside those of every bound
    :param positions: the maximum number of positions of a document
    """
    valid = math.isfinite(eps)
    reason = None if valid else "infinite losses are likelier than delta: no finite bound exists"
    return Bound(name, round_up(eps), delta, valid, reason, (*_common(positions), *notes))


def _closed_form(
    mechanism: Mechanism, sizes: tuple[int, int, int], eps_acc: float, delta_acc: float, delta: float
) -> Bound:
    """The paper's bound, where one account has a loss for each query and position of a document.

    :param sizes: n, k and the positions of a document
    """
    queries, k, positions = sizes
    n = queries * positions
    eps_q = closed_form.query_epsilon(eps_acc, delta_acc, n)
    m = k * n
    # `delta_at` already includes the sampler's bias; the bound charges it a second time, like the other bounds.
    slack = delta * math.exp(-m * SLICE_BIAS) - k * delta_acc
    query_delta = mechanism.delta_at(eps_q)
    reason = None
    if eps_q > 1:
        reason = f"eps_q = {eps_q:.4g} is above 1, where Lemma 3.2 ends"
    elif query_delta > delta_acc / n:
        reason = f"delta of one query at eps_q {eps_q:.4g} is {query_delta:.2e}, above delta_acc/n"
        reason += "" if positions == 1 else f" over {positions} positions"
    elif slack <= 0:
        reason = "k_max delta_acc uses all of delta_policy"
    eps = math.inf if slack <= 0 else closed_form.advanced_composition(eps_q, m, slack) + m * SLICE_BIAS
    return Bound(
        "closed_form",
        round_up(eps),
        delta,
        reason is None,
        reason,
        (
            *_common(positions),
            "one query is (eps_q, delta_acc/n)-DP"
            if positions == 1
            else f"one query about one position is (eps_q, delta_acc/(n {positions}))-DP",
            "k_max delta_acc of delta goes to the queries",
        ),
    )
