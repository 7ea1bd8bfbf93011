"""The progress of a run's jobs: in the log every ten seconds, and in `provider status`."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from rag_audit.cli import main
from rag_audit.service.running.jobs import Jobs, Stopped
from tests.running.play import Play


def test_a_job_that_takes_long_is_reported_every_ten_seconds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    play, told, ended = Play(tmp_path), threading.Event(), threading.Event()
    run = play.supervisor(Jobs())

    def prepare(place: object, check: Callable[..., None]) -> None:
        check("documents of law", 10, 40)
        told.set()
        assert ended.wait(60)

    monkeypatch.setattr(run._acts, "prepare", prepare)
    assert run.step() == "prepare w-1" and told.wait(60)
    for seconds in (0, 5, 5, 5, 5):
        play.clock.advance(1_000 * seconds)
        run.step()
    lines = [line for line in play.said if line.startswith("prepare w-1:")]
    assert lines == [
        "prepare w-1: documents of law 10 of 40, 1 per second, about 30 s left",
        "prepare w-1: documents of law 10 of 40, 0.5 per second, about 60 s left",
    ]
    words = ["provider", "status", str(play.root / "provider.toml")]
    assert (
        "documents of law 10 of 40, 0.5 per second, about 60 s left" in CliRunner().invoke(main, words).stdout
    )
    (progress,) = json.loads(CliRunner().invoke(main, [*words, "--json"]).stdout)["progress"]
    assert (progress["done"], progress["total"], progress["seconds_left"]) == (10, 40, 60.0)
    ended.set()
    while run._jobs.busy("prepare w-1"):
        run.step()
    run._jobs.stopping.set()
    run.step()
    assert run.directory.state.progress == []
    assert run.stop(10)


def test_a_stopped_job_ends_at_its_next_report() -> None:
    jobs = Jobs(inline=True)
    jobs.stopping.set()
    jobs.start("prove w-1", lambda: jobs.check(1, 2))
    assert [(name, type(failure)) for name, failure in jobs.ended()] == [("prove w-1", Stopped)]
    assert jobs.progress() == {}
