"""The scan argument: every score of a large index, without a trusted setup (docs/scan/).

Not yet among `rag_audit.proofs.SYSTEMS`: windows do not publish its index commitments, and A1 is declared only.
"""

from rag_audit.proofs.scan.job import CertificateJob, NoiseCertificate, ProofJob
from rag_audit.proofs.scan.key import (
    PROTOCOL,
    ScanKey,
    commit_index,
    index_digest,
    parse_points,
    points_json,
)
from rag_audit.proofs.scan.verify import parse_proof, proof_json, verify, verify_batch

__all__ = [
    "PROTOCOL",
    "CertificateJob",
    "NoiseCertificate",
    "ProofJob",
    "ScanKey",
    "commit_index",
    "index_digest",
    "parse_points",
    "parse_proof",
    "points_json",
    "proof_json",
    "verify",
    "verify_batch",
]
