"""A witness's state, and its rules for window headers and window trailers (docs/protocol.md, "Phases")."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Self

from pydantic import Field

from rag_audit._internal.canonical import jcs, parse_json
from rag_audit._internal.errors import RagAuditError
from rag_audit.log.checkpoint import CLOCK_LEEWAY_SECONDS, Checkpoint, SignedCheckpoint
from rag_audit.log.keys import VerifierKey
from rag_audit.log.merkle import HashTree, leaf_hash, verify_inclusion
from rag_audit.mechanisms import COLUMNS
from rag_audit.models.beacon import members_of
from rag_audit.models.chain import Outcome, Unanswered, ended_at, outcome_of
from rag_audit.models.models import Count, Hex32, Millis, Model, Positive
from rag_audit.models.records import (
    MAX_ENTRY_BYTES,
    Entry,
    QueryRecord,
    WindowHeader,
    WindowTrailer,
    WitnessBeacon,
    parse_entry,
)

STORED_REVEALS = 16
"""Number of the last reveals in a log that a provider can request a second time, if it lost the answer."""


def outcome_by_size(trailer: WindowTrailer, size: int, tenants: int) -> Outcome:
    """A window's outcome, for a witness that sees the window trailer and not the entries.

    `outcome_of` gives the same answer for every window with a true trailer. This function accepts a trailer that
    understates the entries by at most one beacon for each enrolment and one entry for each column of each tenant. A
    witness therefore also demands the inclusion of one query record before it accepts a window as complete.

    :param size: size of the final tree: a window header, its beacon, the window trailer, every query and enrolment, at
        most one more beacon for each enrolment and at most one entry for each column of each tenant
    :param tenants: the number of tenants in the window header
    """
    others = size - 3 - trailer.queries - trailer.enrolments
    fits = trailer.seq == size - 1 and 0 <= others <= trailer.enrolments + tenants * len(COLUMNS)
    if trailer.abandoned or not fits:
        return Outcome.ABANDONED
    return Outcome.COMPLETE if trailer.queries else Outcome.EMPTY


class WitnessRefused(RagAuditError):
    """The witness does not sign, since a note or entry breaks one of its rules."""


class Log(Model):
    """The last cosigned checkpoint of a window's log. The witness never deletes it, because no log ever shrinks or
    restarts."""

    origin: str
    window: str
    header: Hex32
    opens_at: Millis
    closes_at: Millis
    """the window header's date, or the window trailer's date after a witness cosigned an earlier trailer"""
    size: Positive
    root: Hex32
    closed: bool
    complete: bool
    """whether the window is closed and complete (`chain.Outcome`)"""
    abandoned: Count
    """windows that were abandoned between the last complete one and this one; the next window's count depends on
    them"""
    empty: Count = 0
    """windows without a query between the last complete one and this one; the next window's count depends on them"""
    unused: bool = False
    """whether the window is closed and empty (`chain.Outcome`)"""
    tenants: Count = 0
    """number of tenants in the window header"""

    @classmethod
    def opened(cls, header: WindowHeader, digest: str, head: Checkpoint) -> Self:
        """The log of a window that goes on, at a checkpoint."""
        before = Unanswered.before(header)
        return cls(
            origin=header.origin,
            window=header.window,
            header=digest,
            opens_at=header.opens_at,
            closes_at=header.closes_at,
            size=head.size,
            root=head.root.hex(),
            closed=False,
            complete=False,
            abandoned=before.abandoned,
            empty=before.empty,
            tenants=header.tenants.count,
        )

    def ended(self, outcome: Outcome, record: WindowTrailer) -> Self:
        """The log after the window trailer closed the window."""
        return self.model_copy(
            update={
                "closed": True,
                "complete": outcome is Outcome.COMPLETE,
                "unused": outcome is Outcome.EMPTY,
                "closes_at": ended_at(self.closes_at, record),
            }
        )

    @property
    def outcome(self) -> Outcome:
        """The outcome of this closed window."""
        if self.complete:
            return Outcome.COMPLETE
        return Outcome.EMPTY if self.unused else Outcome.ABANDONED

    @property
    def expected(self) -> Unanswered:
        """The counts that the next window header has to state."""
        return Unanswered(self.abandoned, self.empty).after(self.outcome)


class Revealed(Model):
    """The one root over which a nonce was revealed."""

    origin: str
    window: str
    size: Positive
    root: Hex32
    ts: Millis


class Nonce(Model):
    nonce: Hex32
    revealed: Revealed | None


class State(Model):
    v: Literal[2] = 2
    logs: dict[str, Log] = Field(default_factory=dict)
    """logs by the origin line of their checkpoints"""
    chains: dict[str, str] = Field(default_factory=dict)
    """the log of the window with the last cosigned header, by the provider's origin"""
    nonces: dict[Hex32, Nonce] = Field(default_factory=dict)
    last_time: Count = 0


def check_link(header: WindowHeader, log: Log) -> None:
    """Check that a window header names the window after `log`. This witness may not have seen the end of `log`."""
    previous = header.previous
    require(
        previous is not None and previous.header == log.header,
        "the window does not follow the last window that this witness knows",
        "header.previous",
        log.header,
        previous,
    )
    if log.closed:
        check_chain(header, log)


def check_chain(header: WindowHeader, log: Log | None) -> None:
    previous = header.previous
    if log is None:
        if previous is not None:
            raise WitnessRefused(
                "no earlier window of this origin is known",
                field="header.previous",
                actual=previous,
                hint="first accept the previous window: rag-audit witness follow",
            )
        return
    require(log.closed, "the previous window is not closed by a cosigned checkpoint", "header.previous")
    result = None if previous is None else (previous.header, previous.root)
    require(
        result == (log.header, log.root),
        "the previous window is not the last window",
        "header.previous",
        (log.header, log.root),
        result,
    )
    stated, expected = Unanswered.before(header), log.expected
    require(
        stated.abandoned == expected.abandoned,
        "the count of abandoned windows differs from this witness's count",
        "header.previous.abandoned",
        expected.abandoned,
        stated.abandoned,
    )
    require(
        stated.empty == expected.empty,
        "the count of empty windows differs from this witness's count",
        "header.previous.empty",
        expected.empty,
        stated.empty,
    )
    require(
        header.opens_at >= log.closes_at,
        "the windows overlap",
        "header.opens_at",
        f">= {log.closes_at}",
        header.opens_at,
    )


@dataclass(frozen=True)
class ShownQuery:
    """A query record that a provider shows to a witness which does not read the entries.

    :param entry: the record's canonical bytes
    :param index: its place in the ledger
    :param path: its inclusion path under the final checkpoint
    """

    entry: bytes
    index: int
    path: Sequence[bytes]


def outcome_of_log(entries: Sequence[bytes], head: Checkpoint) -> Outcome:
    """A window's outcome, for a witness that reads the window's log.

    :param entries: all entries of the log as canonical bytes
    :raises WitnessRefused: the entries do not have the final checkpoint's size and root
    """
    tree = HashTree(map(leaf_hash, entries))
    require(
        (tree.size, tree.root()) == (head.size, head.root),
        "the entries do not match the checkpoint",
        "entries",
        f"size {head.size}, root {head.root.hex()}",
        f"size {tree.size}, root {tree.root().hex()}",
    )
    return outcome_of([parse_canonical(entry) for entry in entries])


def outcome_of_trailer(
    trailer: WindowTrailer, head: Checkpoint, tenants: int, query: ShownQuery | None
) -> Outcome:
    """A window's outcome, for a witness that does not read the window's log.

    :param query: a query record, which a provider has to show if the window trailer counts queries
    :raises WitnessRefused: the window trailer counts a query and no query record of the log is shown
    """
    result = outcome_by_size(trailer, head.size, tenants)
    if result is not Outcome.COMPLETE:
        return result
    if query is None:
        raise WitnessRefused(
            "the window trailer counts queries, and the submission shows no query record",
            field="query",
            expected="one query record of the log, with its inclusion path",
            hint="this release's `rag-audit run` and `witness submit` show one",
        )
    record, place = parse_canonical(query.entry), f"entry {query.index}"
    require(
        isinstance(record, QueryRecord)
        and (record.window, record.seq) == (trailer.window, query.index)
        and 1 < query.index < head.size - 1,
        "the entry is not a query record of the window at this index",
        place,
        f"a query of {trailer.window} with seq {query.index}",
        record.type,
    )
    require(
        verify_inclusion(leaf_hash(query.entry), query.index, head.size, query.path, head.root),
        "the query record is not in the checkpointed tree",
        place,
    )
    return result


def check_trailer(
    entry: bytes, path: Sequence[bytes], head: Checkpoint, window: str, now: int
) -> WindowTrailer:
    record = parse_canonical(entry)
    last = head.size - 1
    if not isinstance(record, WindowTrailer):
        raise WitnessRefused("the entry is not a window trailer", field=f"entry {last}", actual=record.type)
    require(
        record.window == window,
        "the window trailer belongs to another window",
        f"entry {last}",
        window,
        record.window,
    )
    # A window with this trailer could never pass (`ledger.clock`). The provider may ask a second time after the
    # trailer's date.
    latest = now + 1000 * CLOCK_LEEWAY_SECONDS
    require(
        record.ts <= latest,
        "the time of the window trailer is in the future: check the clocks",
        f"entry {last}, ts",
        f"at most {latest} ms",
        record.ts,
    )
    require(
        verify_inclusion(leaf_hash(entry), last, head.size, path, head.root),
        "the window trailer is not the last entry",
        f"entry {last}",
    )
    return record


def parse_canonical(entry: bytes) -> Entry:
    value = parse_json(entry, source="entry", max_bytes=MAX_ENTRY_BYTES)
    record = parse_entry(value, field="entry")
    require(jcs(value) == entry, "the entry is not canonical JSON", "entry")
    return record


def without_oldest(nonces: Mapping[Hex32, Nonce], done: Revealed) -> dict[Hex32, Nonce]:
    """A witness's nonces without the old revealed nonces of the same log.

    A removed nonce is never revealed a second time. Without the removal, each enrolment of a window would make the next
    one more expensive.
    """
    result = {commitment: nonce.revealed for commitment, nonce in nonces.items()}
    same = [(r.size, commitment) for commitment, r in result.items()
            if r is not None and (r.origin, r.window) == (done.origin, done.window)]  # fmt: skip
    gone = {commitment for _, commitment in sorted(same)[:-STORED_REVEALS]}
    return {commitment: nonce for commitment, nonce in nonces.items() if commitment not in gone}


def require(
    condition: bool, message: str, field: str, expected: object = None, actual: object = None
) -> None:
    if not condition:
        raise WitnessRefused(message, field=field, expected=expected, actual=actual)


def check_nonce(header: WindowHeader, state: State, vkey: VerifierKey) -> None:
    """Check the nonce that a window header names for this witness: the witness gave it and has not revealed it.

    :raises WitnessRefused: the header names another nonce
    """
    if not isinstance(header.beacon, WitnessBeacon):
        return
    for member in members_of(header.beacon):
        if member.vkey.name != vkey.name:
            continue
        require(
            member.vkey == vkey,
            "the window header has another key with this witness's name",
            "beacon",
            str(vkey),
        )
        nonce = state.nonces.get(member.commitment.hex())
        require(
            nonce is not None and nonce.revealed is None,
            "the nonce is not a fresh nonce of this witness",
            "beacon",
            "a commitment that this witness gave and has not opened",
            member.commitment.hex(),
        )


def bind(state: State, signed: SignedCheckpoint, quorum_time: int, now: int) -> Revealed:
    """The root for a reveal: the root of the last checkpoint that this witness cosigned. The checkpoint's quorum must
    be complete.

    :raises WitnessRefused: the checkpoint is not the last cosigned one, or the quorum's time is in the future
    """
    head = signed.checkpoint
    log = state.logs.get(head.origin)
    if log is None or (log.size, log.root) != (head.size, head.root.hex()):
        raise WitnessRefused(
            "the checkpoint differs from the last checkpoint that this witness cosigned",
            field="checkpoint",
            expected="none" if log is None else f"size {log.size}, root {log.root}",
            actual=f"size {head.size}, root {head.root.hex()}",
        )
    require(
        1000 * quorum_time <= now,
        "the quorum's time is in the future",
        "checkpoint",
        now,
        1000 * quorum_time,
    )
    return Revealed(origin=log.origin, window=log.window, size=head.size, root=log.root, ts=now)
