"""The cryptography package in the page: Ed25519 verification by OpenSSL's rules, without secret-key operations."""

from __future__ import annotations

from typing import NoReturn

from rag_audit.report.browser.inside.module import call


class InvalidSignature(Exception):
    """A signature does not verify."""


class InvalidTag(Exception):
    """A placeholder class: the page decrypts no data."""


class Ed25519PublicKey:
    """A public key."""

    def __init__(self, public: bytes) -> None:
        self._public = public

    @classmethod
    def from_public_bytes(cls, public: bytes) -> Ed25519PublicKey:
        """The key of 32 bytes; whether they are a point shows when it verifies."""
        if len(public) != 32:
            raise ValueError("An Ed25519 public key is 32 bytes long")
        return cls(public)

    def verify(self, signature: bytes, message: bytes) -> None:
        """InvalidSignature unless the signature is the key's over the message."""
        if not call("ed25519_verify", self._public, signature, message).integer():
            raise InvalidSignature


class _Secret:
    """A placeholder for a class that the page never uses."""

    @staticmethod
    def generate() -> NoReturn:
        """No key is made in a page."""
        raise RuntimeError("the page verifies, and holds no secret key")

    from_private_bytes = generate


Ed25519PrivateKey = ChaCha20Poly1305 = _Secret
serialization = _Secret
