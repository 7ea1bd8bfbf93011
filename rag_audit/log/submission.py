"""The request of a log to a witness, and the witness's answer (c2sp.org/tlog-witness, `add-checkpoint`)."""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from dataclasses import dataclass

from rag_audit._internal.canonical import bounded_text, parse_base64
from rag_audit._internal.errors import EncodingError, SignatureError, SizeError
from rag_audit.log.checkpoint import MAX_SIZE
from rag_audit.log.keys import VerifierKey
from rag_audit.log.merging import merge_signatures
from rag_audit.log.merkle import HASH_SIZE
from rag_audit.log.note import MAX_NOTE_BYTES, Note, parse_note, verify_note

ADD_CHECKPOINT = "/add-checkpoint"
SIZE_TYPE = "text/x.tlog.size"
MAX_PROOF_LINES = 63
MAX_SUBMISSION_BYTES = MAX_NOTE_BYTES + 4096
_OLD = re.compile(r"\Aold (0|[1-9][0-9]{0,18})\Z")
_SIZE = re.compile(rb"\A(0|[1-9][0-9]{0,18})\n\Z")


@dataclass(frozen=True)
class Submission:
    """A checkpoint with a proof that it extends the last checkpoint that the witness cosigned.

    :param old: the size of the last cosigned checkpoint, 0 if there is none
    :param proof: RFC 9162 consistency path from `old`
    :param note: the checkpoint, signed by the log
    """

    old: int
    proof: Sequence[bytes]
    note: Note

    def __str__(self) -> str:
        lines = [f"old {self.old}", *(base64.b64encode(h).decode() for h in self.proof), "", str(self.note)]
        return "\n".join(lines)

    @classmethod
    def parse(cls, data: bytes | str, *, field: str = "add-checkpoint") -> Submission:
        """Read the body of a request.

        :raises SizeError: it is too long, or has more than 63 lines of proof
        :raises EncodingError: a line is missing, or not canonical
        """
        text = bounded_text(data, what="submission", field=field, max_bytes=MAX_SUBMISSION_BYTES)
        head, separator, note = text.partition("\n\n")
        first, *proof = head.split("\n")
        match = _OLD.match(first)
        if match is None or not separator or int(match[1]) > MAX_SIZE:
            raise EncodingError(
                "not a submission",
                field=field,
                expected="old SIZE, lines of proof, a blank line, a checkpoint",
            )
        if len(proof) > MAX_PROOF_LINES:
            raise SizeError(
                "the consistency proof is too long",
                field=field,
                expected=f"at most {MAX_PROOF_LINES} lines",
                actual=len(proof),
            )
        hashes = [parse_base64(line, field=f"{field}, proof line {i}") for i, line in enumerate(proof, 1)]
        if any(len(h) != HASH_SIZE for h in hashes):
            raise EncodingError("a line of the proof is not 32 bytes", field=field)
        return cls(int(match[1]), tuple(hashes), parse_note(note, field=f"{field}, checkpoint"))


def cosignature_lines(note: Note, key: VerifierKey) -> str:
    """The lines of a note that a witness's cosignature key made, which are the answer to a submission."""
    return "".join(f"{s}\n" for s in note.signatures if (s.name, s.key_id) == (key.name, key.key_id))


def read_cosignature(checkpoint: Note, lines: bytes, key: VerifierKey, *, field: str) -> Note:
    """The checkpoint with the cosignature that a witness answered; lines by other keys are dropped.

    :raises EncodingError: the answer is not signature lines
    :raises SignatureError: there is no cosignature by this key, or it is wrong
    """
    try:
        answered = parse_note((checkpoint.text + "\n").encode() + lines, field=field)
    except UnicodeError as exc:
        raise EncodingError("not signature lines", field=field) from exc
    own = tuple(s for s in answered.signatures if (s.name, s.key_id) == (key.name, key.key_id))
    if not own:
        raise SignatureError(
            "the witness answered without its cosignature",
            field=field,
            expected=key.name,
            actual=", ".join(s.name for s in answered.signatures),
        )
    signed = Note(checkpoint.text, own)
    verify_note(signed, [key], field=field)
    return merge_signatures([checkpoint, signed], [key], field=field)


def parse_size(body: bytes, *, field: str) -> int:
    """The size in an answer of type text/x.tlog.size.

    :raises EncodingError: the body is not a decimal number and a newline
    """
    match = _SIZE.match(body)
    if match is None:
        raise EncodingError("not a tree size", field=field, expected="a decimal number and a newline")
    return int(match[1])
