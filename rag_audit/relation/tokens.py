"""Packing of tokens into field elements (docs/relation.md, "Vectors")."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rag_audit._internal.errors import EncodingError

TOKEN_BITS = 15
TOKENS_PER_ELEMENT = 16
BITS_PER_ELEMENT = 252
"""Number of bits of a field element that are used for packed values."""


def pack_tokens(tokens: Iterable[int]) -> list[int]:
    """Tokens of 15 bits packed 16 in a field element, least significant first, padded with 0.

    :raises EncodingError: a token outside 0..32767
    """
    words = list(tokens)
    for place, token in enumerate(words):
        if not 0 <= token < 1 << TOKEN_BITS:
            raise EncodingError(
                "a token is out of range", field=f"token {place}", expected="0..32767", actual=token
            )
    return pack(words, TOKEN_BITS, TOKENS_PER_ELEMENT)


def pack(digits: Sequence[int], bits: int, per_element: int) -> list[int]:
    """Digits of the given number of bits, packed into field elements, least significant first."""
    return [
        sum(digit << bits * j for j, digit in enumerate(digits[start : start + per_element]))
        for start in range(0, len(digits), per_element)
    ]
