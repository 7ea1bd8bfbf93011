"""The reader of a source, by its place."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from rag_audit._internal.errors import SetupError
from rag_audit._internal.printable import without_userinfo
from rag_audit.retrieval.sources import databases, files
from rag_audit.retrieval.sources.model import Asked, Rows

_TABLES = (".csv", ".json", ".ods", ".tsv", ".xls", ".xlsx")
_TABLE = "convert the table to JSON Lines (.jsonl) or Parquet (.parquet)"
_FOLDER = "a folder of files goes to `provider open --docs` as it is"


def rows(requested: Asked) -> Rows:
    """The rows of a source, in its own order.

    :raises DocumentsError: the source cannot be reached or read, or its parts are inconsistent
    :raises SetupError: no reader supports such a place, an option is missing, or a package is not installed
    """
    scheme = requested.place.partition(":")[0]
    readers: dict[str, Callable[[Asked], Rows]] = {
        "postgres": databases.postgresql, "postgresql": databases.postgresql, "qdrant": databases.qdrant,
        "qdrants": databases.qdrant,
    }  # fmt: skip
    suffixes: dict[str, Callable[[Asked], Rows]] = {
        ".faiss": files.faiss, ".index": files.faiss, ".jsonl": files.lines, ".parquet": files.parquet,
    }  # fmt: skip
    reader = readers.get(scheme) or suffixes.get(Path(requested.place).suffix.lower())
    if reader is None:
        raise SetupError(
            "no reader knows such documents", field="SOURCE", actual=without_userinfo(requested.place),
            expected="a .jsonl, .parquet or .faiss file, qdrant://.. or postgresql://..",
            hint=_TABLE if Path(requested.place).suffix.lower() in _TABLES else _FOLDER,
        )  # fmt: skip
    return reader(requested)
