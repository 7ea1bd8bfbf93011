"""Signed notes (c2sp.org/signed-note) and cosignatures (c2sp.org/tlog-cosignature), with Ed25519 keys.

The module knows two signature types: 0x01 signs a note's text, 0x04 cosigns a checkpoint at a POSIX time in seconds.
One Ed25519 key may make both: the key IDs differ, and a cosigned message starts with its own header line, so a
signature of one type never verifies as the other type.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, replace

from rag_audit._internal.canonical import bounded_text, parse_base64
from rag_audit._internal.errors import EncodingError, SignatureError, SizeError, VersionError
from rag_audit.log.keys import ALG_COSIGNATURE, ALG_ED25519, Signer, VerifierKey, _b64

MAX_NOTE_BYTES = 256 * 1024
MAX_SIGNATURES = 100
MAX_TIMESTAMP = 2**63 - 1

_SIGNATURE_LINE = re.compile(r"\A— (.+) ([^ ]+)\Z")
_CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f]")
_SURROGATE = re.compile(r"[\ud800-\udfff]")
_ED25519_SIGNATURE_SIZE = 64


@dataclass(frozen=True)
class NoteSignature:
    """One signature line: the key's name and ID, and the bytes that follow the ID, none of it verified.

    A line by an unknown key may have any name, so `name` must be escaped before it is shown.
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
    """A text and its signatures. `verify_note` verifies the signatures; parsing does not."""

    text: str
    signatures: tuple[NoteSignature, ...]

    def __str__(self) -> str:
        return self.text + "\n" + "".join(f"{s}\n" for s in self.signatures)


def sign_note(text: str, *keys: Signer) -> Note:
    """Sign a text with `ALG_ED25519` keys.

    :param text: not empty, ends with a newline, and has no control character but newlines
    """
    _check_text(text)
    for key in keys:
        if key.verifier.algorithm != ALG_ED25519:
            raise VersionError("this key does not sign notes", field=key.name, expected="type 0x01")
    message = text.encode()
    return Note(text, tuple(NoteSignature(k.name, k.verifier.key_id, k.sign(message)) for k in keys))


def cosign_note(note: Note, key: Signer, timestamp: int) -> Note:
    """Add a cosignature. It replaces an earlier cosignature by the same key.

    :param key: an `ALG_COSIGNATURE` key
    :param timestamp: POSIX seconds, 0..2^63-1
    """
    if key.verifier.algorithm != ALG_COSIGNATURE:
        raise VersionError("this key does not cosign", field=key.name, expected="type 0x04")
    if not 0 <= timestamp <= MAX_TIMESTAMP:
        raise EncodingError(
            "timestamp out of range", field=key.name, expected="0..2^63-1", actual=str(timestamp)
        )
    signature = key.sign(_cosigned_message(note.text, timestamp))
    line = NoteSignature(key.name, key.verifier.key_id, timestamp.to_bytes(8, "big") + signature)
    others = tuple(s for s in note.signatures if (s.name, s.key_id) != (line.name, line.key_id))
    return replace(note, signatures=(*others, line))


def parse_note(data: str | bytes, *, field: str = "note") -> Note:
    """Read a signed note strictly.

    :raises SizeError: the note exceeds `MAX_NOTE_BYTES` or `MAX_SIGNATURES`
    :raises EncodingError: the note is not UTF-8, has control characters, no blank line, or a signature is not canonical
    """
    content = bounded_text(data, what="note", field=field, max_bytes=MAX_NOTE_BYTES)
    text, separator, block = content.rpartition("\n\n")
    if not separator or not block.endswith("\n"):
        raise EncodingError("not a signed note", field=field, expected="text, a blank line, signature lines")
    text += "\n"
    _check_text(text, field)
    if _CONTROL.search(block):
        raise EncodingError("control character in a note", field=field)
    lines = block[:-1].split("\n")
    if len(lines) > MAX_SIGNATURES:
        raise SizeError("too many signatures", field=field, expected=f"at most {MAX_SIGNATURES}")
    return Note(text, tuple(_parse_signature(line, field) for line in lines))


def verify_note(
    note: Note, keys: Collection[VerifierKey], *, field: str = "note"
) -> tuple[VerifiedSignature, ...]:
    """Verify the signatures by `keys`; lines by other keys are ignored, whatever their names.

    A key may have signed more than once: a line may be repeated, or the witness may have cosigned the same checkpoint
    at a later time. Each line by the key must verify, and the earliest cosignature counts.

    :returns: the verified signatures, one for each key, in the order of the note's lines; never empty
    :raises SignatureError: a signature by a known key is wrong, or no known key signed
    """
    verified = {key: result for key, (_, result) in earliest(note, keys, field).items()}
    if not verified:
        raise SignatureError(
            "no known key signed the note",
            field=field,
            # With key IDs, since another key can have the name of a known one.
            expected=" or ".join(f"{k.name}+{k.key_id.hex()}" for k in keys) or "a known key",
            actual=", ".join(f"{s.name}+{s.key_id.hex()}" for s in note.signatures) or "no signature",
        )
    return tuple(verified.values())


def earliest(
    note: Note, keys: Collection[VerifierKey], field: str
) -> dict[VerifierKey, tuple[NoteSignature, VerifiedSignature]]:
    """The counting line of each known key that signed: its first line, or its cosignature with the smallest time.

    :raises SignatureError: a signature by a known key is wrong
    """
    known = {(k.name, k.key_id): k for k in keys}
    result: dict[VerifierKey, tuple[NoteSignature, VerifiedSignature]] = {}
    for line in dict.fromkeys(note.signatures):
        key = known.get((line.name, line.key_id))
        if key is None:
            continue
        signature = _verify_one(note.text, line, key, field)
        if key not in result or (signature.timestamp or 0) < (result[key][1].timestamp or 0):
            result[key] = (line, signature)
    return result


def _verify_one(text: str, signature: NoteSignature, key: VerifierKey, field: str) -> VerifiedSignature:
    timestamp: int | None = None
    message, blob = text.encode(), signature.payload
    if key.algorithm == ALG_COSIGNATURE:
        timestamp, blob = int.from_bytes(blob[:8], "big"), blob[8:]
        message = _cosigned_message(text, timestamp)
        if timestamp > MAX_TIMESTAMP:
            raise SignatureError("cosignature time out of range", field=field, actual=key.name)
    if len(blob) != _ED25519_SIGNATURE_SIZE or not key.verifies(blob, message):
        raise SignatureError("a signature does not verify", field=field, actual=key.name)
    return VerifiedSignature(key, timestamp)


def _cosigned_message(text: str, timestamp: int) -> bytes:
    return f"cosignature/v1\ntime {timestamp}\n{text}".encode()


def _parse_signature(line: str, field: str) -> NoteSignature:
    match = _SIGNATURE_LINE.match(line)
    if match is None:
        raise EncodingError(
            "not a signature line", field=field, expected="— <key name> <base64>", actual=line[:100]
        )
    blob = parse_base64(match[2], field=f"{field}, signature of {match[1]}")
    if len(blob) < 5:
        raise EncodingError("signature too short", field=field, actual=match[1])
    return NoteSignature(match[1], blob[:4], blob[4:])


def _check_text(text: str, field: str = "note") -> None:
    if not text.strip("\n") or not text.endswith("\n"):
        raise EncodingError("not a note's text", field=field, expected="text that ends with a newline")
    if _CONTROL.search(text):
        raise EncodingError("control character in a note", field=field)
    if not text.isascii() and _SURROGATE.search(text):
        raise EncodingError("not UTF-8", field=field)
