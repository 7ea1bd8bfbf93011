"""The table tree: paths lead to the root, zero rows fill it, and wide rows add without carries."""

from __future__ import annotations

import random

import pytest

from rag_audit.errors import EncodingError
from rag_audit.relation.poseidon import permute
from rag_audit.relation.table import MAX_ROWS, SLOT_BITS, SLOTS, TableTree, leaf, node, wide_row

RNG = random.Random(3)
ROWS = [[RNG.randint(-8, 7) for _ in range(256)] for _ in range(20)]


@pytest.fixture(scope="module")
def tree() -> TableTree:
    return TableTree(ROWS, 2)


@pytest.mark.parametrize("index", [0, 7, 8, 19, 20, 63])
def test_path_leads_to_the_root(tree: TableTree, index: int) -> None:
    current = leaf(ROWS[index] if index < len(ROWS) else [0] * 256)
    for eight in tree.path(index):
        assert eight[index % 8] == current
        current = node(eight)
        index //= 8
    assert current == tree.root


def test_every_row_is_bound(tree: TableTree) -> None:
    changed = [list(row) for row in ROWS]
    changed[19][255] ^= 1
    assert TableTree(changed, 2).root != tree.root


def test_sixty_four_largest_rows_do_not_carry() -> None:
    total = [MAX_ROWS * element for element in wide_row([7] * 256)]
    slots = [total[j // SLOTS] >> SLOT_BITS * (j % SLOTS) & (1 << SLOT_BITS) - 1 for j in range(256)]
    assert slots == [MAX_ROWS * 15] * 256
    assert total[-1] >> SLOT_BITS * (256 % SLOTS) == 0


def test_table_without_a_zero_row_is_refused() -> None:
    with pytest.raises(EncodingError):
        TableTree(ROWS[:8], 1)


@pytest.mark.parametrize("width", [8, 10, 16, 18])
def test_other_widths_are_refused(width: int) -> None:
    with pytest.raises(ValueError, match="Poseidon state"):
        permute([0] * width)
