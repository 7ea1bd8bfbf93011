"""From a source's rows to documents: the selection of columns, and the encoding of their values."""

from __future__ import annotations

import datetime
import decimal
import math
import numbers
import re
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rag_audit._internal.canonical import Json
from rag_audit._internal.errors import RagAuditError
from rag_audit._internal.jsonlines import JsonNumber, left_out_of
from rag_audit.models.passage import Passage
from rag_audit.retrieval.embedders.base import check_text
from rag_audit.retrieval.inventory import Inventory
from rag_audit.retrieval.metadata import plain
from rag_audit.retrieval.readers import DocumentsError
from rag_audit.retrieval.sources.model import Row
from rag_audit.retrieval.texts import document_key, has_text, tenant_id


@dataclass(frozen=True)
class Columns:
    """The selected columns of a source's rows, and their roles.

    The name ``a.b`` denotes a column ``a.b``, or the field ``b`` of the objects in a column ``a``.

    :param text: the column of the text
    :param tenant: the column of the tenant's id; None if all rows belong to one tenant
    :param kept: the metadata columns; None selects all others
    :param dropped: omitted columns
    """

    text: str = "text"
    tenant: str | None = None
    kept: Sequence[str] | None = None
    dropped: Sequence[str] = ()

    @property
    def unused(self) -> list[str]:
        """The dropped columns that contain neither the text nor the tenant, so that no source need read them."""
        used = [name for name in (self.text, self.tenant) if name is not None]
        return [
            name for name in self.dropped if not any(f"{other}.".startswith(f"{name}.") for other in used)
        ]


@dataclass(frozen=True)
class Line:
    """A document of a source.

    :param place: the row that it comes from, for errors
    :param tenant: its tenant; None if no column names one
    :param line: the text, and the metadata, as a line of ``<tenant>.jsonl``
    """

    place: str
    tenant: str | None
    line: dict[str, Json]

    @property
    def passage(self) -> Passage:
        """The text as the inventory counts it. A reader of the written line finds the same document."""
        return Passage(
            self.text, place=self.place, document=document_key(self.line, self.text, field=self.place)
        )

    @property
    def text(self) -> str:
        """The document's text."""
        return str(self.line["text"])


def documents(
    actual: Iterable[Row], columns: Columns, inventory: Inventory | None = None, *, skip: bool = False
) -> Iterator[Line]:
    """The document of each row.

    :param inventory: records the skipped rows and the omitted columns
    :param skip: whether a row that raises an error is omitted
    :raises DocumentsError: a row has no text or no tenant, or a named column is missing
    :raises SchemaError: a value cannot be written as JSON
    :raises SizeError: a row's metadata is too large
    """
    unkept: set[str] = set()
    for row in actual:
        if columns.kept is not None:
            unkept |= row.values.keys() - {columns.text, columns.tenant, *columns.kept, *columns.dropped}
        try:
            line = _document(row, columns)
        except RagAuditError as exc:
            if not skip:
                raise
            if inventory is not None:
                inventory.omit(exc.field or row.place, exc.message, exc.actual)
            continue
        yield line
    if inventory is not None:
        for name in columns.dropped:
            inventory.omit(name, "columns that --drop names")
        for name in sorted(map(str, unkept)):
            inventory.omit(name, "columns that --keep does not name")


def _document(row: Row, columns: Columns) -> Line:
    if row.error is not None:
        raise row.error
    name = row.values.get("id")
    known = isinstance(name, str | int | uuid.UUID) and not isinstance(name, bool)
    place = f"{row.place} (id {name})" if known else row.place
    text = _value(row.values, columns.text, place)
    if not isinstance(text, str) or not has_text(text):
        raise DocumentsError("a row has no text", field=f"{place}.{columns.text}",
                             expected="text with a visible character", actual=_shown(text))  # fmt: skip
    check_text(text, field=f"{place}.{columns.text}")
    tenant = None if columns.tenant is None else _tenant(row.values, columns.tenant, place)
    used = [columns.text, *columns.dropped, *([] if columns.tenant is None else [columns.tenant])]
    others = (
        left_out_of(row.values, used)
        if columns.kept is None
        else {kept: _value(row.values, kept, place) for kept in columns.kept if kept not in used}
    )
    metadata = {name: plain(value, f"{place}.{name}") for name, value in others.items() if value is not None}
    Passage.of(text, metadata, field=place)
    line: dict[str, Json] = {"text": text}
    if metadata:
        line["metadata"] = metadata
    return Line(place, tenant, line)


def _tenant(values: Mapping[str, object], column: str, place: str) -> str:
    """A row's tenant.

    A tenant is text, a UUID or a whole number; the number 7 and the text "7" are one tenant. Fractions are refused,
    1.0 among them: a program that turned whole numbers into fractions has often turned missing ones into NaN, and the
    tenant 1 would be another one than the tenant 1.0.
    """
    value = _value(values, column, place)
    field = f"{place}.{column}"
    if value is None or _is_nan(value) or (isinstance(value, str) and not has_text(value)):
        raise DocumentsError("a row has no tenant", field=field, expected="the tenant's id", actual=_shown(value),
                             hint="fill in the column, or leave the row out of the source")  # fmt: skip
    if not isinstance(value, str | uuid.UUID) and not _is_whole(value):
        raise DocumentsError("a row's tenant is neither text nor a whole number", field=field,
                             expected='text, such as "7", or a whole number, such as 7', actual=_shown(value),
                             hint="write the column as text or as whole numbers in the source")  # fmt: skip
    return tenant_id(str(value), field)


def _is_nan(value: object) -> bool:
    if isinstance(value, decimal.Decimal):
        return value.is_nan()
    if isinstance(value, JsonNumber):
        return value.text == "NaN"
    return isinstance(value, numbers.Real) and math.isnan(value)


def _is_whole(value: object) -> bool:
    if isinstance(value, JsonNumber):  # too large for canonical JSON
        return re.fullmatch(r"[0-9]+", value.text) is not None
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def _value(values: Mapping[str, object], column: str, place: str) -> object:
    """A row's value of a column, or of a field of the objects in a column."""
    actual = list(_found(values, column))
    if not actual:
        raise DocumentsError("a row lacks a column", field=place, expected=column, actual=", ".join(map(str, values)),
                             hint="--text-column, --tenant-column and --keep name columns")  # fmt: skip
    if len(actual) > 1:
        raise DocumentsError("a column's name fits several fields of a row", field=place, expected="one field",
                             actual=f"{len(actual)} fields {column}")  # fmt: skip
    return actual[0]


def _found(values: Mapping[str, object], column: str) -> Iterator[object]:
    if column in values:
        yield values[column]
    for place, character in enumerate(column):
        if character == "." and isinstance(inner := values.get(column[:place]), Mapping):
            yield from _found(inner, column[place + 1 :])


def _shown(value: object) -> str:
    """The kind of a value for an error, in words, and whether it is empty. Texts are private and are not shown."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None:
        return "NULL"
    if isinstance(value, str):
        return "an empty text" if not value else "text without a visible character"
    if _is_nan(value):
        return "NaN"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, numbers.Number | JsonNumber):
        return f"{value}, a {'whole number' if _is_integer(value) else 'fraction'}"
    if isinstance(value, bytes | bytearray | memoryview):
        return "bytes"
    if isinstance(value, Mapping):
        return "an object"
    if isinstance(value, datetime.date | datetime.time):
        return "a date or time"
    return (
        "an array"
        if isinstance(value, Sequence | np.ndarray)
        else "a value that is neither text nor a number"
    )


def _is_integer(value: object) -> bool:
    return isinstance(value, numbers.Integral) or re.fullmatch(r"-?[0-9]+", str(value)) is not None
