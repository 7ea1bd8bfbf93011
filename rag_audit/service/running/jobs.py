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
        self._progress: dict[str, tuple[str, int, int]] = {}
        self._names: dict[int, str] = {}
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

    def progress(self) -> dict[str, tuple[str, int, int]]:
        """The progress of the running jobs by name: the step, and how much of how much is done."""
        with self._lock:
            return dict(self._progress)

    def check(self, *told: object) -> None:
        """A progress function, which notes a job's progress and tells the job to end.

        :param told: the name of the step, if the job has several, and how much of how much is done
        :raises Stopped: the job should end
        """
        with self._lock:
            if told and (name := self._names.get(threading.get_ident())) is not None:
                *steps, done, total = told
                if isinstance(done, int) and isinstance(total, int):
                    self._progress[name] = (str(steps[0]) if steps else "proofs", done, total)
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
        with self._lock:
            self._names[threading.get_ident()] = name
        try:
            work()
        except BaseException as exc:  # looked at where the job was started
            failure = exc
        with self._lock:
            self._running.pop(name, None)
            self._progress.pop(name, None)
            self._names.pop(threading.get_ident(), None)
            self._ended.append((name, failure))
