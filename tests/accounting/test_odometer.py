"""The realised bound: a ladder fixed in advance, delta split over it."""

import pytest

from rag_audit.errors import PolicyError
from rag_audit.mechanisms.accounting import Mechanism, eps_at, ladder, realised

MECHANISM = Mechanism((1, 8, 64), 32)


@pytest.mark.parametrize(
    ("limit", "rungs"), [(1, [1]), (2, [1, 2]), (5, [1, 2, 4, 5]), (16, [1, 2, 4, 8, 16])]
)
def test_the_ladder_doubles_and_ends_at_the_limit(limit: int, rungs: list[int]) -> None:
    assert ladder(limit) == rungs


def test_the_busiest_accounts_count() -> None:
    result = realised(MECHANISM, [3, 7, 200, 0, 15], "2e-5", n=200, k=2)
    assert result.queries == 215
    assert result.rung == 256
    assert result.rungs == len(ladder(400)) == 10
    assert result.eps == eps_at(MECHANISM, 256, 2e-5 / 10)


def test_the_ladders_price_is_charged() -> None:
    """Without the correction the reading would be eps at the count found with all of delta."""
    result = realised(MECHANISM, [128, 128], "2e-5", n=200, k=2)
    assert result.queries == result.rung == 256
    assert result.eps > eps_at(MECHANISM, 256, "2e-5")


def test_a_full_window_reads_the_limit() -> None:
    result = realised(MECHANISM, [150] * 10, "2e-5", n=150, k=3)
    assert result.rung == result.queries == 450
    assert result.eps > eps_at(MECHANISM, 450, "2e-5")


def test_readings_rise_with_the_counts() -> None:
    readings = [realised(MECHANISM, [c], "1e-5", n=64, k=1).eps for c in (0, 1, 2, 3, 17, 33, 64)]
    assert readings[0] == 0
    assert readings == sorted(readings)


@pytest.mark.parametrize("bad", [-1, 201, 1.0, True])
def test_a_count_out_of_range_is_named(bad: object) -> None:
    with pytest.raises(PolicyError) as caught:
        realised(MECHANISM, [3, bad], "2e-5", n=200, k=2)  # type: ignore[list-item]
    assert caught.value.field == "counts[1]"


def test_json() -> None:
    assert realised(MECHANISM, [], "2e-5", n=4, k=1).as_json() == {
        "queries": 0,
        "rung": 0,
        "rungs": 3,
        "eps": "0",
        "delta": "0.00002",
    }
