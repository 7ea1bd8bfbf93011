"""The exclusion factor of noise, against the exact law of a list of one position in a small index."""

from __future__ import annotations

import math
from itertools import combinations, product

import numpy as np
import pytest

from rag_audit.errors import PolicyError
from rag_audit.mechanisms.accounting.absence import log_noise_exclusion_factor
from rag_audit.mechanisms.accounting.bounds import eps_at
from rag_audit.mechanisms.accounting.pmf import Mechanism

LATTICE = 16
MECHANISM = Mechanism((1,), LATTICE)
WITHOUT_SIGNAL = Mechanism((1,), 1)
CAPACITY = 4
NOISE = MECHANISM.pmf


def noise_exclusion_factor(
    mechanism: Mechanism, *, listed: int, queries: int, capacity: int = CAPACITY, positions: int = 1
) -> float:
    return math.exp(
        log_noise_exclusion_factor(
            mechanism, listed=listed, capacity=capacity, queries=queries, positions=positions
        )
    )


def missing(scores: tuple[int, ...], document: tuple[int, ...]) -> float:
    """The probability that the first position in the order of noised scores is none of the document's; of equal
    positions the lower one is first."""
    reach = len(NOISE) // 2
    below = np.concatenate([[0.0], np.cumsum(NOISE)])

    def at_most(value: int) -> float:
        return float(below[min(max(value + reach + 1, 0), len(NOISE))])

    result = 0.0
    for place, own in enumerate(scores):
        if place in document:
            continue
        for index, p in enumerate(NOISE):
            y = own + index - reach
            result += float(p) * math.prod(
                at_most(y - u - (other < place)) for other, u in enumerate(scores) if other != place
            )
    return result


@pytest.mark.parametrize("positions", [1, 2])
@pytest.mark.parametrize("queries", [1, 2, 5])
def test_the_factor_bounds_every_score_of_the_document_and_of_others(positions: int, queries: int) -> None:
    printed = noise_exclusion_factor(
        MECHANISM, listed=1, capacity=CAPACITY, queries=queries, positions=positions
    )
    places, largest = list(combinations(range(CAPACITY), positions)), 0.0
    for score, other in product((0, 5, LATTICE), (0, 3, LATTICE)):
        never = [
            missing(tuple(score if i in own else other for i in range(CAPACITY)), own) ** queries
            for own in places
        ]
        largest = max(largest, len(places) / sum(never))
    assert largest <= printed


def test_epsilon_alone_is_no_bound() -> None:
    """Noise lists the document's positions without relevance too: the factor needs the probability of that."""
    queries = 40  # each list has each position with probability about 1/4
    places = [(place,) for place in range(CAPACITY)]
    never = [missing((0,) * CAPACITY, own) ** queries for own in places]
    factor = len(places) / sum(never)
    wrong = min(math.exp(eps_at(WITHOUT_SIGNAL, queries, d)) / (1 - d) for d in (0.5, 0.1, 0.01, 1e-4))
    assert (
        wrong < factor <= noise_exclusion_factor(WITHOUT_SIGNAL, listed=1, capacity=CAPACITY, queries=queries)
    )


def test_numbers_out_of_range_are_named_and_certain_lists_have_no_factor() -> None:
    with pytest.raises(PolicyError):
        noise_exclusion_factor(MECHANISM, listed=1, queries=0)
    with pytest.raises(PolicyError):
        noise_exclusion_factor(MECHANISM, listed=1, queries=1, positions=0)
    assert noise_exclusion_factor(MECHANISM, listed=4, queries=1) == math.inf


def test_a_factor_above_every_float_has_a_logarithm() -> None:
    """And below a delta of 10^-100 the accountant has no bound."""
    weak = log_noise_exclusion_factor(Mechanism((1, 8), 128), listed=5, capacity=4096, queries=2000)
    assert 709 < weak < math.inf
    assert log_noise_exclusion_factor(MECHANISM, listed=1, capacity=CAPACITY, queries=750) > 230
    assert log_noise_exclusion_factor(MECHANISM, listed=1, capacity=CAPACITY, queries=1000) == math.inf


def test_every_position_of_the_document_has_a_loss_at_every_query() -> None:
    """In a large index lists of unrelated positions hardly count, and four losses give one factor."""
    capacity = 1 << 17
    one, two = (
        noise_exclusion_factor(MECHANISM, listed=1, capacity=capacity, queries=4 // s, positions=s)
        for s in (1, 2)
    )
    assert two == pytest.approx(one, rel=1e-3)
    assert one > 2 * noise_exclusion_factor(MECHANISM, listed=1, capacity=capacity, queries=2)
