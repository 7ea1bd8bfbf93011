"""Which positions are listed, and in which order: claims 2, 3, 4 and 6 of `docs/scan/query.md`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise, product

P = 97
RANGE = 16
"""A limb: differences of keys are below it."""
STEPS = 2
"""The largest y."""
CLAIMS = frozenset({
    "compared", "no other mark", "listed rows", "order", "range of distances", "range of the order", "kept",
})  # fmt: skip


def key(y: int, position: int, places: int) -> int:
    """Positions by larger y, then by smaller number."""
    return (places * y + places - 1 - position) % P


def first(ys: list[int], listed: int) -> list[int]:
    """The true list."""
    return sorted(range(len(ys)), key=lambda position: (-ys[position], position))[:listed]


def marks(ys: list[int], minimum: int, places: int, without: frozenset[str]) -> list[set[int]]:
    """For each place, every b for which some distance satisfies the claims about the place."""
    allowed = []
    for place in range(places):
        inside = place < len(ys)
        some = set()
        for b in range(P):
            if "no other mark" not in without and b * (b - inside) % P:
                continue
            distance = (
                ((2 * b - 1) * (key(ys[place], place, places) - minimum) - (1 - b)) % P if inside else 0
            )
            if inside and not {"compared", "range of distances"} & without and distance >= RANGE:
                continue
            some.add(b)
        allowed.append(some)
    return allowed


def lists(
    ys: list[int], listed: int, places: int, without: frozenset[str]
) -> Iterator[list[tuple[int, int]]]:
    """Every list of positions and noised scores that is strictly falling in the claimed sense."""
    rows = list(enumerate(ys))
    if "listed rows" in without:
        rows = list(product(range(places), range(STEPS + 2)))
    for chosen in product(rows, repeat=listed):
        keys = [key(y, position, places) for position, y in chosen]
        gaps = [(a - b - 1) % P for a, b in pairwise(keys)]
        if not {"order", "range of the order"} & without and any(gap >= RANGE for gap in gaps):
            continue
        yield list(chosen)


def accepted_and_false(
    positions: int, listed: int, without: frozenset[str] = frozenset()
) -> Iterator[tuple[object, ...]]:
    """Noised scores y with a list that is accepted for them and is not theirs."""
    places = 1 << (positions - 1).bit_length()
    assert places * STEPS + places <= RANGE
    assert 2 * RANGE < P
    for ys in product(range(STEPS + 1), repeat=positions):
        for chosen in lists(list(ys), listed, places, without):
            minimum = key(chosen[-1][1], chosen[-1][0], places)
            allowed = marks(list(ys), minimum, places, without)
            counts = Counter(chosen)
            # The multiset of what is listed is the table under the marks; a mark is an element, a count one modulo P.
            if "listed rows" in without:
                held = all(allowed)
            else:
                held = all(
                    (counts[(place, ys[place])] if place < positions else 0) % P in allowed[place]
                    for place in range(positions)
                ) and all(allowed)
            if held and [position for position, _ in chosen] != first(list(ys), listed):
                yield (ys, chosen)


def sampled(without: frozenset[str] = frozenset()) -> Iterator[tuple[int, int, int]]:
    """Accepted sample bits, scores and scores of positions in which the last is not the product of the first two."""
    for kept, score, scores in product((0, 1), range(STEPS + 1), range(P)):
        if "kept" not in without and (kept * score - scores) % P:
            continue
        if scores != kept * score:
            yield kept, score, scores
