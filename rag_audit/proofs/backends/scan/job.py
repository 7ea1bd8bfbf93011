"""Proving jobs: a slot's noise certificate, made before its query or after, and the query proof of a record."""

from __future__ import annotations

import array
import base64
from collections.abc import Sequence
from dataclasses import dataclass, field

from rag_audit import _native
from rag_audit._internal.canonical import Json
from rag_audit._internal.errors import WitnessError
from rag_audit.proofs.backends.scan import memory
from rag_audit.proofs.backends.scan.key import PROTOCOL, ScanKey
from rag_audit.proofs.statements.retrieve import Statement
from rag_audit.proofs.statements.sample import NoiseCertificate
from rag_audit.relation.field import to_bytes

SLOT = ("c_seed", "beacon", "slot")
RECORD = (*SLOT, "ctx", "cq", "htopk")


@dataclass(frozen=True)
class CertificateJob:
    """The job that makes the noise certificate of one slot. It is picklable, and holds the seed, which `repr` omits.

    :param key: the tenant's key
    :param c_seed: commitment to the seed
    :param beacon: f(beacon value)
    :param slot: the slot
    :param s0: first half of the seed
    :param s1: second half of the seed
    :param low_memory: whether to take less memory and more time for the same certificate
    """

    key: ScanKey
    c_seed: int
    beacon: int
    slot: int
    s0: int = field(repr=False)
    s1: int = field(repr=False)
    low_memory: bool = False

    def run(self) -> NoiseCertificate:
        """The noise certificate.

        :raises WitnessError: the seed is not that of `c_seed`, or a noise word cannot be proved (one in 2^94)
        :raises MemoryLimitError: the machine cannot hold the work
        """
        memory.require_proof(
            lambda low: memory.certificate_bytes(self.key.capacity, self.key.gains, low_memory=low),
            "noise certificate",
            low_memory=self.low_memory,
        )
        slot = b"".join(map(to_bytes, (self.c_seed, self.beacon, self.slot)))
        seed = to_bytes(self.s0) + to_bytes(self.s1)
        try:
            made = _native.scan_certify(self.key.index, self.key.parameters, slot, seed, self.low_memory)
        except ValueError as exc:
            raise WitnessError(
                "there is no noise certificate for this slot", field="slot", found=str(exc)
            ) from exc
        return NoiseCertificate(*made)


@dataclass(frozen=True)
class ProofJob:
    """The job that proves one record. It is picklable, and holds secrets, which `repr` omits.

    :param key: the tenant's key
    :param statement: the public values
    :param certificate: noise certificate of the record's slot, or the job that makes it; None without noise
    :param noise: noise of all positions, int32 little-endian; empty without noise
    :param scores: scores of all positions, int32 little-endian
    :param vector: the query vector, int8
    :param salt_c: salt of cq
    :param salt_k: salt of htopk
    :param positions: the listed positions in rank order
    :param blinding_key: the key from which the index commitment's blindings are derived
    :param low_memory: as for `CertificateJob`
    :param kept: of a sampled tenant, one byte 0 or 1 a position, and the blindings of their commitment
    """

    key: ScanKey
    statement: Statement
    certificate: NoiseCertificate | CertificateJob | None
    noise: bytes = field(repr=False)
    scores: bytes = field(repr=False)
    vector: bytes = field(repr=False)
    salt_c: int = field(repr=False)
    salt_k: int = field(repr=False)
    positions: Sequence[int] = field(repr=False)
    blinding_key: bytes = field(repr=False)
    low_memory: bool = False
    kept: tuple[bytes, bytes] | None = field(repr=False, default=None)

    def run(self) -> dict[str, Json]:
        """The proof as JSON: system, protocol, certificate, proof.

        :raises WitnessError: the private inputs do not satisfy the statement
        :raises MemoryLimitError: the machine cannot hold the work
        """
        memory.require_proof(
            lambda low: memory.query_proof_bytes(self.key.capacity, low_memory=low),
            "query proof",
            low_memory=self.low_memory,
        )
        certificate = self.certificate
        if isinstance(certificate, CertificateJob):
            certificate = certificate.run()
        parts = None
        if certificate is not None:
            parts = (certificate.proof, certificate.commitments, certificate.blindings)
        try:
            proof = _native.scan_prove(
                self.key.index,
                self.key.parameters,
                self.statement.encode(RECORD),
                parts,
                self.noise,
                self.scores,
                (self.vector, to_bytes(self.salt_c)),
                (array.array("i", self.positions).tobytes(), to_bytes(self.salt_k)),
                self.blinding_key,
                self.low_memory,
                self.kept,
            )
        except (ValueError, OverflowError) as exc:
            raise WitnessError("there is no proof for this record", field="record", found=str(exc)) from exc
        return proof_json(b"" if certificate is None else certificate.proof, proof, self.key.protocol)


def proof_json(certificate: bytes, proof: bytes, protocol: str = PROTOCOL) -> dict[str, Json]:
    """A noise certificate, empty without noise, and a query proof as files carry them."""
    return {
        "system": "scan",
        "protocol": protocol,
        "certificate": base64.b64encode(certificate).decode(),
        "proof": base64.b64encode(proof).decode(),
    }
