"""Rates of membership tests and the lower bounds on epsilon that they prove."""

import gzip
import itertools
import json
import math
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from sklearn.metrics import roc_auc_score

from rag_audit.commit.explore.collections import CollectionError, collection
from rag_audit.errors import PolicyError, SchemaError, SizeError
from rag_audit.lab.empirical.lower_bounds import (
    clopper_pearson,
    clopper_pearson_epsilon,
    epsilon_of_rates,
    gaussian_dp_epsilon,
    gaussian_mu,
    one_run_epsilon,
)
from rag_audit.lab.empirical.rates import (
    accuracy,
    auc,
    bootstrap,
    delong,
    delong_paired,
    kolmogorov_smirnov,
    placements,
    tpr_at_fpr,
)

RNG = np.random.default_rng(1)


def test_auc_counts_pairs_and_halves_ties() -> None:
    x, y = RNG.integers(0, 6, 40), RNG.integers(0, 5, 30)
    pairs = [(a > b) + (a == b) / 2 for a, b in itertools.product(x, y)]
    assert auc(x, y) == pytest.approx(np.mean(pairs))
    labels = [1] * len(x) + [0] * len(y)
    assert auc(x, y) == pytest.approx(roc_auc_score(labels, np.concatenate([x, y])))


@pytest.mark.parametrize("ties", [True, False])
def test_quick_figures_are_those_of_ranks_and_of_scipy_to_the_digit(ties: bool) -> None:
    for trial in range(200):
        rng = np.random.default_rng([trial, ties])
        x, y = (
            rng.integers(0, 9, size) / 7 if ties else rng.normal(size=size) for size in rng.integers(1, 60, 2)
        )
        x[0], y[-1] = (math.inf, -math.inf) if trial % 3 == 0 else (0.0, -0.0)
        assert auc(x, y) == placements(x, y)[0].mean()
        assert kolmogorov_smirnov(x, y) == stats.ks_2samp(x, y, method="asymp").statistic


def test_delong_s_error_is_the_spread_of_the_auc() -> None:
    aucs, errors = [], []
    for _ in range(600):
        estimate = delong(RNG.normal(0.5, 1, 80), RNG.normal(0, 1, 120))
        aucs.append(estimate.value)
        errors.append(estimate.error)
    assert np.mean(errors) == pytest.approx(np.std(aucs), rel=0.12)
    assert np.mean(aucs) == pytest.approx(stats.norm.cdf(0.5 / math.sqrt(2)), abs=0.01)


def test_paired_tests_on_the_same_trials_have_the_smaller_error() -> None:
    x, y = RNG.normal(0.5, 1, 400), RNG.normal(0, 1, 400)
    other = x + RNG.normal(0, 0.1, 400), y + RNG.normal(0, 0.1, 400)
    difference = delong_paired((x, y), other)
    assert difference.value == pytest.approx(auc(x, y) - auc(*other))
    assert difference.error < delong(x, y).error / 3
    with pytest.raises(SizeError):
        delong_paired((x, y), (x[1:], y))


def test_rates_at_a_threshold() -> None:
    inside, outside = np.arange(100) + 50.0, np.arange(100.0)
    assert tpr_at_fpr(inside, outside, 0.01) == 0.51  # 99 is allowed, so the threshold is above 98
    assert tpr_at_fpr(inside, outside, 0.0) == 0.5
    assert tpr_at_fpr(inside, outside, 1.0) == 1.0
    assert accuracy(inside, outside) == pytest.approx(0.75)
    assert accuracy(outside, inside) == 0.5
    assert kolmogorov_smirnov(inside, outside) == pytest.approx(0.5)
    low, high = bootstrap(auc, inside, outside, RNG, repeats=200)
    assert low < auc(inside, outside) < high < 1


@pytest.mark.parametrize("bad", [[], [math.nan], [[1.0]]])
def test_scores_that_are_none_are_refused(bad: list[float]) -> None:
    with pytest.raises(SizeError):
        auc(bad, [0.0])


def test_limits_of_a_proportion_are_those_of_the_binomial() -> None:
    low, high = clopper_pearson(7, 50, 0.95)
    assert stats.binom.sf(6, 50, low) == pytest.approx(0.05)
    assert stats.binom.cdf(7, 50, high) == pytest.approx(0.05)
    assert clopper_pearson(0, 10, 0.95)[0] == 0.0
    assert clopper_pearson(10, 10, 0.95)[1] == 1.0


@pytest.mark.parametrize("true, eps", [(1.0, 0.0), (math.e, 1.0), (math.e**2, 2.0)])
def test_a_bound_from_trials_stays_below_the_mechanism_s_epsilon(true: float, eps: float) -> None:
    """Randomised response on one bit: the bound may exceed its epsilon in at most 1 of 20 runs, and comes near."""
    p, result = true / (1 + true), []
    for _ in range(60):
        inside, outside = RNG.random(4000) < p, RNG.random(4000) < 1 - p
        result.append(clopper_pearson_epsilon(inside.astype(float), outside.astype(float)))
    assert sum(f > eps for f in result) <= 8  # binomial(60, 1/20) has 9 or more with probability 0.004
    assert np.mean(result) > eps - 0.25


def test_a_threshold_chosen_on_the_trials_that_measure_it_would_overstate() -> None:
    """On pure noise the bound is 0 nearly always; the best of all thresholds on the same trials is not."""
    zeros = 0
    for _ in range(40):
        x, y = RNG.normal(size=400), RNG.normal(size=400)
        zeros += clopper_pearson_epsilon(x, y) == 0
    assert zeros >= 34
    assert clopper_pearson_epsilon([1.0], [0.0]) == 0


def test_delta_is_taken_off_both_directions() -> None:
    assert (
        epsilon_of_rates((90, 100), (5, 100), 0, 0.95)
        > epsilon_of_rates((90, 100), (5, 100), "0.1", 0.95)
        > 0
    )
    both = epsilon_of_rates((999, 1000), (500, 1000), 0, 0.95)
    assert both > epsilon_of_rates((500, 1000), (500, 1000), 0, 0.95) == 0
    assert both == pytest.approx(epsilon_of_rates((500, 1000), (1, 1000), 0, 0.95))


def test_gaussian_rates_give_back_their_mu_and_epsilon() -> None:
    inside, outside = RNG.normal(1.5, 1, 40_000), RNG.normal(0, 1, 40_000)
    assert 1.35 < gaussian_mu(inside, outside) < 1.5
    eps = gaussian_dp_epsilon(inside, outside, delta="1e-5")
    mu = gaussian_mu(inside, outside)
    delta = stats.norm.cdf(mu / 2 - eps / mu) - math.exp(eps) * stats.norm.cdf(-mu / 2 - eps / mu)
    assert delta == pytest.approx(1e-5, rel=1e-3)
    assert gaussian_dp_epsilon(outside, inside, delta="1e-5") == 0


def test_one_run_refutes_what_a_binomial_cannot_reach() -> None:
    eps = one_run_epsilon(95, 100, 100)
    share = 1 / (1 + math.exp(-eps))
    assert stats.binom.sf(94, 100, share) == pytest.approx(0.05)
    assert one_run_epsilon(95, 100, 100, delta="1e-3") < eps
    assert one_run_epsilon(50, 100, 100) == 0
    assert one_run_epsilon(0, 100, 100, delta="1e-3") == 0
    result = [one_run_epsilon(int(RNG.binomial(500, 0.75)), 500, 500) for _ in range(100)]
    assert sum(f > math.log(3) for f in result) <= 12


@pytest.mark.parametrize("correct, guesses, canaries", [(3, 2, 5), (1, 6, 5), (0, 0, 5), (-1, 2, 5)])
def test_guesses_that_cannot_be_are_refused(correct: int, guesses: int, canaries: int) -> None:
    with pytest.raises(PolicyError):
        one_run_epsilon(correct, guesses, canaries)


@pytest.mark.parametrize("confidence", [0, 1, -1, 2])
def test_confidence_is_strictly_between_0_and_1(confidence: float) -> None:
    with pytest.raises(PolicyError):
        clopper_pearson(1, 2, confidence)


def _write(path: Path, lines: list[dict[str, str]]) -> None:
    path.write_bytes(gzip.compress("\n".join(json.dumps(line) for line in lines).encode()))


def test_collections_are_read_from_their_folder(tmp_path: Path) -> None:
    _write(
        tmp_path / "medquad.jsonl.gz",
        [
            {"question": "What?", "answer": "This."},
            {"question": "What?", "answer": "That."},
            {"question": "Why?", "answer": "This."},
        ],
    )
    medical = collection("medquad", tmp_path)
    assert (medical.passages, medical.questions) == (["This.", "That."], ["What?", "Why?"])
    assert medical.relevant == [frozenset({0, 1}), frozenset({0})]
    assert medical.sample(1).passages == medical.passages
    assert len(medical.sample(1).questions) == 1
    _write(tmp_path / "squad_dev_v1.1_passages.jsonl.gz", [{"id": "a", "text": "x"}])
    _write(tmp_path / "squad_dev_v1.1_questions.jsonl.gz", [{"question": "?", "passage": "b"}])
    with pytest.raises(SchemaError, match="passage is missing"):
        collection("squad", tmp_path)


def test_collections_that_are_not_here_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(CollectionError, match="no such collection"):
        collection("marco", tmp_path)
    with pytest.raises(CollectionError, match=r"travel|sgd_travel"):
        collection("travel", tmp_path)
    monkeypatch.setenv("RAG_AUDIT_DATA", str(tmp_path / "gone"))
    with pytest.raises(CollectionError, match="gone"):
        collection("squad")
    monkeypatch.delenv("RAG_AUDIT_DATA")
    with pytest.raises(CollectionError, match="the variable is not set"):
        collection("squad")
