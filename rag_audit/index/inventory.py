"""The inventory of one reading of documents: what was read, what was cut, and what was omitted for which reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from rag_audit.errors import RagAuditError

SHOWN = 10
"""The most names that a line for people shows."""


@dataclass(frozen=True)
class Entry:
    """A document, a file or a part of a file that was not read as a whole.

    :param name: the file, with its line or page where the entry is about a part
    :param reason: why, the same words for every entry of one kind
    :param found: what was found in this one
    """

    name: str
    reason: str
    found: str | None = None

    def as_json(self) -> dict[str, str]:
        """The entry for programs."""
        found = {} if self.found is None else {"found": self.found}
        return {"name": self.name, "reason": self.reason, **found}

    @property
    def shown(self) -> str:
        """The entry's name for people, with what was found."""
        return self.name if self.found is None else f"{self.name} ({self.found})"


@dataclass
class Inventory:
    """What became of the documents of one reading.

    :param documents: the number of documents that were read, by tenant
    :param sources: the number of files that they came from, by tenant
    :param cut: documents whose text or metadata is used in part
    :param omitted: files, parts of files, lines and rows that yield no document
    :param repeated: documents that have the text of an earlier document of their tenant; they are read as well
    """

    documents: Counter[str] = field(default_factory=Counter)
    sources: Counter[str] = field(default_factory=Counter)
    cut: list[Entry] = field(default_factory=list)
    omitted: list[Entry] = field(default_factory=list)
    repeated: list[Entry] = field(default_factory=list)

    def omit(self, name: str, reason: str, found: str | None = None) -> None:
        """Note a file or a part of it that yields no document."""
        self.omitted.append(Entry(name, reason, found))

    def omit_error(self, error: RagAuditError) -> None:
        """Note what an error names as omitted."""
        found = None if error.found is None else str(error.found)
        self.omit(error.field or "a document", error.message, found)

    def as_json(self) -> dict[str, object]:
        """The whole inventory for programs."""
        return {
            "read": {
                tenant: {"documents": count, "files": self.sources[tenant]}
                for tenant, count in sorted(self.documents.items())
            },
            "cut": [entry.as_json() for entry in self.cut],
            "omitted": [entry.as_json() for entry in self.omitted],
            "repeated": [entry.as_json() for entry in self.repeated],
        }

    def lines(self) -> Iterator[str]:
        """The inventory for people: a line for what was read, and a line for each reason of the rest with its count and
        up to `SHOWN` names."""
        total, files = self.documents.total(), self.sources.total()
        counts = [f"{tenant} {count}" for tenant, count in sorted(self.documents.items())]
        yield f"read {_number(total, 'document')} of {_number(files, 'file')}: {_some(counts)}"
        for what, entries in (("cut", self.cut), ("omitted", self.omitted), ("repeated", self.repeated)):
            yield from _grouped(what, entries)


def _grouped(what: str, entries: Sequence[Entry]) -> Iterator[str]:
    groups: dict[str, list[Entry]] = {}
    for entry in entries:
        groups.setdefault(entry.reason, []).append(entry)
    for reason, group in groups.items():
        yield f"{what} {len(group)} ({reason}): {_some([entry.shown for entry in group[: SHOWN + 1]], len(group))}"


def _some(names: Sequence[str], total: int | None = None) -> str:
    total = len(names) if total is None else total
    more = f" and {total - SHOWN} more (--json names all)" if total > SHOWN else ""
    return f"{', '.join(names[:SHOWN])}{more}"


def _number(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"
