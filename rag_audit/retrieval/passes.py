"""Work that waits for the same thing and is done together, by the first of those that wait."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

A = TypeVar("A")
R = TypeVar("R")

MOST = 32
"""The most items of one pass, so that nobody waits long for others."""


@dataclass(eq=False)
class _Waiting(Generic[A, R]):
    item: A
    woken: threading.Event = field(default_factory=threading.Event)
    leads: bool = False
    results: list[R] = field(default_factory=list)
    """its result, once there is one"""


class SharedPasses(Generic[A, R]):
    """Passes over something large, one at a time. What is asked for during a pass shares the next one.

    Nobody waits for company: who finds no pass under way starts one at once.

    :param work: one pass: a result for each item, in their order
    """

    def __init__(self, work: Callable[[Sequence[A]], Sequence[R]]) -> None:
        self._work = work
        self._lock = threading.Lock()
        self._queue: list[_Waiting[A, R]] = []
        self._busy = False

    def do(self, item: A) -> R:
        """The result of an item, which may be computed in another caller's thread, or what `work` raises for it."""
        (found,) = self.do_all([item])
        if isinstance(found, Exception):
            raise found
        return found

    def do_all(self, items: Sequence[A]) -> list[R | Exception]:
        """The results of several items (`do`), each a result or what `work` raises for it."""
        mine: list[_Waiting[A, R]] = [_Waiting(item) for item in items]
        with self._lock:
            self._queue += mine
            if mine and not self._busy:
                self._busy = mine[0].leads = True
        return [self._done(waiting) for waiting in mine]

    def _done(self, mine: _Waiting[A, R]) -> R | Exception:
        if not mine.leads:
            mine.woken.wait()
        if mine.leads and not mine.results:
            try:
                self._lead()
            except Exception as exc:
                return exc
        return mine.results[0]

    def _lead(self) -> None:
        """Do a pass for those that wait, of whom the caller is the first, and let the next lead."""
        with self._lock:
            batch, self._queue = self._queue[:MOST], self._queue[MOST:]
        done: Sequence[R] = ()
        try:
            done = self._pass([waiting.item for waiting in batch])
        finally:
            others = batch[1:]
            with self._lock:
                for waiting, result in zip(batch, done, strict=False):
                    waiting.results.append(result)
                self._queue = [waiting for waiting in others if not waiting.results] + self._queue
                self._busy = bool(self._queue)
                following = self._queue[:1]
                for waiting in following:
                    waiting.leads = True
            for waiting in (*following, *(waiting for waiting in others if waiting.results)):
                waiting.woken.set()

    def _pass(self, items: Sequence[A]) -> Sequence[R]:
        """The results of the first items: of all of them, or of one where they fail together."""
        try:
            return self._work(items)
        except Exception:
            if len(items) == 1:
                raise
            return self._work(items[:1])
