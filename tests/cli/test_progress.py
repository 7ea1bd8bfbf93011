"""What long work says of itself: a bar that grows on a terminal, a line every ten seconds in a log."""

from __future__ import annotations

import sys
import threading

import pytest

from rag_audit.cli import common
from tests.clock import set_clock


def test_progress_in_a_log(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    times = iter((1_000.0, 1_000.0, 1_009.0, 1_011.0, 1_020.0, 1_022.0))
    set_clock(monkeypatch, common, monotonic=lambda: next(times))
    show = common.progress("proofs")
    for done in range(5):
        show(done, 1_400)
    assert capsys.readouterr().err.splitlines() == [
        "rag-audit: proofs 2/1400  11 s",
        "rag-audit: proofs 4/1400  22 s",
    ]


def test_progress_on_a_terminal(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    set_clock(monkeypatch, common, monotonic=lambda: 5.0)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    show = common.progress("proofs")
    show(1, 2)
    show(2, 2)
    assert capsys.readouterr().err == (
        f"\r[{'#' * 10}{'-' * 10}] proofs 1/2  0 s\r[{'#' * 20}] proofs 2/2  0 s\n"
    )


def test_work_of_unknown_length_is_not_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    spoken = threading.Event()

    def say(line: str) -> None:
        said.append(line)
        spoken.set()

    monkeypatch.setattr(common, "say", say)
    monkeypatch.setattr(common, "LOGGED_EVERY_S", 0.001)
    with common.patiently("verifying") as quiet:
        assert spoken.wait(60)
        quiet()
        before = len(said)
        assert not any(thread.name == "rag-audit-patience" for thread in threading.enumerate())
    assert len(said) == before and said[0].startswith("verifying  ")
