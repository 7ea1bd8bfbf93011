"""The noise's distribution, its losses, and the worst shift."""

import math
from fractions import Fraction

import numpy as np
import pytest

from rag_audit.mechanisms.accounting import Mechanism
from rag_audit.mechanisms.accounting.pmf import PMF_ROUNDING
from rag_audit.relation.noise import base_pmf

CONFIGURATIONS = [((1,), 16), ((1, 2), 32), ((1, 8), 128), ((1, 2, 4), 64), ((1, 5, 3), 16)]


def exact_pmf(gains: tuple[int, ...]) -> list[int]:
    """Numerators over 2^(40 m) of z, by integer convolution."""
    pmf = {0: 1}
    for gain in gains:
        wider: dict[int, int] = {}
        for z, mass in pmf.items():
            for x, more in base_pmf().items():
                wider[z + gain * x] = wider.get(z + gain * x, 0) + mass * more
        pmf = wider
    return [pmf[z] for z in range(min(pmf), max(pmf) + 1)]


@pytest.mark.parametrize("gains", [(1,), (1, 2), (1, 8), (1, 3, 9)])
def test_pmf_is_the_integer_convolution_within_the_bias_charged(gains: tuple[int, ...]) -> None:
    mechanism = Mechanism(gains, 1)
    exact = exact_pmf(gains)
    assert len(exact) == len(mechanism.pmf)
    worst = max(
        abs(Fraction(float(p)) * 2 ** (40 * len(gains)) / e - 1)
        for p, e in zip(mechanism.pmf, exact, strict=True)
    )
    assert worst <= mechanism.bias.shift / 4
    assert worst <= PMF_ROUNDING


def test_outside_mass_is_exact() -> None:
    mechanism = Mechanism((1, 2), 64)
    outside = Fraction(sum(exact_pmf((1, 2))[:64]), 2**80)
    assert outside <= Fraction(mechanism.outside_mass) <= outside * (1 + Fraction(1, 10**12))


@pytest.mark.parametrize(
    ("gains", "lattice", "low", "high"),
    [((1, 8), 128, 0.5e-12, 2e-12), ((1,), 64, 1e-5, 1e-4)],
)
def test_infinite_loss_of_the_specification(
    gains: tuple[int, ...], lattice: int, low: float, high: float
) -> None:
    """docs/relation.md: 1e-12 a query with [1,8] and R = 128, 1e-5 or more with [1] and R = 64."""
    assert low < Mechanism(gains, lattice).outside_mass < high


def hockey_stick(pmf: np.ndarray, shift: int, eps: float) -> float:
    upper = np.concatenate([pmf, np.zeros(shift)])
    lower = np.concatenate([np.zeros(shift), pmf])
    return float(np.sum(np.maximum(upper - math.exp(eps) * lower, 0)))


@pytest.mark.parametrize(("gains", "lattice"), CONFIGURATIONS)
def test_no_smaller_shift_is_worse(gains: tuple[int, ...], lattice: int) -> None:
    pmf = Mechanism(gains, lattice).pmf
    for eps in np.concatenate([np.linspace(-3, 3, 25), [5.0, 10.0, 20.0]]):
        worst = hockey_stick(pmf, lattice, eps)
        for shift in range(1, lattice):
            assert hockey_stick(pmf, shift, eps) <= worst + 1e-15


@pytest.mark.parametrize(("gains", "lattice"), CONFIGURATIONS)
def test_either_direction_of_the_shift_is_the_same(gains: tuple[int, ...], lattice: int) -> None:
    pmf = Mechanism(gains, lattice).pmf
    assert np.array_equal(pmf, pmf[::-1])
    for eps in (0.1, 1.0, 4.0):
        assert hockey_stick(pmf, lattice, eps) == pytest.approx(
            hockey_stick(pmf[::-1], lattice, eps), rel=1e-12
        )


def test_a_ragged_noise_does_have_worse_small_shifts() -> None:
    """Why gains are bounded: a gain of 300 over sigma 16 leaves gaps, and R is not the worst shift."""
    base = np.array([base_pmf()[x] for x in range(-127, 128)]) / 2.0**40
    comb = np.zeros(254 * 301 + 1)
    for i, mass in enumerate(base):
        comb[300 * i : 300 * i + 255] += mass * base
    assert hockey_stick(comb, 150, 1.0) > hockey_stick(comb, 300, 1.0) + 0.5


@pytest.mark.parametrize("gains", [(1,), (1, 1), (1, 8), (1, 2, 4), (1, 8, 64), (1, 8, 64, 512)])
def test_usual_gains_are_unimodal(gains: tuple[int, ...]) -> None:
    outward = Mechanism(gains, 1).pmf[127 * sum(gains) :]
    assert np.all(outward[1:] <= outward[:-1])


def test_what_five_gains_lack_in_unimodality_is_charged() -> None:
    mechanism = Mechanism((1, 8, 64, 512, 4096), 16)
    outward = mechanism.pmf[mechanism.half_support :]
    assert np.any(outward[1:] > outward[:-1])
    losses, masses = mechanism.losses()
    assert np.all(masses >= mechanism.pmf[16:])
    right = masses[len(masses) // 2 + 16 :]
    assert np.all(right[1:] <= right[:-1])
    assert 1e-11 < mechanism.bias.shift < 1e-9
    assert len(losses) == len(masses)


def test_sigma_is_nominal() -> None:
    mechanism = Mechanism((1, 8), 128)
    assert mechanism.sigma == pytest.approx(16 * math.sqrt(65))
    z = np.arange(-mechanism.half_support, mechanism.half_support + 1)
    assert math.sqrt(float(np.sum(mechanism.pmf * z**2))) == pytest.approx(mechanism.sigma, rel=1e-6)


def test_delta_at_is_the_hockey_stick_and_a_little() -> None:
    mechanism = Mechanism((1, 8), 128)
    for eps in (0.0, 0.5, 2.0, 6.0):
        direct = hockey_stick(mechanism.pmf, 128, eps)
        assert direct <= mechanism.delta_at(eps) <= direct * (1 + 1e-9)
