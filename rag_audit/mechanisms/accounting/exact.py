"""Composition of exact privacy loss distributions, never below the truth.

dp-accounting composes such distributions too. This module adds three missing properties: a discretisation made from the
atoms (the library's takes second differences of deltas and loses the digits that 10^7 compositions need), round-off of
the transform charged to delta, and exponential tilting, which makes that round-off relative to the requested delta and
limits 10^7 compositions to a few hundred MiB. Tests compare the two.

Method (docs/accounting.md, "Exact bound"):

- *Connect the dots* (Doroshenko et al., arXiv 2207.04380): an atom of loss l between grid points a < b is split so that
  its mass under both distributions is preserved; the hockey-stick curve of the result is on or above the true one
  everywhere.
- The m-fold sum is tilted by exp(theta x), theta at the Chernoff optimum of the requested delta, and composed by one
  FFT on a window; outside this window the tilted sum has mass below 1e-14.
- delta(eps) is the tilted sum against a bounded weight, plus that missing mass, plus a bound on the
  transform's error (Higham, Accuracy and Stability of Numerical Algorithms, Theorem 24.2), plus the
  probability of an infinite loss.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from rag_audit._internal.errors import PolicyError
from rag_audit.mechanisms.accounting.pmf import UNIT_ROUNDOFF, Array, Mechanism
from rag_audit.mechanisms.accounting.search import crossing, minimum

Part = tuple[Mechanism, int]
"""A mechanism and how many of its queries are composed."""

_CELLS_PER_SIGMA = 48
_MAX_CELLS = 2**21
_WINDOW_SIGMAS = 16
MAX_COMPOSITIONS = 1 << 24
"""Maximum queries in one composition: another party's policy must not exhaust a verifier's memory."""
MISSING = 1e-14
_CLIPPED_SHARE = 2.0**-32
_NEGLIGIBLE = 2.0**-110
_CHUNK = 2**18
_LOSS_ROUNDING = 2.0**-42
"""The rounding error of a loss, which is at most ln 2^240, and of its split: a few units in the last place."""


@dataclass(frozen=True, eq=False)
class LossGrid:
    """A privacy loss distribution on multiples of `step` that dominates a mechanism's."""

    step: float
    first: int
    """index of the first cell; its loss is first * step"""
    masses: Array
    infinite: float
    """probability of an infinite loss"""

    @cached_property
    def losses(self) -> Array:
        return np.arange(self.first, self.first + len(self.masses), dtype=np.float64) * self.step

    @cached_property
    def _log_masses(self) -> Array:
        with np.errstate(divide="ignore"):
            logs: Array = np.log(self.masses)
        return logs

    def log_mgf(self, theta: float) -> float:
        """ln E[exp(theta loss)] over the finite losses."""
        exponents = self._log_masses + theta * self.losses
        top = float(np.max(exponents))
        return top + math.log(float(np.sum(np.exp(exponents - top))))

    def tilted(self, theta: float) -> Array:
        """The masses weighted by exp(theta loss) and normalised."""
        return np.exp(self._log_masses + theta * self.losses - self.log_mgf(theta))


def _own_exponent(mechanism: Mechanism) -> int:
    """log2 of the grid step that resolves one mechanism's losses."""
    return round(math.log2(1 / (mechanism.sigma_over_delta * _CELLS_PER_SIGMA)))


def grid_exponent(parts: Sequence[Part]) -> int:
    """log2 of a composition's grid step, which resolves the narrowest losses unless the window grows too large.

    For given noise it grows with the number of compositions only. Grids are nested and a coarser one dominates
    a finer one, so bounds stay monotone.

    >>> grid_exponent([(Mechanism((1, 8, 64), 1024), 20)])
    -6
    """
    exponent = min(_own_exponent(mechanism) for mechanism, _ in parts)
    spread = math.sqrt(sum(m / mechanism.sigma_over_delta**2 for mechanism, m in parts))
    return exponent + max(0, math.ceil(math.log2(spread * _WINDOW_SIGMAS / _MAX_CELLS) - exponent))


def clip_exponent(compositions: int, delta: float) -> int:
    """log2 of the tail mass of one query that may become an infinite loss: at most 2^-32 of delta over all queries.

    Far tails are rounded masses with erratic losses, which tilting would amplify.

    >>> clip_exponent(20, 1e-6)
    -60
    """
    return 4 * math.floor(math.log2(delta * _CLIPPED_SHARE / compositions) / 4)


def _connect_the_dots(losses: Array, masses: Array, step: float) -> tuple[int, Array]:
    """Split atoms onto multiples of `step`, and return the index of the first cell and the cells' masses."""
    first = math.floor(float(losses.min()) / step)
    cells = np.zeros(math.floor(float(losses.max()) / step) - first + 2)
    for start in range(0, len(losses), _CHUNK):  # six gains have 10^7 atoms: this limits memory
        loss, mass = losses[start : start + _CHUNK], masses[start : start + _CHUNK]
        below = np.floor(loss / step)
        upper_share = np.minimum(np.expm1(below * step - loss) / math.expm1(-step), 1.0)
        cell = below.astype(np.int64) - first
        cells += np.bincount(cell + 1, weights=mass * upper_share, minlength=len(cells))
        cells += np.bincount(cell, weights=mass * (1 - upper_share), minlength=len(cells))
    return first, cells


def _tail_length(masses: Array, limit: float) -> int:
    """The number of leading masses that sum to at most `limit`."""
    length, total = 0, 0.0
    while length < len(masses):
        sums = total + np.cumsum(masses[length : length + _CHUNK])
        within = int(np.searchsorted(sums, limit, side="right"))
        length += within
        if within < len(sums):
            break
        total = float(sums[-1])
    return length


@lru_cache(maxsize=16)
def _fine_grid(mechanism: Mechanism, exponent: int) -> LossGrid:
    """Losses under the shift R on a grid that resolves them, except for tails too light to matter for any delta."""
    step = 2.0**exponent
    losses, masses = mechanism.losses()
    # z ascends, and the loss descends, except for ripples in the tails.
    head = _tail_length(masses, _NEGLIGIBLE)
    tail = len(masses) - _tail_length(masses[::-1], _NEGLIGIBLE)
    infinite = mechanism.outside_mass + float(np.sum(masses[:head]))
    raised = math.ceil(max(0.0, float(np.max(losses[tail:], initial=0.0))) / step)
    first, cells = _connect_the_dots(losses[head:tail], masses[head:tail], step)
    cells[raised - first] += float(np.sum(masses[tail:]))
    return LossGrid(step, first, cells, infinite)


@lru_cache(maxsize=64)
def loss_grid(mechanism: Mechanism, exponent: int, clip: int) -> LossGrid:
    """A pessimistic version of the mechanism's privacy losses on the grid of step 2^exponent.

    The highest losses, of mass at most 2^clip, become infinite; the lowest are raised to the lowest remaining loss.

    >>> loss_grid(Mechanism((1, 8, 64), 1024), exponent=-6, clip=-60).step
    0.015625
    """
    fine = _fine_grid(mechanism, min(exponent, _own_exponent(mechanism)))
    step = 2.0**exponent
    first, cells = fine.first, fine.masses
    if step > fine.step:
        first, cells = _connect_the_dots(fine.losses, cells, step)
    top = len(cells) - _tail_length(cells[::-1], 2.0**clip)
    bottom = min(_tail_length(cells, 2.0**clip), top - 1)
    kept = cells[bottom:top].copy()
    kept[0] += float(np.sum(cells[:bottom]))
    return LossGrid(step, first + bottom, kept, fine.infinite + float(np.sum(cells[top:])))


class Composition:
    """The m-fold (or mixed) composition of mechanisms, as a dominating privacy loss distribution.

    :param parts: mechanisms with their counts; their losses add up
    :param delta: the delta that `epsilon` will spend; a share of 2^-31 of it goes into cut tails
    :raises PolicyError: there are more than `MAX_COMPOSITIONS` queries
    """

    def __init__(self, parts: Sequence[Part], delta: float) -> None:
        total = sum(m for _, m in parts)
        if total > MAX_COMPOSITIONS:
            raise PolicyError(
                "the accountant cannot compose this number of queries",
                field="n",
                expected=f"at most {MAX_COMPOSITIONS}",
                actual=total,
            )
        exponent = grid_exponent(parts)
        clip = clip_exponent(total, delta)
        self.delta = delta
        self.counts = [m for _, m in parts]
        self.grids = [loss_grid(mechanism, exponent, clip) for mechanism, _ in parts]
        self.step = 2.0**exponent
        self.pairs = list(zip(self.grids, self.counts, strict=True))
        self.largest_loss = max(float(np.max(np.abs(g.losses))) for g in self.grids)
        self.factor = sum(m * mechanism.bias.factor for mechanism, m in parts)
        self.shift = sum(m * (mechanism.bias.shift + _LOSS_ROUNDING) for mechanism, m in parts)
        self.infinite = -math.expm1(sum(m * math.log1p(-g.infinite) for g, m in self.pairs))

    def log_mgf(self, theta: float) -> float:
        """ln E[exp(theta S)] over finite sums S of losses."""
        return sum(m * g.log_mgf(theta) for g, m in self.pairs)

    @property
    def finite_budget(self) -> float:
        """The part of delta that remains after infinite losses and the sampler's bias; at most 0 if none remains."""
        return self.delta * math.exp(-self.factor) - self.infinite

    def epsilon(self) -> float:
        """An epsilon for which the real mechanisms are (epsilon, delta)-DP; inf if infinite losses exceed delta."""
        target, budget = self.delta * math.exp(-self.factor), self.finite_budget
        if budget <= 0:
            return math.inf
        spread = math.sqrt(sum(m * _variance(g) for g, m in self.pairs))
        log_inverse = -math.log(budget)
        guess = math.sqrt(2 * log_inverse + 1e-3) / spread
        theta = _argmin(lambda t: (self.log_mgf(t) + log_inverse) / t, guess)
        tilted = TiltedSum(self, theta)
        if tilted.delta(0.0) <= target:
            return self.shift
        # The Chernoff bound of the same grid is an upper end for the search; the tilted mean is close to it.
        high = (self.log_mgf(theta) + log_inverse) / theta + self.step
        low = 0.0
        while tilted.delta(high) > target:
            low, high = high, 2 * high
        eps = crossing(lambda e: tilted.log_delta(e) - math.log(target), low, high, rtol=1e-10)
        while tilted.delta(eps) > target:
            eps *= 1 + 1e-9
        return eps + self.shift


class TiltedSum:
    """The distribution of the composed loss S, weighted by exp(theta S) and normalised, on one FFT window.

    `masses[i]` is the mass of the sum (first + i) * step.
    """

    def __init__(self, composition: Composition, theta: float) -> None:
        self.composition, self.theta, self.step = composition, theta, composition.step
        self.log_scale = composition.log_mgf(theta)
        tilted = [(grid, grid.tilted(theta), m) for grid, m in composition.pairs]
        # The relative error of each tilted mass, and of each factor of the scale.
        self.log_slack = sum(composition.counts) * 16 * UNIT_ROUNDOFF * (2 + theta * composition.largest_loss)

        first, last = self._window(tilted)
        size = 1 << max(10, (last - first).bit_length())
        self.first = first
        self.masses, self.error = _compose(tilted, size, first)
        self._sums = (first + np.arange(size)) * self.step

    def _window(self, tilted: list[tuple[LossGrid, Array, int]]) -> tuple[int, int]:
        """First and last index of a window that misses at most `MISSING` of the tilted sum on each side."""
        mean = variance = 0.0
        lowest = highest = 0
        for grid, masses, m in tilted:
            centre = _dot(masses, grid.losses)
            mean += m * centre
            variance += m * _dot(masses, (grid.losses - centre) ** 2)
            lowest += m * grid.first
            highest += m * (grid.first + len(masses) - 1)
        log_inverse = -math.log(MISSING)
        guess = math.sqrt(2 * log_inverse / variance) if variance > 0 else 1.0
        above, below = (
            self._chernoff(sign, log_inverse, guess) if variance > 0 else abs(mean) for sign in (1, -1)
        )
        return max(lowest, math.floor(-below / self.step)), min(highest, math.ceil(above / self.step))

    def _chernoff(self, sign: int, log_inverse: float, guess: float) -> float:
        """A bound b with P(sign S >= b) <= exp(-log_inverse) under the tilted law."""

        def bound(phi: float) -> float:
            rise = self.composition.log_mgf(self.theta + sign * phi) - self.log_scale
            return (rise + log_inverse) / phi

        return bound(_argmin(bound, guess))

    def _weighted(self, eps: float) -> float:
        """E over the tilted sum of (1 - exp(eps - S))_+ exp(-theta (S - eps)), plus all mass that the window misses."""
        start = max(0, math.floor(eps / self.step) - self.first)
        excess = self._sums[start:] - eps
        keep = excess > 0
        excess, masses = excess[keep], self.masses[start:][keep]
        weight = -np.expm1(-excess) * np.exp(-self.theta * excess)
        peak = math.exp(self.theta * math.log(self.theta / (1 + self.theta))) / (1 + self.theta)
        value = _dot(masses, weight) * (1 + 1e-12)
        return value + MISSING * peak + self.error * _norm(weight)

    def log_delta(self, eps: float) -> float:
        """The logarithm of `delta`."""
        finite = math.log(self._weighted(eps)) + self.log_scale - self.theta * eps + self.log_slack
        return float(np.logaddexp(finite, math.log(self.composition.infinite)))

    def delta(self, eps: float) -> float:
        """delta(eps) of the dominating distribution, rounded up; the biases `factor` and `shift` are not included."""
        return math.exp(min(self.log_delta(eps), 1.0))


def _compose(tilted: list[tuple[LossGrid, Array, int]], size: int, first: int) -> tuple[Array, float]:
    """Masses of the sum on a circle of `size` cells that is cut before `first`, and their error in the 2-norm."""
    transform_error = 16 * UNIT_ROUNDOFF * math.log2(size)
    log_spectrum = np.zeros(size // 2 + 1, dtype=np.complex128)
    log_bound = np.zeros(size // 2 + 1)
    relative = np.zeros(size // 2 + 1)
    offset = 0
    for grid, masses, m in tilted:
        folded = np.pad(masses, (0, -len(masses) % size)).reshape(-1, size).sum(axis=0)
        spectrum = np.fft.rfft(folded)
        error = transform_error * math.sqrt(size) * _norm(folded) + 1e-300
        magnitude = np.abs(spectrum)
        log_spectrum += m * np.log(spectrum + 1e-300)
        log_bound += m * np.log(magnitude + error)
        # The m-th power of a coefficient has m times its relative error, plus the error of m ln F in the exponential.
        relative += m * (error / (magnitude + error) + 32 * UNIT_ROUNDOFF)
        offset += m * grid.first
    kept = log_bound > -80
    power = np.zeros_like(log_spectrum)
    power[kept] = np.exp(log_spectrum[kept])
    bound = np.exp(log_bound) * np.where(kept, relative, 1.0)
    composed = np.fft.irfft(power, size)
    error_norm = math.sqrt(2) * _norm(bound) / math.sqrt(size)
    error_norm += transform_error * (_norm(composed) + error_norm)
    return np.roll(composed, (offset - first) % size), error_norm


def _dot(a: Array, b: Array) -> float:
    """Sum of products by numpy's pairwise sum, which unlike BLAS is the same on any number of threads."""
    return float(np.sum(a * b))


def _norm(a: Array) -> float:
    return math.sqrt(_dot(a, a))


def _variance(grid: LossGrid) -> float:
    total = float(np.sum(grid.masses))
    mean = _dot(grid.masses, grid.losses) / total
    return _dot(grid.masses, (grid.losses - mean) ** 2) / total


def _argmin(function: Callable[[float], float], guess: float) -> float:
    """A positive argument near `guess` such that a unimodal function is close to its minimum."""
    log_guess = math.log(guess)
    return math.exp(minimum(lambda x: function(math.exp(x)), log_guess - 3.0, log_guess + 3.0, atol=1e-3))
