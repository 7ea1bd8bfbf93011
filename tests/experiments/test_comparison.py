"""The comparison of a run with the paper, with theory and with bounds: one unit at a time, each figure once."""

from __future__ import annotations

import importlib.util
import math
from pathlib import Path

import numpy as np
import pytest

from rag_audit.lab.experiments.comparison import BEYOND, Bounded, Distances, summarise
from rag_audit.lab.experiments.model import Column, Figure, Line

ROOT = Path(__file__).resolve().parents[2]


def line(
    name: str = "auc", value: float = 0.5, *, cell: str = "paper-k1", column: Column = "paper",
    error: float = 0.01, paper: float | None = None, theory: float | None = None,
    bound: float | None = None, derived: bool = False,
) -> Line:  # fmt: skip
    figure = Figure(name, value, error, paper=paper, theory=theory, bound=bound)
    return Line("toy", cell, column, figure, derived)


def test_a_figure_of_the_paper_counts_once_and_in_the_papers_column() -> None:
    engine = line(value=0.56, cell="engine-k1", column="engine", paper=0.5)
    again = line(value=0.5, cell="paper-other", paper=0.5)
    summary = summarise([engine, line(value=0.51, paper=0.5), again])
    assert summary.paper.compared == 1
    assert summary.paper.far == []
    assert summary.others.compared == 2
    assert [far for far, _ in summary.others.far] == [engine]


def test_derived_figures_repeat_their_cells() -> None:
    summary = summarise([line(value=0.9, paper=0.5, theory=0.5, bound=0.6, derived=True)])
    assert summary.paper.compared == summary.theory["paper"].compared == summary.bounds[0].sampled == 0


def test_rates_of_one_have_no_distance() -> None:
    """An error of a rate of 1 is no standard deviation, so a distance of 0 would be no evidence."""
    rates = [line("tpr", 1.0, paper=1.0), line("c_is_k", 0.99, paper=1.0)]
    rates += [
        line("tpr", 1.0, cell="paper-k2", paper=1.0),
        line("tpr", 1.0, cell="engine-k2", column="engine", paper=1.0),
    ]
    summary = summarise(rates)
    assert summary.paper.compared == summary.others.compared == 0
    assert summary.rates == 3
    assert summary.rates_apart == pytest.approx(0.01)


def test_computed_figures_are_compared_by_value() -> None:
    close, far = line("a", 3.162, error=0, paper=3.16), line("b", 3.3, error=0, paper=3.16)
    summary = summarise([close, far])
    assert summary.computed == 2
    assert summary.different == [far]


def test_the_probability_of_outliers_is_binomial() -> None:
    pairs = [(line(), 0.5)] * 17 + [(line(), 2.5), (line(), -3.0), (line(), 2.01)]
    distances = Distances.of(pairs)
    assert (distances.compared, len(distances.far)) == (20, 3)
    fewer = sum(math.comb(20, k) * BEYOND**k * (1 - BEYOND) ** (20 - k) for k in range(3))
    assert distances.probability == pytest.approx(1 - fewer)
    assert Distances.of([]).probability == 1


def test_the_probability_of_outliers_agrees_with_draws() -> None:
    drawn = np.abs(np.random.default_rng(1).standard_normal((20_000, 20))) > 2
    share = (drawn.sum(axis=1) >= 3).mean()
    assert Distances(20, [(line(), 3.0)] * 3).probability == pytest.approx(share, abs=0.01)


def test_bounds_are_compared_by_unit() -> None:
    """The nearest figure of a run depends on the unit: 0.01 of an AUC is not 0.01 of an epsilon."""
    lines = [
        line("auc", 0.62, bound=0.6),
        line("user_auc", 0.6, error=0.1, bound=0.7),
        line("tpr_at_fpr_1pct", 0.02, bound=0.03),
        line("eps_list", 3.0, error=0, bound=3.4),
    ]
    auc, tpr, eps = summarise(lines).bounds
    assert auc.sampled == 2
    assert auc.highest is not None
    assert auc.highest[0] is lines[0]
    assert auc.highest[1] == pytest.approx(2)
    assert auc.probability == pytest.approx(1 - (1 - BEYOND / 2) ** 2)
    assert tpr.highest is not None
    assert tpr.highest[1] == pytest.approx(-1)
    assert (eps.sampled, eps.computed) == (0, 1)
    assert eps.smallest is not None
    assert eps.smallest[1] == pytest.approx(0.4)
    assert Bounded.of("epsilon", []).text() == []
    assert eps.text() == [
        "bounds on epsilon: 1 computed figures; the nearest is 0.4 below its bound (toy, paper-k1, eps_list)"
    ]


def test_the_text_names_every_outlier() -> None:
    text = summarise([line(value=0.6, paper=0.5, theory=0.55)]).text()
    assert text[0].startswith(
        "the paper's figures, each once: 1 figures, 1 further than 2 standard errors (0.0 "
    )
    assert "  toy, paper-k1, auc: 0.6000, the paper 0.5000 (+10.00 s.e.)" in text
    assert "  toy, paper-k1, auc: 0.6000, theory 0.5500 (+5.00 s.e.)" in text


def test_the_page_has_the_summary_of_its_figures() -> None:
    """figures.csv has the figures of the page's run; `python docs/experiments/generate.py` writes the page again."""
    spec = importlib.util.spec_from_file_location("experiments_page", ROOT / "docs/experiments/generate.py")
    assert spec is not None and spec.loader is not None
    page = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(page)
    text = page.RECORD.read_text()
    lines = page.recorded(text)
    assert page.stored(lines) == text
    assert f"<!-- summary -->\n{page.summary(lines)}\n<!-- end -->" in page.PAGE.read_text()
