"""Engine, native core and Python reference: one function, three writings."""

from __future__ import annotations

from collections import Counter
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_audit.errors import EncodingError, PolicyError
from rag_audit.relation import draws
from rag_audit.relation.field import MODULUS
from rag_audit.relation.scores import ScoreWindow, dot
from rag_audit.retrieval.engine import (
    CapacityError,
    Int8Array,
    Int32Array,
    TenantIndex,
    build_index,
    draw_noise,
    no_noise,
    reference_select,
    select,
)

WINDOW = ScoreWindow(101, 810, 64)


def vectors(rng: np.random.Generator, shape: tuple[int, ...]) -> Int8Array:
    """Like an encoder's: bell-shaped, clipped at 7."""
    return np.clip(np.rint(rng.normal(0, 2, shape)), -7, 7).astype(np.int8)


def random_case(seed: int) -> tuple[TenantIndex, Int8Array, ScoreWindow, list[int], int, int]:
    rng = np.random.default_rng(seed)
    capacity = int(rng.integers(1, 65))
    dimension = int(rng.choice([1, 7, 63, 64, 256]))
    documents = vectors(rng, (int(rng.integers(0, capacity + 1)), dimension))
    index = build_index(documents, capacity, Random(seed))
    # Queries near a document, so that scores reach into and beyond the window.
    query = vectors(rng, (dimension,)) if rng.integers(2) or not len(documents) else documents[0].copy()
    lo = int(rng.integers(0, 200))
    window = ScoreWindow(lo, lo + int(rng.integers(1, 900)), 1 << int(rng.integers(0, 9)))
    gains = [[1], [1, 8], [1, 8, 64], [1, 1]][int(rng.integers(4))]
    kappa = int.from_bytes(rng.bytes(40), "big") % MODULUS
    return index, query, window, gains, kappa, int(rng.integers(1, capacity + 1))


def assert_agreement(seed: int) -> None:
    index, query, window, gains, kappa, k = random_case(seed)
    z = draw_noise(kappa, index.capacity, gains)
    assert z.tolist() == draws.draw(kappa, index.capacity, gains), seed
    assert index.scores(query).tolist() == [dot(query.tolist(), row) for row in index.rows.tolist()], seed
    kept = (np.random.default_rng(seed).random(index.capacity) < 0.7).astype(np.int8)
    for noise in (z, no_noise(index.capacity)):
        for sample in (None, kept):
            expected = reference_select(index, query, noise, window, k, sample)
            assert select(index, query, noise, window, k, sample) == expected, seed


def test_engine_reference_and_native_agree() -> None:
    for seed in range(200):
        assert_agreement(seed)


@pytest.mark.full
def test_engine_reference_and_native_agree_on_ten_thousand_queries() -> None:
    for seed in range(10_000):
        assert_agreement(seed)


@given(st.data())
@settings(max_examples=100, deadline=None)
def test_ties_go_to_the_smaller_position(data: st.DataObject) -> None:
    """Noise that cancels score differences exactly: only the tie rule is left."""
    rows = np.array(
        data.draw(st.lists(st.sampled_from([[7, 7], [0, 0], [-7, 3]]), min_size=1, max_size=40)), np.int8
    )
    index = TenantIndex(rows, ())
    window = ScoreWindow(0, 98, 2)
    query = np.array([7, 7], np.int8)
    z = np.array([-window.quantise(s) for s in index.scores(query).tolist()], np.int32)
    assert select(index, query, z, window, len(rows)) == list(range(len(rows)))


def test_noise_decides_beside_the_scores() -> None:
    index = TenantIndex(np.array([[7] * 16, [0] * 16, [7] * 16], np.int8), (0, 1, 2))
    query = np.array([7] * 16, np.int8)
    quiet = np.zeros(3, np.int32)
    assert select(index, query, quiet, WINDOW, 3) == [0, 2, 1]
    loud = np.array([0, 65, 1], np.int32)
    assert select(index, query, loud, WINDOW, 3) == [1, 2, 0]


def test_extreme_noise_does_not_wrap() -> None:
    index = TenantIndex(np.array([[7], [7]], np.int8), (0, 1))
    extremes = np.array([np.iinfo(np.int32).max, np.iinfo(np.int32).min], np.int32)
    query = np.array([7], np.int8)
    window = ScoreWindow(0, 1, 256)
    expected = reference_select(index, query, extremes, window, 2)
    assert expected == [0, 1]
    assert select(index, query, extremes, window, 2) == expected


def test_documents_take_random_distinct_positions() -> None:
    documents = np.eye(5, dtype=np.int8)
    index = build_index(documents, 9)
    assert len(set(index.positions)) == 5
    for document, position in zip(documents, index.positions, strict=True):
        assert index.rows[position].tolist() == document.tolist()
    empty = set(range(9)) - set(index.positions)
    assert not index.rows[sorted(empty)].any()
    again = {build_index(documents, 9).positions for _ in range(20)}
    assert len(again) > 1


def test_positions_are_uniform() -> None:
    """1,200 placements of one document among six positions, under a fixed seed; chi-square, 5 degrees."""
    rng = Random(5)
    one = np.ones((1, 2), np.int8)
    counts = Counter(build_index(one, 6, rng).positions[0] for _ in range(1200))
    assert sum((counts[p] - 200) ** 2 / 200 for p in range(6)) < 25.7


def test_more_documents_than_capacity_are_refused() -> None:
    with pytest.raises(CapacityError) as caught:
        build_index(np.ones((4, 2), np.int8), 3)
    assert (caught.value.expected, caught.value.actual) == ("at most 3", 4)
    assert build_index(np.ones((3, 2), np.int8), 3).capacity == 3
    with pytest.raises(PolicyError, match="the capacity is out of range"):
        build_index(np.ones((0, 2), np.int8), 0)


def test_index_cannot_change_inside_a_window() -> None:
    index = build_index(np.ones((2, 4), np.int8), 3)
    with pytest.raises(ValueError, match="read-only"):
        index.rows[0, 0] = 5


@pytest.mark.parametrize(
    ("rows", "positions", "message"),
    [
        (np.full((2, 2), 8, np.int8), (), "component is out of range"),
        (np.full((2, 2), -8, np.int8), (), "component is out of range"),
        (np.full((2, 2), -128, np.int8), (), "component is out of range"),
        (np.zeros((2, 2), np.int16), (), "the array does not hold int4 components"),
        (np.zeros(2, np.int8), (), "the array does not hold int4 components"),
        (np.zeros((2, 2), np.int8), (0, 0), "not an injection"),
        (np.zeros((2, 2), np.int8), (2,), "not an injection"),
    ],
    ids=["above", "below", "far-below", "type", "axes", "repeated", "outside"],
)
def test_malformed_index_is_refused(rows: Int8Array, positions: tuple[int, ...], message: str) -> None:
    with pytest.raises(EncodingError, match=message):
        TenantIndex(rows, positions)


ZEROS = np.zeros(3, np.int32)


@pytest.mark.parametrize(
    ("query", "noise", "k", "error"),
    [
        (np.ones(3, np.int8), ZEROS, 1, EncodingError),
        (np.full(4, 8, np.int8), ZEROS, 1, EncodingError),
        (np.ones(4, np.float32), ZEROS, 1, EncodingError),
        (np.ones(4, np.int8), ZEROS[:2], 1, EncodingError),
        (np.ones(4, np.int8), np.zeros(3, np.int64), 1, EncodingError),
        (np.ones(4, np.int8), ZEROS, 0, PolicyError),
        (np.ones(4, np.int8), ZEROS, 4, PolicyError),
    ],
    ids=["query-dimension", "query-range", "query-type", "noise-short", "noise-type", "k-zero", "k-above"],
)
def test_malformed_selection_is_refused(
    query: Int8Array, noise: Int32Array, k: int, error: type[Exception]
) -> None:
    index = build_index(np.ones((2, 4), np.int8), 3)
    with pytest.raises(error):
        select(index, query, noise, WINDOW, k)


def test_gains_are_checked_before_drawing() -> None:
    with pytest.raises(PolicyError):
        draw_noise(1, 8, [1, 9])
    with pytest.raises(EncodingError):
        draw_noise(MODULUS, 8, [1])
