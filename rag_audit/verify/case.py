"""The case that checks work on: the parts of a window that they read, and the outcomes that they record."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import Literal, NotRequired, Protocol, TypeAlias, TypedDict

from rag_audit._internal.canonical import Json
from rag_audit._internal.errors import ExecutorError, ExitCode, MemoryLimitError, RagAuditError, StoreError
from rag_audit.log.checkpoint import Checkpoint, SignedCheckpoint
from rag_audit.log.merkle import HashTree
from rag_audit.mechanisms.accounting.bounds import BoundSetJson
from rag_audit.mechanisms.accounting.figures import DocumentTableFigures, TenantFigures
from rag_audit.mechanisms.accounting.tradeoff import MembershipJson
from rag_audit.models.challenge import Challenge
from rag_audit.models.manifest import EmbedderManifest, Manifest
from rag_audit.models.policy import Policy
from rag_audit.models.records import (
    BeaconEntry,
    ColumnEntry,
    CountersignedReceipt,
    Enrolment,
    Entry,
    QueryRecord,
    RosterEntry,
    TenantEntry,
    WindowHeader,
    WindowTrailer,
)
from rag_audit.models.trust import Trust
from rag_audit.models.windowfile import WindowFile
from rag_audit.proofs.checking import Checking
from rag_audit.proofs.statements.retrieve import RecordPublic
from rag_audit.verify.standing import Kind, kind_of

SAYS_NOTHING = (ExecutorError, MemoryLimitError, StoreError)
"""Errors of the verifier's own machine."""


class Status(StrEnum):
    """The outcome of one check."""

    PASS = "pass"
    FAIL = "fail"
    """the check is proven false"""
    UNDECIDED = "undecided"
    """the input is malformed or missing, so the check is neither true nor false"""
    UNPROVEN = "unproven"
    """no check proved the window false, but facts behind the figures are not established as trust.toml demands"""
    UNMET = "unmet"
    """the finding is true, but less than trust.toml requires"""

    @property
    def exit_code(self) -> ExitCode:
        """The exit code of a verdict with only this outcome."""
        return {
            Status.PASS: ExitCode.PASS,
            Status.FAIL: ExitCode.FAIL,
            Status.UNDECIDED: ExitCode.MALFORMED,
            Status.UNPROVEN: ExitCode.UNMET,
            Status.UNMET: ExitCode.UNMET,
        }[self]


def shortfall(check: str) -> Status:
    """The outcome of an unmet check if no check proved the window false (`standing.RULES`).

    >>> shortfall("trust.max_epsilon").value, shortfall("header.quorum").value
    ('unmet', 'unproven')
    """
    return Status.UNMET if kind_of(check) is Kind.LIMIT else Status.UNPROVEN


def worst(statuses: Collection[Status]) -> Status:
    """The status that decides a verdict with checks of these.

    >>> worst({Status.PASS, Status.UNMET, Status.FAIL}).value
    'fail'
    """
    order = (Status.FAIL, Status.UNDECIDED, Status.UNPROVEN, Status.UNMET)
    return next((status for status in order if status in statuses), Status.PASS)


class CheckJson(TypedDict):
    """A check in the form of a verdict's JSON."""

    id: str
    outcome: str
    expected: str
    actual: str
    at: NotRequired[str]


@dataclass(frozen=True)
class Check:
    """One check with its outcome, a line of the report."""

    id: str
    status: Status
    expected: str
    actual: str
    at: str | None = None
    """the entry, proof or receipt that decided the check, if there is one"""

    def as_json(self) -> CheckJson:
        """The check as a JSON value, for programs."""
        value: CheckJson = {
            "id": self.id,
            "outcome": self.status.value,
            "expected": self.expected,
            "actual": self.actual,
        }
        if self.at is not None:
            value["at"] = self.at
        return value


@dataclass(frozen=True)
class ReceiptFile:
    """A supplied receipt, with its name in the report."""

    name: str
    receipt: CountersignedReceipt


class Reembedded(Protocol):
    """A disclosed question with the commitments that its account's salt and the embedder give for it."""

    @property
    def hq(self) -> str:
        """The commitment to the question, 64 hexadecimal digits.

        :raises RagAuditError: the question has none
        """

    @property
    def cq(self) -> str:
        """The commitment to its vector, 64 hexadecimal digits."""


Reembed: TypeAlias = Callable[[str, bytes], Reembedded]
"""Re-embeds a question from its text and its account's salt."""
Reembedding: TypeAlias = Callable[[EmbedderManifest], Reembed]
"""Gives the embedder of a manifest, or raises `SetupError` with the reason why this machine has none."""


@dataclass(frozen=True)
class NamedChallenge:
    """A challenge that the verifier supplies and that replaces the provider's published challenge.

    :param name: the name of its file
    """

    name: str
    challenge: Challenge


def refusal(error: RagAuditError) -> str:
    """The reason for a refusal, for a check's `actual`: the error's message, with the actual value in brackets.

    >>> refusal(RagAuditError("a tile is missing", actual="no such file"))
    'a tile is missing (no such file)'
    """
    result = error.texts()[1]
    return error.message if result is None else f"{error.message} ({result})"


class DocumentFigures(DocumentTableFigures):
    """The document table of one tenant, with its place in the chain.

    :param continues: the window with the table that this one continues; None for the first table of a chain
    :param first: the window with the first table of the chain, if this run checked all windows back to it
    """

    continues: str | None
    first: str | None


class Figures(TypedDict, total=False):
    """The figures of a verdict, each present once a check could compute it; reals are decimal strings.

    :param proofs: the proof systems of the records, joined by "+"
    :param proved: records with only valid proofs
    :param query_embedding: how A1 is established: declared, re-executed(i/n), proved(unpinned), proved
    :param document_embedding: the same for the documents' vectors
    :param coalition: whether the estimate was checked: not-checked, checked
    :param c: maximum number of accounts in a cluster; `c_tenant` is the maximum within one tenant
    :param abandoned: abandoned windows since the last complete one
    :param empty: windows that ended without a query since the last complete one
    :param accounts: accounts of the window, enrolled ones included
    :param accounts_holding_their_keys: number of these accounts with keys of their own
    :param counts: queries of each account
    :param receipts: receipts of accounts named in trust.toml; `receipts_other` are receipts of other accounts
    :param sampled: records that a challenge drew
    :param challenge: the draw that counted: full, own, published
    :param setup: the kind of setup of the proofs' keys
    :param allowed: names of the exceptions that trust.toml or an option allowed
    :param scores: the score windows lo..hi, joined by "+"
    :param tenants: the protection of each tenant's documents
    :param exclusion_factor: the largest factor of the tenants with samples, for k_max accounts
    :param exclusion_factor_all_accounts: the largest factor for all accounts that a tenant may have
    :param positions_per_document: the positions of a document that both factors assume, and epsilon of noise with
        document tables
    :param by_chance: with pooled listing, the probability that the random flips list a given document
    :param documents: the document table of each tenant that has one
    :param listable: number of each tenant's positions that may have been listed
    :param exposed: number of each tenant's documents that accounts may have read
    """

    # set by the checks
    proofs: str
    proved: int
    query_embedding: str
    document_embedding: str
    coalition: str
    c: dict[str, int]
    abandoned: int
    empty: int
    enrolments: int
    enrolments_void_or_unused: int
    accounts: int
    accounts_holding_their_keys: int
    counts: dict[str, int]
    receipts: int
    receipts_other: int
    mode: str
    sampled: int
    challenge: Literal["full", "own", "published"]
    setup: str
    records: int
    # the accountant's figures (`accounting.figures.policy_figures`), and figures from the ledger's own counts
    bounds: BoundSetJson
    eps_audit: str
    eps_audit_by: str
    eps_one_account: str
    membership: MembershipJson
    eps_all_accounts: str
    accounts_max: int
    eps_realised: str
    tenants: dict[str, TenantFigures]
    exclusion_factor: str
    exclusion_factor_all_accounts: str
    positions_per_document: int
    documents: dict[str, DocumentFigures]
    listable: dict[str, int]
    exposed: dict[str, int]
    by_chance: dict[str, str]
    # the policy's and the verifier's own
    allowed: list[str]
    delta: str
    k_max: int
    n: int
    scores: str
    lattice: int
    dimension: int
    beta: str | None
    eta: str | None
    window: str
    origin: str


@dataclass(kw_only=True)
class Findings:
    """A policy under a trust file, with the outcomes of checks and the figures that they computed."""

    trust: Trust
    policy: Policy
    max_epsilon_asked: bool = False
    """whether an option limits the epsilon of the whole window"""
    checks: list[Check] = field(default_factory=list)
    figures: Figures = field(default_factory=Figures)
    """the printed figures other than checks: levels, counts, bounds"""

    def report(self, check: str, ok: bool, expected: object, actual: object, at: str | None = None) -> bool:
        """Record a check that either passes or is proven false."""
        return self.record(check, Status.PASS if ok else Status.FAIL, expected, actual, at)

    def require(self, check: str, ok: bool, expected: object, actual: object, at: str | None = None) -> bool:
        """Record whether a requirement of trust.toml is met; `standing.RULES` decides the consequence if it is not."""
        return self.record(check, Status.PASS if ok else shortfall(check), expected, actual, at)

    def record(
        self, check: str, status: Status, expected: object, actual: object, at: str | None = None
    ) -> bool:
        """Record a check with its status, and return whether it passed."""
        requested, actual = str(expected), str(actual)
        if status is not Status.PASS and requested == actual:
            actual = f"another value that is written alike: {actual}"
        self.checks.append(Check(check, status, requested, actual, at))
        return status is Status.PASS

    @contextmanager
    def guarding(self, check: str) -> Iterator[None]:
        """Turn a named error in the block into this check's outcome, so that one bad part does not hide others."""
        try:
            yield
        except SAYS_NOTHING:
            raise
        except RagAuditError as exc:
            status = Status.FAIL if exc.exit_code is ExitCode.FAIL else Status.UNDECIDED
            expected = exc.expected if exc.expected is not None else "well-formed"
            result = refusal(exc)
            self.record(check, status, expected, result, exc.field)


@dataclass
class Case(Findings):
    """One window under verification. The parsed parts are not trusted yet.

    Values that checks look up for every record are indexed here once: a window may have 10^5 records and accounts.
    """

    file: WindowFile
    manifest: Manifest
    """the file's embedder manifest; the types of its parts are checked"""
    receipts: Sequence[ReceiptFile]
    engine: str
    header: WindowHeader
    header_digest: str
    roster: Sequence[RosterEntry]
    tenants: Mapping[str, TenantEntry]
    entries: Sequence[Entry]
    tree: HashTree
    final: Checkpoint
    previous: Sequence[WindowFile | RagAuditError] = ()
    """the earlier windows supplied to the verifier, or the error of an unreadable one"""
    challenges: Sequence[NamedChallenge] = ()
    """the challenges that the verifier supplies"""
    unread: Sequence[str] = ()
    """a complaint for each supplied receipt file that is no receipt"""
    required: frozenset[int] | None = None
    """the records that must have proofs, by their seq; None until a check determines them, or if no draw counts"""
    setups: set[str] = field(default_factory=set)
    """the kinds of setup of the keys that verified proofs"""
    publics: dict[int, RecordPublic] = field(default_factory=dict)
    """the public values of each record by its seq, which cost a slot and a context each"""
    signed: dict[str, SignedCheckpoint] = field(default_factory=dict)
    """the checkpoints that the provider signed, by the check that opened each, for the report"""
    checking: Checking = field(default_factory=Checking)
    """how proofs are verified: the number of processes, and the cache of results"""
    drawn: dict[int, int] = field(default_factory=dict)
    """when the beacon that an entry names was drawn, in ms, by the entry's index, for the report"""
    unreadable: list[RagAuditError] = field(default_factory=list)
    """the errors of parts that cannot be read; unless the rest proves something false, one of them is the outcome"""
    lost: set[str] = field(default_factory=set)
    """the entries, by their seq, with proofs in an unreadable tile"""
    partial: bool = False
    """whether the entries end before the first unreadable one; then only checks run that cannot fail on the
    beginning of an honest ledger"""
    source: Path | None = None
    """the window's file or folder, for errors; None if the caller had read the window"""
    unpinned_model: Literal["model", "manifest"] | None = None
    """the part of an integer encoder that trust.toml does not pin: the model, so that no proof of A1 was read, or the
    manifest, which fixes the normalisation of its vectors"""
    tallies: dict[str, int] = field(default_factory=dict)
    """counts that checks made for the report"""
    table_gaps: dict[str, list[str]] = field(default_factory=dict)
    """for each tenant with a document table, what the supplied earlier windows leave unchecked"""
    table_windows: dict[str, int] = field(default_factory=dict)
    """for each tenant with a document table, the number of windows of its chain with a sample that this run checked"""

    @cached_property
    def queries(self) -> list[QueryRecord]:
        """The query records, in ledger order."""
        return [e for e in self.entries if isinstance(e, QueryRecord)]

    def proofs_of(self, seq: str) -> Json:
        """The file's proofs of an entry, or None. If their tile is unreadable, the method notes it and returns None."""
        try:
            return self.file.proofs.get(seq)
        except SAYS_NOTHING:
            raise
        except RagAuditError as exc:
            self.lost.add(seq)
            if exc not in self.unreadable:
                self.unreadable.append(exc)
            return None

    @property
    def trailer(self) -> WindowTrailer | None:
        """The window trailer, if the last entry is one."""
        last = self.entries[-1]
        return last if isinstance(last, WindowTrailer) else None

    @cached_property
    def _by_slot(self) -> dict[tuple[str, int], QueryRecord]:
        return {(q.account, q.i): q for q in reversed(self.queries)}

    def before(self, record: QueryRecord) -> QueryRecord | None:
        """The record whose set of documents a record starts from: with pooled listing the tenant's preceding record in
        the ledger, otherwise the account's record before this one, by their numbers."""
        if self.policy.tenant(record.tenant) is not None and self.policy.mechanism_of(record.tenant).pools:
            return self._preceding[record.seq]
        return self._by_slot.get((record.account, record.i - 1))

    @cached_property
    def _preceding(self) -> dict[int, QueryRecord | None]:
        """For each query record, by its seq, the record of the same tenant that precedes it in the ledger."""
        latest: dict[str, QueryRecord] = {}
        result: dict[int, QueryRecord | None] = {}
        for record in self.queries:
            result[record.seq] = latest.get(record.tenant)
            latest[record.tenant] = record
        return result

    @cached_property
    def columns(self) -> dict[tuple[str, str], ColumnEntry]:
        """The first entry of each tenant's column, by tenant and column."""
        return {(e.tenant, e.type): e for e in reversed(self.entries) if isinstance(e, ColumnEntry)}

    @cached_property
    def enrolments(self) -> list[Enrolment]:
        """The enrolments, in ledger order."""
        return [e for e in self.entries if isinstance(e, Enrolment)]

    @cached_property
    def everyone(self) -> list[RosterEntry]:
        """The roster line of each account, then of each that enrolled."""
        return [*self.roster, *(e.roster_entry() for e in self.enrolments)]

    @cached_property
    def _accounts(self) -> dict[str, RosterEntry]:
        return {r.account: r for r in self.everyone}

    @cached_property
    def _beacons(self) -> dict[int, BeaconEntry]:
        # The first entry counts: a provider could append a second one with a value of its own.
        return {e.entry: e for e in reversed(self.entries) if isinstance(e, BeaconEntry)}

    @cached_property
    def _sources(self) -> dict[str, int]:
        return {e.account: e.seq for e in reversed(self.enrolments)}

    @cached_property
    def _first_uses(self) -> dict[int, QueryRecord]:
        return {self.source_of(q.account): q for q in reversed(self.queries)}

    def accounts(self) -> Mapping[str, RosterEntry]:
        """Every account of the window by its id, enrolled ones included."""
        return self._accounts

    def beacons(self) -> Mapping[int, BeaconEntry]:
        """The beacon entries by the index of the entry that named them."""
        return self._beacons

    def source_of(self, account: str) -> int:
        """The index of the entry with the beacon of an account's slots: its enrolment, or the window header."""
        return self._sources.get(account, 0)

    def first_use(self, source: int) -> QueryRecord | None:
        """The first record with a slot that uses the beacon of entry `source`, or None."""
        return self._first_uses.get(source)

    def beacon_of(self, account: str) -> bytes | None:
        """The beacon value of an account's slots, from its enrolment or the window header; None if there is none."""
        beacon = self._beacons.get(self.source_of(account))
        return None if beacon is None else bytes.fromhex(beacon.value)


def first(items: Iterator[str]) -> str | None:
    """The first of lazily computed complaints, or None, since a report names one place and not a thousand.

    >>> first(f"record {seq}" for seq in (4, 7))
    'record 4'
    """
    return next(items, None)
