"""Calls of the WebAssembly module `native/wasm`. Their arguments and results are bytes (`native/wasm/src/wire.rs`)."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any, TypeAlias, TypeVar, cast

T = TypeVar("T")
Field: TypeAlias = "bytes | str | int | float | StoredValue | Sequence[Any]"
"""An argument: bytes, a text, an integer, a float, an object that the module stores, or a list of them. The encoding of
a tuple is the concatenation of its items' encodings.
"""

_LENGTH = struct.Struct("<I")
_INTEGER = struct.Struct("<q")
_FLOAT = struct.Struct("<d")


def _transport() -> Callable[[bytes], bytes]:
    """The page's own function, which hands a request to the module."""
    import ragaudit_host  # type: ignore[import-not-found]  # JavaScript, registered by the worker
    from pyodide.ffi import to_js  # type: ignore[import-not-found]

    return lambda request: cast("bytes", ragaudit_host.call(to_js(request)).to_bytes())


_call: Callable[[bytes], bytes] | None = None


def call(name: str, *arguments: Field) -> Results:
    """The result of the module's function of that name.

    :raises ValueError: the function refuses, with its reason
    :raises RuntimeError: the module failed and cannot be used any more
    """
    global _call
    if _call is None:
        _call = _transport()
    answer = _call(b"".join([_encode(name), *map(_encode, arguments)]))
    if answer[0]:
        raise ValueError(answer[1:].decode())
    return Results(answer)


def _encode(value: Field) -> bytes:
    if isinstance(value, StoredValue):
        value = value.number
    if isinstance(value, str):
        value = value.encode()
    if isinstance(value, bytes | bytearray | memoryview):
        return _LENGTH.pack(len(value)) + value
    if isinstance(value, int):
        try:
            return _INTEGER.pack(value)
        except struct.error as exc:
            raise OverflowError(str(exc)) from exc
    if isinstance(value, float):
        return _FLOAT.pack(value)
    items = b"".join(map(_encode, value))
    return items if isinstance(value, tuple) else _LENGTH.pack(len(value)) + items


def optional(value: Field | None) -> list[Field]:
    """An optional value, in the module's encoding."""
    return [] if value is None else [value]


class Results:
    """The results of a call, read in their order."""

    def __init__(self, answer: bytes) -> None:
        self._answer = answer
        self._at = 1

    def _unpack(self, form: struct.Struct) -> Any:
        (value,) = form.unpack_from(self._answer, self._at)
        self._at += form.size
        return value

    def integer(self) -> int:
        """The next result, an integer."""
        return int(self._unpack(_INTEGER))

    def float(self) -> float:
        """The next result, a float."""
        return float(self._unpack(_FLOAT))

    def bytes(self) -> bytes:
        """The next result, bytes."""
        length = self._unpack(_LENGTH)
        self._at += length
        return self._answer[self._at - length : self._at]

    def text(self) -> str:
        """The next result, a text."""
        return self.bytes().decode()

    def list(self, item: Callable[[], T]) -> Iterable[T]:
        """The next result, a list; `item` reads each of its items."""
        return [item() for _ in range(self._unpack(_LENGTH))]


class StoredValue:
    """An object that the module stores until this handle is dropped.

    :param kind: the first part of the names of its functions
    """

    kind = ""
    number: int

    def _keep(self, name: str, *arguments: Field) -> None:
        self.number = call(name, *arguments).integer()

    def __del__(self) -> None:
        if hasattr(self, "number"):
            # The module may have failed, or have ended with the process; its objects are then gone too.
            with suppress(Exception):
                call(f"{self.kind}_drop", self)
