"""A window's state in memory, which is updated with each entry once it is durable, in the ledger's order."""

from __future__ import annotations

import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from typing import TypeAlias

from rag_audit._internal.canonical import parse_json
from rag_audit._internal.errors import PolicyError, RequestRefused, WindowStateError
from rag_audit.attest.waiting import ended, not_open_yet
from rag_audit.commit.commitment import Commitment
from rag_audit.log.appending import AppendResult, Ledger, SlotUsed
from rag_audit.log.merkle import leaf_hash
from rag_audit.log.tree import MerkleTree
from rag_audit.models.policy import Policy
from rag_audit.models.records import (
    BeaconEntry,
    BeaconSource,
    ColumnEntry,
    Enrolment,
    Entry,
    QueryRecord,
    RosterEntry,
    WindowHeader,
    WindowTrailer,
    WitnessBeacon,
    parse_entry,
)


class Places:
    """The accounts that a window has, or is about to have. Adding an account has a cost that does not depend on their
    number.

    :param lines: the checked roster (`models.opening.check_roster`)
    """

    def __init__(self, policy: Policy, lines: Iterable[RosterEntry]) -> None:
        self._policy = policy
        self._keys: dict[str, str] = {}
        self._ids: set[str] = set()
        self._counts: Counter[str] = Counter()
        for line in lines:
            self.put(line)

    def put(self, line: RosterEntry) -> None:
        """Count an account that has its place in the ledger, without the check of `take`."""
        if line.account not in self._ids:
            self._ids.add(line.account)
            self._keys[line.key] = line.account
            self._counts[line.tenant] += 1

    def take(self, lines: Sequence[RosterEntry]) -> None:
        """Take a place for each line, or for none.

        :raises PolicyError: a tenant is unknown, an id or key is repeated, or a tenant's cap is reached
        """
        taken: list[RosterEntry] = []
        try:
            for line in lines:
                self._check(line)
                self.put(line)
                taken.append(line)
        except PolicyError:
            self.give_back(taken)
            raise

    def without_place(self, lines: Sequence[RosterEntry]) -> dict[int, PolicyError]:
        """Why a line would get no place if all were to take theirs in this order, by its number. None is taken."""
        refused: dict[int, PolicyError] = {}
        for number, line in enumerate(lines):
            try:
                self.take([line])
            except PolicyError as exc:
                refused[number] = exc
        self.give_back(line for number, line in enumerate(lines) if number not in refused)
        return refused

    def give_back(self, lines: Iterable[RosterEntry]) -> None:
        """Give up places that were taken."""
        for line in lines:
            self._ids.discard(line.account)
            self._keys.pop(line.key, None)
            self._counts[line.tenant] -= 1

    def _check(self, line: RosterEntry) -> None:
        part = self._policy.tenant(line.tenant)
        if part is None:
            raise PolicyError(
                "the roster names an unknown tenant", field=f"roster.{line.account}", actual=line.tenant
            )
        if line.account in self._ids:
            raise PolicyError("the roster repeats an account", field="roster", expected="each once",
                              actual=line.account)  # fmt: skip
        if line.key in self._keys:
            raise PolicyError("the roster repeats a key", field=f"roster.{line.account}", expected="each once",
                              actual=line.key)  # fmt: skip
        if (count := self._counts[line.tenant] + 1) > part.accounts_max:
            raise PolicyError(
                "the roster has more accounts than the tenant's cap",
                field=f"roster.{line.tenant}",
                expected=f"at most {part.accounts_max}",
                actual=count,
            )


Appending: TypeAlias = Callable[[], Entry]
"""An append on its way: called, it waits until the entry is durable and gives it, or raises why it is not."""


class LedgerState:
    """The state derived from the ledger. Safe to use from several threads.

    `changed` guards the state. No thread holds it during a disk write, an embedding or a proof: a thread announces its
    entry (`query_of`, `enrolment_of`, `beacons_of`, `sample_of`) and appends it without the lock, and
    `wait_until_quiet` delays a window trailer until all announced entries precede it.
    """

    def __init__(self, store: Ledger, commitment: Commitment, clock: Callable[[], int]) -> None:
        self.store = store
        self.clock = clock
        self.header = commitment.header
        self.policy = commitment.policy
        self.entries: list[Entry] = []
        self.tree = MerkleTree()
        self.accounts: dict[str, RosterEntry] = {r.account: r for r in commitment.roster}
        self.enrolled_at: dict[str, int] = {}
        self.places = Places(commitment.policy, commitment.roster)
        self.waiting: dict[str, dict[int, None]] = {}
        """enrolments without a beacon, by the source of their beacon (`source_of`)"""
        self.last_of: dict[str, int] = {}
        """the last enrolment that draws from a source; its checkpoint has all of them"""
        self.beacons: dict[int, bytes] = {}
        self.columns: dict[tuple[str, str], ColumnEntry] = {}
        self.by_slot: dict[tuple[str, int], QueryRecord] = {}
        self.of_tenant: defaultdict[str, list[QueryRecord]] = defaultdict(list)
        """the query records of each tenant, in ledger order"""
        self._places: dict[int, int] = {}
        """the number of a record among those of its tenant, from 0, by `seq`"""
        self.next: defaultdict[str, int] = defaultdict(lambda: 1)
        self.trailer = False
        self.changed = threading.Condition()
        self._in_flight: set[tuple[str, str | int]] = set()
        self._built: dict[int, tuple[Entry, bytes]] = {}
        self._pooled: dict[str, list[tuple[int, str | None]]] = {}
        """by tenant, index and commitment of the latest records whose entries were made; only the writer uses it"""
        self._last_ts = 0
        for raw in store.entries():
            self._apply(parse_entry(parse_json(raw, source="ledger"), field="ledger"), leaf_hash(raw))

    # -- reading ---------------------------------------------------------------------------------------------

    @property
    def ended(self) -> bool:
        """Whether the window trailer is durable."""
        return isinstance(self.entries[-1], WindowTrailer)

    @property
    def records(self) -> list[QueryRecord]:
        """The query records, in ledger order."""
        return list(self.by_slot.values())

    def place(self, record: QueryRecord) -> int:
        """The number of records of a record's tenant before it in the ledger. A draft follows every record."""
        own = self.of_tenant[record.tenant]
        if self.by_slot.get((record.account, record.i)) is None:
            return len(own)
        return self._places[record.seq]

    def preceding(self, record: QueryRecord) -> QueryRecord | None:
        """The record of the same tenant, of any account, that precedes a record in the ledger; None before the
        tenant's first."""
        place = self.place(record)
        return self.of_tenant[record.tenant][place - 1] if place else None

    def beacon(self, account: str) -> bytes | None:
        """The beacon value that the account's slots use, or None before it is drawn."""
        return self.beacons.get(self.enrolled_at.get(account, 0))

    def beacon_source(self, entry: int) -> BeaconSource:
        """The beacon source that a window header or an enrolment names.

        :raises WindowStateError: the entry is neither a window header nor an enrolment
        """
        result = self.entries[entry] if 0 <= entry < len(self.entries) else None
        if not isinstance(result, WindowHeader | Enrolment):
            raise WindowStateError(
                "the entry is neither a window header nor an enrolment that names a beacon",
                field=f"entry {entry}",
            )
        return result.beacon

    # -- announced appends ----------------------------------------------------------------------------------------

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
    def enrolment_of(self, accounts: Sequence[RosterEntry]) -> Iterator[None]:
        """Announce that accounts are enrolled in the block.

        :raises WindowStateError: the window is closed
        :raises PolicyError: a tenant is unknown, an id or key is repeated, or a tenant's cap is reached
        """
        with self.changed:
            if self.trailer:
                raise WindowStateError("the window is closed", field="window",
                                       hint="put the account on the next roster: `account add`")  # fmt: skip
            self.places.take(accounts)
        try:
            with self._claimed(*(("enrolment", a.account) for a in accounts)):
                yield
        finally:
            with self.changed:
                self.places.give_back(a for a in accounts if a.account not in self.enrolled_at)

    @contextmanager
    def beacons_of(self, entries: Sequence[int]) -> Iterator[list[int]]:
        """Announce that the block appends beacons of entries. The value lists the entries that need a beacon: the
        ledger has no beacon of them, and the window trailer is not written yet, since no entry may follow it."""
        with self._claimed(*(("beacon", entry) for entry in entries)) as free:
            with self.changed:
                result = [e for e in entries if ("beacon", e) in free and e not in self.beacons]
                wanted = [] if self.trailer else result
            yield wanted

    @contextmanager
    def column_of(self, tenant: str, name: str) -> Iterator[bool]:
        """Announce that the entry of a tenant's column is appended in the block. The value is False if it is already,
        or too late."""
        with self._claimed((f"column {name}", tenant)) as free:
            with self.changed:
                wanted = bool(free) and not self.trailer and (tenant, name) not in self.columns
            yield wanted

    def wait_until_quiet(self) -> None:
        """Refuse further entries except the window trailer, and wait until the announced ones are appended."""
        with self.changed:
            self.trailer = True
            self.changed.wait_for(lambda: not self._in_flight)

    @contextmanager
    def _claimed(self, *what: tuple[str, str | int]) -> Iterator[set[tuple[str, str | int]]]:
        """Claim every unclaimed item. The value is the set of claimed items."""
        with self.changed:
            free = set(what) - self._in_flight
            self._in_flight |= free
        try:
            yield free
        finally:
            with self.changed:
                self._in_flight -= free
                self.changed.notify_all()

    # -- writing ---------------------------------------------------------------------------------------------

    def append(self, draft: Entry) -> Entry:
        """Append an entry durably, then apply it. The entry is part of the ledger only once the store confirms it.

        :param draft: the entry; the ledger sets its index and time
        :raises StoreError: the entry could not be written, and the ledger is unchanged
        """
        return self.begin(draft)()

    def begin(
        self,
        draft: Entry,
        *,
        slot: tuple[str, int] | None = None,
        private: bytes | None = None,
        preceding: str | None = None,
    ) -> Appending:
        """Begin to `append` an entry. If a caller begins several entries before it waits for the first, one transaction
        commits them.

        :param slot: account and i of a query record; if another record has the same slot, `Appending` raises
            `RequestRefused`
        :param private: bytes that the store saves with the entry
        :param preceding: for a record of a tenant with pooled listing, the commitment to the listed rows that the
            record starts from; if the ledger's latest record of the tenant has another commitment, `Appending` raises
            `RequestRefused`
        """
        future = self._put(draft, slot=slot, private=private, preceding=preceding)

        def appended() -> Entry:
            try:
                index = future.result().index
            except SlotUsed as exc:
                raise RequestRefused("slot-used", exc.message, field="request.i") from exc
            with self.changed:
                return self._apply_to(index)

        return appended

    def append_all(self, drafts: Sequence[Entry]) -> list[Entry]:
        """Append entries as `append` does, in as few transactions as the store can.

        :raises RagAuditError: an entry could not be made or written; the others are in the ledger
        """
        futures = [self._put(draft) for draft in drafts]
        failed = [exc for future in futures if (exc := future.exception()) is not None]
        with self.changed:
            done = [self._apply_to(future.result().index) for future in futures if future.exception() is None]
        if failed:
            raise failed[0]
        return done

    def _put(
        self,
        draft: Entry,
        *,
        slot: tuple[str, int] | None = None,
        private: bytes | None = None,
        preceding: str | None = None,
    ) -> Future[AppendResult]:
        """Pass an entry to the store. The store's writer determines its place in the ledger's order."""

        def place(seq: int) -> bytes:
            entry = self._placed(draft, seq)
            for pooled in self._pooled.values():
                while pooled and pooled[-1][0] >= seq:  # its entry was made, and not inserted
                    pooled.pop()
            if isinstance(entry, QueryRecord) and self.policy.mechanism_of(entry.tenant).pools:
                self._chain(entry, preceding)
            body = entry.canonical()
            self._built[seq] = entry, leaf_hash(body)
            return body

        return self.store.append(place, slot=slot, private=private)

    def _placed(self, draft: Entry, seq: int) -> Entry:
        """The entry of a draft with its index and its time."""
        if isinstance(draft, WindowHeader):
            return draft
        if isinstance(draft, Enrolment | QueryRecord):
            return draft.model_copy(update={"seq": seq, "ts": self.timestamp_inside()})
        if isinstance(draft, WindowTrailer):
            return draft.model_copy(update={"seq": seq, "ts": self.timestamp()})
        return draft.model_copy(update={"seq": seq})

    def _chain(self, record: QueryRecord, preceding: str | None) -> None:
        """Check, in the writer's thread, that a record starts from the set of listed rows that the ledger ends with.

        A request of the same batch may have failed after its successor was selected. Its successor must then not enter
        the ledger, because the verifier would find a fork.
        """
        pooled = self._pooled.setdefault(record.tenant, [])
        if not pooled:
            pooled += [(r.seq, r.listed_rows) for r in self.of_tenant[record.tenant][-1:]]
        if preceding != (pooled[-1][1] if pooled else None):
            raise RequestRefused(
                "unavailable",
                "an earlier request of the tenant failed; repeat the request",
                field="listed_rows",
            )
        del pooled[:-1]
        pooled.append((record.seq, record.listed_rows))

    def timestamp(self) -> int:
        """The time of a new entry, never before the last entry; the store calls this in ledger order."""
        self._last_ts = max(self.clock(), self._last_ts)
        return self._last_ts

    def timestamp_inside(self) -> int:
        """The time of a new entry (`timestamp`), which is refused outside the window."""
        now = self.timestamp()
        if now < self.header.opens_at:
            raise RequestRefused(
                "not-open", not_open_yet(self.header, drawn=True), expected=self.header.opens_at, actual=now
            )
        if now > self.header.closes_at:
            raise RequestRefused("closed", ended(self.header), expected=self.header.closes_at, actual=now)
        return now

    def _apply_to(self, index: int) -> Entry:
        """Update the state with all entries up to a durable one, and return that one.

        Group commit may acknowledge in any order, but the method applies entries in the ledger's order. All entries
        before a durable one are durable.
        """
        while len(self.entries) <= index:
            self._apply(*self._built.pop(len(self.entries)))
        return self.entries[index]

    def _apply(self, entry: Entry, leaf: bytes) -> None:
        """Update the state with the next entry.

        :param leaf: the entry's leaf hash
        """
        self.entries.append(entry)
        self.tree.append(leaf)
        if isinstance(entry, BeaconEntry):
            self.beacons[entry.entry] = bytes.fromhex(entry.value)
            self._drawn(entry.entry)
        elif isinstance(entry, ColumnEntry):
            self.columns[entry.tenant, entry.type] = entry
        elif isinstance(entry, Enrolment):
            self.accounts[entry.account] = line = entry.roster_entry()
            self.places.put(line)
            self.enrolled_at[entry.account] = entry.seq
            source = source_of(entry.beacon)
            self.last_of[source] = entry.seq
            self.waiting.setdefault(source, {})[entry.seq] = None
        elif isinstance(entry, WindowTrailer):
            self.trailer = True
        elif isinstance(entry, QueryRecord):
            self.by_slot[(entry.account, entry.i)] = entry
            self._places[entry.seq] = len(self.of_tenant[entry.tenant])
            self.of_tenant[entry.tenant].append(entry)
            self.next[entry.account] = entry.i + 1
        if isinstance(entry, Enrolment | QueryRecord):
            self._last_ts = max(self._last_ts, entry.ts)

    def _drawn(self, entry: int) -> None:
        result = self.entries[entry] if 0 < entry < len(self.entries) else None
        if isinstance(result, Enrolment):
            left = self.waiting.get(source := source_of(result.beacon), {})
            left.pop(entry, None)
            if not left:
                self.waiting.pop(source, None)


def source_of(beacon: BeaconSource) -> str:
    """The source of a beacon as a text, equal for all entries that share a draw."""
    if isinstance(beacon, WitnessBeacon):
        return " ".join(sorted(w.commitment for w in beacon.witnesses))
    return f"drand {beacon.chain} {beacon.round}"
