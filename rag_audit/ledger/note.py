"""Signed notes (c2sp.org/signed-note) and cosignatures (c2sp.org/tlog-cosignature), with Ed25519 keys.

Two signature types are known: 0x01 signs a note's text, 0x04 cosigns a checkpoint at a POSIX time in
seconds. One Ed25519 key may make both: the key IDs differ, and a cosigned message starts with its own
header line, so neither signature can stand for the other.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from rag_audit.encoding.canonical import bounded_text, parse_base64
from rag_audit.encoding.durable import create_private, read_private
from rag_audit.errors import EncodingError, SignatureError, SizeError, VersionError

ALG_ED25519 = 0x01
ALG_COSIGNATURE = 0x04
ALGORITHMS = (ALG_ED25519, ALG_COSIGNATURE)

MAX_NOTE_BYTES = 256 * 1024
MAX_SIGNATURES = 100
MAX_NAME_BYTES = 255
MAX_KEY_BYTES = 1024
MAX_TIMESTAMP = 2**63 - 1

_SIGNATURE_LINE = re.compile(r"\A— (.+) ([^ ]+)\Z")
_KEY_ID = re.compile(r"\A[0-9a-f]{8}\Z")
_SKEY_PREFIX = "PRIVATE+KEY+"
_ED25519_SIGNATURE_SIZE = 64


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
                found=f"0x{self.algorithm:02x}",
            )
        if len(self.public) != 32:
            raise EncodingError(
                "not an Ed25519 public key", field=self.name, found=f"{len(self.public)} bytes"
            )

    @property
    def key_id(self) -> bytes:
        """Four bytes that tell keys apart in a note: SHA-256(name || 0x0A || type || key)[:4]."""
        return hashlib.sha256(self.name.encode() + b"\n" + bytes([self.algorithm]) + self.public).digest()[:4]

    def with_algorithm(self, algorithm: int) -> VerifierKey:
        """The same key and name for the other signature type."""
        return replace(self, algorithm=algorithm)

    @classmethod
    def parse(cls, text: str, *, field: str = "vkey") -> VerifierKey:
        """Read ``<name>+<key ID in hex>+<base64 of type and key>``.

        :raises EncodingError: wrong form, or a key ID that is not the key's
        :raises VersionError: a signature type other than 0x01 and 0x04
        """
        name, key_id, material = _split_key(text, field)
        key = cls(name, material[0], material[1:])
        if key.key_id != key_id:
            raise EncodingError("wrong key ID", field=field, expected=key.key_id.hex(), found=key_id.hex())
        return key

    def __str__(self) -> str:
        return f"{self.name}+{self.key_id.hex()}+{_b64(bytes([self.algorithm]) + self.public)}"

    def verifies(self, signature: bytes, message: bytes) -> bool:
        """Whether `signature` is this key's Ed25519 signature (RFC 8032) over the raw `message`."""
        try:
            Ed25519PublicKey.from_public_bytes(self.public).verify(signature, message)
        except (InvalidSignature, ValueError):
            return False
        return True


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
        self.verifier = VerifierKey(name, algorithm, public)

    @classmethod
    def generate(cls, name: str, algorithm: int = ALG_ED25519) -> SigningKey:
        """A new key from the operating system's randomness."""
        seed = Ed25519PrivateKey.generate().private_bytes_raw()
        return cls(name, algorithm, seed)

    @classmethod
    def parse(cls, text: str, *, field: str = "skey") -> SigningKey:
        """Read ``PRIVATE+KEY+<name>+<key ID in hex>+<base64 of type and seed>``.

        :raises EncodingError: wrong form, or a key ID that is not the key's
        """
        if not text.startswith(_SKEY_PREFIX):
            raise EncodingError("not a private key", field=field, expected=f"{_SKEY_PREFIX}...")
        name, key_id, material = _split_key(text.removeprefix(_SKEY_PREFIX), field)
        key = cls(name, material[0], material[1:])
        if key.verifier.key_id != key_id:
            raise EncodingError("wrong key ID", field=field, found=key_id.hex())
        return key

    @classmethod
    def load(cls, path: Path) -> SigningKey:
        """Read a key file, which only its owner may access.

        :raises SetupError: missing, or readable or writable by group or others
        """
        data = read_private(path, max_bytes=MAX_KEY_BYTES)
        try:
            text = data.decode("utf-8").removesuffix("\n")
        except UnicodeDecodeError as exc:
            raise EncodingError("not a private key", field=str(path), expected="UTF-8 text") from exc
        return cls.parse(text, field=str(path))

    def save(self, path: Path) -> None:
        """Write the key to a new file with mode 0600; an existing file is never overwritten."""
        create_private(path, f"{self.export()}\n".encode())

    def export(self) -> str:
        """The secret's text form."""
        v = self.verifier
        return f"{_SKEY_PREFIX}{v.name}+{v.key_id.hex()}+{_b64(bytes([v.algorithm]) + self._seed)}"

    @property
    def name(self) -> str:
        """The key's name in signature lines."""
        return self.verifier.name

    def with_algorithm(self, algorithm: int) -> SigningKey:
        """The same key and name for the other signature type."""
        return SigningKey(self.name, algorithm, self._seed)

    def sign(self, message: bytes) -> bytes:
        """The 64-byte Ed25519 signature (RFC 8032) over the raw `message`; callers separate domains."""
        return self._key.sign(message)

    def __repr__(self) -> str:
        return f"SigningKey({self.verifier})"


@dataclass(frozen=True)
class NoteSignature:
    """One signature line: the key's name and ID, and what follows the ID (unverified).

    A line by a key that nobody here knows may have any name, so `name` is to be escaped before it is shown.
    """

    name: str
    key_id: bytes
    payload: bytes

    def __str__(self) -> str:
        return f"— {self.name} {_b64(self.key_id + self.payload)}"


@dataclass(frozen=True)
class VerifiedSignature:
    """A signature that verified.

    :param timestamp: POSIX seconds of a cosignature, None for a plain signature
    """

    key: VerifierKey
    timestamp: int | None


@dataclass(frozen=True)
class Note:
    """A text and its signatures, of which none is verified until `verify_note` says so."""

    text: str
    signatures: tuple[NoteSignature, ...]

    def __str__(self) -> str:
        return self.text + "\n" + "".join(f"{s}\n" for s in self.signatures)


def sign_note(text: str, *keys: SigningKey) -> Note:
    """Sign a text with `ALG_ED25519` keys.

    :param text: non-empty, ends with a newline, no control character but newline
    """
    _check_text(text)
    for key in keys:
        if key.verifier.algorithm != ALG_ED25519:
            raise VersionError("not a key that signs notes", field=key.name, expected="type 0x01")
    message = text.encode()
    return Note(text, tuple(NoteSignature(k.name, k.verifier.key_id, k.sign(message)) for k in keys))


def cosign_note(note: Note, key: SigningKey, timestamp: int) -> Note:
    """Add a cosignature; one that this key made earlier is replaced.

    :param key: an `ALG_COSIGNATURE` key
    :param timestamp: POSIX seconds, 0..2^63-1
    """
    if key.verifier.algorithm != ALG_COSIGNATURE:
        raise VersionError("not a key that cosigns", field=key.name, expected="type 0x04")
    if not 0 <= timestamp <= MAX_TIMESTAMP:
        raise EncodingError(
            "timestamp out of range", field=key.name, expected="0..2^63-1", found=str(timestamp)
        )
    signature = key.sign(_cosigned_message(note.text, timestamp))
    line = NoteSignature(key.name, key.verifier.key_id, timestamp.to_bytes(8, "big") + signature)
    others = tuple(s for s in note.signatures if (s.name, s.key_id) != (line.name, line.key_id))
    return replace(note, signatures=(*others, line))


def merge_signatures(
    notes: Iterable[Note],
    keys: Collection[VerifierKey] = (),
    *,
    max_bytes: int = MAX_NOTE_BYTES,
    field: str = "note",
) -> Note:
    """One note with the signatures of all: of each of `keys` one line, its earliest; then lines by others, each once.

    Lines by others are left out where the note would grow beyond `MAX_SIGNATURES` lines or `max_bytes` bytes, so that
    nobody can crowd out a known key.

    :raises EncodingError: no note, or notes over different texts
    :raises SignatureError: a signature of a known key is wrong
    """
    texts: set[str] = set()
    lines: dict[NoteSignature, None] = {}
    for note in notes:
        texts.add(note.text)
        lines |= dict.fromkeys(note.signatures)
    if len(texts) != 1:
        raise EncodingError("signatures over different texts", field=field, expected="one text")
    text = texts.pop()
    earliest = _earliest(Note(text, tuple(lines)), keys, field)
    kept = [line for line, _ in earliest.values()]
    known = {(k.name, k.key_id) for k in keys}
    others = [line for line in lines if (line.name, line.key_id) not in known]
    room = max_bytes - len(str(Note(text, tuple(kept))).encode())
    for line in others:
        room -= len(f"{line}\n".encode())
        if len(kept) == MAX_SIGNATURES or room < 0:
            break
        kept.append(line)
    return Note(text, tuple(kept))


def parse_note(data: str | bytes, *, field: str = "note") -> Note:
    """Read a signed note strictly.

    :raises SizeError: above `MAX_NOTE_BYTES` or `MAX_SIGNATURES`
    :raises EncodingError: not UTF-8, control characters, no blank line, signature lines not canonical
    """
    content = bounded_text(data, what="note", field=field, max_bytes=MAX_NOTE_BYTES)
    text, separator, block = content.rpartition("\n\n")
    if not separator or not block.endswith("\n"):
        raise EncodingError("not a signed note", field=field, expected="text, a blank line, signature lines")
    text += "\n"
    _check_text(text, field)
    if any(c < " " and c != "\n" for c in block):
        raise EncodingError("control character in a note", field=field)
    lines = block[:-1].split("\n")
    if len(lines) > MAX_SIGNATURES:
        raise SizeError("too many signatures", field=field, expected=f"at most {MAX_SIGNATURES}")
    return Note(text, tuple(_parse_signature(line, field) for line in lines))


def verify_note(
    note: Note, keys: Collection[VerifierKey], *, field: str = "note"
) -> tuple[VerifiedSignature, ...]:
    """Verify the signatures made by `keys`; lines of other keys are ignored, whatever their names.

    A key may have signed more than once: a line repeated, or a checkpoint cosigned again later. Each of its lines must
    verify, and the earliest cosignature counts.

    :returns: what verified, one for each key, in the order of the note's lines; never empty
    :raises SignatureError: a signature of a known key is wrong, or no known key signed
    """
    verified = {key: found for key, (_, found) in _earliest(note, keys, field).items()}
    if not verified:
        raise SignatureError(
            "no signature by a known key",
            field=field,
            expected=" or ".join(k.name for k in keys) or "a known key",
            found=", ".join(s.name for s in note.signatures) or "no signature",
        )
    return tuple(verified.values())


def _earliest(
    note: Note, keys: Collection[VerifierKey], field: str
) -> dict[VerifierKey, tuple[NoteSignature, VerifiedSignature]]:
    """Of each known key that signed, the line that counts: the first one, or the cosignature with the least time."""
    known = {(k.name, k.key_id): k for k in keys}
    found: dict[VerifierKey, tuple[NoteSignature, VerifiedSignature]] = {}
    for line in dict.fromkeys(note.signatures):
        key = known.get((line.name, line.key_id))
        if key is None:
            continue
        signature = _verify_one(note.text, line, key, field)
        if key not in found or (signature.timestamp or 0) < (found[key][1].timestamp or 0):
            found[key] = (line, signature)
    return found


def _verify_one(text: str, signature: NoteSignature, key: VerifierKey, field: str) -> VerifiedSignature:
    timestamp: int | None = None
    message, blob = text.encode(), signature.payload
    if key.algorithm == ALG_COSIGNATURE:
        timestamp, blob = int.from_bytes(blob[:8], "big"), blob[8:]
        message = _cosigned_message(text, timestamp)
        if timestamp > MAX_TIMESTAMP:
            raise SignatureError("cosignature time out of range", field=field, found=key.name)
    if len(blob) != _ED25519_SIGNATURE_SIZE or not key.verifies(blob, message):
        raise SignatureError("signature does not verify", field=field, found=key.name)
    return VerifiedSignature(key, timestamp)


def _cosigned_message(text: str, timestamp: int) -> bytes:
    return f"cosignature/v1\ntime {timestamp}\n{text}".encode()


def _parse_signature(line: str, field: str) -> NoteSignature:
    match = _SIGNATURE_LINE.match(line)
    if match is None:
        raise EncodingError(
            "not a signature line", field=field, expected="— <key name> <base64>", found=line[:100]
        )
    blob = parse_base64(match[2], field=f"{field}, signature of {match[1]}")
    if len(blob) < 5:
        raise EncodingError("signature too short", field=field, found=match[1])
    return NoteSignature(match[1], blob[:4], blob[4:])


def _check_text(text: str, field: str = "note") -> None:
    if not text.strip("\n") or not text.endswith("\n"):
        raise EncodingError("not a note's text", field=field, expected="text that ends with a newline")
    if any(c < " " and c != "\n" for c in text):
        raise EncodingError("control character in a note", field=field)
    if any("\ud800" <= c <= "\udfff" for c in text):
        raise EncodingError("not UTF-8", field=field)


def _check_name(name: str, field: str = "key name") -> None:
    valid = name and "+" not in name and name.isprintable() and not any(c.isspace() for c in name)
    if not valid or len(name.encode()) > MAX_NAME_BYTES:
        raise EncodingError(
            "not a key name",
            field=field,
            expected=f"1..{MAX_NAME_BYTES} bytes without space or plus",
            found=name,
        )


def _split_key(text: str, field: str) -> tuple[str, bytes, bytes]:
    # The base64 part may itself hold a plus.
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
            "wrong key length", field=field, expected="1 + 32 bytes", found=f"{len(material)} bytes"
        )
    _check_name(parts[0], field)
    return parts[0], bytes.fromhex(parts[1]), material


def _b64(data: bytes) -> str:
    return base64.b64encode(data).decode()
