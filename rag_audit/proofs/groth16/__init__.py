"""Groth16 over BN254: circom circuits, keys, proof jobs and verifiers (docs/circuits.md)."""

from rag_audit.proofs.groth16.embed import EmbedJob, EmbedTable
from rag_audit.proofs.groth16.instance import EmbedInstance, RetrieveInstance, RetrieveManyInstance
from rag_audit.proofs.groth16.job import (
    ENGINES,
    ProofJob,
    parse_key,
    parse_proof,
    proof_json,
    public_inputs,
    refusal,
    verify,
    verify_batch,
)
from rag_audit.proofs.groth16.keys import (
    KeyFiles,
    VerificationKey,
    load_verification_key,
    proving_key,
)
from rag_audit.proofs.groth16.many import ManyProof, RetrieveManyJob, parse_many_proof, verify_many
from rag_audit.proofs.groth16.system import (
    TABLE_ARTEFACT,
    certificate_job,
    check_constants,
    circuits,
    instances,
    many_instance,
    open_key,
    places,
    published_keys,
    record_job,
    shared,
    statement,
)

__all__ = [
    "ENGINES",
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
    "certificate_job",
    "check_constants",
    "circuits",
    "instances",
    "load_verification_key",
    "many_instance",
    "open_key",
    "parse_key",
    "parse_many_proof",
    "parse_proof",
    "places",
    "proof_json",
    "proving_key",
    "public_inputs",
    "published_keys",
    "record_job",
    "refusal",
    "shared",
    "statement",
    "verify",
    "verify_batch",
    "verify_many",
]
