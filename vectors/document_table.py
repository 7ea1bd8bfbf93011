"""Known answers for document tables as the circuit `documents` commits to them."""

from __future__ import annotations

from typing import Any

from coins import bits, digits, element

from rag_audit.relation.document_table import carried_list, names_list, pack_marks, pack_rows, rows_list
from rag_audit.relation.field import to_hex
from rag_audit.relation.poseidon import hash_list

SIZES = ((8, 1), (8, 5), (24, 16), (64, 64))
"""Capacity and number of rows of each case."""


def document_table_vectors() -> dict[str, Any]:
    """Return the cases of `v1/document-table.json`. Bits are strings of 0 and 1 in the order of rows."""
    return {
        "tables": [_table(capacity, rows) for capacity, rows in SIZES],
        "negative": [
            {"name": "row_beyond_the_table", "rows": 5, "row_of_position": [6], "why": "5 is a position without a row"},
            {"name": "row_negative", "rows": 5, "row_of_position": [-1], "why": "rows begin at 0"},
            {"name": "more_positions_than_the_capacity", "capacity": 8, "positions": [9], "why": "at most 8"},
        ],
    }  # fmt: skip


def _table(capacity: int, rows: int) -> dict[str, Any]:
    """Return one table: some positions have no row, and every fourth row has no name and no positions."""
    label = f"table/{capacity}/{rows}"
    unnamed = [row % 4 == 3 for row in range(rows)]
    names = [0 if without else element(f"{label}/name", row) for row, without in enumerate(unnamed)]
    drawn = [element(f"{label}/row", place) % (rows + 1) for place in range(capacity)]
    row_of_position = [rows if row < rows and unnamed[row] else row for row in drawn]
    positions = [row_of_position.count(row) for row in range(rows)]
    kept = bits(f"{label}/kept", rows)
    salts = {name: element(f"{label}/salt-{name}") for name in ("names", "rows", "carried")}
    names_hash = hash_list(*names_list(salts["names"], names))
    return {
        "capacity": capacity,
        "rows": rows,
        "names": [to_hex(name) for name in names],
        "row_of_position": row_of_position,
        "kept": digits(kept),
        "salts": {name: to_hex(salt) for name, salt in salts.items()},
        "positions": positions,
        "packed_rows": [to_hex(x) for x in pack_rows(rows, row_of_position)],
        "packed_marks": [to_hex(x) for x in pack_marks(capacity, kept, positions)],
        "names_commitment": to_hex(names_hash),
        "c_table": to_hex(hash_list(*rows_list(salts["rows"], names_hash, rows, row_of_position))),
        "c_carried": to_hex(hash_list(*carried_list(salts["carried"], names_hash, capacity, kept, positions))),
    }  # fmt: skip
