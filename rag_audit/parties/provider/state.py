"""A window's state in memory, which is updated with each entry once it is durable, in the ledger's order."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rag_audit.commit.commitment import Commitment
from rag_audit.encoding.canonical import parse_json
from rag_audit.errors import RequestRefused, WindowStateError
from rag_audit.formats.opening import check_roster
from rag_audit.formats.records import (
    BeaconEntry,
    BeaconSource,
    Closing,
    Enrolment,
    Entry,
    KeptEntry,
    Opening,
    QueryRecord,
    RosterEntry,
    parse_entry,
)
from rag_audit.ledger.appending import Ledger, SlotUsed
from rag_audit.ledger.merkle import leaf_hash
from rag_audit.ledger.tree import MerkleTree
from rag_audit.parties.provider.waiting import ended, not_open_yet


class LedgerState:
    """The state that follows from the ledger. Safe to use from several threads.

    `changed` guards the state. It is held neither while the disk is written nor while anything is embedded or proved:
    a thread announces its entry (`query_of`, `enrolment_of`, `beacon_of_entry`, `sample_of`) and appends it without the
    lock, and `wait_until_quiet` lets a closing record follow all announced entries.
    """

    def __init__(self, store: Ledger, commitment: Commitment, clock: Callable[[], int]) -> None:
        self.store = store
        self.clock = clock
        self.opening = commitment.opening
        self.policy = commitment.policy
        self.entries: list[Entry] = []
        self.tree = MerkleTree()
        self.accounts: dict[str, RosterEntry] = {r.account: r for r in commitment.roster}
        self.enrolled_at: dict[str, int] = {}
        self.beacons: dict[int, bytes] = {}
        self.kept: dict[str, KeptEntry] = {}
        self.by_slot: dict[tuple[str, int], QueryRecord] = {}
        self.next: defaultdict[str, int] = defaultdict(lambda: 1)
        self.closing = False
        self.changed = threading.Condition()
        self._in_flight: set[tuple[str, str | int]] = set()
        self._enrolling: dict[str, RosterEntry] = {}
        self._built: dict[int, tuple[Entry, bytes]] = {}
        self._last_ts = 0
        for raw in store.entries():
            self._apply(parse_entry(parse_json(raw, source="ledger"), field="ledger"), leaf_hash(raw))

    # -- reading ---------------------------------------------------------------------------------------------

    @property
    def ended(self) -> bool:
        """Whether the closing record is durable."""
        return isinstance(self.entries[-1], Closing)

    @property
    def records(self) -> list[QueryRecord]:
        """The query records, in ledger order."""
        return list(self.by_slot.values())

    def beacon(self, account: str) -> bytes | None:
        """The beacon value that the account's slots use, or None before it is drawn."""
        return self.beacons.get(self.enrolled_at.get(account, 0))

    def beacon_source(self, entry: int) -> BeaconSource:
        """The beacon source that an opening or enrolment names.

        :raises WindowStateError: the entry is neither an opening nor an enrolment
        """
        found = self.entries[entry] if 0 <= entry < len(self.entries) else None
        if not isinstance(found, Opening | Enrolment):
            raise WindowStateError(
                "the entry is no opening or enrolment that names a beacon", field=f"entry {entry}"
            )
        return found.beacon

    # -- what is about to be appended ------------------------------------------------------------------------

    @contextmanager
    def query_of(self, account: str) -> Iterator[None]:
        """Announce that one of the account's requests is answered in the block.

        :raises RequestRefused: another of its requests is being answered
        """
        with self._claimed(("query", account)) as free:
            if not free:
                raise RequestRefused("in-flight", "the account's last request is still being answered")
            yield

    @contextmanager
    def enrolment_of(self, account: RosterEntry) -> Iterator[None]:
        """Announce that an account is enrolled in the block.

        :raises WindowStateError: the window is closed
        :raises PolicyError: the tenant is unknown, the id or key is repeated, or the tenant's cap is reached
        """
        with self._claimed(("enrolment", account.account)) as free:
            with self.changed:
                if self.closing:
                    raise WindowStateError("the window is closed", field="window",
                                           hint="put the account on the next roster: `account add`")  # fmt: skip
                others = self.accounts | (self._enrolling if free else {account.account: account})
                check_roster([*others.values(), account], self.policy)
                self._enrolling[account.account] = account
            try:
                yield
            finally:
                with self.changed:
                    del self._enrolling[account.account]

    @contextmanager
    def beacon_of_entry(self, entry: int) -> Iterator[bool]:
        """Announce that an entry's beacon is appended in the block. The value is False if the beacon is in the ledger
        already, or is too late, since no entry may follow those that the closing record covers."""
        with self._claimed(("beacon", entry)) as free:
            with self.changed:
                wanted = free and not self.closing and entry not in self.beacons
            yield wanted

    @contextmanager
    def sample_of(self, tenant: str) -> Iterator[bool]:
        """Announce that a tenant's kept positions are appended in the block; the value is as for `beacon_of_entry`."""
        with self._claimed(("sample", tenant)) as free:
            with self.changed:
                wanted = free and not self.closing and tenant not in self.kept
            yield wanted

    def wait_until_quiet(self) -> None:
        """Refuse further entries but the closing record, and wait until the announced ones are appended."""
        with self.changed:
            self.closing = True
            self.changed.wait_for(lambda: not self._in_flight)

    @contextmanager
    def _claimed(self, what: tuple[str, str | int]) -> Iterator[bool]:
        with self.changed:
            free = what not in self._in_flight
            self._in_flight.add(what)
        try:
            yield free
        finally:
            if free:
                with self.changed:
                    self._in_flight.discard(what)
                    self.changed.notify_all()

    # -- writing ---------------------------------------------------------------------------------------------

    def append(
        self,
        entry: Entry | Callable[[int], Entry],
        *,
        slot: tuple[str, int] | None = None,
        private: bytes | None = None,
    ) -> Entry:
        """Append an entry durably, then apply it. The entry is part of the ledger only once the store confirms it.

        :param entry: the entry, or a function that makes it for its index and is called in ledger order
        :param slot: account and i of a query record
        :param private: bytes that are kept beside the entry
        :raises RequestRefused: the slot has a record already
        :raises StoreError: the entry could not be written, and nothing was appended
        """
        made: list[tuple[Entry, bytes]] = []

        def build(seq: int) -> bytes:
            value = entry(seq) if callable(entry) else entry
            body = value.canonical()
            made.append((value, leaf_hash(body)))
            self._built[seq] = made[-1]
            return body

        try:
            self.store.append(build, slot=slot, private=private).result()
        except SlotUsed as exc:
            raise RequestRefused("slot-used", exc.message, field="request.i") from exc
        with self.changed:
            return self._apply(*made[-1])

    def timestamp(self) -> int:
        """The time of a new entry, never before the last entry; the store calls this in ledger order."""
        self._last_ts = max(self.clock(), self._last_ts)
        return self._last_ts

    def timestamp_inside(self) -> int:
        """The time of a new entry (`timestamp`), which is refused outside the window."""
        now = self.timestamp()
        if now < self.opening.opens_at:
            raise RequestRefused(
                "not-open", not_open_yet(self.opening, drawn=True), expected=self.opening.opens_at, found=now
            )
        if now > self.opening.closes_at:
            raise RequestRefused("closed", ended(self.opening), expected=self.opening.closes_at, found=now)
        return now

    def _apply(self, entry: Entry, leaf: bytes) -> Entry:
        """Update the state with the entries up to a durable one.

        :param leaf: the entry's leaf hash
        """
        # Group commit may acknowledge in any order: entries are applied in the ledger's. Those before one that is
        # durable are so too.
        index = 0 if isinstance(entry, Opening) else entry.seq
        if index < len(self.entries):
            return entry
        while index > len(self.entries):
            self._apply(*self._built[len(self.entries)])
        self._built.pop(index, None)
        self.entries.append(entry)
        self.tree.append(leaf)
        if isinstance(entry, BeaconEntry):
            self.beacons[entry.entry] = bytes.fromhex(entry.value)
        elif isinstance(entry, KeptEntry):
            self.kept[entry.tenant] = entry
        elif isinstance(entry, Enrolment):
            self.accounts[entry.account] = entry.roster_entry()
            self.enrolled_at[entry.account] = entry.seq
        elif isinstance(entry, Closing):
            self.closing = True
        elif isinstance(entry, QueryRecord):
            self.by_slot[(entry.account, entry.i)] = entry
            self.next[entry.account] = entry.i + 1
        if isinstance(entry, Enrolment | QueryRecord):
            self._last_ts = max(self._last_ts, entry.ts)
        return entry
