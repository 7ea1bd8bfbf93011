"""Recall of the default embedder and of the noised engine: `python -m bench.recall [--json] [--questions N]`.

The collections come from RAG_AUDIT_DATA: SQuAD dev v1.1, with a fixed sample of questions against all paragraphs, and
SciFact. Recall@K is the share of a question's relevant passages among the first K, averaged over questions. hit@K
requires only one relevant passage (the two are equal if a question has one). The script measures the engine's int4
vectors and, for comparison, the same table in floating point.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence, Set
from math import sqrt
from random import Random
from typing import Any

import numpy as np
import numpy.typing as npt

from bench.common import emit, parser
from rag_audit.errors import RagAuditError
from rag_audit.lab.empirical.sets import Collection, collection
from rag_audit.relation.field import digest_to_field
from rag_audit.relation.noise import BASE_SIGMA
from rag_audit.relation.scores import ScoreWindow
from rag_audit.retrieval.embedders import wordllama
from rag_audit.retrieval.engine import Int8Array, TenantIndex, build_index, draw_noise, select

CUTS = (5, 10)
# (gains, R), from no visible effect to noise of the whole window's height: sigma/Delta = 16 |g| / R
MECHANISMS = tuple(([1], r) for r in (1024, 512, 256, 128, 64, 16))


def float_vectors(texts: Sequence[str], limit: int) -> npt.NDArray[np.float32]:
    """Unit vectors of the table before any rounding, shape (n, 256)."""
    data = wordllama._package_data(wordllama.WEIGHTS, wordllama.WEIGHTS_SHA256)
    size = wordllama.VOCABULARY * wordllama.DIMENSION
    table = np.frombuffer(data[-2 * size :], "<f2").reshape(-1, wordllama.DIMENSION).astype(np.float32)
    encodings = wordllama._tokenizer().encode_batch(list(texts), add_special_tokens=False)
    sums = np.stack([table[encoding.ids[:limit]].sum(axis=0) for encoding in encodings])
    return np.asarray(sums / np.linalg.norm(sums, axis=1, keepdims=True), np.float32)


def recall(rank: Callable[[int], Sequence[int]], relevant: Sequence[Set[int]]) -> dict[str, float]:
    """Return recall and hits at each cut, percent; `rank` gives a question's first passages."""
    totals = {f"{name}@{cut}": 0.0 for name in ("recall", "hit") for cut in CUTS}
    for number, wanted in enumerate(relevant):
        result = rank(number)
        for cut in CUTS:
            hits = len(wanted & set(result[:cut]))
            totals[f"recall@{cut}"] += hits / len(wanted)
            totals[f"hit@{cut}"] += hits > 0
    return {name: round(100 * total / len(relevant), 1) for name, total in totals.items()}


def ranked(scores: npt.NDArray[Any]) -> list[int]:
    return [int(i) for i in np.argsort(-scores, kind="stable")[: max(CUTS)]]


def measure(texts: Collection, embedder: wordllama.WordLlama) -> dict[str, Any]:
    rows = embedder.embed_documents(texts.passages)
    queries = np.stack([embedder.embed_query(question) for question in texts.questions])
    index = build_index(rows, len(rows), Random(0))
    document_at = {position: document for document, position in enumerate(index.positions)}

    plain_rows = float_vectors(texts.passages, embedder.limits.document)
    plain_queries = float_vectors(texts.questions, embedder.limits.query)
    floating = recall(lambda n: ranked(plain_rows @ plain_queries[n]), texts.relevant)
    raw = recall(lambda n: [document_at[p] for p in ranked(index.scores(queries[n]))], texts.relevant)
    return {
        "collection": texts.name,
        "passages": len(texts.passages),
        "questions": len(texts.questions),
        "float": floating,
        "int4": raw,
        "engine": [
            noised(index, queries, document_at, texts.relevant, embedder, gains, r) for gains, r in MECHANISMS
        ],
    }


def noised(
    index: TenantIndex,
    queries: Int8Array,
    document_at: dict[int, int],
    relevant: Sequence[Set[int]],
    embedder: wordllama.WordLlama,
    gains: list[int],
    lattice: int,
) -> dict[str, Any]:
    """Return recall of the engine under one mechanism, without and with its noise."""
    window = ScoreWindow.for_scale(embedder.scale, lattice)
    quiet = np.zeros(index.capacity, np.int32)

    def with_noise(number: int) -> list[int]:
        z = draw_noise(digest_to_field(f"bench/{number}".encode()), index.capacity, gains)
        return [document_at[p] for p in select(index, queries[number], z, window, max(CUTS))]

    return {
        "gains": gains,
        "lattice": lattice,
        "sigma_over_delta": BASE_SIGMA * sqrt(sum(g * g for g in gains)) / lattice,
        "without_noise": recall(
            lambda n: [document_at[p] for p in select(index, queries[n], quiet, window, max(CUTS))], relevant
        ),
        "with_noise": recall(with_noise, relevant),
    }


def show(result: dict[str, Any]) -> None:
    def pair(figures: dict[str, float]) -> str:
        return " / ".join(f"{figures[name]:5.1f}" for name in ("recall@5", "recall@10", "hit@10"))

    print(f"{result['collection']}: {result['questions']} questions, {result['passages']} passages")
    print("  recall@5 / recall@10 / hit@10, percent")
    print(f"  float                        {pair(result['float'])}")
    print(f"  int4                         {pair(result['int4'])}")
    for row in result["engine"]:
        print(
            f"  engine R = {row['lattice']:<5} without noise {pair(row['without_noise'])}"
            f"   sigma/Delta {row['sigma_over_delta']:.4f}  {pair(row['with_noise'])}"
        )


def main() -> int:
    """Measure and print."""
    options = parser(__doc__)
    options.add_argument("--questions", type=int, default=2000, help="SQuAD questions")
    args = options.parse_args()
    try:
        collections = [collection("squad").sample(args.questions), collection("scifact")]
    except RagAuditError as exc:
        print(f"bench: {exc}", file=sys.stderr)
        return 2
    embedder = wordllama.WordLlama()
    results = [measure(each, embedder) for each in collections]
    if args.json:
        emit({"collections": results}, as_json=True)
        return 0
    for result in results:
        show(result)
    return 0


if __name__ == "__main__":
    sys.exit(main())
