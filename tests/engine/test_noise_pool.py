"""The pool hands out exactly each slot's noise, ahead of time where it can, and says where it cannot."""

from __future__ import annotations

import logging
import threading

import numpy as np
import pytest

from rag_audit.errors import WindowStateError
from rag_audit.models.records import SlotKey
from rag_audit.retrieval.engine import Int32Array
from rag_audit.retrieval.noise_pool import NoisePool

WAIT = 20.0


class Sampler:
    """A recording `draw` that can be held at a gate; a slot's noise spells the slot."""

    def __init__(self) -> None:
        self.gate = threading.Event()
        self.gate.set()
        self.drawn: list[tuple[SlotKey, str]] = []
        self.changed = threading.Condition()

    def __call__(self, slot: SlotKey) -> Int32Array:
        inside = threading.current_thread().name == "rag-audit-noise"
        if inside:
            assert self.gate.wait(WAIT)
        with self.changed:
            self.drawn.append((slot, "ahead" if inside else "inline"))
            self.changed.notify_all()
        return spelled(slot)

    def wait_for(self, *slots: SlotKey) -> None:
        with self.changed:
            done = self.changed.wait_for(lambda: {s for s, _ in self.drawn} >= set(slots), WAIT)
        assert done, f"{slots} were not drawn"


def spelled(slot: SlotKey) -> Int32Array:
    return np.array([len(slot.tenant), len(slot.account), slot.i], np.int32)


def slot(i: int, account: str = "a") -> SlotKey:
    return SlotKey("t", account, i)


def test_following_slots_are_drawn_ahead() -> None:
    sampler = Sampler()
    with NoisePool(sampler, depth=2, limit=10) as pool:
        assert pool.get(slot(1)).tolist() == spelled(slot(1)).tolist()
        sampler.wait_for(slot(2), slot(3))
        assert pool.get(slot(2)).tolist() == spelled(slot(2)).tolist()
        sampler.wait_for(slot(4))
    assert (slot(1), "inline") in sampler.drawn
    assert {(slot(i), "ahead") for i in (2, 3, 4)} <= set(sampler.drawn)
    assert len(sampler.drawn) == 4
    assert pool.counts.cold == 1
    assert pool.counts.ready + pool.counts.behind == 1


def test_prepared_first_slot_is_not_cold() -> None:
    sampler = Sampler()
    with NoisePool(sampler, depth=1, limit=10) as pool:
        pool.prepare(slot(1))
        sampler.wait_for(slot(1))
        pool.get(slot(1))
        assert pool.counts.cold == 0


def test_no_slot_beyond_the_limit_is_drawn() -> None:
    sampler = Sampler()
    with NoisePool(sampler, depth=5, limit=3) as pool:
        pool.get(slot(1))
        sampler.wait_for(slot(2), slot(3))
        pool.get(slot(2))
        pool.get(slot(3))
    assert max(s.i for s, _ in sampler.drawn) == 3


def test_falling_behind_is_counted_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    sampler = Sampler()
    with (
        caplog.at_level(logging.WARNING, "rag_audit.retrieval.noise_pool"),
        NoisePool(sampler, depth=4, limit=10) as pool,
    ):
        sampler.gate.clear()
        pool.prepare(slot(9, "other"))  # the thread takes this one and waits at the gate
        pool.get(slot(1))
        noise = pool.get(slot(2))
        assert noise.tolist() == spelled(slot(2)).tolist()
        assert pool.counts.behind == 1
        sampler.gate.set()
    assert (slot(2), "inline") in sampler.drawn
    assert "falls behind" in caplog.text


def test_slot_in_progress_is_awaited_and_not_drawn_twice() -> None:
    sampler = Sampler()
    with NoisePool(sampler, depth=1, limit=1) as pool:
        sampler.gate.clear()
        pool.prepare(slot(1))
        threading.Timer(0.05, sampler.gate.set).start()
        assert pool.get(slot(1)).tolist() == spelled(slot(1)).tolist()
    assert [s for s, _ in sampler.drawn].count(slot(1)) == 1


def test_memory_is_bounded_and_evicted_slots_are_drawn_again() -> None:
    sampler = Sampler()
    with NoisePool(sampler, depth=1, limit=10, max_ready=3) as pool:
        accounts = [f"{n:03}" for n in range(12)]
        for account in accounts:
            pool.prepare(slot(1, account))
            sampler.wait_for(slot(1, account))
        assert len(pool._ready) <= 3
        for account in accounts:
            assert pool.get(slot(1, account)).tolist() == spelled(slot(1, account)).tolist()
        assert pool.counts.cold >= 8


def test_memory_is_bounded_in_bytes_however_large_a_slot_is() -> None:
    sampler = Sampler()
    each = spelled(slot(1)).nbytes
    with NoisePool(sampler, depth=1, limit=10, max_bytes=4 * each) as pool:
        accounts = [f"{n:03}" for n in range(12)]
        for account in accounts:
            pool.prepare(slot(1, account))
            sampler.wait_for(slot(1, account))
        pool.prepare(slot(1, "last"))
        sampler.wait_for(slot(1, "last"))  # what was drawn before it is held, or was dropped for it
        assert 0 < pool.stored_bytes <= 4 * each
        pool.max_bytes = each - 1
        assert pool.stored_bytes in (0, each)
        for account in accounts:
            assert pool.get(slot(1, account), follow=False).tolist() == spelled(slot(1, account)).tolist()
        assert pool.counts.cold >= 8


def test_no_more_slots_are_planned_than_can_be_held() -> None:
    sampler = Sampler()
    each = spelled(slot(1)).nbytes
    with NoisePool(sampler, depth=1, limit=10, max_bytes=2 * each) as pool:
        pool.prepare(slot(1))
        sampler.wait_for(slot(1))
        sampler.gate.clear()
        for account in [f"{n:03}" for n in range(12)]:
            pool.prepare(slot(1, account))
        assert len(pool._planned) <= 2
        sampler.gate.set()


def test_error_while_drawing_ahead_reaches_the_caller_of_get(caplog: pytest.LogCaptureFixture) -> None:
    attempts = []

    def broken(key: SlotKey) -> Int32Array:
        attempts.append(key)
        raise RuntimeError("no entropy")

    with NoisePool(broken, depth=1, limit=5) as pool:
        with pytest.raises(RuntimeError, match="no entropy"):
            pool.get(slot(1))
        with pytest.raises(RuntimeError, match="no entropy"):
            pool.get(slot(2))
    assert attempts.count(slot(1)) == 1
    assert slot(2) in attempts


def test_closed_pool_holds_nothing_and_gives_nothing() -> None:
    sampler = Sampler()
    pool = NoisePool(sampler, depth=2, limit=10)
    pool.get(slot(1))
    sampler.wait_for(slot(2), slot(3))
    pool.close()
    assert not pool._ready
    assert not pool._thread.is_alive()
    with pytest.raises(WindowStateError, match="closed"):
        pool.get(slot(2))


def test_many_threads_get_each_slots_own_noise() -> None:
    sampler = Sampler()
    wrong: list[SlotKey] = []

    def serve(account: str) -> None:
        for i in range(1, 41):
            if pool.get(slot(i, account)).tolist() != spelled(slot(i, account)).tolist():
                wrong.append(slot(i, account))

    with NoisePool(sampler, depth=3, limit=40, max_ready=8) as pool:
        threads = [threading.Thread(target=serve, args=("x" * n,)) for n in range(1, 9)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not wrong
    assert pool.counts.ready + pool.counts.behind + pool.counts.cold == 320


@pytest.mark.parametrize(("depth", "max_ready"), [(0, 4), (5, 4)])
def test_useless_sizes_are_refused(depth: int, max_ready: int) -> None:
    with pytest.raises(ValueError, match="depth"):
        NoisePool(Sampler(), depth=depth, limit=5, max_ready=max_ready)


def test_slots_that_follow_wait_until_the_caller_asks() -> None:
    sampler = Sampler()
    with NoisePool(sampler, depth=2, limit=10) as pool:
        pool.get(slot(1), follow=False)
        pool.prepare(slot(1, "b"))
        sampler.wait_for(slot(1, "b"), slot(2, "b"))
        assert not {slot(2), slot(3)} & {drawn for drawn, _ in sampler.drawn}
        pool.follow(slot(1))
        sampler.wait_for(slot(2), slot(3))
