"""The group of the scan argument: generators, encodings and sums in BN254 G1 (docs/scan/transcript.md).

The formulas are plain ones on Python integers; tests compare them with py_ecc's. The module is not optimised, and
handles no secret.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from functools import cache
from typing import TypeAlias

from rag_audit._internal.errors import EncodingError
from rag_audit.relation.field import MODULUS

Point: TypeAlias = tuple[int, int] | None
"""Affine coordinates on y^2 = x^3 + 3; None is the neutral element."""
Term: TypeAlias = tuple[int, Point | str]
"""A factor, and a point or a generator's name."""
_Jacobian: TypeAlias = tuple[int, int, int]

DOMAIN = b"rag-audit/scan/v1/generators"
POINT_BYTES = 32
P = 21888242871839275222246405745257275088696311157297823662689037894645226208583
U, H = "U/0", "H/0"
_ODD, _NEUTRAL = 0x80, 0x40
_WINDOW = 8
_ZERO: _Jacobian = (1, 1, 0)


def _expand(message: bytes, length: int) -> bytes:
    """expand_message_xmd of RFC 9380 with SHA-256."""
    suffix = DOMAIN + bytes([len(DOMAIN)])
    first = hashlib.sha256(bytes(64) + message + length.to_bytes(2, "big") + b"\0" + suffix).digest()
    blocks = [bytes(32)]
    for i in range(-(-length // 32)):
        mixed = bytes(a ^ b for a, b in zip(first, blocks[-1], strict=True))
        blocks.append(hashlib.sha256(mixed + bytes([i + 1]) + suffix).digest())
    return b"".join(blocks[1:])[:length]


def _root(x: int) -> int | None:
    """A square root modulo p, which is 3 modulo 4."""
    root = pow(x, (P + 1) // 4, P)
    return root if root * root % P == x % P else None


# Shallue and van de Woestijne's map (RFC 9380, 6.6.1) for y^2 = x^3 + 3 with Z = 1.
_C1 = 4
_C2 = -pow(2, -1, P) % P
_C3 = 8815841940592487685674414971303048083897117035520822607866  # the even root of -12
_C4 = -4 * _C1 * pow(3, -1, P) % P


def _map(u: int) -> Point:
    tv1 = u * u * _C1 % P
    tv2, tv1 = (1 + tv1) % P, (1 - tv1) % P
    tv3 = pow(tv1 * tv2, -1, P) if tv1 * tv2 % P else 0
    tv4 = u * tv1 * tv3 * _C3 % P
    for x in (_C2 - tv4, _C2 + tv4, 1 + _C4 * (tv2 * tv2 * tv3) ** 2):
        y = _root(x**3 + 3)
        if y is not None:
            return x % P, y if y % 2 == u % 2 else -y % P
    raise ArithmeticError("one of three values is always a square")


def decode(data: bytes) -> Point:
    """The point of 32 bytes.

    :raises EncodingError: the bytes are not the one encoding of a point
    """
    flags, x = data[0] & 0xC0, int.from_bytes(bytes([data[0] & 0x3F]) + data[1:], "big")
    if flags == _NEUTRAL and x == 0:
        return None
    y = _root(x**3 + 3) if x < P and not flags & _NEUTRAL else None
    if y is None:
        raise EncodingError("not a point of the curve", expected="its one form", actual=data.hex())
    odd = bool(flags & _ODD)
    return x, y if y % 2 == odd else P - y


def encode(point: Point) -> bytes:
    if point is None:
        return bytes([_NEUTRAL]) + bytes(31)
    x, y = point
    return (x | (_ODD * (y % 2)) << 8 * POINT_BYTES - 8).to_bytes(POINT_BYTES, "big")


def _double(a: _Jacobian) -> _Jacobian:
    x, y, z = a
    yy = y * y % P
    s, m = 4 * x * yy % P, 3 * x * x % P
    out = (m * m - 2 * s) % P
    return out, (m * (s - out) - 8 * yy * yy) % P, 2 * y * z % P


def _sum(a: _Jacobian, b: _Jacobian) -> _Jacobian:
    if not a[2] or not b[2]:
        return b if not a[2] else a
    (x, y, z), (bx, by, bz) = a, b
    zz, bzz = z * z % P, bz * bz % P
    left, right = x * bzz % P, bx * zz % P
    up, down = y * bzz * bz % P, by * zz * z % P
    h, r = (right - left) % P, (down - up) % P
    if not h:
        return _ZERO if r else _double(a)
    hh = h * h % P
    hhh, v = h * hh % P, left * hh % P
    out = (r * r - hhh - 2 * v) % P
    return out, (r * (v - out) - up * hhh) % P, z * bz * h % P


def _jacobian(point: Point) -> _Jacobian:
    return _ZERO if point is None else (*point, 1)


def _affine(a: _Jacobian) -> Point:
    x, y, z = a
    if not z:
        return None
    inverse = pow(z, -1, P)
    square = inverse * inverse
    return x * square % P, y * square * inverse % P


@cache
def generator(name: str) -> Point:
    """G/0, .., Q/0, .., H/0, U/0: hash_to_curve of the name."""
    expanded = _expand(name.encode(), 96)
    u, v = (int.from_bytes(expanded[i : i + 48], "big") % P for i in (0, 48))
    return _affine(_sum(_jacobian(_map(u)), _jacobian(_map(v))))


def G(i: int) -> str:
    return f"G/{i}"


def Q(i: int) -> str:
    return f"Q/{i}"


def total(terms: Iterable[Term]) -> Point:
    """The sum of scalar times point, in windows of eight bits."""
    held = [(k % MODULUS, _jacobian(generator(p) if isinstance(p, str) else p)) for k, p in terms]
    result = _ZERO
    for shift in range(256 - _WINDOW, -1, -_WINDOW):
        for _ in range(_WINDOW):
            result = _double(result)
        buckets = [_ZERO] * (1 << _WINDOW)
        for k, point in held:
            digit = k >> shift & (1 << _WINDOW) - 1
            if digit:
                buckets[digit] = _sum(buckets[digit], point)
        running = _ZERO
        for bucket in reversed(buckets[1:]):
            running = _sum(running, bucket)
            result = _sum(result, running)
    return _affine(result)


def in_base(base: int, digits: Iterable[Point]) -> Point:
    """The sum of base^k times digit k, by Horner's rule."""
    result = _ZERO
    for digit in reversed(list(digits)):
        times = _ZERO
        for bit in f"{base:b}":
            times = _double(times)
            if bit == "1":
                times = _sum(times, result)
        result = _sum(times, _jacobian(digit))
    return _affine(result)
