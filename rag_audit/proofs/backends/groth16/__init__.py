"""Groth16 over BN254: circom circuits, keys, proof jobs and verifiers (docs/circuits.md)."""

from rag_audit.proofs.backends.groth16.embed import EmbedJob, EmbedTable
from rag_audit.proofs.backends.groth16.instance import EmbedInstance, RetrieveInstance
from rag_audit.proofs.backends.groth16.job import RecordsJob, RetrieveInputs
from rag_audit.proofs.backends.groth16.keys import (
    KeyFiles,
    VerificationKey,
    load_verification_key,
    proving_key,
)
from rag_audit.proofs.backends.groth16.shared import record_instance
from rag_audit.proofs.backends.groth16.system import SYSTEM, TABLE_ARTEFACT, instances
from rag_audit.proofs.backends.groth16.verifiers import (
    ENGINES,
    ManyProof,
    parse_key,
    parse_many_proof,
    parse_proof,
    proof_json,
    public_inputs,
    refusals,
    verify,
    verify_batch,
    verify_many,
)

__all__ = [
    "ENGINES",
    "SYSTEM",
    "TABLE_ARTEFACT",
    "EmbedInstance",
    "EmbedJob",
    "EmbedTable",
    "KeyFiles",
    "ManyProof",
    "RecordsJob",
    "RetrieveInputs",
    "RetrieveInstance",
    "VerificationKey",
    "instances",
    "load_verification_key",
    "parse_key",
    "parse_many_proof",
    "parse_proof",
    "proof_json",
    "proving_key",
    "public_inputs",
    "record_instance",
    "refusals",
    "verify",
    "verify_batch",
    "verify_many",
]
