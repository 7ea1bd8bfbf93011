"""Policies that no bound can be given for are refused, each fault by name, with a way out."""

import re

import pytest

from rag_audit.errors import PolicyError
from rag_audit.mechanisms.accounting import Mechanism, check_policy

GOOD = {
    "gains": [1, 8, 64],
    "lattice": 32,
    "n": 200,
    "k_max": 10,
    "eps_acc": "4",
    "delta_acc": "1e-6",
    "delta_policy": "2e-5",
    "calibration": "exact",
}


def refused(**change: object) -> PolicyError:
    with pytest.raises(PolicyError) as caught:
        check_policy(**{**GOOD, **change})  # type: ignore[arg-type]
    return caught.value


def test_a_good_policy_gives_its_mechanism() -> None:
    assert check_policy(**GOOD) == Mechanism((1, 8, 64), 32)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("change", "field", "words"),
    [
        ({"eps_acc": "0"}, "eps_acc", "not above 0"),
        ({"eps_acc": "-0.5"}, "eps_acc", "not above 0"),
        ({"delta_acc": "0"}, "delta_acc", "between 0 and 1"),
        ({"delta_policy": "1"}, "delta_policy", "between 0 and 1"),
        ({"delta_policy": "1e-5"}, "delta_policy", "does not exceed"),
        ({"n": 0}, "n", "positive integer"),
        ({"n": "200"}, "n", "positive integer"),
        ({"k_max": 0}, "k_max", "positive integer"),
        ({"k_max": 1.0}, "k_max", "positive integer"),
        ({"gains": []}, "gains", "number of gains"),
        ({"gains": [1] * 7}, "gains", "number of gains"),
        ({"gains": [2, 8]}, "gains[0]", "first gain"),
        ({"gains": [1, 9]}, "gains[1]", "out of range"),
        ({"gains": [1, 8, 0]}, "gains[2]", "out of range"),
        ({"gains": [1, 2.0]}, "gains[1]", "not an integer"),
        ({"gains": "1,8"}, "gains", "not a list"),
        ({"lattice": 48}, "lattice", "power of two"),
        ({"lattice": 0}, "lattice", "power of two"),
        ({"lattice": 32768}, "lattice", "exceeds the support"),
        ({"gains": [1], "lattice": 64}, "lattice", "infinite privacy loss"),
        ({"calibration": "folklore"}, "calibration", "unknown calibration"),
        ({"calibration": "classical"}, "gains", "classical calibration"),
        ({"calibration": "split"}, "gains", "split calibration"),
        ({"calibration": "analytic", "eps_acc": "1"}, "gains", "analytic calibration"),
        ({"calibration": "exact", "eps_acc": "1"}, "gains", "exact calibration"),
    ],
)
def test_each_fault_is_named(change: dict[str, object], field: str, words: str) -> None:
    error = refused(**change)
    assert error.field == field
    assert words in error.message


@pytest.mark.parametrize(
    ("gains", "lattice"), [([1], 64), ([1, 8], 512), ([1, 2, 4], 1024), ([1, 8, 64], 4096)]
)
def test_the_way_out_of_infinite_losses_works(gains: list[int], lattice: int) -> None:
    error = refused(gains=gains, lattice=lattice, eps_acc="1e6")
    assert error.hint is not None
    smaller = int(re.search(r"lattice (\d+) with these gains", error.hint).group(1))  # type: ignore[union-attr]
    wider = [int(g) for g in re.search(r"gains ([\d,]+) with", error.hint).group(1).split(",")]  # type: ignore[union-attr]
    m, delta = 2000, 2e-5
    assert Mechanism(tuple(gains), smaller).fits(m, delta)
    assert not Mechanism(tuple(gains), 2 * smaller).fits(m, delta)
    assert Mechanism(tuple(wider), lattice).fits(m, delta)
    assert wider[:-1] == gains


def test_infinite_losses_count_over_all_queries() -> None:
    """One query of [1,8], R = 128 is harmless at 1e-12; a hundred thousand are not, at delta 2e-5."""
    wide = {"gains": [1, 8], "lattice": 128, "eps_acc": "1e6"}
    check_policy(**{**GOOD, **wide, "k_max": 1})  # type: ignore[arg-type]
    assert "infinite" in refused(**wide, n=50_000, k_max=10).message
