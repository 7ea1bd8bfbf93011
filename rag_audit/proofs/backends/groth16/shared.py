"""Proofs about records, each for the records at its circuit's places (docs/circuits.md)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeAlias, TypeVar

from rag_audit._internal.canonical import Json, digest_hex
from rag_audit._internal.errors import InvalidProof, SetupError, WitnessError
from rag_audit.models.constants import Constants
from rag_audit.proofs.backends.groth16.embed import EmbedJob, table_tree
from rag_audit.proofs.backends.groth16.instance import (
    EmbedInstance,
    Instance,
    RetrieveInstance,
)
from rag_audit.proofs.backends.groth16.job import (
    Bound,
    RecordInputs,
    RecordsJob,
)
from rag_audit.proofs.backends.groth16.keys import VerificationKey, proving_key
from rag_audit.proofs.backends.groth16.statements import ManyStatement
from rag_audit.proofs.backends.groth16.verifiers import (
    PairingChecker,
    parse_key,
    parse_records_proof,
    record_digest,
)
from rag_audit.proofs.chunks import narrowed
from rag_audit.proofs.interface import Pins
from rag_audit.proofs.records import Group, OpenedKey, Reader
from rag_audit.proofs.statements.embed import EmbedStatement
from rag_audit.proofs.statements.private import RecordPrivate
from rag_audit.proofs.statements.retrieve import RecordPublic, Statement
from rag_audit.proofs.statements.tenant import PublicValues
from rag_audit.relation.field import from_hex

TABLE_ARTEFACT = "table-root"
AnyInstance = TypeVar("AnyInstance", bound=Instance)
Pair: TypeAlias = tuple[bytes, PublicValues]
"""A proof, 256 bytes in EIP-197 order, and its public values."""


def record_instance(c: Constants, queries: int = 1) -> RetrieveInstance:
    """The circuit that proves a batch of this number of a tenant's records.

    :raises PolicyError: no circuit exists for this number of records or these constants
    """
    return RetrieveInstance(
        c.capacity, c.dimension, c.top_k, c.gains, c.lo, c.hi, c.lattice, c.sampled, queries
    )


def retrieve_statement(record: RecordPublic) -> Statement:
    """The public values of a record's proof of `retrieve`."""
    return record.retrieve(from_hex(record.tenant.c_idx, field="c_idx"))


def record_inputs(record: RecordPublic, private: RecordPrivate) -> RecordInputs:
    """The statement about a record, and the record's private inputs.

    :raises WitnessError: the sample is missing
    """
    instance = record_instance(record.tenant.constants)
    sample = None
    if instance.sampled:
        if private.sample is None:
            raise WitnessError("the sampled positions of the tenant are missing", field="sample")
        bits, opening = private.sample
        sample = (bits, int.from_bytes(opening, "big"))
    return RecordInputs(
        instance=instance,
        statement=retrieve_statement(record),
        # A prover on another machine never sees a seed that the proof does not need.
        s0=private.s0 if instance.seeded else None,
        s1=private.s1 if instance.seeded else None,
        index_salt=private.index_salt,
        rows=private.rows(),
        vector=private.vector,
        salt_c=private.salt_c,
        salt_k=private.salt_k,
        sample=sample,
        positions=private.positions,
    )


def pinned_key(circuit: str, published: Mapping[str, Json], pins: Pins) -> OpenedKey[VerificationKey]:
    """A circuit's verification key, which is published under the circuit's digest and accepted if it is pinned.

    :raises SetupError: there is no pin, or no published key
    :raises InvalidProof: the key is not the pinned one, or names another circuit
    """
    place = f"verification_keys.{circuit[:16]}"
    pin = pins.key(circuit)
    if pin is None:
        raise SetupError("the circuit has no pin in trust.toml", expected=f"a pin for circuit {circuit}")
    if circuit not in published:
        raise SetupError("the window has no verification key", field=place, expected=pin.vk)
    actual = digest_hex(published[circuit])
    if actual != pin.vk:
        raise InvalidProof("the verification key is not the pinned one", field=place, expected=pin.vk,
                           actual=actual)  # fmt: skip
    key = parse_key(published[circuit], field=place)
    if key.circuit != circuit:  # a pin can be wrong, and such a key proves another circuit's statements
        raise InvalidProof("the verification key is another circuit's", field=place, expected=circuit,
                           actual=key.circuit)  # fmt: skip
    return OpenedKey(key, actual, pin.setup)


BoundTo = TypeVar("BoundTo", bound=Bound)


def bound(job: BoundTo) -> BoundTo:
    """The job, bound to the verification key of this machine's cache wherever it runs."""
    return replace(job, vk=proving_key(job.instance).vk_digest)


@dataclass(frozen=True)
class CircuitProofs(ABC, Generic[AnyInstance]):
    """The common part of this system's `RecordSteps`: a circuit, whose key a verifier pins."""

    instance: AnyInstance

    @property
    def places(self) -> int:
        """The number of records of a proof."""
        return 1

    @abstractmethod
    def joined(self, records: Sequence[PublicValues]) -> PublicValues:
        """The public values of one proof for these records, in the proof's order.

        :raises SchemaError: the records cannot share a proof
        """

    def carried(self, proof: dict[str, Json], number: int) -> dict[str, Json]:
        """See `RecordSteps.carried`: a proof is short, and every record carries it."""
        return proof

    def digest(self, statement: PublicValues) -> bytes:
        """See `RecordSteps.digest`."""
        return record_digest(statement)

    def published_keys(self) -> dict[str, Json]:
        """See `RecordSteps.published_keys`."""
        return {self.instance.digest(): proving_key(self.instance).vk}

    def open_key(self, published: Mapping[str, Json], pins: Pins) -> OpenedKey[VerificationKey]:
        """See `RecordSteps.open_key`."""
        return pinned_key(self.instance.digest(), published, pins)

    def parse_proof(self, value: Json, *, field: str) -> Group:
        """See `RecordSteps.parse_proof`."""
        return parse_records_proof(value, self.instance.digest(), self.places, field=field)

    def reader(self, key: VerificationKey, every: Sequence[PublicValues]) -> Reader[Pair]:
        """See `RecordSteps.reader`."""

        def read(
            proof: Group, records: Sequence[PublicValues], carried: Container[tuple[bytes, bytes]]
        ) -> Pair:
            [part] = proof.parts or (b"",)
            return part, self.joined(records)

        return read

    def checker(self, key: VerificationKey, engine: str) -> PairingChecker:
        """See `RecordSteps.checker`."""
        return PairingChecker(key, engine)


class EmbedProofs(CircuitProofs[EmbedInstance]):
    """Proofs of A1, each for one record (`RecordSteps`)."""

    def job(self, records: Mapping[str, tuple[RecordPublic, RecordPrivate]]) -> EmbedJob:
        """See `RecordSteps.job`."""
        ((record, private),) = records.values()
        job = EmbedJob.of(
            self.instance,
            self.statement(record),
            table_tree(record.tenant.static_table()),
            private.tokens,
            salt_q=private.salt_q,
            salt_c=private.salt_c,
        )
        return bound(job)

    def statement(self, record: RecordPublic) -> EmbedStatement:
        """See `RecordSteps.statement`."""
        root = record.tenant.table_digest(TABLE_ARTEFACT)
        return record.embed(from_hex(root, field=f"artefacts.{TABLE_ARTEFACT}"))

    def joined(self, records: Sequence[PublicValues]) -> PublicValues:
        """See `CircuitProofs.joined`."""
        (statement,) = records
        return statement


class RetrieveProofs(CircuitProofs[RetrieveInstance]):
    """Proofs of `retrieve` (`RecordSteps`). A policy names the circuit for one record. The circuit for several follows
    from the tenant's constants and the number of places.
    """

    @property
    def places(self) -> int:
        """See `CircuitProofs.places`."""
        return self.instance.queries

    def job(self, records: Mapping[str, tuple[RecordPublic, RecordPrivate]]) -> RecordsJob:
        """See `RecordSteps.job`."""
        inputs = tuple(record_inputs(public, private) for public, private in records.values())
        return bound(RecordsJob(self.instance, inputs, tuple(records)))

    def statement(self, record: RecordPublic) -> Statement:
        """See `RecordSteps.statement`."""
        return retrieve_statement(record)

    def joined(self, records: Sequence[PublicValues]) -> PublicValues:
        """See `CircuitProofs.joined`."""
        return ManyStatement.of(narrowed(Statement, records), self.places)
