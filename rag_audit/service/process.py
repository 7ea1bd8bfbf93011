"""Parts of a service's process that do not depend on its kind of address: termination by a signal, and background
work."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from rag_audit._internal.errors import RagAuditError
from rag_audit.attest.window import Window

DRAIN_S = 5.0
"""Seconds that a stopped service waits for answers in progress. An account repeats a request that is cut off later."""
IDLE_S = 1.0
"""Seconds between two searches for missing noise proofs, after a search without a result."""

Say = Callable[[str], None]
"""A function that shows a person a line of progress."""


@contextmanager
def stopped_by_signal() -> Iterator[None]:
    """Let SIGTERM end the block as Ctrl-C does. This also works for the first process of a container, which ignores
    SIGTERM by default. A second signal ends the process at once. Python allows signal handlers only in a process's main
    thread.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def precomputing(
    window: Window, precompute: int, say: Say, until: Callable[[], bool] = lambda: False
) -> Iterator[None]:
    """Run a thread during the block that precomputes noise proofs for the next slots.

    :param precompute: the number of next slots of each account; 0 precomputes none
    :param until: whether the thread has to end before the block does
    """
    stop = threading.Event()

    def ending() -> bool:
        return stop.is_set() or until()

    def work() -> None:
        while not ending():
            try:
                result = window.status == "active" and window.precompute_noise_proofs(
                    precompute, until=ending
                )
            except RagAuditError as exc:
                say(f"the process precomputes no further noise proofs: {exc}")
                return
            if not result:
                stop.wait(IDLE_S)

    thread = threading.Thread(target=work, name="rag-audit-certificates", daemon=True)
    if precompute:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        if precompute:
            thread.join()
