"""Documents copied from tables and databases into lines that a window is opened over."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import faiss
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result
from qdrant_client import QdrantClient, models

from rag_audit.cli import main
from rag_audit.models.passage import Passage
from rag_audit.retrieval.sources.model import Asked
from rag_audit.retrieval.texts import load_directory

ROWS: list[dict[str, Any]] = [
    {"id": 1, "text": "Bail is money.", "source": "a.txt", "score": 0.5, "seen": date(2026, 1, 2), "who": "law"},
    {"id": 2, "text": "Aspirin thins blood.", "source": None, "score": 1.5, "seen": None, "who": "medicine"},
    {"id": 3, "text": "Bonds are promises.", "source": "c.txt", "score": None, "seen": None, "who": "law"},
]  # fmt: skip


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["provider", "documents", *map(str, arguments)])


def parquet(folder: Path) -> str:
    pq.write_table(pa.Table.from_pylist(ROWS), folder / "rows.parquet", row_group_size=2)
    return str(folder / "rows.parquet")


def lines(folder: Path) -> str:
    rows = [{k: v for k, v in row.items() if k != "seen"} for row in ROWS]
    (folder / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    return str(folder / "rows.jsonl")


def qdrant(folder: Path) -> str:
    client = QdrantClient(path=str(folder / "storage"))
    client.create_collection("docs", vectors_config=models.VectorParams(size=2, distance=models.Distance.DOT))
    points = [
        models.PointStruct(
            id=row["id"], vector=[0.1, 0.2], payload={k: v for k, v in row.items() if k not in ("id", "seen")}
        )
        for row in ROWS
    ]
    client.upsert("docs", points)
    client.close()
    return f"qdrant:{folder / 'storage'}/docs"


@pytest.mark.parametrize("source", [parquet, lines, qdrant])
def test_rows_become_documents_of_their_tenants(tmp_path: Path, source: Callable[[Path], str]) -> None:
    out = tmp_path / "out"
    done = run(
        source(tmp_path), "--out", out, "--tenant-column", "who", "--keep", "id", "--keep", "source", "--json"
    )
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["documents"] == {"law": 2, "medicine": 1}
    result = {t: [d.passage for d in own] for t, own in load_directory(out, text_alone=False).items()}
    assert result == {
        "law": [
            Passage.of("Bail is money.", {"id": 1, "source": "a.txt"}),
            Passage.of("Bonds are promises.", {"id": 3, "source": "c.txt"}),
        ],
        "medicine": [Passage.of("Aspirin thins blood.", {"id": 2})],
    }
    assert sorted(p.name for p in out.iterdir()) == ["law.jsonl", "medicine.jsonl"]


def test_values_that_json_does_not_have_are_written_as_text(tmp_path: Path) -> None:
    table = pa.table(
        {"text": ["a"], "when": [date(2026, 1, 2)], "price": [Decimal("1.50")], "share": [0.25], "big": [2**60],
         "tags": [["x", "y"]], "place": [{"city": "Bern", "far": 1.5}]}
    )  # fmt: skip
    pq.write_table(table, tmp_path / "t.parquet")
    assert run(tmp_path / "t.parquet", "--out", tmp_path / "out", "--tenant", "law").exit_code == 0
    [result] = load_directory(tmp_path / "out", text_alone=False)["law"]
    assert result.passage.fields == {
        "when": "2026-01-02", "price": "1.50", "share": "0.25", "big": str(2**60), "tags": ["x", "y"],
        "place": {"city": "Bern", "far": "1.5"},
    }  # fmt: skip


def index_of(count: int, path: Path) -> Path:
    index = faiss.IndexFlatIP(4)
    index.add(np.eye(count, 4, dtype=np.float32))
    faiss.write_index(index, str(path))
    return path


def test_a_faiss_index_comes_with_as_many_texts(tmp_path: Path) -> None:
    (tmp_path / "texts.jsonl").write_text(
        '{"text": "one"}\n{"text": "two", "id": "own"}\n{"text": "three"}\n'
    )
    given = ("--texts", tmp_path / "texts.jsonl", "--tenant", "law", "--out")
    assert run(index_of(3, tmp_path / "x.faiss"), *given, tmp_path / "out").exit_code == 0
    [one, two, three] = load_directory(tmp_path / "out", text_alone=False)["law"]
    assert [d.passage.fields["id"] for d in (one, two, three)] == [0, "own", 2]
    done = run(index_of(4, tmp_path / "y.faiss"), *given, tmp_path / "none")
    assert done.exit_code == 2 and "expected: 4 texts\n  actual: 3" in done.stderr, done.stderr
    assert not list((tmp_path / "none").iterdir())


@pytest.mark.parametrize(
    ("rows", "options", "message"),
    [
        (
            [{"body": "a"}],
            ["--tenant", "law"],
            "a row lacks a column  at: rows.parquet, row 1  expected: text  actual: body",
        ),
        (
            [{"text": "a"}],
            ["--tenant-column", "who"],
            "a row lacks a column  at: rows.parquet, row 1  expected: who",
        ),
        (
            [{"text": "a", "n": 1}, {"text": None, "n": 2}],
            ["--tenant", "law"],
            "a row has no text  at: rows.parquet, row 2.text",
        ),
        ([{"text": "a"}], ["--tenant", "two words"], "cannot be a tenant's id"),
        ([{"text": "a", "who": "../law"}], ["--tenant-column", "who"], "cannot be a tenant's id"),
        (
            [{"text": "a", "v": [0.5] * 17}],
            ["--tenant", "law"],
            "a vector is no metadata  at: rows.parquet, row 1.v",
        ),
        (
            [{"text": "a", "v": b"x"}],
            ["--tenant", "law"],
            "cannot be written as JSON  at: rows.parquet, row 1.v",
        ),
        (
            [{"text": "a", "v": "x" * 70_000}],
            ["--tenant", "law"],
            "metadata is too large  at: rows.parquet, row 1.metadata",
        ),
        ([], ["--tenant", "law"], "holds no documents"),
        ([{"text": "a"}], [], "give one of --tenant and --tenant-column"),
    ],
)
def test_rows_that_are_no_documents_leave_nothing_behind(
    tmp_path: Path, rows: list[dict[str, Any]], options: list[str], message: str
) -> None:
    table = pa.Table.from_pylist(rows) if rows else pa.table({"text": pa.array([], pa.string())})
    pq.write_table(table, tmp_path / "rows.parquet")
    done = run(tmp_path / "rows.parquet", "--out", tmp_path / "out", *options)
    assert done.exit_code == 2 and message in done.stderr.replace("\n", ""), done.stderr
    assert not (tmp_path / "out").exists() or not list((tmp_path / "out").iterdir())


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("x.docx", "no reader knows such documents"),
        ("x.csv", "hint: convert the table to JSON Lines (.jsonl) or Parquet (.parquet)"),
        ("none.parquet", "cannot be read"),
        ("none.jsonl", "none.jsonl"),
        ("none.faiss", "--texts"),
        ("qdrant:none/docs", "there is no Qdrant storage"),
        ("qdrant:", "no collection is named"),
        ("qdrant://127.0.0.1:1/docs", "the collection cannot be read"),
        ("qdrant://user:pass-word@127.0.0.1:1/docs", "***@127.0.0.1:1/docs"),
        ("qdrant://user:pass-word@127.0.0.1:1/", "***@127.0.0.1:1/"),
        ("mongodb://user:pass-word@127.0.0.1/docs", "mongodb://***@127.0.0.1/docs"),
        ("postgresql://127.0.0.1:1/db", "--query"),
    ],
)
def test_sources_that_cannot_be_read_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    done = run(source, "--out", "out", "--tenant", "law")
    assert done.exit_code == 2 and message in done.stderr, done.stderr
    assert "pass-word" not in done.output
    assert not (tmp_path / "none").exists()


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    source = lines(tmp_path)
    assert run(source, "--out", tmp_path / "out", "--tenant", "law").exit_code == 0
    before = (tmp_path / "out" / "law.jsonl").read_bytes()
    done = run(source, "--out", tmp_path / "out", "--tenant", "law")
    assert done.exit_code == 2 and "are there already" in done.stderr
    assert (tmp_path / "out" / "law.jsonl").read_bytes() == before


def test_a_password_stands_in_no_error(tmp_path: Path) -> None:
    place = "postgresql://me:se%40cret@127.0.0.1:1/db"
    done = run(place, "--query", "SELECT 1", "--out", tmp_path / "out", "--tenant", "law")
    assert done.exit_code == 2 and "cret" not in done.stderr and "does not answer" in done.stderr, done.stderr
    assert Asked(place).shown == "postgresql://me:***@127.0.0.1:1/db"
    for place in (
        "postgresql://[::1/db?password=secret",
        "postgresql://me:sec/ret@127.0.0.1:1/db?user=a&password=secret",
    ):
        done = run(place, "--query", "SELECT 1", "--out", tmp_path / "out", "--tenant", "law")
        assert done.exit_code == 2 and "ret" not in done.stderr, done.stderr
