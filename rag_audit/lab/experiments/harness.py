"""The top-K harness (Section 4.4, Figure 2b) and external collusion under M4 (Appendix A.3, Figure 5).

Each account asks the probe n times; the statistic is how often the target's position is among the K that are returned.
The paper's column draws every noise. The engine's draws the count from its exact law: queries are independent, and
the chance of a hit follows from the noise table (`draws.ranks`); `committed` runs the engine itself.
"""

from __future__ import annotations

import math
import statistics as averages
from typing import Any

import numpy as np

from rag_audit.lab.experiments.certified import LATTICE, certified, mechanism
from rag_audit.lab.experiments.draws import Floats, Ints, ranks
from rag_audit.lab.experiments.model import Cell, Column, Experiment, Figure, Results, Row, Size, in_place
from rag_audit.lab.experiments.plots import COLORS, auc_against_k
from rag_audit.lab.experiments.statistics import NORMAL, attack, growth, paper_sigma
from rag_audit.lab.experiments.toy import counted, toy

KS = (1, 2, 5, 10, 20)
EPS = (4, 8, 16)
COLUMNS: tuple[Column, Column] = ("paper", "engine")
TOP_K = 5
N = 200
TRIALS = 2000
PAPER = {(16, 1): 0.598, (16, 20): 0.814, (4, 20): 0.611}
PAPER_EXTERNAL = {(16, 20): 0.810, (16, 1): 0.5 + 0.310 / 3.95}
"""The second from the growth of the advantage that A.3 prints: 3.95 from k = 1 to k = 20."""
_CHUNK = 1 << 13


def cells(size: Size) -> list[Cell]:
    """The paper's fifteen cells in both columns."""
    n, trials = (N, TRIALS) if size == "full" else (20, 100)
    return [
        Cell(f"{column}-eps{eps}-k{k}", column, {"eps": eps, "k": k, "n": n, "trials": trials})
        for column in COLUMNS for eps in EPS for k in KS
    ]  # fmt: skip


def run_same_tenant(cell: Cell, rng: np.random.Generator) -> list[Figure]:
    """The attack by accounts of the target's tenant."""
    return _run(cell, rng, PAPER)


def run_external(cell: Cell, rng: np.random.Generator) -> list[Figure]:
    """The attack by accounts of other tenants that reach the index by a fault (M4). The same mechanism answers their
    queries with independent noise, so only the draws differ.
    """
    return _run(cell, rng, PAPER_EXTERNAL)


def _run(cell: Cell, rng: np.random.Generator, published: dict[tuple[int, int], float]) -> list[Figure]:
    eps, k, n, trials = cell["eps"], cell["k"], cell["n"], cell["trials"]
    paper = published.get((eps, k)) if n == N else None
    if cell.column == "paper":
        sigma = paper_sigma(eps, n)
        background, decoy = toy().background, toy().decoy
        inside = gaussian_hits(rng, 1.0, background, sigma, k * n, trials)
        outside = gaussian_hits(rng, decoy, background, sigma, k * n, trials)
        chances = (gaussian_chance(1.0, background, sigma), gaussian_chance(decoy, background, sigma))
        bound = None
    else:
        noise = mechanism(eps, n)
        chances = (engine_chance(eps, n, inside=True), engine_chance(eps, n, inside=False))
        inside, outside = (rng.binomial(k * n, chance, trials) for chance in chances)
        bound = certified(noise, k * n)
    return attack(
        inside, outside, paper=paper, paper_trials=TRIALS, theory=_auc_of_counts(*chances, k * n), bound=bound
    )


def gaussian_hits(
    rng: np.random.Generator, score: float, others: Floats, sigma: float, queries: int, trials: int
) -> Ints:
    """How often a position with this score is among the K best of `queries` noised rankings, shape (trials,)."""
    hits = np.zeros(trials, np.int64)
    floor = (others / sigma).astype(np.float32)
    each = max(1, _CHUNK // queries)  # trials at a time, where a trial is short
    for first in range(0, trials, each):
        count = min(each, trials - first)
        for done in range(0, queries, _CHUNK):
            width = min(_CHUNK, queries - done)
            noise = rng.standard_normal((len(others) + 1, count, width), dtype=np.float32)
            noise[0] += np.float32(score / sigma)
            above = np.zeros((count, width), np.int8)
            for row, base in zip(noise[1:], floor, strict=True):
                above += (row + base) > noise[0]
            hits[first : first + count] += (above < TOP_K).sum(axis=1)
    return hits


def gaussian_chance(score: float, others: Floats, sigma: float, top_k: int = TOP_K) -> float:
    """The chance of one hit, by quadrature over the target's noise."""
    grid = np.linspace(-9, 9, 1801)
    weights = np.exp(-grid * grid / 2) * (grid[1] - grid[0]) / math.sqrt(2 * math.pi)
    counts = np.zeros((top_k, len(grid)))
    counts[0] = 1.0
    for other in others:
        beats = np.array([NORMAL.cdf(float((other - score) / sigma - z)) for z in grid])
        counts[1:] = counts[1:] * (1 - beats) + counts[:-1] * beats
        counts[0] *= 1 - beats
    return float((counts.sum(axis=0) * weights).sum())


def engine_chance(eps: int, n: int, *, inside: bool) -> float:
    """The chance of one hit in the engine, exactly from the noise table."""
    target, *others = toy().lattice_scores(LATTICE, inside=inside)
    return float(ranks(mechanism(eps, n), target, counted(others), TOP_K)[:TOP_K].sum())


def _auc_of_counts(inside: float, outside: float, queries: int) -> float:
    """P(X > Y) + P(X = Y)/2 of two binomials, by their normal limits, which is good to 1e-4 at 200 queries."""
    spread = math.sqrt(queries * (inside * (1 - inside) + outside * (1 - outside)))
    return NORMAL.cdf(queries * (inside - outside) / spread)


def derive_growth(results: Results) -> list[Row]:
    """The growth of the advantage 2 AUC - 1 from k = 1 to k = 20."""
    result, rows = in_place(results, "topk"), []
    for column in COLUMNS:
        for eps in EPS:
            ends = [result[key]["auc"] for k in (1, 20) if (key := f"{column}-eps{eps}-k{k}") in result]
            if len(ends) == 2:
                figure = growth(*ends, paper=3.2 if eps == 16 else None)
                rows.append(Row(f"growth of the advantage, eps {eps}", figure, column))
    return rows


def derive_differences(results: Results) -> list[Row]:
    """AUC of external minus same-tenant accounts, the largest and the median, with the largest in standard errors."""
    ours, theirs, rows = in_place(results, "topk"), in_place(results, "external"), []
    for column in COLUMNS:
        keys = [key for key in theirs if key in ours and key.startswith(column)]
        differences = [abs(theirs[key]["auc"].value - ours[key]["auc"].value) for key in keys]
        errors = [math.hypot(theirs[key]["auc"].error, ours[key]["auc"].error) for key in keys]
        if not keys:
            continue
        maximum, error = max(d / e for d, e in zip(differences, errors, strict=True)), max(errors)
        note = f"largest in standard errors {maximum:.2f}, of {len(keys)} cells"
        for name, value, paper in (
            ("largest", max(differences), 0.022),
            ("median", averages.median(differences), 0.010),
        ):
            figure = Figure("difference", value, error, paper=paper, paper_error=error, note=note)
            rows.append(Row(f"external - same tenant, {name}", figure, column))
    return rows


def draw(results: Results, picture: Any) -> None:
    """AUC against k, one line for each eps."""
    titles: dict[Column, str] = {"paper": "ideal Gaussian", "engine": "engine"}
    auc_against_k(in_place(results, "topk"), picture, EPS, KS, titles, "AUC of the count of hits")


TOP_K_HARNESS = Experiment(
    "topk", "Section 4.4, Figure 2(b)", "hits of the target in the list of K positions", cells, run_same_tenant,
    derive_growth, draw,
)  # fmt: skip


def draw_external(results: Results, picture: Any) -> None:
    """External accounts and the tenant's accounts, in one picture."""
    ours, theirs = in_place(results, "topk"), in_place(results, "external")
    axes = picture.subplots(1, 2, sharey=True)
    for place, column in zip(axes, COLUMNS, strict=True):
        for eps, color in zip(EPS, COLORS, strict=False):
            for result, style, label in ((ours, "s-", f"same tenant, eps {eps}"), (theirs, "o--", None)):
                shown = [(k, result[key]["auc"]) for k in KS if (key := f"{column}-eps{eps}-k{k}") in result]
                place.errorbar([k for k, _ in shown], [f.value for _, f in shown], yerr=[f.error for _, f in shown],
                               fmt=style, color=color, markersize=3, linewidth=1, label=label)  # fmt: skip
        place.set(title={"paper": "ideal Gaussian", "engine": "engine"}[column], xlabel="coalition size k")
        place.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel("AUC (dashed: external)")
    axes[0].legend(frameon=False)


EXTERNAL = Experiment(
    "external", "Appendix A.3, Figure 5", "external accounts under M4 in addition to the tenant's"
                                          " accounts", cells, run_external,
    derive_differences, draw_external, after=("topk",),
)  # fmt: skip
