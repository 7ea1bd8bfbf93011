"""The recall of pooled listing by threshold: `python -m bench.thresholds --collection squad`

The threshold of pooled listing decides which documents a question lists. It does not change the epsilon. The script
measures the share of questions that find a relevant passage among the best five texts of their answer, on a public
collection (RAG_AUDIT_DATA), with one passage per document. A window asks m questions, one after another; the bits come
from numpy, the scores from the engine.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from random import Random

import numpy as np
import numpy.typing as npt

from bench.common import emit, parsed, parser
from rag_audit.commit.explore.collections import NAMES, collection
from rag_audit.mechanisms.accounting.curves import probability_over_range
from rag_audit.mechanisms.accounting.documents import flip_probability_for, pooled_epsilon
from rag_audit.relation.bernoulli import PROBABILITY_RANGE
from rag_audit.retrieval.embedders import DEFAULT_EMBEDDER, get_embedder
from rag_audit.retrieval.engine import build_index

F = "0.1"
"""The probability that chance lists a given document at any of the m questions."""


def best(scores: npt.NDArray[np.int32], among: npt.NDArray[np.bool_], top_k: int) -> list[int]:
    """The first K positions of `among` with a positive score: larger score, then smaller position."""
    places = np.flatnonzero(among & (scores > 0))
    return [int(p) for p in places[np.argsort(-scores[places], kind="stable")[:top_k]]]


def found(
    scores: npt.NDArray[np.int32],
    relevant: Sequence[frozenset[int]],
    *,
    threshold: int,
    keep: float,
    flip: float,
    queries: int,
    top_k: int,
    windows: int,
    seed: int,
) -> tuple[float, float]:
    """The mean share of questions that find a relevant passage, and its standard error over windows.

    :param scores: shape (questions, positions); empty positions have score 0
    :param keep: the probability that the sample contains a document
    :param flip: the probability that chance lists a document at one question
    :param queries: m, at most the number of questions
    """
    shares = []
    for window in range(windows):
        random = np.random.default_rng([seed, window])
        kept, listed = random.random(scores.shape[1]) < keep, np.zeros(scores.shape[1], np.bool_)
        asked = random.permutation(len(scores))[:queries]
        hits = 0
        for number in asked:
            own = scores[number]
            listed |= (random.random(len(own)) < flip) | ((own >= threshold) & kept)
            hits += not relevant[number].isdisjoint(best(own, listed, top_k))
        shares.append(hits / len(asked))
    return float(np.mean(shares)), float(np.std(shares, ddof=1)) / math.sqrt(windows) if windows > 1 else 0.0


def main() -> None:
    """Print the recall of exact retrieval and of each threshold."""
    options = parser(__doc__)
    options.add_argument("--collection", choices=NAMES, default="squad")
    options.add_argument("--thresholds", default="601,900", help="raw scores, separated by commas")
    options.add_argument("--keep", default="0.9")
    options.add_argument("--queries", type=int, default=250, help="m, the questions of all accounts")
    options.add_argument(
        "--questions", type=int, default=400, help="the questions that the windows draw from"
    )
    options.add_argument("--top-k", type=int, default=5)
    options.add_argument("--windows", type=int, default=100)
    options.add_argument("--seed", type=int, default=1)
    args = parsed(options)
    texts, embedder = collection(args.collection), get_embedder(DEFAULT_EMBEDDER)
    asked = texts.sample(args.questions, args.seed)
    rows = embedder.embed_documents(list(texts.passages))
    index = build_index(rows, 1 << (len(rows) - 1).bit_length(), Random(args.seed))
    scores = np.stack([index.scores(embedder.embed_query(question)) for question in asked.questions])
    relevant = [frozenset(index.positions[i] for i in own) for own in asked.relevant]
    keep, flip = probability_over_range(args.keep, "--keep"), flip_probability_for(F, queries=args.queries)
    everything = np.ones(scores.shape[1], np.bool_)
    hits = [
        not r.isdisjoint(best(own, everything, args.top_k)) for r, own in zip(relevant, scores, strict=True)
    ]
    figures: dict[str, object] = {
        "documents": len(rows), "questions": len(scores), "queries": args.queries, "windows": args.windows,
        "epsilon": pooled_epsilon(keep, flip), "exact": float(np.mean(hits)),
    }  # fmt: skip
    for threshold in args.thresholds.split(","):
        mean, error = found(
            scores, relevant, threshold=int(threshold), keep=keep / PROBABILITY_RANGE,
            flip=flip / PROBABILITY_RANGE, queries=args.queries, top_k=args.top_k, windows=args.windows,
            seed=args.seed,
        )  # fmt: skip
        figures[f"threshold_{threshold}"] = {"found": mean, "standard_error": error}
    emit(figures, as_json=args.json)


if __name__ == "__main__":
    main()
