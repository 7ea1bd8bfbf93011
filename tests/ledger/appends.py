"""Appends for tests: several in one commit, one that the function for its entry refuses, and appends of a process that
dies.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager

from rag_audit.log.appending import AppendResult, Ledger


class Refused(Exception):
    pass


def refuse(index: int) -> bytes:
    raise Refused(index)


@contextmanager
def one_commit(store: Ledger) -> Iterator[list[Future[AppendResult]]]:
    """Block the writer at the entry `first` while the block appends, so that all entries are in one commit.

    :returns: the futures, with the future of `first` at the beginning
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


ACCOUNTS = ("a", "b", "c")
ROUNDS = 3
KILLED = 41


def append_in_threads(
    opened: Callable[[], Ledger],
    pipe: int,
    die_at: int | None,
    rounds: int = ROUNDS,
    *,
    lost: type[Exception] | tuple[()] = (),
) -> None:
    """Append in a thread for each account, and report each acknowledgement through a pipe, which the kernel keeps.

    To be called in a forked process: it dies without cleaning up, with status `KILLED`, at the ledger's write boundary
    number `die_at`, counted from the ledger's opening.

    :param lost: an exception at which it dies too
    """
    passed = 0

    def boundary(ledger: Ledger, point: str) -> None:
        nonlocal passed
        if passed == die_at:
            os._exit(KILLED)
        passed += 1

    setattr(Ledger, "_boundary", boundary)  # noqa: B010  # of this process, which ends with the ledger
    store = opened()

    def run(account: str) -> None:
        try:
            for i in range(1, rounds + 1):
                if store.slot(account, i) is not None:
                    continue
                body = f"{account} {i}".encode()
                result = store.append(
                    lambda n, body=body: b"%d %s" % (n, body), slot=(account, i), private=body
                )
                os.write(pipe, json.dumps([result.result().index, account, i]).encode() + b"\n")
        except lost:
            os._exit(KILLED)

    threads = [threading.Thread(target=run, args=(account,)) for account in ACCOUNTS]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    store.close()
