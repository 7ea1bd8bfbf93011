"""A provider's HTTP requests to a witness beyond C2SP's `add-checkpoint` (docs/witnesses.md, "The extension")."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from rag_audit._internal.canonical import Json
from rag_audit._internal.errors import EncodingError, VersionError
from rag_audit.log.keys import Signer
from rag_audit.log.note import MAX_NOTE_BYTES, Note, sign_note
from rag_audit.log.submission import MAX_SUBMISSION_BYTES
from rag_audit.models.models import Count, Hex32, Identifier, Line, Model
from rag_audit.models.records import MAX_ENTRY_BYTES

PREFIX = "/rag-audit/v1"
NONCE, HEADER, TRAILER, REVEAL = (f"{PREFIX}/{name}" for name in ("nonce", "header", "trailer", "reveal"))
MAX_REQUEST_BYTES = 2 * MAX_SUBMISSION_BYTES + 16 * MAX_ENTRY_BYTES
"""JSON escapes a note's line ends and dashes, and control characters within an entry by up to six bytes each."""
NONCE_HEADER = "rag-audit/nonce-request/v1"

NoteText = Annotated[str, Field(max_length=MAX_NOTE_BYTES)]
Path = Annotated[list[Hex32], Field(max_length=63)]


class NonceRequest(Model):
    """A request for a nonce line: the requesting provider and the window to open, as the text of a note by the
    provider's key."""

    origin: Line
    window: Identifier

    def sign(self, key: Signer) -> Note:
        """The request as it is sent."""
        return sign_note(f"{NONCE_HEADER}\n{self.origin}\n{self.window}\n", key)

    @classmethod
    def of(cls, note: Note, *, field: str) -> NonceRequest:
        """Read the text of a note. This method does not check its signature.

        :raises VersionError: the note is of another kind
        :raises EncodingError: the note has other lines
        """
        lines = note.text.split("\n")
        if lines[0] != NONCE_HEADER:
            raise VersionError("not a nonce request", field=field, expected=NONCE_HEADER, actual=lines[0])
        if len(lines) != 4:
            raise EncodingError("a nonce request has three lines", field=field, actual=len(lines) - 1)
        return cls.parse({"origin": lines[1], "window": lines[2]}, field=field)


class HeaderRequest(Model):
    """A window header to be cosigned: the checkpoint of size 1, and entry 0."""

    checkpoint: NoteText
    header: dict[str, Json]


class QueryShown(Model):
    """A query record of the window that ends. It shows that the window trailer counts a query of the log.

    :param entry: the query record
    :param index: its place in the ledger
    :param path: its inclusion path under the final checkpoint
    """

    entry: dict[str, Json]
    index: Count
    path: Path


class TrailerRequest(Model):
    """A window's end to be cosigned.

    :param submission: the final checkpoint with its proof, as `add-checkpoint` takes it
    :param trailer: the window trailer
    :param path: its inclusion path as the last entry
    :param query: a query record, if the window trailer counts any
    """

    submission: Annotated[str, Field(max_length=MAX_SUBMISSION_BYTES)]
    trailer: dict[str, Json]
    path: Path
    query: QueryShown | None = None


class RevealRequest(Model):
    """An entry with a due beacon.

    :param checkpoint: the checkpoint that ends with the entry, with a quorum's cosignatures
    :param entry: the window header or the enrolment
    :param index: its place in the ledger
    :param path: its inclusion path
    """

    checkpoint: NoteText
    entry: dict[str, Json]
    index: Count
    path: Path
