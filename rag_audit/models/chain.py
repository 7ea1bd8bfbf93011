"""The chain of an origin's windows, and the counts of windows without an answer.

A provider that opens a window, sees its beacon and then drops the window has seen one more draw of the noise than it
shows. A window that is closed properly without a query shows as little of its draw. So each window header counts both
kinds since the last complete window: the abandoned ones and the empty ones. The counts of the next header follow from
the counts of the last header and from the entries of the last window. Witnesses, provider and verifier all compute them
with this module.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from rag_audit._internal.canonical import MAX_SAFE_INTEGER, digest_hex, jcs
from rag_audit._internal.errors import SchemaError
from rag_audit.log.checkpoint import Checkpoint
from rag_audit.log.merkle import HashTree, leaf_hash
from rag_audit.models.models import repeated
from rag_audit.models.records import (
    BeaconEntry,
    ColumnEntry,
    Enrolment,
    Entry,
    PreviousWindow,
    QueryRecord,
    WindowHeader,
    WindowTrailer,
    parse_entry,
)
from rag_audit.models.windowfile import WindowFile


class Outcome(StrEnum):
    """The outcome of a closed window."""

    COMPLETE = "complete"
    """the window trailer counts at least one query, and the counts match the entries"""
    EMPTY = "empty"
    """the window was closed properly, with its beacon and without a query"""
    ABANDONED = "abandoned"
    """the window trailer declares the window abandoned, or its counts contradict the entries; it can never pass"""


def outcome_of(entries: Sequence[Entry]) -> Outcome:
    """A window's outcome, from all its entries.

    If its entries contradict its trailer, a window fails `ledger.sequence`, `ledger.trailer`, `ledger.beacons` or
    `ledger.sample`. Such a window counts as abandoned, so a false trailer gains its provider no advantage.

    :param entries: the entries of the final tree, in the log's order
    """
    first, last = (entries[0], entries[-1]) if entries else (None, None)
    if not isinstance(first, WindowHeader) or not isinstance(last, WindowTrailer) or last.abandoned:
        return Outcome.ABANDONED
    between = entries[1:-1]
    if any(
        isinstance(entry, WindowHeader | WindowTrailer) or entry.seq != at
        for at, entry in enumerate(between, 1)
    ):
        return Outcome.ABANDONED
    queries = sum(isinstance(entry, QueryRecord) for entry in between)
    enrolled = {entry.seq for entry in between if isinstance(entry, Enrolment)}
    beacons = [entry.entry for entry in between if isinstance(entry, BeaconEntry)]
    columns: defaultdict[str, list[str]] = defaultdict(list)
    for entry in between:
        if isinstance(entry, ColumnEntry):
            columns[entry.type].append(entry.tenant)
    counted = (
        last.seq == len(entries) - 1
        and (queries, len(enrolled)) == (last.queries, last.enrolments)
        and 0 in beacons
        and len(beacons) == len({*beacons} & {0, *enrolled})
        and all(len(t) <= first.tenants.count and not repeated(t) for t in columns.values())
    )
    if not counted:
        return Outcome.ABANDONED
    return Outcome.COMPLETE if queries else Outcome.EMPTY


@dataclass(frozen=True)
class Unanswered:
    """The windows of an origin since its last complete one, as a window header counts them.

    :param abandoned: windows that were dropped, or that can never pass
    :param empty: windows that were closed properly without a query
    """

    abandoned: int = 0
    empty: int = 0

    @classmethod
    def before(cls, header: WindowHeader) -> Unanswered:
        """The counts that a window header states; an origin's first header states none."""
        return cls.stated(header.previous)

    @classmethod
    def stated(cls, previous: PreviousWindow | None) -> Unanswered:
        """The counts that a reference to the window before states."""
        return cls() if previous is None else cls(previous.abandoned, previous.empty)

    def after(self, outcome: Outcome) -> Unanswered:
        """The counts that the next window header has to state. `self` has the counts in the current window's header.

        A count saturates at the largest integer of the format.
        """
        if outcome is Outcome.COMPLETE:
            return Unanswered()
        empty = outcome is Outcome.EMPTY
        return Unanswered(
            min(self.abandoned + (not empty), MAX_SAFE_INTEGER), min(self.empty + empty, MAX_SAFE_INTEGER)
        )


def ended_at(closes_at: int, trailer: WindowTrailer) -> int:
    """The end of a closed window's interval: its date, or the time of its trailer, after which it has no entry.

    :param closes_at: the window header's date
    """
    return min(closes_at, trailer.ts)


@dataclass(frozen=True)
class ClosedWindow:
    """A closed window as its successor sees it. Signatures are not checked here.

    :param digest: digest of the window header
    :param head: the final checkpoint
    :param outcome: the window's outcome (`outcome_of`)
    """

    header: WindowHeader
    digest: str
    trailer: WindowTrailer
    head: Checkpoint
    outcome: Outcome

    @classmethod
    def of(cls, file: WindowFile, *, field: str) -> ClosedWindow:
        """The closed window in a window file. The file's entries must match its final checkpoint.

        :raises SchemaError: the first entry is no window header, the last is no window trailer, the entries do not
            match the checkpoint, or one of them is malformed
        """
        values = file.entries
        first = parse_entry(values[0] if values else None, field=f"{field}[0]")
        last = parse_entry(values[-1] if values else None, field=f"{field}[{len(values) - 1}]")
        if not isinstance(first, WindowHeader):
            raise SchemaError("the window has no header", field=f"{field}[0]", actual=first.type)
        if not isinstance(last, WindowTrailer):
            raise SchemaError(
                "the window is not closed", field=f"{field}[{len(values) - 1}]", actual=last.type
            )
        tree = HashTree(leaf_hash(jcs(value)) for value in values)
        head = file.final_head()
        if (tree.size, tree.root()) != (head.size, head.root):
            raise SchemaError(
                "the window's entries do not match its final checkpoint",
                field=field,
                expected=f"{head.size} entries, root {head.root.hex()}",
                actual=f"{tree.size} entries, root {tree.root().hex()}",
            )
        entries = [parse_entry(value, field=f"{field}[{at}]") for at, value in enumerate(values)]
        return cls(first, digest_hex(values[0]), last, head, outcome_of(entries))

    @property
    def ended_at(self) -> int:
        """When the window's interval ended (`ended_at`)."""
        return ended_at(self.header.closes_at, self.trailer)

    @property
    def unanswered(self) -> Unanswered:
        """The counts that the next window header has to state."""
        return Unanswered.before(self.header).after(self.outcome)

    def as_previous(self) -> PreviousWindow:
        """The reference to this window that the next window header carries."""
        return reference(self.digest, self.head.root, self.unanswered)


def reference(digest: str, root: bytes, unanswered: Unanswered) -> PreviousWindow:
    """The reference to a closed window that the next window header carries.

    :param digest: digest of the window header
    :param root: its final root
    :param unanswered: the counts that the next window header has to state
    """
    return PreviousWindow(
        header=digest, root=root.hex(), abandoned=unanswered.abandoned, empty=unanswered.empty
    )
