"""Locks between processes: a file that one process locks at a time (by `flock`, so on POSIX only)."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rag_audit._internal.durable import PRIVATE_MODE
from rag_audit._internal.errors import StoreError

TRIES, PAUSE_S = 20, 0.025
"""How often a lock is tried that is not waited for, and the seconds between two tries."""


def lock_file(path: Path, *, wait: bool) -> int | None:
    """Take an exclusive lock on the file `path`, which is created if it is missing. Closing the returned handle, or the
    end of the process, releases it.

    :param wait: whether to wait for another holder to finish. If not, the result is None if another process still has
        the lock after some tries: a process that only inspects a lock (`is_locked`) has it for a moment
    :raises StoreError: the lock file cannot be opened
    """
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT, PRIVATE_MODE)
    except OSError as exc:
        raise StoreError("cannot be locked", field=str(path), actual=exc.strerror or str(exc)) from exc
    try:
        for _ in range(TRIES):
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
                return handle
            except BlockingIOError:
                time.sleep(PAUSE_S)
    except BaseException:
        os.close(handle)
        raise
    os.close(handle)
    return None


def is_locked(path: Path) -> bool:
    """Whether a process holds the lock on the file `path`. The function creates no file; a missing file means False.

    :raises StoreError: the lock file cannot be opened
    """
    try:
        handle = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return False
    except OSError as exc:
        raise StoreError("cannot be read", field=str(path), actual=exc.strerror or str(exc)) from exc
    try:
        fcntl.flock(
            handle, fcntl.LOCK_SH | fcntl.LOCK_NB
        )  # shared, so that two who look do not see each other
    except BlockingIOError:
        return True
    finally:
        os.close(handle)
    return False


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock on `path` for the duration of the block, after waiting for another holder to finish.

    :raises StoreError: the lock file cannot be opened
    """
    handle = lock_file(path, wait=True)
    assert handle is not None
    try:
        yield
    finally:
        os.close(handle)
