"""Records of tenants with randomized response by the scan argument: the slot's Bernoulli bits, the list, and the
account's disclosed set after it (docs/scan/randomized-response.md).
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, TypeAlias

from rag_audit import _native
from rag_audit._internal.canonical import Json, sha256
from rag_audit._internal.errors import InvalidProof, WitnessError
from rag_audit.proofs.backends.scan import memory
from rag_audit.proofs.backends.scan.column import SlotProofJob, record_blindings, rows_digest
from rag_audit.proofs.backends.scan.engine import Engine
from rag_audit.proofs.backends.scan.key import RANDOMIZED_RESPONSE_PROTOCOL, RECORD, ScanKey
from rag_audit.proofs.backends.scan.records import Form, NativeChecker
from rag_audit.proofs.backends.scan.retrieve import IndexProofs, retrieve_statement
from rag_audit.proofs.backends.scan.verify import check_index
from rag_audit.proofs.chunks import NativeBatch, narrowed
from rag_audit.proofs.records import Group, Reader
from rag_audit.proofs.statements.private import NoiseProof, RecordPrivate
from rag_audit.proofs.statements.retrieve import ListedStatement, RecordPublic
from rag_audit.proofs.statements.tenant import PublicValues
from rag_audit.relation.field import digest_to_field, to_bytes

FORM = Form(RANDOMIZED_RESPONSE_PROTOCOL, ("noise_proof", "before", "after", "proof"), RECORD)
"""The form of a record's proof: the proof of the slot's Bernoulli bits, the commitments to the account's disclosed set
before and after the record, and the proof of the list."""
List: TypeAlias = tuple[bytes, bytes, bytes, bytes, bytes]
"""A record's public values, and the parts of its proof."""


@dataclass(frozen=True)
class ListJob:
    """The job that proves one record. It is picklable. It contains secrets, which `repr` omits.

    :param noise_proof: the proof of the slot's Bernoulli bits, or the job that makes it
    :param flips: the slot's Bernoulli bits, one byte 0 or 1 for each position; `sampled` and `disclosed` (before the
        record) have the same form
    :param sample_opening: blindings of the commitment to the sampled positions
    :param before: the secret of the commitment before the record, None before the account's first
    :param after: the secret of the commitment after it
    :param scores: scores of all positions, int32 little-endian
    """

    key: ScanKey
    statement: ListedStatement
    noise_proof: NoiseProof | SlotProofJob
    flips: bytes = field(repr=False)
    sampled: bytes = field(repr=False)
    sample_opening: bytes = field(repr=False)
    disclosed: bytes = field(repr=False)
    before: bytes | None = field(repr=False)
    after: bytes = field(repr=False)
    scores: bytes = field(repr=False)
    vector: bytes = field(repr=False)
    salt_c: int = field(repr=False)
    salt_k: int = field(repr=False)
    blinding_key: bytes = field(repr=False)
    low_memory: bool = False
    keys: ClassVar[dict[str, str]] = {}

    def run(self) -> dict[str, Json]:
        """The proof as its record carries it (`FORM`).

        :raises WitnessError: the private inputs do not satisfy the statement
        :raises MemoryLimitError: the machine has too little memory for the work
        """
        memory.require_proof(
            lambda low: memory.query_proof_bytes(self.key.capacity, low_memory=low),
            "proof of a list",
            low_memory=self.low_memory,
        )
        noise_proof = self.noise_proof
        if isinstance(noise_proof, SlotProofJob):
            noise_proof = noise_proof.run()
        capacity = self.key.capacity
        rows, blindings = disclosed_rows(capacity, self.disclosed, self.before)
        statement = bound_to(self.statement, noise_proof.proof)
        try:
            proof, after = _native.scan_list_prove(
                self.key.index,
                self.key.randomized_response,
                statement.encode(RECORD),
                (noise_proof.commitments, self.flips, noise_proof.blindings),
                (self.sampled, self.sample_opening),
                (rows, self.disclosed, blindings),
                disclosed_blindings(capacity, self.after),
                self.scores,
                (self.vector, to_bytes(self.salt_c)),
                to_bytes(self.salt_k),
                self.blinding_key,
                self.low_memory,
            )
        except (ValueError, OverflowError) as exc:
            raise WitnessError("there is no proof for this record", field="record", actual=str(exc)) from exc
        return FORM.json([self.statement], (noise_proof.proof, rows, after, proof))


def bound_to(statement: ListedStatement, noise_proof: bytes) -> ListedStatement:
    """The statement with a context that also covers the proof of the Bernoulli bits. The native argument leaves this
    binding to its caller."""
    ctx = sha256(b"rag-audit/scan/listed/v1" + to_bytes(statement.ctx) + sha256(noise_proof))
    return replace(statement, ctx=digest_to_field(ctx))


def disclosed_rows(capacity: int, disclosed: bytes, secret: bytes | None) -> tuple[bytes, bytes]:
    """The commitments to an account's disclosed set, and their blindings; for the empty set before its first record, a
    public constant.

    :param disclosed: one byte 0 or 1 for each position
    :param secret: the record's own 32 bytes; None before the account's first record
    """
    if secret is None:
        rows = _native.scan_disclosed_empty(capacity)
        return rows, to_bytes(1) * (len(rows) // 32)
    blindings = disclosed_blindings(capacity, secret)
    return _native.scan_disclosed_rows(capacity, disclosed, blindings), blindings


def disclosed_blindings(capacity: int, secret: bytes) -> bytes:
    """The blindings of an account's disclosed set (`record_blindings`)."""
    rows = len(_native.scan_disclosed_empty(capacity)) // 32
    return record_blindings(b"rag-audit/held/v1", secret, rows)


def disclosed_digest(capacity: int, rows: bytes) -> str:
    """The digest in a record: SHA-256 over capacity and row commitments, 64 hexadecimal digits."""
    return rows_digest(b"rag-audit/scan/held/v1", capacity, rows)


class ListChecker(NativeChecker[ScanKey, List]):
    """Verifies records of a tenant with randomized response."""

    def batch(self, engine: Engine) -> NativeBatch[List]:
        """See `NativeChecker.batch`."""
        return engine.lists(self.key)


class ListProofs(IndexProofs):
    """Proofs of `retrieve` for tenants with randomized response, each for one record (`RecordSteps`)."""

    form = FORM

    def job(self, records: Mapping[str, tuple[RecordPublic, RecordPrivate]]) -> ListJob:
        """See `RecordSteps.job`."""
        ((record, private),) = records.values()
        return list_job(self.key(self.points()), record, private)

    def reader(self, key: ScanKey, every: Sequence[PublicValues]) -> Reader[List]:
        """See `RecordSteps.reader`."""
        zero = disclosed_digest(key.capacity, _native.scan_disclosed_empty(key.capacity))

        def read(proof: Group, records: Sequence[PublicValues], _: Container[tuple[bytes, bytes]]) -> List:
            (statement,) = narrowed(ListedStatement, records)
            noise_proof, before, after, part = proof.parts or (b"", b"", b"", b"")
            check_index(key, statement)
            for name, rows, expected in (
                ("before", before, statement.before or zero),
                ("after", after, statement.after),
            ):
                if (actual := disclosed_digest(key.capacity, rows)) != expected:
                    raise InvalidProof(
                        "the commitment to the disclosed set differs from the digest in the ledger",
                        field=name,
                        expected=expected,
                        actual=actual,
                    )
            return bound_to(statement, noise_proof).encode(RECORD), noise_proof, before, after, part

        return read

    def checker(self, key: ScanKey, engine: str) -> ListChecker:
        """See `RecordSteps.checker`."""
        return ListChecker(key, engine)


def list_job(key: ScanKey, record: RecordPublic, private: RecordPrivate) -> ListJob:
    """The job that proves a record of a tenant with randomized response.

    :raises WitnessError: the account's disclosed set, or the sample, is missing
    """
    statement = retrieve_statement(record)
    if (
        private.randomized_response is None
        or private.sample is None
        or not isinstance(statement, ListedStatement)
    ):
        raise WitnessError(
            "the disclosed set of the account or the sample of the tenant is missing", field="record"
        )
    sampled, sample_opening = private.sample
    low = private.low_memory
    return ListJob(
        key=key,
        statement=statement,
        noise_proof=private.noise_proof()
        or SlotProofJob.of(key, record, private.s0, private.s1, low_memory=low),
        flips=private.noise(),
        sampled=sampled,
        sample_opening=sample_opening,
        disclosed=private.randomized_response.disclosed,
        before=private.randomized_response.before,
        after=private.randomized_response.after,
        scores=private.scores(),
        vector=private.vector,
        salt_c=private.salt_c,
        salt_k=private.salt_k,
        blinding_key=to_bytes(private.index_salt),
        low_memory=low,
    )
