"""One proof for several records of one tenant (docs/scan/together.md).

The record that stands first in a proof carries it, and the others name it by digest, since it is long.
"""

from __future__ import annotations

import array
import base64
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, cast

from rag_audit import _native
from rag_audit._internal.canonical import Json, parse_base64, parse_hex, sha256
from rag_audit._internal.errors import InvalidProof, RagAuditError, SchemaError, SetupError, WitnessError
from rag_audit.proofs.backends.scan import memory, reference
from rag_audit.proofs.backends.scan.embed import EmbedKey
from rag_audit.proofs.backends.scan.job import RECORD, CertificateJob, ProofJob
from rag_audit.proofs.backends.scan.key import TOGETHER_PROTOCOL, ScanKey, parse_points, points_json
from rag_audit.proofs.backends.scan.release import check_pin
from rag_audit.proofs.backends.scan.verify import refused
from rag_audit.proofs.batch import Check, Lazy, NativeBatch, Refusals, at_once, in_chunks, readable
from rag_audit.proofs.interface import MOST_TOGETHER, OpenedKey, Pins, RecordJob
from rag_audit.proofs.statements.retrieve import Statement
from rag_audit.proofs.statements.tenant import PublicValues
from rag_audit.relation.field import to_bytes

_CARRIES = ("system", "protocol", "records", "certificate", "proof")
_NAMES = ("system", "protocol", "records", "proof_digest")

AnyKey: TypeAlias = ScanKey | EmbedKey
"""The key of any scan proof; those for several records are of `retrieve`, and have the tenant's."""


def most_together(capacity: int, gains: int) -> int:
    """The most records that one proof can be for, of so many positions and gains."""
    return _native.scan_most_together(capacity, gains)


@dataclass(frozen=True)
class TogetherJob:
    """The job that proves several records. It is picklable, and holds secrets, which `repr` omits.

    :param records: the records' own jobs, whose certificates are not made yet
    :param names: names of the records in errors
    """

    records: tuple[ProofJob, ...]
    names: tuple[str, ...]

    def run(self) -> dict[str, Json]:
        """The proof as the first record carries it: system, protocol, records, certificate, proof.

        :raises WitnessError: the records are of several tenants, or private inputs do not satisfy a statement; `field`
            names the record
        :raises MemoryLimitError: the machine cannot hold the work; the hint has the most records that it can
        """
        first = self.records[0]
        key = first.key
        for name, job in zip(self.names, self.records, strict=True):
            if (job.key, job.blinding_key) != (key, first.blinding_key):
                raise WitnessError("a record is of another tenant or window than the rest", field=name)
        memory.require_together(key.capacity, key.gains, len(self.records), low_memory=first.low_memory)
        try:
            certificate, proof = _native.scan_prove_together(
                key.index,
                key.parameters,
                [_asked(name, job) for name, job in zip(self.names, self.records, strict=True)],
                first.blinding_key,
                first.low_memory,
            )
        except (ValueError, OverflowError) as exc:
            # The record that has no proof of its own either is the one; proofs of the others are not kept.
            for name, job in zip(self.names, self.records, strict=True):
                try:
                    job.run()
                except WitnessError as own:
                    raise WitnessError(own.message, field=name, found=own.found) from exc
            raise WitnessError(
                "there is no proof for these records", field="records", found=str(exc)
            ) from exc
        return {
            "system": "scan",
            "protocol": TOGETHER_PROTOCOL,
            "records": [record_digest(job.statement).hex() for job in self.records],
            "certificate": base64.b64encode(certificate).decode(),
            "proof": base64.b64encode(proof).decode(),
        }


def _asked(name: str, job: ProofJob) -> tuple[bytes, bytes, bytes, tuple[bytes, bytes], tuple[bytes, bytes]]:
    """A record as the native core takes it."""
    certificate = job.certificate
    if job.kept is not None or not (certificate is None or isinstance(certificate, CertificateJob)):
        raise WitnessError("the record cannot be proved with others", field=name)
    seed = bytes(64) if certificate is None else to_bytes(certificate.s0) + to_bytes(certificate.s1)
    return (
        job.statement.encode(RECORD),
        seed,
        job.scores,
        (job.vector, to_bytes(job.salt_c)),
        (array.array("i", job.positions).tobytes(), to_bytes(job.salt_k)),
    )


def record_digest(record: Statement) -> bytes:
    """SHA-256 over a record's public values, by which a proof of several records names each of them."""
    return sha256(record.encode(RECORD))


@dataclass(frozen=True)
class Carried:
    """What a record carries of a proof for several: the proof, or its digest. The records that it names only select
    among statements that the verifier rebuilds.

    :param records: `record_digest` of each record, in the proof's order
    :param digest: of certificate and proof
    :param parts: certificate and proof; None of a record that names them
    """

    records: tuple[bytes, ...]
    digest: bytes
    parts: tuple[bytes, bytes] | None


def proof_digest(certificate: bytes, proof: bytes) -> bytes:
    """SHA-256 over the length of the certificate (8 bytes, big-endian), the certificate and the proof."""
    return sha256(len(certificate).to_bytes(8, "big") + certificate + proof)


def parse_carried(value: Json, *, field: str) -> Carried:
    """What a record carries, from a file's value.

    :raises SchemaError: other fields, or another system, protocol or number of records
    :raises EncodingError: a field is not canonical
    """
    fields = set(value) if isinstance(value, dict) else set()
    if not isinstance(value, dict) or fields not in (set(_CARRIES), set(_NAMES)):
        raise SchemaError(
            "the value is not a scan proof for several records",
            field=field,
            expected=[sorted(_CARRIES), sorted(_NAMES)],
            found=sorted(map(str, fields)),
        )
    for name, expected in (("system", "scan"), ("protocol", TOGETHER_PROTOCOL)):
        if value[name] != expected:
            raise SchemaError(
                "the proof is of another system",
                field=f"{field}.{name}",
                expected=expected,
                found=value[name],
            )
    records = value["records"]
    if not isinstance(records, list) or not 2 <= len(records) <= MOST_TOGETHER:
        raise SchemaError(
            "the value is not a list of records", field=f"{field}.records", expected=f"2..{MOST_TOGETHER}"
        )
    named = tuple(parse_hex(text, 32, field=f"{field}.records[{i}]") for i, text in enumerate(records))
    if "proof" not in value:
        return Carried(named, parse_hex(value["proof_digest"], 32, field=f"{field}.proof_digest"), None)
    certificate, proof = (parse_base64(value[x], field=f"{field}.{x}") for x in ("certificate", "proof"))
    return Carried(named, proof_digest(certificate, proof), (certificate, proof))


def opened_points(
    published: Mapping[str, Json], digest: str, make: Callable[[bytes], AnyKey]
) -> OpenedKey[AnyKey]:
    """The key that a commitment makes, which is published under the digest to which the opening commits.

    :param make: makes the key of points
    :raises SetupError: nothing is published under the digest
    :raises InvalidProof: the points have another digest
    """
    place = f"verification_keys.{digest[:16]}"
    if digest not in published:
        raise SetupError("the window has no commitment of this digest", field=place, expected=digest)
    key = make(parse_points(published[digest], field=place))
    found = key.digest.hex()
    if found != digest:
        raise InvalidProof("the commitment is not the opening's", field=place, expected=digest, found=found)
    return OpenedKey(key, found, None)


@dataclass(frozen=True)
class Groups:
    """What verifies proofs with the statements of their records (`batch.Checker`)."""

    key: ScanKey
    engine: str

    @property
    def slow(self) -> bool:
        """See `Checker.slow`."""
        return self.engine == reference.ENGINE

    def refusals(self, items: Sequence[tuple[list[bytes], bytes, bytes]], /) -> Refusals:
        """See `Checker.refusals`."""
        batch: NativeBatch[tuple[list[bytes], bytes, bytes]]
        if self.slow:
            batch = reference.together(self.key)
        else:
            batch = _native.ScanTogetherBatch(self.key.index, self.key.parameters)
        return in_chunks(batch, len(items), items.__getitem__, refused)


@dataclass(frozen=True)
class Together:
    """Proofs of `retrieve` for several records of one tenant (`SharedProofs`).

    :param key: the tenant's key of an index commitment's points
    :param c_idx: digest of the index commitment, 64 hexadecimal digits
    :param points: the points, of whoever has them
    """

    key: Callable[[bytes], ScanKey]
    c_idx: str
    points: bytes

    @property
    def chained(self) -> bool:
        """See `SharedProofs.chained`: records of any accounts share a proof, and the last may be for fewer."""
        return False

    def job(self, jobs: Mapping[str, RecordJob]) -> TogetherJob:
        """See `SharedProofs.job`; the jobs are those of `Scan.record_job` for `retrieve`."""
        return TogetherJob(cast("tuple[ProofJob, ...]", tuple(jobs.values())), tuple(jobs))

    def carried(self, proof: dict[str, Json], number: int) -> dict[str, Json]:
        """See `SharedProofs.carried`."""
        if number == 0:
            return proof
        digest = parse_carried(proof, field="proof").digest.hex()
        return {name: proof[name] for name in ("system", "protocol", "records")} | {"proof_digest": digest}

    def published_keys(self) -> dict[str, Json]:
        """See `SharedProofs.published_keys`."""
        return {self.c_idx: points_json(self.points)}

    def open_key(self, published: Mapping[str, Json], pins: Pins) -> OpenedKey[AnyKey]:
        """See `SharedProofs.open_key`."""
        check_pin(pins, together=True)
        return opened_points(published, self.c_idx, self.key)

    def parse_proof(self, value: Json, *, field: str) -> Carried:
        """See `SharedProofs.parse_proof`."""
        return parse_carried(value, field=field)

    def verify(
        self,
        key: AnyKey,
        proofs: Sequence[Carried],
        own: Sequence[PublicValues],
        every: Sequence[PublicValues],
        *,
        engine: str = "native",
        check: Check = at_once,
    ) -> dict[int, RagAuditError]:
        """See `SharedProofs.verify`; engines are those of `Scan.refusals`."""
        assert isinstance(key, ScanKey)
        statements = cast("Sequence[Statement]", every)
        known = {record_digest(statement): statement for statement in statements}
        # A proof is long: it is read once for what it names, and again when its turn comes.
        places: dict[bytes, int] = {}
        same: dict[tuple[bytes, ...], tuple[bytes, ...]] = {}
        read, bad = readable(
            proofs, lambda p: (same.setdefault(p.records, p.records), p.digest, p.parts is not None)
        )
        for number, (_, digest, carries) in read.items():
            if carries:
                places[digest] = number
        whole = [n for n in places.values() if all(digest in known for digest in read[n][0])]

        def group(i: int) -> tuple[list[bytes], bytes, bytes]:
            proof = proofs[whole[i]]
            records = [known[digest] for digest in proof.records]
            other = next((r for r in records if r.c_idx != key.c_idx), None)
            if other is not None:
                raise InvalidProof(
                    "the index is of another record", field="c_idx", expected=other.c_idx, found=key.c_idx
                )
            certificate, parts = proof.parts or (b"", b"")
            return [record.encode(RECORD) for record in records], certificate, parts

        wrong = check(Groups(key, engine), Lazy(len(whole), group))
        reasons = {read[whole[i]][1]: reason for i, reason in wrong.items()}
        for number, (records, digest, _) in read.items():
            found = places.get(digest)
            if record_digest(cast(Statement, own[number])) not in records:
                bad[number] = InvalidProof("the proof is for other records")
            elif found is None:
                bad[number] = SchemaError("no record carries the proof that this one names")
            elif read[found][0] != records:
                bad[number] = InvalidProof("the proof is for other records than this one says")
            elif digest in reasons:
                bad[number] = reasons[digest]
            elif not all(digest in known for digest in records):
                bad[number] = SchemaError("the proof is also for a record that the ledger does not have")
        return bad
