"""Integer scores and their lattice (docs/relation.md, "Scores").

Clamping to the policy's window makes the sensitivity exactly R lattice units in one coordinate, for
adding, removing and replacing one document: an empty position's score is 0 <= lo, so it quantises to 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from rag_audit._internal.errors import PolicyError

MAX_COMPONENT = 7
"""The largest component that encoders produce; -8 has a nibble (0) and can be packed, but is never produced."""
MAX_LATTICE = 1 << 24
"""Largest R: more than twice the range of any admitted noise, so that no score arithmetic comes near r."""
MAX_DIMENSION = 4096
"""Maximum components of a vector."""
LARGEST_SCORE = MAX_COMPONENT**2
"""The largest score of one component: committed components are in -7..7."""
LARGEST_PRODUCT = 64
"""The largest product of two components in -8..7. Every score of d components is in -56 d..64 d."""


def dot(q: Sequence[int], e: Sequence[int]) -> int:
    """The inner product <q, e>.

    :raises ValueError: different dimensions
    """
    return sum(int(a) * int(b) for a, b in zip(q, e, strict=True))


def _round_half_up(x: Fraction) -> int:
    return (2 * x.numerator + x.denominator) // (2 * x.denominator)


@dataclass(frozen=True)
class ScoreWindow:
    """The policy's score window lo..hi in raw units and its lattice 0..R.

    :raises PolicyError: lo and hi violate 0 <= lo < hi, or R is not a power of two up to 2^24
    """

    lo: int
    hi: int
    lattice: int

    def __post_init__(self) -> None:
        if not 0 <= self.lo < self.hi:
            raise PolicyError(
                "the score window is not well-formed",
                field="window",
                expected="0 <= lo < hi",
                actual=f"{self.lo}..{self.hi}",
            )
        if not 1 <= self.lattice <= MAX_LATTICE or self.lattice & (self.lattice - 1):
            raise PolicyError(
                "the score lattice is not well-formed",
                field="lattice",
                expected=f"a power of two up to {MAX_LATTICE}",
                actual=self.lattice,
            )

    def check_reach(self, dimension: int) -> None:
        """Refuse a score window with an upper end above every score of this dimension.

        A score of d components is at most 64 d. A score window beyond that maximum is meaningless, and it would make
        arithmetic that is designed for reachable scores (the circuits' slots) unsound.

        :raises PolicyError: the dimension is not in 1..4096, or hi is above 64 d
        """
        if not 1 <= dimension <= MAX_DIMENSION:
            raise PolicyError(
                "dimension out of range", field="dimension", expected=f"1..{MAX_DIMENSION}", actual=dimension
            )
        if self.hi > LARGEST_PRODUCT * dimension:
            raise PolicyError(
                "the score window is beyond every score",
                field="hi",
                expected=f"at most {LARGEST_PRODUCT * dimension}, the largest score of {dimension} components",
                actual=self.hi,
            )

    @classmethod
    def for_scale(cls, scale: Fraction, lattice: int) -> ScoreWindow:
        """The default window of a quantiser scale: 0.1 B to 0.8 B, B = round((7/scale)^2)."""
        base = _round_half_up((MAX_COMPONENT / scale) ** 2)
        return cls(_round_half_up(Fraction(base, 10)), _round_half_up(Fraction(8 * base, 10)), lattice)

    def quantise(self, s: int) -> int:
        """The lattice score u in 0..R of a raw score: the lattice point nearest to the clamped score, ties upwards."""
        width = self.hi - self.lo
        clamped = min(max(s, self.lo), self.hi)
        return ((clamped - self.lo) * self.lattice + width // 2) // width
