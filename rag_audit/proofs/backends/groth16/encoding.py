"""Encodings of BN254's curve points in our files and as bytes.

Files contain 64 lowercase hexadecimal digits for each coordinate, so that a proof's size reveals no information about
it; an element of Fp2 is [c0, c1] with value c0 + c1 u. The verifiers take the byte form of EIP-197: 32 bytes big-endian
for each coordinate, c1 before c0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias, TypedDict

from rag_audit._internal.canonical import Json, parse_hex
from rag_audit._internal.errors import EncodingError, SchemaError, kind_of

BASE_MODULUS = 21888242871839275222246405745257275088696311157297823662689037894645226208583
"""p, the order of the coordinates' field."""

G1Json: TypeAlias = list[str]
"""A point of G1 in our files: [x, y]."""
G2Json: TypeAlias = list[list[str]]
"""A point of G2 in our files: [[x0, x1], [y0, y1]]."""


class SnarkjsKey(TypedDict):
    """A verification key as snarkjs writes it: projective points, coordinates as decimal texts."""

    protocol: str
    curve: str
    nPublic: int
    vk_alpha_1: list[str]
    vk_beta_2: list[list[str]]
    vk_gamma_2: list[list[str]]
    vk_delta_2: list[list[str]]
    IC: list[list[str]]


class SnarkjsProof(TypedDict):
    """A proof as snarkjs writes it."""

    protocol: str
    curve: str
    pi_a: list[str]
    pi_b: list[list[str]]
    pi_c: list[str]


_TWIST = (
    19485874751759354771024239261021720505790618469301721065564631296452457478373,
    266929791119991161246907387137283842545076965332900288569378510910307636690,
)
"""3 / (9 + u), the twist's constant."""


def parse_fields(value: Json, names: Sequence[str], *, field: str) -> dict[str, Json]:
    """Check that a value is a JSON object with exactly these fields.

    :raises SchemaError: the value is not an object, or has other fields
    """
    if not isinstance(value, dict) or set(value) != set(names):
        actual = sorted(map(str, value)) if isinstance(value, dict) else kind_of(value)
        raise SchemaError(
            "the fields do not match this format", field=field, expected=sorted(names), actual=actual
        )
    return value


def parse_g1(value: Json, *, field: str) -> bytes:
    """A point [x, y] of G1 as 64 bytes.

    :raises EncodingError: the point is not canonical, at infinity, or not on the curve
    """
    x, y = (_coordinate(c, field=f"{field}[{i}]") for i, c in enumerate(_pair(value, field=field)))
    if x == y == 0:
        raise EncodingError("the point is at infinity", field=field)
    if (y * y - x**3 - 3) % BASE_MODULUS:
        raise EncodingError("the point is not on the curve", field=field, expected="y^2 = x^3 + 3")
    return b"".join(c.to_bytes(32, "big") for c in (x, y))


def parse_g2(value: Json, *, field: str) -> bytes:
    """A point [[x0, x1], [y0, y1]] of G2 as 128 bytes. The verifiers check that it is in the subgroup.

    :raises EncodingError: the point is not canonical, at infinity, or not on the curve
    """
    parts = [
        [_coordinate(c, field=f"{field}[{i}][{j}]") for j, c in enumerate(_pair(pair, field=f"{field}[{i}]"))]
        for i, pair in enumerate(_pair(value, field=field))
    ]
    (x0, x1), (y0, y1) = parts
    if not (x0 or x1 or y0 or y1):
        raise EncodingError("the point is at infinity", field=field)
    square = (x0 * x0 - x1 * x1, 2 * x0 * x1)
    cube = (square[0] * x0 - square[1] * x1, square[0] * x1 + square[1] * x0)
    left = (y0 * y0 - y1 * y1, 2 * y0 * y1)
    if any((a - b - c) % BASE_MODULUS for a, b, c in zip(left, cube, _TWIST, strict=True)):
        raise EncodingError("the point is not on the curve", field=field, expected="y^2 = x^3 + 3 / (9 + u)")
    return b"".join(c.to_bytes(32, "big") for c in (x1, x0, y1, y0))


def g1_json(data: bytes) -> G1Json:
    """A point of G1 from 64 bytes as [x, y]."""
    return [data[:32].hex(), data[32:64].hex()]


def g2_json(data: bytes) -> G2Json:
    """A point of G2 from 128 bytes as [[x0, x1], [y0, y1]]."""
    return [[data[32:64].hex(), data[:32].hex()], [data[96:128].hex(), data[64:96].hex()]]


def _pair(value: Json, *, field: str) -> list[Json]:
    if not isinstance(value, list) or len(value) != 2:
        raise EncodingError("not a list of two", field=field)
    return value


def _coordinate(text: Json, *, field: str) -> int:
    value = int.from_bytes(parse_hex(text, 32, field=field), "big")
    if value >= BASE_MODULUS:
        raise EncodingError("a coordinate is not canonical", field=field, expected="below p", actual=text)
    return value
