"""An approximate index (Section 4.5, Figure 3): the users' results, and the score channel, at production scale.

The paper's 10^6 passages are not available. One collection here is synthetic with the paper's size and gap, the other
is the largest real one. The paper does not state which positions are noised. With noise on all 10^6 positions the
attack would see no effect (`scan` cells). Noise on the 128 candidates of the graph gives the paper's figures, so this
module measures that case.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from rag_audit.commit.explore.collections import collection
from rag_audit.lab.experiments.certified import LATTICE, certified, mechanism
from rag_audit.lab.experiments.draws import ranks
from rag_audit.lab.experiments.harness import TOP_K, gaussian_chance
from rag_audit.lab.experiments.model import Cell, Experiment, Figure, Results, Size, Value, in_place
from rag_audit.lab.experiments.plots import COLORS, theory_and_markers
from rag_audit.lab.experiments.recall import have_texts
from rag_audit.lab.experiments.statistics import NORMAL, attack, gaussian_auc, paper_sigma
from rag_audit.retrieval.embedders import DEFAULT_EMBEDDER, get_embedder

Vectors = npt.NDArray[np.float32]

LINKS, BUILD, SEARCH = 64, 200, 128
GAP, UNIQUE = 0.133, 0.90
N, TRIALS = 200, 2000
EPS, KS = (4, 8, 16), (1, 2, 5, 10, 20)
PAPER_USER = {(16, 1): 0.500, (16, 20): 0.539}
PAPER_SCORE = {(16, 1): 0.508, (16, 20): 0.582}
DIMENSION, INNER, TOPIC = 64, 16, 1000
REAL = "medquad"
_CHUNK = 20_000


def cells(size: Size) -> list[Cell]:
    """The attack on candidates and on a scan, and the removal of documents from the graph."""
    full = size == "full"
    documents, n, trials = (1_000_000, N, TRIALS) if full else (3000, 20, 300)
    few, removed, requested = (20_000, 5, 500) if full else (1000, 2, 50)
    attacked: dict[str, Value] = {"kind": "candidates", "n": n, "trials": trials}
    without: dict[str, Value] = {"kind": "removal", "removed": removed, "queries": requested}
    sets = [("synthetic", documents, few), *([(REAL, 0, 0)] if full and have_texts() else [])]
    grid = []
    for name, many, less in sets:
        grid += [
            Cell(f"candidates-{name}", "paper", {"collection": name, "documents": many, **attacked}),
            Cell(f"removal-{name}", "paper", {"collection": name, "documents": less, **without}),
        ]
    grid += [
        Cell(f"scan-k{k}", "engine", {"kind": "scan", "k": k, "documents": documents, "n": n, "trials": trials})
        for k in KS
    ]  # fmt: skip
    return grid


def run(cell: Cell, rng: np.random.Generator) -> list[Figure]:
    """One cell of either kind."""
    return {"candidates": _candidates, "removal": _removal, "scan": _scan}[cell["kind"]](cell, rng)


def graph(vectors: Vectors, *, threads: int | None = None) -> Any:
    """An HNSW graph over unit vectors by inner product, with the paper's constants.

    :param threads: one makes it a function of the vectors and their order
    """
    import faiss

    if threads is not None:
        faiss.omp_set_num_threads(threads)
    index = faiss.IndexHNSWFlat(vectors.shape[1], LINKS, faiss.METRIC_INNER_PRODUCT)
    index.hnsw.efConstruction = BUILD
    index.hnsw.efSearch = SEARCH
    for first in range(
        0, len(vectors), _CHUNK
    ):  # in parts, so that an interruption need not wait for a million
        index.add(vectors[first : first + _CHUNK])
    return index


def synthetic(rng: np.random.Generator, documents: int) -> Vectors:
    """Unit vectors in topics of about a thousand, each spread over few directions, topic by topic: as embeddings of
    texts are, and unlike vectors without any structure, among which no graph finds its way.
    """
    topics = max(1, documents // TOPIC)
    centres = _unit(rng.standard_normal((topics, DIMENSION), dtype=np.float32))
    spread = rng.standard_normal((topics, INNER, DIMENSION), dtype=np.float32) / math.sqrt(INNER)
    topic = np.sort(rng.integers(topics, size=documents))
    result = np.empty((documents, DIMENSION), np.float32)
    for first in range(0, documents, _CHUNK):
        of = topic[first : first + _CHUNK]
        within = rng.standard_normal((len(of), INNER), dtype=np.float32)
        rest = rng.standard_normal((len(of), DIMENSION), dtype=np.float32)
        across = np.einsum("ni,nid->nd", within, spread[of])
        result[first : first + len(of)] = _unit(centres[of] + 0.13 * across + 0.02 * rest)
    return result


@lru_cache(maxsize=1)
def _real() -> tuple[Vectors, Vectors]:
    """The collection's passages, except passages without a direction, and its questions, as unit vectors."""
    embedder, texts = get_embedder(DEFAULT_EMBEDDER), collection(REAL)
    requested = texts.sample(500).questions
    passages = embedder.embed_documents([text for text in texts.passages if embedder.tokenize(text)])
    questions = np.array([embedder.embed_query(question) for question in requested])
    return _unit(passages.astype(np.float32)), _unit(questions.astype(np.float32))


def _unit(vectors: npt.NDArray[Any]) -> Vectors:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.maximum(lengths, 1e-12), np.float32)


def _vectors(cell: Cell, rng: np.random.Generator) -> Vectors:
    return synthetic(rng, cell["documents"]) if cell["collection"] == "synthetic" else _real()[0]


def _target(vectors: Vectors, rng: np.random.Generator) -> Vectors:
    """A document with no other within a cosine of 0.90, which is taken as the planted target."""
    for place in rng.permutation(len(vectors))[:200]:
        near = vectors @ vectors[place]
        near[place] = -1
        if float(near.max()) < UNIQUE:
            return np.asarray(vectors[place])
    return np.asarray(vectors[int(rng.integers(len(vectors)))])


def _decoy(target: Vectors, rng: np.random.Generator) -> Vectors:
    """A vector at the paper's gap from the target, in a random direction."""
    across = rng.standard_normal(len(target))
    across -= (across @ target) * target
    across /= np.linalg.norm(across)
    cosine = 1 - GAP
    return np.asarray(cosine * target + math.sqrt(1 - cosine * cosine) * across, np.float32)


def _candidates(cell: Cell, rng: np.random.Generator) -> list[Figure]:
    """The attack on the graph's candidates. Target and decoy are in one graph, and each world omits one of them."""
    vectors = _vectors(cell, rng)
    target = _target(vectors, rng)
    decoy = _decoy(target, rng)
    index = graph(np.vstack([vectors, decoy[None]]))
    scores, places = (row[0] for row in index.search(target[None], SEARCH + 1))
    kept = (places >= 0) & (places != len(vectors)) & (scores < 1 - 1e-5)
    others = scores[kept][: SEARCH - 1].astype(np.float64)
    result = float(len(vectors) in places and bool((scores >= 1 - 1e-5).any()))
    figures = [
        Figure("planted_found", result),
        Figure("candidates", float(len(others) + 1)),
        _recall(index, vectors, rng),
    ]
    n, trials = cell["n"], cell["trials"]
    for eps in EPS:
        sigma = paper_sigma(eps, n)
        hits = (gaussian_chance(1.0, others, sigma), gaussian_chance(1 - GAP, others, sigma))
        for k in KS:
            compared = n == N and k in (1, 20)
            inside, outside = (rng.binomial(k * n, chance, trials) for chance in hits)
            spread = math.sqrt(k * n * sum(h * (1 - h) for h in hits))
            user = attack(inside, outside, prefix=f"user_eps{eps}_k{k}_", paper_trials=TRIALS,
                          paper=PAPER_USER.get((eps, k)) if compared else None,
                          theory=NORMAL.cdf(k * n * (hits[0] - hits[1]) / spread))  # fmt: skip
            means = sigma / math.sqrt(k * n) * rng.standard_normal((2, trials))
            pooled = attack(means[0] + GAP, means[1], prefix=f"score_eps{eps}_k{k}_", paper_trials=TRIALS,
                            paper=PAPER_SCORE.get((eps, k)) if compared else None,
                            theory=gaussian_auc(GAP, sigma, k * n))  # fmt: skip
            figures += [user[0], pooled[0]]
    return figures


def _recall(index: Any, vectors: Vectors, rng: np.random.Generator, requested: int = 100) -> Figure:
    """The share of the nearest five that the graph finds, for queries near documents."""
    probes = vectors[rng.choice(len(vectors), requested)] + 0.05 * rng.standard_normal(
        (requested, vectors.shape[1])
    )
    queries = _unit(probes)
    _, places = index.search(queries, SEARCH)
    best = np.full((requested, TOP_K), -2.0, np.float32)
    for first in range(0, len(vectors), _CHUNK):
        scores = queries @ vectors[first : first + _CHUNK].T
        best = -np.partition(-np.hstack([best, scores]), TOP_K - 1, axis=1)[:, :TOP_K]
    minimum = best.min(axis=1) - 1e-5
    seen = [(vectors[row[(row >= 0) & (row < len(vectors))]] @ q >= t).sum()
            for row, q, t in zip(places, queries, minimum, strict=True)]  # fmt: skip
    shares = np.minimum(np.array(seen) / TOP_K, 1.0)
    return Figure("recall_at_5", float(shares.mean()), float(shares.std()) / math.sqrt(requested))


def _removal(cell: Cell, rng: np.random.Generator) -> list[Figure]:
    """How often the loss of one document changes the candidates, in addition to the one that moves up.

    One thread rebuilds the graph with the zero vector in the document's place, the content of an empty position. Order
    and levels of all others stay the same; omitting the document would draw new levels for the later ones.
    """
    vectors = _vectors(cell, rng)
    requested = cell["queries"]
    near = vectors[rng.choice(len(vectors), requested)] + 0.1 * rng.standard_normal(
        (requested, vectors.shape[1])
    )
    queries = _unit(near) if cell["collection"] == "synthetic" else _real()[1][:requested]
    _, whole = graph(vectors, threads=1).search(queries, SEARCH)
    absent, changed, lists, events = 0, 0, 0, 0
    for document in rng.choice(len(vectors), cell["removed"], replace=False):
        without = vectors.copy()
        without[document] = 0
        _, less = graph(without, threads=1).search(queries, SEARCH)
        for before, after in zip(whole, less, strict=True):
            events += 1
            others = set(before.tolist()) - {int(document)}
            now = set(after.tolist()) - {int(document)}
            fillers = int(document in before)  # a candidate that leaves makes room for one other
            moved = len(now - others) > fillers or bool(others - now)
            changed += moved
            absent += moved and document not in before
            first = [p for p in before.tolist()[: TOP_K + 1] if p != document][:TOP_K]
            lists += first != [p for p in after.tolist()[: TOP_K + 1] if p != document][:TOP_K]
    return [
        _share("others_changed", changed, events, "a score's presence of another document changes"),
        _share(
            "changed_though_no_candidate", absent, events, "of them, the document was no candidate itself"
        ),
        _share("first_five_changed", lists, events, "the five best others change without noise"),
    ]


def _share(name: str, count: int, events: int, note: str) -> Figure:
    share = (count + 1) / (events + 2)
    return Figure(name, count / events, math.sqrt(share * (1 - share) / events), note=note)


def _scan(cell: Cell, rng: np.random.Generator) -> list[Figure]:
    """The engine's own answer at that size: exact scores, and noise on every position."""
    k, n, trials = cell["k"], cell["n"], cell["trials"]
    noise = mechanism(max(EPS), n)
    others = {0: cell["documents"]}
    gone = LATTICE - round(GAP * LATTICE)
    hits = [float(ranks(noise, score, others, TOP_K)[:TOP_K].sum()) for score in (LATTICE, gone)]
    inside, outside = (rng.binomial(k * n, chance, trials) for chance in hits)
    return attack(inside, outside, prefix="user_", bound=certified(noise, k * n))


def draw(results: Results, picture: Any) -> None:
    """The users' results, and the score channel, on the synthetic collection."""
    result = in_place(results, "hnsw")
    whole = next((figures for key, figures in result.items() if key.startswith("candidates-synthetic")), {})
    for axes, name, title in zip(
        picture.subplots(1, 2, sharey=True), ("user", "score"), ("(a) hits in the first five", "(b) score channel"),
        strict=True,
    ):  # fmt: skip
        for eps, color in zip(EPS, COLORS, strict=False):
            shown = [
                (k, whole[f"{name}_eps{eps}_k{k}_auc"]) for k in KS if f"{name}_eps{eps}_k{k}_auc" in whole
            ]
            theory_and_markers(axes, shown, rf"$\varepsilon_{{acc}}$ = {eps}", color)
        axes.set(title=title, xlabel="coalition size k", ylabel="AUC")
        axes.legend(frameon=False)


EXPERIMENT = Experiment(
    "hnsw", "Section 4.5, Figure 3", "an approximate index at scale", cells, run, draw=draw,
    needs=("faiss", "wordllama"),
)  # fmt: skip
