"""The document table: documents keep their rows and bits in a chain of windows, and each window draws the same number."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Set
from dataclasses import replace
from random import Random

import numpy as np
import pytest

from rag_audit.commit.document_table import (
    DocumentSizeError,
    DocumentTable,
    Placement,
    TableCapacityError,
    place_documents,
    positions_by_document,
)
from rag_audit.errors import PolicyError
from rag_audit.mechanisms.base import MAX_ROWS, TableShape
from rag_audit.models.names import document_name

SHAPE = TableShape(rows=12, positions_per_document=3, fresh_rows=4)


def placed(
    documents: Mapping[str, int],
    previous: DocumentTable | None = None,
    *,
    shape: TableShape = SHAPE,
    seed: int = 1,
    given_up: Set[str] = frozenset(),
) -> Placement:
    """Place documents, and draw the bits of the new rows."""
    rng = Random(seed)
    result = place_documents(shape, documents, previous, rng, given_up)
    bits = np.array([rng.getrandbits(1) for _ in range(result.table.drawn)], np.int8)
    return replace(result, table=result.table.with_bits(bits))


def check_step(previous: DocumentTable, table: DocumentTable) -> None:
    """What the proof of a table shows: the carried rows have the name and the bit of different rows of the previous table,
    and each row that is replaced had no position there."""
    assert len(table.rows) == table.shape.rows and table.drawn == table.shape.fresh_rows
    old = [row for row, carried in zip(previous.rows, table.carried, strict=True) if carried]
    new = table.rows[table.drawn :]
    assert Counter((row.name, row.sampled) for row in old) == Counter((row.name, row.sampled) for row in new)
    assert not any(
        row.positions for row, carried in zip(previous.rows, table.carried, strict=True) if not carried
    )


def test_a_document_keeps_its_row_and_bit_over_three_windows_and_each_window_draws_the_same_number() -> None:
    first = placed({"a": 1, "b": 3, "c": 2}).table
    assert first.drawn == 12 and first.carried == ()
    second = placed({"b": 2, "a": 1, "d": 1}, first, seed=2).table
    third = placed({"c": 3, "a": 2, "d": 1}, second, seed=3).table
    check_step(first, second)
    check_step(second, third)

    def bit(table: DocumentTable, key: str) -> tuple[bytes, bool | None]:
        row = table.rows[table.row_of_document()[key]]
        return row.name, row.sampled

    assert bit(first, "a") == bit(second, "a") == bit(third, "a")
    assert bit(second, "d") == bit(third, "d")
    assert bit(first, "c") == bit(third, "c"), (
        "a row outlives the absence of its document while other rows are free"
    )


@pytest.mark.parametrize("documents", [{}, {"a": 1}, {"a": 1, "new": 1, "newer": 3}])
def test_the_numbers_of_drawn_and_carried_rows_do_not_depend_on_the_documents(
    documents: dict[str, int],
) -> None:
    table = placed(documents, placed({"a": 1}).table).table
    assert (table.drawn, sum(table.carried), len(table.rows)) == (4, 8, 12)


def test_documents_beyond_the_fresh_rows_wait_and_enter_the_next_window() -> None:
    first = placed({"a": 1}).table
    many = {"a": 1, **{f"n{number}": 1 for number in range(6)}}
    second = placed(many, first, seed=2)
    assert second.waiting == ("n4", "n5") and not second.independent
    third = placed(many, second.table, seed=3)
    assert third.waiting == () and set(many) == {row.key for row in third.table.rows if row.positions}
    check_step(second.table, third.table)


def test_rows_in_use_are_never_replaced_in_a_full_table() -> None:
    full = {f"d{number}": 1 for number in range(SHAPE.documents)}
    table = placed(full).table
    for seed in range(20):
        following = placed(full, table, seed=seed)
        assert following.waiting == ()
        check_step(table, following.table)
        table = following.table


def test_a_table_with_too_few_unused_rows_names_the_documents_that_lose_theirs() -> None:
    full = {f"d{number}": 1 for number in range(SHAPE.documents)}
    without = {key: 1 for key in full if key != "d0"}
    first = placed(full).table
    # A table with x that has too few rows without a document; no table of `place_documents` has.
    second = placed(without, first, seed=2).table
    number = next(n for n, row in enumerate(second.rows) if row.key is None)
    crowded = replace(second.rows[number], key="x", positions=1)
    second = replace(second, rows=(*second.rows[:number], crowded, *second.rows[number + 1 :]))
    placement = placed(without | {"x": 1}, second, seed=3)
    third = placement.table
    assert "d0" not in third.row_of_document(), "all four rows without positions are replaced"
    assert placement.lost == ("d0",) and not placement.independent
    placement = placed(without | {"d0": 1}, third, seed=4)
    assert placement.waiting == ("d0",), "x keeps its row, so there is no row for d0"
    check_step(third, placement.table)


def test_a_new_document_waits_if_it_would_take_a_row_that_the_next_window_replaces() -> None:
    shape = TableShape(rows=8, positions_per_document=2, fresh_rows=2)
    first = placed({key: 1 for key in "abcdef"}, shape=shape)
    assert first.full, "as many documents as the chain has room for"
    second = placed({key: 1 for key in "abcdx"}, first.table, shape=shape)
    assert second.waiting == ("x",) and second.full and not second.independent
    third = placed({key: 1 for key in "abcdef"}, second.table, shape=shape)
    assert third.independent, "e and f return to their rows"


def test_the_row_of_a_document_that_was_given_up_has_room_for_another() -> None:
    shape = TableShape(rows=8, positions_per_document=2, fresh_rows=2)
    first = placed({key: 1 for key in "abcdef"}, shape=shape).table
    second = placed({key: 1 for key in "abcdex"}, first, shape=shape)
    assert second.waiting == ("x",) and second.absent == ["f"]
    given = placed({key: 1 for key in "abcdex"}, first, shape=shape, given_up={"f"})
    assert given.independent and given.absent == [] and "x" in given.table.row_of_document()
    check_step(first, given.table)
    later = given.table
    for seed in range(9):  # f had positions before; its row is free from now on
        following = placed({key: 1 for key in "abcdex"}, later, shape=shape, seed=seed, given_up={"f"})
        assert following.independent
        check_step(later, following.table)
        later = following.table
    assert "f" not in later.row_of_document(), "windows replace the row"


def test_a_document_that_was_given_up_may_not_return() -> None:
    first = placed({"a": 1, "b": 1}).table
    for previous in (None, first):
        with pytest.raises(PolicyError, match="given up is present") as caught:
            placed({"a": 1, "b": 1}, previous, given_up={"b"})
        assert caught.value.field == "'b'" and "another key" in str(caught.value.expected)
    # A table whose windows draw all bits has no bit to protect.
    shape = replace(SHAPE, fresh_rows=None)
    assert placed({"b": 1}, shape=shape, given_up={"b"}).independent


@pytest.mark.parametrize("seed", range(60))
def test_no_sequence_of_documents_loses_a_row_if_some_are_given_up(seed: int) -> None:
    """In every table, `fresh_rows` rows are free for the next window, and a document that may return keeps its bit."""
    rng = Random(seed)
    rows = rng.randint(2, 12)
    shape = TableShape(rows, 3, rng.randint(1, rows - 1))
    keys, table, bits = [f"d{n}" for n in range(3 * rows)], None, dict[str, tuple[bytes, bool | None]]()
    gone: set[str] = set()
    for window in range(12):
        left = [key for key in keys if key not in gone]
        chosen = rng.sample(left, rng.randint(0, min(len(left), shape.documents)))
        gone |= {key for key in left if key not in chosen and rng.random() < 0.2}
        placement = placed(
            {key: 1 for key in chosen}, table, shape=shape, seed=window, given_up=frozenset(gone)
        )
        assert placement.lost == ()
        free = sum(not row.positions and (row.key is None or row.key in gone) for row in placement.table.rows)
        assert free >= (shape.fresh_rows or 0)
        if table is not None:
            check_step(table, placement.table)
        table, known = placement.table, placement.table.row_of_document()
        for key in bits.keys() - gone:
            row = table.rows[known[key]]
            assert (row.name, row.sampled) == bits[key], "the first bit of a document is its only one"
        bits |= {row.key: (row.name, row.sampled) for row in table.rows if row.key is not None}


@pytest.mark.parametrize("seed", range(60))
def test_no_sequence_of_documents_loses_a_row(seed: int) -> None:
    rng = Random(seed)
    rows = rng.randint(2, 12)
    shape = TableShape(rows, 3, rng.randint(1, rows - 1))
    keys, table, bits = [f"d{n}" for n in range(rows + 4)], None, dict[str, tuple[bytes, bool | None]]()
    for window in range(10):
        chosen = rng.sample(keys, rng.randint(0, shape.documents))
        placement = placed({key: rng.randint(1, 3) for key in chosen}, table, shape=shape, seed=window)
        assert placement.lost == ()
        assert sum(row.key is None for row in placement.table.rows) >= (shape.fresh_rows or 0)
        present = {row.key for row in placement.table.rows if row.positions}
        assert present.isdisjoint(placement.waiting) and present | {*placement.waiting} == {*chosen}
        if table is not None:
            check_step(table, placement.table)
        table = placement.table
        for key, (name, bit) in bits.items():
            row = table.rows[table.row_of_document()[key]]
            assert (row.name, row.sampled) == (name, bit), "the first bit of a document is its only one"
        bits |= {row.key: (row.name, row.sampled) for row in table.rows if row.key is not None}


def test_unused_rows_are_replaced_before_rows_of_absent_documents() -> None:
    first = placed({"a": 1, "b": 1}).table
    for seed in range(20):
        table = placed({"a": 1}, placed({"a": 1}, first, seed=seed).table, seed=seed).table
        assert "b" in table.row_of_document()


def test_positions_get_the_rows_and_bits_of_their_documents() -> None:
    documents = ["a", "b", "b", "c", "b"]
    positions = [5, 0, 7, 2, 3]
    table = placed(positions_by_document(documents)).table
    rows = table.row_of_position(documents, positions, capacity=8)
    assert [int(rows[p]) for p in (1, 4, 6)] == [SHAPE.rows] * 3
    assert rows[0] == rows[7] == rows[3] and len({int(rows[p]) for p in (5, 0, 2)}) == 3
    sampled = table.sampled_positions(rows)
    assert [bool(sampled[p]) for p in positions] == [
        table.rows[table.row_of_document()[key]].sampled for key in documents
    ]
    assert not sampled[[1, 4, 6]].any()


def test_tables_without_fresh_rows_draw_every_bit_anew() -> None:
    shape = TableShape(rows=4, positions_per_document=1, fresh_rows=None)
    first = placed({key: 1 for key in "abcd"}, shape=shape).table
    second = placed({key: 1 for key in "abcd"}, first, shape=shape).table
    assert shape.documents == 4 and second.drawn == 4 and second.carried == ()
    assert {row.salt for row in first.rows}.isdisjoint(row.salt for row in second.rows)


def test_names_are_hidden_by_salts_and_bind_key_and_salt() -> None:
    salt = bytes(32)
    assert document_name(salt, "a") != document_name(salt, "b") != document_name(bytes([1]) * 32, "b")
    assert len({row.name for row in placed({"a": 1}).table.rows}) == SHAPE.rows


def test_a_document_above_the_limit_is_named() -> None:
    with pytest.raises(DocumentSizeError) as caught:
        placed({"a": 1, "law/statute.pdf": 4})
    assert caught.value.field == "'law/statute.pdf'" and caught.value.expected == "at most 3 positions"
    assert caught.value.actual == 4


def test_too_many_documents_are_refused() -> None:
    with pytest.raises(TableCapacityError) as caught:
        placed({f"d{number}": 1 for number in range(SHAPE.documents + 1)})
    expected = "at most 8: 12 rows (--documents), 4 of them for later documents (--fresh-rows)"
    assert caught.value.expected == expected and caught.value.actual == 9


def test_a_chain_keeps_the_numbers_of_its_table() -> None:
    with pytest.raises(PolicyError, match="another shape") as caught:
        placed({"a": 1}, placed({"a": 1}).table, shape=TableShape(12, 3, 5))
    assert caught.value.expected == "--documents 12 --positions-per-document 3 --fresh-rows 4"
    assert caught.value.actual == "--documents 12 --positions-per-document 3 --fresh-rows 5"


@pytest.mark.parametrize(
    ("rows", "size", "fresh", "name"),
    [(0, 1, 1, "rows"), (MAX_ROWS + 1, 1, 1, "rows"), (4, 0, 1, "positions_per_document"),
     (4, 1, 5, "fresh_rows"), (4, 1, 4, "fresh_rows"), (1, 1, 1, "rows"), (4, 1, 0, "fresh_rows"), (4, 1, -1, "fresh_rows")],
)  # fmt: skip
def test_numbers_out_of_range_are_refused_by_name(rows: int, size: int, fresh: int, name: str) -> None:
    with pytest.raises(PolicyError) as caught:
        TableShape(rows, size, fresh).check(1 << 24, field="documents")
    assert caught.value.field == f"documents.{name}"


def test_the_largest_table_takes_a_document_in_every_row() -> None:
    shape = TableShape(MAX_ROWS, 1, None)
    table = place_documents(shape, {str(number): 1 for number in range(MAX_ROWS)}).table
    assert len(table.row_of_document()) == MAX_ROWS
