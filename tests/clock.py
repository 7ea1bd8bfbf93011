"""A clock for one module."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import ModuleType, SimpleNamespace

import pytest


def set_clock(
    monkeypatch: pytest.MonkeyPatch, module: ModuleType, **functions: Callable[..., object]
) -> None:
    """Give one module a `time` of its own, in which these functions replace the standard ones.

    The threads of the process keep the real clock. The services of other tests run in such threads: an event loop that
    reads a time near zero only once sleeps for as long as the machine has been running.
    """
    monkeypatch.setattr(module, "time", SimpleNamespace(**{**vars(time), **functions}))
