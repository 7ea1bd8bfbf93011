"""The chain of an origin's windows, and the count of those that came to nothing.

A provider that opens a window, sees its beacon and then drops it has seen one more draw of the noise than it shows. So
each opening says how many windows of its origin were opened, and witnessed, since the last complete one. The count of
the next opening follows from the last one's count and from how that window was closed; witnesses, provider and verifier
all compute it here.
"""

from __future__ import annotations

from dataclasses import dataclass

from rag_audit.encoding.canonical import MAX_SAFE_INTEGER, digest_hex, jcs
from rag_audit.errors import SchemaError
from rag_audit.formats.records import Closing, Opening, PreviousWindow, parse_entry
from rag_audit.formats.windowfile import WindowFile
from rag_audit.ledger.checkpoint import Checkpoint
from rag_audit.ledger.merkle import HashTree, leaf_hash


def is_complete(closing: Closing, size: int) -> bool:
    """Whether a window is complete: it was not abandoned, and at least one query was answered in it.

    :param size: size of the final tree, which holds an opening, a beacon, the closing record, every query and
        enrolment, and at most one more beacon for each enrolment; a window whose counts do not fit it is not complete
    """
    beacons = size - 3 - closing.queries - closing.enrolments
    return not closing.abandoned and closing.queries > 0 and 0 <= beacons <= closing.enrolments


def ended_at(closes_at: int, closing: Closing) -> int:
    """When a closed window's interval ended: at its date, or at its closing record, after which it holds no entry.

    :param closes_at: the opening's date
    """
    return min(closes_at, closing.ts)


def abandoned_after(abandoned: int, complete: bool) -> int:
    """The count that the next opening has to state, after a window whose own opening stated `abandoned`.

    The count ends at the largest integer of the format, where it stays.
    """
    return 0 if complete else min(abandoned + 1, MAX_SAFE_INTEGER)


@dataclass(frozen=True)
class ClosedWindow:
    """A closed window as its successor sees it. Signatures are not checked here.

    :param digest: digest of the opening
    :param head: the final checkpoint
    """

    opening: Opening
    digest: str
    closing: Closing
    head: Checkpoint

    @classmethod
    def of(cls, file: WindowFile, *, field: str) -> ClosedWindow:
        """The closed window in a window file, whose entries must be the ones under its final checkpoint.

        :raises SchemaError: the first entry is no opening, the last is no closing record, or the entries are others
        """
        entries = file.entries
        first = parse_entry(entries[0] if entries else None, field=f"{field}[0]")
        last = parse_entry(entries[-1] if entries else None, field=f"{field}[{len(entries) - 1}]")
        if not isinstance(first, Opening):
            raise SchemaError("the window has no opening", field=f"{field}[0]", found=first.type)
        if not isinstance(last, Closing):
            raise SchemaError(
                "the window is not closed", field=f"{field}[{len(entries) - 1}]", found=last.type
            )
        tree = HashTree(leaf_hash(jcs(value)) for value in entries)
        head = file.final_head()
        if (tree.size, tree.root()) != (head.size, head.root):
            raise SchemaError(
                "the window's entries are not the ones under its final checkpoint",
                field=field,
                expected=f"{head.size} entries, root {head.root.hex()}",
                found=f"{tree.size} entries, root {tree.root().hex()}",
            )
        return cls(first, digest_hex(entries[0]), last, head)

    @property
    def complete(self) -> bool:
        """Whether the window is complete (`is_complete`)."""
        return is_complete(self.closing, self.head.size)

    @property
    def ended_at(self) -> int:
        """When the window's interval ended (`ended_at`)."""
        return ended_at(self.opening.closes_at, self.closing)

    def as_previous(self) -> PreviousWindow:
        """The reference to this window that the next opening carries."""
        before = 0 if self.opening.previous is None else self.opening.previous.abandoned
        return PreviousWindow(
            opening=self.digest,
            root=self.head.root.hex(),
            abandoned=abandoned_after(before, self.complete),
        )
