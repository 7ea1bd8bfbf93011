"""Rows of every source: whose they are, which values they may have, and how an error names them."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import faiss
import numpy as np
import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result
from psycopg.types.json import Jsonb
from qdrant_client import QdrantClient, models

from rag_audit._internal.jsonlines import JsonNumber
from rag_audit.cli import main
from rag_audit.errors import RagAuditError, SchemaError
from rag_audit.retrieval.metadata import plain
from rag_audit.retrieval.sources.columns import Columns, documents
from rag_audit.retrieval.sources.model import Row
from rag_audit.retrieval.texts import load_directory
from tests.postgres import server

Source = Callable[[list[dict[str, Any]], Path], list[str]]


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["provider", "documents", *map(str, arguments)])


def lines(rows: list[dict[str, Any]], folder: Path) -> list[str]:
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return [str(folder / "rows.jsonl")]


def parquet(rows: list[dict[str, Any]], folder: Path) -> list[str]:
    pq.write_table(pa.Table.from_pylist(rows), folder / "rows.parquet")
    return [str(folder / "rows.parquet")]


def qdrant(rows: list[dict[str, Any]], folder: Path) -> list[str]:
    client = QdrantClient(path=str(folder / "storage"))
    client.create_collection("docs", vectors_config=models.VectorParams(size=1, distance=models.Distance.DOT))
    client.upsert(
        "docs", [models.PointStruct(id=n, vector=[1.0], payload=row) for n, row in enumerate(rows, 1)]
    )
    client.close()
    return [f"qdrant:{folder / 'storage'}/docs"]


def faiss_index(rows: list[dict[str, Any]], folder: Path) -> list[str]:
    index = faiss.IndexFlatIP(2)
    index.add(np.ones((len(rows), 2), np.float32))
    faiss.write_index(index, str(folder / "rows.faiss"))
    return [str(folder / "rows.faiss"), "--texts", *lines(rows, folder)]


@pytest.fixture(scope="module")
def database() -> Iterator[str]:
    with server() as address:
        yield address


FILES: list[Source] = [lines, parquet, qdrant, faiss_index]


def table(address: str, rows: list[dict[str, Any]], types: dict[str, str]) -> list[str]:
    with psycopg.connect(address) as connection:
        connection.execute("DROP TABLE IF EXISTS articles")
        columns = ", ".join(f"{name} {kind}" for name, kind in types.items())
        connection.execute(f"CREATE TABLE articles (nr serial, {columns})".encode())
        for row in rows:
            names, marks = ", ".join(row), ", ".join("%s" for _ in row)
            values = [Jsonb(v) if isinstance(v, dict) else v for v in row.values()]
            connection.execute(f"INSERT INTO articles ({names}) VALUES ({marks})".encode(), values)
    return [address, "--query", f"SELECT {', '.join(types)} FROM articles ORDER BY nr"]


@pytest.mark.parametrize("source", FILES)
@pytest.mark.parametrize("missing", [None, "", " ", float("nan")])
def test_a_row_without_a_tenant_is_refused_and_nothing_is_written(
    tmp_path: Path, source: Source, missing: object
) -> None:
    rows: list[dict[str, Any]] = [{"text": "Rent.", "who": "acme"}, {"text": "Secret.", "who": missing}]
    if source is parquet and isinstance(missing, float):
        rows = rows[1:]  # a column of a table has one type
    done = run(*source(rows, tmp_path), "--out", tmp_path / "out", "--tenant-column", "who")
    assert done.exit_code == 2 and "rag-audit: a row has no tenant" in done.stderr, done.output
    place = {parquet: "rows.parquet, row", qdrant: "point"}.get(source, "rows.jsonl, line")
    assert f"at: {place} {len(rows)}" in done.stderr
    assert "Secret" not in done.output and list((tmp_path / "out").iterdir()) == []


@pytest.mark.parametrize(
    ("kind", "missing"),
    [("text", None), ("text", ""), ("float8", float("nan")), ("numeric", Decimal("NaN"))],
)
def test_a_row_of_a_database_without_a_tenant_is_refused(
    database: str, tmp_path: Path, kind: str, missing: object
) -> None:
    given = table(database, [{"text": "Secret.", "who": missing}], {"text": "text", "who": kind})
    done = run(*given, "--out", tmp_path / "out", "--tenant-column", "who")
    assert done.exit_code == 2 and "a row has no tenant" in done.stderr and "row 1.who" in done.stderr, (
        done.output
    )
    assert list((tmp_path / "out").iterdir()) == []


def tenants_of(values: list[object]) -> list[str | None]:
    rows = [Row(f"row {n}", {"text": "Rent.", "who": value}) for n, value in enumerate(values, 1)]
    return [line.tenant for line in documents(rows, Columns(tenant="who"))]


def test_a_whole_number_and_its_digits_are_one_tenant() -> None:
    name = uuid.UUID("5f2b6c1e-0000-4000-8000-000000000001")
    result = tenants_of([7, "7", np.int64(7), "007", "None", "nan", 2**60, JsonNumber(str(2**60)), name])
    assert result == ["7", "7", "7", "007", "None", "nan", str(2**60), str(2**60), str(name)]


@pytest.mark.parametrize(
    "value",
    [1.0, 1.5, np.float32(1), Decimal("1.0"), Decimal(1), JsonNumber("1.0"), JsonNumber("1e0"), True, b"acme",
     ["acme"], {"id": "acme"}],
)  # fmt: skip
def test_a_tenant_that_is_neither_text_nor_a_whole_number_is_refused(value: object) -> None:
    with pytest.raises(RagAuditError, match="neither text nor a whole number") as caught:
        tenants_of(["1", 1, value])
    assert caught.value.field == "row 3.who"


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (JsonNumber("1.0"), "1.0, a fraction"),
        (np.float64(1), "1.0, a fraction"),
        (True, "true"),
        (["acme"], "an array"),
        ({"id": 1}, "an object"),
        (b"acme", "bytes"),
        (JsonNumber("-9007199254740993"), "-9007199254740993, a whole number"),
    ],
)
def test_a_refused_tenant_is_shown_in_words(value: object, shown: str) -> None:
    with pytest.raises(RagAuditError) as caught:
        tenants_of([value])
    assert caught.value.actual == shown


@pytest.mark.parametrize("source", FILES)
def test_a_tenant_may_stand_in_a_nested_field(tmp_path: Path, source: Source) -> None:
    rows = [
        {"body": {"text": "Rent."}, "metadata": {"tenant": "acme", "page": 3}},
        {"body": {"text": "Roof."}, "metadata": {"tenant": "globex", "page": 4}},
    ]
    given = (*source(rows, tmp_path), "--tenant-column", "metadata.tenant", "--text-column", "body.text")
    assert run(*given, "--drop", "id", "--out", tmp_path / "out").exit_code == 0
    result = {
        t: [d.passage.fields for d in own]
        for t, own in load_directory(tmp_path / "out", text_alone=False).items()
    }
    assert result == {"acme": [{"metadata": {"page": 3}}], "globex": [{"metadata": {"page": 4}}]}
    done = run(*given, "--drop", "metadata", "--drop", "id", "--out", tmp_path / "bare")
    assert done.exit_code == 0, done.output
    assert (tmp_path / "bare" / "acme.jsonl").read_text() == '{"text":"Rent."}\n'


def test_a_tenant_of_a_database_may_stand_in_a_nested_field(database: str, tmp_path: Path) -> None:
    rows = [
        {"text": "Rent.", "metadata": {"tenant": "acme"}},
        {"text": "Roof.", "metadata": {"tenant": None}},
    ]
    given = table(database, rows, {"text": "text", "metadata": "jsonb"})
    done = run(*given, "--out", tmp_path / "out", "--tenant-column", "metadata.tenant")
    assert done.exit_code == 2 and "row 2.metadata.tenant" in done.stderr, done.output
    given[-1] = given[-1].replace("ORDER", "WHERE nr = 1 ORDER")
    assert run(*given, "--out", tmp_path / "one", "--tenant-column", "metadata.tenant").exit_code == 0
    assert [path.name for path in (tmp_path / "one").iterdir()] == ["acme.jsonl"]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"metadata": {"page": 1}}, "a row lacks a column"),
        ({"metadata": "acme"}, "a row lacks a column"),
        ({"metadata": {"tenant": None}}, "a row has no tenant"),
        ({"metadata": {"tenant": "acme"}, "metadata.tenant": "globex"}, "fits several fields"),
    ],
)
def test_a_nested_tenant_that_is_missing_or_named_twice_is_refused(
    values: dict[str, Any], message: str
) -> None:
    with pytest.raises(RagAuditError, match=message) as caught:
        list(documents([Row("row 1", {"text": "Rent.", **values})], Columns(tenant="metadata.tenant")))
    assert str(caught.value.field).startswith("row 1")


@pytest.mark.parametrize("source", FILES)
def test_fractions_become_text_and_dropped_columns_are_not_read(tmp_path: Path, source: Source) -> None:
    rows = [
        {"text": "Rent.", "score": 1.5, "embedding": [0.5] * 32, "metadata": {"vector": [1] * 32, "page": 2}}
    ]
    given = (*source(rows, tmp_path), "--tenant", "law")
    done = run(*given, "--out", tmp_path / "none")
    assert done.exit_code == 2 and "a vector is no metadata" in done.stderr and ".embedding" in done.stderr
    drop = ("--drop", "embedding", "--drop", "metadata.vector", "--drop", "id")
    done = run(*given, *drop, "--out", tmp_path / "out")
    assert done.exit_code == 0, done.output
    [result] = load_directory(tmp_path / "out", text_alone=False)["law"]
    assert result.passage.fields == {"score": "1.5", "metadata": {"page": 2}}


def test_what_a_dropped_field_of_a_line_holds_is_not_checked(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text(
        '{"text": "Rent.", "raw": {"a": 1, "a": "\\ud800"}, "n": 12345678901234567890}\n'
    )
    given = (tmp_path / "rows.jsonl", "--tenant", "law", "--out")
    done = run(*given, tmp_path / "none")
    assert (
        done.exit_code == 2
        and "duplicate JSON key" in done.stderr
        and "rows.jsonl, line 1.raw" in done.stderr
    )
    assert run(*given, tmp_path / "out", "--drop", "raw").exit_code == 0
    assert (tmp_path / "out" / "law.jsonl").read_text() == (
        '{"metadata":{"n":"12345678901234567890"},"text":"Rent."}\n'
    )


def test_a_dropped_column_of_a_table_is_not_read(tmp_path: Path) -> None:
    """Python has no date of the year 20,000, so that reading the column fails."""
    far = pa.array([6_585_000], pa.date32())
    pq.write_table(pa.table({"text": ["Rent."], "far": far}), tmp_path / "t.parquet")
    given = (tmp_path / "t.parquet", "--tenant", "law", "--out")
    done = run(*given, tmp_path / "none")
    assert done.exit_code == 2 and "the Parquet file cannot be read" in done.stderr, done.output
    assert run(*given, tmp_path / "out", "--drop", "far").exit_code == 0


@pytest.mark.parametrize(
    "value",
    [
        [0.5] * 17, [1] * 17, [1] + [0.5] * 16, [Decimal("0.5")] * 17, tuple([0.5] * 17), [np.float32(1)] * 17,
        [JsonNumber("0.5")] * 17, [[0.5] * 17], {"deep": [0.5] * 17}, np.ones(3), b"\0" * 64, bytearray(8),
        memoryview(b"12"), "[" + ",".join(["0.5"] * 17) + "]", "[" + ", ".join(["-1e-05"] * 17) + "]",
        "{" + ",".join(f"{n}:0.5" for n in range(1, 18)) + "}/4000",
    ],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_vectors_of_every_type_are_refused_as_metadata(value: object) -> None:
    with pytest.raises(SchemaError) as caught:
        list(documents([Row("row 1", {"text": "Rent.", "v": value})], Columns()))
    assert str(caught.value.field).startswith("row 1.v") and "--drop" in str(caught.value.hint)


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        ([46.9, 7.4], ["46.9", "7.4"]),
        (list(range(16)), list(range(16))),
        (["0.5"] * 17, ["0.5"] * 17),
        ("[1, 2]", "[1, 2]"),
        (np.int64(3), 3),
        (np.float32(0.5), "0.5"),
        ([True] * 17, [True] * 17),
    ],
)
def test_values_that_are_no_vectors_are_metadata(value: object, kept: object) -> None:
    assert plain(value, "row 1.v") == kept


def test_a_database_s_vectors_are_known_by_their_type(database: str, tmp_path: Path) -> None:
    """pgvector's types reach a connection that does not know them as text, even those with few components."""
    with psycopg.connect(database) as connection:
        connection.execute("CREATE TYPE halfvec AS (components text)")
    given = table(database, [{"text": "Rent."}], {"text": "text"})
    given[-1] = "SELECT text, ROW('[1,2]')::halfvec AS embedding FROM articles"
    done = run(*given, "--tenant", "law", "--out", tmp_path / "none")
    assert (
        done.exit_code == 2 and "a vector is no metadata" in done.stderr and "row 1.embedding" in done.stderr
    )
    assert run(*given, "--tenant", "law", "--drop", "embedding", "--out", tmp_path / "out").exit_code == 0


def test_two_columns_of_one_name_are_refused(database: str, tmp_path: Path) -> None:
    pq.write_table(
        pa.Table.from_arrays([pa.array(["a"]), pa.array(["b"])], names=["text", "text"]),
        tmp_path / "t.parquet",
    )
    given = table(database, [{"text": "Rent."}], {"text": "text"})
    given[-1] = "SELECT text, 'Roof.' AS text FROM articles"
    for source in ([tmp_path / "t.parquet"], given):
        done = run(*source, "--tenant", "law", "--out", tmp_path / "out")
        assert done.exit_code == 2 and "two columns have the same name" in done.stderr, done.output


@pytest.mark.parametrize("source", FILES)
def test_an_error_names_the_row_by_its_id_too(tmp_path: Path, source: Source) -> None:
    rows = [{"id": "a-1", "text": "Rent."}, {"id": "a-2", "text": ""}]
    done = run(*source(rows, tmp_path), "--tenant", "law", "--out", tmp_path / "out")
    assert done.exit_code == 2 and "a row has no text" in done.stderr and "2 (id a-2).text" in done.stderr, (
        done.output
    )


def test_a_storage_is_unlocked_at_once_when_a_row_is_refused(tmp_path: Path) -> None:
    """The error that is kept here keeps its frames, and with them whatever only the garbage collector would close."""
    [place] = qdrant([{"text": "Rent."}, {"text": ""}], tmp_path)
    refused = run(place, "--tenant", "law", "--out", tmp_path / "none")
    assert refused.exit_code == 2 and "a row has no text" in refused.stderr
    held = QdrantClient(path=str(tmp_path / "storage"))
    try:
        locked = run(place, "--tenant", "law", "--out", tmp_path / "none")
    finally:
        held.close()
    assert locked.exit_code == 2 and "the Qdrant storage cannot be opened" in locked.stderr, locked.output
    done = run(place, "--tenant", "law", "--skip-unreadable", "--out", tmp_path / "out")
    assert done.exit_code == 0, done.output
