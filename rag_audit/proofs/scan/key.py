"""What a window fixes for the scan proofs of one tenant: the index commitment and the policy's constants."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from rag_audit import _native
from rag_audit.canonical import Json, digest_hex, parse_base64, parse_hex
from rag_audit.errors import EncodingError, SchemaError

PROTOCOL = digest_hex({"system": "scan", "version": 1, "claims": ["A2", "A3", "A4"]})
"""Names the argument where groth16 names a circuit."""

_INTEGERS = ("dimension", "capacity", "listed", "lo", "hi", "lattice")


@dataclass(frozen=True)
class ScanKey:
    """Verification key of one tenant in one window.

    :param points: the index commitment, 32 bytes a point
    :param dimension: components of a vector
    :param capacity: positions
    :param window: digest of what the window fixes besides: opening, policy, tenant
    :param gains: gains of the noise
    :param listed: K
    :param lo: lower end of the score window
    :param hi: upper end of the score window
    :param lattice: R
    """

    points: bytes
    dimension: int
    capacity: int
    window: bytes
    gains: tuple[int, ...]
    listed: int
    lo: int
    hi: int
    lattice: int

    @cached_property
    def index(self) -> _native.ScanIndex:
        """The commitment, decoded and checked once.

        :raises EncodingError: another length than capacity and dimension have, a point off the curve
        """
        try:
            return _native.ScanIndex(self.points, self.dimension, self.capacity)
        except (ValueError, OverflowError) as exc:
            raise EncodingError("index commitment refused", field="points", found=str(exc)) from exc

    @cached_property
    def parameters(self) -> _native.ScanParameters:
        """The other constants, in native form.

        :raises EncodingError: a constant out of range
        """
        try:
            return _native.ScanParameters(
                self.window, list(self.gains), self.listed, self.lo, self.hi, self.lattice
            )
        except (ValueError, OverflowError) as exc:
            raise EncodingError("policy constants refused", field="window", found=str(exc)) from exc

    @property
    def c_idx(self) -> int:
        """The commitment as the field element that a statement carries: the first 31 bytes of its SHA-256."""
        return int.from_bytes(self.index.digest()[:31], "big")

    def to_json(self) -> dict[str, Any]:
        """As files carry it."""
        return {
            "system": "scan",
            "protocol": PROTOCOL,
            "points": base64.b64encode(self.points).decode(),
            "window": self.window.hex(),
            "gains": list(self.gains),
            **{name: getattr(self, name) for name in _INTEGERS},
        }

    def __getstate__(self) -> dict[str, Any]:
        # The native objects are made again where the key arrives.
        return {k: v for k, v in self.__dict__.items() if k not in ("index", "parameters")}


def parse_key(value: Json, *, field: str) -> ScanKey:
    """A key from a file.

    :raises SchemaError: other fields, another system or protocol
    :raises EncodingError: not canonical, a point off the curve
    """
    names = {"system", "protocol", "points", "window", "gains", *_INTEGERS}
    if not isinstance(value, dict) or set(value) != names:
        found = sorted(map(str, value)) if isinstance(value, dict) else type(value).__name__
        raise SchemaError("not a scan key", field=field, expected=sorted(names), found=found)
    for name, expected in (("system", "scan"), ("protocol", PROTOCOL)):
        if value[name] != expected:
            raise SchemaError(
                "key of another system", field=f"{field}.{name}", expected=expected, found=value[name]
            )
    gains = value["gains"]
    numbers = [*(value[name] for name in _INTEGERS), *(gains if isinstance(gains, list) else [None])]
    if not all(type(x) is int and 0 <= x < 2**53 for x in numbers):
        raise SchemaError("not non-negative integers", field=field, expected=[*_INTEGERS, "gains"])
    key = ScanKey(
        points=parse_base64(value["points"], field=f"{field}.points"),
        window=parse_hex(value["window"], 32, field=f"{field}.window"),
        gains=tuple(gains),
        **{name: value[name] for name in _INTEGERS},
    )
    key.index  # noqa: B018 -- decoded here, so that a bad point is an error of the file
    return key


def commit_index(rows: bytes, dimension: int, capacity: int, blinding_key: bytes) -> bytes:
    """The index commitment of int8 rows in -7..7, shape (positions, dimension), as a key's `points`.

    :param blinding_key: 32 secret bytes, fresh for every commitment that is published
    :raises EncodingError: rows of another shape or with components outside -7..7
    """
    try:
        return _native.ScanIndex.commit(rows, dimension, capacity, blinding_key).encode()
    except (ValueError, OverflowError) as exc:
        raise EncodingError("index refused", field="rows", found=str(exc)) from exc
