"""Document tables in circuits: `vectors/v1/document-table.json`, by the reference and by the native hashes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rag_audit.errors import EncodingError
from rag_audit.relation import native, poseidon
from rag_audit.relation.document_table import carried_list, names_list, pack_marks, pack_rows, rows_list
from rag_audit.relation.field import from_hex, to_hex

BODY: dict[str, Any] = json.loads(
    (Path(__file__).resolve().parents[2] / "vectors/v1/document-table.json").read_text()
)


@pytest.mark.parametrize("hashed", [poseidon.hash_list, native.hash_list], ids=["reference", "native"])
@pytest.mark.parametrize("case", BODY["tables"], ids=lambda case: f"{case['capacity']}, {case['rows']}")
def test_known_tables(case: dict[str, Any], hashed: Any) -> None:
    capacity, rows, row_of_position = case["capacity"], case["rows"], case["row_of_position"]
    names = [from_hex(name, field="name") for name in case["names"]]
    salts = {name: from_hex(salt, field="salt") for name, salt in case["salts"].items()}
    kept, positions = [bit == "1" for bit in case["kept"]], case["positions"]
    assert positions == [row_of_position.count(row) for row in range(rows)]
    assert [*map(to_hex, pack_rows(rows, row_of_position))] == case["packed_rows"]
    assert [*map(to_hex, pack_marks(capacity, kept, positions))] == case["packed_marks"]
    commitment = hashed(*names_list(salts["names"], names))
    assert to_hex(commitment) == case["names_commitment"]
    assert to_hex(hashed(*rows_list(salts["rows"], commitment, rows, row_of_position))) == case["c_table"]
    listed = carried_list(salts["carried"], commitment, capacity, kept, positions)
    assert to_hex(hashed(*listed)) == case["c_carried"]


@pytest.mark.parametrize("case", BODY["negative"], ids=lambda case: case["name"])
def test_faults_are_refused(case: dict[str, Any]) -> None:
    with pytest.raises(EncodingError):
        if "rows" in case:
            pack_rows(case["rows"], case["row_of_position"])
        else:
            pack_marks(case["capacity"], [True], case["positions"])
