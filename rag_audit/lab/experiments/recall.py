"""Recall against eps_audit on real questions: the remaining quality of answers under a policy's noise."""

from __future__ import annotations

import os
from functools import lru_cache
from typing import Any

import numpy as np

from rag_audit._internal.errors import PolicyError
from rag_audit.commit.explore.collections import CollectionError, collection, folder
from rag_audit.commit.explore.ladder import DEFAULT_MECHANISMS
from rag_audit.commit.explore.samples import Passage, Question, Sample, make_sample
from rag_audit.commit.explore.simulate import Noise, measure_recall
from rag_audit.lab.experiments.model import Cell, Experiment, Figure, Results, Size
from rag_audit.lab.experiments.plots import COLORS
from rag_audit.mechanisms import accounting
from rag_audit.mechanisms.accounting import Mechanism
from rag_audit.relation.scores import ScoreWindow
from rag_audit.retrieval.embedders import DEFAULT_EMBEDDER, get_embedder

TOP_K, N, K = 5, 200, 10
DELTA = "1e-5"
COLLECTION = "squad"


def have_texts() -> bool:
    """Whether the public collections are at hand."""
    try:
        return bool(os.listdir(folder()))
    except (CollectionError, OSError):
        return False


def cells(size: Size) -> list[Cell]:
    """The explorer's ladder of noise, from 0.08 to 32 sensitivities; empty without the collections."""
    questions = 1000 if size == "full" else 40
    ladder = DEFAULT_MECHANISMS if size == "full" else DEFAULT_MECHANISMS[4:5]
    return [
        Cell(f"gains-{'-'.join(map(str, gains))}-R{lattice}", "engine",
             {"gains": ",".join(map(str, gains)), "lattice": lattice, "questions": questions})
        for gains, lattice in ladder if have_texts()
    ]  # fmt: skip


@lru_cache(maxsize=1)
def _sample(questions: int) -> Sample:
    texts = collection(COLLECTION).sample(questions)
    return make_sample(
        [Passage((str(i),), text) for i, text in enumerate(texts.passages)],
        [Question(text, tuple(map(str, wanted)), f"question {i}")
         for i, (text, wanted) in enumerate(zip(texts.questions, texts.relevant, strict=True))],
        get_embedder(DEFAULT_EMBEDDER),
    )  # fmt: skip


def run(cell: Cell, rng: np.random.Generator) -> list[Figure]:
    """Recall at 5 under one noise, and the exact eps_audit of 10 accounts with 200 queries each."""
    gains, lattice = tuple(map(int, cell["gains"].split(","))), cell["lattice"]
    window = ScoreWindow(*get_embedder(DEFAULT_EMBEDDER).score_window, lattice)
    (result,) = measure_recall(
        _sample(cell["questions"]), [Noise(gains, window)], top_k=TOP_K, seed=int(rng.integers(2**31))
    )
    figures = [Figure("recall_at_5", result.recall, result.error)]
    try:
        eps = accounting.eps_at(Mechanism(gains, lattice), N * K, DELTA)
    except PolicyError:  # the lattice is beyond the noise's support: there is no bound
        return figures
    return [*figures, Figure("eps_audit", eps, note=f"n = {N}, k = {K}, delta = {DELTA}")]


def draw(results: Results, picture: Any) -> None:
    """Recall against eps."""
    axes = picture.subplots()
    points = [{f.name: f for f in figures} for _, figures in results["recall"]]
    finite = sorted(
        (p["eps_audit"].value, p["recall_at_5"]) for p in points
        if "eps_audit" in p and np.isfinite(p["eps_audit"].value)
    )  # fmt: skip
    axes.errorbar([e for e, _ in finite], [100 * r.value for _, r in finite], yerr=[100 * r.error for _, r in finite],
                  fmt="o-", color=COLORS[0], markersize=4, capsize=2)  # fmt: skip
    axes.set(xscale="log", xlabel=rf"$\varepsilon_{{audit}}$ at $\delta$ = {DELTA}, n = {N}, k = {K}",
             ylabel="recall@5, percent")  # fmt: skip
    axes.spines[["top", "right"]].set_visible(False)


EXPERIMENT = Experiment(
    "recall", "beyond the paper", "recall of real questions and eps_audit", cells, run, draw=draw,
    needs=("wordllama",),
)  # fmt: skip
