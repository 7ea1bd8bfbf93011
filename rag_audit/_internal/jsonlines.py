"""JSON Lines, plain or gzip: one object a line, each named by its place."""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from rag_audit import _native
from rag_audit._internal.canonical import (
    MAX_DEPTH,
    MAX_SAFE_INTEGER,
    MAX_VALUES,
    count_values,
    not_json,
    read_bytes,
)
from rag_audit._internal.characters import MARKS, decode_text
from rag_audit._internal.errors import EncodingError, SchemaError, SizeError
from rag_audit._internal.regular import open_regular

MAX_TEXT_BYTES = 4 << 30
_SURROGATE = re.compile(r"[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class JsonNumber:
    """A JSON number that is no integer below 2^53, as the file writes it: ``0.5``, ``1e3``, ``NaN``."""

    text: str

    def __str__(self) -> str:
        return self.text


def records(path: Path) -> Iterator[tuple[str, int, dict[str, object]]]:
    """Each line's place in words, its number from 1, and its object (`parse_row`); empty lines are passed over.

    :raises EncodingError: the file is unreadable, or a line is not JSON
    :raises SchemaError: a line is not an object
    :raises SizeError: the file has more than `MAX_TEXT_BYTES`
    """
    for place, number, line in text_lines(path):
        yield place, number, parse_row(line, source=place)


def text_lines(path: Path) -> Iterator[tuple[str, int, bytes]]:
    """Each line's place in words, its number from 1, and its bytes; empty lines are passed over.

    :raises EncodingError: the file is unreadable
    :raises SizeError: the file has more than `MAX_TEXT_BYTES`
    """
    data = inflate(path) if path.suffix == ".gz" else read_bytes(path, max_bytes=MAX_TEXT_BYTES)
    for number, line in enumerate(split_lines(data, source=str(path)), 1):
        if line.strip():
            yield f"{path.name}, line {number}", number, line


def split_lines(data: bytes, *, source: str) -> list[bytes]:
    """The lines of a JSON Lines file in UTF-8. The file may begin with a byte order mark and be UTF-16, as every text
    file may (`decode_text`).

    :param source: the name of the file, for the error's `field`
    :raises EncodingError: the file has a byte order mark and is not in its encoding, or contains the character NUL
    """
    if data.startswith(tuple(mark for mark, _ in MARKS)) or b"\0" in data:
        data = decode_text(data, source=source).encode()
    return data.split(b"\n")


def inflate(path: Path) -> bytes:
    """The content of a gzip file, with limited size.

    :raises EncodingError: the file is unreadable or not gzip
    :raises SizeError: the content exceeds `MAX_TEXT_BYTES`
    """
    try:
        with open_regular(path) as file, gzip.open(file) as handle:
            data = handle.read(MAX_TEXT_BYTES + 1)
    except (OSError, EOFError, zlib.error) as exc:
        raise EncodingError("cannot be read", field=str(path), actual=str(exc)) from exc
    if len(data) > MAX_TEXT_BYTES:
        raise SizeError("file too large", field=str(path), expected=f"at most {MAX_TEXT_BYTES} bytes")
    return data


def string(value: Mapping[str, object], key: str, place: str) -> str:
    """A line's string under a key.

    :raises SchemaError: the key is missing or has no string
    """
    text = value.get(key)
    if not isinstance(text, str):
        raise SchemaError(f"no {key}", field=place, expected=f'{{"{key}": ".."}}', actual=repr(text))
    return text


class _Twice(dict[str, object]):
    """An object with a repeated key."""

    def __init__(self, value: dict[str, object], key: str) -> None:
        super().__init__(value)
        self.key = key


def parse_row(data: bytes, *, source: str, without: Collection[str] = ()) -> dict[str, object]:
    """Parse a row that another program wrote as a JSON object.

    Rows are not canonical JSON: their fractions, large integers and NaN are accepted, each as a `JsonNumber`. All other
    errors of `parse_json` apply.

    :param source: the data's name in the error's `field`
    :param without: fields to omit (`left_out_of`); their values are not checked
    :raises EncodingError: invalid UTF-8 or JSON, duplicate keys, lone surrogates, or nesting beyond `MAX_DEPTH`
    :raises SchemaError: the row is not an object
    :raises SizeError: more than `MAX_VALUES` values
    """
    if (maximum := count_values(data)) > MAX_VALUES:
        raise SizeError(
            "too many JSON values", field=source, expected=f"at most {MAX_VALUES}", actual=f"up to {maximum}"
        )
    plain = _native.plain_json(data)
    value = _loaded(data, source) if plain is None else plain
    if not isinstance(value, dict):
        raise SchemaError("the line is not a JSON object", field=source, expected="a JSON object",
                          actual=type(value).__name__)  # fmt: skip
    if isinstance(value, _Twice):
        raise _duplicate(value, source)
    value = left_out_of(value, without)
    if plain is None:
        _check(value, source, 0)
    return value


def left_out_of(value: Mapping[str, object], names: Collection[str]) -> dict[str, object]:
    """A row without the named fields. The name ``a.b`` denotes both a field ``a.b`` and the field ``b`` of an object
    ``a``. The function also removes an object if no field of it remains.
    """
    if not names:
        return dict(value)
    kept: dict[str, object] = {}
    for key, item in value.items():
        if key in names:
            continue
        inner = [name[len(key) + 1 :] for name in names if name.startswith(f"{key}.")]
        if inner and isinstance(item, Mapping):
            remaining = left_out_of(item, inner)
            if item and not remaining:
                continue
            item = remaining
        kept[key] = item
    return kept


def _loaded(data: bytes, source: str) -> object:
    def pairs(items: list[tuple[str, object]]) -> dict[str, object]:
        result = dict(items)
        if len(result) == len(items):
            return result
        counts = Counter(name for name, _ in items)
        return _Twice(result, next(name for name, count in counts.items() if count > 1))

    def integer(text: str) -> int | JsonNumber:
        small = len(text) <= 17 and text != "-0" and abs(int(text)) <= MAX_SAFE_INTEGER
        return int(text) if small else JsonNumber(text)

    try:
        return json.loads(
            data.decode("utf-8"),
            object_pairs_hook=pairs,
            parse_float=JsonNumber,
            parse_int=integer,
            parse_constant=JsonNumber,
        )
    except UnicodeDecodeError as exc:
        raise EncodingError("not UTF-8", field=source, actual=f"byte {exc.start}") from exc
    except json.JSONDecodeError as exc:
        raise EncodingError("not valid JSON (truncated or damaged?)", field=f"{source}, column {exc.colno}",
                            actual=not_json(exc)) from exc  # fmt: skip
    except RecursionError as exc:
        raise EncodingError("JSON nested too deeply", field=source, expected=f"depth <= {MAX_DEPTH}") from exc


def _check(value: object, place: str, depth: int) -> None:
    """Refuse properties that a canonical document cannot have either: deep nesting, duplicate keys, lone surrogates."""
    if depth > MAX_DEPTH:
        raise EncodingError("JSON nested too deeply", field=place, expected=f"depth <= {MAX_DEPTH}")
    if isinstance(value, str):
        if _SURROGATE.search(value):
            raise EncodingError("lone surrogate in a string", field=place)
    elif isinstance(value, dict):
        if isinstance(value, _Twice):
            raise _duplicate(value, place)
        for key, item in value.items():
            _check(key, place, depth)
            _check(item, f"{place}.{key}", depth + 1)
    elif isinstance(value, list):
        for number, item in enumerate(value):
            _check(item, f"{place}[{number}]", depth + 1)


def _duplicate(value: _Twice, place: str) -> EncodingError:
    return EncodingError("duplicate JSON key", field=place, expected="each key once", actual=repr(value.key))
