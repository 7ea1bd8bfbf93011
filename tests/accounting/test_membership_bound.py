"""AUC and TPR bounds from the trade-off curve."""

import math

import numpy as np
import pytest
from scipy.stats import norm

from rag_audit.errors import PolicyError
from rag_audit.mechanisms.accounting import Mechanism, membership, roc_bound, tpr_bound
from rag_audit.mechanisms.accounting.tradeoff import auc_bound

CASES = [((1, 8), 128, 1), ((1, 8), 128, 4), ((1, 8, 64), 32, 2_000), ((1, 8, 64), 32, 1), ((1, 8), 16, 20)]


@pytest.mark.parametrize(("gains", "lattice", "m"), CASES)
def test_close_to_the_gaussian_and_not_below(gains: tuple[int, ...], lattice: int, m: int) -> None:
    mechanism = Mechanism(gains, lattice)
    mu = math.sqrt(m) / mechanism.sigma_over_delta
    result = membership(mechanism, m)
    assert result.auc_bound == pytest.approx(norm.cdf(mu / math.sqrt(2)), rel=1e-3)
    assert result.tpr_at_fpr_1pct == pytest.approx(norm.cdf(mu + norm.ppf(0.01)), rel=1e-3)
    assert result.auc_bound >= norm.cdf(mu / math.sqrt(2)) * 0.99999
    assert result.tpr_at_fpr_1pct >= norm.cdf(mu + norm.ppf(0.01)) * 0.99999


@pytest.mark.parametrize(("gains", "lattice"), [((1,), 16), ((1,), 64), ((1, 2), 64)])
def test_one_query_against_the_exact_roc(gains: tuple[int, ...], lattice: int) -> None:
    """By likelihood-ratio order over every outcome, infinite losses first."""
    mechanism = Mechanism(gains, lattice)
    present = np.concatenate([mechanism.pmf, np.zeros(lattice)])
    absent = np.concatenate([np.zeros(lattice), mechanism.pmf])
    with np.errstate(divide="ignore"):
        order = np.argsort(-np.log(present) + np.log(absent), kind="stable")
    tpr, fpr = np.cumsum(present[order]), np.cumsum(absent[order])
    auc = float(np.sum(np.diff(fpr, prepend=0) * (tpr + np.concatenate([[0], tpr[:-1]])) / 2))
    assert auc <= auc_bound(mechanism, 1) <= auc + 2e-4
    at = float(np.interp(0.01, fpr, tpr))
    assert at <= tpr_bound(mechanism, 1, 0.01) <= at * 1.003


@pytest.mark.parametrize(("gains", "lattice", "m"), CASES)
def test_the_whole_curve_is_close_to_the_gaussian_and_not_below(
    gains: tuple[int, ...], lattice: int, m: int
) -> None:
    mechanism = Mechanism(gains, lattice)
    mu = math.sqrt(m) / mechanism.sigma_over_delta
    rates = [0.001, 0.01, 0.05, 0.3, 0.7, 0.99]
    result = roc_bound(mechanism, m, rates)
    assert result[1] == tpr_bound(mechanism, m, 0.01)
    for rate, bound in zip(rates, result, strict=True):
        gaussian = norm.cdf(mu + norm.ppf(rate))
        assert gaussian * 0.99999 <= bound <= gaussian * 1.002 + 1e-9


def test_bounds_end_at_one() -> None:
    result = membership(Mechanism((1, 8), 64), 100_000)
    assert (result.auc_bound, result.tpr_at_fpr_1pct) == (1.0, 1.0)


def test_bounds_rise_with_queries_and_start_at_chance() -> None:
    mechanism = Mechanism((1, 8, 64), 1)
    result = [membership(mechanism, m) for m in (1, 10, 100, 1_000, 10_000)]
    aucs, tprs = [f.auc_bound for f in result], [f.tpr_at_fpr_1pct for f in result]
    assert aucs == sorted(aucs) and tprs == sorted(tprs)
    assert 0.5 < aucs[0] < 0.5004
    assert 0.01 < tprs[0] < 0.0101


def test_bad_parameters_are_named() -> None:
    with pytest.raises(PolicyError, match="positive integer"):
        membership(Mechanism((1, 8), 64), 0)
    with pytest.raises(PolicyError, match="between 0 and 1"):
        tpr_bound(Mechanism((1, 8), 64), 1, 1)


def test_json() -> None:
    assert membership(Mechanism((1, 8), 64), 100_000).as_json() == {
        "compositions": 100_000,
        "auc_bound": "1",
        "tpr_at_fpr_1pct": "1",
    }
