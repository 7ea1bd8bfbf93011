"""Time of the engine at 10^5 documents: `python -m bench.engine [--json] [--documents N] [--threads N]`.

Targets on two cores:

- a query under 5 ms with the slot's noise already drawn, and drawing the noise under 0.4 s at three gains;
- a sampled tenant's exact top K under 1 ms;
- an answer by pooled listing in at most 1.3 times the time of the mechanism that pooled listing replaced
  (docs/performance.md), with the draws of both and without them.

For comparison the script times faiss, which has neither noise nor the lattice, on the same vectors: scores of one
query, and of a batch.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np

from bench.common import emit, parsed, parser
from rag_audit.models.records import SlotKey
from rag_audit.relation.field import digest_to_field
from rag_audit.relation.scores import ScoreWindow
from rag_audit.retrieval.engine import (
    Int8Array,
    build_index,
    draw_bernoulli_bits,
    draw_noise,
    no_noise,
    select,
)
from rag_audit.retrieval.noise_pool import NoisePool
from rag_audit.retrieval.serving.pooled_listing import PooledRules, answer, positions_in_rows

DIMENSION = 256
GAINS = [1, 8, 64]
TOP_K = 5
BATCH = 64
WINDOW = ScoreWindow(101, 810, 128)
KEEP, CHANCE = round(0.9 * 2**40), round(5 / 100_000 * 2**40)
ROW_CHANCE = 115_839_009
"""Lists a tenth of the documents in 1,000 queries."""


def timed(work: Callable[[], object], runs: int, each: int = 1) -> dict[str, float]:
    """Return the seconds of one of the `each` steps of a run: median and slowest of the runs."""
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        work()
        times.append((time.perf_counter() - start) / each)
    return {"median": float(np.median(times)), "slowest": max(times)}


def bell(rng: np.random.Generator, count: int) -> Int8Array:
    """Draw vectors like an encoder's: bell-shaped components, clipped at 7."""
    return np.clip(np.rint(rng.normal(0, 2, (count, DIMENSION))), -7, 7).astype(np.int8)


def faiss_figures(rows: Int8Array, queries: Int8Array, threads: int) -> dict[str, Any]:
    """Time the nearest equivalent in faiss: exact inner products, in float32 and on 8-bit components."""
    try:
        import faiss
    except ImportError:
        return {}
    faiss.omp_set_num_threads(threads)
    flat = faiss.IndexFlatIP(DIMENSION)
    direct = faiss.IndexScalarQuantizer(
        DIMENSION, faiss.ScalarQuantizer.QT_8bit_direct_signed, faiss.METRIC_INNER_PRODUCT
    )
    figures = {}
    for name, index in (("faiss_flat", flat), ("faiss_int8", direct)):
        index.add(rows.astype(np.float32))
        one, many = queries[:1].astype(np.float32), queries.astype(np.float32)
        figures[f"{name}_query"] = timed(lambda index=index, one=one: index.search(one, TOP_K), 30)
        figures[f"{name}_query_of_a_batch"] = timed(
            lambda index=index, many=many: index.search(many, TOP_K), 3, BATCH
        )
    return figures


def measure(documents: int, threads: int) -> dict[str, Any]:
    """All figures."""
    rng = np.random.default_rng(1)
    rows, queries = bell(rng, documents), bell(rng, BATCH)
    start = time.perf_counter()
    index = build_index(rows, documents, Random(1))
    index.packed  # noqa: B018 - the property packs
    build = time.perf_counter() - start
    noise = draw_noise(7, documents, GAINS)
    seconds: dict[str, Any] = {
        "build": build,
        "query": timed(lambda: select(index, queries[0], noise, WINDOW, TOP_K), 50),
        "scores": timed(lambda: index.scores(queries[0]), 50),
        "scores_of_a_batch": timed(lambda: [index.scores(query) for query in queries], 3, BATCH),
        "draw": timed(lambda: draw_noise(7, documents, GAINS), 5),
    }

    kept, silent = draw_bernoulli_bits(8, documents, KEEP), no_noise(documents)
    seconds |= {
        "sampled": timed(lambda: select(index, queries[0], silent, WINDOW, TOP_K, kept), 50),
        "sampled_with_noise": timed(lambda: select(index, queries[0], noise, WINDOW, TOP_K, kept), 50),
        "draw_coins": timed(lambda: draw_bernoulli_bits(9, documents, CHANCE), 5),
    }

    # A document has four positions.
    table, shared = documents // 4, np.arange(documents, dtype=np.int64) % (documents // 4)
    by_row, by_chance = (draw_bernoulli_bits(k, table, bound) for k, bound in ((8, KEEP), (9, ROW_CHANCE)))
    listed, rules = np.zeros(table, np.int8), PooledRules(WINDOW.hi, TOP_K, WINDOW)
    positions = positions_in_rows(shared, table)

    def pooled() -> object:
        scores = index.scores(queries[0])
        return answer(scores, positions, rules, listed=listed, kept=by_row, chance=by_chance)

    seconds |= {
        "pooled": timed(pooled, 50),
        "draw_pooled": timed(lambda: draw_bernoulli_bits(9, table, ROW_CHANCE), 5),
    }

    def draw(slot: SlotKey) -> Any:
        return draw_noise(digest_to_field(f"{slot}".encode()), documents, GAINS)

    queries_asked = 20
    with NoisePool(draw, depth=2, limit=queries_asked) as pool:
        # One account asks without a pause: the worst case for the background thread.
        slots = [SlotKey("t", "a", i) for i in range(1, queries_asked + 1)]
        start = time.perf_counter()
        for number, slot in enumerate(slots):
            select(index, queries[number], pool.get(slot), WINDOW, TOP_K)
        seconds["query_without_pause"] = (time.perf_counter() - start) / queries_asked
        drawn = vars(pool.counts)
    return {
        "seconds": seconds | faiss_figures(rows, queries, threads),
        "pool": drawn,
    }


def main() -> None:
    """Measure and print."""
    options = parser(__doc__)
    options.add_argument("--documents", type=int, default=100_000)
    args = parsed(options, help="threads of both libraries")
    head = {"documents": args.documents, "dimension": DIMENSION, "gains": GAINS}
    emit({**head, **measure(args.documents, args.threads)}, as_json=args.json)


if __name__ == "__main__":
    main()
