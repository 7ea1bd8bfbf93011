"""A provider's window: open, query, close, prove. The four phases' state and order live here, their rules elsewhere.

The ledger is the state: what is durable in it has happened, what is not has not. Opening a directory again
continues where the ledger ends.
"""

from __future__ import annotations

import concurrent.futures
import os
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import takewhile
from pathlib import Path
from types import TracebackType
from typing import Any, Self, cast

from rag_audit.attest import answering as attest
from rag_audit.attest.answering import Retained
from rag_audit.attest.certificates import CertificateStore
from rag_audit.attest.release import Release
from rag_audit.beacon.drand import QUICKNET, DrandChain
from rag_audit.beacon.values import Reveal, drand_beacon, members_of, witness_beacon
from rag_audit.commit.commitment import Commitment, WindowSecrets, check_inputs, commit
from rag_audit.commit.stored import (
    OpenProgress,
    commit_tenants,
    fix_keys,
    forget_unfinished,
    load_commitment,
    lock_folder,
    store_commitment,
    unfinished,
)
from rag_audit.encoding.canonical import MAX_SAFE_INTEGER, Json, digest_hex, jcs, parse_json, read_json
from rag_audit.encoding.durable import PRIVATE_MODE, replace_file
from rag_audit.errors import (
    PolicyError,
    RagAuditError,
    RequestRefused,
    SchemaError,
    StoreError,
    WindowStateError,
)
from rag_audit.estimate import Estimate, coalition_statement, coalition_witness, estimate_window
from rag_audit.formats.challenge import Challenge
from rag_audit.formats.constants import STATEMENTS
from rag_audit.formats.opening import check_roster
from rag_audit.formats.policy import Policy
from rag_audit.formats.publication import PUBLICATION, Publication
from rag_audit.formats.receipts import make_receipt
from rag_audit.formats.records import (
    MAX_CHECKPOINT_BYTES,
    Answer,
    AnsweredDocument,
    BeaconEntry,
    BeaconSource,
    Closing,
    CoalitionEstimate,
    DrandBeacon,
    Enrolment,
    Entry,
    Opening,
    PreviousWindow,
    QueryRecord,
    Refusal,
    RequestSalts,
    RosterEntry,
    SignedRequest,
    WitnessBeacon,
    parse_entry,
)
from rag_audit.formats.statements import SlotKey, TenantPublic, record_public, slot_public, tenant_public
from rag_audit.formats.windowfile import MEDIA_TYPE, WindowFile
from rag_audit.index.embedders import Embedder, get_embedder
from rag_audit.index.engine import Int8Array, NoisePool
from rag_audit.ledger.checkpoint import Checkpoint, SignedCheckpoint, open_checkpoint
from rag_audit.ledger.merkle import leaf_hash
from rag_audit.ledger.note import Note, SigningKey, VerifierKey, merge_signatures, parse_note
from rag_audit.ledger.store import LedgerStore, SlotUsed
from rag_audit.ledger.tree import MerkleTree
from rag_audit.proofs.coalition import coalition_system
from rag_audit.proofs.executors import run_jobs
from rag_audit.proofs.interface import Job, ProofSystem, SharedProofs, proof_system
from rag_audit.proofs.policy import check_policy
from rag_audit.relation.field import to_hex

MAX_PROOF_BYTES = 1 << 20
MAX_CERTIFICATE_BYTES = 64 << 20
CERTIFICATE_FILE = "coalition.json"


def now_ms() -> int:
    """Milliseconds since the Unix epoch."""
    return time.time_ns() // 1_000_000


def _require_future(policy: Policy, now: int) -> None:
    if policy.opens_at <= now:
        raise PolicyError("a window must be committed before it opens", field="policy.opens_at",
                          expected=f"later than {now}", found=policy.opens_at,
                          hint="`open --opens-in` dates it once everything is committed")  # fmt: skip


class Window:
    """One audit window on the provider's side. Safe to use from several threads, by one process at a time.

    `low_memory` may be set at any time: proofs and noise certificates of scan tenants then take less memory and more
    time, and are the same. `release` is the schedule by which answers leave that are proved at once.
    """

    def __init__(
        self,
        directory: Path,
        key: SigningKey,
        commitment: Commitment,
        embedder: Embedder,
        store: LedgerStore,
        lock: int,
        clock: Callable[[], int],
        witnesses: Sequence[VerifierKey],
    ) -> None:
        self.directory = directory
        self.witnesses = tuple(witnesses)
        self.commitment = commitment
        self.opening_digest = digest_hex(commitment.opening.dump())
        self._key = key
        self._embedder = embedder
        self._store = store
        self._lock_file = lock
        self._clock = clock
        self.low_memory = False
        self.release = Release()
        self._entries: list[Entry] = []
        self._tree = MerkleTree()
        self._state = threading.Condition()
        self._closing = False
        self._close = threading.Lock()
        self._accounts: dict[str, RosterEntry] = {r.account: r for r in commitment.roster}
        self._enrolled_at: dict[str, int] = {}
        self._beacons: dict[int, bytes] = {}
        self._records: dict[tuple[str, int], QueryRecord] = {}
        self._next: defaultdict[str, int] = defaultdict(lambda: 1)
        self._in_flight: set[str] = set()
        self._last_ts = 0
        self._certificates = CertificateStore(
            directory / "certificates", commitment.secrets.retention_key, self.opening_digest
        )
        self._noise = NoisePool(self._draw, limit=commitment.policy.n)
        for raw in store.entries():
            self._apply(parse_entry(parse_json(raw, source="ledger"), field="ledger"))

    # -- opening ---------------------------------------------------------------------------------------------

    @classmethod
    def open(
        cls,
        directory: Path | str,
        *,
        key: SigningKey,
        origin: str,
        policy: Policy,
        roster: Sequence[RosterEntry],
        documents: Mapping[str, Sequence[str]],
        beacon: BeaconSource,
        witnesses: Sequence[VerifierKey] = (),
        embedder: Embedder | None = None,
        previous: PreviousWindow | None = None,
        opens_in: int | None = None,
        clock: Callable[[], int] = now_ms,
        progress: OpenProgress | None = None,
    ) -> Window:
        """Commit to everything and write ledger entry 0. Queries wait for the quorum and the beacon (`admit`).

        An interrupted call goes on where it stopped when it is repeated with the same documents, embedder, tenants and
        capacities; with others it starts over, with new secrets. Nothing is published before everything is committed.

        :param directory: a new or empty folder; private to the provider but for its `public` part
        :param witnesses: whose cosignatures are waited for; those that `beacon` names if empty
        :param opens_in: dates the window once everything is committed: it opens so many milliseconds after that, and
            the policy's dates move with it (`Policy.moved`); without it they stand
        :param progress: called with (step, done, total) while documents are embedded and indices committed
        :raises PolicyError: the policy is not well-formed, or roster or documents do not fit it
        :raises WindowStateError: the folder already holds a window
        """
        directory = Path(directory)
        embedder = embedder or get_embedder(
            query_tokens=policy.tokens.query, document_tokens=policy.tokens.document
        )
        if opens_in is None:
            _require_future(policy, clock())
        manifest = check_inputs(policy, roster, documents, embedder)
        if not witnesses and isinstance(beacon, WitnessBeacon):
            witnesses = [m.vkey for m in members_of(beacon)]
        if not witnesses:
            raise PolicyError("a window needs witnesses", field="witnesses")
        try:
            (directory / "public").mkdir(parents=True, exist_ok=True)
            (directory / "proofs").mkdir(exist_ok=True)
            (directory / "index").mkdir(exist_ok=True)
            directory.chmod(0o700)
        except OSError as exc:
            raise StoreError(
                "window folder cannot be made", field=str(directory), found=exc.strerror
            ) from exc
        lock = lock_folder(directory)
        try:
            if not unfinished(directory):
                raise WindowStateError(
                    "folder already holds a window", field=str(directory), hint="use Window.resume"
                )
            drawn, tenants = commit_tenants(directory, policy, manifest, documents, embedder, progress)
            if opens_in is not None:
                policy = policy.moved(clock() + opens_in)
                check_policy(policy, embedder.dimension)
            # Large indices take longer than their provider thought; witnesses would not sign what opens in the past.
            _require_future(policy, clock())
            made = commit(origin=origin, policy=policy, roster=roster, manifest=manifest, tenants=tenants,
                          drawn=drawn, beacon=beacon, previous=previous)  # fmt: skip
            store_commitment(directory, made, witnesses)
            store = LedgerStore(directory / "ledger.sqlite")
            window = cls(directory, key, made, embedder, store, lock, clock, witnesses)
        except BaseException:
            os.close(lock)
            raise
        try:
            window._append(made.opening)
            forget_unfinished(directory)
            window._publish()
        except BaseException:
            window.shut()
            raise
        return window

    @classmethod
    def resume(
        cls,
        directory: Path | str,
        *,
        key: SigningKey,
        embedder: Embedder | None = None,
        clock: Callable[[], int] = now_ms,
    ) -> Window:
        """Continue a window after a stop or a crash.

        :raises StoreError: state missing or altered; an index or text that is not the committed one
        :raises WindowStateError: another process has it open
        """
        directory = Path(directory)
        lock = lock_folder(directory)
        try:
            made, witnesses = load_commitment(directory, clock())
            part: Any = made.manifest["embedder"]
            embedder = embedder or get_embedder(
                part["kind"],
                query_tokens=made.policy.tokens.query,
                document_tokens=made.policy.tokens.document,
            )
            if embedder.manifest() != part:
                raise StoreError(
                    "another embedder than the committed one", field="embedder", expected=part["kind"]
                )
            window = cls(
                directory,
                key,
                made,
                embedder,
                LedgerStore(directory / "ledger.sqlite"),
                lock,
                clock,
                witnesses,
            )
        except BaseException:
            os.close(lock)
            raise
        try:
            window._check_ledger()
            forget_unfinished(directory)
            window._publish()
        except BaseException:
            window.shut()
            raise
        return window

    def _check_ledger(self) -> None:
        """The stored ledger starts with this opening, and holds everything that was published of it."""
        if not self._entries or self._entries[0] != self.opening:
            raise StoreError("ledger does not start with this window's opening", field=str(self.directory))
        for path in (self.directory / "public").glob("checkpoint-*.txt"):
            head = open_checkpoint(path.read_bytes(), origin=self.opening.log, log_key=self._key.verifier,
                                   field=path.name).checkpoint  # fmt: skip
            if head.size > self._tree.size or self._tree.root(head.size) != head.root:
                raise StoreError("ledger lost or changed entries that were published", field=path.name,
                                 expected=f"{head.size} entries", found=f"{self._tree.size}")  # fmt: skip

    def admit(self, notes: Iterable[str]) -> str:
        """Take cosigned checkpoints and beacon notes, in any order, as they arrive.

        Cosignatures are merged into the published checkpoint of their size. Once the window's witnesses have all
        cosigned the opening and revealed over it, the beacon becomes entry 1 and the window is active; likewise for
        an enrolment, whose reveals are over the checkpoint that ends with it.

        :returns: the window's `status`
        :raises RagAuditError: a note that is neither, or is badly signed; the others are kept
        """
        reveals: defaultdict[int, list[str]] = defaultdict(list)
        for text in notes:
            note = parse_note(text)
            if note.text.startswith("rag-audit/beacon/"):
                reveals[Reveal.parse(note.text).size].append(text)
                continue
            head = Checkpoint.parse(note.text)
            self._open_checkpoint(note)
            keys = (self._key.verifier, *self.witnesses)
            name = self._checkpoint_file(head.size)
            path = self.directory / "public" / name
            if not path.exists():
                raise WindowStateError(
                    "no such checkpoint was published", field="checkpoint", found=head.size
                )
            stored = parse_note(path.read_bytes())
            merged = merge_signatures([stored, note], keys, max_bytes=MAX_CHECKPOINT_BYTES)
            replace_file(path, str(merged).encode())
        for size, group in sorted(reveals.items()):
            self._admit_beacon(size - 1, size, group)
        if isinstance(self._entries[-1], Closing):
            self.export()
        return self.status

    def admit_drand(self, signatures: Sequence[str], *, chain: DrandChain = QUICKNET) -> str:
        """Take the drand round that the opening names.

        :param signatures: the round's signature in hexadecimal; for a chained scheme also the round before's
        :returns: the window's `status`
        :raises InvalidProof: not that round's, or due less than 60 s after the quorum
        """
        source = self._beacon_source(0)
        if not isinstance(source, DrandBeacon):
            raise WindowStateError("the opening names no drand round", field="beacon", found=source.source)
        if 0 not in self._beacons:
            signed = self._cosigned(1)
            quorum = len(self.witnesses)
            value, _ = drand_beacon(source, signatures, signed, chain=chain, quorum=quorum)
            self._append_beacon(0, "drand", value, list(signatures), str(signed.note))
        return self.status

    def _admit_beacon(self, of: int, size: int, notes: Sequence[str]) -> None:
        source = self._beacon_source(of)
        if of in self._beacons:
            return
        if isinstance(source, DrandBeacon):
            raise WindowStateError("the beacon is a drand round, not witnesses' nonces", field="beacon")
        signed = self._cosigned(size)
        named = [m.vkey for m in members_of(source)]
        value, _ = witness_beacon(
            source, notes, signed, trusted=named, quorum=len(self.witnesses), window=self.opening.window
        )
        self._append_beacon(of, "witnesses", value, list(notes), str(signed.note))

    def _append_beacon(self, of: int, source: str, value: bytes, notes: list[str], checkpoint: str) -> None:
        with self._state:
            if self._closing:
                # Too late to be used, and nothing may follow what the closing record is about.
                return
            self._append(
                lambda seq: BeaconEntry.parse(
                    {"type": "beacon", "v": 1, "seq": seq, "entry": of, "source": source, "value": value.hex(),
                     "notes": notes, "checkpoint": checkpoint},
                    field="beacon",
                )
            )  # fmt: skip

    def enrol(self, account: RosterEntry, beacon: BeaconSource) -> Enrolment:
        """Add an account while the window is open. Its slots wait for the beacon that the entry names.

        :raises PolicyError: unknown tenant, repeated id or key, or the tenant's cap reached
        """
        with self._state:
            self._require("active")
            if self._closing:
                raise WindowStateError("window is closed", field="window")
            check_roster([*self._accounts.values(), account], self.policy)
            entry = self._append(
                lambda seq: Enrolment(
                    type="enrolment",
                    v=1,
                    seq=seq,
                    ts=self._timestamp_inside(),
                    beacon=beacon,
                    **account.dump(),
                )
            )
            assert isinstance(entry, Enrolment)
            self._publish()
            # Witnesses read entries from here to see that the ledger only grew.
            self.export()
            return entry

    # -- queries ---------------------------------------------------------------------------------------------

    def query(self, request: SignedRequest, *, eager: bool = False) -> Answer:
        """Answer a signed request: embed, score, add noise, select, make the record durable, hand back.

        An answer that is proved first gets its record's time, and leaves, in a slot of `release`.

        :param eager: prove before answering, even where the policy lets proofs wait for a challenge
        :raises RequestRefused: with a reason from `records.REFUSALS`
        :raises StoreError: the record could not be made durable; nothing was answered and the slot is unused
        """
        arrived = self.release.now()
        account = self._accounts.get(request.account)
        attest.check_request(request, opening=self.opening, opening_digest=self.opening_digest, account=account,
                             policy=self.policy, embedder=self._embedder)  # fmt: skip
        with self._one_at_a_time(request.account):
            known = self._records.get((request.account, request.i))
            if known is not None:
                return self._again(request, known)
            self._check_turn(request)
            slot = SlotKey(request.tenant, request.account, request.i)
            tenant = self.commitment.tenants[request.tenant]
            selection = attest.select_positions(request, tenant=tenant, noise=self._noise.get(slot),
                                                policy=self.policy, embedder=self._embedder)  # fmt: skip
            documents = attest.document_openings(tenant, selection.positions, self._secrets)
            draft = attest.query_record(request, selection, documents, window=self.opening.window)
            at_once = eager or self.policy.proving == "eager"
            retained = Retained(request.query, request.salt, selection.positions)
            proof = self._prove_now(draft, retained) if at_once else None
            blob = attest.seal_retained(retained, self._secrets.retention_key, self._context(draft))
            if at_once:
                # Before the record gets its time, which its account and the window file show.
                self.release.hold(arrived, capacity=tenant.index.capacity,
                                  components=len(self.policy.noise.gains))  # fmt: skip
            record = self._append(
                lambda seq: draft.model_copy(
                    update={"seq": seq, "ts": self._timestamp_inside(), "proof": proof}
                ),
                slot=(request.account, request.i),
                private=blob,
            )
            assert isinstance(record, QueryRecord)
            if record.proof is not None:
                self._certificates.drop(slot)
            return self._answer(record, retained)

    def handle(self, value: Json, *, eager: bool = False) -> Answer | Refusal:
        """`query` for a service: a JSON request in, an answer or a signed refusal out."""
        account, i, hq = "", 0, ""
        try:
            if isinstance(value, dict):
                account, hq = str(value.get("account", ""))[:128], str(value.get("hq", ""))[:64]
                number = value.get("i")
                i = number if type(number) is int and 0 <= number <= MAX_SAFE_INTEGER else 0
            return self.query(SignedRequest.parse(value, field="request"), eager=eager)
        except RequestRefused as exc:
            reason, detail = exc.reason, exc.message
        except SchemaError as exc:
            reason, detail = "malformed", str(exc)
        except RagAuditError as exc:
            reason, detail = "unavailable", exc.message
        return self.refuse(reason, detail, account=account, i=i, hq=hq)

    def refuse(self, reason: str, detail: str, *, account: str = "", i: int = 0, hq: str = "") -> Refusal:
        """A signed refusal.

        :param reason: one of `records.REFUSALS`
        :param account: this, `i` and `hq` as the request has them, as far as it has
        """
        refusal = Refusal(type="refusal", v=1, origin=self.opening.origin, opening=self.opening_digest,
                          account=account, i=i, hq=hq, reason=reason, detail=detail, sig="0" * 128)  # fmt: skip
        return refusal.model_copy(update={"sig": self._key.sign(refusal.message()).hex()})

    def _check_turn(self, request: SignedRequest) -> None:
        """The order of an account's requests, and that its slots have a beacon."""
        if self._closing:
            raise RequestRefused("closed", "window is closed")
        beacon = self._beacons.get(self._enrolled_at.get(request.account, 0))
        now = self._clock()
        if beacon is None or now < self.opening.opens_at:
            raise RequestRefused(
                "not-open", "window is not open yet", expected=self.opening.opens_at, found=now
            )
        if now > self.opening.closes_at:
            raise RequestRefused("closed", "window has ended", expected=self.opening.closes_at, found=now)
        if request.i > self.policy.n:
            raise RequestRefused(
                "limit", "account has used its queries", field="request.i", expected=self.policy.n
            )
        if request.i != (following := self._next[request.account]):
            raise RequestRefused("out-of-order", "i is not the account's next", field="request.i",
                                 expected=following, found=request.i)  # fmt: skip

    def _again(self, request: SignedRequest, record: QueryRecord) -> Answer:
        """The identical request gets the identical answer; any other is refused without computation."""
        if (request.hq, request.sig) != (record.hq, record.sig):
            raise RequestRefused("slot-used", "another request is recorded under this i", field="request.i",
                                 expected=record.hq, found=request.hq)  # fmt: skip
        return self._answer(record, self._retained(record))

    def _answer(self, record: QueryRecord, retained: Retained) -> Answer:
        tenant = self.commitment.tenants[record.tenant]
        receipt = make_receipt(
            record,
            salt=bytes.fromhex(retained.salt),
            positions=retained.positions,
            documents=attest.document_openings(tenant, retained.positions, self._secrets),
            tree=self._tree,
            origin=self.opening.origin,
            opening_digest=self.opening_digest,
            key=self._key,
        )
        texts = attest.texts_of(tenant, retained.positions)
        documents = [AnsweredDocument(position=p, text=text) for p, text in texts]
        return Answer(type="answer", v=1, documents=documents, receipt=receipt)

    @contextmanager
    def _one_at_a_time(self, account: str) -> Iterator[None]:
        with self._state:
            if account in self._in_flight:
                raise RequestRefused("in-flight", "the account's last request is still being answered")
            self._in_flight.add(account)
        try:
            yield
        finally:
            with self._state:
                self._in_flight.discard(account)
                self._state.notify_all()

    # -- closing ---------------------------------------------------------------------------------------------

    def close(
        self,
        *,
        abandoned: bool = False,
        certify: bool = True,
        executor: concurrent.futures.Executor | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> str:
        """Write the closing record and sign the final checkpoint, which the witnesses then cosign.

        The coalition certificate that the policy asks for is made and stored first, so an interrupted call resumes
        with it.

        :param abandoned: the window never became usable; it is closed so that the chain can go on, and never passes
        :param certify: False closes without that certificate; no verifier decides for such a window
        :param executor: where the certificate's jobs run; in this process if None
        :param progress: called with (jobs done, jobs) of the certificate
        :returns: the final checkpoint note
        :raises WitnessError: the window has more records than the certificate takes
        """
        with self._close:
            with self._state:
                closed = self.status in ("closed", "final")
                if not closed:
                    if not abandoned:
                        self._require("active")
                    # No entry may follow the estimate: what is being answered is finished first.
                    self._closing = True
                    self._state.wait_for(lambda: not self._in_flight)
            if not closed:
                coalition = self._coalition(executor, progress, certify=certify)
                self._append(
                    lambda seq: Closing(
                        type="closing", v=1, seq=seq, ts=self._timestamp(), window=self.opening.window,
                        queries=len(self._records), enrolments=len(self._enrolled_at), coalition=coalition,
                        abandoned=abandoned,
                    )
                )  # fmt: skip
            size = len(self._entries)
            path = self.directory / "public" / self._checkpoint_file(size)
            if not path.exists():
                replace_file(path, self.checkpoint(size).encode())
            self.export()
            return path.read_text()

    def _coalition(
        self,
        executor: concurrent.futures.Executor | None,
        progress: Callable[[int, int], None] | None,
        *,
        certify: bool,
    ) -> CoalitionEstimate:
        """What the closing record says: the estimate, and the digest of its certificate, which is durable by then."""
        records, retained, vectors = self._asked()
        estimate = estimate_window(records, vectors, self.policy)
        replace_file(self.directory / "estimate.json", jcs(estimate.evidence()), mode=PRIVATE_MODE)
        declared, wanted = estimate.public(), self.policy.estimator.certificate
        if wanted is None or not certify or not records:
            return declared
        size = len(self._entries)
        statement = coalition_statement(
            records,
            declared,
            opening_digest=self.opening_digest,
            head=Checkpoint(self.opening.log, size, self._tree.root(size)),
            dimension=self._embedder.dimension,
            capacity=wanted.records,
        )
        path, ctx = self.directory / CERTIFICATE_FILE, to_hex(statement.ctx)
        kept: Any = read_json(path, max_bytes=MAX_CERTIFICATE_BYTES) if path.exists() else {}
        if kept.get("ctx") != ctx:
            salts = [RequestSalts.derive(bytes.fromhex(part.salt)).vector for part in retained]
            witness = coalition_witness(records, estimate, vectors, salts)
            system = coalition_system(wanted.system)
            certificate = system.certify(statement, witness, executor=executor, progress=progress)
            kept = {"ctx": ctx, "certificate": certificate}
            replace_file(path, jcs(kept))
        return declared.model_copy(update={"certificate": digest_hex(kept["certificate"])})

    def estimate(self) -> Estimate:
        """Coalitions among the queries so far. It names accounts: for the provider only (docs/estimator.md).

        :raises StoreError: a retained query cannot be opened
        """
        records, _, vectors = self._asked()
        return estimate_window(records, vectors, self.policy)

    def _asked(self) -> tuple[list[QueryRecord], list[Retained], list[Int8Array]]:
        """The records so far, with what was retained of each and its vector."""
        records = self.records
        retained = [self._retained(record) for record in records]
        return records, retained, [self._embedder.embed_query(part.query) for part in retained]

    def shut(self) -> None:
        """Release threads, files and the folder's lock. Shutting twice does nothing."""
        if self._lock_file >= 0:
            self._noise.close()
            self._store.close()
            os.close(self._lock_file)
            self._lock_file = -1

    # -- proving ---------------------------------------------------------------------------------------------

    def prove(
        self,
        seqs: Sequence[int] | None = None,
        *,
        together: int | None = None,
        executor: concurrent.futures.Executor | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> int:
        """Make the missing proofs of the named records (all by default) and add them to the window file.

        Each finished proof is stored before the next is counted, so an interrupted call resumes where it stopped.

        :param together: prove up to so many records of a tenant at once, where its system can; a record that is left
            over is proved by itself
        :param executor: where the jobs run; in this process, one after another, if None
        :param progress: called with (done, total), before the first proof too
        :returns: how many proofs were made now; one of several records counts for each
        :raises PolicyError: no circuit proves so many records together
        """
        named = None if seqs is None else set(seqs)
        wanted = [r for r in self._records.values() if named is None or r.seq in named]
        unknown = (named or set()) - {r.seq for r in wanted}
        if unknown:
            raise WindowStateError("not a query record", field="challenge", found=sorted(unknown)[:5])
        lost = next((r for r in wanted if r.proof is not None and not self._proof_path(r).exists()), None)
        if lost is not None:
            raise StoreError("the proof that a record names is lost, and another would not be it",
                             field=f"record {lost.seq}", expected=str(self._proof_path(lost)))  # fmt: skip
        every = [(r, name) for r in wanted for name in self._statements(r.tenant)]
        missing = [(r, name) for r, name in every if not self._proof_path(r, name).exists()]
        groups = {
            f"{name} of record {', '.join(str(r.seq) for r in records)}": (records, name)
            for records, name in self._grouped(missing, together)
        }
        done = len(every) - len(missing)
        if progress is not None:
            progress(done, len(every))
        jobs = ((label, self._group_job(*group, together)) for label, group in groups.items())
        for label, proof in run_jobs(jobs, executor):
            records, name = groups[label]
            for record in records:
                replace_file(self._proof_path(record, name), jcs(proof))
            done += len(records)
            if progress is not None:
                progress(done, len(every))
        for record in wanted:  # what a certificate was kept for is done
            self._certificates.drop(SlotKey(record.tenant, record.account, record.i))
        self.export()
        return len(missing)

    def _grouped(
        self, missing: Iterable[tuple[QueryRecord, str]], together: int | None
    ) -> Iterator[tuple[list[QueryRecord], str]]:
        """What is proved by one job each."""
        sharing: defaultdict[tuple[str, str], list[QueryRecord]] = defaultdict(list)
        for record, name in missing:
            if self._shared(record.tenant, name, together) is None:
                yield [record], name
            else:
                sharing[record.tenant, name].append(record)
        for (_, name), records in sharing.items():
            step = together or 1
            for start in range(0, len(records), step):
                yield records[start : start + step], name

    def _group_job(self, records: Sequence[QueryRecord], name: str, together: int | None) -> Job:
        jobs = {f"record {record.seq}": self._job(record, name) for record in records}
        shared = self._shared(records[0].tenant, name, together) if len(jobs) > 1 else None
        job = next(iter(jobs.values())) if shared is None else shared.job(jobs)
        return self._keyed(records[0].tenant, job)

    def _keyed(self, tenant: str, job: Job) -> Job:
        """The job under the verification key that this window publishes."""
        named, keys = self._system(tenant).keyed(job)
        with self._state:
            fix_keys(self.directory, keys)
        return cast("Job", named)

    def _shared(self, tenant: str, name: str, places: int | None) -> SharedProofs | None:
        if places is None:
            return None
        return self._system(tenant).shared(name, self._public(tenant).constants, places)

    def answer_challenge(self, note: str, **options: Any) -> int:
        """Publish a verifier's challenge and prove the records it names.

        :raises SchemaError: the challenge is over another ledger
        """
        challenge = Challenge.parse(parse_note(note).text, field="challenge")
        size = len(self._entries)
        named = (challenge.origin, challenge.window, challenge.size, challenge.root)
        mine = (self.opening.origin, self.opening.window, size, self._tree.root(size))
        if self.status not in ("closed", "final") or named != mine:
            raise SchemaError("challenge over another ledger", field="challenge", expected=mine, found=named)
        folder = self.directory / "public" / "challenges"
        folder.mkdir(exist_ok=True)
        replace_file(folder / f"{digest_hex(note)}.txt", note.encode())
        return self.prove(challenge.positions(sorted(r.seq for r in self._records.values())), **options)

    def certify_ahead(
        self,
        count: int,
        *,
        executor: concurrent.futures.Executor | None = None,
        progress: Callable[[int, int], None] | None = None,
        until: Callable[[], bool] = lambda: False,
    ) -> int:
        """Make the noise certificates of every account's next `count` slots, where its tenant's system has them.

        Each is stored before the next is counted; one that is there already is kept. Accounts whose beacon is still to
        be drawn are left out.

        :param executor: as `prove`
        :param progress: called with (done, total)
        :param until: looked up before each certificate; ends the work where it gives true
        :returns: how many certificates were made now
        """
        with self._state:
            self._require("active")
            firsts = {name: self._next.get(name, 1) for name in self._accounts}
        slots = [
            SlotKey(self._accounts[name].tenant, name, first + step)
            for step in range(count)
            for name, first in sorted(firsts.items())
            if first + step <= self.policy.n and self._enrolled_at.get(name, 0) in self._beacons
        ]
        jobs = {slot: job for slot in slots if (job := self._certificate_job(slot)) is not None}
        missing = [(slot, job) for slot, job in jobs.items() if self._certificates.get(slot) is None]
        done = len(jobs) - len(missing)
        if progress is not None:
            progress(done, len(jobs))
        made = 0
        for slot, certificate in run_jobs(takewhile(lambda _: not until(), missing), executor):
            self._certificates.put(slot, certificate)
            made += 1
            if progress is not None:
                progress(done + made, len(jobs))
        return made

    def _certificate_job(self, slot: SlotKey) -> Job | None:
        beacon = self._beacons[self._enrolled_at.get(slot.account, 0)]
        public = slot_public(slot, self._public(slot.tenant), opening=self.opening, beacon=beacon)
        s0, s1 = self._secrets.s0, self._secrets.s1
        return self._system(slot.tenant).certificate_job(public, s0, s1, low_memory=self.low_memory)

    def _job(self, record: QueryRecord, name: str, retained: Retained | None = None) -> Job:
        """The job that proves one statement about a record, or about a draft whose query is not stored yet."""
        tenant = self.commitment.tenants[record.tenant]
        beacon = self._beacons[self._enrolled_at.get(record.account, 0)]
        public = record_public(record, self._public(record.tenant), opening=self.opening, beacon=beacon)
        slot = SlotKey(record.tenant, record.account, record.i)
        private = attest.record_private(
            retained or self._retained(record),
            tenant=tenant,
            drawn=self._secrets,
            embedder=self._embedder,
            noise=lambda: self._draw(slot),
            certificate=lambda: self._certificates.get(slot),
            low_memory=self.low_memory,
        )
        return self._system(record.tenant).record_job(name, public, private)

    def _prove_now(self, draft: QueryRecord, retained: Retained) -> str:
        jobs = {name: self._job(draft, name, retained) for name in self._statements(draft.tenant)}
        proofs = {name: self._keyed(draft.tenant, job).run() for name, job in jobs.items()}
        digest = digest_hex(proofs)
        replace_file(self.directory / "proofs" / f"{digest}.json", jcs(proofs))
        return digest

    def _system(self, tenant: str) -> ProofSystem:
        part = self.policy.tenant(tenant)
        assert part is not None
        return proof_system(part.system)

    def _statements(self, tenant: str) -> list[str]:
        """What is proved of a tenant's records."""
        part = self.policy.tenant(tenant)
        assert part is not None
        return [name for name in STATEMENTS if name in part.circuits]

    def _public(self, tenant: str) -> TenantPublic:
        made = self.commitment.tenants[tenant]
        return tenant_public(made.entry, policy=self.policy, manifest=self.commitment.manifest,
                                    opening_digest=self.opening_digest, points=made.points,
                                    table=self._embedder.table)  # fmt: skip

    # -- publishing ------------------------------------------------------------------------------------------

    def export(self, path: Path | None = None) -> Path:
        """Write window.json as it stands (to public/ by default): entries, checkpoints, proofs, keys."""
        public = self.directory / "public"
        proofs: dict[str, Json] = {}
        keys: dict[str, Json] = {}
        for record in self.records:
            made = self._proofs(record)
            if made:
                proofs[str(record.seq)] = made
        kinds = {
            (r.tenant, name, self._system(r.tenant).places(name, proof))
            for r in self.records
            for name, proof in proofs.get(str(r.seq), {}).items()
        }
        for tenant, name, places in sorted(kinds):
            shared = self._shared(tenant, name, None if places == 1 else places)
            keys |= (
                self._system(tenant).published_keys(name, self._public(tenant))
                if shared is None
                else shared.published_keys()
            )
        certificate = self._certificate()
        if certificate is not None and (wanted := self.policy.estimator.certificate) is not None:
            p, q = self.policy.estimator.theta
            keys |= coalition_system(wanted.system).published_keys(
                records=wanted.records, dimension=self._embedder.dimension, theta=(p, q)
            )
        by_setup = {c: k for c, k in keys.items() if isinstance(k, dict) and k.get("circuit") == c}
        fix_keys(self.directory, {c: digest_hex(k) for c, k in by_setup.items()})
        challenges = sorted(p.read_text() for p in (public / "challenges").glob("*.txt"))
        file = WindowFile(
            mediaType=MEDIA_TYPE,
            entries=[e.dump() for e in self._entries],
            opening_checkpoint=(public / self._checkpoint_file(1)).read_text(),
            final_checkpoint=self._final_checkpoint(),
            policy=self.policy.dump(),
            embedder=self.commitment.manifest,
            roster=[r.dump() for r in self.commitment.roster],
            tenants=[t.entry.dump() for t in self.commitment.tenants.values()],
            verification_keys=keys,
            proofs=proofs,
            challenges=challenges,
            certificate=certificate,
        )
        path = path or public / "window.json"
        file.save(path)
        return path

    def _certificate(self) -> Json:
        """The certificate that the closing record names, or None."""
        last = self._entries[-1]
        named = last.coalition.certificate if isinstance(last, Closing) and last.coalition else None
        if named is None:
            return None
        path = self.directory / CERTIFICATE_FILE
        kept: Any = read_json(path, max_bytes=MAX_CERTIFICATE_BYTES)
        if digest_hex(kept["certificate"]) != named:
            raise StoreError(
                "not the certificate that the closing record names", field=path.name, expected=named
            )
        return kept["certificate"]

    def checkpoint(self, size: int | None = None) -> str:
        """The signed checkpoint note of the ledger's first `size` entries (all by default)."""
        count = self._tree.size if size is None else size
        return str(Checkpoint(self.opening.log, count, self._tree.root(count)).sign(self._key))

    def _publish(self) -> None:
        """What accounts and witnesses need; whatever of it a crash kept from being written."""
        public = self.directory / "public"
        publication = Publication(
            mediaType=PUBLICATION,
            opening=self.opening.dump(),
            policy=self.policy.dump(),
            embedder=self.commitment.manifest,
            roster=[r.dump() for r in self.commitment.roster],
            tenants=[t.entry.dump() for t in self.commitment.tenants.values()],
        )
        sizes = {1, *(seq + 1 for seq in self._enrolled_at.values())}
        if isinstance(self._entries[-1], Closing):
            sizes.add(len(self._entries))
        for size in sizes:
            path = public / self._checkpoint_file(size)
            if not path.exists():
                replace_file(path, self.checkpoint(size).encode())
        if not (public / "opening.json").exists():
            replace_file(public / "opening.json", publication.canonical())

    def _final_checkpoint(self) -> str:
        path = self.directory / "public" / self._checkpoint_file(len(self._entries))
        return path.read_text() if path.exists() else self.checkpoint()

    @staticmethod
    def _checkpoint_file(size: int) -> str:
        return f"checkpoint-{size}.txt"

    # -- state -----------------------------------------------------------------------------------------------

    @property
    def opening(self) -> Opening:
        """Entry 0."""
        return self.commitment.opening

    @property
    def policy(self) -> Policy:
        """What the window promises."""
        return self.commitment.policy

    @property
    def status(self) -> str:
        """``committed`` (waits for quorum and beacon), ``active``, ``closed`` (waits for cosignatures) or ``final``."""
        if isinstance(self._entries[-1], Closing):
            return "final" if self._fully_cosigned(len(self._entries)) else "closed"
        return "active" if 0 in self._beacons else "committed"

    @property
    def records(self) -> list[QueryRecord]:
        """The query records, in ledger order."""
        return sorted(self._records.values(), key=lambda r: r.seq)

    @property
    def noise_counts(self) -> Any:
        """How many slots were drawn ahead of their query, and how many were not."""
        return self._noise.counts

    @property
    def _secrets(self) -> WindowSecrets:
        return self.commitment.secrets

    def _draw(self, slot: SlotKey) -> Any:
        beacon = self._beacons.get(self._enrolled_at.get(slot.account, 0))
        if beacon is None:
            raise WindowStateError("no beacon for this account yet", field=slot.account)
        capacity = self.commitment.tenants[slot.tenant].index.capacity
        return attest.slot_noise(
            self._secrets, self.opening.window, slot, beacon, capacity, self.policy.noise.gains
        )

    def _append(
        self,
        entry: Entry | Callable[[int], Entry],
        *,
        slot: tuple[str, int] | None = None,
        private: bytes | None = None,
    ) -> Entry:
        """Append durably, then apply. What `entry` gives is the record only once the store says so."""
        made: list[Entry] = []

        def build(seq: int) -> bytes:
            value = entry(seq) if callable(entry) else entry
            made.append(value)
            return value.canonical()

        try:
            self._store.append(build, slot=slot, private=private).result()
        except SlotUsed as exc:
            raise RequestRefused("slot-used", exc.message, field="request.i") from exc
        with self._state:
            return self._apply(made[-1])

    def _apply(self, entry: Entry) -> Entry:
        """Bring the memory up to a durable entry."""
        # Group commit may acknowledge in any order: entries are applied in the ledger's.
        index = 0 if isinstance(entry, Opening) else entry.seq
        if index < len(self._entries):
            return entry
        while index > len(self._entries):
            position = len(self._entries)
            self._apply(parse_entry(parse_json(self._store.entry(position), source="ledger"), field="ledger"))
        self._entries.append(entry)
        self._tree.append(leaf_hash(entry.canonical()))
        if isinstance(entry, BeaconEntry):
            self._beacons[entry.entry] = bytes.fromhex(entry.value)
        elif isinstance(entry, Enrolment):
            self._accounts[entry.account] = entry.roster_entry()
            self._enrolled_at[entry.account] = entry.seq
        elif isinstance(entry, Closing):
            self._closing = True
        elif isinstance(entry, QueryRecord):
            self._records[(entry.account, entry.i)] = entry
            self._next[entry.account] = entry.i + 1
        if isinstance(entry, Enrolment | QueryRecord):
            self._last_ts = max(self._last_ts, entry.ts)
        return entry

    def _timestamp(self) -> int:
        """Now, never before the last entry: called in ledger order by the store."""
        self._last_ts = max(self._clock(), self._last_ts)
        return self._last_ts

    def _timestamp_inside(self) -> int:
        """`_timestamp`, refused outside the window."""
        now = self._timestamp()
        if now < self.opening.opens_at:
            raise RequestRefused(
                "not-open", "window is not open yet", expected=self.opening.opens_at, found=now
            )
        if now > self.opening.closes_at:
            raise RequestRefused("closed", "window has ended", expected=self.opening.closes_at, found=now)
        return now

    def _require(self, status: str) -> None:
        if self.status != status:
            raise WindowStateError(
                "window is in another state", field="window", expected=status, found=self.status
            )

    def _beacon_source(self, of: int) -> BeaconSource:
        entry = self._entries[of] if 0 <= of < len(self._entries) else None
        if not isinstance(entry, Opening | Enrolment):
            raise WindowStateError("no opening or enrolment there that names a beacon", field=f"entry {of}")
        return entry.beacon

    def _cosigned(self, size: int) -> SignedCheckpoint:
        path = self.directory / "public" / self._checkpoint_file(size)
        return self._open_checkpoint(path.read_bytes())

    def _open_checkpoint(self, note: Note | bytes) -> SignedCheckpoint:
        return open_checkpoint(
            note, origin=self.opening.log, log_key=self._key.verifier, witnesses=self.witnesses
        )

    def _fully_cosigned(self, size: int) -> bool:
        path = self.directory / "public" / self._checkpoint_file(size)
        return path.exists() and len(self._cosigned(size).cosignatures) == len(self.witnesses)

    def _proof_path(self, record: QueryRecord, name: str = "") -> Path:
        """One file with all of a record's proofs if they were made at once, else one for each statement."""
        return self.directory / "proofs" / f"{record.proof or f'{record.seq}-{name}'}.json"

    def _proofs(self, record: QueryRecord) -> dict[str, Json]:
        """The record's proofs that exist, by statement."""
        if record.proof is not None:
            path = self._proof_path(record)
            return read_json(path, max_bytes=MAX_PROOF_BYTES) if path.exists() else {}
        paths = {name: self._proof_path(record, name) for name in self._statements(record.tenant)}
        return {n: read_json(p, max_bytes=MAX_PROOF_BYTES) for n, p in paths.items() if p.exists()}

    def _retained(self, record: QueryRecord) -> Retained:
        blob = self._store.private(record.seq)
        if blob is None:
            raise StoreError("nothing retained for this record", field=f"record {record.seq}")
        return attest.unseal_retained(blob, self._secrets.retention_key, self._context(record))

    def _context(self, record: QueryRecord) -> bytes:
        return attest.retained_context(self.opening_digest, record.account, record.i)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.shut()
