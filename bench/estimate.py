"""The coalition estimator: its time, its false alarms on real questions, and the success of attackers who evade it.

    python -m bench.estimate [--queries N] [--tau N] [--trials N] [--json]

The script has three parts:

- time and memory of the exact estimate, and of the float32 products that it replaces;
- false clusters among honest accounts that ask SQuAD dev v1.1 questions (RAG_AUDIT_DATA);
- a coalition that attacks one paragraph with queries that stay below theta: the membership AUC that the coalition still
  reaches while c is 1.

Each evading account repeats one text, because the estimator never compares an account with itself. The text is a random
choice of the target's words, rejected while it is near to another account's text. A query tells whether the target's
position was selected. The attacker knows every selection probability, so the AUC is that of the likelihood ratio. The
script integrates over the noise: it samples the K-th best of the other positions and sums the exact tail of the
target's own noise.
"""

from __future__ import annotations

import gzip
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import numpy.typing as npt

from bench.common import emit, measured, parser
from rag_audit.commit.explore.collections import CollectionError, folder
from rag_audit.estimate.calibration import calibrate_questions
from rag_audit.estimate.clusters import estimate
from rag_audit.mechanisms import accounting
from rag_audit.models.policy import DEFAULT_SCORE_WINDOW
from rag_audit.relation.scores import ScoreWindow
from rag_audit.retrieval.embedders import Embedder, get_embedder
from rag_audit.retrieval.engine import Int8Array

Floats = npt.NDArray[np.float64]

ACCOUNTS = 1000
DIMENSION = 256
THETA = (4, 5)
SIZES = ((30, 100, 4), (16, 200, 10), (30, 10, 4), (10, 10, 4), (4, 10, 4))
"""accounts, questions of each, and k_max of honest windows"""
# One policy for the evasion: sigma/Delta = 4.03, 20 queries an account, coalitions of 10, 16 accounts a tenant at most.
GAINS, LATTICE, CAPACITY, TOP_K, N, COALITION, ACCOUNTS_MAX = (1, 8), 32, 1024, 5, 20, 10, 16
DELTA = "1e-5"
CANDIDATES = 400
DRAWS = 500


@dataclass(frozen=True)
class Query:
    """The fields of a record that the estimator reads."""

    seq: int
    ts: int
    account: str
    tenant: str


def bell(rng: np.random.Generator, count: int) -> Int8Array:
    return np.clip(np.rint(rng.normal(0, 2, (count, DIMENSION))), -7, 7).astype(np.int8)


def scale(queries: int, tau: int) -> dict[str, Any]:
    """Measure seconds and peak memory of one window in which ten accounts share a probe."""
    rng = np.random.default_rng(1)
    vectors = bell(rng, queries)
    askers = rng.integers(ACCOUNTS, size=queries)
    vectors[askers < COALITION] = bell(rng, 1)
    records = [Query(i + 2, 0, f"a{a}", f"t{a % 7}") for i, a in enumerate(askers)]
    cost, result = measured(lambda: estimate(records, vectors, theta=THETA, tau=tau))
    assert result.c == COALITION
    pairs = sum(min(j, tau) if tau else j for j in range(queries))
    block, others = vectors[:128].astype(np.float32), vectors[:10_000].astype(np.float32)
    start = time.perf_counter()
    for _ in range(10):
        block @ others.T
    products = (time.perf_counter() - start) / 10 / (len(block) * len(others))
    return {
        "queries": queries,
        "tau": tau,
        "pairs": pairs,
        "seconds": {"estimate": cost.seconds, "float32_products_alone": products * pairs},
        "cpu_seconds": {"estimate": cost.cpu_seconds},
        "peak_bytes": {"estimate": cost.peak_bytes},
    }


def honest(vectors: Int8Array, trials: int) -> list[dict[str, Any]]:
    """Return false clusters at theta = 0.80, and the theta with a rate of at most 5 %, by window size."""
    reports = [
        calibrate_questions(vectors, k_max=k_max, accounts=accounts, queries=queries, trials=trials)
        for accounts, queries, k_max in SIZES
    ]
    return [{k: v for k, v in asdict(report).items() if k != "cells"} for report in reports]


@dataclass(frozen=True)
class Target:
    """One attacked paragraph, among the other paragraphs of its tenant."""

    text: str
    vector: Int8Array
    others: Int8Array


def near(a: Int8Array, b: Int8Array, theta: tuple[int, int]) -> bool:
    """Compute the estimator's predicate, exactly."""
    s, aa, bb = (int(np.dot(u.astype(np.int64), v)) for u, v in ((a, b), (a, a), (b, b)))
    return s > 0 and s * s * theta[1] ** 2 >= theta[0] ** 2 * aa * bb


def probes(
    target: Target, embedder: Embedder, rng: Random, count: int, theta: tuple[int, int]
) -> list[Int8Array]:
    """Make vectors of texts made of the target's words: best scores first; no two vectors are near."""
    words = target.text.split()
    candidates = []
    for _ in range(CANDIDATES):
        size = rng.randint(3, min(30, len(words)))
        candidates.append(embedder.embed_query(" ".join(rng.sample(words, size))))
    candidates.sort(key=lambda v: -int(np.dot(v.astype(np.int64), target.vector)))
    chosen: list[Int8Array] = []
    for candidate in candidates:
        if len(chosen) < count and not any(near(candidate, other, theta) for other in chosen):
            chosen.append(candidate)
    return chosen


def selection(
    target: Target, probe: Int8Array, noise: accounting.Mechanism, rng: np.random.Generator
) -> tuple[float, float]:
    """Probabilities that the target's position is selected, with the target there and with the position empty."""
    window = ScoreWindow(*DEFAULT_SCORE_WINDOW, LATTICE)
    u = np.array([window.quantise(int(s)) for s in target.others.astype(np.int64) @ probe])
    own = window.quantise(int(np.dot(target.vector.astype(np.int64), probe)))
    cdf = np.cumsum(noise.pmf)
    draws = np.searchsorted(cdf, rng.random((DRAWS, len(u))) * cdf[-1]) - noise.half_support
    kth = np.partition(u + draws, -TOP_K, axis=1)[:, -TOP_K]
    tail = np.append(np.cumsum(noise.pmf[::-1])[::-1], 0.0)

    def wins(score: int) -> float:
        # Positions are random, so a tie is won half the time.
        at = np.clip(kth - score + noise.half_support, 0, len(tail) - 2)
        return float(np.mean((tail[at] + tail[at + 1]) / 2))

    return wins(own), wins(0)


def auc(chances: Sequence[tuple[float, float]], rng: np.random.Generator, samples: int = 20_000) -> float:
    """Return the AUC of the likelihood ratio over N selections of each probe."""
    inside, outside = (np.clip(np.array([c[w] for c in chances]), 1e-9, 1 - 1e-9) for w in (0, 1))
    weight = np.log(inside / outside) - np.log((1 - inside) / (1 - outside))
    with_target, without = (
        np.sort(rng.binomial(N, p, (samples, len(p))) @ weight) for p in (inside, outside)
    )
    below = np.searchsorted(without, with_target - 1e-9) + np.searchsorted(without, with_target + 1e-9)
    return float(np.mean(below) / 2 / samples)


def evasion(passages: Sequence[str], embedder: Embedder, targets: int) -> dict[str, Any]:
    """Mean AUC over targets: one account, ten with one probe (c = 10), ten with probes below theta (c = 1)."""
    rng, generator = Random(2), np.random.default_rng(2)
    noise = accounting.Mechanism(GAINS, LATTICE)
    texts = rng.sample(list(passages), CAPACITY + targets - 1)
    vectors = embedder.embed_documents(texts)
    aucs: dict[str, list[float]] = {}
    scores: dict[str, list[float]] = {}
    sizes: list[int] = []
    for t in range(targets):
        target = Target(texts[t], vectors[t], vectors[targets : targets + CAPACITY - 1])
        for label, theta in (("0.80", (4, 5)), ("0.60", (3, 5)), ("0.40", (2, 5))):
            chosen = probes(target, embedder, rng, COALITION, theta)
            sizes.append(len(chosen))
            records = [Query(i, 0, f"a{i}", "t") for i in range(len(chosen))]
            assert estimate(records, np.stack(chosen), theta=theta).c == 1
            chances = [selection(target, probe, noise, generator) for probe in chosen]
            aucs.setdefault(f"evading theta {label}", []).append(auc(chances, generator))
            scores.setdefault(f"evading theta {label}", []).append(
                float(np.mean(np.stack(chosen).astype(np.int64) @ target.vector))
            )
            if label == "0.80":
                aucs.setdefault("one account", []).append(auc(chances[:1], generator))
                aucs.setdefault("one probe", []).append(auc(chances[:1] * COALITION, generator))
                scores.setdefault("one probe", []).append(float(chosen[0].astype(np.int64) @ target.vector))

    def bounds(accounts: int) -> dict[str, Any]:
        return {
            "eps": round(accounting.eps_at(noise, accounts * N, DELTA), 2),
            "auc_bound": round(accounting.membership(noise, accounts * N).auc_bound, 4),
        }

    return {
        "policy": {"gains": GAINS, "lattice": LATTICE, "capacity": CAPACITY, "top_k": TOP_K, "n": N,
                   "coalition": COALITION, "targets": targets, "delta": DELTA},
        "fewest_probes": min(sizes),
        "auc": {name: round(float(np.mean(values)), 3) for name, values in aucs.items()},
        "auc_sd_over_targets": {name: round(float(np.std(values)), 3) for name, values in aucs.items()},
        "mean_raw_score": {name: round(float(np.mean(values))) for name, values in scores.items()},
        "bound_one_account": bounds(1),
        "bound_coalition": bounds(COALITION),
        "bound_all_accounts": bounds(ACCOUNTS_MAX),
    }  # fmt: skip


def lines(path: Path) -> list[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as handle:
        return [json.loads(line) for line in handle]


def main() -> None:
    """Measure and print."""
    options = parser(__doc__)
    options.add_argument("--queries", type=int, default=100_000)
    options.add_argument("--tau", type=int, default=10_000, help="query positions; 0: the whole window")
    options.add_argument("--trials", type=int, default=200, help="honest windows of each size")
    options.add_argument("--targets", type=int, default=40, help="paragraphs that the coalition attacks")
    args = options.parse_args()
    figures: dict[str, Any] = {"scale": scale(args.queries, args.tau)}
    try:
        data = folder()
    except CollectionError as exc:
        print(f"bench: {exc}", file=sys.stderr)
    else:
        embedder = get_embedder()
        requested = lines(data / "squad_dev_v1.1_questions.jsonl.gz")
        vectors = np.stack([embedder.embed_query(line["question"]) for line in requested])
        figures["honest"] = honest(vectors, args.trials)
        passages = [line["text"] for line in lines(data / "squad_dev_v1.1_passages.jsonl.gz")]
        figures["evasion"] = evasion(passages, embedder, args.targets)
    emit(figures, as_json=args.json)


if __name__ == "__main__":
    main()
