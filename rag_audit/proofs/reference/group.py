"""The group of the scan argument: generators, encodings and sums in BN254 G1 (docs/scan/transcript.md).

The curve's formulas are py_ecc's. Nothing here is fast, and nothing here has a secret.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from functools import cache
from typing import TypeAlias

from py_ecc.optimized_bn128 import FQ, Z1, add, double, field_modulus, neg, normalize
from py_ecc.optimized_bn128 import is_inf as is_neutral

from rag_audit.errors import EncodingError
from rag_audit.relation.field import MODULUS

Point: TypeAlias = tuple[FQ, FQ, FQ]
Term: TypeAlias = tuple[int, Point]

NEUTRAL: Point = Z1
DOMAIN = b"rag-audit/scan/v1/generators"
POINT_BYTES = 32
_P = field_modulus
_ODD, _NEUTRAL = 0x80, 0x40
_WINDOW = 4


def _expand(message: bytes, length: int) -> bytes:
    """expand_message_xmd of RFC 9380 with SHA-256."""
    suffix = DOMAIN + bytes([len(DOMAIN)])
    first = hashlib.sha256(bytes(64) + message + length.to_bytes(2, "big") + b"\0" + suffix).digest()
    block = hashlib.sha256(first + b"\x01" + suffix).digest()
    blocks = [block]
    for i in range(2, -(-length // 32) + 1):
        mixed = bytes(a ^ b for a, b in zip(first, block, strict=True))
        block = hashlib.sha256(mixed + bytes([i]) + suffix).digest()
        blocks.append(block)
    return b"".join(blocks)[:length]


def _root(x: int) -> int | None:
    """A square root modulo p, which is 3 modulo 4."""
    root: int = pow(x, (_P + 1) // 4, _P)
    return root if root * root % _P == x % _P else None


def _even_root(x: int) -> int:
    root = _root(x)
    if root is None:
        raise ArithmeticError("no square root")
    return root if root % 2 == 0 else _P - root


# Shallue and van de Woestijne's map (RFC 9380, 6.6.1) for y^2 = x^3 + 3 with Z = 1.
_C1 = 4
_C2 = -pow(2, -1, _P) % _P
_C3 = _even_root(-_C1 * 3 % _P)
_C4 = -4 * _C1 * pow(3, -1, _P) % _P


def _map(u: int) -> Point:
    tv1 = u * u * _C1 % _P
    tv2, tv1 = (1 + tv1) % _P, (1 - tv1) % _P
    tv3 = pow(tv1 * tv2, -1, _P) if tv1 * tv2 % _P else 0
    tv4 = u * tv1 * tv3 * _C3 % _P
    for x in (_C2 - tv4, _C2 + tv4, 1 + _C4 * (tv2 * tv2 * tv3) ** 2):
        y = _root(x**3 + 3)
        if y is not None:
            return FQ(x % _P), FQ(y if y % 2 == u % 2 else -y % _P), FQ.one()
    raise ArithmeticError("one of three values is always a square")


def decode(data: bytes) -> Point:
    """The point of 32 bytes.

    :raises EncodingError: the bytes are not the one encoding of a point
    """
    flags, x = data[0] & 0xC0, int.from_bytes(bytes([data[0] & 0x3F]) + data[1:], "big")
    if flags & _NEUTRAL:
        if flags == _NEUTRAL and x == 0:
            return NEUTRAL
        raise EncodingError(
            "not a point of the curve", expected="the neutral element's one form", found=data.hex()
        )
    y = _root(x**3 + 3) if x < _P else None
    if y is None:
        raise EncodingError("not a point of the curve", expected="x of a point below p", found=data.hex())
    odd = bool(flags & _ODD)
    return FQ(x), FQ(y if y % 2 == odd else _P - y), FQ.one()


def encode(point: Point) -> bytes:
    if is_neutral(point):
        return bytes([_NEUTRAL]) + bytes(31)
    x, y = (int(c) for c in normalize(point))
    data = bytearray(x.to_bytes(POINT_BYTES, "big"))
    data[0] |= _ODD if y % 2 else 0
    return bytes(data)


@cache
def generator(name: str) -> Point:
    """G/0, .., Q/0, .., H/0, U/0: hash_to_curve of the name."""
    expanded = _expand(name.encode(), 96)
    u, v = (int.from_bytes(expanded[i : i + 48], "big") % _P for i in (0, 48))
    return add(_map(u), _map(v))


def G(i: int) -> Point:
    return generator(f"G/{i}")


def total(terms: Iterable[Term]) -> Point:
    """The sum of scalar times point, in windows of four bits."""
    held = [(k % MODULUS, point) for k, point in terms]
    result = NEUTRAL
    for shift in range(256 - _WINDOW, -1, -_WINDOW):
        for _ in range(_WINDOW):
            result = double(result)
        buckets = [NEUTRAL] * (1 << _WINDOW)
        for k, point in held:
            digit = k >> shift & (1 << _WINDOW) - 1
            if digit:
                buckets[digit] = add(buckets[digit], point)
        running = NEUTRAL
        for bucket in reversed(buckets[1:]):
            running = add(running, bucket)
            result = add(result, running)
    return result


def vanishes(terms: Iterable[Term]) -> bool:
    return bool(is_neutral(total(terms)))


def minus(point: Point) -> Point:
    return neg(point)
