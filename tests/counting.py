"""Counting the work of a piece of code."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest


@dataclass
class Total:
    """The total of a function's calls."""

    count: int = 0


@contextmanager
def counted(owner: object, name: str, amount: Callable[..., int] = lambda *_: 1) -> Iterator[Total]:
    """Count the calls of a module's or class's function during the block.

    :param amount: the amount that a call with given positional arguments adds
    """
    total, function = Total(), getattr(owner, name)

    def count(*arguments: Any, **options: Any) -> Any:
        total.count += amount(*arguments)
        return function(*arguments, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(owner, name, count)
        yield total


def calls(work: Callable[[], object]) -> int:
    """How many calls of functions, built-in ones too, and resumptions of generators a piece of work takes."""
    count = 0

    def step(frame: object, event: str, argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(step)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count
