"""The scalar attack with a trained embedder (Appendix A.1): the gap is that of two real texts.

The paper's bge-small is not at hand; wordllama-256 stands for it, the project's own embedder, on fifty paragraphs of
the same kind. The noise stays that of sensitivity 1, so the AUC falls with the gap; with equation (3.4)'s noise in
proportion to the gap it would not, and A.1 says that it does ("linear in Delta").
"""

from __future__ import annotations

import itertools
import math
from functools import lru_cache
from typing import Any

import numpy as np

from rag_audit.lab.experiments.certified import LATTICE, certified, mechanism
from rag_audit.lab.experiments.draws import noise_sums
from rag_audit.lab.experiments.model import Cell, Column, Experiment, Figure, Results, Row, Size, in_place
from rag_audit.lab.experiments.paragraphs import PARAGRAPHS
from rag_audit.lab.experiments.plots import COLORS, theory_and_markers
from rag_audit.lab.experiments.statistics import attack, auc_error, gaussian_auc, growth, paper_sigma
from rag_audit.relation.scores import ScoreWindow
from rag_audit.retrieval.embedders import DEFAULT_EMBEDDER, get_embedder

EPS = 4
KS = (1, 2, 5, 10, 20)
N, TRIALS, PAIRS = 200, 2000, 10
GAP, GAPS = 0.41, (0.41, 0.49)
PAPER = {1: 0.5 + 0.032 / 2, 20: 0.575}
PAPER_MEDIAN = {1: 0.515, 20: 0.573}
COLUMNS: tuple[Column, Column] = ("paper", "engine")


@lru_cache(maxsize=1)
def gaps() -> dict[str, list[float]]:
    """The gap of every ordered pair of paragraphs, where the probe is the first one's vector, sorted: in cosines, and
    as the engine has it, in lattice scores over R.
    """
    embedder = get_embedder(DEFAULT_EMBEDDER)
    rows = embedder.embed_documents(list(PARAGRAPHS)).astype(np.int64)
    products = rows @ rows.T
    lengths = np.sqrt(np.diag(products).astype(np.float64))
    cosines = products / np.outer(lengths, lengths)
    window = ScoreWindow.for_scale(embedder.scale, LATTICE)
    lattice = np.array([[window.quantise(int(s)) for s in row] for row in products])
    pairs = list(itertools.permutations(range(len(rows)), 2))
    return {
        "paper": sorted(float(1 - cosines[a, b]) for a, b in pairs),
        "engine": sorted(float(lattice[a, a] - lattice[a, b]) / LATTICE for a, b in pairs),
    }


def cells(size: Size) -> list[Cell]:
    """One pair for every k, and ten pairs at the smallest and the largest k."""
    n, trials = (N, TRIALS) if size == "full" else (20, 300)
    shape = {"n": n, "trials": trials}
    grid = [Cell(f"{c}-pair-k{k}", c, {"pairs": 1, "k": k, **shape}) for c in COLUMNS for k in KS]
    return grid + [
        Cell(f"{c}-ten-k{k}", c, {"pairs": PAIRS, "k": k, **shape}) for c in COLUMNS for k in (1, 20)
    ]


def run(cell: Cell, rng: np.random.Generator) -> list[Figure]:
    """The attack on one pair, or on ten, of which the median and the range are told."""
    k, n, column = cell["k"], cell["n"], cell.column
    if cell["pairs"] == 1:
        gap = min(gaps()[column], key=lambda g: abs(g - GAP))
        inside, outside, theory = _scores(rng, cell, gap)
        paper = PAPER.get(k) if n == N else None
        bound = certified(mechanism(EPS, n), k * n) if column == "engine" else None
        return [*attack(inside, outside, paper=paper, paper_trials=TRIALS, theory=theory, bound=bound),
                Figure("gap", gap, note=f"the paper: {GAP}")]  # fmt: skip
    low, high = GAPS
    near = sorted({g for g in gaps()[column] if low <= g <= high}) or gaps()[column][:1]
    chosen = [near[int(i)] for i in rng.choice(len(near), PAIRS, replace=len(near) < PAIRS)]
    areas, theories = [], []
    for gap in chosen:
        inside, outside, theory = _scores(rng, cell, gap)
        areas.append(attack(inside, outside)[0].value)
        theories.append(theory)
    middle = float(np.median(areas))
    # The median of ten has about 1.16 times the standard error of their mean (for a Gaussian, exactly so at ten).
    error = 1.16 * float(np.std(areas, ddof=1)) / math.sqrt(PAIRS)
    paper = PAPER_MEDIAN.get(k) if n == N else None
    paper_error = 1.16 * auc_error(middle, TRIALS) / math.sqrt(PAIRS)
    return [
        Figure("median_auc", middle, error, paper=paper, paper_error=paper_error, theory=float(np.median(theories))),
        Figure("least_auc", min(areas)),
        Figure("largest_auc", max(areas)),
    ]  # fmt: skip


def _scores(rng: np.random.Generator, cell: Cell, gap: float) -> tuple[Any, Any, float]:
    k, n, trials = cell["k"], cell["n"], cell["trials"]
    if cell.column == "paper":
        sigma = paper_sigma(EPS, n)
        draws = sigma / math.sqrt(k * n) * rng.standard_normal((2, trials))
        return draws[0] + gap, draws[1], gaussian_auc(gap, sigma, k * n)
    noise = mechanism(EPS, n)
    signal = round(gap * noise.lattice) * k * n
    theory = gaussian_auc(gap, noise.sigma_over_delta, k * n)
    return noise_sums(rng, noise, k * n, trials) + signal, noise_sums(rng, noise, k * n, trials), theory


def derive(results: Results) -> list[Row]:
    """The growth of the advantage from k = 1 to k = 20."""
    found, rows = in_place(results, "embedder"), []
    for column in COLUMNS:
        ends = [found[key]["auc"] for k in (1, 20) if (key := f"{column}-pair-k{k}") in found]
        if len(ends) == 2:
            rows.append(Row("growth of the advantage", growth(*ends, paper=4.69), column))
    return rows


def draw(results: Results, picture: Any) -> None:
    """AUC against k."""
    found, axes = in_place(results, "embedder"), picture.subplots()
    for column, color in zip(COLUMNS, COLORS, strict=False):
        shown = [(k, found[key]["auc"]) for k in KS if (key := f"{column}-pair-k{k}") in found]
        theory_and_markers(axes, shown, {"paper": "ideal Gaussian", "engine": "engine"}[column], color)
    axes.set(xlabel="coalition size k", ylabel="AUC")
    axes.legend(frameon=False)


EXPERIMENT = Experiment(
    "embedder", "Appendix A.1", "the scalar attack on texts under a trained embedder", cells, run, derive, draw,
    needs=("wordllama",),
)  # fmt: skip
