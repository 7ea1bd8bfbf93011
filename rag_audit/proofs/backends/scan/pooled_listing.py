"""Records of tenants with pooled listing by the scan argument: chance, the answer, and the tenant's listed rows after
it (docs/scan/pooled-listing.md).
"""

from __future__ import annotations

import array
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, TypeAlias

from rag_audit import _native
from rag_audit._internal.canonical import Json
from rag_audit._internal.errors import InvalidProof, WitnessError
from rag_audit.proofs.backends.scan import memory
from rag_audit.proofs.backends.scan.engine import Engine
from rag_audit.proofs.backends.scan.key import POOLED_LISTING_PROTOCOL, RECORD, PooledKey, ScanKey
from rag_audit.proofs.backends.scan.listed import listed_blindings, listed_digest, listed_rows
from rag_audit.proofs.backends.scan.records import Form, NativeChecker
from rag_audit.proofs.backends.scan.retrieve import IndexProofs, retrieve_statement
from rag_audit.proofs.backends.scan.verify import check_index
from rag_audit.proofs.chunks import NativeBatch, narrowed
from rag_audit.proofs.records import Group, Reader
from rag_audit.proofs.statements.private import PooledListingPrivate, RecordPrivate
from rag_audit.proofs.statements.retrieve import PooledStatement, RecordPublic
from rag_audit.proofs.statements.tenant import PublicValues
from rag_audit.relation.field import to_bytes

FORM = Form(POOLED_LISTING_PROTOCOL, ("before", "after", "proof"), RECORD)
"""The form of a record's proof: the commitments to the tenant's listed rows before and after the record, and the
proof."""
Pooled: TypeAlias = tuple[bytes, bytes, bytes, bytes]
"""A record's public values, and the parts of its proof."""


@dataclass(frozen=True)
class PooledJob:
    """The job that proves one record. It is picklable. It contains secrets, which `repr` omits.

    :param private: the table and the listed rows
    :param s0: first half of the seed, as s1 is the second
    :param scores: scores of all positions, int32 little-endian
    :param positions: the places of the answer in rank order, the number of positions for each empty place
    """

    key: ScanKey
    statement: PooledStatement
    private: PooledListingPrivate = field(repr=False)
    s0: int = field(repr=False)
    s1: int = field(repr=False)
    scores: bytes = field(repr=False)
    vector: bytes = field(repr=False)
    salt_c: int = field(repr=False)
    positions: Sequence[int] = field(repr=False)
    salt_k: int = field(repr=False)
    blinding_key: bytes = field(repr=False)
    low_memory: bool = False
    keys: ClassVar[dict[str, str]] = {}

    def run(self) -> dict[str, Json]:
        """The proof as its record carries it (`FORM`).

        :raises WitnessError: the private inputs do not satisfy the statement
        :raises MemoryLimitError: the machine has too little memory for the work
        """
        capacity, pooled, own = self.key.capacity, _pooled(self.key), self.private
        memory.require_proof(
            lambda low: memory.pooled_proof_bytes(capacity, pooled.rows, low_memory=low),
            "proof of an answer by pooled listing",
            low_memory=self.low_memory,
        )
        size = len(pooled.kept)
        of_before = own.carried_opening[2 * size :]
        if own.before is not None:
            of_before = listed_blindings(capacity, pooled.rows, own.before)
        before = listed_rows(capacity, own.listed, of_before)
        try:
            proof, after = _native.scan_pooled_prove(
                self.key.index,
                self.key.pooled_listing,
                self.statement.encode(RECORD),
                (
                    to_bytes(self.s0) + to_bytes(self.s1),
                    own.row_of_position,
                    own.table_key,
                    own.kept,
                    own.carried_opening[:size],
                ),
                (before, own.listed, of_before, listed_blindings(capacity, pooled.rows, own.after)),
                (
                    self.scores,
                    (self.vector, to_bytes(self.salt_c)),
                    (array.array("i", self.positions).tobytes(), to_bytes(self.salt_k)),
                ),
                self.blinding_key,
                self.low_memory,
            )
        except (ValueError, OverflowError) as exc:
            raise WitnessError("there is no proof for this record", field="record", actual=str(exc)) from exc
        for name, rows, digest in (
            ("before", before, self.statement.before or pooled.listed),
            ("after", after, self.statement.after),
        ):
            if (actual := listed_digest(capacity, pooled.rows, rows)) != digest:
                raise WitnessError(
                    "the commitment to the listed rows differs from the digest in the ledger",
                    field=name,
                    expected=digest,
                    actual=actual,
                )
        return FORM.json([self.statement], (before, after, proof))


def _pooled(key: ScanKey) -> PooledKey:
    assert key.pooled is not None  # as for every tenant with pooled listing
    return key.pooled


class PooledChecker(NativeChecker[ScanKey, Pooled]):
    """Verifies records of a tenant with pooled listing."""

    def batch(self, engine: Engine) -> NativeBatch[Pooled]:
        """See `NativeChecker.batch`."""
        return engine.pooled(self.key)


class PooledProofs(IndexProofs):
    """Proofs of `retrieve` for tenants with pooled listing, each for one record (`RecordSteps`)."""

    form = FORM

    def job(self, records: Mapping[str, tuple[RecordPublic, RecordPrivate]]) -> PooledJob:
        """See `RecordSteps.job`."""
        ((record, private),) = records.values()
        return pooled_job(self.key(self.points()), record, private)

    def reader(self, key: ScanKey, every: Sequence[PublicValues]) -> Reader[Pooled]:
        """See `RecordSteps.reader`."""
        capacity, pooled = key.capacity, _pooled(key)

        def read(proof: Group, records: Sequence[PublicValues], _: Container[tuple[bytes, bytes]]) -> Pooled:
            (statement,) = narrowed(PooledStatement, records)
            before, after, part = proof.parts or (b"", b"", b"")
            check_index(key, statement)
            for name, points, expected in (
                ("before", before, statement.before or pooled.listed),
                ("after", after, statement.after),
            ):
                if (actual := listed_digest(capacity, pooled.rows, points)) != expected:
                    raise InvalidProof(
                        "the commitment to the listed rows differs from the digest in the ledger",
                        field=name,
                        expected=expected,
                        actual=actual,
                    )
            return statement.encode(RECORD), before, after, part

        return read

    def checker(self, key: ScanKey, engine: str) -> PooledChecker:
        """See `RecordSteps.checker`."""
        return PooledChecker(key, engine)


def pooled_job(key: ScanKey, record: RecordPublic, private: RecordPrivate) -> PooledJob:
    """The job that proves a record of a tenant with pooled listing.

    :raises WitnessError: the table or the listed rows are missing
    """
    statement = retrieve_statement(record)
    if private.pooled_listing is None or not isinstance(statement, PooledStatement):
        raise WitnessError("the document table or the listed rows of the tenant are missing", field="record")
    return PooledJob(
        key=key,
        statement=statement,
        private=private.pooled_listing,
        s0=private.s0,
        s1=private.s1,
        scores=private.scores(),
        vector=private.vector,
        salt_c=private.salt_c,
        positions=private.positions,
        salt_k=private.salt_k,
        blinding_key=to_bytes(private.index_salt),
        low_memory=private.low_memory,
    )
