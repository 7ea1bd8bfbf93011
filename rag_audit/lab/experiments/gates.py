"""The paper's gates on the scalar mechanism (Sections 3.8 and 4.3): P1 and P3 can fail, P2 is a diagnostic."""

from __future__ import annotations

import math

import numpy as np
from scipy import stats

from rag_audit.lab.experiments import scalar
from rag_audit.lab.experiments.model import (
    Column,
    Experiment,
    Figure,
    Results,
    Row,
    in_place,
    no_cells,
    nothing_measured,
)

MAX_SURPRISE = 0.01
"""A gate fails if the measured value has a smaller probability under the theory."""
SAME = (((20, 1), (5, 2)), ((20, 2), (5, 4)))
"""Pairs (k, eps) of cells with the same sqrt(k) eps; the grid has two such pairs."""


def derive(results: Results) -> list[Row]:
    """The three predictions in both columns."""
    result = in_place(results, "scalar")
    rows = []
    for column in scalar.COLUMNS:
        area = {
            (k, eps): result[key]["auc"] for eps in scalar.EPS for k in scalar.KS
            if (key := f"{column}-eps{eps}-k{k}") in result
        }  # fmt: skip
        if len(area) == len(scalar.EPS) * len(scalar.KS):
            rows += [*_slope(area, column), *_collapse(area, column), *_tightness(area, column)]
    return rows


def _slope(area: dict[tuple[int, int], Figure], column: Column) -> list[Row]:
    """P1: the slope of AUC over sqrt(k) is positive and constant. It passes if the straight line of the row with the
    largest signal rises by more than two standard errors and fits, and no row falls.
    """
    x = np.sqrt(scalar.KS)
    rows, passed = [], True
    for eps in scalar.EPS:
        y = np.array([area[k, eps].value for k in scalar.KS])
        weights = np.array([area[k, eps].error for k in scalar.KS]) ** -2.0
        centre = (weights * x).sum() / weights.sum()
        spread = (weights * (x - centre) ** 2).sum()
        slope = float((weights * (x - centre) * y).sum() / spread)
        level = float((weights * y).sum() / weights.sum())
        chi = float((weights * (y - level - slope * (x - centre)) ** 2).sum())
        fit, error = float(stats.chi2.sf(chi, len(x) - 2)), 1 / math.sqrt(spread)
        passed &= slope > -2 * error and fit > MAX_SURPRISE and (eps < max(scalar.EPS) or slope > 2 * error)
        rows.append(
            Row(
                f"P1 slope, eps {eps}",
                Figure("slope", slope, error, note=f"straight line: p = {fit:.2f}"),
                column,
            )
        )
    return [*rows, _verdict("P1", passed, column)]


def _tightness(area: dict[tuple[int, int], Figure], column: Column) -> list[Row]:
    """P3: AUC is where (3.11) puts it and above 1/2 wherever eps is at least 2; the advantage is below (3.8)."""
    distances = [f.from_theory or 0.0 for f in area.values()]
    chi = float(np.square(distances).sum())
    fit = float(stats.chi2.sf(chi, len(distances)))
    above = min((f.value - 0.5) / f.error for (_, eps), f in area.items() if eps >= 2)
    share = max((2 * f.value - 1) / math.tanh(math.sqrt(k) * eps / 2) for (k, eps), f in area.items())
    note = f"chi^2 of all cells' distances: p = {fit:.2f}"
    return [
        Row(
            "P3 largest distance from (3.11), s.e.",
            Figure("distance", max(map(abs, distances)), note=note),
            column,
        ),
        Row("P3 least distance above 1/2, eps 2 and 4, s.e.", Figure("distance", above), column),
        Row("P3 largest share of the bound (3.8)", Figure("ratio", share), column),
        _verdict("P3", fit > MAX_SURPRISE and above > 0 and share <= 1, column),
    ]


def _collapse(area: dict[tuple[int, int], Figure], column: Column) -> list[Row]:
    """P2: cells with equal sqrt(k) eps have equal AUC. The rows state the differences, with the smallest detectable
    difference."""
    rows = []
    for a, b in SAME:
        f, g = area[a], area[b]
        error = math.hypot(f.error, g.error)
        note = f"silent on departures below {2 * error:.3f}, with advantages of {f.value - 0.5:.3f}"
        figure = Figure("difference", f.value - g.value, error, theory=0.0, note=note)
        rows.append(Row(f"P2 (k, eps) {a} - {b}", figure, column))
    return rows


def _verdict(gate: str, passed: bool, column: Column) -> Row:
    return Row(gate, Figure("passes", float(passed), paper=1.0, note="pass" if passed else "FAIL"), column)


EXPERIMENT = Experiment(
    "gates",
    "Sections 3.8 and 4.3",
    "P1 slope, P2 collapse, P3 tightness",
    no_cells,
    nothing_measured,
    derive,
    after=("scalar",),
)
