"""The BN254 scalar field and the ways that integers, digests and files enter it (docs/relation.md, "Field and hash").

Elements are plain integers in 0..r-1. Files carry them as 64 lowercase hexadecimal digits, big-endian;
an integer >= r is never accepted from outside, because a second encoding of one element is a second
document under one commitment.
"""

from __future__ import annotations

import hashlib
import secrets

from rag_audit._internal.canonical import Json, parse_hex
from rag_audit._internal.errors import EncodingError

MODULUS = 21888242871839275222246405745257275088548364400416034343698204186575808495617
"""r, the order of BN254's groups: the field of all circuits."""

ELEMENT_BYTES = 32
DIGEST_BYTES = 31
"""Bytes of a SHA-256 digest that enter the field: the maximum that always gives an integer below r."""


def to_bytes(x: int) -> bytes:
    """The 32-byte big-endian form of a field element.

    :raises EncodingError: x is not in 0..r-1
    """
    if not 0 <= x < MODULUS:
        raise EncodingError("not a field element", expected="0..r-1", actual=str(x))
    return x.to_bytes(ELEMENT_BYTES, "big")


def from_bytes(data: bytes, *, field: str) -> int:
    """The field element encoded by 32 big-endian bytes.

    :param field: the name of the bytes in the error
    :raises EncodingError: the length is wrong, or the integer is not below r
    """
    if len(data) != ELEMENT_BYTES:
        raise EncodingError(
            "a field element has the wrong length",
            field=field,
            expected=f"{ELEMENT_BYTES} bytes",
            actual=len(data),
        )
    x = int.from_bytes(data, "big")
    if x >= MODULUS:
        raise EncodingError(
            "a field element is not canonical", field=field, expected="below r", actual=data.hex()
        )
    return x


def to_hex(x: int) -> str:
    """The form that files carry: 64 lowercase hexadecimal digits, big-endian.

    :raises EncodingError: x is not in 0..r-1
    """
    return to_bytes(x).hex()


def from_hex(text: Json, *, field: str) -> int:
    """The field element written as 64 lowercase hexadecimal digits.

    :raises EncodingError: the text is not of that form, or the integer is not below r
    """
    return from_bytes(parse_hex(text, ELEMENT_BYTES, field=field), field=field)


def digest_to_field(data: bytes) -> int:
    """f(data) of the specification: the first 31 bytes of SHA-256(data) as a big-endian integer."""
    return int.from_bytes(hashlib.sha256(data).digest()[:DIGEST_BYTES], "big")


def random_element() -> int:
    """A uniform field element from the operating system's generator."""
    return secrets.randbelow(MODULUS)


def derive_salt(master: bytes, label: str) -> int:
    """The salt called `label` of a 32-byte master salt: f(master || label)."""
    return digest_to_field(master + label.encode())
