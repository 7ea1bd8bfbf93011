"""A document table as the circuit `documents` commits to it (docs/relation.md, "Commitments").

Each function gives the tag and the elements of a list. HL of the list is the commitment, by the reference
(`poseidon.hash_list`) or the native core (`native.hash_list`). Slots enter whole: an element holds as many as 252 bits
permit, least significant first, and is padded with 0.
"""

from __future__ import annotations

from collections.abc import Sequence

from rag_audit._internal.errors import EncodingError
from rag_audit.relation.tags import TAG_CARRIED, TAG_NAMES, TAG_OPENED, TAG_ROWS
from rag_audit.relation.tokens import BITS_PER_ELEMENT, pack

Listed = tuple[int, list[int]]
"""The tag and the elements of a list that is to be hashed."""


def row_bits(rows: int) -> int:
    """The bits of a row's number, at least 1.

    >>> [row_bits(rows) for rows in (1, 2, 3, 64, 65)]
    [1, 1, 2, 6, 7]
    """
    return max(1, (rows - 1).bit_length())


def count_bits(capacity: int) -> int:
    """The bits of a number of positions in 0..capacity.

    >>> [count_bits(capacity) for capacity in (8, 63, 64)]
    [4, 6, 7]
    """
    return capacity.bit_length()


def pack_rows(rows: int, row_of_position: Sequence[int]) -> list[int]:
    """The row of each position, packed: its bits and then 1, or 0 for a position without a row.

    :param rows: D
    :param row_of_position: D for a position without a row
    :raises EncodingError: a number is outside 0..D
    """
    bits = row_bits(rows)
    for place, row in enumerate(row_of_position):
        if not 0 <= row <= rows:
            raise EncodingError(
                "a row is out of range", field=f"position {place}", expected=f"0..{rows}", actual=row
            )
    slots = [row + (1 << bits) if row < rows else 0 for row in row_of_position]
    return _pack(slots, bits + 1)


def pack_marks(capacity: int, kept: Sequence[bool], positions: Sequence[int]) -> list[int]:
    """The bit and the number of positions of each row, packed: first the bit, then the number.

    :raises EncodingError: a number is outside 0..capacity
    """
    for row, count in enumerate(positions):
        if not 0 <= count <= capacity:
            raise EncodingError(
                "a number of positions is out of range",
                field=f"row {row}",
                expected=f"0..{capacity}",
                actual=count,
            )
    slots = [int(bit) + 2 * count for bit, count in zip(kept, positions, strict=True)]
    return _pack(slots, count_bits(capacity) + 1)


def _pack(slots: Sequence[int], bits: int) -> list[int]:
    return pack(slots, bits, BITS_PER_ELEMENT // bits)


def names_list(salt: int, names: Sequence[int]) -> Listed:
    """The list behind the commitment to the names of all rows.

    :param names: 0 for a row without a name
    """
    return TAG_NAMES, [salt, *names]


def rows_list(salt: int, names: int, rows: int, row_of_position: Sequence[int]) -> Listed:
    """The list behind C_table, which a window header names.

    :param names: the commitment to the names
    """
    return TAG_ROWS, [salt, names, *pack_rows(rows, row_of_position)]


def carried_list(
    salt: int, names: int, capacity: int, kept: Sequence[bool], positions: Sequence[int]
) -> Listed:
    """The list behind C_carried, which the next window's header names.

    :param names: the commitment to the names
    """
    return TAG_CARRIED, [salt, names, *pack_marks(capacity, kept, positions)]


def opened_list(documents: Sequence[int], names: Sequence[int]) -> Listed:
    """The public list of opened positions behind the circuit `names`.

    :param documents: the number of each position's document, shape (capacity,); D for a position that is not opened
    :param names: the name of each document, shape (D,); 0 after the last document
    """
    return TAG_OPENED, [*pack_rows(len(names), documents), *names]
