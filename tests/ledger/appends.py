"""Appends that a test brings about: several in one commit, and one that its entry's maker refuses."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager

from rag_audit.log.appending import AppendResult, Ledger


class Refused(Exception):
    pass


def refuse(index: int) -> bytes:
    raise Refused(index)


@contextmanager
def one_commit(store: Ledger) -> Iterator[list[Future[AppendResult]]]:
    """Hold the writer at a first entry `first` while the block appends, so that all of that is one commit.

    :returns: the futures, of which the first entry's is the first
    """
    gate = threading.Event()

    def wait(index: int) -> bytes:
        gate.wait(10)
        return b"first"

    futures = [store.append(wait)]
    try:
        yield futures
    finally:
        gate.set()
