"""Integers of the encoder: the claims of `docs/scan/feed-forward.md`, `docs/scan/attention.md`, `docs/scan/encoder-input.md`
and `docs/scan/encoder-output.md` about divisions, roots, maxima, normalisers, used places, digits of tokens and products of
weights and activations. `small_encoder` has a whole encoder."""

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
TOKEN = frozenset({"bits", "one digit", "digits", "below the vocabulary"})
OPENED = {"f": 5, "x'": 7, "x''": 11, "p": 13, "q": 17, "g'": 19}
"""Values of the columns at the end of the sumcheck "matrices": F1, x at both points, both sums of W2, and g."""
MATRICES = frozenset({*(f"column {name}" for name in OPENED), "first matrix", "second matrix", "matrices"})


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


def tokens_accepted_and_false(
    vocabulary: int, without: frozenset[str] = frozenset()
) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Tokens with two lower and two upper digits that are accepted for a used place, where the token is outside the
    vocabulary or the digits select another row than the token's.

    A row of the table has the entries 0, except 1 at its own number, so the row shows what the digits select.
    """
    values = range(P if "bits" in without else 2)
    for low, high in product(values, repeat=2):
        # The claims about sums leave the other entry of each column no choice.
        others = [((1 - low) % P, (1 - high) % P)]
        for first, upper in product(range(2), repeat=2) if "one digit" in without else others:
            if "bits" not in without and not {first, upper} <= {0, 1}:
                continue
            row = tuple(a * b % P for b in (upper, high) for a in (first, low))
            token = (low + 2 * high) % P
            for listed in range(P) if "digits" in without else [token]:
                if (vocabulary - 1 - listed) % P >= 4 and "below the vocabulary" not in without:
                    continue
                if listed >= vocabulary or row != tuple(int(k == listed) for k in range(4)):
                    yield listed, row


def products_accepted_and_false(
    d: int, nu: int, without: frozenset[str] = frozenset()
) -> Iterator[tuple[tuple[int, ...], int]]:
    """Values at the end of the sumcheck "matrices" of a feed-forward block, and values C of the sum there, that are accepted,
    where C is another than that of the columns.

    :param d: the width; h(o), the shift of the residual and the sum of eq(v_j, k) are 2, 4 and 3
    """
    h, residual, below = 2, 4, 3

    def total(first: int, second: int, again: int) -> int:
        return (first + nu * (second + residual * h * again)) % P

    def second(p: int, q: int) -> int:
        return d * p - q * below

    f, x, again, p, q, g = OPENED.values()
    true = total(f * x, second(p, q) * g, again)
    opened = (range(P) if f"column {name}" in without else [value] for name, value in OPENED.items())
    for f, x, again, p, q, g in product(*opened):
        for r_1 in range(P) if "first matrix" in without else [f * x % P]:
            for r_2 in range(P) if "second matrix" in without else [second(p, q) * g % P]:
                for claimed in range(P) if "matrices" in without else [total(r_1, r_2, again)]:
                    if claimed != true:
                        yield (f, x, again, p, q, g, r_1, r_2), claimed
