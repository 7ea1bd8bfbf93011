"""Proofs about records, single or in batches: the common part of the proof systems (`interface.RecordProofs`).

A system supplies the steps for its own key and proof (`OneRecord`, `ManyRecords`). The classes in this module
encapsulate that key, so that callers handle every system alike.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Generic, Protocol, TypeVar

from rag_audit._internal.canonical import Json
from rag_audit._internal.errors import InvalidProof, SchemaError
from rag_audit.proofs.batch import Check, Failures, Lazy, at_once
from rag_audit.proofs.chunks import readable
from rag_audit.proofs.interface import FileProof, OpenedProofs, Pins, Setup
from rag_audit.proofs.proving import RecordJob
from rag_audit.proofs.statements.private import RecordPrivate
from rag_audit.proofs.statements.retrieve import RecordPublic
from rag_audit.proofs.statements.tenant import PublicValues, TenantPublic

Key = TypeVar("Key")
"""The key that a system's verifiers need in addition to proofs and statements."""
Opened = TypeVar("Opened", covariant=True)
Checked = TypeVar("Checked", contravariant=True)
SharedProof = TypeVar("SharedProof")
"""A parsed proof for several records."""


@dataclass(frozen=True)
class OpenedKey(Generic[Opened]):
    """A key that a verifier needs in addition to proofs and statements, checked against its pins.

    :param key: the key for `OneRecord.failures` or `ManyRecords.verify`
    :param digest: the compared digest, for the report
    :param setup: the kind of setup that made the key
    """

    key: Opened
    digest: str
    setup: Setup


@dataclass(frozen=True)
class Decides(Generic[Key]):
    """A checked key, and the engine that decides under it: the common part of `OpenedProofs` and `OpenedCoalition`."""

    opened: OpenedKey[Key]
    engine: str

    @property
    def digest(self) -> str:
        """See `OpenedProofs.digest`."""
        return self.opened.digest

    @property
    def setup(self) -> Setup:
        """See `OpenedProofs.setup`."""
        return self.opened.setup


class Verifies(Protocol[Checked]):
    """Verifies parsed proofs under a key."""

    @property
    def ENGINES(self) -> tuple[str, ...]:
        """See `Backend.ENGINES`."""

    def failures(
        self,
        key: Checked,
        proofs: Sequence[bytes],
        statements: Sequence[PublicValues],
        *,
        engine: str = "native",
    ) -> Failures:
        """As `OpenedProofs.verify`, for parsed proofs and their statements."""


class OneRecord(Verifies[Key], Protocol[Key]):
    """A system's steps for proofs that are each for one record."""

    def circuit(self, name: str, tenant: TenantPublic) -> str:
        """The digest of the statement's circuit or protocol."""

    def statement(self, name: str, record: RecordPublic) -> PublicValues:
        """The public values of a record's proof of the named statement.

        :raises SchemaError: the manifest lacks the table's commitment
        """

    def record_job(self, name: str, record: RecordPublic, private: RecordPrivate) -> RecordJob:
        """The job that proves the named statement about a record, bound to this machine's key.

        :raises WitnessError: the private inputs do not fit the statement
        """

    def published_keys(self, name: str, tenant: TenantPublic) -> dict[str, Json]:
        """As `RecordProofs.published_keys`."""

    def open_key(
        self, name: str, tenant: TenantPublic, published: Mapping[str, Json], pins: Pins
    ) -> OpenedKey[Key]:
        """As `RecordProofs.open`."""

    def parse_proof(self, value: Json, circuit: str, *, field: str) -> bytes:
        """Read a proof from a file's value, and check its form and the circuit that it names.

        :raises EncodingError: the proof is not canonical, or a point is not on the curve
        :raises SchemaError: the proof has other fields, or is of another system or circuit
        """


@dataclass(frozen=True)
class OwnProofs(Generic[Key]):
    """Verifies pairs of proof and statement, each separately (`batch.Checker`)."""

    system: Verifies[Key]
    key: Key
    engine: str

    @property
    def slow(self) -> bool:
        """See `Checker.slow`: the native core takes milliseconds."""
        return self.engine != "native" and self.engine in self.system.ENGINES

    def failures(self, items: Sequence[tuple[bytes, PublicValues]], /) -> Failures:
        """See `Checker.failures`."""
        proofs = Lazy(len(items), lambda i: items[i][0])
        statements = Lazy(len(items), lambda i: items[i][1])
        return self.system.failures(self.key, proofs, statements, engine=self.engine)


@dataclass(frozen=True)
class Single(Generic[Key]):
    """Proofs with one record each (`RecordProofs`). The bytes of such a proof differ from the bytes of a batch
    proof. The next version of the formats has one form, and `Several` replaces this class."""

    system: OneRecord[Key]
    name: str
    tenant: TenantPublic
    chained = False

    def prove(self, statement: Mapping[str, RecordPublic], witness: Sequence[RecordPrivate]) -> RecordJob:
        """See `RecordProofs.prove`."""
        (record,), (private,) = statement.values(), witness
        return self.system.record_job(self.name, record, private)

    def carried(self, proof: dict[str, Json], number: int) -> dict[str, Json]:
        """See `RecordProofs.carried`."""
        return proof

    def published_keys(self) -> dict[str, Json]:
        """See `RecordProofs.published_keys`."""
        return self.system.published_keys(self.name, self.tenant)

    def open(self, published: Mapping[str, Json], pins: Pins, *, engine: str = "native") -> OpenedProofs:
        """See `RecordProofs.open`."""
        opened = self.system.open_key(self.name, self.tenant, published, pins)
        return _OpenedSingle(opened, engine, self)


@dataclass(frozen=True)
class _OpenedSingle(Decides[Key]):
    proofs: Single[Key]

    def verify(
        self,
        statements: Sequence[RecordPublic],
        proofs: Sequence[FileProof],
        every: Sequence[RecordPublic],
        *,
        check: Check = at_once,
    ) -> Failures:
        system, name = self.proofs.system, self.proofs.name
        circuit = system.circuit(name, self.proofs.tenant)

        def pair(i: int) -> tuple[bytes, PublicValues]:
            statement, proof = system.statement(name, statements[i]), proofs[i]
            return system.parse_proof(proof.value, circuit, field=proof.field), statement

        return check(OwnProofs(system, self.opened.key, self.engine), Lazy(len(proofs), pair))


class ManyRecords(Protocol[Key, SharedProof]):
    """A system's steps for proofs of `retrieve` that are each for several records of a tenant."""

    @property
    def chained(self) -> bool:
        """See `RecordProofs.chained`."""

    def job(self, records: Mapping[str, tuple[RecordPublic, RecordPrivate]]) -> RecordJob:
        """See `RecordProofs.prove`."""

    def carried(self, proof: dict[str, Json], number: int) -> dict[str, Json]:
        """See `RecordProofs.carried`."""

    def statement(self, record: RecordPublic) -> PublicValues:
        """The public values of one record."""

    def published_keys(self) -> dict[str, Json]:
        """See `RecordProofs.published_keys`."""

    def open_key(self, published: Mapping[str, Json], pins: Pins) -> OpenedKey[Key]:
        """See `RecordProofs.open`."""

    def parse_proof(self, value: Json, *, field: str) -> SharedProof:
        """Read a proof from a file's value, for `verify`."""

    def verify(
        self,
        key: Key,
        proofs: Sequence[SharedProof],
        own: Sequence[PublicValues],
        every: Sequence[PublicValues],
        *,
        engine: str = "native",
        check: Check = at_once,
    ) -> Failures:
        """See `OpenedProofs.verify`."""


@dataclass(frozen=True)
class Several(Generic[Key, SharedProof]):
    """Proofs that are each for several records (`RecordProofs`)."""

    steps: ManyRecords[Key, SharedProof]

    @property
    def chained(self) -> bool:
        """See `RecordProofs.chained`."""
        return self.steps.chained

    def prove(self, statement: Mapping[str, RecordPublic], witness: Sequence[RecordPrivate]) -> RecordJob:
        """See `RecordProofs.prove`. A column that was drawn ahead belongs to one slot, and helps no proof for several
        records."""
        alone = [replace(private, noise_proof=lambda: None) for private in witness]
        pairs = zip(statement.values(), alone, strict=True)
        return self.steps.job(dict(zip(statement, pairs, strict=True)))

    def carried(self, proof: dict[str, Json], number: int) -> dict[str, Json]:
        """See `RecordProofs.carried`."""
        return self.steps.carried(proof, number)

    def published_keys(self) -> dict[str, Json]:
        """See `RecordProofs.published_keys`."""
        return self.steps.published_keys()

    def open(self, published: Mapping[str, Json], pins: Pins, *, engine: str = "native") -> OpenedProofs:
        """See `RecordProofs.open`."""
        return _OpenedSeveral(self.steps.open_key(published, pins), engine, self.steps)


@dataclass(frozen=True)
class _OpenedSeveral(Decides[Key], Generic[Key, SharedProof]):
    steps: ManyRecords[Key, SharedProof]

    def verify(
        self,
        statements: Sequence[RecordPublic],
        proofs: Sequence[FileProof],
        every: Sequence[RecordPublic],
        *,
        check: Check = at_once,
    ) -> Failures:
        steps = self.steps
        parsed = Lazy(len(proofs), lambda i: steps.parse_proof(proofs[i].value, field=proofs[i].field))
        own, stated = ([steps.statement(record) for record in records] for records in (statements, every))
        return steps.verify(self.opened.key, parsed, own, stated, engine=self.engine, check=check)


@dataclass(frozen=True)
class Group:
    """The part of a batch proof that a record carries: the proof, or its digest. The records that it names only select
    among statements that the verifier rebuilds.

    :param records: the digest of each record's public values, in the proof's order
    :param digest: the proof's digest
    :param parts: the proof's parts; None for a record that names the proof by digest
    """

    records: tuple[bytes, ...]
    digest: bytes
    parts: tuple[bytes, ...] | None


def verify_groups(
    proofs: Sequence[Group],
    own: Sequence[bytes],
    known: Container[bytes],
    check: Callable[[Sequence[Group], Container[tuple[bytes, bytes]]], Failures],
) -> Failures:
    """The reasons why batch proofs do not hold for the records that carry them, by index.

    :param proofs: the part that each record carries; each is read once for its names, and a second time for its
        verification
    :param own: the digest of the record that carries each proof
    :param known: the digests of all the tenant's records
    :param check: verifies proofs with only known records, and returns the reasons by index; its second argument tells
        whether a record (by digest) carries or names a proof (by digest)
    """
    same: dict[tuple[bytes, ...], tuple[bytes, ...]] = {}
    read, bad = readable(
        proofs, lambda p: (same.setdefault(p.records, p.records), p.digest, p.parts is not None)
    )
    places = {digest: number for number, (_, digest, carries) in read.items() if carries}
    whole = [n for n in places.values() if all(digest in known for digest in read[n][0])]
    wrong = check(
        Lazy(len(whole), lambda i: proofs[whole[i]]), {(own[n], digest) for n, (_, digest, _) in read.items()}
    )
    reasons = {read[whole[i]][1]: reason for i, reason in wrong.items()}
    for number, (records, digest, _) in read.items():
        result = places.get(digest)
        if own[number] not in records:
            bad[number] = InvalidProof("the proof is for other records")
        elif result is None:
            bad[number] = SchemaError("no record carries the proof that this one names")
        elif read[result][0] != records:
            bad[number] = InvalidProof("the proof covers other records than it states")
        elif digest in reasons:
            bad[number] = reasons[digest]
        elif not all(digest in known for digest in records):
            bad[number] = SchemaError("the proof is also for a record that the ledger does not have")
    return dict(sorted(bad.items()))
