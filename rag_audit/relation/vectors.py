"""Packing of int4 vectors and of bits into field elements (docs/relation.md, "Vectors" and "Coins")."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rag_audit._internal.errors import EncodingError
from rag_audit.relation.tokens import BITS_PER_ELEMENT, pack

NIBBLE_BITS = 4
NIBBLES_PER_ELEMENT = 63
NIBBLE_OFFSET = 8
"""The offset that is added to a component, and so the nibble of padding and of empty vectors."""


def pack_nibbles(values: Iterable[int]) -> list[int]:
    """Components v in -8..7 packed as nibbles v + 8, 63 in a field element, least significant first, padded with 8.

    :raises EncodingError: a component outside -8..7
    """
    nibbles = [int(v) + NIBBLE_OFFSET for v in values]
    for place, nibble in enumerate(nibbles):
        if not 0 <= nibble < 1 << NIBBLE_BITS:
            raise EncodingError(
                "a vector component is out of range",
                field=f"component {place}",
                expected="-8..7",
                actual=nibble - NIBBLE_OFFSET,
            )
    nibbles += [NIBBLE_OFFSET] * (-len(nibbles) % NIBBLES_PER_ELEMENT)
    return pack(nibbles, NIBBLE_BITS, NIBBLES_PER_ELEMENT)


def unpack_nibbles(elements: Sequence[int], count: int) -> list[int]:
    """The `count` components that `pack_nibbles` packed.

    :raises EncodingError: the number of elements is wrong, an element has more than 252 bits, or padding is not 8
    """
    needed = -(-count // NIBBLES_PER_ELEMENT)
    if len(elements) != needed:
        raise EncodingError("wrong number of packed elements", expected=needed, actual=len(elements))
    nibbles: list[int] = []
    for place, element in enumerate(elements):
        if not 0 <= element < 1 << NIBBLE_BITS * NIBBLES_PER_ELEMENT:
            raise EncodingError("a packed element has more than 252 bits", field=f"element {place}")
        nibbles += [element >> NIBBLE_BITS * j & 15 for j in range(NIBBLES_PER_ELEMENT)]
    if any(nibble != NIBBLE_OFFSET for nibble in nibbles[count:]):
        raise EncodingError("a packed vector has padding other than 8", field=f"component {count}")
    return [nibble - NIBBLE_OFFSET for nibble in nibbles[:count]]


def pack_bits(bits: Iterable[bool]) -> list[int]:
    """Bits packed 252 in a field element, least significant first, padded with 0.

    :raises EncodingError: a value is neither 0 nor 1
    """
    digits = [int(bit) for bit in bits]
    for place, digit in enumerate(digits):
        if digit not in (0, 1):
            raise EncodingError("not a bit", field=f"bit {place}", expected="0 or 1", actual=digit)
    return pack(digits, 1, BITS_PER_ELEMENT)


def unpack_bits(elements: Sequence[int], count: int) -> list[bool]:
    """The `count` bits that `pack_bits` packed.

    :raises EncodingError: the number of elements is wrong, an element has more than 252 bits, or padding is not 0
    """
    needed = -(-count // BITS_PER_ELEMENT)
    if len(elements) != needed:
        raise EncodingError("wrong number of packed elements", expected=needed, actual=len(elements))
    for place, element in enumerate(elements):
        maximum = min(BITS_PER_ELEMENT, count - place * BITS_PER_ELEMENT)
        if not 0 <= element < 1 << maximum:
            raise EncodingError(
                "a packed element has bits beyond the last position",
                field=f"element {place}",
                expected=f"{maximum} bits",
            )
    return [bool(elements[i // BITS_PER_ELEMENT] >> i % BITS_PER_ELEMENT & 1) for i in range(count)]
