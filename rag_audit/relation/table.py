"""The tree over a static embedder's table. Proofs of A1 open its rows (docs/relation.md, "Commitments").

The arity is 8. A leaf is the list hash of a row's wide elements under a tag of its own; a node is Poseidon(8). The
hashes have different widths, so a node can never be read as a leaf. A wide element separates its 25 components by 10
bits, so up to 64 rows can be added without unpacking a row.
"""

from __future__ import annotations

from collections.abc import Sequence

from rag_audit._internal.errors import EncodingError
from rag_audit.relation.poseidon import hash_list, permute
from rag_audit.relation.tags import TAG_TABLE
from rag_audit.relation.vectors import NIBBLE_OFFSET

ARITY = 8
SLOTS = 25
SLOT_BITS = 10
MAX_ROWS = 64
"""Maximum rows that may be added without a carry: 64 * 15 < 2^10."""


def wide_row(row: Sequence[int]) -> list[int]:
    """A row's components + 8, 25 to an element, 10 bits each, least significant first; 0 after the last."""
    return [
        sum((int(v) + NIBBLE_OFFSET) << SLOT_BITS * j for j, v in enumerate(row[start : start + SLOTS]))
        for start in range(0, len(row), SLOTS)
    ]


def leaf(row: Sequence[int]) -> int:
    """The leaf of a row: HL of the tag and the wide row."""
    return hash_list(TAG_TABLE, wide_row(row))


def node(children: Sequence[int]) -> int:
    """An inner node: Poseidon(8) of its eight children."""
    return permute([0, *children])[0]


def tree_depth(rows: int) -> int:
    """The depth of the smallest tree with places for so many rows and a zero row."""
    depth = 1
    while ARITY**depth <= rows:
        depth += 1
    return depth


class TableTree:
    """A tree of depth `depth` over rows; places after the last row contain zero rows.

    :param rows: at most 8^depth - 1 of them, so that there is a zero row
    :raises EncodingError: too many rows
    """

    def __init__(self, rows: Sequence[Sequence[int]], depth: int) -> None:
        places = ARITY**depth
        if not 0 < len(rows) < places:
            raise EncodingError(
                "the table does not fit its tree", expected=f"1..{places - 1} rows", actual=len(rows)
            )
        empty = leaf([0] * len(rows[0]))
        self.levels = [[*map(leaf, rows), *[empty] * (places - len(rows))]]
        # Equal groups of eight children (the empty part) are hashed once.
        for _ in range(depth):
            below = self.levels[-1]
            eights = [tuple(below[i : i + ARITY]) for i in range(0, len(below), ARITY)]
            known = {eight: node(eight) for eight in set(eights)}
            self.levels.append([known[eight] for eight in eights])

    @property
    def root(self) -> int:
        """The root of the tree. The commitment contains this root."""
        return self.levels[-1][0]

    def path(self, index: int) -> list[list[int]]:
        """The eight children of each node on the way from row `index` to the root, lowest first."""
        nodes = []
        for level in self.levels[:-1]:
            index -= index % ARITY
            nodes.append(level[index : index + ARITY])
            index //= ARITY
        return nodes
