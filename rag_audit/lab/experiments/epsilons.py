"""eps_audit against k (Section 3.8): the paper's leading term, equation (5.2), Renyi accounting, the exact bound."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rag_audit.lab.experiments.certified import DELTA_ACC, mechanism
from rag_audit.lab.experiments.model import Cell, Experiment, Figure, Results, Size, in_place
from rag_audit.lab.experiments.plots import COLORS
from rag_audit.lab.experiments.scalar import LATTICE
from rag_audit.mechanisms import accounting

KS = (1, 2, 5, 10, 20, 50, 100)
EPS = (1, 2)
DELTA_POLICY = "2e-4"
"""More than 100 accounts' 10^-6 each, as the paper's well-formedness asks."""
PAPER = {(10, 1): 3.16, (50, 1): 7.07, (50, 2): 14.14, (100, 1): 10.00}
SHOWN = {
    "leading_term": "paper: sqrt(k) eps_acc (no bound)",
    "closed_form": "equation (5.2)",
    "rdp": "Renyi",
    "exact": "exact",
}


def cells(size: Size) -> list[Cell]:
    """k up to 100 at eps 1 and 2, for the noise of equation (3.4)."""
    n, ks = (10_000, KS) if size == "full" else (100, (1, 10))
    return [Cell(f"eps{eps}-k{k}", "engine", {"eps": eps, "k": k, "n": n}) for eps in EPS for k in ks]


def run(cell: Cell, rng: np.random.Generator) -> list[Figure]:
    """Every bound of one policy."""
    eps, k, n = cell["eps"], cell["k"], cell["n"]
    result = accounting.audit_bounds(
        mechanism(eps, n, LATTICE), n=n, eps_acc=eps, delta_acc=DELTA_ACC, k=k, delta=DELTA_POLICY
    )
    values = {
        "leading_term": math.sqrt(k) * eps,
        "closed_form": result.closed_form.eps,
        "rdp": result.rdp.eps,
        "exact": result.exact.eps,
        "exact_gaussian": result.comparisons["exact_gaussian"],
    }
    return [
        Figure(name, value, paper=PAPER.get((k, eps)) if name == "leading_term" else None)
        for name, value in values.items()
        if math.isfinite(value)
    ]


def draw(results: Results, picture: Any) -> None:
    """Each bound against k, a panel for each eps."""
    result = in_place(results, "epsilons")
    for axes, eps in zip(picture.subplots(1, len(EPS)), EPS, strict=True):
        for (name, label), color in zip(SHOWN.items(), COLORS, strict=False):
            at = [
                (k, result[key][name].value)
                for k in KS
                if (key := f"eps{eps}-k{k}") in result and name in result[key]
            ]
            axes.plot([k for k, _ in at], [v for _, v in at], "o-", color=color, markersize=3, label=label)
        axes.set(
            xscale="log", yscale="log", xlabel="coalition size k", title=rf"$\varepsilon_{{acc}}$ = {eps}"
        )
        axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)


EXPERIMENT = Experiment(
    "epsilons", "Section 3.8 and equation (5.2)", "bounds on a coalition's epsilon", cells, run, draw=draw
)
