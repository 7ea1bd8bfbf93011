"""Documents of single files: JSON Lines, Parquet, and a faiss index with its texts."""

from __future__ import annotations

from pathlib import Path

from rag_audit._internal.errors import RagAuditError, SetupError
from rag_audit._internal.extras import needing
from rag_audit._internal.jsonlines import parse_row, text_lines
from rag_audit.models.models import repeated
from rag_audit.retrieval.readers import DocumentsError
from rag_audit.retrieval.sources.model import Asked, Row, Rows

BATCH = 4096


def lines(requested: Asked) -> Rows:
    """The objects of a JSON Lines file, plain or gzip."""
    for place, _, line in text_lines(Path(requested.place)):
        try:
            yield Row(place, parse_row(line, source=place, without=requested.without))
        except RagAuditError as exc:
            yield Row(place, {}, exc)


def parquet(requested: Asked) -> Rows:
    """The rows of an Apache Parquet file, read in batches."""
    with needing("pyarrow"):
        from pyarrow import ArrowException
        from pyarrow.parquet import ParquetFile
    name, number = Path(requested.place).name, 0
    try:
        with ParquetFile(requested.place) as file:
            names = file.schema_arrow.names
            check_names(names, requested.place)
            read = [column for column in names if column not in requested.without]
            for batch in file.iter_batches(BATCH, columns=read):
                for values in batch.to_pylist():
                    number += 1
                    yield Row(f"{name}, row {number}", values)
    except (ArrowException, OSError, ValueError, OverflowError) as exc:
        raise DocumentsError("the Parquet file cannot be read", field=requested.place,
                             expected=f"rows after row {number}", actual=str(exc)[:200]) from exc  # fmt: skip


def check_names(names: list[str], place: str) -> None:
    """Refuse a table with two columns of the same name, since one of the two would be lost.

    :raises DocumentsError: two columns have the same name
    """
    if twice := repeated(names):
        raise DocumentsError("two columns have the same name", field=place, expected="each name once",
                             actual=", ".join(twice), hint="rename one of them in the source")  # fmt: skip


def faiss(requested: Asked) -> Rows:
    """The texts of a faiss index, from a separate file, in the order of its vectors.

    The function does not import vectors: a window's index uses the embedder that the window commits to. The number of
    texts must equal the number of vectors, because otherwise a file of another index could be committed to without
    notice.
    """
    if requested.texts is None:
        raise SetupError("a faiss index has no texts", field="--texts", expected="a .jsonl or .parquet file",
                         hint="name a file with the text of the index's nth vector in line n")  # fmt: skip
    with needing("faiss"):
        from faiss import read_index
    try:
        count = read_index(requested.place).ntotal
    except RuntimeError as exc:  # faiss raises it for every fault of a file
        raise DocumentsError(
            "the faiss index cannot be read", field=requested.place, actual=str(exc).splitlines()[-1][:200]
        ) from exc
    beside = Asked(str(requested.texts), without=requested.without)
    number = 0
    for row in parquet(beside) if requested.texts.suffix.lower() == ".parquet" else lines(beside):
        number += 1
        own = {} if "id" in requested.without else {"id": number - 1}
        yield row if row.error is not None else Row(row.place, {**own, **row.values})
    if number != count:
        raise DocumentsError("the index does not match its texts", field=str(requested.texts),
                             expected=f"{count} texts", actual=number)  # fmt: skip
