"""Like `native`, for the commitments and keys that only their makers compute: of seeds, vectors, lists and disclosed
sets."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rag_audit.relation.field import to_bytes
from rag_audit.relation.native import (
    Elements,
    hash_elements,
    hash_elements_list,
    hash_list,
    topk_elements,
)
from rag_audit.relation.tags import TAG_NOISE, TAG_SAMPLE, TAG_SEED, TAG_VECTOR
from rag_audit.relation.vectors import (
    NIBBLE_BITS,
    NIBBLE_OFFSET,
    NIBBLES_PER_ELEMENT,
    pack_bits,
    pack_nibbles,
)

_HEX = bytes.maketrans(bytes(range(16)), b"0123456789abcdef")


def seed_commitment(s0: int, s1: int) -> int:
    """C_seed, the commitment to the window's seed."""
    return hash_elements(TAG_SEED, s0, s1)


def noise_key(s0: int, s1: int, beacon: int, slot: int) -> int:
    """kappa, the key of a slot's noise; `beacon` is already the field element."""
    return hash_elements(TAG_NOISE, s0, s1, beacon, slot)


def topk_commitment(salt: int, positions: Sequence[int]) -> int:
    """htopk, the commitment to the listed positions."""
    return hash_elements_list(*topk_elements(salt, positions))


def vector_elements(salt: int, vector: Iterable[int]) -> Elements:
    """The tag and elements that cq hashes.

    :raises EncodingError: a component is outside -8..7
    """
    return TAG_VECTOR, [to_bytes(salt), *_nibbles(list(vector))]


def vector_commitment(salt: int, vector: Iterable[int]) -> int:
    """cq, the commitment to a query vector.

    :raises EncodingError: a component is outside -8..7
    """
    return hash_elements_list(*vector_elements(salt, vector))


def _nibbles(vector: Sequence[int]) -> list[bytes]:
    """`pack_nibbles`, as bytes: 63 nibbles, the last one first, are the hexadecimal digits of an element."""
    try:
        shifted = bytes([component + NIBBLE_OFFSET for component in vector])
    except ValueError:
        shifted = b"\xff"
    if max(shifted, default=0) >= 1 << NIBBLE_BITS:
        return [*map(to_bytes, pack_nibbles(vector))]  # which names the component
    digits = shifted.translate(_HEX).decode()
    digits += f"{NIBBLE_OFFSET:x}" * (-len(digits) % NIBBLES_PER_ELEMENT)
    return [
        bytes.fromhex("0" + digits[first : first + NIBBLES_PER_ELEMENT][::-1])
        for first in range(0, len(digits), NIBBLES_PER_ELEMENT)
    ]


def sample_commitment(salt: int, sampled: Sequence[bool]) -> int:
    """C_kept as a circuit commits to it."""
    return hash_list(TAG_SAMPLE, [salt, *pack_bits(sampled)])
