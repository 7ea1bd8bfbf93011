"""Which positions an account is handed by randomised response: claims 2 to 5 of `docs/scan/randomized-response.md`."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

P = 97
CLAIMS = frozenset(
    {"winners", "held", "bits of the end", "bits of the room", "room", "end of the list", "all places"}
)


def winner(chance: int, relevant: int, kept: int, held: int) -> int:
    """Whether a position wins, as the sumcheck has it."""
    return (chance + (1 - chance) * relevant * kept * (1 - held)) % P


def winners_that_are_none() -> list[tuple[int, ...]]:
    """Bits with a result other than the result of `docs/relation.md`."""
    return [
        bits for bits in product((0, 1), repeat=4)
        if winner(*bits) != int(bool(bits[0]) or (bool(bits[1]) and bool(bits[2]) and not bits[3]))
    ]  # fmt: skip


def first(wins: tuple[int, ...], maximum: int) -> list[int]:
    """The true list, as bits."""
    return [int(bool(win) and sum(wins[:i]) < maximum) for i, win in enumerate(wins)]


def within(end: list[int], places: int) -> list[int]:
    """The marks up to a place with these bits: what the recursion of claim 3 extends to at each place."""
    marks = []
    for place in range(places):
        x = 1
        for k, bit in enumerate(end):
            p = place >> k & 1
            x = ((1 - p) * x + (1 - p) * bit + (2 * p - 1) * bit * x) % P
        marks.append(x if place >> len(end) == 0 else 0)
    return marks


def accepted_and_false(
    positions: int, maximum: int, without: frozenset[str] = frozenset()
) -> Iterator[tuple[tuple[int, ...], list[int]]]:
    """Winners and a list that is accepted for them and is not theirs."""
    n = (positions - 1).bit_length()
    places = 2 << n
    """A row has more room than there are positions."""
    bits = range(P) if "bits of the end" in without else range(2)
    room = range(P) if "bits of the room" in without else range(1 << maximum.bit_length())
    for wins, end in product(product((0, 1), repeat=positions), product(bits, repeat=n)):
        marks = within(list(end), places)
        beyond = [0] * (places - positions)
        told = [win * mark % P for win, mark in zip(wins, marks, strict=False)] + beyond
        others = [told]
        if "all places" in without:
            others.append([*told[:positions], 1, *beyond[1:]])
        if "winners" in without:
            others += [[*bits, *beyond] for bits in product((0, 1), repeat=positions)]
        last = sum(bit << k for k, bit in enumerate(end))
        for listed in others:
            lacking = (maximum - sum(listed)) % P
            if "room" not in without and lacking not in room:
                continue
            if "end of the list" not in without and lacking * (last - (positions - 1)) % P:
                continue
            if listed != first(wins, maximum) + beyond:
                yield wins, listed


def disclosed_and_false(without: frozenset[str] = frozenset()) -> Iterator[tuple[int, int, int]]:
    """Accepted values of disclosed before, listed and disclosed after in which `after` is not `before or listed`."""
    for before, listed, after in product((0, 1), (0, 1), range(P)):
        if "held" not in without and (before + (1 - before) * listed - after) % P:
            continue
        if after != (before or listed):
            yield before, listed, after
