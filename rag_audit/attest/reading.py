"""A window read by a process other than the serving one, while that process continues to serve."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from rag_audit._internal.canonical import digest_hex, parse_json
from rag_audit._internal.clock import local_time
from rag_audit._internal.errors import StoreError, WindowStateError
from rag_audit._internal.lock import is_locked
from rag_audit._internal.words import counted
from rag_audit.attest.query import open_retained
from rag_audit.attest.waiting import from_witnesses, missing_cosignatures, waited_for
from rag_audit.commit.commitment import WindowSecrets
from rag_audit.commit.preparing import committed_embedder
from rag_audit.commit.stored import StoredCommitment, load_stored
from rag_audit.estimate.clusters import Estimate, estimate_window
from rag_audit.log.keys import VerifierKey
from rag_audit.log.place import begun, ledger_rows
from rag_audit.models.constants import STATEMENTS
from rag_audit.models.layout import Layout
from rag_audit.models.manifest import check_manifest
from rag_audit.models.policy import Policy
from rag_audit.models.records import BeaconEntry, Enrolment, Entry, QueryRecord, WindowTrailer, parse_entry


@dataclass(frozen=True)
class Standing:
    """The state of a window.

    :param status: as `Window.status`
    :param since: the start of this status, in milliseconds since the epoch; for a window without dates in its ledger,
        the time at which the files of the status were written
    :param waits_for: the next required event, in words
    :param is_open: whether a process has the window open
    :param records: answered queries
    :param requested: number of accounts with a query
    :param accounts: number of all accounts
    :param proved: records with proofs of all their statements
    """

    status: str
    since: int
    waits_for: str
    is_open: bool
    records: int
    requested: int
    accounts: int
    proved: int


class WindowReader:
    """The content of a window's folder, up to the last durable entry of its ledger. The reader takes no lock and writes
    no file.

    :raises WindowStateError: the folder contains no window
    :raises StoreError: the ledger cannot be read or was altered
    """

    def __init__(self, directory: Path) -> None:
        self._layout = Layout(directory)
        if not self._layout.commitment.exists() or not begun(self._layout.ledger, self._layout.ledger_place):
            own = Layout(directory.absolute().parent)
            raise WindowStateError(
                "the folder contains no window", field=str(directory),
                expected="the provider's own folder of a window",
                hint=f"this is the public folder of a window; name the folder that contains it, {directory.parent}"
                if own.public.folder.name == directory.name and own.commitment.exists()
                else "open a window with `rag-audit provider open`, which also continues an interrupted run",
            )  # fmt: skip
        self._stored: StoredCommitment = load_stored(directory)
        self.policy = Policy.parse(self._stored.policy, field="commitment.json.policy")
        rows = ledger_rows(self._layout.ledger, self._layout.ledger_place)
        self._entries: list[Entry] = [
            parse_entry(parse_json(body, source="ledger"), field="ledger") for body, _ in rows
        ]
        self._private = [private for _, private in rows]
        if self._entries[:1] != [self._stored.header]:
            raise StoreError("the ledger does not start with the header of this window", field=str(directory))

    @property
    def entries(self) -> Sequence[Entry]:
        """The entries of the ledger."""
        return self._entries

    @cached_property
    def records(self) -> list[QueryRecord]:
        """The query records, in ledger order."""
        return [entry for entry in self._entries if isinstance(entry, QueryRecord)]

    def estimate(self, model: Path | None = None) -> Estimate:
        """The estimate of repeated questions over the queries so far (`Window.estimate`).

        :param model: the folder of the committed embedder's files, if it has any
        :raises StoreError: a retained query cannot be opened, or the embedder is not the committed one
        """
        embedder = committed_embedder(check_manifest(self._stored.embedder), self.policy, model=model)
        key = WindowSecrets.load(self._layout.secrets).retention_key
        digest = digest_hex(self._stored.header.dump())
        kept = [open_retained(self._private[r.seq], key, digest, r) for r in self.records]
        return estimate_window(self.records, [k.opened(embedder).vector for k in kept], self.policy)

    def standing(self, now: int, asked: Collection[str] = (), *, proves_all: bool = False) -> Standing:
        """The state of the window.

        :param now: milliseconds since the epoch
        :param asked: the witnesses that a run asks over HTTP
        :param proves_all: whether a run proves every record without a challenge
        """
        witnesses = [VerifierKey.parse(w, field="commitment.witnesses") for w in self._stored.witnesses]
        public, header, size = self._layout.public, self._stored.header, len(self._entries)
        proved, trailer = number_proved(self._layout, self.records, self.policy), self._entries[-1]
        since = written_at(public.header)
        if isinstance(trailer, WindowTrailer):
            missing = missing_cosignatures(public, size, witnesses)
            status, since = "closed", trailer.ts
            if not missing:
                status, since = "final", max(trailer.ts, written_at(public.checkpoint(size)))
            waits = (
                f"{from_witnesses('cosignatures', missing, 'cosign', asked, 'on the final checkpoint')}, then run"
                " `rag-audit provider close` a second time"
                if missing
                else self._proofs_to_come(proved, proves_all=proves_all)
            )
        elif any(isinstance(e, BeaconEntry) and e.entry == 0 for e in self._entries):
            status = "active"
            if now < header.opens_at:
                waits = f"its time: it opens at {local_time(header.opens_at)}"
            elif now <= header.closes_at:
                since = header.opens_at
                waits = f"queries until {local_time(header.closes_at)}: `rag-audit provider serve`"
            else:
                since = header.closes_at
                waits = f"`rag-audit provider close`: it ended at {local_time(header.closes_at)}"
        else:
            status, waits = "committed", waited_for(header, public, witnesses, asked)
        enrolled = sum(isinstance(entry, Enrolment) for entry in self._entries)
        return Standing(
            status,
            since,
            waits,
            is_locked(self._layout.lock),
            len(self.records),
            len({r.account for r in self.records}),
            len(self._stored.roster) + enrolled,
            proved,
        )

    def _proofs_to_come(self, proved: int, *, proves_all: bool) -> str:
        """What a window with a cosigned end waits for, if this number of its records have proofs."""
        records = len(self.records)
        if records == 0:
            return "nothing: it has no record"
        if proved == records:
            return f"nothing: {'its record is' if records == 1 else f'all {records:,} records are'} proved"
        left = records - proved
        remain = f"{proved:,} of {counted(records, 'record')} proved, {left:,} {'remains' if left == 1 else 'remain'}"
        if proves_all:
            return f"the run's proofs: {remain}"
        return (
            f"a verifier's challenge (`rag-audit provider prove --challenge NOTE`): {remain}; `rag-audit provider"
            " prove` proves them all"
        )


def number_proved(layout: Layout, records: Sequence[QueryRecord], policy: Policy) -> int:
    """The number of records whose statements all have proofs: a record has one file of proofs from its answer, or a
    file for each statement of its tenant's policy."""
    names = {path.stem for path in layout.proofs.glob("*.json")}
    statements = {t.tenant: [name for name in STATEMENTS if name in t.circuits] for t in policy.tenants}
    return sum(
        all(f"{r.seq}-{name}" in names for name in statements[r.tenant])
        if r.proof is None
        else r.proof in names
        for r in records
    )


def written_at(path: Path) -> int:
    """The time at which a file was written last, in milliseconds since the epoch; 0 if there is no such file."""
    try:
        return path.stat().st_mtime_ns // 1_000_000
    except OSError:
        return 0
