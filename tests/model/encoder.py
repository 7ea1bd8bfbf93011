"""Integers of the encoder: the claims of `docs/scan/feed-forward.md`, `docs/scan/attention.md` and
`docs/scan/encoder-output.md` about divisions, roots, maxima, normalisers and used places."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise, product
from math import isqrt

P = 97
DIVISION = frozenset({"range of the remainder", "range of the quotient"})
ROOT = frozenset({"range of the root", "below", "above"})
MAXIMUM = frozenset({"range of the distance", "attained", "sum of the marks"})
NORMALISER = frozenset({"range of the quotient", "range of the remainder", "below the sum"})
USED = frozenset({"bits", "used places", "sum"})


def quotients_accepted_and_false(
    bits: int, without: frozenset[str] = frozenset()
) -> Iterator[tuple[int, int]]:
    """Sums and quotients that are accepted, where the quotient is another than the shifted sum.

    :param bits: the sum is shifted by so many; quotients are from -2 to 1
    """
    half, step = 1 << bits - 1, 1 << bits
    sums = range(-2 * step + half, 2 * step - half)
    for total, quotient in product(sums, range(-2, P - 2)):
        rest = (total + half - step * quotient) % P
        if "range of the remainder" not in without and rest >= step:
            continue
        if "range of the quotient" not in without and quotient > 1:
            continue
        if quotient != total + half >> bits:
            yield total, quotient


def roots_accepted_and_false(
    p: int, target: int, without: frozenset[str] = frozenset()
) -> Iterator[tuple[int, int]]:
    """Variances and roots that are accepted, where R is no isqrt(floor(target / V)).

    :param target: d 2^84 of the page; a variance is at most target
    """
    roots = 1 << isqrt(target).bit_length()
    slacks = 1 << (4 * target).bit_length()
    assert roots * roots * target + slacks < p
    for variance, root in product(range(target + 1), range(p)):
        if "range of the root" not in without and root >= roots:
            continue
        below = (target - root * root * variance) % p
        above = ((2 * root + 1) * variance - 1 - below) % p
        if ("below" not in without and below >= slacks) or ("above" not in without and above >= slacks):
            continue
        if variance == 0 or root != isqrt(target // variance):
            yield variance, root


def maxima_accepted_and_false(
    scores: tuple[int, ...], without: frozenset[str] = frozenset()
) -> Iterator[int]:
    """Maxima that are accepted for scores from 0 to 7, where another score is the largest. Marks of the maximum may be any
    elements of the field."""
    for maximum in range(P):
        distances = [(maximum - score) % P for score in scores]
        if "range of the distance" not in without and max(distances) >= 8:
            continue
        hot = any(
            ("sum of the marks" in without or sum(marks) % P == 1)
            and ("attained" in without or not any(m * u % P for m, u in zip(marks, distances, strict=True)))
            for marks in product(range(P), repeat=len(scores))
        )
        if hot and maximum != max(scores):
            yield maximum


def normalisers_accepted_and_false(
    p: int, target: int, without: frozenset[str] = frozenset()
) -> Iterator[tuple[int, int]]:
    """Sums and quotients N that are accepted, where N is no floor(target / L)."""
    limb = 1 << target.bit_length()
    sums = range(1, 8)
    assert limb * sums[-1] + 2 * limb < p
    for total, quotient in product(sums, range(p)):
        rest = (target - quotient * total) % p
        beyond = (total - 1 - rest) % p
        if "range of the quotient" not in without and quotient >= limb:
            continue
        if ("range of the remainder" not in without and rest >= limb) or (
            "below the sum" not in without and beyond >= limb
        ):
            continue
        if quotient != target // total:
            yield total, quotient


def sums_accepted_and_false(
    rows: tuple[int, ...], without: frozenset[str] = frozenset()
) -> Iterator[tuple[tuple[int, ...], int]]:
    """Marks and sums of rows that are accepted, where no number of first rows has that sum or the marks are others."""
    bits = range(P if "bits" in without else 2)
    for marks in product(bits, repeat=len(rows)):
        if "used places" not in without and any(a * b % P != b for a, b in pairwise(marks)):
            continue
        total = sum(m * row for m, row in zip(marks, rows, strict=True)) % P
        for claimed in range(P) if "sum" in without else [total]:
            first = sum(marks)
            true = marks == (1,) * first + (0,) * (len(rows) - first) and claimed == sum(rows[:first]) % P
            if not true:
                yield marks, claimed
