"""Authenticated encryption of bytes that are stored or sent: only the holder of the key can read or make them."""

from __future__ import annotations

import secrets

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

from rag_audit._internal.errors import StoreError

_NONCE = 12


def seal(plain: bytes, key: bytes, associated: bytes) -> bytes:
    """Encrypt with ChaCha20-Poly1305 (RFC 8439) under a random nonce, the first part of the ciphertext.

    :param key: 32 bytes
    :param associated: the purpose of the bytes; `unseal` needs the same value
    """
    nonce = secrets.token_bytes(_NONCE)
    return nonce + ChaCha20Poly1305(key).encrypt(nonce, plain, associated)


def unseal(blob: bytes, key: bytes, associated: bytes, *, what: str) -> bytes:
    """The inverse of `seal`.

    :param what: the name of the bytes, for the error
    :raises StoreError: the bytes were truncated, altered, sealed for something else, or sealed under another key
    """
    try:
        return ChaCha20Poly1305(key).decrypt(blob[:_NONCE], blob[_NONCE:], associated)
    except (InvalidTag, ValueError) as exc:
        raise StoreError(f"{what} cannot be opened: altered, or its key was deleted") from exc
