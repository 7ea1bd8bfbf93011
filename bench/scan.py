"""The scan argument at one size: `python -m bench.scan [--documents N] [--gains 1,8,64] [--batch B] [--json]`.

Times are of single runs, the certificate's and proof's after one warm-up that makes generators and tables; peak_bytes
is the process's peak so far at the end. Targets at 10^5 documents of 256 components on two cores: certificate 0.6 s
(one gain) and 1.5 s (three), query proof 0.5 s, both proofs together 100 KB, index commitment 10 s.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from bench.common import emit, parser
from rag_audit import _native as native
from rag_audit.proofs import Statement
from rag_audit.proofs.scan import CertificateJob, ProofJob, ScanKey, commit_index, parse_proof, verify_batch
from rag_audit.proofs.scan.key import PROTOCOL
from rag_audit.relation.commitments import noise_key, seed_commitment, topk_commitment, vector_commitment
from rag_audit.relation.field import to_bytes

T = TypeVar("T")

LO, HI, LATTICE = 101, 810, 128
S0, S1, BEACON = 1, 2, 3
BLINDING_KEY = bytes(32)


def timed(work: Callable[[], T]) -> tuple[float, T]:
    """Seconds, and what came out."""
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


def measure(
    documents: int, dimension: int, gains: tuple[int, ...], listed: int, batch: int
) -> dict[str, Any]:
    """All figures, in the units that their names say."""
    rng = np.random.default_rng(1)
    rows = rng.integers(-7, 8, (documents, dimension), dtype=np.int8)
    packed = native.PackedIndex(rows.tobytes(), dimension)
    native.ScanIndex.commit(rows[:1].tobytes(), dimension, documents, BLINDING_KEY)
    commit_s, points = timed(lambda: commit_index(rows.tobytes(), dimension, documents, BLINDING_KEY))
    key = ScanKey(points, dimension, documents, bytes(32), gains, listed, LO, HI, LATTICE)
    decode_s, c_idx = timed(lambda: key.c_idx)
    c_seed = seed_commitment(S0, S1)

    def answer(slot: int) -> tuple[float, float, Statement, dict[str, Any]]:
        vector = rng.integers(-7, 8, dimension, dtype=np.int8)
        scores = packed.scores(vector.tobytes())
        noise = native.draw_noise(to_bytes(noise_key(S0, S1, BEACON, slot)), documents, list(gains))
        positions = native.noised_top_k(scores, LO, HI, LATTICE, noise, listed)
        statement = Statement(
            ctx=5,
            c_seed=c_seed,
            beacon=BEACON,
            slot=slot,
            c_idx=c_idx,
            cq=vector_commitment(7, vector.tolist()),
            htopk=topk_commitment(8, positions),
        )
        certify_s, certificate = timed(CertificateJob(key, c_seed, BEACON, slot, S0, S1).run)
        job = ProofJob(
            key, statement, certificate, noise, scores, vector.tobytes(), 7, 8, positions, BLINDING_KEY
        )
        prove_s, proof = timed(job.run)
        return certify_s, prove_s, statement, proof

    answer(1)
    certify_s, prove_s, statement, proof = answer(2)
    wire = parse_proof(proof, PROTOCOL, field="proof")
    verify_s, bad = timed(lambda: verify_batch(key, [wire], [statement]))
    batch_s, bad_in_batch = timed(lambda: verify_batch(key, [wire] * batch, [statement] * batch))
    if bad or bad_in_batch:
        raise SystemExit("a proof that was just made does not verify")
    return {
        "index_commitment_s": commit_s,
        "index_decoding_s": decode_s,
        "index_bytes": len(points),
        "certificate_s": certify_s,
        "query_proof_s": prove_s,
        "proof_bytes": len(wire),
        "verify_s": verify_s,
        "batch": batch,
        "batch_s": batch_s,
        "peak_bytes": 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss,
    }


def main() -> None:
    """Measure and print."""
    options = parser(__doc__)
    options.add_argument("--documents", type=int, default=10_000)
    options.add_argument("--dimension", type=int, default=256)
    options.add_argument("--gains", default="1", help="comma-separated")
    options.add_argument("--listed", type=int, default=5)
    options.add_argument("--batch", type=int, default=10)
    options.add_argument("--threads", type=int, default=native.threads())
    args = options.parse_args()
    native.set_threads(args.threads)
    gains = tuple(int(g) for g in args.gains.split(","))
    head = {
        "documents": args.documents,
        "dimension": args.dimension,
        "gains": list(gains),
        "listed": args.listed,
        "threads": args.threads,
    }
    figures = measure(args.documents, args.dimension, gains, args.listed, args.batch)
    emit({**head, **figures}, as_json=args.json)


if __name__ == "__main__":
    main()
