"""The results of reading a file: texts, omissions, errors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from rag_audit._internal.canonical import Json
from rag_audit._internal.errors import RagAuditError

MAX_NAME = 500
"""The maximum number of characters of a title or heading in the metadata."""


class DocumentsError(RagAuditError):
    """A provider's documents cannot be used, since they are absent, unreadable, or without text."""


class NoTextError(DocumentsError):
    """A file of a supported format contains no text, so it yields no document."""


@dataclass(frozen=True)
class Section:
    """A part of a file.

    :param fields: its metadata: a page number, a title
    """

    text: str
    fields: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True)
class Omission:
    """A part of a file that yields no text, or not all of its text, although the rest of the file is read.

    :param reason: why, as the end of a sentence about the part: "has no text (a scanned page?)"
    :param page: the number of the page, from 1, if the part is a page
    :param part: the name of the part if the part is something else: "the attachment offer.pdf"
    """

    reason: str
    page: int | None = None
    part: str | None = None

    @property
    def place(self) -> str:
        """The part's name for people: "page 3", "the attachment offer.pdf"."""
        return f"page {self.page}" if self.page is not None else self.part or "a part"


@dataclass(frozen=True)
class ReadFile:
    """The texts and omissions of one file.

    :param sections: the texts, each with its metadata from the file; at least one has a letter or digit
    :param omitted: the parts of the file that yield no text, in the order of the file
    """

    sections: tuple[Section, ...]
    omitted: tuple[Omission, ...] = ()


def has_letters(text: str) -> bool:
    """Whether a text has a letter or digit."""
    return any(map(str.isalnum, text))


def titled(title: str | None) -> dict[str, Json]:
    """The field `title` of a section, for a title that is not blank."""
    name = " ".join((title or "").split())[:MAX_NAME]
    return {"title": name} if name else {}
