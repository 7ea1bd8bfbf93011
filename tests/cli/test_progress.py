"""What long work says of itself: a line that is rewritten on a terminal, a line every half minute in a log."""

from __future__ import annotations

import sys

import pytest

from rag_audit.cli import common


def test_progress_in_a_log(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    times = iter((1_000.0, 1_000.0, 1_029.0, 1_031.0, 1_060.0, 1_062.0))
    monkeypatch.setattr(common.time, "monotonic", lambda: next(times))
    show = common.progress("proofs")
    for done in range(5):
        show(done, 1_400)
    assert capsys.readouterr().err.splitlines() == [
        "rag-audit: proofs 2/1400  31 s",
        "rag-audit: proofs 4/1400  62 s",
    ]


def test_progress_on_a_terminal(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(common.time, "monotonic", lambda: 5.0)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    show = common.progress("proofs")
    show(1, 2)
    show(2, 2)
    assert capsys.readouterr().err == "\rproofs 1/2  0 s\rproofs 2/2  0 s\n"
