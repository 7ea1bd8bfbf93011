"""Cheating provers of `documents`. Each carries one lie through a full assignment with consistent commitments; the
untouched circuit must break at the constraint meant for that lie and nowhere else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from rag_audit.relation.document_table import pack_rows
from rag_audit.relation.field import MODULUS
from rag_audit.relation.poseidon import hash_list
from rag_audit.relation.tags import TAG_ROWS
from tests.circuits.documents_case import TINY, DocumentsCase, of_rows, small_chain
from tests.circuits.forger import Patch, assert_accepted, forge, literal_system
from tests.circuits.forger import assert_caught as judged
from tests.malicious.provers import lies

pytestmark = pytest.mark.circuits

LIBRARY = "lib/documents.circom"
ROWS = TINY.rows
assert_caught = partial(judged, TINY)


@pytest.fixture(scope="module")
def first() -> DocumentsCase:
    return small_chain()[0]


@pytest.fixture(scope="module")
def case() -> DocumentsCase:
    return small_chain()[1]


def forged(case: DocumentsCase, *patches: Patch, **overrides: Any) -> list[int]:
    return forge(TINY, {**case.inputs(), **overrides}, *patches)


def flipped(bits: tuple[bool, ...], place: int) -> tuple[bool, ...]:
    return tuple(bit ^ (i == place) for i, bit in enumerate(bits))


def with_bits(case: DocumentsCase, kept: tuple[bool, ...]) -> DocumentsCase:
    """The case with these bits of its rows, and with the sample that they give."""
    return replace(case, table=replace(case.table, kept=kept))


def with_carried(
    case: DocumentsCase,
    carried: Sequence[int],
    *,
    moved: Sequence[tuple[int, int]] = (),
    unused: bool = False,
) -> DocumentsCase:
    """The case whose rows after the two fresh ones are these rows of the table before.

    :param moved: the layers and places of the moves, if no honest moves give these rows
    :param unused: whether the table before has no positions
    """
    before, table = case.before, case.table
    assert before is not None
    names = (*table.names[:2], *(before.names[row] for row in carried))
    kept = (*table.kept[:2], *(before.kept[row] for row in carried))
    move = [0] * (3 * ROWS)
    for layer, place in moved:
        move[layer * ROWS + place] = 1
    return replace(
        case,
        carried=tuple(carried),
        table=replace(table, names=names, kept=kept),
        before=replace(before, row=(ROWS,) * 8) if unused else before,
        moved=tuple(move) if moved else None,
    )


def test_the_honest_witness_of_the_forger_is_accepted(case: DocumentsCase, first: DocumentsCase) -> None:
    assert_accepted(TINY, forged(case))
    assert_accepted(TINY, forged(first))


@lies("documents")
def test_a_lie_breaks_its_constraint(lie: Patch, breaks: set[str], case: DocumentsCase) -> None:
    assert_caught(forged(case, lie), breaks)


# -- positions -----------------------------------------------------------------------------------------------------


def test_a_row_has_one_position_too_many(case: DocumentsCase) -> None:
    assert_caught(forged(of_rows(case, (2, 2, 2, 3, ROWS, ROWS, ROWS, ROWS))), {"above[].below"})


def test_a_row_has_more_positions_than_its_number(case: DocumentsCase) -> None:
    """The number is at most that of the policy, and one position is not counted."""
    more = of_rows(case, (2, 2, 2, 3, ROWS, ROWS, ROWS, ROWS))
    counts = tuple(min(count, 2) for count in more.table.positions)
    assert_caught(forged(replace(more, table=replace(more.table, counts=counts))), {"positions.count[]"})


def test_a_position_without_a_row_is_in_the_sample(case: DocumentsCase) -> None:
    """It takes the place of a position of a row that is in the sample, so that the row's sum stays the same."""
    row = next(r for r in (2, 3, 0, 1) if case.table.kept[r] and r in case.table.row)
    place, empty = case.table.row.index(row), case.table.row.index(ROWS)
    sample = tuple(flipped(flipped(tuple(case.sampled()), place), empty))
    slots = [r + 8 if r < ROWS else 0 for r in case.table.row]
    slots[empty] = row  # the bits of the row, and 0 for a position without a row
    [honest] = pack_rows(ROWS, case.table.row)
    element = sum(slot << 4 * i for i, slot in enumerate(slots))
    assert element == honest + (row << 4 * empty)
    c_table = hash_list(TAG_ROWS, [case.table.rows_salt, case.table.names_hash, element])
    cheat = replace(case, sample=sample)
    assert_caught(forged(cheat, row=[element], c_table=c_table), {"positions.sample[]"})


def test_a_position_has_another_bit_than_its_row(case: DocumentsCase) -> None:
    cheat = replace(case, sample=tuple(flipped(tuple(case.sampled()), case.table.row.index(2))))
    assert_caught(forged(cheat), {"positions.count[]"})


def test_a_position_has_a_row_beyond_the_table(case: DocumentsCase) -> None:
    """Row 5 of 5, a second form of row 4."""
    cheat = of_rows(with_carried(case, (0, 1, 3)), (2, ROWS, 3, 4, 2, ROWS, 1, ROWS))
    [honest] = pack_rows(ROWS, cheat.table.row)
    element = honest + (1 << 4 * 3)
    c_table = hash_list(TAG_ROWS, [cheat.table.rows_salt, cheat.table.names_hash, element])
    assert_caught(forged(cheat, row=[element], c_table=c_table), {"positions.bit[][]"})


def test_a_row_without_a_name_has_positions(case: DocumentsCase) -> None:
    assert case.table.names[4] == 0
    assert_caught(forged(of_rows(case, (2, ROWS, 3, 4, 2, ROWS, 1, ROWS))), {"named[].out"})


# -- fresh rows ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("row", [0, 1])
def test_a_fresh_bit_is_not_the_draw(case: DocumentsCase, row: int) -> None:
    assert_caught(forged(with_bits(case, flipped(case.table.kept, row))), {"carried.kept[]"})


def test_a_row_beyond_the_fresh_ones_draws_a_bit(case: DocumentsCase) -> None:
    """An old document takes a third draw in place of its bit."""
    before, table = case.before, case.table
    assert before is not None
    # A row that is not carried was without positions, so only the number of fresh rows is false.
    cheat = replace(case, before=replace(before, row=tuple(ROWS if r == 0 else r for r in before.row)))
    lie = (LIBRARY, "fresh[r] <-- r < drawn ? 1 : 0;", "fresh[r] <-- r < drawn + 1 ? 1 : 0;")
    kept = (*table.kept[:2], case.coins()[2], *table.kept[3:])
    assert_caught(forged(with_bits(cheat, kept), lie), {"first.drawn"})


def test_a_first_window_carries_rows(case: DocumentsCase) -> None:
    """Without a table before, rows with bits of the provider's choice would pass as carried ones."""
    assert_caught(forged(case, continued=0, c_previous=0), {"drawn", "continued"})


# -- carried rows --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("row", [2, 3, 4])
def test_a_carried_bit_is_flipped(case: DocumentsCase, row: int) -> None:
    assert_caught(forged(with_bits(case, flipped(case.table.kept, row))), {"carried.kept[]"})


@pytest.mark.parametrize("row", [2, 4])
def test_a_carried_row_has_another_name(case: DocumentsCase, row: int) -> None:
    names = (*case.table.names[:row], 77, *case.table.names[row + 1 :])
    assert_caught(forged(replace(case, table=replace(case.table, names=names))), {"carried.name[]"})


def test_two_carried_rows_are_one_row_of_the_table_before(case: DocumentsCase) -> None:
    """Row 2 stays at place 2, and a move in the first layer brings it to place 3 too."""
    cheat = with_carried(case, (2, 2, 4), moved=[(0, 3)], unused=True)
    assert_caught(forged(cheat), {"carried.less[].below"})


def test_carried_rows_in_another_order(case: DocumentsCase) -> None:
    """Row 2 stays at place 2, and row 1 moves over it: places must increase, or a third row could be either again."""
    cheat = with_carried(case, (2, 1, 4), moved=[(1, 3)], unused=True)
    assert_caught(forged(cheat), {"carried.less[].below"})


def test_a_refreshed_row_was_in_use(case: DocumentsCase) -> None:
    """Row 1 has a position and gives way: its document would draw a second bit."""
    assert_caught(forged(with_carried(case, (0, 3, 4))), {"carried.remaining[]"})


def test_a_row_is_half_moved(case: DocumentsCase) -> None:
    """A move that is no bit mixes two rows. Twice row 3 less row 4 has the place 2, and a name of neither row."""
    cheat = with_carried(case, (0, 1, 2), moved=[(1, 2), (1, 3)], unused=True)
    before = cheat.before
    assert before is not None
    mixed = (2 * before.names[3] - before.names[4]) % MODULUS
    no_bits = (False,) * 3
    table = replace(
        cheat.table, names=(*cheat.table.names[:4], mixed), kept=(*cheat.table.kept[:2], *no_bits)
    )
    move = list(cheat.moved or ())
    move[4] = 2  # layer 0, place 4
    cheat = replace(cheat, before=replace(before, kept=(False,) * ROWS), table=table, moved=tuple(move))
    assert_caught(forged(cheat), {"carried.moved.move[][]"})


def test_the_table_before_is_another_one(case: DocumentsCase) -> None:
    """The bits of a table that the header does not name."""
    before = case.before
    assert before is not None
    other = replace(before, kept=flipped(before.kept, 0))
    cheat = with_bits(replace(case, before=other), flipped(case.table.kept, 2))
    assert_caught(forged(cheat, c_previous=before.c_carried), {"c_previous"})
    renamed = replace(before, names=(77, *before.names[1:]))
    table = replace(case.table, names=(*case.table.names[:2], 77, *case.table.names[3:]))
    assert_caught(
        forged(replace(case, before=renamed, table=table), c_previous=before.c_carried), {"c_previous"}
    )


# -- commitments ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["c_seed", "c_table", "c_carried", "c_kept"])
def test_a_commitment_to_other_values(case: DocumentsCase, name: str) -> None:
    other: Any = {**case.inputs()}
    assert_caught(forged(case, **{name: other[name] + 1}), {name})


def test_public_values_of_another_entry(case: DocumentsCase) -> None:
    witness = forged(case)
    witness[literal_system(TINY).wires["ctx"]] += 1
    assert_caught(witness, {"ctx"})
