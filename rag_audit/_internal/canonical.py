"""Canonical encodings: writing RFC 8785 JSON, reading strict JSON and TOML, fixed-width hexadecimal and base64.

All hashed or signed data pass through this module, so that two implementations compute the same bytes from one file.
Reading refuses ambiguous input: duplicate keys, floats, big integers, lone surrogates, and unbounded nesting.
"""

from __future__ import annotations

import binascii
import codecs
import hashlib
import json
import re
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias, cast

import rfc8785

from rag_audit import _native
from rag_audit._internal.errors import EncodingError, RagAuditError, SizeError, kind_of
from rag_audit._internal.regular import open_regular

if TYPE_CHECKING:
    Json: TypeAlias = bool | int | str | list["Json"] | dict[str, "Json"] | None
else:
    # A model stores a part of a document without validation if another model validates it, so pydantic must accept any
    # value here.
    Json = Any
"""A JSON value as it is read: dict, list, str, int, bool or None; never float."""

MAX_SAFE_INTEGER = 2**53 - 1
MAX_DEPTH = 64
MAX_VALUES = 1 << 24
"""Maximum JSON values in one document: a value that is written in six bytes may take two hundred in memory."""
MAX_TOML_DEPTH = 8
MAX_TOML_LINE = 16_384
_HEX = re.compile(r"\A[0-9a-f]*\Z")
_SURROGATE = re.compile(r"[\ud800-\udfff]")


def jcs(value: Json) -> bytes:
    """RFC 8785 (JCS) bytes of a JSON value. Integers must stay below 2^53 in magnitude; floats are refused.

    :raises EncodingError: the value contains a float, an integer from 2^53 on, a lone surrogate or a non-JSON type
    """
    plain = _native.canonical_json(value)
    if plain is not None:
        return plain
    _check(value, "$", 0)
    try:
        return rfc8785.dumps(value)
    except (rfc8785.CanonicalizationError, UnicodeError) as exc:
        raise EncodingError("cannot be written as canonical JSON", actual=str(exc)) from exc


def _plain(value: Any, depth: int) -> bool:  # Any: its exact type is looked at, which mypy does not follow
    """Whether a value can be written. If the result is false, the caller checks the value place by place."""
    kind = type(value)
    if depth > MAX_DEPTH:
        return False
    if kind is str:
        return bool(value.isascii()) or _SURROGATE.search(value) is None
    if kind is int:
        return bool(-MAX_SAFE_INTEGER <= value <= MAX_SAFE_INTEGER)
    if kind is dict:
        for key, item in value.items():
            if type(key) is not str or not key.isascii() or not _plain(item, depth + 1):
                return False
        return True
    if kind is list or kind is tuple:
        try:  # lists of texts, of hashes above all, in one step
            if "".join(value).isascii():
                return depth < MAX_DEPTH
        except TypeError:
            pass
        return all(_plain(item, depth + 1) for item in value)
    return value is None or kind is bool


def _check(value: Json, where: str, depth: int) -> None:
    wrong = _wrong(value, depth)
    if wrong is not None:
        place, error = wrong
        error.field = where + "".join(reversed(place))
        raise error


def _wrong(value: Json, depth: int) -> tuple[list[str], RagAuditError] | None:
    """The fault of a value and the steps that lead to it, last step first, or None where the value is well-formed."""
    if depth > MAX_DEPTH:
        return [], EncodingError("JSON nested too deeply", expected=f"depth <= {MAX_DEPTH}")
    if value is None or isinstance(value, bool):
        return None
    if isinstance(value, int):
        if abs(value) > MAX_SAFE_INTEGER:
            return [], EncodingError("integer too large for JSON", expected="below 2^53", actual=value)
        return None
    if isinstance(value, str):
        if not value.isascii() and _SURROGATE.search(value):
            return [], EncodingError("lone surrogate in a string")
        return None
    if isinstance(value, list | tuple):
        for i, item in enumerate(value):
            if (wrong := _wrong(item, depth + 1)) is not None:
                wrong[0].append(f"[{i}]")
                return wrong
        return None
    if isinstance(value, dict):
        for key, item in value.items():
            if not isinstance(key, str):
                return [], EncodingError("JSON keys must be strings", actual=key)
            if not key.isascii() and _SURROGATE.search(key):
                return [], EncodingError("lone surrogate in a string")
            if (wrong := _wrong(item, depth + 1)) is not None:
                wrong[0].append(f".{key[:80]}")
                return wrong
        return None
    return [], EncodingError("not a JSON value", actual=kind_of(value))


def parse_json(
    data: bytes | str,
    *,
    source: str,
    max_bytes: int | None = None,
    max_values: int | None = None,
    reals: bool = False,
) -> Json:
    """Parse JSON strictly.

    :param source: the data's name in the error's `field`
    :param max_values: the maximum number of values, counted before parsing creates any value
    :param reals: whether to accept numbers that are no integers, each as its text; never NaN or infinity
    :raises SizeError: more than `max_bytes`, or more than `max_values` or `MAX_VALUES` values
    :raises EncodingError: invalid UTF-8 or JSON, duplicate keys, floats, integers from 2^53 on, or lone surrogates
    """
    raw = data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data
    if max_bytes is not None and len(raw) > max_bytes:
        raise SizeError(
            "input too large", field=source, expected=f"at most {max_bytes} bytes", actual=f"{len(raw)}"
        )
    if (maximum := count_values(raw)) > MAX_VALUES:
        raise SizeError(
            "too many JSON values", field=source, expected=f"at most {MAX_VALUES}", actual=f"up to {maximum}"
        )
    if max_values is not None and (maximum := _native.json_values(raw)) > max_values:
        raise SizeError(
            "too many JSON values", field=source, expected=f"at most {max_values}", actual=maximum
        )
    if not reals and (plain := _native.plain_json(raw)) is not None:
        return cast(Json, plain)
    text = _unmarked(raw, source)

    def pairs(items: list[tuple[str, Json]]) -> dict[str, Json]:
        out: dict[str, Json] = {}
        for key, value in items:
            if key in out:
                raise EncodingError(
                    "duplicate JSON key", field=source, expected="each key once", actual=repr(key)
                )
            out[key] = value
        return out

    def no_float(text: str) -> NoReturn:
        raise EncodingError(
            "a JSON number that is not an integer", field=source, expected="integers", actual=text
        )

    def integer(text: str) -> int:
        if len(text) > 17 or abs(int(text)) > MAX_SAFE_INTEGER or text == "-0":
            raise EncodingError(
                "JSON integer out of range", field=source, expected="below 2^53", actual=text[:40]
            )
        return int(text)

    try:
        value: Json = json.loads(
            text,
            object_pairs_hook=pairs,
            parse_float=str if reals else no_float,
            parse_int=integer,
            parse_constant=no_float,
        )
    except json.JSONDecodeError as exc:
        raise EncodingError(
            "not valid JSON (truncated or damaged?)",
            field=f"{source}, line {exc.lineno} column {exc.colno}",
            actual=not_json(exc),
        ) from exc
    except RecursionError as exc:
        raise EncodingError("JSON nested too deeply", field=source, expected=f"depth <= {MAX_DEPTH}") from exc
    if not _plain(value, 0):
        _check(value, source, 0)
    return value


def not_json(error: json.JSONDecodeError) -> str:
    """The content of a JSON text at the place of its first error, in words."""
    if not error.doc[: error.pos].strip():
        return "text that is not JSON"
    return _NOT_JSON.get(error.msg, "text that is not JSON")


_NOT_JSON = {
    "Expecting value": "no JSON value",
    "Expecting ',' delimiter": "no comma and no closing bracket",
    "Expecting ':' delimiter": "no colon after a name",
    "Expecting property name enclosed in double quotes": "no name in double quotes",
    "Extra data": "further text after the JSON value",
    "Unterminated string starting at": "a text without its closing quote",
    "Invalid control character at": "a control character in a text",
}


def count_values(data: bytes) -> int:
    """An upper bound on the values of a JSON text: each but the outermost follows a comma or an opening bracket."""
    return 1 + data.count(b",") + data.count(b"[") + data.count(b"{")


_TOML_PART = re.compile(r"""#[^\n]*|\"{3}|'{3}|"(?:\\[^\n]|[^"\\\n])*+("?)|'[^'\n]*+('?)""")
_TOML_DOTS = re.compile(rf"(?:[\w-]++[ \t]*+\.[ \t]*+){{{MAX_TOML_DEPTH},}}")
_TOML_NUMBER = re.compile(r"[0-9_]{32}|0x[0-9a-fA-F_]{32}")


def parse_toml(data: bytes, *, source: str, max_bytes: int) -> dict[str, object]:
    """Parse TOML 1.0 within bounds that are checked before the parser sees the text.

    Python's parser takes memory with the square of a dotted key's parts, recurses with nested brackets, and refuses
    long integers by its own error. The function refuses constructs that settings files do not need: keys and brackets
    deeper than `MAX_TOML_DEPTH`, numbers of 32 digits, multi-line strings, lines above `MAX_TOML_LINE`.

    :param source: the data's name in the error's `field`
    :raises SizeError: the text is beyond one of these bounds
    :raises EncodingError: the text is not valid TOML
    """
    text = bounded_text(data, what="TOML", field=source, max_bytes=max_bytes)
    for number, line in enumerate(text.split("\n"), 1):
        if len(line) > MAX_TOML_LINE:
            raise SizeError("TOML line too long", field=f"{source}, line {number}",
                            expected=f"at most {MAX_TOML_LINE} characters", actual=f"{len(line)}")  # fmt: skip

    def plain(match: re.Match[str]) -> str:
        part = match[0]
        if part in ('"' * 3, "'" * 3) or (part[0] in "\"'" and not (match[1] or match[2])):
            line = text.count("\n", 0, match.start()) + 1
            raise EncodingError("not a string on one line", field=f"{source}, line {line}",
                                expected='"text" or \'text\'')  # fmt: skip
        return "" if part[0] == "#" else "s"

    skeleton = _TOML_PART.sub(plain, text)
    depth = deepest = 0
    for character in re.findall(r"[\[\]{}]", skeleton):
        depth += 1 if character in "[{" else -1
        deepest = max(deepest, depth)
    if deepest > MAX_TOML_DEPTH or _TOML_DOTS.search(skeleton):
        raise SizeError("TOML nested too deeply", field=source, expected=f"depth <= {MAX_TOML_DEPTH}")
    if _TOML_NUMBER.search(skeleton):
        raise SizeError("TOML number too long", field=source, expected="fewer than 32 digits")
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as exc:
        raise EncodingError("not valid TOML", field=source, actual=str(exc)) from exc


def bounded_text(data: str | bytes, *, what: str, field: str, max_bytes: int) -> str:
    """Bytes as text, once they are known to be UTF-8 and within a format's limit.

    :param what: the format's name, for the error
    :raises SizeError: more than `max_bytes`
    :raises EncodingError: the bytes are not UTF-8
    """
    try:
        raw = data.encode() if isinstance(data, str) else data
    except UnicodeError as exc:
        raise EncodingError("not UTF-8", field=field) from exc
    if len(raw) > max_bytes:
        raise SizeError(f"{what} too large", field=field, expected=f"at most {max_bytes} bytes")
    return _unmarked(raw, field)


def _unmarked(data: bytes, source: str) -> str:
    """Decode UTF-8 without a byte order mark. A mark would change the bytes that are hashed or signed, so a file with
    one is refused with the remedy.

    :raises EncodingError: the bytes are not UTF-8, or begin with a mark of UTF-8 or UTF-16
    """
    if data.startswith((codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise EncodingError("the file begins with a byte order mark", field=source,
                            expected="UTF-8 without a byte order mark",
                            hint="save the file as UTF-8 without a byte order mark")  # fmt: skip
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as exc:
        raise EncodingError("not UTF-8", field=source, actual=f"byte {exc.start}") from exc


def read_bytes(path: Path, *, max_bytes: int) -> bytes:
    """Read a whole regular file, refusing more than `max_bytes` before they are in memory.

    :raises EncodingError: the file cannot be read, or is a FIFO, a device or a folder
    :raises SizeError: more than `max_bytes`
    """
    try:
        with open_regular(path) as handle:
            data = handle.read(max_bytes + 1)
    except OSError as exc:
        raise EncodingError("cannot be read", field=str(path), actual=exc.strerror or str(exc)) from exc
    if len(data) > max_bytes:
        raise SizeError("file too large", field=str(path), expected=f"at most {max_bytes} bytes")
    return data


def read_text(path: Path, *, max_bytes: int) -> str:
    """The content of a regular file as UTF-8 text (`read_bytes`).

    :raises EncodingError: as `read_bytes`, or the content is not UTF-8
    """
    return _unmarked(read_bytes(path, max_bytes=max_bytes), str(path))


def read_json(path: Path, *, max_bytes: int) -> Json:
    """The JSON value in a file (`parse_json`)."""
    return parse_json(read_bytes(path, max_bytes=max_bytes), source=str(path))


def sha256(data: bytes) -> bytes:
    """SHA-256 (FIPS 180-4), 32 bytes."""
    return hashlib.sha256(data).digest()


def digest_hex(value: Json) -> str:
    """SHA-256 over the JCS form as 64 lowercase hex digits, which is how this project names a JSON document."""
    return sha256(jcs(value)).hex()


def parse_hex(text: Json, size: int, *, field: str) -> bytes:
    """The bytes of a text that must be exactly `size` bytes in lowercase hexadecimal."""
    if not isinstance(text, str) or len(text) != 2 * size or not _HEX.match(text):
        raise EncodingError(
            "not canonical hexadecimal", field=field, expected=f"{2 * size} lowercase hex digits", actual=text
        )
    return bytes.fromhex(text)


def parse_base64(text: Json, *, field: str) -> bytes:
    """The bytes of canonical standard base64 with padding; re-encoding the bytes must give the same text."""
    if isinstance(text, str):
        try:
            raw = text.encode("ascii")
            data = binascii.a2b_base64(raw, strict_mode=True)
        except (binascii.Error, UnicodeEncodeError):
            data = None
        if data is not None and binascii.b2a_base64(data, newline=False) == raw:
            return data
    raise EncodingError("not canonical base64", field=field, actual=text)
