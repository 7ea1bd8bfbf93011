"""The draws from a slot's key: the noise of every position, or its Bernoulli bits (docs/relation.md, "Noise" and
"Coins").

A noise draw uses five bytes of a word of the stream. A Bernoulli bit uses the same five bytes as an integer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from rag_audit.relation.bernoulli import check_probability
from rag_audit.relation.noise import DRAW_BYTES, alias_table, check_gains
from rag_audit.relation.poseidon import permute
from rag_audit.relation.tags import TAG_NOISE_BLOCK, WIDTH

WORD_BYTES = 25
DRAWS_PER_BLOCK = (WIDTH - 1) * WORD_BYTES // DRAW_BYTES


def stream_bytes(kappa: int) -> Iterator[bytes]:
    """The five bytes of each draw under a key: five draws from the low 200 bits of each of a block's words 1..16."""
    block = 0
    while True:
        words = permute([0, kappa, block, TAG_NOISE_BLOCK, *[0] * (WIDTH - 4)])
        for word in words[1:]:
            data = (word & (1 << 8 * WORD_BYTES) - 1).to_bytes(WORD_BYTES, "little")
            for start in range(0, WORD_BYTES, DRAW_BYTES):
                yield data[start : start + DRAW_BYTES]
        block += 1


def _base_draw(data: bytes) -> int:
    """A draw of the base distribution from its five bytes: bin and sign, then the threshold bits, little endian."""
    magnitude = alias_table().magnitude(data[0] & 0x7F, int.from_bytes(data[1:], "little"))
    return -magnitude if data[0] & 0x80 else magnitude


def draw(kappa: int, positions: int, gains: Sequence[int]) -> list[int]:
    """The noise z of every position: z_i = sum over c of g_c x_(i m + c), m gains.

    :param kappa: the slot's key (`commitments.noise_key`)
    :param positions: how many positions, the capacity
    :raises PolicyError: the gains are not well-formed
    """
    check_gains(gains)
    draws = map(_base_draw, islice(stream_bytes(kappa), positions * len(gains)))
    return [
        sum(g * x for g, x in zip(gains, row, strict=True)) for row in zip(*[draws] * len(gains), strict=True)
    ]


def uniforms(kappa: int, count: int) -> list[int]:
    """The first draws under a key, each uniform in 0..2^40 - 1.

    :param kappa: the key of a slot (`commitments.noise_key`)
    """
    return [int.from_bytes(draw, "little") for draw in islice(stream_bytes(kappa), count)]


def bernoulli_bits(kappa: int, count: int, bound: int) -> list[bool]:
    """Whether each of the first draws is below the bound; draw i belongs to position i, empty positions included.

    :raises PolicyError: the bound is not in 1..2^40 - 1
    """
    check_probability(bound, "coin")
    return [draw < bound for draw in uniforms(kappa, count)]
