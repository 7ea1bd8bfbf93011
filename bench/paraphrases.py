"""How near human paraphrases of a question are: `python -m bench.paraphrases [--json] [--embedder NAME ..]`.

SQuAD dev v1.1 comes from RAG_AUDIT_DATA. The script compares pairs of questions by the test of the estimate of repeated
questions (docs/estimator.md), on int4 vectors:

- different questions about one paragraph, which people wrote;
- of these, questions with a common answer, which are the nearest to human paraphrases in the collections;
- each question of a sample, and the same question after a greeting.

For each kind the script prints the number of pairs, the median cosine, and the share of pairs at or above each theta.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from fractions import Fraction
from itertools import combinations
from random import Random
from typing import Any

import numpy as np

from bench.common import emit, parser
from rag_audit._internal.jsonlines import records
from rag_audit.commit.explore.collections import Collection, collection, folder
from rag_audit.errors import RagAuditError
from rag_audit.retrieval.embedders import DEFAULT_EMBEDDER, Embedder, get_embedder
from rag_audit.retrieval.engine import Int8Array

THETAS = (Fraction(4, 5), Fraction(9, 10), Fraction(19, 20))
GREETING = "Good morning, dear assistant, I hope you are well today."
Pair = tuple[int, int]


def with_common(groups: Sequence[Set[Any]], questions: Sequence[str]) -> list[Pair]:
    """Pairs of different questions that have an element in common, such as a passage."""
    members: dict[Any, list[int]] = defaultdict(list)
    for number, group in enumerate(groups):
        for element in group:
            members[element].append(number)
    pairs = {pair for numbers in members.values() for pair in combinations(numbers, 2)}
    return sorted((i, j) for i, j in pairs if questions[i].strip() != questions[j].strip())


def compare(one: Int8Array, other: Int8Array) -> dict[str, Any]:
    """Compare row i of one matrix with row i of the other, exactly, as the estimate does."""
    a, b = one.astype(np.int64), other.astype(np.int64)
    dots, norms = (a * b).sum(axis=1), (a * a).sum(axis=1) * (b * b).sum(axis=1)
    near = {
        f"{float(t):g}": float(np.mean((dots > 0) & ((t.denominator * dots) ** 2 >= t.numerator**2 * norms)))
        for t in THETAS
    }
    return {"pairs": len(a), "median_cosine": float(np.median(dots / np.sqrt(norms))), "near": near}


def answers(squad: Collection) -> Iterator[frozenset[tuple[int, str]]]:
    """For each question of SQuAD, its answers in lower case, each with its paragraph."""
    lines = records(folder() / "squad_dev_v1.1_questions.jsonl.gz")
    for (_, _, line), passages in zip(lines, squad.relevant, strict=True):
        written = line["answers"]
        assert isinstance(written, list)
        yield frozenset((passage, str(text).strip().lower()) for passage in passages for text in written)


def embedded(embedder: Embedder, questions: Iterable[str]) -> Int8Array:
    """The vectors of questions, one a row."""
    return np.stack([embedder.embed_query(question) for question in questions])


def measure(embedder: Embedder, squad: Collection, greeted: int) -> dict[str, Any]:
    """Compare all kinds of pairs under one embedder."""
    vectors = embedded(embedder, squad.questions)
    by_kind = {
        "one paragraph": with_common(squad.relevant, squad.questions),
        "one paragraph and a common answer": with_common(list(answers(squad)), squad.questions),
    }
    rows = {}
    for name, pairs in by_kind.items():
        first, second = np.array(pairs).T
        rows[name] = compare(vectors[first], vectors[second])
    chosen = Random(0).sample(squad.questions, min(greeted, len(squad.questions)))
    with_greeting = embedded(embedder, (f"{GREETING} {question}" for question in chosen))
    rows["the same question after a greeting"] = compare(embedded(embedder, chosen), with_greeting)
    return {"embedder": embedder.name, "kinds": rows}


def show(result: Mapping[str, Any]) -> None:
    """Print a table in Markdown."""
    print(f"\n{result['embedder']}\n")
    print("| pairs | number | median cosine | " + " | ".join(f"near at {float(t):g}" for t in THETAS) + " |")
    print("|---|---|---|" + "---|" * len(THETAS))
    for name, row in result["kinds"].items():
        near = " | ".join(f"{100 * share:.2f} %" for share in row["near"].values())
        print(f"| {name} | {row['pairs']:,} | {row['median_cosine']:.2f} | {near} |")


def main() -> int:
    """Measure and print."""
    options = parser(__doc__)
    options.add_argument("--embedder", action="append", help="repeat for several")
    options.add_argument("--greeted", type=int, default=2000, help="questions that get a greeting")
    args = options.parse_args()
    try:
        squad = collection("squad")
        embedders = [get_embedder(name) for name in args.embedder or [DEFAULT_EMBEDDER]]
    except RagAuditError as exc:
        print(f"bench: {exc}", file=sys.stderr)
        return 2
    results = [measure(embedder, squad, args.greeted) for embedder in embedders]
    if args.json:
        emit({"embedders": results}, as_json=True)
    else:
        for result in results:
            show(result)
    return 0


if __name__ == "__main__":
    sys.exit(main())
