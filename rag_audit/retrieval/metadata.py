"""Values of sources as metadata: JSON's own values stay, other single values become text, vectors are refused."""

from __future__ import annotations

import datetime
import decimal
import re
import uuid
from collections.abc import Mapping, Sequence

import numpy as np

from rag_audit._internal.canonical import MAX_SAFE_INTEGER, Json
from rag_audit._internal.errors import SchemaError
from rag_audit._internal.jsonlines import JsonNumber

MAX_NUMBERS = 16
"""Maximum numbers in a list of metadata. A longer list of numbers is a vector."""
_NUMBER = r"[-+]?(?:[0-9.]+(?:e[-+]?[0-9]+)?|nan|inf(?:inity)?)"
_TEXT_VECTOR = re.compile(
    rf"\s*(?:\[\s*{_NUMBER}(?:\s*,\s*{_NUMBER}){{{MAX_NUMBERS},}}\s*\]"
    rf"|\{{\s*[0-9]+:{_NUMBER}(?:\s*,\s*[0-9]+:{_NUMBER}){{{MAX_NUMBERS},}}\s*\}}/[0-9]+)\s*\Z",
    re.IGNORECASE | re.ASCII,
)
"""A vector as pgvector writes it: ``[0.1,0.2]`` of the types vector and halfvec, ``{1:0.1}/300`` of sparsevec."""


def plain(value: object, place: str) -> Json:
    """A value in the form of canonical JSON. Fractions, dates, identifiers and integers from 2^53 on become text.

    :param place: the value's name in the error's `field`
    :raises SchemaError: the value is a vector or bytes, or has a type that JSON does not have
    """
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        if _TEXT_VECTOR.match(value):
            raise _vector(place)
        return value
    if isinstance(value, int):
        return value if abs(value) <= MAX_SAFE_INTEGER else str(value)
    if isinstance(value, float | decimal.Decimal | uuid.UUID | JsonNumber):
        return str(value)
    if isinstance(value, datetime.datetime | datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, np.ndarray):
        raise _vector(place)
    if isinstance(value, Mapping):
        result = {str(k): plain(v, f"{place}.{k}") for k, v in value.items()}
        if len(result) != len(value):
            raise SchemaError("two keys have the same name", field=place,
                              expected="each name once", actual=", ".join(sorted(map(str, value))))  # fmt: skip
        return result
    if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray | memoryview):
        if len(value) > MAX_NUMBERS and all(map(_is_number, value)):
            raise _vector(place)
        return [plain(v, f"{place}[{n}]") for n, v in enumerate(value)]
    raise SchemaError("a value cannot be written as JSON", field=place, actual=type(value).__name__,
                      expected="text, a number, a date, a list or an object",
                      hint="leave the column out (--drop)")  # fmt: skip


def _is_number(value: object) -> bool:
    numbers = int | float | decimal.Decimal | np.number | JsonNumber
    return value is None or (isinstance(value, numbers) and not isinstance(value, bool))


def _vector(place: str) -> SchemaError:
    return SchemaError("a vector is no metadata", field=place, expected=f"at most {MAX_NUMBERS} numbers in a list",
                       hint="leave the column out (--drop): a window embeds its documents anew")  # fmt: skip
