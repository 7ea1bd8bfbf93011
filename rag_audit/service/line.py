"""The places where requests wait, and the threads that take those that wait together, in turn of their accounts."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

T = TypeVar("T")
R = TypeVar("R")


class Places:
    """The places of a service, taken and given back in its event loop's thread only. No account has more than a share
    of them, so that none keeps the others out.

    :param most: of all accounts together
    :param share: of one account
    """

    def __init__(self, most: int, share: int) -> None:
        self.most = most
        self.share = share
        self.taken = 0
        self._by_account: Counter[str] = Counter()

    def free(self, wanted: Mapping[str, int]) -> bool:
        """Whether these accounts may take so many places each."""
        if self.taken + sum(wanted.values()) > self.most:
            return False
        return all(self._by_account[name] + count <= self.share for name, count in wanted.items())

    def take(self, account: str) -> None:
        """Take a place, which has to be `free`."""
        self.taken += 1
        self._by_account[account] += 1

    def give_back(self, account: str) -> None:
        """Give a place back."""
        self.taken -= 1
        self._by_account[account] -= 1
        if not self._by_account[account]:
            del self._by_account[account]


@dataclass(eq=False)
class _Waiting(Generic[T, R]):
    item: T
    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[R]
    ended: Callable[[], None] = field(repr=False)


class Line(Generic[T, R]):
    """What waits to be done by a few threads, each of which takes what waits, up to a limit, and does it together. It
    is taken in turn of those who wait: one's second only after everybody's first.

    :param work: does several items: a result or an exception for each
    :param together: the most that one thread takes at a time
    """

    def __init__(
        self,
        work: Callable[[Sequence[T]], Sequence[R | Exception]],
        *,
        name: str,
        threads: int,
        together: int,
    ) -> None:
        self._work = work
        self._together = together
        self._changed = threading.Condition()
        self._waiting: dict[str, deque[_Waiting[T, R]]] = {}
        """of each who waits; the order of the keys is whose turn it is"""
        self._closed = False
        for number in range(threads):
            threading.Thread(target=self._run, name=f"rag-audit-{name}-{number}", daemon=True).start()

    async def wait(self, who: str, item: T, ended: Callable[[], None]) -> R:
        """The result of an item, or what is raised for it.

        :param ended: called in the loop's thread once the item was done or dropped, also if its caller left
        """
        loop = asyncio.get_running_loop()
        waiting: _Waiting[T, R] = _Waiting(item, loop, loop.create_future(), ended)
        with self._changed:
            if self._closed:
                ended()
                raise ConnectionAbortedError
            self._waiting.setdefault(who, deque()).append(waiting)
            self._changed.notify()
        return await waiting.future

    def close(self) -> None:
        """End the threads once what they do is done; what waits is dropped."""
        with self._changed:
            self._closed = True
            dropped = [waiting for queue in self._waiting.values() for waiting in queue]
            self._waiting.clear()
            self._changed.notify_all()
        _deliver(dropped, [ConnectionAbortedError() for _ in dropped])

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._closed)
                if self._closed:
                    return
                taken = self._next()
            try:
                results = self._work([waiting.item for waiting in taken])
            except Exception as exc:
                results = [exc for _ in taken]
            _deliver(taken, results)

    def _next(self) -> list[_Waiting[T, R]]:
        """The first of everyone who waits, as many as are taken at a time; with their next they stand at the end."""
        taken: list[_Waiting[T, R]] = []
        for who in list(self._waiting)[: self._together]:
            queue = self._waiting.pop(who)
            taken.append(queue.popleft())
            if queue:
                self._waiting[who] = queue
        if self._waiting:
            self._changed.notify()
        return taken


def _deliver(done: Sequence[_Waiting[T, R]], results: Sequence[R | Exception]) -> None:
    """Hand results over in the loops of those who wait, each of which is woken once."""
    by_loop: dict[asyncio.AbstractEventLoop, list[tuple[_Waiting[T, R], R | Exception]]] = {}
    for pair in zip(done, results, strict=True):
        by_loop.setdefault(pair[0].loop, []).append(pair)
    for loop, pairs in by_loop.items():
        if not loop.is_closed():
            loop.call_soon_threadsafe(_settle, pairs)


def _settle(pairs: Sequence[tuple[_Waiting[T, R], R | Exception]]) -> None:
    for waiting, result in pairs:
        waiting.ended()
        if waiting.future.done():  # its caller left
            continue
        if isinstance(result, Exception):
            waiting.future.set_exception(result)
        else:
            waiting.future.set_result(result)
