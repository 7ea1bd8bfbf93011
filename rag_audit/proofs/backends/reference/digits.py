"""Digits of several variables, which are bound in one round (docs/scan/sumcheck.md, "Rounds over digits")."""

from __future__ import annotations

from collections.abc import Sequence

from rag_audit.proofs.backends.reference.extensions import dot, eq_table
from rag_audit.relation.field import MODULUS

Digit = Sequence[int]
"""The weights of its values 0, .., 2^v - 1."""


def variables(digit: Digit) -> int:
    return (len(digit) - 1).bit_length()


def of(point: Sequence[int]) -> list[Digit]:
    """Each coordinate as a digit."""
    return [[(1 - t) % MODULUS, t] for t in point]


def regroup(digits: Sequence[Digit], sizes: Sequence[int]) -> list[Digit]:
    """Neighbours joined to digits with the given numbers of variables, the lowest first."""
    left, result = list(digits), []
    for size in sizes:
        joined: Digit = [1]
        while variables(joined) < size:
            high = left.pop(0)
            joined = [low * k % MODULUS for k in high for low in joined]
        if variables(joined) != size:
            raise ArithmeticError("a digit is never cut")
        result.append(joined)
    return result


def from_the_top(count: int, size: int) -> list[int]:
    """This number of variables in digits of one size; the lowest digit has the remainder."""
    return [count % size] * (count % size > 0) + [size] * (count // size)


def bound(values: int, s: int) -> Digit:
    """L_0(s), .., L_(n-1)(s): of degree n - 1, L_k is 1 at k and 0 at the other values."""
    weights = []
    for k in range(values):
        above, below = 1, 1
        for j in range(values):
            if j != k:
                above, below = above * (s - j) % MODULUS, below * (k - j) % MODULUS
        weights.append(above * pow(below, -1, MODULUS) % MODULUS)
    return weights


def moment(digit: Digit, power: int) -> int:
    """The sum of weight times k^power."""
    return dot(digit, [k**power for k in range(len(digit))])


def extension(digits: Sequence[Digit], point: Sequence[int]) -> int:
    """The extension of the digits' weights at a point of coordinates."""
    value, start = 1, 0
    for digit in digits:
        size = variables(digit)
        value = value * dot(digit, eq_table(point[start : start + size])) % MODULUS
        start += size
    return value
