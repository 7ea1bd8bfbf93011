"""A provider's window: the allowed operations and their order. The other modules of this package implement them.

The ledger is the state: an event has happened if and only if its entry is durable there. Reopening a directory
continues at the end of the ledger.
"""

from __future__ import annotations

import concurrent.futures
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from rag_audit._internal.canonical import Json, digest_hex, jcs
from rag_audit._internal.clock import now_ms
from rag_audit._internal.closing import Shutting
from rag_audit._internal.durable import PRIVATE_MODE, replace_file
from rag_audit._internal.errors import WindowStateError
from rag_audit.attest.answers import Answers
from rag_audit.attest.columns import SampleStore
from rag_audit.attest.context import Context
from rag_audit.attest.names import NameProofs
from rag_audit.attest.noise_proofs import NoiseProofStore
from rag_audit.attest.proving import Prover
from rag_audit.attest.publishing import CoalitionProof, Publisher
from rag_audit.attest.query import Query
from rag_audit.attest.release import Release
from rag_audit.attest.state import LedgerState
from rag_audit.attest.waiting import waited_for
from rag_audit.commit.commitment import Commitment
from rag_audit.commit.preparing import (
    Inputs,
    Terms,
    begin,
    make_folder,
    read_back,
    require_future,
)
from rag_audit.commit.stored import OpenProgress, delete_unfinished, lock_folder
from rag_audit.estimate.clusters import Estimate, coalition_private, estimate_window
from rag_audit.estimate.statement import coalition_statement
from rag_audit.log.checkpoint import Checkpoint
from rag_audit.log.keys import VerifierKey
from rag_audit.log.place import open_ledger
from rag_audit.log.signing import SigningKey
from rag_audit.models.drand import QUICKNET, DrandChain
from rag_audit.models.layout import Layout
from rag_audit.models.passage import Passage
from rag_audit.models.policy import Policy
from rag_audit.models.records import (
    BeaconSource,
    CoalitionEstimate,
    Enrolment,
    QueryRecord,
    RosterEntry,
    WindowHeader,
    WindowTrailer,
)
from rag_audit.models.requests import Answer, Refusal, SignedRequest
from rag_audit.proofs.proving import backend
from rag_audit.relation.field import to_hex
from rag_audit.retrieval.embedders import Embedder
from rag_audit.retrieval.noise_pool import NoisePool
from rag_audit.retrieval.query import OpenedQuery


class Window(Shutting):
    """One audit window on the provider's side. Safe to use from several threads, by one process at a time."""

    def __init__(
        self,
        directory: Path,
        key: SigningKey,
        commitment: Commitment,
        embedder: Embedder,
        lock: int,
        clock: Callable[[], int],
        witnesses: Sequence[VerifierKey],
    ) -> None:
        layout = Layout(directory)
        self.directory = directory
        self._lock_file = lock
        self._close = threading.Lock()
        self.state = LedgerState(open_ledger(layout.ledger, layout.ledger_place), commitment, clock)
        self.context = Context(layout, key, commitment, embedder, tuple(witnesses), self.state)
        self.publisher = Publisher(self.context)
        self.noise_proofs = NoiseProofStore(
            layout.noise_proofs, commitment.secrets.retention_key, self.header_digest
        )
        self.samples = SampleStore(self.context, self.publisher)
        self.prover = Prover(self.context, self.publisher, self.noise_proofs, self.samples)
        self.noise_pool = NoisePool(self.context.drawn, limit=commitment.policy.n)
        self.answers = Answers(self.context, self.noise_pool, self.noise_proofs, self.prover, self.samples)
        self.name_proofs = NameProofs(self.context, self.answers)

    # -- properties and publications ------------------------------------------------------------------------------

    def export(self, path: Path | None = None) -> Path:
        """Write the current window.json (to public/ by default): entries, checkpoints, proofs, keys."""
        return self.publisher.export(path)

    def checkpoint(self, size: int | None = None) -> str:
        """The signed checkpoint note of the ledger's first `size` entries (all by default)."""
        return self.publisher.checkpoint(size)

    @property
    def header(self) -> WindowHeader:
        """The window header, entry 0 of the ledger."""
        return self.context.header

    @property
    def header_digest(self) -> str:
        """The digest of entry 0, which names the window."""
        return self.context.header_digest

    @property
    def commitment(self) -> Commitment:
        """The commitment: the documents that the window header commits to, with the secrets behind it."""
        return self.context.commitment

    @property
    def policy(self) -> Policy:
        """The window's policy."""
        return self.context.policy

    @property
    def witnesses(self) -> tuple[VerifierKey, ...]:
        """The witnesses that the window waits for."""
        return self.context.witnesses

    @property
    def status(self) -> str:
        """``committed`` (waits for quorum and beacon), ``active``, ``closed`` (waits for cosignatures) or ``final``."""
        if self.state.ended:
            return "final" if self.publisher.fully_cosigned(len(self.state.entries)) else "closed"
        return "active" if 0 in self.state.beacons else "committed"

    @property
    def records(self) -> list[QueryRecord]:
        """The query records, in ledger order."""
        return self.state.records

    @property
    def low_memory(self) -> bool:
        """Whether scan tenants' proofs and noise proofs, which do not change, are made in less memory and more time.
        It may be set at any time."""
        return self.prover.low_memory

    @low_memory.setter
    def low_memory(self, value: bool) -> None:
        self.prover.low_memory = value

    # -- opening ---------------------------------------------------------------------------------------------

    @classmethod
    def open(
        cls,
        directory: Path | str,
        *,
        key: SigningKey,
        policy: Policy,
        roster: Sequence[RosterEntry],
        documents: Mapping[str, Sequence[str | Passage]],
        terms: Terms,
        embedder: Embedder | None = None,
        clock: Callable[[], int] = now_ms,
        progress: OpenProgress | None = None,
    ) -> Window:
        """Commit to all inputs and write ledger entry 0. Queries wait for the quorum and the beacon (`admit`).

        If an interrupted call is repeated with the same documents, embedder, tenants and capacities, it resumes at the
        interruption; with others it starts over with new secrets. The call publishes no data before all commitments are
        made.

        :param directory: a new or empty folder, which is private to the provider except for its `public` part
        :param documents: each tenant's documents, a text or a `Passage` with metadata each
        :param terms: the contents of the window header that are not commitments
        :param progress: called with (step, done, total) while documents are embedded and indices committed
        :raises PolicyError: the policy is not well-formed, or roster or documents do not fit it
        :raises WindowStateError: the folder already contains a window
        """
        directory = Path(directory)
        if terms.opens_in is None:
            require_future(policy, clock())
        inputs = Inputs.of(policy, roster, documents, embedder, terms.continuing)
        witnesses = terms.waited_for
        make_folder(directory)
        lock = lock_folder(directory)
        try:
            result = begin(directory, inputs, terms, clock=clock, progress=progress)
            window = cls(directory, key, result, inputs.embedder, lock, clock, witnesses)
        except BaseException:
            os.close(lock)
            raise
        with window._shut_unless_done():
            window.state.append(result.header)
            delete_unfinished(directory)
            window.publisher.publish()
        return window

    @classmethod
    def resume(
        cls,
        directory: Path | str,
        *,
        key: SigningKey,
        embedder: Embedder | None = None,
        model: Path | None = None,
        clock: Callable[[], int] = now_ms,
    ) -> Window:
        """Continue a window after a stop or a crash.

        :param model: the folder of the committed embedder's files, if it has any and is not given itself
        :raises StoreError: the state is missing or altered, or an index or text is not the committed one
        :raises WindowStateError: another process has the window open
        """
        directory = Path(directory)
        lock = lock_folder(directory)
        try:
            result, witnesses, embedder = read_back(directory, clock(), embedder, model)
            window = cls(directory, key, result, embedder, lock, clock, witnesses)
        except BaseException:
            os.close(lock)
            raise
        with window._shut_unless_done():
            window.publisher.check_ledger()
            delete_unfinished(directory)
            window.publisher.publish()
        return window

    def admit(self, notes: Iterable[str]) -> str:
        """Take cosigned checkpoints and beacon notes, in any order, as they arrive.

        The method merges cosignatures into the published checkpoint of their size. Once the window's witnesses have all
        cosigned the window header and revealed over it, the beacon becomes entry 1 and the window is active. The same
        holds for an enrolment, with reveals over the checkpoint that ends with it.

        The method then commits to the samples of tenants with sampling, which takes one proof for each.

        :returns: the window's `status`
        :raises RagAuditError: a note is neither, or a signature is wrong; the other notes are accepted
        """
        self.publisher.admit(notes)
        self._sample()
        if self.state.ended:
            self.export()
        return self.status

    def admit_drand(self, signatures: Sequence[str], *, chain: DrandChain = QUICKNET) -> str:
        """Take the drand round that the window header names.

        :param signatures: the round's signature in hexadecimal, and for a chained scheme also the previous round's
            signature
        :returns: the window's `status`
        :raises InvalidProof: the signature does not belong to that round, or the round was due less than 60 s after the
            quorum
        """
        self.publisher.admit_drand(signatures, chain)
        self._sample()
        return self.status

    @property
    def tables_complete(self) -> bool:
        """Whether the ledger has the sample of every tenant with a document table, which the next window's table
        continues."""
        return all(self.samples.complete(t.tenant) for t in self.policy.tenants if t.documents is not None)

    def _sample(self) -> None:
        """Commit to the samples of tenants with sampling, once the window is active."""
        if self.status == "active":
            self.samples.commit(low_memory=self.low_memory)

    def enrol(self, account: RosterEntry, beacon: BeaconSource) -> Enrolment:
        """`enrol_all` for one account."""
        return self.enrol_all([account], beacon)[0]

    def enrol_all(self, accounts: Sequence[RosterEntry], beacon: BeaconSource) -> list[Enrolment]:
        """Add accounts while the window is open, an entry each. Their slots wait for the beacon that the entries name:
        the witnesses cosign one checkpoint that has all of them, and reveal over it once.

        :raises PolicyError: a tenant is unknown, an id or key is repeated, or a tenant's cap is reached; none is added
        """
        self._require("active")
        state = self.state

        drafts = [
            Enrolment(type="enrolment", v=1, seq=1, ts=0, beacon=beacon, **a.model_dump()) for a in accounts
        ]
        with state.enrolment_of(accounts):
            result = [e for e in state.append_all(drafts) if isinstance(e, Enrolment)]
        if result:
            self.publisher.publish_enrolments(result[-1].seq + 1)
        return result

    # -- queries ---------------------------------------------------------------------------------------------

    def query(self, request: SignedRequest, *, eager: bool = False) -> Answer:
        """Answer a signed request: embed, score, add noise, select, make the record durable, return the answer.

        An eagerly proved answer leaves in a slot of `release`, which is also its record's time.

        :param eager: prove before answering, even if the policy delays proofs until a challenge
        :raises RequestRefused: the request is refused, with a reason from `requests.REFUSALS`
        :raises StoreError: the record could not be made durable; no answer was returned and the slot is unused
        """
        question = OpenedQuery(request.query, bytes.fromhex(request.salt), self.context.embedder)
        return self.answers.query(Query(request, question), eager=eager)

    def handle(self, value: Json, *, eager: bool = False) -> Answer | Refusal:
        """`query` for a service: a JSON request in, an answer or a signed refusal out."""
        return self.answers.handle(value, eager=eager)

    def refuse(self, reason: str, detail: str, *, account: str = "", i: int = 0, hq: str = "") -> Refusal:
        """A signed refusal of a request.

        :param reason: one of `requests.REFUSALS`
        :param account: the request's account, which like `i` and `hq` is given as far as the request has it
        """
        return self.answers.refuse(reason, detail, account=account, i=i, hq=hq)

    @property
    def release(self) -> Release:
        """The release schedule of eagerly proved answers."""
        return self.answers.release

    @release.setter
    def release(self, value: Release) -> None:
        self.answers.release = value

    # -- closing ---------------------------------------------------------------------------------------------

    def estimate(self) -> Estimate:
        """The estimate of repeated questions over the queries so far. It names accounts, so it is for the provider only
        (docs/estimator.md).

        :raises StoreError: a retained query cannot be opened
        """
        records, queries = self._questions()
        return estimate_window(records, [q.vector for q in queries], self.policy)

    def close(
        self,
        *,
        abandoned: bool = False,
        certify: bool = True,
        executor: concurrent.futures.Executor | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> str:
        """Write the window trailer and sign the final checkpoint, which the witnesses then cosign.

        The coalition proof that the policy asks for is made and stored first, so an interrupted call resumes with it.

        :param abandoned: the window never became usable, and is closed so that the chain can go on; it never passes
        :param certify: False closes without that proof, and verifiers then do not decide about the window
        :param executor: where the proof's jobs run; in this process if None
        :param progress: called with (jobs done, jobs) of the proof
        :returns: the final checkpoint note
        :raises WitnessError: the window has more records than the proof covers
        """
        state = self.state
        with self._close:
            if not state.ended:
                if not abandoned:
                    self._require("active")
                if not abandoned or any(t.documents is not None for t in self.policy.tenants):
                    # The beacon decided the bits of document tables, so the next table continues this one.
                    self._sample()
                # No entry may follow the estimate, nor the sets that the next window begins with.
                state.wait_until_quiet()
                self.answers.end()
                coalition = self._declared(executor, progress, certify=certify)
                state.append(WindowTrailer(
                    type="trailer", v=1, seq=1, ts=0, window=self.header.window, queries=len(state.by_slot),
                    enrolments=len(state.enrolled_at), coalition=coalition, abandoned=abandoned,
                ))  # fmt: skip
            note = self.publisher.publish_checkpoint(len(state.entries))
            self.export()
            return note

    def _declared(
        self,
        executor: concurrent.futures.Executor | None,
        progress: Callable[[int, int], None] | None,
        *,
        certify: bool,
    ) -> CoalitionEstimate:
        """The estimate that the window trailer declares, with the digest of its coalition proof. The proof is
        already durable."""
        context = self.context
        records, queries = self._questions()
        vectors = [q.vector for q in queries]
        estimate = estimate_window(records, vectors, self.policy)
        replace_file(context.layout.estimate, jcs(estimate.evidence()), mode=PRIVATE_MODE)
        declared, requested = estimate.public(), self.policy.estimator.coalition_proof
        if requested is None or not certify or not records:
            return declared
        size = len(self.state.entries)
        statement = coalition_statement(
            records,
            declared,
            header_digest=self.header_digest,
            head=Checkpoint(self.header.log, size, self.state.tree.root(size)),
            dimension=context.embedder.dimension,
            capacity=requested.records,
        )
        path, ctx = context.layout.coalition, to_hex(statement.ctx)
        kept = CoalitionProof.load(path) if path.exists() else None
        if kept is None or kept.ctx != ctx:
            witness = coalition_private(records, estimate, vectors, [q.salts.vector for q in queries])
            proofs = backend(requested.system).coalition
            coalition_proof = proofs.prove(statement, witness, executor=executor, progress=progress)
            kept = CoalitionProof(ctx=ctx, coalition_proof=coalition_proof)
            replace_file(path, kept.canonical())
        return declared.model_copy(update={"coalition_proof": digest_hex(kept.coalition_proof)})

    def _questions(self) -> tuple[list[QueryRecord], list[OpenedQuery]]:
        """The window's records so far, with their questions."""
        records, context = self.records, self.context
        return records, [context.retained(record).opened(context.embedder) for record in records]

    def shut(self) -> None:
        """Release threads, files and the folder's lock. A second call has no effect."""
        if self._lock_file >= 0:
            self.noise_pool.close()
            self.state.store.close()
            os.close(self._lock_file)
            self._lock_file = -1

    # -- proving ---------------------------------------------------------------------------------------------

    def prove(
        self,
        seqs: Sequence[int] | None = None,
        *,
        batch: int | None = 1,
        executor: concurrent.futures.Executor | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> int:
        """Make the missing proofs of the named records (all by default) and add them to the window file.

        Each finished proof is stored before the next is counted, so an interrupted call resumes where it stopped.

        :param batch: maximum records of a tenant in one proof, if its proof system supports batches; a remaining
            single record is proved separately. None takes the largest number that fits into this machine's free memory
        :param executor: the executor of the jobs; None runs them in this process, one after another
        :param progress: called with (done, total), and also before the first proof
        :returns: the number of new proofs; a batch proof counts once for each of its records
        :raises PolicyError: no circuit proves batches of that size
        """
        return self.prover.prove(seqs, batch=batch, executor=executor, progress=progress)

    def answer_challenge(
        self,
        note: str,
        *,
        batch: int | None = 1,
        executor: concurrent.futures.Executor | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> int:
        """Publish a verifier's challenge and prove the records it names. The options are those of `prove`.

        :raises SchemaError: the challenge is over another ledger
        """
        return self.prover.answer_challenge(note, batch=batch, executor=executor, progress=progress)

    def precompute_noise_proofs(
        self,
        count: int,
        *,
        executor: concurrent.futures.Executor | None = None,
        progress: Callable[[int, int], None] | None = None,
        until: Callable[[], bool] = lambda: False,
    ) -> int:
        """Precompute the noise proofs of every account's next `count` slots, if its tenant's proof system has them.

        Each proof is stored before the next is counted, and existing proofs remain. The method skips accounts without a
        beacon.

        :param executor: as for `prove`
        :param progress: called with (done, total)
        :param until: called before each noise proof; the work ends when it returns true
        :returns: the number of new noise proofs
        """
        self._require("active")
        return self.prover.precompute_noise_proofs(count, executor=executor, progress=progress, until=until)

    def _require(self, status: str) -> None:
        if (actual := self.status) != status:
            hint = "it was closed, and its ledger is final"
            if actual == "committed":
                hint = "it waits for " + waited_for(self.header, self.context.layout.public, self.witnesses)
            raise WindowStateError(
                "the window is in another state", field="window", expected=status, actual=actual, hint=hint
            )

    @contextmanager
    def _shut_unless_done(self) -> Iterator[None]:
        try:
            yield
        except BaseException:
            self.shut()
            raise
