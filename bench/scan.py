"""The scan argument at one size: `python -m bench.scan [--documents N] [--gains 1,8,64] [--batch B] [--mechanisms]`.

The script first makes a small proof, which makes the generators and tables. It then measures single steps: seconds,
cpu_seconds (all threads; compare this figure while other jobs run) and peak_bytes (the whole process, including its
index).

Targets at 10^5 documents of 256 components on two cores:

- noise proof (`noise_proof`): 0.6 s (one gain) and 1.5 s (three);
- query proof: 0.5 s;
- size of both proofs: 100 KB in total;
- index commitment: 10 s.

docs/performance.md lists all targets and the measured figures. With `--mechanisms` the same process also measures
tenants with sampling: the sampling proof, and a sampled query without noise.
"""

from __future__ import annotations

from base64 import b64decode
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from bench.common import Cost, by_figure, emit, measured, parsed, parser
from bench.proofs import job, parts, verify_batch
from rag_audit import _native as native
from rag_audit.mechanisms.base import SAMPLE
from rag_audit.proofs.backends.scan.column import ColumnJob, SlotProofJob
from rag_audit.proofs.backends.scan.key import (
    SLOT,
    ScanKey,
    commit_index,
)
from rag_audit.proofs.backends.scan.retrieve import RecordInputs
from rag_audit.proofs.statements.retrieve import Statement
from rag_audit.relation.commitments import noise_key, seed_commitment, topk_commitment, vector_commitment
from rag_audit.relation.field import to_bytes
from rag_audit.retrieval.engine import Int8Array

LO, HI, LATTICE = 101, 810, 128
S0, S1, BEACON = 1, 2, 3
EXACT_LATTICE, KEEP = 1024, round(0.9 * 2**40)
BLINDING_KEY = bytes(32)


class Case(NamedTuple):
    """One query of one tenant: the common input of both proof systems."""

    rows: Int8Array
    vector: Int8Array
    scores: bytes
    noise: bytes
    positions: list[int]

    def statement(self, c_idx: int) -> Statement:
        """Return the public values of the query's record, over the index of that commitment."""
        return Statement(
            ctx=5,
            c_seed=seed_commitment(S0, S1),
            beacon=BEACON,
            slot=1,
            c_idx=c_idx,
            cq=vector_commitment(7, self.vector.tolist()),
            htopk=topk_commitment(8, self.positions),
        )


def make_case(documents: int, dimension: int, gains: tuple[int, ...], listed: int) -> Case:
    """Make a case from fixed numbers."""
    rng = np.random.default_rng(1)
    rows = rng.integers(-7, 8, (documents, dimension), dtype=np.int8)
    vector = rng.integers(-7, 8, dimension, dtype=np.int8)
    scores = native.PackedIndex(rows.tobytes(), dimension).scores(vector.tobytes())
    noise = native.draw_noise(to_bytes(noise_key(S0, S1, BEACON, 1)), documents, list(gains))
    positions = native.noised_top_k(scores, LO, HI, LATTICE, noise, listed)
    return Case(rows, vector, scores, noise, positions)


def measure(
    documents: int,
    dimension: int,
    gains: tuple[int, ...],
    listed: int,
    batch: int,
    *,
    mechanisms: bool = False,
) -> dict[str, Any]:
    """Return all figures: by step, in the units in their names."""
    costs: dict[str, Cost] = {}
    case = make_case(documents, dimension, gains, listed)
    rows, vector, scores, noise, positions = case
    costs["index"], points = measured(
        lambda: commit_index(rows.tobytes(), dimension, documents, BLINDING_KEY)
    )
    key = ScanKey(points, dimension, documents, bytes(32), gains, listed, LO, HI, LATTICE)
    costs["index_decoding"], c_idx = measured(lambda: key.c_idx)
    statement = case.statement(c_idx)
    costs["noise_proof"], noise_proof = measured(SlotProofJob(key, statement.c_seed, BEACON, 1, S0, S1).run)
    inputs = RecordInputs(
        key, statement, noise_proof, noise, scores, vector.tobytes(), 7, 8, positions, BLINDING_KEY
    )
    costs["query_proof"], proof = measured(job(inputs).run)
    wire = parts(key, proof)
    costs["verify"], bad = measured(lambda: verify_batch(key, [wire], [statement]))
    costs["batch"], bad_in_batch = measured(lambda: verify_batch(key, [wire] * batch, [statement] * batch))
    if bad or bad_in_batch:
        raise SystemExit("a proof that was just made does not verify")
    sizes = {"index": len(points), "proofs": sum(map(len, wire))}
    if mechanisms:
        more, more_sizes = measure_mechanisms(key, case, statement, batch)
        costs, sizes = costs | more, sizes | more_sizes
    return {**by_figure(costs), "bytes": sizes}


def measure_mechanisms(
    plain: ScanKey, case: Case, requested: Statement, batch: int
) -> tuple[dict[str, Cost], dict[str, int]]:
    """Return the figures of a sampled tenant over the same index."""
    costs: dict[str, Cost] = {}
    documents, vector = plain.capacity, case.vector.tobytes()
    slot = requested.encode(SLOT)
    costs["sampling_proof"], column = measured(
        ColumnJob(SAMPLE, documents, bytes(32), slot, KEEP, S0, S1).run
    )
    proof_of_sample, rows, blindings = (
        b64decode(column.proof["proof"]),
        column.commitment.points,
        column.opening,
    )
    costs["sampling_proof_verify"], _ = measured(
        lambda: native.scan_bits_verify(documents, bytes(32), slot, KEEP, proof_of_sample)
    )
    kept = native.draw_bernoulli_bits(to_bytes(noise_key(S0, S1, BEACON, 1)), documents, KEEP)
    bits = np.frombuffer(kept, np.int8)
    scores = np.frombuffer(case.scores, np.dtype("<i4"))
    positions = native.noised_top_k(
        (scores * bits).tobytes(), LO, HI, EXACT_LATTICE, bytes(4 * documents), plain.listed
    )
    key = replace(plain, gains=(), lattice=EXACT_LATTICE, sample=rows)
    statement = replace(requested, htopk=topk_commitment(8, positions))
    sampled = RecordInputs(
        key,
        statement,
        None,
        b"",
        case.scores,
        vector,
        7,
        8,
        positions,
        BLINDING_KEY,
        sample=(kept, blindings),
    )
    costs["sampled"], proof = measured(job(sampled).run)
    wire = parts(key, proof)
    costs["sampled_verify"], bad = measured(lambda: verify_batch(key, [wire], [statement]))
    costs["sampled_batch"], bad_in_batch = measured(
        lambda: verify_batch(key, [wire] * batch, [statement] * batch)
    )

    if bad or bad_in_batch:
        raise SystemExit("a proof that was just made does not verify")
    return costs, {
        "sampling_proof": len(proof_of_sample),
        "sampled": sum(map(len, wire)),
    }


def main() -> None:
    """Measure and print."""
    options = parser(__doc__)
    options.add_argument("--documents", type=int, default=10_000)
    options.add_argument("--dimension", type=int, default=256)
    options.add_argument("--gains", default="1", help="comma-separated")
    options.add_argument("--listed", type=int, default=5)
    options.add_argument("--batch", type=int, default=10)
    options.add_argument("--mechanisms", action="store_true", help="tenants with sampling too")
    args = parsed(options)
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
    figures = measure(
        args.documents, args.dimension, gains, args.listed, args.batch, mechanisms=args.mechanisms
    )
    emit({**head, **figures}, as_json=args.json)


if __name__ == "__main__":
    main()
