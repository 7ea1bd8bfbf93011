"""Several byte strings as one: each with its length before it, 4 bytes, big-endian."""

from __future__ import annotations

from collections.abc import Iterable

from rag_audit._internal.errors import EncodingError

_LENGTH = 4


def joined(parts: Iterable[bytes]) -> bytes:
    """The parts as one byte string."""
    return b"".join(len(part).to_bytes(_LENGTH, "big") + part for part in parts)


def separated(data: bytes, count: int, *, field: str) -> list[bytes]:
    """The inverse of `joined`.

    :param count: how many parts there have to be
    :raises EncodingError: there are more or fewer, or the last one ends early
    """
    parts, at = [], 0
    while at < len(data):
        end = at + _LENGTH + int.from_bytes(data[at : at + _LENGTH], "big")
        parts.append(data[at + _LENGTH : end])
        at = end
    if len(parts) != count or at != len(data):
        raise EncodingError(
            "the parts do not fill their container", field=field, expected=count, actual=len(parts)
        )
    return parts
