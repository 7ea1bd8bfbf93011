"""The coalition estimator's error rates (Section 5.4, Figure 4, Observation 5.2): twelve coalitions and none."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.special import betainc

from rag_audit.estimate import calibration
from rag_audit.lab.experiments.model import Cell, Column, Experiment, Figure, Results, Size, in_place
from rag_audit.lab.experiments.plots import COLORS
from rag_audit.lab.experiments.toy import int4

PAPER_FPR = {0.75: 0.595, 0.80: 0.040, **{p / 100: 1.0 for p in range(20, 70, 5)}}
FIGURE_K = 10
COLUMNS: tuple[Column, Column] = ("paper", "engine")


def cells(size: Size) -> list[Cell]:
    """No coalition, and three patterns of coalitions of 2, 5, 10 and 20 among 30 accounts."""
    trials = calibration.TRIALS if size == "full" else 4
    cases = [("null", 1), *((p, k) for p in calibration.PATTERNS for k in calibration.COALITIONS)]
    return [
        Cell(f"{column}-{p}-k{k}", column, {"pattern": p, "k": k, "trials": trials})
        for column in COLUMNS for p, k in cases
    ]  # fmt: skip


def run(cell: Cell, rng: np.random.Generator) -> list[Figure]:
    """One pattern's rates at every theta."""
    pattern, k_true, trials = cell["pattern"], cell["k"], cell["trials"]
    steps = []
    for _ in range(trials):
        vectors = calibration.draw(rng, pattern, k_true)
        if (
            cell.column == "engine"
        ):  # the cosines of int4 vectors; a window compares the same ones in integers
            lengths = np.linalg.norm(vectors, axis=2, keepdims=True)
            vectors = int4(vectors / lengths).astype(np.float32)
        steps.append(calibration.growth(calibration.account_cosines(vectors)))
    figures = []
    for theta in calibration.THETAS:
        c = np.array([calibration.largest_cluster(s, theta) for s in steps])
        if pattern == "null":
            paper = PAPER_FPR.get(theta)
            theory = false_clusters(theta) if cell.column == "paper" else None
            note = "theory: independent pairs" if theory is not None and 0.7 <= theta <= 0.85 else ""
            figures.append(_rate(f"fpr_theta_{theta:.2f}", c >= 2, paper, theory, note))
            continue
        at_point = theta == calibration.OPERATING_POINT
        figures.append(_rate(f"tpr_theta_{theta:.2f}", c >= 2, 1.0 if at_point else None))
        if at_point:
            figures.append(_rate("c_is_k", c == k_true, 1.0))
        error = float(np.std(c)) / math.sqrt(trials)
        figures.append(Figure(f"mean_c_theta_{theta:.2f}", float(np.mean(c)), error))
    return figures


def _rate(
    name: str, hits: Any, paper: float | None = None, theory: float | None = None, note: str = ""
) -> Figure:
    """A share of trials. Its error is the error of a proportion with one more success and one more failure, since a
    measured share of 0 or 1 is no certainty."""
    trials = len(hits)
    smoothed = (float(np.sum(hits)) + 1) / (trials + 2)
    paper_error = 0.0 if paper is None else math.sqrt(max(paper * (1 - paper), 1 / 202) / calibration.TRIALS)
    return Figure(name, float(np.mean(hits)), math.sqrt(smoothed * (1 - smoothed) / trials), paper=paper,
                  paper_error=paper_error, theory=theory, note=note)  # fmt: skip


def false_clusters(theta: float) -> float:
    """The chance of any pair of accounts joined at theta, if all pairs of queries were independent.

    The cosine of two uniform directions in d dimensions exceeds theta with half the regularised incomplete beta
    function of 1 - theta^2 at ((d - 1)/2, 1/2); the number of such pairs among 30 accounts is close to Poisson.
    """
    a, q, d = calibration.ACCOUNTS, calibration.QUERIES, calibration.DIMENSION
    pairs = a * (a - 1) / 2 * q * q
    return -math.expm1(-pairs * float(betainc((d - 1) / 2, 0.5, 1 - theta * theta)) / 2)


def draw(results: Results, picture: Any) -> None:
    """False positives over theta, the mean c of a coalition of ten, and the ROC of coalitions of two."""
    result = in_place(results, "estimator")
    left, middle, right = picture.subplots(1, 3)
    fpr = [(theta, result["paper-null-k1"][f"fpr_theta_{theta:.2f}"]) for theta in calibration.THETAS]
    left.errorbar([t for t, _ in fpr], [f.value for _, f in fpr], yerr=[f.error for _, f in fpr], fmt="o",
                  color="#333333", markersize=3, capsize=2, label="measured")  # fmt: skip
    left.plot(
        [t for t, _ in fpr],
        [f.theory for _, f in fpr],
        "-",
        color=COLORS[0],
        linewidth=1,
        label="independent",
    )
    paper = [(t, f.paper) for t, f in fpr if f.paper is not None]
    left.plot([t for t, _ in paper], [p for _, p in paper], "x", color=COLORS[1], label="paper")
    own = [(t, result["engine-null-k1"][f"fpr_theta_{t:.2f}"].value) for t in calibration.THETAS]
    left.plot([t for t, _ in own], [v for _, v in own], "+", color=COLORS[2], label="int4 vectors")
    left.set(xlabel=r"threshold $\theta$", ylabel="false positive rate, no coalition")
    for pattern, color in zip(calibration.PATTERNS, COLORS, strict=False):
        ten, two = result[f"paper-{pattern}-k{FIGURE_K}"], result[f"paper-{pattern}-k2"]
        at = [(t, ten[f"mean_c_theta_{t:.2f}"].value) for t in calibration.THETAS]
        middle.plot([t for t, _ in at], [c for _, c in at], "o-", color=color, markersize=3, label=pattern)
        roc = [(f.value, two[f"tpr_theta_{t:.2f}"].value) for t, f in fpr]
        right.plot(
            [x for x, _ in roc],
            [y for _, y in roc],
            "o-",
            color=color,
            markersize=3,
            label=f"{pattern}, k = 2",
        )
    middle.axhline(FIGURE_K, color="#888888", linestyle=":")
    middle.set(xlabel=r"threshold $\theta$", ylabel=f"mean c, coalition of {FIGURE_K}")
    right.set(
        xlabel="false positive rate", ylabel="true positive rate", xlim=(-0.03, 1.03), ylim=(-0.03, 1.03)
    )
    for axes in (left, middle):
        axes.axvline(calibration.OPERATING_POINT, color="#888888", linestyle="--", linewidth=1)
    for axes in (left, middle, right):
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False)


EXPERIMENT = Experiment(
    "estimator", "Section 5.4, Figure 4, Observation 5.2", "error rates of the coalition estimator", cells, run,
    draw=draw,
)  # fmt: skip
