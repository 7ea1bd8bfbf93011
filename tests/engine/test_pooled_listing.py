"""Pooled listing: the engine against exact integers, the enumeration's rules, and the order of requests."""

from __future__ import annotations

import itertools
from fractions import Fraction
from random import Random

import numpy as np
import pytest

from rag_audit.errors import EncodingError, PolicyError
from rag_audit.mechanisms.accounting.documents import pooled_factor
from rag_audit.relation.bernoulli import PROBABILITY_RANGE
from rag_audit.relation.scores import ScoreWindow
from rag_audit.retrieval.engine import draw_bernoulli_bits
from rag_audit.retrieval.serving.pooled_listing import (
    PooledAnswer,
    PooledRules,
    answer,
    answer_in_order,
    positions_in_rows,
    reference_answer,
)
from tests.accounting.enumeration import Flip, PooledListing, Window, as_planned
from tests.accounting.test_missing import limits

WINDOW = ScoreWindow(lo=0, hi=4, lattice=4)
RULES = PooledRules(threshold=2, longest=3, window=WINDOW)


def bits(*values: int) -> np.ndarray:
    return np.array(values, np.int8)


def of_engine(
    scores: list[int], rows: list[int], rules: PooledRules, columns: dict[str, list[int]]
) -> PooledAnswer:
    return answer(
        np.array(scores, np.int32),
        positions_in_rows(np.array(rows), len(columns["listed"])),
        rules,
        **{name: bits(*values) for name, values in columns.items()},
    )


def test_all_tables_of_two_rows_and_all_bits() -> None:
    """Three positions in any rows or none, scores below, at and above the threshold, and all bits of two rows."""
    two = list(itertools.product((0, 1), repeat=2))
    rules = PooledRules(threshold=2, longest=2, window=WINDOW)
    cases = 0
    for rows in itertools.product(range(3), repeat=3):
        for scores in itertools.product((-1, 1, 2, 3), repeat=3):
            for listed, kept, chance in itertools.product(two, repeat=3):
                columns = {"listed": list(listed), "kept": list(kept), "chance": list(chance)}
                found = of_engine(list(scores), list(rows), rules, columns)
                after, places = reference_answer(scores, rows, rules, **columns)
                assert found.listed.tolist() == after
                assert list(found.places) == places
                cases += 1
    assert cases == 27 * 64 * 64


def test_larger_tables_agree_with_exact_integers() -> None:
    rng = Random(5)
    for _ in range(60):
        capacity, rows = rng.randrange(8, 200), rng.randrange(1, 40)
        window = ScoreWindow(lo=rng.randrange(3), hi=rng.randrange(4, 40), lattice=1 << rng.randrange(8))
        rules = PooledRules(rng.randrange(1, 20), rng.randrange(1, 9), window)
        scores = [rng.randrange(-30, 50) for _ in range(capacity)]
        of = [rng.randrange(rows + 1) for _ in range(capacity)]
        columns = {name: [rng.randrange(2) for _ in range(rows)] for name in ("listed", "kept", "chance")}
        found = of_engine(scores, of, rules, columns)
        after, places = reference_answer(scores, of, rules, **columns)
        assert (found.listed.tolist(), list(found.places)) == (after, places)


def test_positions_of_score_0_are_empty() -> None:
    columns = {"listed": [1, 0], "kept": [1, 1], "chance": [0, 0]}
    # Row 1 is not listed, position 0 scores 0, and position 4 has no row.
    found = of_engine([0, 1, 1, -3, 4], [0, 0, 1, 0, 2], RULES, columns)
    assert found.places == (1, None, None)
    # A relevant position lists its row, and with it the row's other positions.
    found = of_engine([0, 1, 1, 2, 4], [0, 0, 1, 1, 2], RULES, columns)
    assert found.places == (3, 1, 2)
    assert found.listed.tolist() == [1, 1]


def test_a_request_uses_the_set_of_its_predecessor() -> None:
    rows, kept = np.array([0, 1, 2]), bits(1, 1, 1)
    # Each request asks for one row; the second and the third see what the first listed.
    asked = [np.array(s, np.int32) for s in ([4, 1, 0], [1, 4, 0], [1, 1, 1])]
    requests = [(scores, bits(0, 0, 0)) for scores in asked]
    found = list(answer_in_order(requests, rows, RULES, listed=bits(0, 0, 0), kept=kept))
    assert [a.places for a in found] == [(0, None, None), (1, 0, None), (0, 1, None)]
    assert [a.listed.tolist() for a in found] == [[1, 0, 0], [1, 1, 0], [1, 1, 0]]
    # The same requests on one set: the second answer lacks the first one's row.
    positions = positions_in_rows(rows, 3)
    apart = [answer(s, positions, RULES, listed=bits(0, 0, 0), kept=kept, chance=c) for s, c in requests]
    assert apart[1].places != found[1].places


class Drawn(Flip):
    """Random bits instead of all outcomes."""

    def __init__(self, rng: Random) -> None:
        super().__init__([])
        self.rng = rng

    def __call__(self, probability: Fraction) -> bool:
        return self.rng.random() < probability


@pytest.mark.parametrize("always", [False, True], ids=["by chance", "relevant rows only"])
def test_the_rules_are_those_of_the_enumeration(always: bool) -> None:
    """The engine gets the newly listed rows of `enumeration.PooledListing` as chance, or finds them by relevance."""
    rng = Random(11)
    mechanism = PooledListing(
        Fraction(1 if always else 0.5), Fraction(0 if always else 0.2), top_k=2, threshold=2
    )
    for _ in range(200):
        places = tuple((rng.randrange(3), f"{chr(65 + p)}") if rng.random() < 0.8 else None for p in range(4))
        questions = tuple(
            {chr(65 + p): rng.randrange(4) for p in range(4) if rng.random() < 0.7} for _ in range(3)
        )
        steps = mechanism.steps([Window(places, (0, 1, 2), questions)], Drawn(rng), as_planned)
        rules = PooledRules(threshold=2, longest=2, window=WINDOW)
        listed, kept = bits(0, 0, 0), bits(*[int(always)] * 3)
        of = positions_in_rows(np.array([3 if place is None else place[0] for place in places]), 3)
        for question, (new, shown) in zip(questions, steps, strict=True):
            scores = np.array([question.get(place[1], 0) if place else 0 for place in places], np.int32)
            chance = bits(*(r in new and not always for r in range(3)))
            found = answer(scores, of, rules, listed=listed, kept=kept, chance=chance)
            assert set(np.flatnonzero(found.listed > listed)) == new
            assert list(found.places) == [p if text is not None else None for p, text in shown]
            listed = found.listed


@pytest.mark.parametrize("queries", [1, 6])
def test_an_unlisted_document_has_the_printed_factor(queries: int) -> None:
    """A document of three positions that every question asks for is missing with probability (1 - pi)(1 - q)^m."""
    keep, q, chains, missing = PROBABILITY_RANGE // 2, PROBABILITY_RANGE // 16, 3000, 0
    rows = np.array([0, 0, 0, 1])
    scores = np.array([4, 3, 3, 1], np.int32)
    for number in range(chains):
        kept = draw_bernoulli_bits(2 * number, 2, keep)
        requests = [
            (scores, draw_bernoulli_bits(10**9 + 100 * number + query, 2, q)) for query in range(queries)
        ]
        found = answer_in_order(requests, rows, RULES, listed=bits(0, 0), kept=kept)
        missing += not any(0 in one.places for one in found)
    low, high = limits(missing, chains)
    assert low <= pooled_factor(keep, q, queries=queries) <= high
    assert high < 1.5 * low


def test_wrong_input_is_named() -> None:
    good = {"listed": [0, 0], "kept": [0, 0], "chance": [0, 0]}
    for name in ("kept", "chance"):
        for wrong in ([0], [0, 2], [0, 0, 0]):
            with pytest.raises(EncodingError, match=name):
                of_engine([1, 1, 1], [0, 1, 2], RULES, good | {name: wrong})
    for rows in ([0, 1, 3], [0, 1, -1]):
        with pytest.raises(EncodingError, match="row_of_position"):
            of_engine([1, 1, 1], rows, RULES, good)
    with pytest.raises(EncodingError, match="scores"):
        of_engine([1, 1, 1], [0, 1], RULES, good)
    with pytest.raises(EncodingError, match="scores"):
        columns = {name: bits(0, 0) for name in good}
        answer(np.zeros(3, np.int64), positions_in_rows(np.array([0, 1, 2]), 2), RULES, **columns)
    with pytest.raises(PolicyError, match="K"):
        of_engine([1, 1], [0, 1], RULES, good)
    for threshold, longest in ((0, 1), (1, 0)):
        with pytest.raises(PolicyError, match="at least 1"):
            PooledRules(threshold, longest, WINDOW)
