"""Tasks that take minutes, in threads, so that the loop can continue with other work."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable


class Stopped(Exception):
    """The run ends. A restart continues the interrupted work."""


class Jobs:
    """Named jobs. Each runs at most once at a time.

    :param inline: run each job at once in the calling thread, for tests
    """

    def __init__(self, *, inline: bool = False) -> None:
        self._inline = inline
        self._lock = threading.Lock()
        self._running: dict[str, threading.Thread] = {}
        self._ended: list[tuple[str, BaseException | None]] = []
        self.stopping = threading.Event()

    def start(self, name: str, work: Callable[[], None]) -> None:
        """Run a job, which is known by its name until `ended` gives it out."""
        if self._inline:
            self._run(name, work)
            return
        thread = threading.Thread(target=self._run, args=(name, work), name=f"rag-audit {name}", daemon=True)
        with self._lock:
            self._running[name] = thread
        thread.start()

    def busy(self, name: str) -> bool:
        """Whether a job of that name runs, or its end is not looked at yet."""
        with self._lock:
            return name in self._running or any(name == n for n, _ in self._ended)

    def count(self, prefix: str) -> int:
        """The number of running jobs whose names begin with a prefix."""
        with self._lock:
            return sum(name.startswith(prefix) for name in self._running)

    def ended(self) -> list[tuple[str, BaseException | None]]:
        """The jobs that ended since the last call, and how."""
        with self._lock:
            result, self._ended = self._ended, []
        return result

    def check(self, *_: object) -> None:
        """A progress function that tells a job to end.

        :raises Stopped: the job should end
        """
        if self.stopping.is_set():
            raise Stopped

    def stop(self, seconds: float) -> bool:
        """Tell all jobs to end; False if one still runs at the end of the time."""
        self.stopping.set()
        until = time.monotonic() + seconds
        while True:
            with self._lock:
                running = list(self._running.values())
            if not running:
                return True
            if time.monotonic() >= until:
                return False
            running[0].join(max(0.0, min(0.1, until - time.monotonic())))

    def _run(self, name: str, work: Callable[[], None]) -> None:
        failure: BaseException | None = None
        try:
            work()
        except BaseException as exc:  # looked at where the job was started
            failure = exc
        with self._lock:
            self._running.pop(name, None)
            self._ended.append((name, failure))
