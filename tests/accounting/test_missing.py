"""The factor by which a missing document shows its absence (docs/accounting.md, "Exclusion factor").

Exact enumeration of small cases, and windows through the engine, whose rate of windows without the document gives a
lower limit of the factor by Clopper and Pearson.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import beta

from rag_audit.errors import PolicyError
from rag_audit.mechanisms.accounting.bernoulli import (
    ChanceListing,
    NoisedSampling,
    Sampling,
    exclusion_factor_over_windows,
)
from rag_audit.mechanisms.accounting.curves import probability_over_range
from rag_audit.relation.bernoulli import PROBABILITY_RANGE
from rag_audit.relation.scores import ScoreWindow
from rag_audit.retrieval.engine import TenantIndex, draw_bernoulli_bits, draw_noise, select
from tests.accounting.test_bernoulli import law, requested, top_k_law, worlds

HALF, QUARTER = PROBABILITY_RANGE // 2, PROBABILITY_RANGE // 4


def not_below(printed: float, truth: Fraction) -> None:
    """A printed factor bounds the exact one, and is rounded up by its fifth digit at most."""
    assert truth <= Fraction(printed) <= truth * Fraction(10002, 10000)


# -- enumeration ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("keep", [HALF, 3 * QUARTER])
@pytest.mark.parametrize(
    ("accounts", "queries", "maximum"), [(1, 1, 3), (1, 2, 3), (2, 2, 3), (2, 2, 1), (1, 3, 2)]
)
def test_every_listing_of_a_document(keep: int, accounts: int, queries: int, maximum: int) -> None:
    pi, q, minimum = Fraction(keep, PROBABILITY_RANGE), Fraction(1, 4), Fraction(1)
    seen: dict[tuple[object, ...], Fraction] = {}
    for questions in worlds(accounts, queries, 3):
        key = tuple(requested(questions, 1))
        if key not in seen:
            laws = law(list(key), positions=3, keep=pi, flip_probability=q, maximum=maximum)
            seen[key] = sum(
                (p for lists, p in laws.items() if not any(0 in listed for listed in lists)),
                start=Fraction(0),
            )
        minimum = min(minimum, seen[key])
    bound = (1 - pi) * (1 - q) ** queries
    assert bound <= minimum
    # With room for all in a list the bound is met, by a document that is relevant to the first question.
    assert minimum == bound or maximum < 3
    not_below(ChanceListing(keep, QUARTER).exclusion_factor(queries), 1 / bound)


@pytest.mark.parametrize("queries", [1, 2])
def test_every_listing_of_a_document_with_two_positions(queries: int) -> None:
    pi, q = Fraction(1, 2), Fraction(1, 4)
    laws = law([(0, frozenset({0, 1}))] * queries, positions=3, keep=pi, flip_probability=q, maximum=3)
    missing = sum(
        (p for lists, p in laws.items() if not any({0, 1} & set(listed) for listed in lists)),
        start=Fraction(0),
    )
    assert missing == ((1 - pi) * (1 - q) ** queries) ** 2
    not_below(ChanceListing(HALF, QUARTER).exclusion_factor(queries, positions=2), 1 / missing)


@pytest.mark.parametrize("filled", [1, 2])
@pytest.mark.parametrize(("queries", "maximum"), [(1, 1), (2, 1), (1, 2), (2, 2)])
def test_every_noised_list_of_a_document_at_a_random_position(
    queries: int, maximum: int, filled: int
) -> None:
    """All scores of the other positions, all noise of few values with ties, and all places of the document."""
    positions, pi, noises, minimum = 4 if queries == 1 else 3, Fraction(1, 2), (-1, 0, 2), Fraction(1)
    for others in itertools.product(itertools.product((0, 2), repeat=positions - filled), repeat=queries):
        for own in (0, 9):
            total, places = Fraction(0), list(itertools.combinations(range(positions), filled))
            for place in places:
                rows = []
                for rest in others:
                    row = [own] * positions
                    for i, u in zip((i for i in range(positions) if i not in place), rest, strict=True):
                        row[i] = u
                    rows.append(tuple(row))
                result = top_k_law(rows, keep=pi, noises=noises, maximum=maximum)
                total += sum(
                    (
                        p
                        for lists, p in result.items()
                        if not any(set(place) & set(listed) for listed in lists)
                    ),
                    start=Fraction(0),
                )
            minimum = min(minimum, total / len(places))
    free = Fraction(math.comb(positions - filled, maximum), math.comb(positions, maximum))
    bound = (1 - pi) ** filled * free**queries
    assert bound <= minimum
    printed = NoisedSampling(HALF, maximum, positions).exclusion_factor(queries, filled)
    if bound:
        not_below(printed, 1 / bound)
    else:
        assert math.isinf(printed)
    if queries == 1 and filled == 1:
        assert minimum == bound  # met where no other document scores, and this one does


@pytest.mark.parametrize(("positions", "factor"), [(1, 10), (2, 100), (3, 1000), (4, 10_000)])
def test_a_sample_draws_a_coin_for_each_position(positions: int, factor: int) -> None:
    sampling = Sampling(probability_over_range("0.9", "keep"))
    assert sampling.exclusion_factor(2000, positions) == pytest.approx(factor, rel=2e-4)
    assert sampling.exclusion_factor(1, positions) == sampling.exclusion_factor(10**7, positions)


@given(
    st.integers(1, PROBABILITY_RANGE - 1),
    st.integers(1, PROBABILITY_RANGE // 2),
    st.integers(1, 400),
    st.integers(1, 4),
)
def test_the_listing_factor_is_not_below_the_truth(
    keep: int, flip_probability: int, queries: int, positions: int
) -> None:
    pi, q = Fraction(keep, PROBABILITY_RANGE), Fraction(flip_probability, PROBABILITY_RANGE)
    truth = 1 / ((1 - pi) * (1 - q) ** queries) ** positions
    printed = ChanceListing(keep, flip_probability).exclusion_factor(queries, positions)
    if truth < 10**290:
        not_below(printed, truth)
    else:
        assert printed > 1e289


def test_lists_that_can_hold_every_position_leave_no_finite_factor() -> None:
    assert math.isinf(NoisedSampling(HALF, 4, 4).exclusion_factor(1))
    assert math.isinf(NoisedSampling(HALF, 3, 4).exclusion_factor(1, positions=2))
    assert math.isfinite(NoisedSampling(HALF, 3, 4).exclusion_factor(1))


@pytest.mark.parametrize(("queries", "positions"), [(0, 1), (1, 0), (-1, 1)])
def test_numbers_below_one_are_refused(queries: int, positions: int) -> None:
    with pytest.raises(PolicyError):
        ChanceListing(HALF, QUARTER).exclusion_factor(queries, positions)


def test_windows_multiply_with_the_queries_of_each() -> None:
    listing = ChanceListing(HALF, QUARTER)
    result = exclusion_factor_over_windows([(listing, 1), (listing, 2), (Sampling(HALF), 7)])
    not_below(result, 1 / (Fraction(1, 8) * Fraction(3, 4) ** 3))


# -- the engine ----------------------------------------------------------------------------------------------


def limits(missing: int, windows: int) -> tuple[float, float]:
    """The exclusion factor from below and from above, each at confidence 97.5 %."""
    low = beta.ppf(0.025, missing, windows - missing + 1) if missing else 0.0
    high = beta.ppf(0.975, missing + 1, windows - missing)
    return 1 / float(high), math.inf if low == 0 else 1 / float(low)


def index_of(place: Sequence[int], capacity: int) -> TenantIndex:
    """An index with one document, which answers the query of ones, and with nothing else."""
    rows = np.zeros((capacity, 8), np.int8)
    rows[list(place)] = 1
    return TenantIndex(rows, tuple(place))


QUERY, WINDOW = np.ones(8, np.int8), ScoreWindow(0, 8, 8)


def test_noise_with_sampling_through_the_engine() -> None:
    """At N = 64 with 20 queries, of which noise lists the document although the window does not keep it."""
    capacity, queries, windows, missing, random = 64, 20, 800, 0, Random(12)
    for number in range(windows):
        place = random.sample(range(capacity), 1)
        index, kept = index_of(place, capacity), draw_bernoulli_bits(number, capacity, HALF)
        for i in range(queries):
            noise = draw_noise(10**6 * (i + 1) + number, capacity, (1, 4))
            if place[0] in select(index, QUERY, noise, WINDOW, 5, kept):
                break
        else:
            missing += 1
    printed, (low, _) = NoisedSampling(HALF, 5, capacity).exclusion_factor(queries), limits(missing, windows)
    assert 2 * 2 < low <= printed


@pytest.mark.parametrize("positions", [1, 2, 3])
def test_a_sample_through_the_engine(positions: int) -> None:
    capacity, windows, missing, random = 64, 2000, 0, Random(13)
    for number in range(windows):
        place = random.sample(range(capacity), positions)
        kept = draw_bernoulli_bits(number, capacity, HALF)
        noise = np.zeros(capacity, np.int32)
        listed = select(index_of(place, capacity), QUERY, noise, WINDOW, 5, kept)
        missing += not any(p in listed and kept[p] for p in place)
    low, high = limits(missing, windows)
    assert low <= Sampling(HALF).exclusion_factor(1, positions) <= high
