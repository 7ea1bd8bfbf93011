"""The exact bound: never below the truth, and close to it."""

import math
from collections.abc import Sequence

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_audit.mechanisms.accounting import Mechanism, eps_at, gaussian_epsilon
from rag_audit.mechanisms.accounting.cumulative import cumulative
from rag_audit.mechanisms.accounting.exact import (
    Composition,
    LossGrid,
    TiltedSum,
    _compose,
    _fine_grid,
    _own_exponent,
)

WIDE = Mechanism((1, 8, 64), 32)
FIVE = Mechanism((1, 8, 64, 512, 3547), 16)
SMALL = Mechanism((1, 8), 128)


def brute_force(mechanism: Mechanism, m: int, delta: float) -> float:
    """eps of m queries by adding up every combination of losses, without grid or transform."""
    losses, masses = mechanism.losses()
    total, weight = np.zeros(1), np.ones(1)
    for _ in range(m):
        total = np.add.outer(total, losses).ravel()
        weight = np.multiply.outer(weight, masses).ravel()
    infinite = 1 - (1 - mechanism.outside_mass) ** m
    low, high = 0.0, 200.0
    for _ in range(100):
        eps = (low + high) / 2
        above = total > eps
        at = infinite + float(np.sum(-np.expm1(eps - total[above]) * weight[above]))
        low, high = (eps, high) if at > delta else (low, eps)
    return high


@pytest.mark.parametrize(
    ("gains", "lattice", "m", "delta"),
    [((1,), 16, 1, 1e-6), ((1,), 16, 2, 1e-5), ((1,), 4, 2, 1e-3), ((1, 2), 16, 2, 1e-8), ((1,), 32, 2, 0.2)],
)
def test_against_every_combination_of_losses(
    gains: tuple[int, ...], lattice: int, m: int, delta: float
) -> None:
    mechanism = Mechanism(gains, lattice)
    truth = brute_force(mechanism, m, delta)
    assert truth <= eps_at(mechanism, m, delta) <= 1.003 * truth + 1e-6


@pytest.mark.parametrize(
    ("mechanism", "m", "delta"),
    [
        (WIDE, 1, 2e-5),
        (WIDE, 2_000, 2e-5),
        (WIDE, 2_000, 1e-12),
        (WIDE, 200, 0.1),
        (FIVE, 10_000, 1e-5),
        (FIVE, 10_000_000, 1e-5),
        (SMALL, 10_000, 1e-6),
    ],
)
def test_within_one_percent_of_the_gaussian(mechanism: Mechanism, m: int, delta: float) -> None:
    gaussian = gaussian_epsilon(mechanism.sigma_over_delta, m, delta)
    assert gaussian * 0.9999 <= eps_at(mechanism, m, delta) <= gaussian * 1.01


def test_against_dp_accounting() -> None:
    """The same pmf composed by dp-accounting's own pessimistic distributions."""
    mechanism, m, delta = SMALL, 20, 1e-5
    size = len(mechanism.pmf) + mechanism.lattice
    upper = {z: math.log(p) for z, p in enumerate(mechanism.pmf)}
    lower = {z + mechanism.lattice: math.log(p) for z, p in enumerate(mechanism.pmf)}
    assert max(lower) == size - 1
    theirs = privacy_loss_distribution.from_two_probability_mass_functions(
        upper, lower, value_discretization_interval=1e-3
    ).self_compose(m)
    assert eps_at(mechanism, m, delta) == pytest.approx(theirs.get_epsilon_for_delta(delta), rel=2e-3)


@pytest.mark.parametrize(("mechanism", "m"), [(WIDE, 2_000), (FIVE, 500_000), (SMALL, 50)])
def test_below_zero_concentrated_privacy(mechanism: Mechanism, m: int) -> None:
    rho = m / (2 * mechanism.sigma_over_delta**2)
    for delta in (1e-4, 1e-8):
        assert eps_at(mechanism, m, delta) <= rho + 2 * math.sqrt(rho * math.log(1 / delta))


def test_the_specifications_figures() -> None:
    """docs/accounting.md, for lattices that are no power of two: as Gaussians."""
    assert gaussian_epsilon(16 * math.sqrt(65) / 129, 100, 1e-5) == pytest.approx(91.8216, abs=1e-4)
    assert gaussian_epsilon(WIDE.sigma / 36, 2_000, 2e-5) == pytest.approx(7.137, abs=1e-3)


@pytest.mark.parametrize("mechanism", [WIDE, SMALL, Mechanism((1,), 16)])
def test_connecting_the_dots_keeps_both_masses(mechanism: Mechanism) -> None:
    losses, masses = mechanism.losses()
    grid = _fine_grid(mechanism, _own_exponent(mechanism))
    assert float(np.sum(grid.masses)) + grid.infinite == pytest.approx(1, abs=1e-13)
    assert float(np.sum(grid.masses * np.exp(-grid.losses))) == pytest.approx(
        float(np.sum(masses * np.exp(-losses))), abs=1e-12
    )


def test_a_grid_dominates_the_losses_it_stands_for() -> None:
    grid = _fine_grid(SMALL, _own_exponent(SMALL))
    losses, masses = SMALL.losses()
    for eps in np.linspace(-8, 8, 101):
        above = losses > eps
        true = SMALL.outside_mass + float(np.sum(-np.expm1(eps - losses[above]) * masses[above]))
        cells = grid.losses > eps
        at = grid.infinite + float(np.sum(-np.expm1(eps - grid.losses[cells]) * grid.masses[cells]))
        assert at >= true - 1e-15


def repeated(masses: np.ndarray, m: int) -> np.ndarray:
    out = np.ones(1)
    for _ in range(m):
        out = np.convolve(out, masses)
    return out


@given(
    st.lists(st.floats(0, 1), min_size=2, max_size=40).filter(lambda x: sum(x) > 0.1),
    st.integers(1, 30),
    st.integers(-20, 20),
)
@settings(max_examples=50, deadline=None)
def test_the_transforms_error_is_within_what_is_charged(weights: Sequence[float], m: int, first: int) -> None:
    masses = np.array(weights) / sum(weights)
    direct = repeated(masses, m)
    grid = LossGrid(1.0, first, masses, 0.0)
    start = m * first - 3
    composed, error = _compose([(grid, masses, m)], 2048, start)
    expected = np.zeros(2048)
    expected[3 : 3 + len(direct)] = direct
    assert float(np.linalg.norm(composed - expected)) <= error < 1e-9


def test_a_folded_window_only_adds_mass() -> None:
    """Sums outside the window come back on its other side: never lost, so never below."""
    masses = np.full(3000, 1 / 3000)
    composed, error = _compose([(LossGrid(1.0, 0, masses, 0.0), masses, 1)], 1024, 0)
    assert float(np.sum(composed)) == pytest.approx(1, abs=1e-12)
    assert np.all(composed >= 2 / 3000 - error)


def test_delta_of_a_tilted_sum_does_not_depend_on_the_tilt() -> None:
    composition = Composition([(WIDE, 500)], 1e-6)
    at = [TiltedSum(composition, theta).delta(2.5) for theta in (3.0, 5.0, 8.0)]
    assert max(at) / min(at) - 1 < 1e-6


def test_tiny_deltas_are_not_lost_in_round_off() -> None:
    """delta 1e-25 is below the transform's round-off: only the tilt makes it computable."""
    assert eps_at(WIDE, 2_000, "1e-25") == pytest.approx(
        gaussian_epsilon(WIDE.sigma_over_delta, 2_000, 1e-25), rel=1e-3
    )


def test_no_finite_bound_where_infinite_losses_exceed_delta() -> None:
    assert eps_at(Mechanism((1,), 64), 10, 1e-4) == math.inf


def test_infinite_losses_are_charged_to_delta() -> None:
    mechanism = Mechanism((1,), 32)
    mass = 1000 * mechanism.outside_mass
    assert eps_at(mechanism, 1000, 1.0001 * mass) > 1.005 * eps_at(mechanism, 1000, 2 * mass)
    assert eps_at(mechanism, 1000, 0.999 * mass) == math.inf


def test_delta_above_the_total_variation_needs_no_epsilon() -> None:
    assert eps_at(WIDE, 1, 0.5) < 1e-9


gains = st.sampled_from([(1,), (1, 2), (1, 5), (1, 8), (1, 2, 4), (1, 8, 20), (1, 8, 64)])


@given(
    gains, st.sampled_from([1, 4, 16, 32]), st.integers(1, 10**6), st.integers(1, 10**4), st.floats(-12, -0.5)
)
@settings(max_examples=20, deadline=None)
def test_monotone_in_the_number_of_queries(
    gains: tuple[int, ...], lattice: int, m: int, more: int, exponent: float
) -> None:
    mechanism, delta = Mechanism(gains, lattice), 10.0**exponent
    assert eps_at(mechanism, m, delta) <= eps_at(mechanism, m + more, delta)


@given(
    gains, st.sampled_from([1, 4, 16, 32]), st.integers(1, 10**6), st.floats(-12, -0.5), st.floats(0.001, 3)
)
@settings(max_examples=20, deadline=None)
def test_monotone_in_delta(
    gains: tuple[int, ...], lattice: int, m: int, exponent: float, more: float
) -> None:
    mechanism = Mechanism(gains, lattice)
    tight, loose = 10.0**exponent, min(10.0 ** (exponent + more), 0.9)
    assert eps_at(mechanism, m, tight) >= eps_at(mechanism, m, max(tight, loose))


@given(st.sampled_from([4, 16, 32]), st.integers(1, 10**5), st.floats(-7, -1), st.data())
@settings(max_examples=20, deadline=None)
def test_monotone_in_the_noise(lattice: int, m: int, exponent: float, data: st.DataObject) -> None:
    ladder = [(1, 4), (1, 5), (1, 6), (1, 7), (1, 8), (1, 8, 16), (1, 8, 17), (1, 8, 32), (1, 8, 64)]
    i = data.draw(st.integers(0, len(ladder) - 2))
    j = data.draw(st.integers(i + 1, len(ladder) - 1))
    narrow, wide = Mechanism(ladder[i], lattice), Mechanism(ladder[j], lattice)
    delta = 10.0**exponent
    assert eps_at(narrow, m, delta) >= eps_at(wide, m, delta)
    assert eps_at(wide, m, delta) >= eps_at(Mechanism(ladder[j], lattice // 2), m, delta)


def test_windows_add_up() -> None:
    whole = eps_at(WIDE, 2_000, "2e-5")
    assert cumulative([(WIDE, 800), (WIDE, 1_200)], "2e-5").eps == pytest.approx(whole, rel=1e-4)
    mixed = cumulative([(WIDE, 1_000), (Mechanism((1, 8), 16), 30)], "2e-5")
    variance = 1_000 / WIDE.sigma_over_delta**2 + 30 / Mechanism((1, 8), 16).sigma_over_delta ** 2
    assert mixed.valid
    assert mixed.eps == pytest.approx(gaussian_epsilon(1 / math.sqrt(variance), 1, 2e-5), rel=2e-3)
    assert mixed.eps > eps_at(WIDE, 1_000, "2e-5")


def test_a_window_of_wide_noise_does_not_suffer_from_one_of_narrow_noise() -> None:
    """A grid made for the narrow one's losses would multiply the wide one's variance."""
    parts = [(FIVE, 1_000_000), (SMALL, 1)]
    variance = sum(m / mechanism.sigma_over_delta**2 for mechanism, m in parts)
    result = cumulative(parts, "1e-5").eps
    assert result == pytest.approx(gaussian_epsilon(1 / math.sqrt(variance), 1, 1e-5), rel=5e-3)
