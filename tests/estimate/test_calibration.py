"""The calibration: its shortcuts against the definition, and the paper's Observation 5.2 at reduced size."""

from __future__ import annotations

import csv
import math
from pathlib import Path
from random import Random

import numpy as np
import pytest

from rag_audit.errors import PolicyError, SchemaError
from rag_audit.estimate import calibration
from rag_audit.estimate.calibration import (
    PATTERNS,
    THETAS,
    Cell,
    account_cosines,
    calibrate_questions,
    critical_theta,
    draw,
    growth,
    largest_cluster,
    paper_cells,
)
from rag_audit.estimate.clusters import components
from rag_audit.estimate.figure import write_csv, write_figure

TRIALS = 20


@pytest.fixture(scope="module")
def paper() -> dict[tuple[str, int, float], Cell]:
    return {(c.pattern, c.k_true, c.theta): c for cells in paper_cells(TRIALS) for c in cells}


def analytic_fpr(theta: float) -> float:
    """Uniform pairs are near with half the regularised incomplete beta I_{1 - theta^2}((d - 1)/2, 1/2)."""
    from scipy.special import betainc

    pairs = math.comb(calibration.ACCOUNTS, 2) * calibration.QUERIES**2
    near = betainc((calibration.DIMENSION - 1) / 2, 0.5, 1 - theta**2) / 2
    return 1 - math.exp(-pairs * near)


def test_growth_is_the_definition_at_every_theta() -> None:
    rng = Random(3)
    for accounts in (1, 2, 9, 20):
        cosines = np.array([[rng.uniform(-1, 1) for _ in range(accounts)] for _ in range(accounts)])
        cosines = np.minimum(cosines, cosines.T)
        steps = growth(cosines)
        thetas = [*np.linspace(-0.99, 0.99, 50), *cosines.flatten().tolist()]
        for theta in thetas:
            edges = [(str(a), str(b)) for a in range(accounts) for b in range(a) if cosines[a, b] >= theta]
            c = max([1, *map(len, components(edges))])
            assert largest_cluster(steps, theta) == c
            assert (critical_theta(steps, 4) >= theta) == (c > 4)


def test_account_cosines_are_the_largest_between_two_accounts() -> None:
    rng = np.random.default_rng(4)
    vectors = rng.normal(0, 3, (4, 5, 6)).astype(np.float32)
    cosines = account_cosines(vectors)
    for a in range(4):
        for b in range(4):
            if a == b:
                continue
            pairs = [u @ v / np.linalg.norm(u) / np.linalg.norm(v) for u in vectors[a] for v in vectors[b]]
            assert cosines[a, b] == pytest.approx(max(pairs), abs=1e-5)


def test_patterns_are_the_papers() -> None:
    rng = np.random.default_rng(6)
    for pattern in ("null", *PATTERNS):
        vectors = draw(rng, pattern, 5)
        assert vectors.shape == (30, 100, 32)
        assert np.allclose(np.linalg.norm(vectors[5:], axis=2), 1, atol=1e-5)
        probes = np.unique(vectors[:5].reshape(-1, 32), axis=0)
        assert len(probes) == {"null": 500, "P-A": 1, "P-B": 500, "P-C": 5}[pattern]
    jitter = draw(rng, "P-B", 20)[:20].reshape(-1, 32)
    jitter = jitter - jitter.mean(axis=0)
    assert jitter.std() == pytest.approx(0.10, rel=0.01)


def test_false_positive_rate_of_the_null(paper: dict[tuple[str, int, float], Cell]) -> None:
    for theta in THETAS:
        cell = paper["null", 1, theta]
        rate = analytic_fpr(theta)
        margin = 4 * math.sqrt(rate * (1 - rate) / TRIALS) + 1 / TRIALS
        assert abs(cell.detected - rate) <= margin
        assert cell.exact == pytest.approx(1 - cell.detected)
    assert paper["null", 1, 0.70].detected == 1
    assert paper["null", 1, 0.20].c_mean == 30


def test_every_coalition_is_found_at_080(paper: dict[tuple[str, int, float], Cell]) -> None:
    for pattern in PATTERNS:
        for k in (2, 5, 10, 20):
            assert paper[pattern, k, 0.80].detected == 1
            assert paper[pattern, k, 0.80].exact >= 0.95
            assert paper[pattern, k, 0.20].c_mean == 30


@pytest.mark.full
def test_observation_5_2_at_full_size() -> None:
    cells = [cell for part in paper_cells() for cell in part]
    at = {(c.pattern, c.k_true, c.theta): c for c in cells}
    assert len(cells) == 13 * 16
    assert at["null", 1, 0.80].detected <= 0.08
    assert at["null", 1, 0.75].detected == pytest.approx(analytic_fpr(0.75), abs=0.13)
    assert all(at[p, k, 0.80].detected == 1 for p in PATTERNS for k in (2, 5, 10, 20))


def test_calibration_is_reproducible() -> None:
    first, again, other = (next(paper_cells(3, seed=seed)) for seed in (1, 1, 2))
    assert first == again != other


def test_questions_without_near_pairs_raise_no_alarm() -> None:
    vectors = np.eye(64, dtype=np.int8)
    report = calibrate_questions(vectors, k_max=2, accounts=8, queries=8, trials=5)
    assert (report.fpr, report.gate_fpr, report.c_mean) == (0, 0, 1)
    assert (report.theta_fpr, report.theta_gate) == (0.001, 0.001)


def test_questions_asked_twice_leave_no_threshold() -> None:
    vectors = np.repeat(np.eye(8, dtype=np.int8), 2, axis=0)
    report = calibrate_questions(vectors, k_max=8, accounts=16, queries=1, trials=5)
    assert (report.distinct, report.fpr, report.gate_fpr, report.c_mean) == (8, 1, 0, 2)
    assert (report.theta_fpr, report.theta_gate) == (None, 0.001)


def test_the_threshold_for_five_percent_is_the_smallest() -> None:
    # Two of the four questions have cosine 4/5, so every trial joins two accounts exactly there.
    vectors = np.array([[4, 3, 0, 0], [5, 0, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]], np.int8)
    report = calibrate_questions(vectors, theta=0.79, k_max=1, accounts=4, queries=1, trials=5)
    assert (report.fpr, report.gate_fpr) == (1, 1)
    assert report.theta_fpr == report.theta_gate == pytest.approx(0.801)


def test_too_few_questions_are_refused() -> None:
    with pytest.raises(SchemaError, match="there are too few questions"):
        calibrate_questions(np.ones((10, 4), np.int8), k_max=2)
    with pytest.raises(SchemaError, match="at least 1"):
        calibrate_questions(np.ones((10, 4), np.int8), k_max=2, accounts=0)
    for theta in (0.0, 1.0, -1.0, math.nan):
        with pytest.raises(PolicyError, match="theta"):
            calibrate_questions(np.ones((10, 4), np.int8), k_max=2, theta=theta)


def test_files(paper: dict[tuple[str, int, float], Cell], tmp_path: Path) -> None:
    cells = list(paper.values())
    write_csv(cells, tmp_path / "a.csv")
    with (tmp_path / "a.csv").open() as handle:
        rows = list(csv.DictReader(handle))
    assert len(rows) == 13 * 16
    assert {(r["pattern"], int(r["k_true"]), float(r["theta"])) for r in rows} == set(paper)
    pytest.importorskip("matplotlib")
    write_figure(cells, tmp_path / "a.png")
    data = (tmp_path / "a.png").read_bytes()
    assert data.startswith(b"\x89PNG") and len(data) < 200_000
    write_figure(cells, tmp_path / "b.png")
    assert (tmp_path / "b.png").read_bytes() == data
