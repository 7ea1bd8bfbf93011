"""Checkpoints of a log (c2sp.org/tlog-checkpoint): origin, size and root in a signed, cosigned note."""

from __future__ import annotations

import base64
import re
from collections.abc import Collection
from dataclasses import dataclass

from rag_audit._internal.canonical import parse_base64
from rag_audit._internal.errors import EncodingError, SignatureError
from rag_audit.log.keys import ALG_COSIGNATURE, ALG_ED25519, Signer, VerifierKey
from rag_audit.log.merkle import HASH_SIZE
from rag_audit.log.note import Note, parse_note, sign_note, verify_note

MAX_SIZE = 2**63 - 1
CLOCK_LEEWAY_SECONDS = 60
"""How far a provider's clock and the witnesses' may differ, which includes that cosignatures count whole seconds."""
_DECIMAL = re.compile(r"\A(0|[1-9][0-9]{0,18})\Z")


@dataclass(frozen=True)
class Checkpoint:
    """A tree head.

    :param origin: the log's name, one line
    :param size: number of entries
    :param root: RFC 9162 root over them, 32 bytes
    :param extensions: further lines, opaque
    """

    origin: str
    size: int
    root: bytes
    extensions: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for line in (self.origin, *self.extensions):
            if not line or min(line) < " ":
                raise EncodingError(
                    "not a checkpoint line", field="checkpoint", expected="non-empty, no control characters"
                )
        if not 0 <= self.size <= MAX_SIZE:
            raise EncodingError("tree size out of range", field="checkpoint", actual=str(self.size))
        if len(self.root) != HASH_SIZE:
            raise EncodingError("root is not 32 bytes", field="checkpoint", actual=f"{len(self.root)} bytes")

    @property
    def text(self) -> str:
        """The text of the note that is signed."""
        lines = (self.origin, str(self.size), base64.b64encode(self.root).decode(), *self.extensions)
        return "".join(f"{line}\n" for line in lines)

    @classmethod
    def parse(cls, text: str, *, field: str = "checkpoint") -> Checkpoint:
        """Read a checkpoint from a note's text; its signatures are not checked here.

        :raises EncodingError: a line is missing, the size has leading zeroes, or the root is not canonical base64
        """
        lines = text.split("\n")
        if len(lines) < 4 or lines[-1] != "":
            raise EncodingError("not a checkpoint", field=field, expected="origin, size and root lines")
        origin, size, root, *extensions = lines[:-1]
        if not _DECIMAL.match(size):
            raise EncodingError(
                "not a tree size", field=field, expected="decimal without leading zeroes", actual=size
            )
        return cls(origin, int(size), parse_base64(root, field=f"{field}, root"), tuple(extensions))

    def sign(self, key: Signer) -> Note:
        """The checkpoint as a note signed by the log's key."""
        return sign_note(self.text, key)


@dataclass(frozen=True)
class SignedCheckpoint:
    """A checkpoint with a verified log signature and verified cosignatures.

    :param cosignatures: for each known witness that cosigned, the POSIX second of its cosignature
    """

    checkpoint: Checkpoint
    note: Note
    cosignatures: dict[VerifierKey, int]

    def quorum_time(self, quorum: int) -> int:
        """The POSIX second when the quorum was complete: the `quorum`-th smallest cosignature time.

        Public keys distinguish witnesses, so one key under two names counts once.

        :raises SignatureError: fewer than `quorum` witnesses cosigned
        """
        if quorum < 1:
            raise EncodingError("not a quorum", field="quorum", expected=">= 1", actual=str(quorum))
        earliest: dict[bytes, int] = {}
        for key, time in self.cosignatures.items():
            earliest[key.public] = min(time, earliest.get(key.public, time))
        if len(earliest) < quorum:
            raise SignatureError(
                "too few witnesses cosigned the checkpoint",
                field="checkpoint",
                expected=f"{quorum} known witnesses",
                actual=f"{len(earliest)}",
            )
        return sorted(earliest.values())[quorum - 1]


def open_checkpoint(
    note: Note | str | bytes,
    *,
    origin: str,
    log_key: VerifierKey,
    witnesses: Collection[VerifierKey] = (),
    field: str = "checkpoint",
) -> SignedCheckpoint:
    """Verify a checkpoint: the log's signature, the origin, and every cosignature by one of `witnesses`.

    :param log_key: an `ALG_ED25519` key
    :param witnesses: `ALG_COSIGNATURE` keys; how many must have cosigned is `quorum_time`'s question
    :raises SignatureError: the origin differs, or the log's signature is missing or wrong, or a witness's is wrong
    """
    parsed = note if isinstance(note, Note) else parse_note(note, field=field)
    for key, algorithm in ((log_key, ALG_ED25519), *((w, ALG_COSIGNATURE) for w in witnesses)):
        if key.algorithm != algorithm:
            raise EncodingError(
                "the key has another signature type",
                field=key.name,
                expected=f"type 0x{algorithm:02x}",
                actual=f"type 0x{key.algorithm:02x}",
            )
    verified = verify_note(parsed, (log_key, *witnesses), field=field)
    if all(v.key != log_key for v in verified):
        raise SignatureError("not signed by the log", field=field, expected=log_key.name)
    checkpoint = Checkpoint.parse(parsed.text, field=field)
    if checkpoint.origin != origin:
        raise SignatureError(
            "the checkpoint belongs to another log", field=field, expected=origin, actual=checkpoint.origin
        )
    times = {v.key: v.timestamp for v in verified if v.timestamp is not None}
    return SignedCheckpoint(checkpoint, parsed, times)
