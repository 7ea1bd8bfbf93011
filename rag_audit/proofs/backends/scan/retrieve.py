"""Proofs of `retrieve`, each for one record or several of one tenant (docs/scan/batch.md)."""

from __future__ import annotations

import array
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, TypeAlias

from rag_audit import _native
from rag_audit._internal.canonical import Json, jcs, sha256
from rag_audit._internal.errors import SchemaError, WitnessError
from rag_audit.mechanisms.base import SAMPLE
from rag_audit.models.constants import Constants
from rag_audit.proofs.backends.scan import memory
from rag_audit.proofs.backends.scan.column import SlotProofJob, prove_noise
from rag_audit.proofs.backends.scan.engine import Engine
from rag_audit.proofs.backends.scan.key import (
    POOLED_LISTING_PROTOCOL,
    PROTOCOL,
    RECORD,
    PooledKey,
    ScanKey,
)
from rag_audit.proofs.backends.scan.records import Form, NativeChecker, ScanProofs
from rag_audit.proofs.backends.scan.verify import check_index
from rag_audit.proofs.chunks import NativeBatch, narrowed
from rag_audit.proofs.records import Group, Reader
from rag_audit.proofs.statements.private import NoiseProof, RecordPrivate
from rag_audit.proofs.statements.retrieve import RecordPublic, Statement
from rag_audit.proofs.statements.tenant import PublicValues, TableCommitment, TenantPublic
from rag_audit.relation.field import digest_to_field, to_bytes

FORM = Form(PROTOCOL, ("noise_proof", "proof"), RECORD)
"""The form of a proof: the noise proof of the records' slots, empty without noise, and the query proof."""
Proof: TypeAlias = tuple[list[bytes], bytes, bytes]
"""The public values of a proof's records, the noise proof and the query proof."""


def max_batch(capacity: int, gains: int) -> int:
    """Maximum records of one proof, for these numbers of positions and gains."""
    return _native.scan_max_batch(capacity, gains)


@dataclass(frozen=True)
class RecordInputs:
    """One record's private inputs, which `repr` omits, and its statement.

    :param key: the tenant's key
    :param statement: the public values
    :param noise_proof: noise proof of the record's slot, or the job that makes it; None without noise
    :param noise: noise of all positions, int32 little-endian; empty without noise
    :param scores: scores of all positions, int32 little-endian
    :param vector: the query vector, int8
    :param salt_c: salt of cq
    :param salt_k: salt of htopk
    :param positions: the listed positions in rank order
    :param blinding_key: the key that determines the index commitment's blindings
    :param low_memory: as for `SlotProofJob`
    :param sample: for a tenant with a sample, one byte 0 or 1 per position, and the blindings of their commitment
    """

    key: ScanKey
    statement: Statement
    noise_proof: NoiseProof | SlotProofJob | None
    noise: bytes = field(repr=False)
    scores: bytes = field(repr=False)
    vector: bytes = field(repr=False)
    salt_c: int = field(repr=False)
    salt_k: int = field(repr=False)
    positions: Sequence[int] = field(repr=False)
    blinding_key: bytes = field(repr=False)
    low_memory: bool = False
    sample: tuple[bytes, bytes] | None = field(repr=False, default=None)

    @classmethod
    def of(cls, key: ScanKey, record: RecordPublic, private: RecordPrivate) -> RecordInputs:
        """The inputs of a record of a tenant that lists the first K."""
        noisy = bool(record.tenant.constants.gains)
        noise_proof: NoiseProof | SlotProofJob | None = None
        if noisy:
            noise_proof = private.noise_proof() or SlotProofJob.of(
                key, record, private.s0, private.s1, low_memory=private.low_memory
            )
        return cls(
            key=key,
            statement=retrieve_statement(record),
            noise_proof=noise_proof,
            noise=private.noise() if noisy else b"",
            scores=private.scores(),
            vector=private.vector,
            salt_c=private.salt_c,
            salt_k=private.salt_k,
            positions=private.positions,
            blinding_key=to_bytes(private.index_salt),
            low_memory=private.low_memory,
            sample=private.sample,
        )

    def encoded(self) -> tuple[bytes, bytes, bytes, tuple[bytes, bytes], tuple[bytes, bytes]]:
        """The record in the form of the native prover."""
        return (
            self.statement.encode(RECORD),
            self.noise,
            self.scores,
            (self.vector, to_bytes(self.salt_c)),
            (array.array("i", self.positions).tobytes(), to_bytes(self.salt_k)),
        )


@dataclass(frozen=True)
class RecordsJob:
    """The job that proves one record or several. It is picklable. It contains secrets, which `repr` omits.

    :param records: the records; several have no finished noise proofs and no sample
    :param names: names of the records in errors
    """

    records: tuple[RecordInputs, ...]
    names: tuple[str, ...]
    keys: ClassVar[dict[str, str]] = {}

    def run(self) -> dict[str, Json]:
        """The proof as the first record carries it (`FORM`).

        :raises WitnessError: the records are of several tenants, or private inputs do not satisfy a statement; `field`
            names the record
        :raises MemoryLimitError: the machine has too little memory for the work; the hint for several records has the
            maximum number of records that fit
        """
        first = self.records[0]
        key = first.key
        for name, record in zip(self.names, self.records, strict=True):
            if (record.key, record.blinding_key) != (key, first.blinding_key):
                raise WitnessError("a record is of another tenant or window than the rest", field=name)
            single = record.sample is not None or isinstance(record.noise_proof, NoiseProof)
            if single and len(self.records) > 1:
                raise WitnessError("the record cannot be proved with others", field=name)
        memory.require_batch(key.capacity, key.gains, len(self.records), low_memory=first.low_memory)
        try:
            noise_proof = self._noise_proof()
            proof = _native.scan_prove(
                key.index,
                key.parameters,
                [record.encoded() for record in self.records],
                noise_proof,
                first.blinding_key,
                first.low_memory,
                first.sample,
            )
        except (ValueError, OverflowError) as exc:
            if len(self.records) > 1:
                # The record that also fails when proved separately is at fault; proofs of the others are discarded.
                for name, record in zip(self.names, self.records, strict=True):
                    RecordsJob((record,), (name,)).run()
            raise WitnessError(
                "there is no proof for these records", field=", ".join(self.names), actual=str(exc)
            ) from exc
        parts = (b"" if noise_proof is None else noise_proof[0], proof)
        return FORM.json([record.statement for record in self.records], parts)

    def _noise_proof(self) -> tuple[bytes, list[bytes], list[bytes]] | None:
        """The noise proof of the records' slots, with commitments and blindings for each; None without noise."""
        first, *others = (record.noise_proof for record in self.records)
        if others:
            slots = [slot for slot in (first, *others) if isinstance(slot, SlotProofJob)]
            return prove_noise(slots) if slots else None
        result = first.run() if isinstance(first, SlotProofJob) else first
        return None if result is None else (result.proof, [result.commitments], [result.blindings])


class RecordChecker(NativeChecker[ScanKey, Proof]):
    """Verifies proofs with the statements of their records."""

    def batch(self, engine: Engine) -> NativeBatch[Proof]:
        """See `NativeChecker.batch`."""
        return engine.records(self.key)


class IndexProofs(ScanProofs[ScanKey]):
    """The common part of proofs about a tenant's index."""

    @property
    def commitment(self) -> str:
        """See `ScanProofs.commitment`."""
        return self.tenant.c_idx

    def points(self) -> bytes:
        """See `ScanProofs.points`."""
        return self.tenant.points

    def key(self, points: bytes) -> ScanKey:
        """See `ScanProofs.key`."""
        return retrieve_key(replace(self.tenant, points=points))

    def statement(self, record: RecordPublic) -> Statement:
        """See `RecordSteps.statement`."""
        return retrieve_statement(record)


class RetrieveProofs(IndexProofs):
    """Proofs of `retrieve` for tenants that list the first K (`RecordSteps`)."""

    form = FORM

    def job(self, records: Mapping[str, tuple[RecordPublic, RecordPrivate]]) -> RecordsJob:
        """See `RecordSteps.job`."""
        key = self.key(self.points())
        inputs = tuple(RecordInputs.of(key, public, private) for public, private in records.values())
        return RecordsJob(inputs, tuple(records))

    def reader(self, key: ScanKey, every: Sequence[PublicValues]) -> Reader[Proof]:
        """See `RecordSteps.reader`."""

        def read(proof: Group, records: Sequence[PublicValues], _: Container[tuple[bytes, bytes]]) -> Proof:
            noise_proof, query_proof = proof.parts or (b"", b"")
            statements = [check_index(key, statement) for statement in narrowed(Statement, records)]
            return [statement.encode(RECORD) for statement in statements], noise_proof, query_proof

        return read

    def checker(self, key: ScanKey, engine: str) -> RecordChecker:
        """See `RecordSteps.checker`."""
        return RecordChecker(key, engine)


def retrieve_statement(record: RecordPublic) -> Statement:
    """The public values of a record's proof, with the digest C_idx as a field element."""
    return record.retrieve(digest_to_field(bytes.fromhex(record.tenant.c_idx)))


def retrieve_key(tenant: TenantPublic) -> ScanKey:
    """The tenant's verification key. The function rebuilds all of its parts except the points from window header and
    policy."""
    c = tenant.constants
    if c.sampled and tenant.sample is None:
        raise SchemaError("the ledger names no commitment to the sampled positions", field="sample",
                          expected=f"an entry for {tenant.tenant}")  # fmt: skip
    protocol = protocol_for(c)
    named: dict[str, Json] = {"header": tenant.header, "protocol": protocol, "tenant": tenant.tenant}
    pooled = None
    if c.pools:
        pooled = pooled_key(tenant)
        named |= {"sample": tenant.columns[SAMPLE].digest, "carried": _table(tenant).carried}
    window = sha256(b"rag-audit/scan/window/v1" + jcs(named))
    sample = tenant.sample.points if c.sampled and tenant.sample is not None else None
    return ScanKey(
        tenant.points,
        c.dimension,
        c.capacity,
        window,
        c.gains,
        c.top_k,
        c.lo,
        c.hi,
        c.lattice,
        sample,
        pooled,
    )


def _table(tenant: TenantPublic) -> TableCommitment:
    sample = tenant.sample
    if not isinstance(sample, TableCommitment):
        raise SchemaError("the columns of the tenant's document table are missing", field="sample",
                          expected=f"an entry for {tenant.tenant}")  # fmt: skip
    return sample


def pooled_key(tenant: TenantPublic) -> PooledKey:
    """The further constants of a tenant with pooled listing.

    :raises SchemaError: the columns of its document table, or a constant, are missing
    """
    c, table = tenant.constants, _table(tenant)
    if None in (c.rows, c.positions_per_document, c.flip_probability, c.threshold):
        raise SchemaError("the tenant has no pooled listing", field="mechanism", actual=tenant.tenant)
    assert c.rows and c.positions_per_document and c.flip_probability and c.threshold
    return PooledKey(
        table.row,
        table.kept,
        c.rows,
        c.positions_per_document,
        c.flip_probability,
        c.threshold,
        table.listed,
    )


def protocol_for(c: Constants) -> str:
    """The digest that names the argument of records under a tenant's constants."""
    return POOLED_LISTING_PROTOCOL if c.pools else PROTOCOL
