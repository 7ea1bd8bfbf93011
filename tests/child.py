"""Work in a forked process that may die in the middle of it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import Any, TextIO


def in_child(work: Callable[[int], None]) -> tuple[int, list[Any]]:
    """Run in a forked process.

    :param work: gets the pipe to which it may write lines of JSON
    :returns: the exit status, and what was written before the process ended
    """
    return ended(*started(work))


def started(work: Callable[[int], None]) -> tuple[int, TextIO]:
    """Begin `in_child`: the process, and the lines that it writes."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            os.close(reader)
            work(writer)
            status = 0
        finally:
            os._exit(status)
    os.close(writer)
    return pid, os.fdopen(reader)


def ended(pid: int, lines: TextIO) -> tuple[int, list[Any]]:
    """Wait for the end of `started`: the exit status, and what was written and not read before."""
    with lines:
        reported = [json.loads(line) for line in lines]
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), reported


def check_ledger(ledger: Any, acknowledged: list[Any], accounts: tuple[str, ...]) -> int:
    """Check a ledger whose entries are lines "number account i": no acknowledged line is lost, no slot serves twice, and
    each account's records are its first ones, so that the next i can be served and an earlier one cannot.

    :param ledger: an open `Ledger`
    :param acknowledged: number, account and i of each
    :returns: how many entries there are
    """
    slots = []
    for index, body in enumerate(ledger.entries()):
        number, account, i = body.decode().split()
        assert int(number) == index == ledger.slot(account, int(i))
        assert ledger.private(index) == f"{account} {i}".encode()
        slots.append((account, int(i)))
    assert len(set(slots)) == len(slots)
    for index, account, i in acknowledged:
        assert slots[index] == (account, i)
    for account in accounts:
        used = sorted(i for a, i in slots if a == account)
        assert used == list(range(1, len(used) + 1))
    return len(slots)
