"""Calibration: formulas, and the least noise that meets a target."""

import math

import pytest

from rag_audit.errors import PolicyError
from rag_audit.mechanisms.accounting import (
    METHODS,
    Mechanism,
    audit_bounds,
    check_policy,
    eps_at,
    required_sigma_over_delta,
)
from rag_audit.mechanisms.accounting.calibration import calibrate


@pytest.mark.parametrize(
    ("method", "n", "eps_acc", "printed"),
    [
        ("classical", 10_000, 1, "3584"),
        ("analytic", 10_000, 1, "422"),
        ("classical", 200, 4, "116"),
        ("analytic", 200, 4, "16.9"),
    ],
)
def test_the_specifications_scales(method: str, n: int, eps_acc: float, printed: str) -> None:
    scale = required_sigma_over_delta(method, n=n, eps_acc=eps_acc, delta_acc=1e-6)
    assert f"{scale:.{len(printed.partition('.')[2])}f}" == printed


def test_the_papers_two_scales_differ_by_the_factor_it_left_out() -> None:
    for n in (10, 200, 10_000):
        ratio = required_sigma_over_delta("classical", n=n, eps_acc=1, delta_acc=1e-6) / (
            required_sigma_over_delta("theorem-3.9", n=n, eps_acc=1, delta_acc=1e-6)
        )
        assert ratio == pytest.approx(math.sqrt(2 * math.log(1.25 * n / 1e-6)))


def test_the_delta_split_costs_a_few_percent() -> None:
    arguments = {"n": 10_000, "eps_acc": 1, "delta_acc": 1e-6}
    ratio = required_sigma_over_delta("split", **arguments) / required_sigma_over_delta(
        "classical", **arguments
    )
    assert 1.025 < ratio < 1.05


def test_exact_is_the_least_that_meets_one_accounts_target() -> None:
    result = calibrate("exact", n=200, eps_acc=4, delta_acc="1e-6", lattice=64).mechanism
    assert eps_at(result, 200, 1e-6) <= 4
    less = Mechanism((*result.gains[:-1], result.gains[-1] - 1), 64)
    assert eps_at(less, 200, 1e-6) > 4


def test_exact_is_the_least_that_meets_the_coalitions_target() -> None:
    result = calibrate(
        "exact", n=200, k=10, eps_joint=2, delta="2e-5", delta_acc="1e-6", lattice=32
    ).mechanism
    assert eps_at(result, 2_000, "2e-5") <= 2
    less = Mechanism((*result.gains[:-1], result.gains[-1] - 1), 32)
    assert eps_at(less, 2_000, "2e-5") > 2


def test_more_gains_than_needed_come_closer_to_the_target() -> None:
    target = {"n": 50, "eps_acc": 6, "delta_acc": "1e-6", "lattice": 16}
    fewest = calibrate("exact", **target).mechanism  # type: ignore[arg-type]
    closer = calibrate("exact", max_gains=3, **target).mechanism  # type: ignore[arg-type]
    assert len(fewest.gains) == 2
    assert eps_at(fewest, 50, 1e-6) <= eps_at(closer, 50, 1e-6) <= 6
    assert closer.sigma < fewest.sigma


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    "target",
    [
        {"eps_acc": "4"},
        {"eps_acc": "4", "k": 10, "delta": "2e-5"},
        {"eps_joint": "2", "k": 10, "delta": "2e-5"},
    ],
)
def test_what_is_calibrated_is_a_well_formed_policy(method: str, target: dict[str, object]) -> None:
    result = calibrate(method, n=200, delta_acc="1e-6", **target)  # type: ignore[arg-type]
    check_policy(
        gains=result.mechanism.gains,
        lattice=result.mechanism.lattice,
        n=200,
        k_max=int(str(target.get("k", 1))),
        eps_acc=result.eps_acc,
        delta_acc="1e-6",
        delta_policy=str(target.get("delta", "1e-5")),
        calibration=method,
    )


@pytest.mark.parametrize("method", ["classical", "split"])
def test_by_formula_the_closed_form_meets_the_coalitions_target(method: str) -> None:
    result = calibrate(method, n=200, k=10, eps_joint="2", delta="2e-5", delta_acc="1e-6")
    bounds = audit_bounds(
        result.mechanism, n=200, eps_acc=result.eps_acc, delta_acc="1e-6", k=10, delta="2e-5"
    )
    assert bounds.closed_form.valid
    assert 1.999 < bounds.closed_form.eps <= 2
    assert bounds.eps_audit < 0.25


def test_small_noise_needs_the_reach_of_more_gains() -> None:
    """sigma/Delta 0.25 would do for eps 1000, but not with one gain: infinite losses."""
    result = calibrate("exact", n=10, eps_acc=1000, delta_acc="1e-6", lattice=64).mechanism
    assert result.fits(10, 1e-6)
    assert not Mechanism((1,), 64).fits(10, 1e-6)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"eps_acc": None}, "eps_acc"),
        ({"eps_joint": 2, "delta": "1e-5"}, "eps_acc"),
        ({"k": 3}, "delta_policy"),
        ({"eps_acc": None, "eps_joint": 2}, "delta_policy"),
        ({"k": 10, "delta": "1e-5"}, "delta_policy"),
        ({"lattice": 48}, "lattice"),
        ({"max_gains": 7}, "max_gains"),
        ({"max_gains": 1}, "lattice"),
        ({"eps_acc": "1e-9"}, "lattice"),
        ({"n": 0}, "n"),
    ],
)
def test_bad_targets_are_named(change: dict[str, object], field: str) -> None:
    arguments: dict[str, object] = {"n": 200, "eps_acc": 1, "delta_acc": "1e-6", **change}
    with pytest.raises(PolicyError) as caught:
        calibrate("exact", **arguments)  # type: ignore[arg-type]
    assert caught.value.field == field


def test_an_unknown_method_is_named() -> None:
    with pytest.raises(PolicyError, match="unknown calibration"):
        calibrate("folklore", n=200, eps_acc=1, delta_acc="1e-6")
