"""JSON Lines, plain or gzip: one object a line, each named by its place."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path

from rag_audit.encoding.canonical import Json, parse_json, read_bytes
from rag_audit.encoding.durable import open_regular
from rag_audit.errors import EncodingError, SchemaError, SizeError

MAX_TEXT_BYTES = 4 << 30


def records(path: Path) -> Iterator[tuple[str, int, dict[str, Json]]]:
    """Each line's place in words, its number from 1, and its object; empty lines are passed over.

    :raises EncodingError: the file is unreadable, or a line is not JSON
    :raises SchemaError: a line is not an object
    :raises SizeError: the file has more than `MAX_TEXT_BYTES`
    """
    data = inflate(path) if path.suffix == ".gz" else read_bytes(path, max_bytes=MAX_TEXT_BYTES)
    for number, line in enumerate(data.split(b"\n"), 1):
        if not line.strip():
            continue
        place = f"{path.name}, line {number}"
        value = parse_json(line, source=place)
        if not isinstance(value, dict):
            raise SchemaError(
                "the line is not a JSON object",
                field=place,
                expected="a JSON object",
                found=type(value).__name__,
            )
        yield place, number, value


def inflate(path: Path) -> bytes:
    """The bytes that a gzip file holds, bounded.

    :raises EncodingError: the file is unreadable or not gzip
    :raises SizeError: it holds more than `MAX_TEXT_BYTES`
    """
    try:
        with open_regular(path) as file, gzip.open(file) as handle:
            data = handle.read(MAX_TEXT_BYTES + 1)
    except (OSError, EOFError, zlib.error) as exc:
        raise EncodingError("cannot be read", field=str(path), found=str(exc)) from exc
    if len(data) > MAX_TEXT_BYTES:
        raise SizeError("file too large", field=str(path), expected=f"at most {MAX_TEXT_BYTES} bytes")
    return data


def string(value: Mapping[str, Json], key: str, place: str) -> str:
    """A line's string under a key.

    :raises SchemaError: there is none
    """
    text = value.get(key)
    if not isinstance(text, str):
        raise SchemaError(f"no {key}", field=place, expected=f'{{"{key}": ".."}}', found=repr(text))
    return text
