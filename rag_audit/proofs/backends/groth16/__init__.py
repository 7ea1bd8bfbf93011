"""Groth16 over BN254: circom circuits, keys, proof jobs and verifiers (docs/circuits.md)."""

from rag_audit.proofs.backends.groth16.embed import EmbedJob, EmbedTable
from rag_audit.proofs.backends.groth16.instance import EmbedInstance, RetrieveInstance, RetrieveManyInstance
from rag_audit.proofs.backends.groth16.job import (
    ENGINES,
    ProofJob,
    parse_key,
    parse_proof,
    proof_json,
    public_inputs,
    refusals,
    verify,
    verify_batch,
)
from rag_audit.proofs.backends.groth16.keys import (
    KeyFiles,
    VerificationKey,
    load_verification_key,
    proving_key,
)
from rag_audit.proofs.backends.groth16.many import ManyProof, RetrieveManyJob, parse_many_proof, verify_many
from rag_audit.proofs.backends.groth16.shared import many_instance
from rag_audit.proofs.backends.groth16.system import SYSTEM, TABLE_ARTEFACT, instances

__all__ = [
    "ENGINES",
    "SYSTEM",
    "TABLE_ARTEFACT",
    "EmbedInstance",
    "EmbedJob",
    "EmbedTable",
    "KeyFiles",
    "ManyProof",
    "ProofJob",
    "RetrieveInstance",
    "RetrieveManyInstance",
    "RetrieveManyJob",
    "VerificationKey",
    "instances",
    "load_verification_key",
    "many_instance",
    "parse_key",
    "parse_many_proof",
    "parse_proof",
    "proof_json",
    "proving_key",
    "public_inputs",
    "refusals",
    "verify",
    "verify_batch",
    "verify_many",
]
