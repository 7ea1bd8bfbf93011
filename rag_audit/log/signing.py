"""Private keys of signed notes, in the text form of c2sp.org/signed-note."""

from __future__ import annotations

import base64
from pathlib import Path

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from rag_audit._internal.durable import create_private, read_private
from rag_audit._internal.errors import EncodingError
from rag_audit.log.keys import ALG_ED25519, MAX_KEY_BYTES, VerifierKey, split_key

SKEY_PREFIX = "PRIVATE+KEY+"


class SigningKey:
    """A private Ed25519 key with its name and signature type. Its repr never shows the secret.

    :param seed: 32 bytes (RFC 8032 private key)
    """

    def __init__(self, name: str, algorithm: int, seed: bytes) -> None:
        if len(seed) != 32:
            raise EncodingError("not an Ed25519 private key", field=name, expected="32 bytes")
        self._seed = seed
        self._key = Ed25519PrivateKey.from_private_bytes(seed)
        public = self._key.public_key().public_bytes(
            serialization.Encoding.Raw, serialization.PublicFormat.Raw
        )
        self._verifier = VerifierKey(name, algorithm, public)

    @classmethod
    def generate(cls, name: str, algorithm: int = ALG_ED25519) -> SigningKey:
        """A new key from the operating system's randomness."""
        seed = Ed25519PrivateKey.generate().private_bytes_raw()
        return cls(name, algorithm, seed)

    @classmethod
    def parse(cls, text: str, *, field: str = "skey") -> SigningKey:
        """Read ``PRIVATE+KEY+<name>+<key ID in hex>+<base64 of type and seed>``.

        :raises EncodingError: the text has another form, or its key ID is not the key's
        """
        if not text.startswith(SKEY_PREFIX):
            raise EncodingError("not a private key", field=field, expected=f"{SKEY_PREFIX}...")
        name, key_id, material = split_key(text.removeprefix(SKEY_PREFIX), field)
        key = cls(name, material[0], material[1:])
        if key.verifier.key_id != key_id:
            raise EncodingError("wrong key ID", field=field, actual=key_id.hex())
        return key

    @classmethod
    def load(cls, path: Path) -> SigningKey:
        """Read a key file, which only its owner may access.

        :raises SetupError: the file is missing, or group or others can read or write it
        """
        data = read_private(path, max_bytes=MAX_KEY_BYTES)
        try:
            text = data.decode("utf-8").removesuffix("\n").removesuffix("\r")
        except UnicodeDecodeError as exc:
            raise EncodingError("not a private key", field=str(path), expected="UTF-8 text") from exc
        return cls.parse(text, field=str(path))

    def save(self, path: Path) -> None:
        """Write the key to a new file with mode 0600; an existing file is never overwritten."""
        create_private(path, f"{self.export()}\n".encode())

    def export(self) -> str:
        """The secret's text form."""
        v = self.verifier
        return f"{SKEY_PREFIX}{v.name}+{v.key_id.hex()}+{base64.b64encode(bytes([v.algorithm]) + self._seed).decode()}"

    @property
    def verifier(self) -> VerifierKey:
        """The public key."""
        return self._verifier

    @property
    def name(self) -> str:
        """The key's name in signature lines."""
        return self.verifier.name

    def with_algorithm(self, algorithm: int) -> SigningKey:
        """The same key and name with the given signature type."""
        return SigningKey(self.name, algorithm, self._seed)

    def sign(self, message: bytes) -> bytes:
        """The 64-byte Ed25519 signature (RFC 8032) over the raw `message`; callers separate domains."""
        return self._key.sign(message)

    def __repr__(self) -> str:
        return f"SigningKey({self.verifier})"
