"""Queues of requests for threads: one request at a time (`WorkQueue`), or in batches that take turns among accounts
(`FairQueue`)."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter, deque
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Generic, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class Places:
    """The places of a service. Only its event loop's thread takes them and returns them. Each account can take at most
    a share of them, so that it cannot exclude other accounts.

    :param maximum: maximum for all accounts
    :param share: maximum for one account
    """

    def __init__(self, maximum: int, share: int) -> None:
        self.maximum = maximum
        self.share = share
        self.taken = 0
        self._by_account: Counter[str] = Counter()

    def free(self, wanted: Mapping[str, int]) -> bool:
        """Whether these accounts may take these numbers of places."""
        if self.taken + sum(wanted.values()) > self.maximum:
            return False
        return all(self._by_account[name] + count <= self.share for name, count in wanted.items())

    def take(self, account: str) -> None:
        """Take a place, which must be `free`."""
        self.taken += 1
        self._by_account[account] += 1

    def give_back(self, account: str) -> None:
        """Give a place back."""
        self.taken -= 1
        self._by_account[account] -= 1
        if not self._by_account[account]:
            del self._by_account[account]


class FairQueue(Generic[T]):
    """A queue of items for threads that take several items at a time. Accounts take turns: the second item of an
    account comes after the first items of all others.

    :param batch: the maximum number of items in one batch
    """

    def __init__(self, batch: int) -> None:
        self._together = batch
        self._changed = threading.Condition()
        self._waiting: dict[str, deque[T]] = {}
        """the items of each waiting account; the order of the keys is the order of turns"""
        self._closed = False

    def put(self, who: str, item: T) -> None:
        """Let an item wait.

        :raises ConnectionAbortedError: the queue is closed
        """
        with self._changed:
            if self._closed:
                raise ConnectionAbortedError
            self._waiting.setdefault(who, deque()).append(item)
            self._changed.notify()

    def take(self) -> list[T]:
        """Wait for items, and take the first item of each waiting account, up to the limit. Accounts with more items
        move to the end of the queue. The list is empty once the queue is closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._closed)
            taken: list[T] = []
            for who in list(self._waiting)[: self._together]:
                items = self._waiting.pop(who)
                taken.append(items.popleft())
                if items:
                    self._waiting[who] = items
            if self._waiting:
                self._changed.notify()
            return taken

    def close(self) -> list[T]:
        """Close the queue. It accepts no further items.

        :returns: the items that waited
        """
        with self._changed:
            self._closed = True
            dropped = [item for items in self._waiting.values() for item in items]
            self._waiting.clear()
            self._changed.notify_all()
            return dropped


class WorkQueue:
    """Threads that work for one event loop. Places are taken and given back in the loop's thread only.

    :param threads: the number of threads
    :param places: maximum places in use at a time, by jobs that wait or run
    """

    def __init__(self, name: str, *, threads: int, places: int) -> None:
        self.places = places
        self.taken = 0
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix=f"rag-audit-{name}")

    def free(self, count: int = 1) -> bool:
        """Whether this number of places is free."""
        return self.taken + count <= self.places

    async def do(self, count: int, job: Callable[P, T], *args: P.args, **options: P.kwargs) -> T:
        """Take places, do a job in a thread, and give the places back once it has ended, also if its caller left."""
        loop = asyncio.get_running_loop()
        self.taken += count

        def give_back() -> None:
            self.taken -= count

        future = self._pool.submit(job, *args, **options)
        future.add_done_callback(lambda _: _soon(loop, give_back))
        return await asyncio.wrap_future(future)

    def close(self) -> None:
        """End the threads once their jobs have ended; jobs that wait are dropped."""
        self._pool.shutdown(wait=False, cancel_futures=True)


def _soon(loop: asyncio.AbstractEventLoop, call: Callable[[], None]) -> None:
    if not loop.is_closed():
        loop.call_soon_threadsafe(call)
