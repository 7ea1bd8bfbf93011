"""Recall of embedders and of the noised engine: `python -m bench.recall [--json] [--questions N] [--embedder NAME ..]
[--collection NAME ..]`.

The collections come from RAG_AUDIT_DATA. The constants of the default embedder were chosen on SQuAD dev v1.1 and
SciFact; MedQuAD, PubMedQA and MTS-Dialog had no part in the choice. Recall@K is the share of a question's relevant
passages among the first K, averaged over questions. nDCG@10 discounts a relevant passage by the logarithm of its place.
The script measures int4 vectors on all questions, and the engine under noise in the embedder's score window on a fixed
sample of N of them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence, Set
from math import log2, sqrt
from random import Random
from typing import Any

import numpy as np
import numpy.typing as npt

from bench.common import emit, measured, parser
from rag_audit.commit.explore.collections import Collection, collection
from rag_audit.errors import RagAuditError
from rag_audit.relation.field import digest_to_field
from rag_audit.relation.noise import BASE_SIGMA
from rag_audit.relation.scores import ScoreWindow
from rag_audit.retrieval.embedders import DEFAULT_EMBEDDER, Embedder, get_embedder
from rag_audit.retrieval.engine import Int8Array, TenantIndex, build_index, draw_noise, select

CUTS = (5, 10)
DEPTH = max(CUTS)
COLLECTIONS = ("squad", "scifact", "medquad", "pubmedqa", "mts")
# (gains, R), from no visible effect to noise of the whole window's height: sigma/Delta = 16 |g| / R
MECHANISMS = tuple(([1], r) for r in (1024, 512, 256, 128, 64, 16))


def qualities(
    rank: Callable[[int], Sequence[int]], relevant: Sequence[Set[int]]
) -> dict[str, npt.NDArray[np.float64]]:
    """Return nDCG@10 and recall at each cut of each question, percent; `rank` gives a question's first passages."""
    out = {name: np.zeros(len(relevant)) for name in ("ndcg@10", *(f"recall@{cut}" for cut in CUTS))}
    discounts = [1 / log2(place + 2) for place in range(DEPTH)]
    for number, wanted in enumerate(relevant):
        result = rank(number)[:DEPTH]
        gain = sum(d for d, passage in zip(discounts, result, strict=False) if passage in wanted)
        out["ndcg@10"][number] = 100 * gain / sum(discounts[: len(wanted)])
        for cut in CUTS:
            out[f"recall@{cut}"][number] = 100 * len(wanted & set(result[:cut])) / len(wanted)
    return out


def quality(rank: Callable[[int], Sequence[int]], relevant: Sequence[Set[int]]) -> dict[str, float]:
    """Return the means of `qualities`."""
    return {name: round(float(each.mean()), 1) for name, each in qualities(rank, relevant).items()}


def first(scores: Int8Array) -> list[int]:
    """The positions of the highest scores, the lower position first among equal ones."""
    return [int(i) for i in np.argsort(-scores, kind="stable")[:DEPTH]]


def measure(texts: Collection, embedder: Embedder, sample: int) -> dict[str, Any]:
    cost, rows = measured(lambda: embedder.embed_documents(texts.passages))
    index = build_index(rows, len(rows), Random(0))
    document_at = {position: document for document, position in enumerate(index.positions)}
    chosen = texts.sample(sample)
    queries = np.stack([embedder.embed_query(question) for question in chosen.questions])

    def ranked(number: int) -> list[int]:
        scores = index.scores(embedder.embed_query(texts.questions[number]))
        return [document_at[position] for position in first(scores)]

    return {
        "collection": texts.name,
        "embedder": embedder.name,
        "score_window": embedder.score_window,
        "passages": len(texts.passages),
        "questions": len(texts.questions),
        "sampled": len(chosen.questions),
        "passages_cpu_seconds": cost.cpu_seconds,
        "int4": quality(ranked, texts.relevant),
        "engine": [
            noised(index, queries, document_at, chosen.relevant, embedder, gains, r)
            for gains, r in MECHANISMS
        ],
    }


def noised(
    index: TenantIndex,
    queries: Int8Array,
    document_at: dict[int, int],
    relevant: Sequence[Set[int]],
    embedder: Embedder,
    gains: list[int],
    lattice: int,
) -> dict[str, Any]:
    """Return the quality of the engine under one mechanism, without and with its noise."""
    window = ScoreWindow(*embedder.score_window, lattice)
    quiet = np.zeros(index.capacity, np.int32)

    def with_noise(number: int) -> list[int]:
        z = draw_noise(digest_to_field(f"bench/{number}".encode()), index.capacity, gains)
        return [document_at[p] for p in select(index, queries[number], z, window, DEPTH)]

    def without_noise(number: int) -> list[int]:
        return [document_at[p] for p in select(index, queries[number], quiet, window, DEPTH)]

    return {
        "gains": gains,
        "lattice": lattice,
        "sigma_over_delta": BASE_SIGMA * sqrt(sum(g * g for g in gains)) / lattice,
        "without_noise": quality(without_noise, relevant),
        "with_noise": quality(with_noise, relevant),
    }


def show(result: dict[str, Any]) -> None:
    def figures(quality: dict[str, float]) -> str:
        return " / ".join(f"{value:5.1f}" for value in quality.values())

    lo, hi = result["score_window"]
    seconds = f"{result['passages_cpu_seconds']:.1f} s of processor time"
    print(f"{result['collection']}, {result['embedder']}: {result['passages']} passages in {seconds}")
    print("  nDCG@10 / recall@5 / recall@10, percent")
    print(f"  int4, {result['questions']} questions            {figures(result['int4'])}")
    print(f"  engine with scores {lo}..{hi}, {result['sampled']} questions:")
    for row in result["engine"]:
        print(
            f"    R = {row['lattice']:<5} without noise {figures(row['without_noise'])}"
            f"   sigma/Delta {row['sigma_over_delta']:.4f}  {figures(row['with_noise'])}"
        )


def main() -> int:
    """Measure and print."""
    options = parser(__doc__)
    options.add_argument("--questions", type=int, default=2000, help="questions under noise")
    options.add_argument("--embedder", action="append", help="repeat for several")
    options.add_argument("--collection", action="append", choices=COLLECTIONS, help="repeat for several")
    args = options.parse_args()
    try:
        collections = [collection(name) for name in args.collection or COLLECTIONS]
        embedders = [get_embedder(name) for name in args.embedder or [DEFAULT_EMBEDDER]]
    except RagAuditError as exc:
        print(f"bench: {exc}", file=sys.stderr)
        return 2
    results = []
    for texts in collections:
        for embedder in embedders:
            results.append(measure(texts, embedder, args.questions))
            if not args.json:
                show(results[-1])
    if args.json:
        emit({"collections": results}, as_json=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
