"""Multilinear extensions (docs/scan/session.md). Coordinate 0 belongs to an index's lowest bit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rag_audit.relation.field import MODULUS

HALF = (MODULUS + 1) // 2


def log2(count: int) -> int:
    """The least k with count <= 2^k."""
    return (count - 1).bit_length()


def powers(x: int, count: int) -> list[int]:
    result = [1]
    while len(result) < count:
        result.append(result[-1] * x % MODULUS)
    return result[:count]


def dot(left: Sequence[int], right: Sequence[int]) -> int:
    return sum(a * b for a, b in zip(left, right, strict=True)) % MODULUS


def eq_at(point: Sequence[int], index: int) -> int:
    weight = 1
    for i, x in enumerate(point):
        weight = weight * (x if index >> i & 1 else 1 - x) % MODULUS
    return weight


def eq(a: Sequence[int], b: Sequence[int]) -> int:
    weight = 1
    for x, y in zip(a, b, strict=True):
        weight = weight * (x * y + (1 - x) * (1 - y)) % MODULUS
    return weight


def eq_table(point: Sequence[int], count: int | None = None) -> list[int]:
    """eq(point, x) for x = 0, 1, .., the first `count` of them."""
    table = [1]
    for x in reversed(point):
        table = [w for value in table for w in (value * (1 - x) % MODULUS, value * x % MODULUS)]
    return table[:count]


def below(a: Sequence[int], m: int) -> int:
    """The sum of eq(a, x) over x < m."""
    return _prefixes(a, m)[0]


def numbers(a: Sequence[int], m: int) -> int:
    """The sum of x eq(a, x) over x < m."""
    return _prefixes(a, m)[1]


def _prefixes(a: Sequence[int], m: int) -> tuple[int, int]:
    # m's bits from the top: where one is 1, the numbers that agree so far and have 0 there are all below m.
    weight, count, of_numbers = 1, 0, 0
    for i in range(len(a), -1, -1):
        x = a[i] if i < len(a) else 0
        if m >> i & 1:
            start = m >> i + 1 << i + 1
            inside = start + sum(y << j for j, y in enumerate(a[:i]))
            count += weight * (1 - x)
            of_numbers += weight * (1 - x) * inside
        weight = weight * (x if m >> i & 1 else 1 - x) % MODULUS
    return count % MODULUS, of_numbers % MODULUS


@dataclass(frozen=True)
class Functional:
    """W(a; c_0, .., c_(s-1); m): entry s i + o weighs eq(a, i) c_o for i < m."""

    point: tuple[int, ...]
    coefficients: tuple[int, ...]
    count: int

    def at(self, p: Sequence[int]) -> int:
        """The extension at p. i's bits are read from the lowest, with the carry of s i + o as state."""
        stride, m = len(self.coefficients), self.count
        states = {(o, False): c % MODULUS for o, c in enumerate(self.coefficients)}
        for j in range(max(len(self.point) + 1, len(p)) + stride.bit_length() + 1):
            after: dict[tuple[int, bool], int] = {}
            for (carry, less), weight in states.items():
                for bit in (0, 1) if j < len(self.point) else (0,):
                    value, limit = carry + stride * bit, m >> j & 1
                    factor = (self.point[j] if bit else 1 - self.point[j]) if j < len(self.point) else 1
                    if j < len(p):
                        factor *= p[j] if value & 1 else 1 - p[j]
                    elif value & 1:
                        continue
                    key = value >> 1, bit < limit or (bit == limit and less)
                    after[key] = (after.get(key, 0) + weight * factor) % MODULUS
            states = after
        return sum(weight for (_, less), weight in states.items() if less) % MODULUS


@dataclass(frozen=True)
class Entries:
    """Some entries, each with its weight; every other entry has the weight 0."""

    weights: tuple[tuple[int, int], ...]

    def at(self, p: Sequence[int]) -> int:
        """The extension at p."""
        return sum(weight * eq_at(p, entry) for entry, weight in self.weights) % MODULUS


def evaluation(point: Sequence[int], count: int | None = None) -> Functional:
    """The evaluation at a point, of a column's first `count` entries."""
    whole = 1 << len(point)
    return Functional(tuple(point), (1,), whole if count is None else count)
