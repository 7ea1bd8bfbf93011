"""A vector's components of its tokens' sum: claims 4 and 5 of `docs/scan/embed.md`; thresholds of near queries: claim 2
of the run over records in `docs/scan/coalition.md`."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from math import isqrt

P = 65_521
CLAIMS = frozenset({"steps", "lower", "upper"})
NEAR = frozenset({"range of the distance", "range of the slack"})
ROOT = frozenset({"range of the root", "left under it", "lacking", "not zero"})
SHIFT = 4
"""w is the root of 2^4 times the sum of squares."""


def true_step(e: int, root: int, factor: int, maximum: int) -> int:
    """The component, as `docs/relation.md` has it."""
    step = min(maximum, (2 * abs(e) * factor + root) // (2 * root))
    return step if e >= 0 else -step


def accepted_and_false(
    maximum: int, reach: int, factor: int, without: frozenset[str] = frozenset()
) -> Iterator[tuple[int, int, int]]:
    """Sums, roots and components that are accepted, where the component is another.

    :param maximum: the largest component
    :param reach: the largest sum
    """
    scaled = 2 * factor * reach
    roots = range(1, 2 * reach)
    limb = 1 << (2 * roots[-1] + scaled).bit_length()
    assert 2 * (limb + scaled + (2 * maximum + 1) * roots[-1]) < P
    rows = [
        (v, (v == -maximum) * scaled - (v <= 0), (v == maximum) * scaled - (v >= 0))
        for v in range(-maximum, maximum + 1)
    ]
    if "steps" in without:
        rows = [
            (v, a, b) for v in range(-maximum - 2, maximum + 3) for a, b in product((-1, 0, scaled), repeat=2)
        ]
    for e, root, (v, lower_slack, upper_slack) in product(range(-reach, reach + 1), roots, rows):
        lower = (2 * factor * e - (2 * v - 1) * root + lower_slack) % P
        upper = ((2 * v + 1) * root - 2 * factor * e + upper_slack) % P
        if ("lower" not in without and lower >= limb) or ("upper" not in without and upper >= limb):
            continue
        if v != true_step(e, root, factor, maximum):
            yield e, root, v


def roots_accepted_and_false(
    p: int, largest: int, without: frozenset[str] = frozenset()
) -> Iterator[tuple[int, int]]:
    """Sums of squares and roots that are accepted, where the root is another or the sum is 0."""
    bits = (2 * isqrt(largest << SHIFT)).bit_length()
    assert (1 << 2 * bits) + (2 << bits) < p
    limb = 1 << bits
    for square, root in product(range(largest + 1), range(p)):
        minimum = 0 if "not zero" in without else 1
        if root < minimum or ("range of the root" not in without and root > limb):
            continue
        left = ((square << SHIFT) - root * root) % p
        lacking = (2 * root - left) % p
        if ("left under it" not in without and left >= limb) or (
            "lacking" not in without and lacking >= limb
        ):
            continue
        if root != isqrt(square << SHIFT) or square == 0:
            yield square, root


def near_and_accepted(
    dimension: int, maximum: int, theta: tuple[int, int], without: frozenset[str] = frozenset()
) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Vectors within the angle of the threshold with accepted classes and an accepted distance, without an excuse."""
    p, q = theta
    largest = dimension * maximum * maximum
    excuse = range(P if "range of the distance" in without else 4 * largest + 1)
    slack = range(P if "range of the slack" in without else 2 * largest * largest)
    bounds = [0] + [(q * t) ** 2 // (p * p) + 1 for t in range(1, 2 * largest)]
    vectors = list(product(range(-maximum, maximum + 1), repeat=dimension))
    for a, b in product(vectors, vectors):
        dot = sum(x * y for x, y in zip(a, b, strict=True))
        norms = sum(x * x for x in a) * sum(y * y for y in b)
        near = dot > 0 and (q * dot) ** 2 >= p * p * norms
        for t, bound in enumerate(bounds):
            if (norms - bound) % P in slack and (t - dot) % P in excuse and near:
                yield a, b
