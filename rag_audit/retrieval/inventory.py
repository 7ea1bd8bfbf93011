"""The inventory of one reading of documents: documents that were read, that were truncated, and that were omitted,
with the reasons."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from rag_audit._internal.printable import printable
from rag_audit.retrieval.parsing.results import DocumentsError

SHOWN = 10
"""Maximum names in a line for people."""


@dataclass(frozen=True)
class Entry:
    """A document, a file or a part of a file that was not read as a whole.

    :param name: the file, with its line or page if the entry is about a part
    :param reason: the reason, in the same words for every entry of one kind
    :param actual: the actual content of this entry
    """

    name: str
    reason: str
    actual: str | None = None

    def as_json(self) -> dict[str, str]:
        """The entry for programs."""
        result = {} if self.actual is None else {"actual": self.actual}
        return {"name": self.name, "reason": self.reason, **result}

    @property
    def shown(self) -> str:
        """The entry's name for people, with the actual content."""
        return self.name if self.actual is None else f"{self.name} ({self.actual})"


@dataclass
class Inventory:
    """The outcome of one reading of documents.

    :param documents: the number of documents that were read, by tenant
    :param sources: the number of files that they came from, by tenant; empty where the source is a table or database
    :param cut: documents with text or metadata that is used only in part
    :param omitted: files, parts of files, lines, rows and columns that are in no document
    :param repeated: documents that have the text of an earlier document of their tenant; they are read as well
    """

    documents: Counter[str] = field(default_factory=Counter)
    sources: Counter[str] = field(default_factory=Counter)
    cut: list[Entry] = field(default_factory=list)
    omitted: list[Entry] = field(default_factory=list)
    repeated: list[Entry] = field(default_factory=list)
    _digests: dict[str, set[bytes]] = field(default_factory=dict, repr=False, compare=False)

    def count(self, tenant: str, name: str, text: str) -> None:
        """Note a document that was read, and whether an earlier document of its tenant has the same text.

        :param name: the document's place
        """
        self.documents[tenant] += 1
        digests = self._digests.setdefault(tenant, set())
        digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
        if digest in digests:
            self.repeat(name, "the text of an earlier document of the tenant")
        digests.add(digest)

    def omit(self, name: str, reason: str, actual: object = None) -> None:
        """Note a file or a part of it that is in no document."""
        self.omitted.append(Entry(name, reason, None if actual is None else str(actual)))

    def shorten(self, name: str, reason: str) -> None:
        """Note a document that is used in part."""
        self.cut.append(Entry(name, reason))

    def repeat(self, name: str, reason: str) -> None:
        """Note a document with the text of another document."""
        self.repeated.append(Entry(name, reason))

    def as_json(self) -> dict[str, object]:
        """The whole inventory for programs."""
        return {
            "read": {
                tenant: {"documents": count} | ({"files": self.sources[tenant]} if self.sources else {})
                for tenant, count in sorted(self.documents.items())
            },
            "cut": [entry.as_json() for entry in self.cut],
            "omitted": [entry.as_json() for entry in self.omitted],
            "repeated": [entry.as_json() for entry in self.repeated],
        }

    def lines(self) -> Iterator[str]:
        """The inventory for people: a line for the documents that were read, and a line for each other reason with its
        count and up to `SHOWN` names.
        """
        total, files = self.documents.total(), self.sources.total()
        counts = [f"{tenant} {count}" for tenant, count in sorted(self.documents.items())]
        of = f" of {_number(files, 'file')}" if files else ""
        yield f"read {_number(total, 'document')}{of}" + (f": {_some(counts, len(counts))}" if counts else "")
        yield from grouped("omitted", self.omitted)
        yield from grouped("cut", self.cut)
        yield from grouped("repeated", self.repeated)


class NoDocumentsError(DocumentsError):
    """A reading yields no document. The error lists the omitted parts, for people and for programs.

    :param inventory: the inventory of the reading
    """

    def __init__(self, message: str, *, inventory: Inventory, **others: Any) -> None:
        super().__init__(message, **others)
        self.inventory = inventory

    def diagnostics(self) -> str:
        """The error for people, with a line for each reason why something was omitted."""
        lines = [f"  {printable(line)}" for line in grouped("omitted", self.inventory.omitted)]
        return "\n".join([super().diagnostics(), *lines])

    def as_json(self) -> dict[str, object]:
        """The error for programs, with the whole inventory."""
        return {**super().as_json(), "inventory": self.inventory.as_json()}


def grouped(what: str, entries: Sequence[Entry]) -> Iterator[str]:
    """A line for each reason of the entries, with their count and up to `SHOWN` names."""
    groups: dict[str, list[Entry]] = {}
    for entry in entries:
        groups.setdefault(entry.reason, []).append(entry)
    for reason, group in groups.items():
        names = [entry.shown for entry in group[:SHOWN]]
        yield f"{what} {len(group)}: {reason}: {_some(names, len(group))}"


def _some(names: Sequence[str], total: int) -> str:
    more = f"; and {total - SHOWN} more" if total > SHOWN else ""
    return f"{'; '.join(names[:SHOWN])}{more}"


def _number(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"
