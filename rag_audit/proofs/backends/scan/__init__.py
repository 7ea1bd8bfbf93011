"""The scan argument, which proves every score of a large index without a trusted setup (docs/scan/)."""

from rag_audit.proofs.backends.scan.column import CertificateJob
from rag_audit.proofs.backends.scan.embed import EmbedJob
from rag_audit.proofs.backends.scan.job import ProofJob, proof_json
from rag_audit.proofs.backends.scan.key import (
    PROTOCOL,
    EmbedArgument,
    EmbedKey,
    ScanKey,
    commit_index,
    index_digest,
    parse_points,
    points_json,
)
from rag_audit.proofs.backends.scan.release import protocols_digest
from rag_audit.proofs.backends.scan.store import commit_index_file
from rag_audit.proofs.backends.scan.system import SYSTEM, TABLE_ARTEFACT, verify_batch
from rag_audit.proofs.backends.scan.verify import verify
from rag_audit.proofs.statements.private import NoiseCertificate

__all__ = [
    "PROTOCOL",
    "SYSTEM",
    "TABLE_ARTEFACT",
    "CertificateJob",
    "EmbedArgument",
    "EmbedJob",
    "EmbedKey",
    "NoiseCertificate",
    "ProofJob",
    "ScanKey",
    "commit_index",
    "commit_index_file",
    "index_digest",
    "parse_points",
    "points_json",
    "proof_json",
    "protocols_digest",
    "verify",
    "verify_batch",
]
