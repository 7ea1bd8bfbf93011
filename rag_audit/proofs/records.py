"""Proofs about records: the common part of the proof systems (`interface.RecordProofs`). A single record is a batch of
one.

A system supplies the steps for its own key and proof (`RecordSteps`). The classes in this module encapsulate that
key, so that callers handle every system alike.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from rag_audit._internal.canonical import Json
from rag_audit._internal.errors import InvalidProof, SchemaError
from rag_audit.proofs.batch import Check, Checker, Failures, Item, Lazy, at_once
from rag_audit.proofs.chunks import readable
from rag_audit.proofs.interface import FileProof, OpenedProofs, Pins, Setup
from rag_audit.proofs.proving import RecordJob
from rag_audit.proofs.statements.private import RecordPrivate
from rag_audit.proofs.statements.retrieve import RecordPublic
from rag_audit.proofs.statements.tenant import PublicValues

if TYPE_CHECKING:
    from rag_audit.proofs.batch import Value

Key = TypeVar("Key")
"""The key that a system's verifiers need in addition to proofs and statements."""
Opened = TypeVar("Opened", covariant=True)
Item_co = TypeVar("Item_co", bound="Value", covariant=True)


@dataclass(frozen=True)
class OpenedKey(Generic[Opened]):
    """A key that a verifier needs in addition to proofs and statements, checked against its pins.

    :param key: the key for `RecordSteps.checker`
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


class RecordSteps(Protocol[Key, Item]):
    """A system's steps for proofs of one statement about records of one tenant."""

    def job(self, records: Mapping[str, tuple[RecordPublic, RecordPrivate]]) -> RecordJob:
        """See `RecordProofs.prove`."""

    def carried(self, proof: dict[str, Json], number: int) -> dict[str, Json]:
        """See `RecordProofs.carried`."""

    def statement(self, record: RecordPublic) -> PublicValues:
        """The public values of one record.

        :raises SchemaError: the ledger or the manifest lacks a commitment that the statement names
        """

    def digest(self, statement: PublicValues) -> bytes:
        """The digest by which a proof names a record with these public values, 32 bytes."""

    def published_keys(self) -> dict[str, Json]:
        """See `RecordProofs.published_keys`."""

    def open_key(self, published: Mapping[str, Json], pins: Pins) -> OpenedKey[Key]:
        """See `RecordProofs.open`."""

    def parse_proof(self, value: Json, *, field: str) -> Group:
        """The part of a proof that a record carries, from a file's value.

        :raises SchemaError: the proof has other fields, is of another system or circuit, or lists another number of
            records
        :raises EncodingError: a field is not canonical, or a point is not on the curve
        """

    def reader(self, key: Key, every: Sequence[PublicValues]) -> Reader[Item]:
        """The function that makes the checker's item of a proof.

        :param every: the public values of all the tenant's records
        """

    def checker(self, key: Key, engine: str) -> Checker[Item]:
        """Verifies items under the key."""


class Reader(Protocol[Item_co]):
    """Makes the item of a proof for a checker."""

    def __call__(
        self, proof: Group, records: Sequence[PublicValues], carried: Container[tuple[bytes, bytes]], /
    ) -> Item_co:
        """The item.

        :param records: the public values of the proof's records, in the proof's order
        :param carried: whether a record (by digest) carries or names a proof (by digest)
        :raises InvalidProof: no proof can hold for these records
        """


@dataclass(frozen=True)
class Records(Generic[Key, Item]):
    """Proofs of one statement, each for one record or several (`RecordProofs`)."""

    steps: RecordSteps[Key, Item]

    def prove(self, statement: Mapping[str, RecordPublic], witness: Sequence[RecordPrivate]) -> RecordJob:
        """See `RecordProofs.prove`. A precomputed noise proof belongs to one slot, and helps no proof for several
        records."""
        if len(witness) > 1:
            witness = [replace(private, noise_proof=lambda: None) for private in witness]
        pairs = zip(statement.values(), witness, strict=True)
        return self.steps.job(dict(zip(statement, pairs, strict=True)))

    def carried(self, proof: dict[str, Json], number: int) -> dict[str, Json]:
        """See `RecordProofs.carried`."""
        return self.steps.carried(proof, number)

    def published_keys(self) -> dict[str, Json]:
        """See `RecordProofs.published_keys`."""
        return self.steps.published_keys()

    def open(self, published: Mapping[str, Json], pins: Pins, *, engine: str = "native") -> OpenedProofs:
        """See `RecordProofs.open`."""
        return OpenedRecords(self.steps.open_key(published, pins), engine, self.steps)


@dataclass(frozen=True)
class OpenedRecords(Decides[Key], Generic[Key, Item]):
    """`OpenedProofs` of `Records`."""

    steps: RecordSteps[Key, Item]

    def verify(
        self,
        statements: Sequence[RecordPublic],
        proofs: Sequence[FileProof],
        every: Sequence[RecordPublic],
        *,
        check: Check = at_once,
    ) -> Failures:
        """See `OpenedProofs.verify`."""
        steps = self.steps
        parsed = Lazy(len(proofs), lambda i: steps.parse_proof(proofs[i].value, field=proofs[i].field))
        own = Lazy(len(statements), lambda i: steps.statement(statements[i]))
        stated = Lazy(len(every), lambda i: steps.statement(every[i]))
        return verify_records(steps, self.opened.key, parsed, own, stated, engine=self.engine, check=check)


def verify_records(
    steps: RecordSteps[Key, Item],
    key: Key,
    proofs: Sequence[Group],
    own: Sequence[PublicValues],
    every: Sequence[PublicValues],
    *,
    engine: str = "native",
    check: Check = at_once,
) -> Failures:
    """See `OpenedProofs.verify`, for parsed proofs and public values. The names in a proof only select among statements
    rebuilt by the verifier, and the checker takes the values of these statements.
    """
    digests, _ = readable(every, steps.digest)
    known = {digest: number for number, digest in digests.items()}
    read = steps.reader(key, every)

    def proved(whole: Sequence[Group], carried: Container[tuple[bytes, bytes]]) -> Failures:
        def item(i: int) -> Item:
            proof = whole[i]
            return read(proof, [every[known[digest]] for digest in proof.records], carried)

        return check(steps.checker(key, engine), Lazy(len(whole), item))

    return verify_groups(proofs, Lazy(len(own), lambda i: steps.digest(own[i])), known, proved)


@dataclass(frozen=True)
class Group:
    """The part of a proof that a record carries: the proof, or its digest. The records that it names only select among
    statements that the verifier rebuilds.

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
    """The reasons why proofs do not hold for the records that carry them, by index.

    :param proofs: the part that each record carries; each is read once for its names, and a second time for its
        verification
    :param own: the digest of the record that carries each proof, read on demand as `proofs`
    :param known: the digests of all the tenant's records
    :param check: verifies proofs with only known records, and returns the reasons by index; its second argument tells
        whether a record (by digest) carries or names a proof (by digest)
    """
    same: dict[tuple[bytes, ...], tuple[bytes, ...]] = {}

    def named(member: tuple[bytes, Group]) -> tuple[bytes, tuple[tuple[bytes, ...], bytes], bool]:
        record, proof = member
        records = same.setdefault(proof.records, proof.records)
        return record, (records, proof.digest), proof.parts is not None

    read, bad = readable(Lazy(len(proofs), lambda i: (own[i], proofs[i])), named)
    # Bytes that several records carry under different lists of records are different proofs.
    places = {name: number for number, (_, name, carries) in read.items() if carries}
    whole = {name: n for name, n in places.items() if all(digest in known for digest in name[0])}
    numbers = [*whole.values()]
    wrong = check(
        Lazy(len(numbers), lambda i: proofs[numbers[i]]),
        {(record, digest) for record, (_, digest), _ in read.values()},
    )
    reasons = {name: wrong[i] for i, name in enumerate(whole) if i in wrong}
    published = {digest for _, digest in places}
    for number, (record, name, _) in read.items():
        if record not in name[0]:
            bad[number] = InvalidProof("the proof is for other records")
        elif name not in places and name[1] not in published:
            bad[number] = SchemaError("no record carries the proof that this one names")
        elif name not in places:
            bad[number] = InvalidProof("the proof covers other records than it states")
        elif name in reasons:
            bad[number] = reasons[name]
        elif name not in whole:
            bad[number] = SchemaError("the proof is also for a record that the ledger does not have")
    return dict(sorted(bad.items()))
