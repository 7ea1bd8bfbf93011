"""Ed25519 as OpenSSL checks it."""

from __future__ import annotations

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey


def accepts(key: bytes, signature: bytes, message: bytes) -> bool:
    """Whether OpenSSL takes the signature of the message under the key."""
    try:
        Ed25519PublicKey.from_public_bytes(key).verify(signature, message)
    except (InvalidSignature, ValueError):
        return False
    return True
