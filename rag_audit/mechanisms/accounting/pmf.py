"""One query's mechanism: the exact distribution of its noise and of its privacy loss.

A query releases u_i + z_i for every position, with u_i in 0..R and z_i = sum of g_c x_c (docs/relation.md, "Noise").
Adding, removing or replacing one document moves one u_i by at most R. The privacy of a query is therefore the
difficulty of distinguishing z from z + s for the worst s in -R..R. All later steps (the order, the top K) are
post-processing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from rag_audit._internal.errors import PolicyError
from rag_audit.relation.noise import (
    BASE_SIGMA,
    MASS_BITS,
    MAX_GAINS,
    MAX_MAGNITUDE,
    base_pmf,
    check_gains,
)

Array = npt.NDArray[np.float64]

UNIT_ROUNDOFF = 2.0**-53
INFINITE_LOSS_SHARE = 0.01
"""The share of delta_policy that infinite losses may take (docs/relation.md, "Noise")."""

SLICE_BIAS = 2.0**-52
"""A query's share of the sampler's bias, in epsilon and in log delta (docs/relation.md, "Noise")."""
PMF_ROUNDING = 2 * MAX_GAINS * (2 * MAX_MAGNITUDE + 1) * UNIT_ROUNDOFF
"""Bound on the relative error of `Mechanism.pmf`: each convolution sums up to 255 positive terms.

The same for any number of gains, so that more noise is never charged more.
"""


@dataclass(frozen=True)
class Bias:
    """The correction that one query adds to a bound computed only from `Mechanism.pmf` and the shift R.

    If the computed pair is (eps, delta)-DP then m real queries are (eps + m shift, delta exp(m factor))-DP. The terms
    are the sampler's slices, the rounding of the pmf in float64, and the pmf's distance from being unimodal;
    unimodality would make the shift R the worst one (docs/accounting.md, "Worst shift").
    """

    factor: float
    shift: float


@dataclass(frozen=True)
class Mechanism:
    """The noise mechanism of a policy: its gains and lattice size.

    :param gains: g_1 = 1, g_{c+1} in 1..8 g_c, at most six
    :param lattice: R, the number of score steps and the sensitivity: a power of two
    :raises PolicyError: the gains break the smoothness rule, or R is not a power of two or is beyond the support
    """

    gains: tuple[int, ...]
    lattice: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "gains", check_gain_tuple(self.gains))
        lattice = self.lattice
        if (
            isinstance(lattice, bool)
            or not isinstance(lattice, int)
            or lattice < 1
            or lattice & (lattice - 1)
        ):
            raise PolicyError(
                "the lattice is not a power of two",
                field="lattice",
                expected="1, 2, 4, ..",
                actual=repr(lattice),
            )
        if lattice > 2 * self.half_support:
            raise PolicyError(
                "the lattice exceeds the support of the noise: one query reveals the document with certainty",
                field="lattice",
                expected=f"well below {2 * self.half_support} with gains {list(self.gains)}",
                actual=lattice,
                hint=f"R = {largest_power_of_two(self.half_support // 8)} with these gains, or one more gain",
            )

    @property
    def half_support(self) -> int:
        """The largest |z|: the noise is in -half_support..half_support."""
        return MAX_MAGNITUDE * sum(self.gains)

    @property
    def sigma(self) -> float:
        """Nominal standard deviation of z, in lattice steps: 16 sqrt(sum g^2)."""
        return BASE_SIGMA * math.sqrt(sum(g * g for g in self.gains))

    @property
    def sigma_over_delta(self) -> float:
        """sigma / R, the noise multiplier of one query."""
        return self.sigma / self.lattice

    @property
    def pmf(self) -> Array:
        """P(z) for z = -half_support..half_support, float64, read-only; its relative error is part of `bias`."""
        return _noise_pmf(self.gains).pmf

    @property
    def bias(self) -> Bias:
        """The correction that a query adds to bounds made from `pmf` and the shift R."""
        return Bias(
            factor=2 * PMF_ROUNDING + SLICE_BIAS,
            shift=_noise_pmf(self.gains).excess + 4 * PMF_ROUNDING + SLICE_BIAS,
        )

    @property
    def outside_mass(self) -> float:
        """The probability of an infinite privacy loss in one query: that z + R falls where z never does."""
        return float(np.sum(self.pmf[: self.lattice])) * (1 + PMF_ROUNDING)

    def fits(self, compositions: int, delta: float) -> bool:
        """Whether the infinite losses of that many queries stay within their share of delta."""
        return compositions * self.outside_mass <= INFINITE_LOSS_SHARE * delta

    def losses(self) -> tuple[Array, Array]:
        """Finite privacy losses ln p(z)/p(z - R) and their probabilities p(z), in the order of z.

        p is the least function above the pmf that is non-increasing in |z|. It is the pmf itself, except for five and
        six gains: there it exceeds the pmf by parts in 10^10 around 0.
        """
        majorant = _noise_pmf(self.gains).majorant
        upper, lower = majorant[self.lattice :], majorant[: -self.lattice]
        losses = upper / lower
        return np.log(losses, out=losses), upper

    def delta_at(self, eps: float) -> float:
        """The least delta such that one real query is (eps, delta)-DP, by a direct sum that includes the biases."""
        bias = self.bias
        losses, masses = self.losses()
        eps -= bias.shift
        above = losses > eps
        hockey_stick = float(np.sum(-np.expm1(eps - losses[above]) * masses[above]))
        return (self.outside_mass + hockey_stick) * math.exp(bias.factor) * (1 + 1e-12)


def check_gain_tuple(gains: Sequence[int]) -> tuple[int, ...]:
    """The gains as a tuple of integers that satisfy the smoothness rule.

    >>> check_gain_tuple([1, 8, 64])
    (1, 8, 64)

    :raises PolicyError: the gains are not a sequence of integers, or break the rule of docs/relation.md, "Noise"
    """
    if isinstance(gains, str | bytes) or not isinstance(gains, Sequence):
        raise PolicyError("the gains are not a list of integers", field="gains", actual=repr(gains))
    for c, gain in enumerate(gains):
        if isinstance(gain, bool) or not isinstance(gain, int):
            raise PolicyError("a gain is not an integer", field=f"gains[{c}]", actual=repr(gain))
    check_gains(gains)
    return tuple(gains)


def largest_power_of_two(limit: int) -> int:
    """The largest power of two that is at most `limit` (at least 1).

    >>> largest_power_of_two(200)
    128
    """
    return 1 << (max(1, limit).bit_length() - 1)


@dataclass(frozen=True, eq=False)
class _Noise:
    """The pmf of z, its least symmetric unimodal majorant, and the logarithm of the largest ratio of the two."""

    pmf: Array
    majorant: Array
    excess: float


@lru_cache(maxsize=2)
def _noise_pmf(gains: tuple[int, ...]) -> _Noise:
    """The pmf of z by direct convolution and never by FFT, since privacy losses depend on its tails down to 1e-70."""
    masses = base_pmf()
    base = [masses[x] / 2.0**MASS_BITS for x in range(-MAX_MAGNITUDE, MAX_MAGNITUDE + 1)]
    pmf = np.ones(1)
    for gain in gains:
        wider = np.zeros(len(pmf) + 2 * MAX_MAGNITUDE * gain)
        for x, mass in enumerate(base):
            wider[x * gain : x * gain + len(pmf)] += mass * pmf
        pmf = wider
    outward = pmf[len(pmf) // 2 :]
    pmf[: len(outward)] = outward[::-1]  # symmetric by construction; now to the last bit as well
    pmf.setflags(write=False)
    falling = np.maximum.accumulate(outward[::-1])
    excess = math.log(float(np.max(falling[::-1] / outward)))
    if excess == 0:
        return _Noise(pmf, pmf, 0.0)
    majorant = np.concatenate([falling, falling[-2::-1]])
    majorant.setflags(write=False)
    return _Noise(pmf, majorant, excess)
