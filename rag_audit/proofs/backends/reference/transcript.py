"""The transcript of the scan argument, and a proof that is read along it (docs/scan/transcript.md)."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable

from rag_audit._internal.errors import EncodingError
from rag_audit.proofs.backends.reference.group import POINT_BYTES, Point, decode, encode
from rag_audit.relation.field import MODULUS

PROTOCOL = b"rag-audit/scan/v1"
START, BYTES, INTEGER, SCALAR, POINT, CHALLENGE = range(6)
CLAIM = 6
"""The label that a watch receives for a claim; the transcript does not absorb it."""
_BYTES = 32


class Transcript:
    """The digest of both parties' messages so far, 32 bytes."""

    def __init__(self, name: str, watch: Callable[[int, str, bytes, bytes], None] | None = None) -> None:
        self.state = bytes(32)
        self._watch = watch
        self._absorb(START, name, PROTOCOL)

    def _absorb(self, kind: int, label: str, data: bytes) -> None:
        self.label, named = label, label.encode()
        lengths = [len(part).to_bytes(8, "little") for part in (named, data)]
        self.state = hashlib.sha256(
            self.state + bytes([kind]) + lengths[0] + named + lengths[1] + data
        ).digest()
        if self._watch is not None:
            self._watch(kind, label, data, self.state)

    def claim(self, name: str) -> None:
        """Tell the watch the name of a claim; the transcript does not absorb it."""
        if self._watch is not None:
            self._watch(CLAIM, name, b"", self.state)

    def raw(self, label: str, data: bytes) -> None:
        self._absorb(BYTES, label, data)

    def integer(self, label: str, value: int) -> None:
        self._absorb(INTEGER, label, value.to_bytes(8, "little"))

    def scalar(self, label: str, value: int) -> None:
        self._absorb(SCALAR, label, value.to_bytes(_BYTES, "big"))

    def integers(self, *named: tuple[str, int]) -> None:
        for label, value in named:
            self.integer(label, value)

    def scalars(self, *named: tuple[str, int]) -> None:
        for label, value in named:
            self.scalar(label, value)

    def point(self, label: str, data: bytes) -> None:
        self._absorb(POINT, label, data)

    def points(self, label: str, points: Iterable[Point]) -> None:
        for point in points:
            self.point(label, encode(point))

    def challenge(self, label: str) -> int:
        self._absorb(CHALLENGE, label, b"")
        halves = (hashlib.sha256(self.state + bytes([CHALLENGE, i])).digest() for i in (0, 1))
        return int.from_bytes(b"".join(halves), "little") % MODULUS


class Reader:
    """A proof's bytes, each absorbed as it is read."""

    def __init__(self, transcript: Transcript, proof: bytes) -> None:
        self.transcript = transcript
        self._proof, self._at = proof, 0

    def _take(self, size: int) -> bytes:
        piece = self._proof[self._at : self._at + size]
        if len(piece) != size:
            raise EncodingError(
                "a proof ends early", expected=f"{self._at + size} bytes", actual=str(len(self._proof))
            )
        self._at += size
        return piece

    def point(self, label: str) -> Point:
        data = self._take(POINT_BYTES)
        self.transcript.point(label, data)
        return decode(data)

    def scalar(self, label: str) -> int:
        value = int.from_bytes(self._take(_BYTES), "big")
        if value >= MODULUS:
            raise EncodingError("not a field element", expected="0..r-1", actual=str(value))
        self.transcript.scalar(label, value)
        return value

    def end(self) -> None:
        if self._at != len(self._proof):
            raise EncodingError(
                "a proof is too long", expected=f"{self._at} bytes", actual=str(len(self._proof))
            )
