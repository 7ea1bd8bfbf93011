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


def lines(asked: Asked) -> Rows:
    """The objects of a JSON Lines file, plain or gzip."""
    for place, _, line in text_lines(Path(asked.place)):
        try:
            yield Row(place, parse_row(line, source=place, without=asked.without))
        except RagAuditError as exc:
            yield Row(place, {}, exc)


def parquet(asked: Asked) -> Rows:
    """The rows of an Apache Parquet file, read in batches."""
    with needing("pyarrow"):
        from pyarrow import ArrowException
        from pyarrow.parquet import ParquetFile
    name, number = Path(asked.place).name, 0
    try:
        with ParquetFile(asked.place) as file:
            names = file.schema_arrow.names
            check_names(names, asked.place)
            read = [column for column in names if column not in asked.without]
            for batch in file.iter_batches(BATCH, columns=read):
                for values in batch.to_pylist():
                    number += 1
                    yield Row(f"{name}, row {number}", values)
    except (ArrowException, OSError, ValueError, OverflowError) as exc:
        raise DocumentsError("the Parquet file cannot be read", field=asked.place,
                             expected=f"rows after row {number}", found=str(exc)[:200]) from exc  # fmt: skip


def check_names(names: list[str], place: str) -> None:
    """Refuse a table with two columns of the same name, since one of the two would be lost.

    :raises DocumentsError: two columns have the same name
    """
    if twice := repeated(names):
        raise DocumentsError("two columns have the same name", field=place, expected="each name once",
                             found=", ".join(twice), hint="rename one of them in the source")  # fmt: skip


def faiss(asked: Asked) -> Rows:
    """The texts of a faiss index, from a separate file, in the order of its vectors.

    The function does not import vectors: a window's index uses the embedder that the window commits to. The number of
    texts must equal the number of vectors, because otherwise a file of another index could be committed to without
    notice.
    """
    if asked.texts is None:
        raise SetupError("a faiss index has no texts", field="--texts", expected="a .jsonl or .parquet file",
                         hint="name a file with the text of the index's nth vector in line n")  # fmt: skip
    with needing("faiss"):
        from faiss import read_index
    try:
        count = read_index(asked.place).ntotal
    except RuntimeError as exc:  # faiss raises it for every fault of a file
        raise DocumentsError(
            "the faiss index cannot be read", field=asked.place, found=str(exc).splitlines()[-1][:200]
        ) from exc
    beside = Asked(str(asked.texts), without=asked.without)
    number = 0
    for row in parquet(beside) if asked.texts.suffix.lower() == ".parquet" else lines(beside):
        number += 1
        own = {} if "id" in asked.without else {"id": number - 1}
        yield row if row.error is not None else Row(row.place, {**own, **row.values})
    if number != count:
        raise DocumentsError("the index does not match its texts", field=str(asked.texts),
                             expected=f"{count} texts", found=number)  # fmt: skip
