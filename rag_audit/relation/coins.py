"""Coins from a slot's stream: which positions are kept, and which are listed by chance (docs/relation.md, "Coins").

The stream is the noise's. A draw of the noise is five bytes of a word, a coin is the same five bytes as an integer.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from rag_audit._internal.errors import EncodingError, PolicyError
from rag_audit.relation.noise import DRAW_BYTES, stream_bytes

COIN_BITS = 8 * DRAW_BYTES
COIN_RANGE = 1 << COIN_BITS


def check_coin(value: object, field: str) -> int:
    """A probability as a policy writes it, an integer over 2^40, neither 0 nor 1.

    :raises PolicyError: it is not an integer in 1..2^40 - 1
    """
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value < COIN_RANGE:
        raise PolicyError(
            "not a probability over 2^40 strictly between 0 and 1",
            field=field,
            expected=f"1..{COIN_RANGE - 1}",
            found=repr(value),
        )
    return value


def uniforms(kappa: int, count: int) -> list[int]:
    """The first draws under a key, each uniform in 0..2^40 - 1.

    :param kappa: the key of a slot (`commitments.noise_key`)
    """
    return [int.from_bytes(draw, "little") for draw in islice(stream_bytes(kappa), count)]


def coins(kappa: int, count: int, bound: int) -> list[bool]:
    """Whether each of the first draws is below the bound; draw i belongs to position i, empty positions included.

    :raises PolicyError: the bound is not in 1..2^40 - 1
    """
    check_coin(bound, "coin")
    return [draw < bound for draw in uniforms(kappa, count)]


def winners(
    relevant: Sequence[bool], kept: Sequence[bool], held: Sequence[bool], chance: Sequence[bool]
) -> list[bool]:
    """The positions that may be listed: by chance, or relevant, kept and not yet held by the account.

    :raises EncodingError: the numbers of positions differ
    """
    if not len(relevant) == len(kept) == len(held) == len(chance):
        raise EncodingError(
            "the numbers of positions differ",
            field="winners",
            expected=len(relevant),
            found=[len(kept), len(held), len(chance)],
        )
    return [c or (r and k and not h) for r, k, h, c in zip(relevant, kept, held, chance, strict=True)]


def first_winners(winning: Sequence[bool], most: int) -> list[bool]:
    """The listed positions: the first winners by position, at most as many as the policy lists.

    :raises PolicyError: most is not in 1..positions
    """
    if not 1 <= most <= len(winning):
        raise PolicyError(
            "the length of lists is out of range",
            field="listed_max",
            expected=f"1..{len(winning)}",
            found=most,
        )
    left, listed = most, []
    for bit in winning:
        listed.append(bit and left > 0)
        left -= bit
    return listed
