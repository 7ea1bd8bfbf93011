"""One proof for several records of one tenant (docs/scan/batch.md).

The first record of a proof carries it. The other records name it by its digest, since the proof is long.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeVar

from rag_audit import _native
from rag_audit._internal.canonical import Json, parse_base64, parse_hex, sha256
from rag_audit._internal.errors import InvalidProof, SchemaError, SetupError, WitnessError
from rag_audit.proofs.backends.scan import memory
from rag_audit.proofs.backends.scan.column import prove_noise
from rag_audit.proofs.backends.scan.engine import engine as engine_of
from rag_audit.proofs.backends.scan.engine import engines
from rag_audit.proofs.backends.scan.job import ProofJob, proof_job, proof_json, prove, retrieve_statement
from rag_audit.proofs.backends.scan.key import (
    PROTOCOL,
    RECORD,
    EmbedKey,
    ScanKey,
    parse_points,
    points_json,
)
from rag_audit.proofs.backends.scan.release import check_pin
from rag_audit.proofs.backends.scan.verify import check_protocol, encoded, refused
from rag_audit.proofs.batch import Check, Failures, Lazy, at_once
from rag_audit.proofs.chunks import in_chunks, narrowed
from rag_audit.proofs.interface import Pins
from rag_audit.proofs.proving import MAX_BATCH
from rag_audit.proofs.records import Group, OpenedKey, verify_groups
from rag_audit.proofs.statements.private import NoiseProof, RecordPrivate
from rag_audit.proofs.statements.retrieve import RecordPublic, Statement
from rag_audit.proofs.statements.tenant import PublicValues

_CARRIES = ("system", "protocol", "records", "noise_proof", "proof")
_NAMES = ("system", "protocol", "records", "proof_digest")

AnyKey = TypeVar("AnyKey", ScanKey, EmbedKey)


def max_batch(capacity: int, gains: int) -> int:
    """Maximum records of one proof, for these numbers of positions and gains."""
    return _native.scan_most_together(capacity, gains)


@dataclass(frozen=True)
class BatchJob:
    """The job that proves several records. It is picklable. It contains secrets, which `repr` omits.

    :param records: the records' own jobs, without finished noise proofs
    :param names: names of the records in errors
    """

    records: tuple[ProofJob, ...]
    names: tuple[str, ...]
    keys: ClassVar[dict[str, str]] = {}

    def run(self) -> dict[str, Json]:
        """The proof as the first record carries it: system, protocol, records, noise proof, proof.

        :raises WitnessError: the records are of several tenants, or private inputs do not satisfy a statement; `field`
            names the record
        :raises MemoryLimitError: the machine has too little memory for the work; the hint has the maximum number of
            records that fit
        """
        first = self.records[0]
        key, slots = first.key, []
        for name, job in zip(self.names, self.records, strict=True):
            if (job.key, job.blinding_key) != (key, first.blinding_key):
                raise WitnessError("a record is of another tenant or window than the rest", field=name)
            if job.kept is not None or isinstance(job.noise_proof, NoiseProof):
                raise WitnessError("the record cannot be proved with others", field=name)
            if job.noise_proof is not None:
                slots.append(job.noise_proof)
        memory.require_batch(key.capacity, key.gains, len(self.records), low_memory=first.low_memory)
        try:
            result = prove_noise(slots) if slots else None
            proof = prove(self.records, result)
        except (ValueError, OverflowError) as exc:
            # The record that also fails when proved separately is at fault; proofs of the others are discarded.
            for name, job in zip(self.names, self.records, strict=True):
                try:
                    job.run()
                except WitnessError as own:
                    raise WitnessError(own.message, field=name, actual=own.actual) from exc
            raise WitnessError(
                "there is no proof for these records", field="records", actual=str(exc)
            ) from exc
        records: list[Json] = [record_digest(job.statement).hex() for job in self.records]
        return {**proof_json(result[0] if result else b"", proof), "records": records}


def record_digest(record: Statement) -> bytes:
    """SHA-256 over a record's public values. A batch proof names each of its records by this digest."""
    return sha256(record.encode(RECORD))


def proof_digest(noise_proof: bytes, proof: bytes) -> bytes:
    """SHA-256 over the length of the noise proof (8 bytes, big-endian), the noise proof and the query proof."""
    return sha256(len(noise_proof).to_bytes(8, "big") + noise_proof + proof)


def parse_carried(value: Json, *, field: str) -> Group:
    """The part of a proof that a record carries, from a file's value.

    :raises SchemaError: other fields, or another system, protocol or number of records
    :raises EncodingError: a field is not canonical
    """
    fields = set(value) if isinstance(value, dict) else set()
    if not isinstance(value, dict) or fields not in (set(_CARRIES), set(_NAMES)):
        raise SchemaError(
            "the value is not a scan proof for several records",
            field=field,
            expected=[sorted(_CARRIES), sorted(_NAMES)],
            actual=sorted(map(str, fields)),
        )
    check_protocol(value, PROTOCOL, field=field)
    records = value["records"]
    if not isinstance(records, list) or not 2 <= len(records) <= MAX_BATCH:
        raise SchemaError(
            "the value is not a list of records", field=f"{field}.records", expected=f"2..{MAX_BATCH}"
        )
    named = tuple(parse_hex(text, 32, field=f"{field}.records[{i}]") for i, text in enumerate(records))
    if "proof" not in value:
        return Group(named, parse_hex(value["proof_digest"], 32, field=f"{field}.proof_digest"), None)
    noise_proof, proof = (parse_base64(value[x], field=f"{field}.{x}") for x in ("noise_proof", "proof"))
    return Group(named, proof_digest(noise_proof, proof), (noise_proof, proof))


def opened_points(
    published: Mapping[str, Json], digest: str, make: Callable[[bytes], AnyKey]
) -> OpenedKey[AnyKey]:
    """The key made from a commitment, which is published under the digest in the window header.

    :param make: makes the key of points
    :raises SetupError: no commitment is published under the digest
    :raises InvalidProof: the points have another digest
    """
    place = f"verification_keys.{digest[:16]}"
    if digest not in published:
        raise SetupError("the window has no commitment of this digest", field=place, expected=digest)
    key = make(parse_points(published[digest], field=place))
    actual = key.digest.hex()
    if actual != digest:
        raise InvalidProof(
            "the commitment is not the window header's", field=place, expected=digest, actual=actual
        )
    return OpenedKey(key, actual, None)


@dataclass(frozen=True)
class Groups:
    """Verifies proofs with the statements of their records (`batch.Checker`)."""

    key: ScanKey
    engine: str

    @property
    def slow(self) -> bool:
        """See `Checker.slow`."""
        return self.engine in engines()[1:]

    def failures(self, items: Sequence[tuple[list[bytes], bytes, bytes]], /) -> Failures:
        """See `Checker.failures`."""
        return in_chunks(engine_of(self.engine).records(self.key), len(items), items.__getitem__, refused)


@dataclass(frozen=True)
class BatchProof:
    """Proofs of `retrieve` for several records of one tenant (`ManyRecords`).

    :param key: the tenant's key of an index commitment's points
    :param c_idx: digest of the index commitment, 64 hexadecimal digits
    :param points: the points, if the caller has them
    """

    key: Callable[[bytes], ScanKey]
    c_idx: str
    points: bytes
    chained = False
    """See `ManyRecords.chained`: records of any accounts share a proof, and the last may be for fewer."""

    def job(self, records: Mapping[str, tuple[RecordPublic, RecordPrivate]]) -> BatchJob:
        """See `ManyRecords.job`."""
        key = self.key(self.points)
        jobs = tuple(proof_job(key, public, private) for public, private in records.values())
        return BatchJob(jobs, tuple(records))

    def carried(self, proof: dict[str, Json], number: int) -> dict[str, Json]:
        """See `ManyRecords.carried`: a proof is long, and only the first record carries it."""
        if number == 0:
            return proof
        digest = parse_carried(proof, field="proof").digest.hex()
        return {name: proof[name] for name in ("system", "protocol", "records")} | {"proof_digest": digest}

    def statement(self, record: RecordPublic) -> Statement:
        """See `ManyRecords.statement`."""
        return retrieve_statement(record)

    def published_keys(self) -> dict[str, Json]:
        """See `ManyRecords.published_keys`."""
        return {self.c_idx: points_json(self.points)}

    def open_key(self, published: Mapping[str, Json], pins: Pins) -> OpenedKey[ScanKey]:
        """See `ManyRecords.open_key`."""
        check_pin(pins)
        return opened_points(published, self.c_idx, self.key)

    def parse_proof(self, value: Json, *, field: str) -> Group:
        """See `ManyRecords.parse_proof`."""
        return parse_carried(value, field=field)

    def verify(
        self,
        key: ScanKey,
        proofs: Sequence[Group],
        own: Sequence[PublicValues],
        every: Sequence[PublicValues],
        *,
        engine: str = "native",
        check: Check = at_once,
    ) -> Failures:
        """See `ManyRecords.verify`; the engines are the engines of `Scan.failures`."""
        known = {record_digest(statement): statement for statement in narrowed(Statement, every)}

        def proved(whole: Sequence[Group], _: Container[tuple[bytes, bytes]]) -> Failures:
            def group(i: int) -> tuple[list[bytes], bytes, bytes]:
                proof = whole[i]
                noise_proof, part = proof.parts or (b"", b"")
                return encoded(key, [known[digest] for digest in proof.records]), noise_proof, part

            return check(Groups(key, engine), Lazy(len(whole), group))

        return verify_groups(proofs, list(map(record_digest, narrowed(Statement, own))), known, proved)
