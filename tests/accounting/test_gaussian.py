"""The Gaussian mechanism, the conversion from Renyi divergences and the searches, against dp-accounting and scipy."""

import math

import numpy as np
import pytest
from dp_accounting.gaussian_mechanism import get_epsilon_gaussian, get_sigma_gaussian
from dp_accounting.rdp.rdp_privacy_accountant import compute_epsilon
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from rag_audit.mechanisms.accounting import gaussian, rdp
from rag_audit.mechanisms.accounting.search import crossing, minimum

DELTAS = st.floats(-80, -0.01).map(lambda x: 10**x)


@given(st.floats(-200, 8))
def test_logarithm_of_the_normal_distribution(x: float) -> None:
    assert gaussian.log_normal_cdf(x) == pytest.approx(float(norm.logcdf(x)), rel=1e-12, abs=1e-16)


@pytest.mark.parametrize("x", [-30.0, math.nextafter(-30.0, 0)])
def test_series_and_function_meet(x: float) -> None:
    assert gaussian.log_normal_cdf(x) == pytest.approx(float(norm.logcdf(x)), rel=1e-14)


@given(st.floats(-2, 4).map(lambda x: 10**x), DELTAS)
def test_epsilon_of_a_gaussian(sigma: float, delta: float) -> None:
    with np.errstate(all="ignore"):
        theirs = get_epsilon_gaussian(sigma, delta)
    assert gaussian.epsilon(sigma, delta) == pytest.approx(theirs, rel=1e-9, abs=1e-9)


@given(st.floats(-3, 3).map(lambda x: 10**x), DELTAS)
def test_sigma_of_a_gaussian(eps: float, delta: float) -> None:
    with np.errstate(all="ignore"):
        theirs = get_sigma_gaussian(eps, delta)
    assert gaussian.sigma(eps, delta) == pytest.approx(theirs, rel=1e-9)


@given(st.floats(-12, 4).map(lambda x: 10**x), DELTAS)
def test_conversion_of_divergences(rho: float, delta: float) -> None:
    divergences = [order * rho for order in rdp.ORDERS]
    assert rdp.convert(divergences, delta) == pytest.approx(
        float(compute_epsilon(rdp.ORDERS, divergences, delta)[0]), rel=1e-14
    )


def test_a_divergence_below_delta_needs_no_epsilon() -> None:
    assert rdp.convert([1e-9] * len(rdp.ORDERS), 1e-3) == 0
    assert rdp.convert([1e-3] * len(rdp.ORDERS), 1e-3) > 0


@given(st.floats(-1e6, 1e6), st.booleans())
def test_where_a_function_crosses(root: float, falling: bool) -> None:
    sign = -1 if falling else 1
    result = crossing(lambda x: sign * (x - root), root - 3.5, root + 9)
    assert result == pytest.approx(root, rel=1e-12, abs=1e-9)


def test_a_root_at_an_end_is_found() -> None:
    assert crossing(lambda x: x, 0.0, 4.0) == 0
    assert crossing(lambda x: x - 4, 1.0, 4.0) == pytest.approx(4, rel=1e-12)


@given(st.floats(-2, 2))
def test_where_a_function_is_least(place: float) -> None:
    assert minimum(lambda x: (x - place) ** 2, -3.0, 3.0, atol=1e-3) == pytest.approx(place, abs=1e-3)


@given(st.floats(0.01, 300), st.floats(0.3, 6), st.sampled_from([1e-6, 1e-10, 1e-13]))
def test_a_root_of_a_curved_function(root: float, power: float, rtol: float) -> None:
    result = crossing(lambda x: x**power - root**power, 0.0, 1000.0, rtol=rtol)
    assert result == pytest.approx(root, rel=2 * rtol, abs=1e-12)


@pytest.mark.parametrize("eps", [0.3, 3.0, 80.0])
def test_few_evaluations_find_an_epsilon(eps: float) -> None:
    """Each costs the accountant a pass over up to two million cells; halving alone takes 34."""
    target, count = gaussian.log_delta(1.0, eps), 0

    def excess(x: float) -> float:
        nonlocal count
        count += 1
        return gaussian.log_delta(1.0, x) - target

    assert crossing(excess, 0.0, 2 * eps, rtol=1e-10) == pytest.approx(eps, rel=1e-9)
    assert count <= 20


def test_infinite_values_are_halved_away() -> None:
    result = crossing(lambda x: math.inf if x < 3 else 5 - x, 0.0, 64.0)
    assert result == pytest.approx(5, rel=1e-12)
    assert crossing(lambda x: -math.inf if x < 3 else 1.0, 0.0, 64.0) == pytest.approx(3, rel=1e-12)
