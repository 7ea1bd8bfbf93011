"""Keys of signed notes, in the text forms of c2sp.org/signed-note and tlog-cosignature."""

from __future__ import annotations

import base64
import hashlib
import re
from dataclasses import dataclass, replace
from typing import Protocol

from rag_audit import _native
from rag_audit._internal.canonical import parse_base64
from rag_audit._internal.errors import EncodingError, VersionError

ALG_ED25519 = 0x01


ALG_COSIGNATURE = 0x04


ALGORITHMS = (ALG_ED25519, ALG_COSIGNATURE)


MAX_NAME_BYTES = 255


MAX_KEY_BYTES = 1024


_KEY_ID = re.compile(r"\A[0-9a-f]{8}\Z")


@dataclass(frozen=True)
class VerifierKey:
    """A public key: a name, a signature type and 32 bytes of Ed25519 public key.

    :param algorithm: `ALG_ED25519` or `ALG_COSIGNATURE`
    """

    name: str
    algorithm: int
    public: bytes

    def __post_init__(self) -> None:
        _check_name(self.name)
        if self.algorithm not in ALGORITHMS:
            raise VersionError(
                "unknown signature type",
                field=self.name,
                expected="0x01 or 0x04",
                actual=f"0x{self.algorithm:02x}",
            )
        if len(self.public) != 32:
            raise EncodingError(
                "not an Ed25519 public key", field=self.name, actual=f"{len(self.public)} bytes"
            )

    @property
    def key_id(self) -> bytes:
        """Four bytes that identify a key in a note: SHA-256(name || 0x0A || type || key)[:4]."""
        return hashlib.sha256(self.name.encode() + b"\n" + bytes([self.algorithm]) + self.public).digest()[:4]

    def with_algorithm(self, algorithm: int) -> VerifierKey:
        """The same key and name with the given signature type."""
        return replace(self, algorithm=algorithm)

    @classmethod
    def parse(cls, text: str, *, field: str = "vkey") -> VerifierKey:
        """Read ``<name>+<key ID in hex>+<base64 of type and key>``.

        :raises EncodingError: the text has another form, or its key ID is not the key's
        :raises VersionError: the signature type is neither 0x01 nor 0x04
        """
        name, key_id, material = split_key(text, field)
        key = cls(name, material[0], material[1:])
        if key.key_id != key_id:
            raise EncodingError("wrong key ID", field=field, expected=key.key_id.hex(), actual=key_id.hex())
        return key

    def __str__(self) -> str:
        return f"{self.name}+{self.key_id.hex()}+{_b64(bytes([self.algorithm]) + self.public)}"

    def verifies(self, signature: bytes, message: bytes) -> bool:
        """Whether `signature` is this key's Ed25519 signature (RFC 8032) over the raw `message`."""
        return signed_by(self.public, message, signature)


def signed_by(public: bytes, message: bytes, signature: bytes) -> bool:
    """Whether 64 bytes are an Ed25519 signature (RFC 8032) over a message by a public key. The result is False for a
    public key that does not encode a point in 32 bytes.
    """
    if len(public) != 32 or len(signature) != 64:
        return False
    return _native.ed25519_verifies(public, message, signature)


class Signer(Protocol):
    """An object that signs notes (`log.signing.SigningKey`). Verification needs no signer."""

    @property
    def name(self) -> str:
        """The key's name in signature lines."""

    @property
    def verifier(self) -> VerifierKey:
        """The public key."""

    def sign(self, message: bytes) -> bytes:
        """The 64-byte Ed25519 signature (RFC 8032) over the raw `message`; callers separate domains."""


def _check_name(name: str, field: str = "key name") -> None:
    valid = name and "+" not in name and name.isprintable() and not any(c.isspace() for c in name)
    if not valid or len(name.encode()) > MAX_NAME_BYTES:
        raise EncodingError(
            "not a key name",
            field=field,
            expected=f"1..{MAX_NAME_BYTES} bytes without space or plus",
            actual=name,
        )


def split_key(text: str, field: str) -> tuple[str, bytes, bytes]:
    """The name, key ID and 33 bytes of a key's text: its type, then the key.

    :raises EncodingError: the text has another form
    """
    # The base64 part may itself contain a plus.
    parts = text.split("+", 2)
    if len(text) > MAX_KEY_BYTES or len(parts) != 3 or not _KEY_ID.match(parts[1]):
        raise EncodingError("not a note key", field=field, expected="<name>+<8 hex digits>+<base64>")
    try:
        material = parse_base64(parts[2], field=field)
    except EncodingError:
        # A key's text may be secret: the error does not repeat it.
        raise EncodingError("not canonical base64", field=field) from None
    if len(material) != 33:
        raise EncodingError(
            "wrong key length", field=field, expected="1 + 32 bytes", actual=f"{len(material)} bytes"
        )
    _check_name(parts[0], field)
    return parts[0], bytes.fromhex(parts[1]), material


def _b64(data: bytes) -> str:
    return base64.b64encode(data).decode()
