"""Calibration: from a target to the smallest noise that meets it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from rag_audit._internal.errors import PolicyError
from rag_audit.mechanisms.accounting import closed_form, gaussian
from rag_audit.mechanisms.accounting.bounds import eps_at, gaussian_epsilon
from rag_audit.mechanisms.accounting.methods import METHODS, RELATIVE_SLACK, meets, required_sigma_over_delta
from rag_audit.mechanisms.accounting.pmf import Mechanism
from rag_audit.mechanisms.accounting.search import crossing
from rag_audit.mechanisms.accounting.values import (
    Real,
    check_delta_split,
    count,
    epsilon,
    probability,
    round_up,
)
from rag_audit.relation.noise import BASE_SIGMA, MAX_GAIN_RATIO, MAX_GAINS

DEFAULT_LATTICE = 64
_FREE_PREFIX = 2


@dataclass(frozen=True)
class Calibration:
    """The outcome of `calibrate`.

    :param mechanism: the mechanism of smallest sigma on the requested lattice that meets the target
    :param required: the method's sigma/Delta; for `exact`, the mechanism's own
    :param eps_acc: the per-account epsilon that makes `check_policy` accept a policy for this method
    """

    method: str
    mechanism: Mechanism
    required: float
    eps_acc: float


def calibrate(
    method: str,
    *,
    n: int,
    delta_acc: Real,
    eps_acc: Real | None = None,
    eps_joint: Real | None = None,
    k: int = 1,
    delta: Real | None = None,
    lattice: int = DEFAULT_LATTICE,
    max_gains: int | None = None,
) -> Calibration:
    """The mechanism with the least noise that meets a target by a method.

    The target is one account's (eps_acc, delta_acc) for n queries, or the coalition's (eps_joint, delta) for k n
    queries. By formula, a coalition's target is first converted into the eps_acc with closed form eps_joint
    (`classical`, `split`, `theorem-3.9`), or passed to the Gaussian mechanism (`analytic`).

    >>> calibrate("exact", n=10, eps_acc="4", delta_acc="1e-6").mechanism
    Mechanism(gains=(1, 2, 15), lattice=64)

    :param delta: delta_policy, which must also cover the infinite losses of k n queries; delta_acc by default, which is
        possible for k = 1 only
    :param lattice: R
    :param max_gains: maximum number of draws for a position; by default the smallest number that meets the target
    :raises PolicyError: there is not exactly one target, a parameter is bad, or no gains meet the target
    """
    if method not in METHODS:
        raise PolicyError(
            "unknown calibration", field="calibration", expected=", ".join(METHODS), actual=repr(method)
        )
    n, k, share = count(n, "n"), count(k, "k_max"), probability(delta_acc, "delta_acc")
    if (eps_acc is None) == (eps_joint is None):
        raise PolicyError(
            "give exactly one target",
            field="eps_acc",
            expected="either eps_acc or eps_joint",
            actual="both or neither",
        )
    if delta is None and (k > 1 or eps_joint is not None):
        raise PolicyError(
            "a coalition's target needs its delta", field="delta_policy", expected="0 < delta < 1"
        )
    total = share if delta is None else probability(delta, "delta_policy")
    if delta is not None:
        check_delta_split(delta, k, delta_acc)
    fits = _Candidates(lattice, max_gains)

    if eps_acc is not None:
        target = epsilon(eps_acc, "eps_acc")
        required = required_sigma_over_delta(method, n=n, eps_acc=target, delta_acc=share)

        def accept(mechanism: Mechanism) -> bool:
            return mechanism.fits(k * n, total) and meets(
                method, mechanism, n=n, eps_acc=target, delta_acc=share
            )

        result = fits.minimum(accept, required)
        return Calibration(method, result, _required(method, result, required), target)

    assert eps_joint is not None
    joint = epsilon(eps_joint, "eps_joint")
    if method in ("analytic", "exact"):
        required = gaussian.sigma(joint, total) * math.sqrt(k * n)
        result = fits.minimum(
            lambda mechanism: (
                mechanism.fits(k * n, total)
                and (
                    eps_at(mechanism, k * n, total) <= joint
                    if method == "exact"
                    else mechanism.sigma_over_delta >= required * (1 - RELATIVE_SLACK)
                )
            ),
            required,
        )
        one = max(eps_at(result, n, share), round_up(gaussian_epsilon(result.sigma_over_delta, n, share)))
        return Calibration(method, result, _required(method, result, required), one)
    one = _account_share(joint, n=n, k=k, delta_acc=share, delta=total)
    required = required_sigma_over_delta(method, n=n, eps_acc=one, delta_acc=share)
    result = fits.minimum(
        lambda mechanism: (
            mechanism.fits(k * n, total) and mechanism.sigma_over_delta >= required * (1 - RELATIVE_SLACK)
        ),
        required,
    )
    return Calibration(method, result, required, one)


def _required(method: str, actual: Mechanism, formula: float) -> float:
    return actual.sigma_over_delta if method == "exact" else formula


def _account_share(eps_joint: float, *, n: int, k: int, delta_acc: float, delta: float) -> float:
    """The eps_acc such that the closed form for k accounts is eps_joint, rounded down to five digits."""

    slack = delta - k * delta_acc
    if slack <= 0:
        raise PolicyError("k_max delta_acc uses all of delta_policy", field="delta_policy",
                          expected=f"> {k * delta_acc}", actual=str(delta))  # fmt: skip

    def excess(log_eps: float) -> float:
        eps_q = closed_form.query_epsilon(math.exp(log_eps), delta_acc, n)
        return math.log(closed_form.advanced_composition(eps_q, k * n, slack) / eps_joint)

    low = high = math.log(eps_joint)
    while excess(low) > 0:
        low -= 1
    while excess(high) < 0:
        high += 1
    eps = math.exp(crossing(excess, low, high))
    return float(f"{eps * (1 - 1e-5):.4e}")


class _Candidates:
    """Candidate gains on one lattice in ascending order of sigma."""

    def __init__(self, lattice: int, max_gains: int | None) -> None:
        self.lattice = lattice
        self.max_gains = None if max_gains is None else count(max_gains, "max_gains")
        if self.max_gains is not None and self.max_gains > MAX_GAINS:
            raise PolicyError(
                "too many gains", field="max_gains", expected=f"1..{MAX_GAINS}", actual=max_gains
            )

    def minimum(self, accept: Callable[[Mechanism], bool], required: float) -> Mechanism:
        """The first mechanism that is accepted; `required` is a guess of its sigma/Delta."""
        for limit in range(1, MAX_GAINS + 1) if self.max_gains is None else (self.max_gains,):
            gains = sorted(_gain_tuples(limit, exactly=self.max_gains is None), key=_square_sum)
            if BASE_SIGMA * math.sqrt(_square_sum(gains[-1])) < 0.9 * required * self.lattice:
                continue
            result = self._first(gains, accept)
            if result is not None:
                return result
        raise PolicyError(
            "no gains meet the target on this lattice",
            field="lattice",
            expected=f"sigma/Delta of about {required:.5g}",
            actual=f"lattice {self.lattice}",
            hint="a smaller lattice, fewer queries, a larger epsilon, or more gains",
        )

    def _first(self, gains: list[tuple[int, ...]], accept: Callable[[Mechanism], bool]) -> Mechanism | None:
        """The first accepted mechanism. Acceptance rises with sigma, except where the support is too narrow for the
        lattice, so this bisects and then walks up.
        """
        low, high = 0, len(gains)
        while low < high:
            middle = (low + high) // 2
            if self._accepted(gains[middle], accept) is None:
                low = middle + 1
            else:
                high = middle
        return next((m for g in gains[low:] if (m := self._accepted(g, accept)) is not None), None)

    def _accepted(self, gains: tuple[int, ...], accept: Callable[[Mechanism], bool]) -> Mechanism | None:
        try:
            mechanism = Mechanism(gains, self.lattice)
        except PolicyError:
            if self.lattice & (self.lattice - 1):
                raise
            return None  # the lattice exceeds the support of these gains
        return mechanism if accept(mechanism) else None


def _square_sum(gains: tuple[int, ...]) -> int:
    return sum(g * g for g in gains)


def _gain_tuples(limit: int, *, exactly: bool) -> Iterator[tuple[int, ...]]:
    """Non-decreasing gains of exactly `limit` components, or of at most `limit`.

    Up to three components all gains are given; beyond, powers of eight with a free last component.
    """
    for length in range(limit if exactly else 1, limit + 1):
        if length <= _FREE_PREFIX + 1:
            yield from _all_tuples((1,), length)
        else:
            prefix = tuple(MAX_GAIN_RATIO**c for c in range(length - 1))
            yield from ((*prefix, last) for last in range(1, MAX_GAIN_RATIO * prefix[-1] + 1))


def _all_tuples(prefix: tuple[int, ...], length: int) -> Iterator[tuple[int, ...]]:
    if len(prefix) == length:
        yield prefix
        return
    for gain in range(prefix[-1], MAX_GAIN_RATIO * prefix[-1] + 1):
        yield from _all_tuples((*prefix, gain), length)
