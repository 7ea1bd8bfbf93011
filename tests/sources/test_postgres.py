"""Documents of a real PostgreSQL server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from click.testing import CliRunner, Result

from rag_audit.cli import main
from rag_audit.models.passage import Passage
from rag_audit.retrieval.texts import load_directory
from tests.postgres import server


@pytest.fixture(scope="module")
def database() -> Iterator[str]:
    with server() as address:
        with psycopg.connect(address) as connection:
            connection.execute(
                "CREATE TABLE documents (id int PRIMARY KEY, body text, made timestamptz, vector real[])"
            )
            connection.execute(
                "INSERT INTO documents SELECT n, 'Text ' || n, '2026-01-02 03:04:05+00', array_fill(0.5, ARRAY[32])"
                " FROM generate_series(1, 3000) AS n"
            )
        yield address


def copied(database: str, out: Path, query: str, *options: str) -> Result:
    arguments = [
        "provider",
        "documents",
        database,
        "--query",
        query,
        "--out",
        str(out),
        "--tenant",
        "law",
        *options,
    ]
    return CliRunner().invoke(main, [*arguments, "--text-column", "body"])


def test_rows_of_a_statement_become_documents(database: str, tmp_path: Path) -> None:
    statement = "SELECT * FROM documents ORDER BY id"
    done = copied(database, tmp_path / "out", statement, "--drop", "vector", "--drop", "made")
    assert done.exit_code == 0, done.output
    result = [d.passage for d in load_directory(tmp_path / "out", text_alone=False)["law"]]
    assert result == [Passage.of(f"Text {n}", {"id": n}) for n in range(1, 3001)]
    done = copied(database, tmp_path / "vectors", statement)
    assert done.exit_code == 2 and "a vector is no metadata" in done.stderr


@pytest.mark.parametrize(
    "statement",
    ["SELECT * FROM elsewhere", "not SQL", "DELETE FROM documents RETURNING id, body", "SELECT 1/0 AS body"],
)
def test_a_statement_that_fails_or_writes_is_refused(database: str, tmp_path: Path, statement: str) -> None:
    done = copied(database, tmp_path / "out", statement)
    assert done.exit_code == 2 and "does not answer with documents" in done.stderr, done.stderr
    with psycopg.connect(database) as connection:
        assert connection.execute("SELECT count(*) FROM documents").fetchone() == (3000,)
