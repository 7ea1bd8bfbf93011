"""The scan argument at one size: `python -m bench.scan [--documents N] [--gains 1,8,64] [--batch B] [--json]`.

Figures are of single steps, after a small proof that makes generators and tables. For each step: seconds, cpu_seconds
(all threads; what to compare while other jobs run) and peak_bytes (the whole process, its index included). Targets at
10^5 documents of 256 components on two cores: certificate 0.6 s (one gain) and 1.5 s (three), query proof 0.5 s, both
proofs together 100 KB, index commitment 10 s; docs/performance.md has them all beside what was measured.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from bench.common import Cost, by_figure, emit, measured, parser
from rag_audit import _native as native
from rag_audit.formats.statements import Statement
from rag_audit.index.engine import Int8Array
from rag_audit.proofs.scan import SYSTEM, CertificateJob, ProofJob, ScanKey, commit_index, verify_batch
from rag_audit.proofs.scan.key import PROTOCOL
from rag_audit.relation.commitments import noise_key, seed_commitment, topk_commitment, vector_commitment
from rag_audit.relation.field import to_bytes

LO, HI, LATTICE = 101, 810, 128
S0, S1, BEACON = 1, 2, 3
BLINDING_KEY = bytes(32)


class Case(NamedTuple):
    """One query of one tenant: what both proof systems prove."""

    rows: Int8Array
    vector: Int8Array
    scores: bytes
    noise: bytes
    positions: list[int]


def make_case(documents: int, dimension: int, gains: tuple[int, ...], listed: int) -> Case:
    """A case from fixed numbers."""
    rng = np.random.default_rng(1)
    rows = rng.integers(-7, 8, (documents, dimension), dtype=np.int8)
    vector = rng.integers(-7, 8, dimension, dtype=np.int8)
    scores = native.PackedIndex(rows.tobytes(), dimension).scores(vector.tobytes())
    noise = native.draw_noise(to_bytes(noise_key(S0, S1, BEACON, 1)), documents, list(gains))
    positions = native.noised_top_k(scores, LO, HI, LATTICE, noise, listed)
    return Case(rows, vector, scores, noise, positions)


def measure(
    documents: int, dimension: int, gains: tuple[int, ...], listed: int, batch: int
) -> dict[str, Any]:
    """All figures: by step, in the units that their names say."""
    costs: dict[str, Cost] = {}
    rows, vector, scores, noise, positions = make_case(documents, dimension, gains, listed)
    costs["index"], points = measured(
        lambda: commit_index(rows.tobytes(), dimension, documents, BLINDING_KEY)
    )
    key = ScanKey(points, dimension, documents, bytes(32), gains, listed, LO, HI, LATTICE)
    costs["index_decoding"], c_idx = measured(lambda: key.c_idx)
    c_seed = seed_commitment(S0, S1)
    statement = Statement(
        ctx=5,
        c_seed=c_seed,
        beacon=BEACON,
        slot=1,
        c_idx=c_idx,
        cq=vector_commitment(7, vector.tolist()),
        htopk=topk_commitment(8, positions),
    )
    costs["certificate"], certificate = measured(CertificateJob(key, c_seed, BEACON, 1, S0, S1).run)
    job = ProofJob(
        key, statement, certificate, noise, scores, vector.tobytes(), 7, 8, positions, BLINDING_KEY
    )
    costs["query_proof"], proof = measured(job.run)
    wire = SYSTEM.parse_proof(proof, PROTOCOL, field="proof")
    costs["verify"], bad = measured(lambda: verify_batch(key, [wire], [statement]))
    costs["batch"], bad_in_batch = measured(lambda: verify_batch(key, [wire] * batch, [statement] * batch))
    if bad or bad_in_batch:
        raise SystemExit("a proof that was just made does not verify")
    return {
        **by_figure(costs),
        "bytes": {"index": len(points), "proofs": len(wire)},
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
        "batch": args.batch,
    }
    measure(min(1000, args.documents), args.dimension, gains, min(5, args.listed), 1)
    native.ScanIndex.commit(bytes(args.dimension), args.dimension, args.documents, BLINDING_KEY)
    figures = measure(args.documents, args.dimension, gains, args.listed, args.batch)
    emit({**head, **figures}, as_json=args.json)


if __name__ == "__main__":
    main()
