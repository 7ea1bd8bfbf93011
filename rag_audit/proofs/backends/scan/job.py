"""The proving job of a record, which takes its slot's noise proof or makes it."""

from __future__ import annotations

import array
import base64
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from rag_audit import _native
from rag_audit._internal.canonical import Json
from rag_audit._internal.errors import WitnessError
from rag_audit.proofs.backends.scan import memory
from rag_audit.proofs.backends.scan.column import SlotProofJob
from rag_audit.proofs.backends.scan.key import PROTOCOL, RECORD, ScanKey
from rag_audit.proofs.statements.private import NoiseProof, RecordPrivate
from rag_audit.proofs.statements.retrieve import RecordPublic, Statement
from rag_audit.relation.field import digest_to_field, to_bytes


@dataclass(frozen=True)
class ProofJob:
    """The job that proves one record. It is picklable. It contains secrets, which `repr` omits.

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
    :param kept: for a tenant with a sample, one byte 0 or 1 per position, and the blindings of their commitment
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
    kept: tuple[bytes, bytes] | None = field(repr=False, default=None)
    keys: ClassVar[dict[str, str]] = {}

    def run(self) -> dict[str, Json]:
        """The proof as JSON: system, protocol, noise proof, proof.

        :raises WitnessError: the private inputs do not satisfy the statement
        :raises MemoryLimitError: the machine has too little memory for the work
        """
        memory.require_proof(
            lambda low: memory.query_proof_bytes(self.key.capacity, low_memory=low),
            "query proof",
            low_memory=self.low_memory,
        )
        result = self.noise_proof
        if isinstance(result, SlotProofJob):
            result = result.run()
        noise_proof = None if result is None else (result.proof, [result.commitments], [result.blindings])
        try:
            proof = prove([self], noise_proof)
        except (ValueError, OverflowError) as exc:
            raise WitnessError("there is no proof for this record", field="record", actual=str(exc)) from exc
        return proof_json(b"" if result is None else result.proof, proof)


def prove(records: Sequence[ProofJob], noise_proof: tuple[bytes, list[bytes], list[bytes]] | None) -> bytes:
    """The query proof of records of one tenant and window.

    :param noise_proof: the noise proof of the records' slots, as `prove_noise` makes it; None without noise
    :raises ValueError, OverflowError: private inputs do not satisfy a statement
    """
    first = records[0]
    requested = [
        (
            record.statement.encode(RECORD),
            record.noise,
            record.scores,
            (record.vector, to_bytes(record.salt_c)),
            (array.array("i", record.positions).tobytes(), to_bytes(record.salt_k)),
        )
        for record in records
    ]
    return _native.scan_prove(
        first.key.index,
        first.key.parameters,
        requested,
        noise_proof,
        first.blinding_key,
        first.low_memory,
        first.kept,
    )


def proof_json(noise_proof: bytes, proof: bytes) -> dict[str, Json]:
    """A noise proof, empty without noise, and a query proof, in their file form."""
    return {
        "system": "scan",
        "protocol": PROTOCOL,
        "noise_proof": base64.b64encode(noise_proof).decode(),
        "proof": base64.b64encode(proof).decode(),
    }


def retrieve_statement(record: RecordPublic) -> Statement:
    """The public values of a record's proof, with the digest C_idx as a field element."""
    return record.retrieve(digest_to_field(bytes.fromhex(record.tenant.c_idx)))


def proof_job(key: ScanKey, record: RecordPublic, private: RecordPrivate) -> ProofJob:
    """The job that proves a record of a tenant that lists the first K."""
    noisy = bool(record.tenant.constants.gains)
    noise_proof: NoiseProof | SlotProofJob | None = None
    if noisy:
        noise_proof = private.noise_proof() or SlotProofJob.of(
            key, record, private.s0, private.s1, low_memory=private.low_memory
        )
    return ProofJob(
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
        kept=private.kept,
    )
