"""A window's proofs, made with the answer, later, or on a challenge, and precomputed noise proofs."""

from __future__ import annotations

import concurrent.futures
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from itertools import takewhile

from rag_audit._internal.canonical import Json, digest_hex, jcs
from rag_audit._internal.durable import replace_file
from rag_audit._internal.errors import SchemaError, StoreError, WindowStateError
from rag_audit.attest.columns import SampleStore
from rag_audit.attest.context import Context
from rag_audit.attest.listed_rows import ListedRowSets
from rag_audit.attest.noise_proofs import NoiseProofStore
from rag_audit.attest.publishing import Publisher
from rag_audit.attest.query import record_private
from rag_audit.log.note import parse_note
from rag_audit.models.challenge import Challenge
from rag_audit.models.records import QueryRecord, SlotKey
from rag_audit.proofs.executors import LocalProcesses, run_jobs
from rag_audit.proofs.interface import Job
from rag_audit.proofs.proving import RecordJob, RecordProofs
from rag_audit.proofs.statements.private import NoiseProof, RecordPrivate, slot_public
from rag_audit.proofs.statements.retrieve import RecordPublic, record_public
from rag_audit.retrieval.query import OpenedQuery

Progress = Callable[[int, int], None]
"""A function of (done, total)."""


class Prover:
    """The proving of one window's records. Safe to use from several threads.

    `low_memory` may be set at any time; jobs that are made after that take less memory and more time.
    """

    def __init__(
        self, context: Context, publisher: Publisher, noise_proofs: NoiseProofStore, samples: SampleStore
    ) -> None:
        self.low_memory = False
        self._context = context
        self._publisher = publisher
        self._noise_proofs = noise_proofs
        self._samples = samples
        self._listed = ListedRowSets(context, samples)

    def prove(
        self,
        seqs: Sequence[int] | None,
        *,
        batch: int | None = 1,
        executor: concurrent.futures.Executor | None = None,
        progress: Progress | None = None,
    ) -> int:
        """See `Window.prove`."""
        asked_for = self._asked_for(seqs)
        path = self._publisher.proof_path
        every = [(r, name) for r in asked_for for name in self._context.statements(r.tenant)]
        missing = [(r, name) for r, name in every if not path(r, name).exists()]
        groups = {
            f"{name} of record {', '.join(str(r.seq) for r in records)}": (records, name, proofs)
            for records, name, proofs in self._grouped(missing, batch, executor)
        }
        done = len(every) - len(missing)
        if progress is not None:
            progress(done, len(every))
        for label, proof in run_jobs(self._jobs(groups), executor):
            records, name, proofs = groups[label]
            for number, record in enumerate(records):  # the first first, since the others may name its proof
                replace_file(path(record, name), jcs(proofs.carried(proof, number)))
            done += len(records)
            if progress is not None:
                progress(done, len(every))
        for record in asked_for:  # the record is proved, so its slot's noise proof is obsolete
            self._noise_proofs.drop(SlotKey(record.tenant, record.account, record.i))
        self._publisher.export()
        return len(missing)

    def prove_now(self, draft: QueryRecord, query: OpenedQuery, positions: Sequence[int]) -> str:
        """Prove all statements about a record that is not in the ledger yet, and store the proofs.

        :returns: the digest of all proofs, for the record
        """
        private = self._private(draft, query, positions)
        proofs: dict[str, Json] = {
            name: self.job(self.proofs(draft.tenant, name, 1), [(draft, private)]).run()
            for name in self._context.statements(draft.tenant)
        }
        digest = digest_hex(proofs)
        replace_file(self._context.layout.proof(digest), jcs(proofs))
        return digest

    def answer_challenge(
        self,
        note: str,
        *,
        batch: int | None = 1,
        executor: concurrent.futures.Executor | None = None,
        progress: Progress | None = None,
    ) -> int:
        """See `Window.answer_challenge`."""
        state, header = self._context.state, self._context.header
        challenge = Challenge.parse(parse_note(note).text, field="challenge")
        size = len(state.entries)
        named = (challenge.origin, challenge.window, challenge.size, challenge.root)
        mine = (header.origin, header.window, size, state.tree.root(size))
        if not state.ended or named != mine:
            raise SchemaError(
                "the challenge is over another ledger", field="challenge", expected=mine, actual=named
            )
        path = self._context.layout.public.challenge(digest_hex(note))
        path.parent.mkdir(exist_ok=True)
        replace_file(path, note.encode())
        drawn = challenge.positions([r.seq for r in state.records])
        return self.prove(drawn, batch=batch, executor=executor, progress=progress)

    def precompute_noise_proofs(
        self,
        count: int,
        *,
        executor: concurrent.futures.Executor | None,
        progress: Progress | None,
        until: Callable[[], bool],
    ) -> int:
        """See `Window.precompute_noise_proofs`."""
        state, policy = self._context.state, self._context.policy
        self._samples.commit(low_memory=self.low_memory)
        with state.changed:
            firsts = {name: state.next.get(name, 1) for name in state.accounts}
        slots = [
            SlotKey(state.accounts[name].tenant, name, first + step)
            for step in range(count)
            for name, first in sorted(firsts.items())
            if first + step <= policy.n and state.beacon(name) is not None
        ]
        jobs = {slot: job for slot in slots if (job := self._slot_proof_job(slot)) is not None}
        missing = [(slot, job) for slot, job in jobs.items() if self._noise_proofs.get(slot) is None]
        done = len(jobs) - len(missing)
        if progress is not None:
            progress(done, len(jobs))
        result = 0
        for slot, noise_proof in run_jobs(takewhile(lambda _: not until(), missing), executor):
            self._noise_proofs.put(slot, noise_proof)
            result += 1
            if progress is not None:
                progress(done + result, len(jobs))
        return result

    def _asked_for(self, seqs: Sequence[int] | None) -> list[QueryRecord]:
        named = None if seqs is None else set(seqs)
        records = [r for r in self._context.state.records if named is None or r.seq in named]
        unknown = (named or set()) - {r.seq for r in records}
        if unknown:
            raise WindowStateError(
                "the entry is not a query record",
                field="challenge",
                actual=sorted(unknown)[:5],
                hint="draw the challenge over this window's final checkpoint (`rag-audit verifier challenge`)",
            )
        path = self._publisher.proof_path
        lost = next((r for r in records if r.proof is not None and not path(r).exists()), None)
        if lost is not None:
            raise StoreError("the proof that a record names is lost, and a new one would have another digest",
                             field=f"record {lost.seq}", expected=str(path(lost)),
                             hint="restore the file from a copy of the window's folder")  # fmt: skip
        return records

    def _grouped(
        self,
        missing: Iterable[tuple[QueryRecord, str]],
        batch_size: int | None,
        executor: concurrent.futures.Executor | None,
    ) -> Iterator[tuple[list[QueryRecord], str, RecordProofs]]:
        """Group the missing proofs by the job that makes them."""

        @cache
        def batch(tenant: str, name: str) -> int:
            """The number of records of one proof. The free memory of other machines is unknown here."""
            elsewhere = not isinstance(executor, LocalProcesses | None)
            return self._context.system(tenant).batch(
                name,
                self._context.public(tenant).constants,
                1 if batch_size is None and elsewhere else batch_size,
                low_memory=self.low_memory,
                at_a_time=executor.workers if isinstance(executor, LocalProcesses) else 1,
            )

        sharing: defaultdict[tuple[str, str], list[QueryRecord]] = defaultdict(list)
        for record, name in missing:
            tenant, slot = record.tenant, SlotKey(record.tenant, record.account, record.i)
            size = batch(tenant, name)
            # A precomputed noise proof belongs to one slot: if the caller chose no batch size, its own record uses it.
            if size == 1 or (batch_size is None and name == "retrieve" and self._noise_proofs.has(slot)):
                yield [record], name, self.proofs(tenant, name, 1)
            else:
                sharing[tenant, name].append(record)
        for (tenant, name), records in sharing.items():
            size = batch(tenant, name)
            for start in range(0, len(records), size):
                group = records[start : start + size]
                yield group, name, self.proofs(tenant, name, size if len(group) > 1 else 1)

    def _jobs(
        self, groups: dict[str, tuple[list[QueryRecord], str, RecordProofs]]
    ) -> Iterator[tuple[str, RecordJob]]:
        """The jobs, each made on demand. A record's query is opened once for all of its statements, which follow one
        another."""
        opened: dict[int, RecordPrivate] = {}
        for label, (records, _, proofs) in groups.items():
            opened = {
                record.seq: opened[record.seq] if record.seq in opened else self.private(record)
                for record in records
            }
            yield label, self.job(proofs, [(record, opened[record.seq]) for record in records])

    def job(self, proofs: RecordProofs, group: Sequence[tuple[QueryRecord, RecordPrivate]]) -> RecordJob:
        """The job that proves one statement about a group's records, bound to the verification key that this window
        publishes."""
        job = proofs.prove(
            {f"record {record.seq}": self._public(record) for record, _ in group},
            [private for _, private in group],
        )
        self._publisher.fix_keys(job.keys)
        return job

    def proofs(self, tenant: str, name: str, places: int) -> RecordProofs:
        """The proofs of one statement about a tenant's records, each for this many."""
        return self._context.system(tenant).records(name, self._samples.public(tenant), places)

    def private(self, record: QueryRecord) -> RecordPrivate:
        """The private inputs of a stored record's proofs.

        :raises StoreError: the record's retained data cannot be opened
        """
        retained = self._context.retained(record)
        return self._private(record, retained.opened(self._context.embedder), retained.positions)

    def _private(self, record: QueryRecord, query: OpenedQuery, positions: Sequence[int]) -> RecordPrivate:
        context, slot = self._context, SlotKey(record.tenant, record.account, record.i)
        mechanism = context.mechanism(record.tenant)
        return record_private(
            query,
            mechanism.padded(positions),
            tenant=context.commitment.tenants[record.tenant],
            window_secrets=context.secrets,
            noise=lambda: context.drawn(slot),
            noise_proof=lambda: self._noise_proofs.get(slot),
            low_memory=self.low_memory,
            sample=None if mechanism.pools else self._samples.opening(record.tenant),
            pooled_listing=self._listed.private(record),
        )

    def _public(self, record: QueryRecord) -> RecordPublic:
        context, state = self._context, self._context.state
        pools = context.mechanism(record.tenant).pools
        return record_public(
            record,
            self._samples.public(record.tenant),
            header=context.header,
            beacon=context.beacon(record.account),
            before=state.preceding(record) if pools else None,
        )

    def _slot_proof_job(self, slot: SlotKey) -> Job[NoiseProof] | None:
        context = self._context
        public = slot_public(
            slot,
            self._samples.public(slot.tenant),
            header=context.header,
            beacon=context.beacon(slot.account),
        )
        s0, s1 = context.secrets.s0, context.secrets.s1
        return context.system(slot.tenant).slot_proof_job(public, s0, s1, low_memory=self.low_memory)
