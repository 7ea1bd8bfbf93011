"""Work off the event loop: a bounded number of jobs in a few threads, and the windows that they use."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import ParamSpec, TypeVar

from rag_audit.attest.window import Window

P = ParamSpec("P")
T = TypeVar("T")


class Desk:
    """Threads that work for one event loop. Places are taken and given back in the loop's thread only.

    :param threads: the number of threads
    :param places: the most places that are taken at a time, by jobs that wait or run
    """

    def __init__(self, name: str, *, threads: int, places: int) -> None:
        self.places = places
        self.taken = 0
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix=f"rag-audit-{name}")

    def free(self, count: int = 1) -> bool:
        """Whether so many places are free."""
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


class Use:
    """A window that is in use, until `end` is called for the first time."""

    def __init__(self, window: Window, end: Callable[[Window], None]) -> None:
        self.window = window
        self._end: Callable[[Window], None] | None = end

    def end(self) -> None:
        """The window is not used any more."""
        end, self._end = self._end, None
        if end is not None:
            end(self.window)


class Windows:
    """The windows of a service: the one that is served, which may be exchanged, and others that still repeat answers.

    :param current: gives the window that is served, or None while there is none
    :param named: gives another open window by its opening's digest, or None: there an account repeats the request whose
        answer got lost before the exchange
    """

    def __init__(
        self, current: Callable[[], Window | None], named: Callable[[str], Window | None] = lambda _: None
    ) -> None:
        self._current = current
        self._named = named
        self._uses: Counter[int] = Counter()
        self._changed = threading.Condition()

    def current(self) -> Window | None:
        """The window that is served now."""
        return self._current()

    def use(self, opening: str | None = None) -> Use | None:
        """The window for a request, which is in use until its use is ended; None without a window.

        :param opening: the digest of the opening that the request names
        """
        with self._changed:  # `unused` must see whoever has got a window
            window = self._current()
            if opening is not None and (window is None or window.opening_digest != opening):
                window = self._named(opening) or window
            if window is None:
                return None
            self._uses[id(window)] += 1
        return Use(window, self._end)

    @contextmanager
    def using(self, opening: str | None = None) -> Iterator[Window | None]:
        """`use` for the duration of a block."""
        use = self.use(opening)
        try:
            yield None if use is None else use.window
        finally:
            if use is not None:
                use.end()

    def _end(self, window: Window) -> None:
        with self._changed:
            self._uses[id(window)] -= 1
            if not self._uses[id(window)]:
                del self._uses[id(window)]
            self._changed.notify_all()

    def unused(self, window: Window, seconds: float) -> bool:
        """Wait until no request uses a window that was exchanged for another; False if one still does after so long."""
        with self._changed:
            return self._changed.wait_for(lambda: id(window) not in self._uses, seconds)
