"""Microbenchmarks of the native core: `python -m bench.core [--json] [--documents N] [--threads N]`.

Each figure is the best of several runs. Targets: 7,000 Poseidon(16) a second on one core, the noise of 10^5
positions and three gains under 0.4 s on two cores, a query of 10^5 documents of dimension 256 under 5 ms.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from bench.common import emit, parsed, parser
from rag_audit import _native as native

DIMENSION = 256
GAINS = [1, 8, 64]
HASHES = 1_000
LIST_RUN = 15


def best(work: Callable[[], object], runs: int) -> float:
    """Seconds of the fastest run."""
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def measure(documents: int) -> dict[str, Any]:
    """All figures."""
    rng = np.random.default_rng(1)
    rows = rng.integers(-7, 8, (documents, DIMENSION), dtype=np.int8).tobytes()
    query = rng.integers(-7, 8, DIMENSION, dtype=np.int8).tobytes()
    kappa = bytes(31) + b"\1"
    elements = bytes(32) * (LIST_RUN * (HASHES - 1))

    start = time.perf_counter()
    native.poseidon_hash(kappa)
    first_use = time.perf_counter() - start
    hashing = best(lambda: native.poseidon_hash_list(7, elements), 10)
    index = native.PackedIndex(rows, DIMENSION)
    scores = index.scores(query)
    noise = native.draw_noise(kappa, documents, GAINS)
    return {
        "seconds": {
            "poseidon_parameters": first_use,
            "poseidon": hashing / HASHES,
            "noise": best(lambda: native.draw_noise(kappa, documents, GAINS), 5),
            "pack_index": best(lambda: native.PackedIndex(rows, DIMENSION), 3),
            "scores": best(lambda: index.scores(query), 30),
            "top_k": best(lambda: native.noised_top_k(scores, 101, 810, 128, noise, 5), 30),
        },
        "poseidon_per_second_one_core": HASHES / hashing,
    }


def main() -> None:
    """Measure and print."""
    options = parser(__doc__)
    options.add_argument("--documents", type=int, default=100_000)
    args = parsed(options)
    head = {"documents": args.documents, "dimension": DIMENSION, "gains": GAINS}
    emit({**head, **measure(args.documents)}, as_json=args.json)


if __name__ == "__main__":
    main()
