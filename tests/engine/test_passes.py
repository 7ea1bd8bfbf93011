"""Selections that share passes over an index: what they find, who works, and what an error does to the others."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from rag_audit.relation.scores import ScoreWindow
from rag_audit.retrieval.engine import MOST, SharedPasses, TenantIndex, no_noise, reference_select, select


class Held:
    """Work whose first pass lasts until it is let go."""

    def __init__(self, wrong: str = "") -> None:
        self.passes: list[list[str]] = []
        self.started, self.go = threading.Event(), threading.Event()
        self.wrong = wrong

    def __call__(self, items: Sequence[str]) -> list[str]:
        self.passes.append(list(items))
        self.started.set()
        assert self.go.wait(60)
        if self.wrong in items:
            raise ValueError(self.wrong)
        return [item.upper() for item in items]


def gathered(work: Held, items: Sequence[str]) -> tuple[str, list[str | BaseException]]:
    """The result of "first", during whose pass the items are asked for, and theirs."""
    shared = SharedPasses(work)
    with ThreadPoolExecutor(1 + len(items)) as pool:
        first = pool.submit(shared.do, "first")
        assert work.started.wait(60)
        others = []
        for number, item in enumerate(items, 1):
            others.append(pool.submit(shared.do, item))
            while len(shared._queue) < number:
                threading.Event().wait(0.001)
        work.go.set()
        result = [other.exception() or other.result() for other in others]
        return first.result(), result


def test_what_is_asked_for_during_a_pass_shares_the_next() -> None:
    work = Held()
    assert gathered(work, "abc") == ("FIRST", ["A", "B", "C"])
    assert work.passes == [["first"], ["a", "b", "c"]]


def test_a_pass_has_a_bounded_number_of_items() -> None:
    work, items = Held(), [f"item {i}" for i in range(MOST + 2)]
    _, result = gathered(work, items)
    assert result == [item.upper() for item in items]
    assert [len(each) for each in work.passes] == [1, MOST, 2]


@pytest.mark.parametrize("wrong", ["a", "b", "c"])
def test_an_error_is_raised_where_it_belongs(wrong: str) -> None:
    work = Held(wrong)
    first, result = gathered(work, "abc")
    assert first == "FIRST"
    assert [str(each) for each in result] == [each if each == wrong else each.upper() for each in "abc"]
    assert [each for each in result if isinstance(each, ValueError)] == [result["abc".index(wrong)]]


def test_an_error_of_one_alone_leaves_the_next_free() -> None:
    work = Held("a")
    work.go.set()
    shared = SharedPasses(work)
    with pytest.raises(ValueError, match="a"):
        shared.do("a")
    assert shared.do("b") == "B"


def test_nobody_waits_where_no_pass_is_under_way() -> None:
    work = Held()
    work.go.set()
    shared = SharedPasses(work)
    assert [shared.do("a"), shared.do("b")] == ["A", "B"]
    assert work.passes == [["a"], ["b"]]


@pytest.mark.parametrize("sampled", [False, True])
def test_selections_by_many_threads_are_those_of_the_reference(sampled: bool) -> None:
    rng = np.random.default_rng(5)
    index = TenantIndex(rng.integers(-7, 8, (90, 12)).astype(np.int8), tuple(range(90)))
    kept = rng.integers(0, 2, 90).astype(np.int8) if sampled else None
    window = ScoreWindow(0, 300, 64)
    queries = [rng.integers(-7, 8, 12).astype(np.int8) for _ in range(60)]
    noises = [no_noise(90) if i % 3 else rng.integers(-9, 9, 90).astype(np.int32) for i in range(60)]

    def actual(number: int) -> list[int]:
        return select(index, queries[number], noises[number], window, 4, kept)

    with ThreadPoolExecutor(8) as pool:
        batch = list(pool.map(actual, range(60)))
    assert batch == [
        reference_select(index, query, noise, window, 4, kept)
        for query, noise in zip(queries, noises, strict=True)
    ]


def test_kept_positions_that_were_changed_in_place_count_as_they_are() -> None:
    index = TenantIndex(np.ones((4, 2), np.int8), (0, 1, 2, 3))
    query, window, kept = np.ones(2, np.int8), ScoreWindow(0, 2, 2), np.ones(4, np.int8)
    assert select(index, query, no_noise(4), window, 2, kept) == [0, 1]
    kept[:] = (0, 0, 1, 1)
    assert select(index, query, no_noise(4), window, 2, kept) == [2, 3]
