"""The scan argument: every score of a large index, without a trusted setup (docs/scan/)."""

from rag_audit.proofs.scan.embed import EmbedArgument, EmbedJob, EmbedKey
from rag_audit.proofs.scan.job import CertificateJob, NoiseCertificate, ProofJob, proof_json
from rag_audit.proofs.scan.key import (
    PROTOCOL,
    ScanKey,
    commit_index,
    index_digest,
    parse_points,
    points_json,
)
from rag_audit.proofs.scan.release import protocols_digest
from rag_audit.proofs.scan.store import commit_index_file
from rag_audit.proofs.scan.system import (
    TABLE_ARTEFACT,
    certificate_job,
    check_constants,
    circuits,
    keyed,
    open_key,
    parse_proof,
    places,
    published_keys,
    record_job,
    refusals,
    shared,
    statement,
    verify_batch,
)
from rag_audit.proofs.scan.verify import verify

__all__ = [
    "PROTOCOL",
    "TABLE_ARTEFACT",
    "CertificateJob",
    "EmbedArgument",
    "EmbedJob",
    "EmbedKey",
    "NoiseCertificate",
    "ProofJob",
    "ScanKey",
    "certificate_job",
    "check_constants",
    "circuits",
    "commit_index",
    "commit_index_file",
    "index_digest",
    "keyed",
    "open_key",
    "parse_points",
    "parse_proof",
    "places",
    "points_json",
    "proof_json",
    "protocols_digest",
    "published_keys",
    "record_job",
    "refusals",
    "shared",
    "statement",
    "verify",
    "verify_batch",
]
