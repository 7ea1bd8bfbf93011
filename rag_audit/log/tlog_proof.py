"""Offline proofs that a log contains an entry (c2sp.org/tlog-proof): index, path and checkpoint in one text."""

from __future__ import annotations

import base64
import re
from collections.abc import Collection
from dataclasses import dataclass

from rag_audit._internal.canonical import bounded_text, parse_base64
from rag_audit._internal.errors import EncodingError, InvalidProof, SizeError, VersionError
from rag_audit.log.checkpoint import Checkpoint, SignedCheckpoint, open_checkpoint
from rag_audit.log.keys import VerifierKey
from rag_audit.log.merkle import HASH_SIZE, verify_inclusion
from rag_audit.log.note import Note, parse_note

HEADER = "c2sp.org/tlog-proof@v1"
MAX_PROOF_BYTES = 4 * 1024 * 1024
MAX_PATH = 63
_INDEX = re.compile(r"\Aindex (0|[1-9][0-9]{0,18})\Z")


@dataclass(frozen=True)
class TlogProof:
    """A parsed proof. Parsing verifies none of its parts, and `extra` is never verified.

    :param index: the entry's place in the log, from 0
    :param path: inclusion path, leaf's sibling first
    :param checkpoint: the signed note
    :param extra: opaque bytes that the format does not authenticate; None if absent
    """

    index: int
    path: tuple[bytes, ...]
    checkpoint: Note
    extra: bytes | None = None

    def __str__(self) -> str:
        lines = [HEADER]
        if self.extra is not None:
            lines.append(f"extra {_b64(self.extra)}")
        lines += [f"index {self.index}", *(_b64(p) for p in self.path), ""]
        return "\n".join(lines) + f"\n{self.checkpoint}"

    @classmethod
    def parse(cls, data: str | bytes, *, field: str = "proof") -> TlogProof:
        """Read a proof strictly.

        :raises VersionError: the header line belongs to another format
        :raises SizeError: the proof exceeds `MAX_PROOF_BYTES`, or its path `MAX_PATH` hashes
        :raises EncodingError: a line is missing, out of order or not canonical
        """
        text = bounded_text(data, what="proof", field=field, max_bytes=MAX_PROOF_BYTES)
        head, separator, note = text.partition("\n\n")
        header, *lines = head.split("\n")
        if header != HEADER:
            raise VersionError("unknown proof format", field=field, expected=HEADER, actual=header)
        if not separator:
            raise EncodingError("the proof has no checkpoint (is it truncated?)", field=field)
        extra: bytes | None = None
        if lines and lines[0].startswith("extra "):
            extra = parse_base64(lines.pop(0).removeprefix("extra "), field=f"{field}, extra")
        match = _INDEX.match(lines[0]) if lines else None
        if match is None:
            raise EncodingError(
                "the proof has no index line",
                field=field,
                expected="index <decimal>",
                actual=lines[0] if lines else "nothing",
            )
        if len(lines) - 1 > MAX_PATH:
            raise SizeError(
                "the inclusion path is too long", field=field, expected=f"at most {MAX_PATH} hashes"
            )
        path = tuple(parse_base64(line, field=f"{field}, inclusion path") for line in lines[1:])
        if any(len(p) != HASH_SIZE for p in path):
            raise EncodingError("not a SHA-256 hash", field=f"{field}, inclusion path")
        checkpoint = parse_note(note, field=f"{field}, checkpoint")
        Checkpoint.parse(checkpoint.text, field=f"{field}, checkpoint")
        return cls(int(match[1]), path, checkpoint, extra)

    def verify(
        self,
        leaf: bytes,
        *,
        origin: str,
        log_key: VerifierKey,
        witnesses: Collection[VerifierKey] = (),
        field: str = "proof",
    ) -> SignedCheckpoint:
        """Verify that the entry with leaf hash `leaf` is in the checkpointed tree.

        :raises SignatureError: a signature of the checkpoint does not verify, or the checkpoint is of another log
        :raises InvalidProof: the path does not lead to the checkpoint's root
        """
        signed = open_checkpoint(
            self.checkpoint, origin=origin, log_key=log_key, witnesses=witnesses, field=f"{field}, checkpoint"
        )
        head = signed.checkpoint
        if not verify_inclusion(leaf, self.index, head.size, self.path, head.root):
            raise InvalidProof(
                "the entry is not in the checkpointed tree",
                field=field,
                expected=f"a path from the entry at index {self.index} to the root of {head.size} entries",
            )
        return signed


def _b64(data: bytes) -> str:
    return base64.b64encode(data).decode()
