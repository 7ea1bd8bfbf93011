"""The recall and the eps of noise levels: `python -m bench.explore [--json] [--questions N] [--picture DIR]`.

The script runs the policy explorer on public collections from RAG_AUDIT_DATA: SQuAD dev v1.1, with a fixed sample of
questions against all paragraphs, and SciFact. It computes two grids for each collection:

- `reference`: noise on cosines cut to 0..1, and eps of one query at delta 1e-6. The grid also has figures that were
  measured elsewhere with all-MiniLM-L6-v2 (recall@5 on SQuAD, exact eps of a Gaussian). This project's figures are the
  default embedder's. Both embedders have a recall of 86 % without noise. Compare the relative
  recall `of_quiet`, the share of the recall without noise.
- `policies`: the explorer's own ladder at the default score window, 200 queries an account, 10 accounts.

The script also measures sampling and pooled listing. Their number of positions is the smallest power of two with room
for the passages (4,096 for SQuAD).
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

from bench.common import emit, parser
from rag_audit.commit.explore.bernoulli import BernoulliPoint, default_mechanisms, measure
from rag_audit.commit.explore.collections import Collection, collection
from rag_audit.commit.explore.ladder import DEFAULT_MECHANISMS
from rag_audit.commit.explore.render import bernoulli_table, draw, table
from rag_audit.commit.explore.samples import Passage, Question, Sample, make_sample
from rag_audit.commit.explore.simulate import Exploration, Grid, Noise, enough_repeats, explore
from rag_audit.relation.scores import ScoreWindow
from rag_audit.retrieval.embedders import wordllama

# gains, R, then for the noise of about that sigma/Delta: recall@5 with MiniLM on SQuAD, eps of one Gaussian query
REFERENCE = (
    ((1, 5), 4096, 0.02, 0.851, 1487.0),
    ((1,), 256, 0.0625, 0.759, 203.0),
    ((1,), 128, 0.125, 0.528, 69.0),
    ((1,), 64, 0.25, 0.165, 26.0),
    ((1,), 16, 1.0, 0.011, 4.9),
)
REFERENCE_QUIET = 0.861
TOP_K = 5


def sample_of(collection: Collection, embedder: wordllama.WordLlama, capacity: int | None = None) -> Sample:
    """Put all passages at as many positions, or at `capacity`, and embed the questions."""
    passages = [Passage((str(number),), text) for number, text in enumerate(collection.passages)]
    questions = [
        Question(text, tuple(map(str, sorted(places))), f"question {number}")
        for number, (text, places) in enumerate(zip(collection.questions, collection.relevant, strict=True))
    ]
    return make_sample(passages, questions, embedder, capacity=capacity or len(passages))


def reference(sample: Sample, embedder: wordllama.WordLlama, *, compare: bool) -> list[dict[str, Any]]:
    """Compute the grid that was measured elsewhere with another embedder."""
    unit = int(np.rint(float((7 / embedder.scale) ** 2)))
    noises = [Noise(gains, ScoreWindow(0, unit, lattice)) for gains, lattice, *_ in REFERENCE]
    result = explore(sample, Grid(noises, [1], [1]), top_k=TOP_K, delta="1e-6", delta_acc="1e-7")
    quiet = result.without_noise.recall
    rows = [{"sigma_over_delta": "0", "recall": f"{quiet:.4f}", "of_quiet": "1.000"}]
    if compare:
        rows[0] |= {"minilm_recall": str(REFERENCE_QUIET), "minilm_of_quiet": "1.000"}
    for point, (_, _, _, recall, eps) in zip(result.points, REFERENCE, strict=True):
        row = {**point.as_json(), "of_quiet": f"{point.recall.recall / quiet:.3f}"}
        if compare:
            row |= {
                "minilm_recall": str(recall),
                "minilm_of_quiet": f"{recall / REFERENCE_QUIET:.3f}",
                "reference_eps_gaussian": f"{eps:g}",
            }
        rows.append(row)
    return rows


def policies(sample: Sample, embedder: wordllama.WordLlama) -> Exploration:
    """Run the explorer's ladder."""
    noises = [Noise(g, ScoreWindow(*embedder.score_window, r)) for g, r in DEFAULT_MECHANISMS]
    return explore(sample, Grid(noises, [200], [10]), top_k=TOP_K, delta="1e-5")


def made_of_coins(collection: Collection, embedder: wordllama.WordLlama) -> list[BernoulliPoint]:
    """Measure sampling and listing over consecutive windows, until every question has been asked often enough."""
    capacity = 1 << max(12, (len(collection.passages) - 1).bit_length())
    sample = sample_of(collection, embedder, capacity)
    repeats = enough_repeats(len(sample.queries))
    mechanisms = default_mechanisms(embedder.relevance, 2_000)
    return [measure(sample, m, top_k=TOP_K, n=200, ks=(1, 2, 10), repeats=repeats) for m in mechanisms]


def show(name: str, rows: list[dict[str, Any]], ladder: Exploration, points: list[BernoulliPoint]) -> None:
    """Print the grids as text."""
    print(f"{name}: noise on cosines in 0..1, eps of one query at delta 1e-6")
    print("  sigma/Delta  recall@5  of quiet   MiniLM's  of quiet        eps  Gaussian")
    for row in rows:
        print(
            f"  {row['sigma_over_delta']:>11} {row['recall']:>9} {row['of_quiet']:>9}"
            f"  {row.get('minilm_recall', '-'):>9} {row.get('minilm_of_quiet', '-'):>9}"
            f" {row.get('eps_audit', '-'):>10} {row.get('eps_gaussian', '-'):>9}"
        )
    print(table(ladder))
    print(bernoulli_table(points, ladder, 200))
    print()


def main() -> int:
    """Measure and print."""
    options = parser(__doc__)
    options.add_argument("--questions", type=int, default=2000, help="SQuAD questions")
    options.add_argument("--picture", type=Path, help="folder for a picture of each collection")
    args = options.parse_args()
    embedder = wordllama.WordLlama()
    results = []
    for key, texts in (
        ("squad", collection("squad").sample(args.questions)),
        ("scifact", collection("scifact")),
    ):
        sample = sample_of(texts, embedder)
        rows = reference(sample, embedder, compare=key == "squad")
        ladder = policies(sample, embedder)
        points = made_of_coins(texts, embedder)
        if args.picture is not None:
            draw(ladder, args.picture / f"explore-{key}.png", points)
        if not args.json:
            show(texts.name, rows, ladder, points)
        results.append(
            {
                "collection": texts.name,
                "reference": rows,
                "policies": ladder.as_json(),
                "mechanisms": [point.as_json() for point in points],
            }
        )
    if args.json:
        emit({"collections": results}, as_json=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
