"""DGS-1: the committed-seed discrete Gaussian (docs/relation.md, "Noise").

The base distribution is the discrete Gaussian of sigma 16 (Canonne, Kamath and Steinke, "The Discrete
Gaussian for Differential Privacy", 2020) on -127..127, rounded to multiples of 2^-40 and drawn by the
alias method (Walker 1977; Vose 1991) over magnitudes, with fixed work a draw. The accountant uses the
table's exact pmf, so no claim rests on how close the table is to the ideal Gaussian.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

from rag_audit._internal.canonical import jcs
from rag_audit._internal.errors import PolicyError

NOISE_VERSION = "dgs-1"
BASE_SIGMA = 16
MAX_MAGNITUDE = 127
BINS = MAX_MAGNITUDE + 1
MASS_BITS = 40
"""Probabilities of values are multiples of 2^-40; the magnitudes share 2^39 equal parts, 2^32 in each bin."""
THRESHOLD_BITS = 32

MAX_GAINS = 6
MAX_GAIN_RATIO = 8

DRAW_BYTES = 5
"""The bytes of a word that one draw takes."""


@dataclass(frozen=True)
class AliasTable:
    """An alias table: bin j has primary value j, alias value aliases[j] and threshold thresholds[j] in 0..2^32-1."""

    thresholds: tuple[int, ...]
    aliases: tuple[int, ...]

    def magnitude(self, bin_: int, t: int) -> int:
        """The magnitude |x| of a draw, from its bin and its 32 threshold bits."""
        return bin_ if t < self.thresholds[bin_] else self.aliases[bin_]


@cache
def magnitude_masses() -> tuple[int, ...]:
    """The number of the 2^39 equal parts that each magnitude 0..127 has, so that P(+-j) = mass / 2^40 for j > 0.

    Round to nearest of 2^40 exp(-j^2/512) / sum over all integers, at least 1, the residue on 0. The
    exponentials are fixed-point integers with guard bits; that no rounding is in doubt is asserted.
    """
    bits = 512
    base, term, n = 0, 1 << bits, 0  # exp(-1/512) by its Taylor series
    while term:
        base += term if n % 2 == 0 else -term
        n += 1
        term //= 2 * BASE_SIGMA**2 * n
    # exp(-j^2/512) for growing j by (j+1)^2 = j^2 + (2j + 1); beyond 600 it is below 2^-1000.
    weights, odd, square = [1 << bits], base, base * base >> bits
    for _ in range(600):
        weights.append(weights[-1] * odd >> bits)
        odd = odd * square >> bits
    total = 2 * sum(weights) - weights[0]
    slack = 1 << bits - 400  # far above the truncation errors, far below any distance from a tie
    masses = [0]
    for weight in weights[1:BINS]:
        low, high = (((w << MASS_BITS + 1) + total) // (2 * total) for w in (weight - slack, weight + slack))
        if low != high:
            raise ArithmeticError("rounding of the noise table is in doubt")
        masses.append(max(1, low))
    masses[0] = (1 << MASS_BITS - 1) - sum(masses)
    values = [2 * masses[0], *masses[1:]]
    if any(a < b for a, b in pairwise(values)):
        raise ArithmeticError("noise table is not non-increasing in |x|")
    return tuple(masses)


@cache
def alias_table() -> AliasTable:
    """The alias table, made unique by Vose's method with stacks filled in ascending j, last in first out."""
    capacity = 1 << THRESHOLD_BITS
    left = list(magnitude_masses())
    thresholds, aliases = [0] * BINS, list(range(BINS))
    small = [j for j in range(BINS) if left[j] < capacity]
    large = [j for j in range(BINS) if left[j] >= capacity]
    while small:
        short, long = small.pop(), large.pop()
        thresholds[short], aliases[short] = left[short], long
        left[long] -= capacity - left[short]
        (small if left[long] < capacity else large).append(long)
    # What remains is exactly full: T = 0 and w = j, as initialised.
    return AliasTable(tuple(thresholds), tuple(aliases))


def table_json() -> bytes:
    """The published alias table: canonical JSON. Policies pin its SHA-256."""
    table = alias_table()
    return jcs(
        {
            "aliases": list(table.aliases),
            "base_sigma": BASE_SIGMA,
            "thresholds": list(table.thresholds),
            "version": NOISE_VERSION,
        }
    )


@cache
def table_digest() -> str:
    """SHA-256 of `table_json`, 64 lowercase hexadecimal digits."""
    return hashlib.sha256(table_json()).hexdigest()


def base_pmf() -> dict[int, int]:
    """Probabilities of the base distribution as exact numerators over 2^40, by value -127..127."""
    masses = magnitude_masses()
    return {x: masses[abs(x)] * (2 if x == 0 else 1) for x in range(-MAX_MAGNITUDE, MAX_MAGNITUDE + 1)}


def check_gains(gains: Sequence[int]) -> None:
    """Refuse gains that break the smoothness rule.

    :raises PolicyError: there are not 1 to 6 gains, g_1 is not 1, or a g_{c+1} is outside 1..8 g_c
    """
    if not 1 <= len(gains) <= MAX_GAINS:
        raise PolicyError(
            "wrong number of gains", field="gains", expected=f"1..{MAX_GAINS}", actual=len(gains)
        )
    if gains[0] != 1:
        raise PolicyError("the first gain is not 1", field="gains[0]", expected=1, actual=gains[0])
    for c, (below, gain) in enumerate(pairwise(gains), start=1):
        if not 1 <= gain <= MAX_GAIN_RATIO * below:
            raise PolicyError(
                "a gain is out of range",
                field=f"gains[{c}]",
                expected=f"1..{MAX_GAIN_RATIO * below}",
                actual=gain,
            )
