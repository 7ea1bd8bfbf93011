"""The exact estimator against its definition by brute force, and on inputs that have no ordinary answer."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest

from bench.estimate import Query
from rag_audit import _native
from rag_audit.errors import EncodingError, PolicyError
from rag_audit.estimate.clusters import estimate, estimate_window
from rag_audit.estimate.statement import TauUnit
from tests.drafting import draft


def ask(*accounts: str, gap_ms: int = 1000) -> list[Query]:
    """Queries in this order; an account's tenant is its first letter."""
    return [Query(10 + i, gap_ms * i, account, account[0]) for i, account in enumerate(accounts)]


def rows(*vectors: list[int]) -> np.ndarray:
    return np.array(vectors, np.int8)


def near(a: np.ndarray, b: np.ndarray, p: int, q: int) -> bool:
    """The definition, in Python's integers."""
    s, aa, bb = (sum(int(x) * int(y) for x, y in zip(u, v, strict=True)) for u, v in ((a, b), (a, a), (b, b)))
    return bool((a == b).all()) or (s > 0 and s * s * q * q >= p * p * aa * bb)


def by_definition(
    queries: list[Query], vectors: np.ndarray, theta: tuple[int, int], tau: int, unit: TauUnit
) -> tuple[tuple[str, ...], ...]:
    cluster = {query.account: {query.account} for query in queries}
    for j, later in enumerate(queries):
        for i, earlier in enumerate(queries[:j]):
            apart = j - i if unit == "positions" else (later.ts - earlier.ts) / 1000
            if (tau == 0 or apart <= tau) and near(vectors[i], vectors[j], *theta):
                merged = cluster[later.account] | cluster[earlier.account]
                cluster.update(dict.fromkeys(merged, merged))
    result = {tuple(sorted(accounts)) for accounts in cluster.values() if len(accounts) > 1}
    return tuple(sorted(result, key=lambda accounts: (-len(accounts), accounts)))


@pytest.mark.parametrize("unit", ["positions", "seconds"])
@pytest.mark.parametrize("tau", [0, 1, 4, 30])
@pytest.mark.parametrize("theta", [(1, 2), (4, 5), (9, 10)])
def test_agrees_with_the_definition(unit: TauUnit, tau: int, theta: tuple[int, int]) -> None:
    rng = Random(f"{unit}{tau}{theta}")
    sizes = set()
    for _ in range(20):
        queries, now = [], 0
        for i in range(36):
            now += rng.choice([0, 400, 1000, 2500])
            queries.append(Query(i + 2, now, account := rng.choice("abcdefghijkl") + "1", account[0]))
        intents = [[rng.randint(-5, 5) for _ in range(9)] for _ in range(20)]
        vectors = np.array([[x + rng.randint(-2, 2) for x in rng.choice(intents)] for _ in queries], np.int8)
        result = estimate(queries, vectors, theta=theta, tau=tau, tau_unit=unit)
        assert result.clusters == by_definition(queries, vectors, theta, tau, unit)
        assert result.c == max([1, *map(len, result.clusters)])
        sizes.add(result.c)
    assert len(sizes) > 1


def test_neither_order_nor_threads_matter() -> None:
    rng = Random(5)
    queries = ask(*(f"a{rng.randint(1, 40)}" for _ in range(400)))
    vectors = np.array([[rng.randint(-7, 7) for _ in range(8)] for _ in queries], np.int8)
    first = estimate(queries, vectors, theta=(9, 10), tau=50)
    assert len(first.joins) > 3
    before = _native.threads()
    try:
        for threads in (1, 2, 5):
            _native.set_threads(threads)
            order = rng.sample(range(400), 400)
            assert estimate([queries[i] for i in order], vectors[order], theta=(9, 10), tau=50) == first
    finally:
        _native.set_threads(before)


def test_a_join_names_the_first_near_pair_in_ledger_order() -> None:
    result = estimate(
        ask("a1", "b1", "a2", "a1", "b1"),
        rows([1, 0], [0, 1], [1, 0], [0, 1], [1, 0]),
        theta=(4, 5),
    )
    assert [(j.earlier, j.later, j.accounts) for j in result.joins] == [
        (10, 12, ("a1", "a2")),
        (11, 13, ("b1", "a1")),
    ]
    assert result.clusters == (("a1", "a2", "b1"),)


def test_a_cluster_is_counted_over_all_tenants_and_within_one() -> None:
    result = estimate(ask("a1", "b1", "a2", "c1", "c2"), rows(*[[3, 4]] * 3, *[[-4, 3]] * 2), theta=(4, 5))
    assert result.clusters == (("a1", "a2", "b1"), ("c1", "c2"))
    assert (result.c, result.c_tenant) == (3, 2)
    split = estimate(ask("a1", "b1", "c1"), rows(*[[3, 4]] * 3), theta=(4, 5))
    assert (split.c, split.c_tenant) == (3, 1)


def test_a_chain_is_one_cluster() -> None:
    angles = [np.array([7, 0]), np.array([7, 3]), np.array([6, 6]), np.array([3, 7])]
    result = estimate(ask("a1", "a2", "a3", "a4"), np.array(angles, np.int8), theta=(9, 10))
    assert not near(angles[0], angles[3], 9, 10)
    assert result.c == 4


def test_the_threshold_is_exact() -> None:
    vectors = rows([4, 3], [5, 0])  # cosine 4/5
    assert estimate(ask("a1", "a2"), vectors, theta=(4, 5)).c == 2
    assert estimate(ask("a1", "a2"), vectors, theta=(800, 1000)).c == 2
    assert estimate(ask("a1", "a2"), vectors, theta=(801, 1000)).c == 1
    assert estimate(ask("a1", "a2"), rows([4, 3], [-5, 0]), theta=(1, 1000)).c == 1


def test_tau_in_positions_ignores_other_ledger_entries() -> None:
    queries = [Query(2, 0, "a1", "a"), Query(900, 0, "b1", "b"), Query(901, 0, "a2", "a")]
    vectors = rows([1, 0], [0, 1], [1, 0])
    assert estimate(queries, vectors, theta=(4, 5), tau=1).c == 1
    assert estimate(queries, vectors, theta=(4, 5), tau=2).c == 2


def test_tau_in_seconds_includes_its_end() -> None:
    vectors = rows([1, 0], [1, 0])
    for gap, c in ((5000, 2), (5001, 1)):
        queries = ask("a1", "a2", gap_ms=gap)
        assert estimate(queries, vectors, theta=(4, 5), tau=5, tau_unit="seconds").c == c


def test_no_queries() -> None:
    result = estimate([], np.zeros((0, 4), np.int8), theta=(4, 5))
    assert (result.c, result.c_tenant, result.clusters, result.joins) == (0, 0, (), ())


def test_one_account_is_no_coalition() -> None:
    result = estimate(
        ask("a1", "a1", "a1"),
        rows([1, 0], [1, 0], [1, 0]),
        theta=(4, 5),
    )
    assert (result.c, result.c_tenant, result.clusters) == (1, 1, ())


def test_identical_queries_only() -> None:
    accounts = [f"a{i}" for i in range(300)]
    result = estimate(ask(*accounts), np.full((300, 4), 3, np.int8), theta=(999, 1000))
    assert (result.c, result.c_tenant, len(result.joins)) == (300, 300, 299)


def test_zero_vectors_are_equal_to_each_other_only() -> None:
    assert estimate(ask("a1", "a2", "a3"), rows([0, 0], [1, 0], [0, 0]), theta=(1, 2)).clusters == (
        ("a1", "a3"),
    )


@pytest.mark.parametrize("theta", [(0, 1), (1, 1), (5, 4), (-4, 5), (4, 1001)])
def test_theta_outside_the_unit_interval_is_refused(theta: tuple[int, int]) -> None:
    with pytest.raises(PolicyError) as caught:
        estimate(ask("a1"), rows([1]), theta=theta)
    assert caught.value.field == "estimator.theta"


def test_negative_tau_is_refused() -> None:
    with pytest.raises(PolicyError) as caught:
        estimate(ask("a1"), rows([1]), theta=(4, 5), tau=-1)
    assert caught.value.field == "estimator.tau"


@pytest.mark.parametrize(
    ("queries", "vectors", "reason"),
    [
        (ask("a1", "a2"), rows([1]), "there is not one vector for each record"),
        (ask("a1"), rows([8]), "component is out of range"),
        (ask("a1"), np.ones((1, 1), np.int32), "the array does not hold int4 components"),
        (ask("a1", "a2", gap_ms=-1), rows([1], [1]), "the timestamps run backwards"),
        (
            [Query(2, 0, "a1", "a"), Query(2, 0, "a2", "a")],
            rows([1], [1]),
            "a ledger index occurs twice",
        ),
        (
            [Query(2, 0, "a1", "a"), Query(3, 0, "a1", "b")],
            rows([1], [1]),
            "an account is in two tenants",
        ),
    ],
)
def test_what_is_not_a_window_is_refused(queries: list[Query], vectors: np.ndarray, reason: str) -> None:
    with pytest.raises(EncodingError, match=reason):
        estimate(queries, vectors, theta=(4, 5))


def test_the_policy_says_what_is_estimated_and_names_stay_inside() -> None:
    policy = draft(
        window="w", opens_at=1, closes_at=2, capacities={"a": 8}, n=3, k_max=2, eps_acc="14", top_k=2
    )
    queries = ask("alice", "alan")
    result = estimate_window(queries, list(rows([4, 3], [5, 0])), policy)
    assert result.public().dump() == {
        "c": 2, "c_tenant": 2, "theta": [4, 5], "tau": 0, "tau_unit": "positions", "coalition_proof": None,
    }  # fmt: skip
    assert "alice" not in result.public().canonical().decode()
    assert result.evidence()["clusters"] == [["alan", "alice"]]
    with pytest.raises(EncodingError, match="several shapes"):
        estimate_window(queries, [np.ones(2, np.int8), np.ones(3, np.int8)], policy)


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"rows_int8": b"\x01\x08"}, "-8 to 7"),
        ({"rows_int8": b"\x01\x01\x01"}, "multiple of 2"),
        ({"dimension": 0}, "dimension"),
        ({"accounts": []}, "accounts"),
        ({"accounts": [1]}, "accounts"),
        ({"first": []}, "first"),
        ({"first": [1]}, "first[0]"),
        ({"p": 0}, "theta"),
        ({"q": 4}, "theta"),
        ({"q": 1001}, "theta"),
    ],
)
def test_the_native_core_refuses_by_name(changed: dict[str, Any], reason: str) -> None:
    arguments = {"rows_int8": b"\x01\x01", "dimension": 2, "accounts": [0], "first": [0], "p": 4, "q": 5}
    assert _native.joining_pairs(**arguments) == []
    with pytest.raises(ValueError) as caught:
        _native.joining_pairs(**{**arguments, **changed})
    assert reason in str(caught.value)
