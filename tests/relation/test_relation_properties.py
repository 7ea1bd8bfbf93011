"""Properties that hold for every input, and the distribution that the noise table promises."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_audit.errors import EncodingError
from rag_audit.relation import draws, noise
from rag_audit.relation.commitments import index_commitment, topk_commitment, vector_commitment
from rag_audit.relation.field import MODULUS, from_bytes, from_hex, random_element, to_bytes, to_hex
from rag_audit.relation.scores import ScoreWindow
from rag_audit.relation.selection import top_k
from rag_audit.relation.tokens import pack_tokens
from rag_audit.relation.vectors import pack_nibbles, unpack_nibbles

elements = st.integers(0, MODULUS - 1)
nibbles = st.integers(-8, 7)
windows = st.builds(
    lambda lo, width, bits: ScoreWindow(lo, lo + width, 1 << bits),
    st.integers(0, 2000),
    st.integers(1, 3000),
    st.integers(0, 10),
)


@given(elements)
def test_field_round_trip(x: int) -> None:
    assert from_hex(to_hex(x), field="x") == x
    assert from_bytes(to_bytes(x), field="x") == x


@given(st.integers(MODULUS, 2**256 - 1))
def test_integers_from_r_on_are_refused(x: int) -> None:
    with pytest.raises(EncodingError, match="not canonical"):
        from_hex(f"{x:064x}", field="x")
    with pytest.raises(EncodingError, match="not a field element"):
        to_bytes(x)


def test_random_elements_differ_and_are_canonical() -> None:
    drawn = {random_element() for _ in range(64)}
    assert len(drawn) == 64
    assert max(drawn) < MODULUS
    assert max(drawn) > 2**250


@given(st.lists(nibbles, max_size=200))
def test_nibbles_round_trip(values: list[int]) -> None:
    packed = pack_nibbles(values)
    assert all(x < 2**252 for x in packed)
    assert unpack_nibbles(packed, len(values)) == values


@given(st.lists(st.integers(0, 32767), max_size=80))
def test_tokens_fill_fifteen_bits_each(tokens: list[int]) -> None:
    packed = pack_tokens(tokens)
    digits = [x >> 15 * j & 0x7FFF for x in packed for j in range(16)]
    assert digits[: len(tokens)] == tokens
    assert not any(digits[len(tokens) :])


@given(windows, st.integers(-20000, 20000), st.integers(-20000, 20000))
def test_quantiser_is_monotone_bounded_and_nearest(window: ScoreWindow, a: int, b: int) -> None:
    low, high = sorted((a, b))
    assert 0 <= window.quantise(low) <= window.quantise(high) <= window.lattice
    clamped = min(max(a, window.lo), window.hi)
    exact = Fraction((clamped - window.lo) * window.lattice, window.hi - window.lo)
    assert abs(window.quantise(a) - exact) <= Fraction(1, 2)


@given(windows)
def test_sensitivity_is_the_lattice(window: ScoreWindow) -> None:
    assert window.quantise(0) == 0  # an empty position: the zero vector's score
    assert window.quantise(window.hi) - window.quantise(0) == window.lattice


@given(st.lists(st.integers(-5, 5), min_size=1, max_size=40), st.data())
def test_top_k_is_maximal_and_ordered(y: list[int], data: st.DataObject) -> None:
    k = data.draw(st.integers(1, len(y)))
    chosen = top_k(y, k)
    keys = [(-y[i], i) for i in chosen]
    assert keys == sorted(keys)
    assert all((-y[j], j) > keys[-1] for j in range(len(y)) if j not in chosen)


@settings(max_examples=10)
@given(elements, elements, st.lists(nibbles, min_size=1, max_size=70))
def test_commitments_depend_on_their_salt(a: int, b: int, values: list[int]) -> None:
    same = a == b
    assert (vector_commitment(a, values) == vector_commitment(b, values)) is same
    assert (topk_commitment(a, [1, 2]) == topk_commitment(b, [1, 2])) is same
    assert (index_commitment(a, [values]) == index_commitment(b, [values])) is same


def test_table_has_exactly_the_published_masses() -> None:
    table = noise.alias_table()
    parts = [0] * noise.BINS
    for bin_, (threshold, alias) in enumerate(zip(table.thresholds, table.aliases, strict=True)):
        assert 0 <= threshold < 2**32
        parts[bin_] += threshold
        parts[alias] += 2**32 - threshold
    assert tuple(parts) == noise.magnitude_masses()


def test_full_bins_are_written_one_way() -> None:
    table = noise.alias_table()
    full = [j for j in range(noise.BINS) if table.aliases[j] == j]
    assert full
    assert all(table.thresholds[j] == 0 for j in full)


def test_pmf_is_symmetric_unimodal_and_nowhere_zero() -> None:
    pmf = noise.base_pmf()
    assert sorted(pmf) == list(range(-127, 128))
    assert sum(pmf.values()) == 2**40
    assert all(pmf[x] == pmf[-x] >= 1 for x in pmf)
    assert all(pmf[x] >= pmf[x + 1] for x in range(127))


def test_pmf_is_the_discrete_gaussian_rounded_to_nearest() -> None:
    pmf = noise.base_pmf()
    total = math.fsum(math.exp(-(x**2) / 512) for x in range(-600, 601))
    for x in range(1, 128):
        ideal = 2**40 * math.exp(-(x**2) / 512) / total
        assert abs(pmf[x] - max(1.0, ideal)) <= 0.5 + 1e-3
    # the residue on 0: at most half a unit for each of the 254 other values, and the forced minimum
    assert abs(pmf[0] - 2**40 / total) <= 254


def test_draws_follow_the_table() -> None:
    """Chi-square of 24,000 draws under fixed keys; merged tails; 99.99 % point of 61 degrees of freedom."""
    drawn = np.concatenate([draws.draw(key, 8000, [1]) for key in (1, 2, 3)])
    pmf = noise.base_pmf()
    cut = 30
    inside = [int(np.sum(drawn == x)) for x in range(-cut, cut + 1)]
    counts = [int(np.sum(drawn < -cut)), *inside, int(np.sum(drawn > cut))]
    tail = sum(p for x, p in pmf.items() if x > cut)
    expected = [p * len(drawn) / 2**40 for p in (tail, *(pmf[x] for x in range(-cut, cut + 1)), tail)]
    statistic = sum((c - e) ** 2 / e for c, e in zip(counts, expected, strict=True))
    assert statistic < 110
    assert min(expected) > 100


def test_gains_combine_consecutive_draws() -> None:
    base = draws.draw(99, 30, [1])
    combined = draws.draw(99, 10, [1, 8, 64])
    assert combined == [base[3 * i] + 8 * base[3 * i + 1] + 64 * base[3 * i + 2] for i in range(10)]


def test_draws_of_a_shorter_index_are_a_prefix() -> None:
    assert draws.draw(7, 100, [1, 2])[:37] == draws.draw(7, 37, [1, 2])
