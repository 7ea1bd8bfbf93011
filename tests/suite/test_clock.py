"""Tests set the clock of one module (`set_clock`), and never the clock of the process."""

from __future__ import annotations

import re
import threading
import time
from pathlib import Path

import pytest

from rag_audit.cli import common
from tests.clock import set_clock

TESTS = Path(__file__).resolve().parents[1]
OF_THE_PROCESS = re.compile(
    r"""setattr\([^)\n]*\btime(\.|["']?,\s*["'])(monotonic|time|sleep|perf_counter)\b"""
)


def test_no_test_sets_the_clock_of_the_process() -> None:
    assert OF_THE_PROCESS.search('monkeypatch.setattr(common.time, "monotonic", now)')
    assert OF_THE_PROCESS.search('monkeypatch.setattr("time.sleep", now)')
    wrong = [str(file) for file in sorted(TESTS.rglob("*.py"))
             if file != Path(__file__) and OF_THE_PROCESS.search(file.read_text())]  # fmt: skip
    assert not wrong, f"{wrong}: set the clock of one module with tests.clock.set_clock"


def test_another_thread_keeps_its_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[float] = []
    set_clock(monkeypatch, common, monotonic=lambda: -1.0)
    thread = threading.Thread(target=lambda: seen.append(time.monotonic()))
    thread.start()
    thread.join()
    assert common.time.monotonic() == -1.0 and seen[0] > 0
