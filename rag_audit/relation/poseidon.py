"""Poseidon over BN254 with x^5 and 8 full rounds: circomlib's, at t = 17 and, for the nodes of the table's tree, 9.

Grassi, Khovratovich, Rechberger, Roy and Schofnegger, "Poseidon: A New Hash Function for Zero-Knowledge Proof Systems"
(USENIX Security 2021). Round constants and matrix come from the Grain LFSR of its appendices E and F. The rounds are
the plain ones of section 2.3, so that a reader can compare this file with the paper. The native core computes the same
permutation with sparse partial rounds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import islice
from operator import mul

from rag_audit.relation.field import MODULUS
from rag_audit.relation.tags import LIST_RUN, RATE, TAG_LIST, WIDTH

FULL_ROUNDS = 8
PARTIAL_ROUNDS = {9: 63, 17: 68}
"""Partial rounds by width; the tree over the embedder's table (`table`) uses the narrow width."""
_FIELD_BITS = 254
_WARM_UP = 160
_STRIDE = 18
"""Raw bits generated at once: the LFSR's highest tap is 62 of 80, so no bit depends on the 17 before it."""


def _lfsr(width: int) -> Iterator[str]:
    """The Grain LFSR's raw bits from its first, as '0' and '1' (appendix E)."""
    descriptor = (
        (1, 2),  # a prime field
        (0, 4),  # S-box x^alpha
        (_FIELD_BITS, 12),
        (width, 12),
        (FULL_ROUNDS, 10),
        (PARTIAL_ROUNDS[width], 10),
        (2**30 - 1, 30),
    )
    bits = "".join(f"{value:0{size}b}" for value, size in descriptor)
    state = int(bits[::-1], 2)
    while True:
        fresh = state ^ state >> 13 ^ state >> 23 ^ state >> 38 ^ state >> 51 ^ state >> 62
        fresh &= (1 << _STRIDE) - 1
        state = state >> _STRIDE | fresh << 80 - _STRIDE
        yield from f"{fresh:0{_STRIDE}b}"[::-1]


def _grain(width: int) -> Iterator[int]:
    """Uniform 254-bit integers. The generator outputs the second bit of each pair of raw bits if the first bit is 1,
    and drops the pair otherwise."""
    raw = islice(_lfsr(width), _WARM_UP, None)
    kept = (second for first, second in zip(raw, raw, strict=False) if first == "1")
    while True:
        yield int("".join(islice(kept, _FIELD_BITS)), 2)


@cache
def parameters(width: int = WIDTH) -> tuple[tuple[tuple[int, ...], ...], tuple[tuple[int, ...], ...]]:
    """The round constants, t for each round, and the t x t MDS matrix, drawn in this order from one stream.

    The matrix is the Cauchy matrix 1 / (x_i + y_j) of the first 2 t distinct values; the paper's tests
    against invariant subspaces pass for it (circomlib uses the same one).
    """
    stream = _grain(width)
    canonical = (x for x in stream if x < MODULUS)
    rounds = FULL_ROUNDS + PARTIAL_ROUNDS[width]
    constants = tuple(tuple(islice(canonical, width)) for _ in range(rounds))
    while True:
        points = [x % MODULUS for x in islice(stream, 2 * width)]
        xs, ys = points[:width], points[width:]
        if len(set(points)) == 2 * width and all((x + y) % MODULUS for x in xs for y in ys):
            return constants, tuple(tuple(pow(x + y, -1, MODULUS) for y in ys) for x in xs)


def permute(state: Sequence[int]) -> list[int]:
    """The Poseidon permutation of 9 or 17 field elements.

    :raises ValueError: the number of elements is wrong
    """
    width = len(state)
    if width not in PARTIAL_ROUNDS:
        raise ValueError(f"a Poseidon state has {', '.join(map(str, PARTIAL_ROUNDS))} elements, not {width}")
    constants, matrix = parameters(width)
    words = list(state)
    for number, row in enumerate(constants):
        words = [(w + c) % MODULUS for w, c in zip(words, row, strict=True)]
        partial = FULL_ROUNDS // 2 <= number < FULL_ROUNDS // 2 + PARTIAL_ROUNDS[width]
        boxes = 1 if partial else width
        words[:boxes] = [pow(w, 5, MODULUS) for w in words[:boxes]]
        words = [sum(map(mul, line, words)) % MODULUS for line in matrix]
    return words


def hash_elements(*xs: int) -> int:
    """H of the specification: circomlib's Poseidon(16) of the elements, padded with zeros.

    :raises ValueError: more than 16 elements
    """
    if len(xs) > RATE:
        raise ValueError(f"at most {RATE} elements are hashed at once, not {len(xs)}")
    return permute([0, *xs, *[0] * (RATE - len(xs))])[0]


def hash_list(tag: int, xs: Sequence[int]) -> int:
    """HL of the specification: h = H(10, tag, len), then h = H(h, run) for each run of 15 elements."""
    h = hash_elements(TAG_LIST, tag, len(xs))
    for start in range(0, len(xs), LIST_RUN):
        h = hash_elements(h, *xs[start : start + LIST_RUN])
    return h
