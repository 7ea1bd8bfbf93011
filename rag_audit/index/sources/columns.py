"""From a source's rows to documents: which columns are kept, and how their values are written."""

from __future__ import annotations

import datetime
import decimal
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from rag_audit.encoding.canonical import MAX_SAFE_INTEGER, Json
from rag_audit.errors import SchemaError
from rag_audit.index.readers import DocumentsError
from rag_audit.index.sources.model import Row


@dataclass(frozen=True)
class Columns:
    """Which columns of a source's rows are kept, as what.

    :param text: the column of the text
    :param tenant: the column of the tenant's id; None where all rows are one tenant's
    :param kept: the columns that are metadata; None for all others
    :param dropped: columns that are left out
    """

    text: str = "text"
    tenant: str | None = None
    kept: Sequence[str] | None = None
    dropped: Sequence[str] = ()


def documents(found: Iterable[Row], columns: Columns) -> Iterator[tuple[str | None, dict[str, Json]]]:
    """Each row's tenant, if it names one, and its line: the text, and the metadata.

    :raises DocumentsError: a row has no text or no tenant, or a named column is missing
    :raises SchemaError: a value cannot be written as JSON
    """
    for number, row in enumerate(found, 1):
        place = f"row {number}"
        for name in (columns.text, columns.tenant, *(columns.kept or ())):
            if name is not None and name not in row:
                raise DocumentsError("a row lacks a column", field=place, expected=name,
                                     found=", ".join(map(str, row)),
                                     hint="--text-column, --tenant-column and --keep name columns")  # fmt: skip
        text, tenant = row[columns.text], None if columns.tenant is None else row[columns.tenant]
        if not isinstance(text, str):
            raise DocumentsError(
                "a row has no text", field=f"{place}.{columns.text}", found=type(text).__name__
            )
        others = columns.kept if columns.kept is not None else row.keys()
        left_out = {columns.text, columns.tenant, *columns.dropped}
        metadata = {
            name: plain(row[name], f"{place}.{name}")
            for name in others
            if name not in left_out and row[name] is not None
        }
        line: dict[str, Json] = {"text": text}
        if metadata:
            line["metadata"] = metadata
        yield None if tenant is None else str(tenant), line


def plain(value: object, place: str) -> Json:
    """A value as canonical JSON has it: fractions, dates, identifiers and large integers as text.

    :raises SchemaError: it is of bytes or a vector, or of a type that JSON does not know
    """
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int):
        return value if abs(value) <= MAX_SAFE_INTEGER else str(value)
    if isinstance(value, float | decimal.Decimal | uuid.UUID):
        return str(value)
    if isinstance(value, datetime.datetime | datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, Mapping):
        return {str(k): plain(v, f"{place}.{k}") for k, v in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray | memoryview):
        if len(value) > 16 and isinstance(value[0], float):
            raise SchemaError("a vector is no metadata", field=place,
                              hint="leave the column out (--drop); documents are embedded anew")  # fmt: skip
        return [plain(v, f"{place}[{n}]") for n, v in enumerate(value)]
    raise SchemaError("a value cannot be written as JSON", field=place, found=type(value).__name__,
                      hint="leave the column out: --drop")  # fmt: skip
