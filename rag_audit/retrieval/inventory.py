"""The inventory of one reading of documents: documents that were read, that were truncated, and that were omitted,
with the reasons."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from statistics import median_low
from typing import Any, Self

from rag_audit._internal.errors import brief
from rag_audit._internal.printable import printable
from rag_audit.models.passage import Passage
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


@dataclass(frozen=True)
class Sizes:
    """The documents of a tenant, and the positions that they need: one for each passage.

    :param largest: the key of the document with the largest number of positions; None without documents
    :param maximum: the positions of the largest document
    :param median: the positions of the document in the middle of all documents in the order of their sizes, the smaller
        one of two
    """

    documents: int
    positions: int
    largest: str | None
    maximum: int
    median: int

    @classmethod
    def of(cls, documents: Counter[str]) -> Self:
        """The sizes for the number of positions of each document."""
        if not documents:
            return cls(0, 0, None, 0, 0)
        largest = max(documents, key=lambda key: documents[key])
        return cls(
            len(documents), documents.total(), largest, documents[largest], median_low(documents.values())
        )

    def as_json(self) -> dict[str, object]:
        """The sizes for programs."""
        return {"documents": self.documents, "positions": self.positions, "largest": self.largest,
                "largest_positions": self.maximum, "median_positions": self.median}  # fmt: skip

    def __str__(self) -> str:
        """The sizes for people, with the largest document only if it has several positions."""
        text = f"{_number(self.documents, 'document')} in {_number(self.positions, 'position')}"
        if self.maximum < 2:
            return text
        return f"{text} (median {self.median}, largest {self.maximum}: {brief(self.largest)})"


@dataclass
class Inventory:
    """The outcome of one reading of documents.

    :param documents: the number of positions that each document needs, by tenant and by the document's key
    :param sources: the number of files that they came from, by tenant; empty where the source is a table or database
    :param cut: documents with text or metadata that is used only in part
    :param omitted: files, parts of files, lines, rows and columns that are in no document
    :param repeated: passages that have the text of an earlier passage of their tenant; they are read as well
    """

    documents: dict[str, Counter[str]] = field(default_factory=dict)
    sources: Counter[str] = field(default_factory=Counter)
    cut: list[Entry] = field(default_factory=list)
    omitted: list[Entry] = field(default_factory=list)
    repeated: list[Entry] = field(default_factory=list)
    _passages: Counter[str] = field(default_factory=Counter, repr=False, compare=False)
    _digests: dict[str, set[bytes]] = field(default_factory=dict, repr=False, compare=False)

    def count(self, tenant: str, passage: Passage) -> None:
        """Note a passage that was read, and whether an earlier passage of its tenant has the same text."""
        name = passage.name_in(tenant, self._passages[tenant])
        self._passages[tenant] += 1
        self.documents.setdefault(tenant, Counter())[passage.document or name] += 1
        digests = self._digests.setdefault(tenant, set())
        digest = hashlib.sha256(passage.text.encode("utf-8", "surrogatepass")).digest()
        if digest in digests:
            self.repeat(name, "the text of an earlier passage of the tenant")
        digests.add(digest)

    def discount(self, tenant: str, passage: Passage, name: str) -> None:
        """Note that a passage which was read gets no position.

        :param name: the passage's name for errors (`Passage.name_in`)
        """
        key = passage.document or name
        own = self.documents.get(tenant, Counter())
        own[key] -= 1
        if own[key] <= 0:
            del own[key]

    def sizes(self, tenant: str) -> Sizes:
        """The documents and positions of a tenant."""
        return Sizes.of(self.documents.get(tenant, Counter()))

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
                tenant: self.sizes(tenant).as_json()
                | ({"files": self.sources[tenant]} if self.sources else {})
                for tenant in sorted(self.documents)
            },
            "cut": [entry.as_json() for entry in self.cut],
            "omitted": [entry.as_json() for entry in self.omitted],
            "repeated": [entry.as_json() for entry in self.repeated],
        }

    def lines(self) -> Iterator[str]:
        """The inventory for people: lines for up to `SHOWN` tenants with their documents and positions, a line for all
        other tenants, and a line for each other reason with its count and up to `SHOWN` names.
        """
        tenants = sorted(self.documents)
        for tenant in tenants[:SHOWN]:
            files = f" from {_number(self.sources[tenant], 'file')}" if self.sources[tenant] else ""
            yield f"read {tenant}: {self.sizes(tenant)}{files}"
        if others := tenants[SHOWN:]:
            total = Sizes.of(
                Counter({f"{t}/{key}": n for t in others for key, n in self.documents[t].items()})
            )
            yield f"read {_number(len(others), 'other tenant')}: {total}"
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
