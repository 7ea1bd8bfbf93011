"""`rag-audit run` as a process: killed wherever it stands, told to stop, and asked where it is."""

from __future__ import annotations

import json
import os
import random
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from rag_audit.cli import main
from rag_audit.cli import run as command
from rag_audit.errors import RagAuditError
from rag_audit.models.publication import Publication
from rag_audit.models.windowfile import WindowFile
from rag_audit.service.running.config import RunConfig
from rag_audit.service.running.supervisor import Supervisor
from tests.running.play import Play
from tests.window.simulator import QUESTIONS, Clock, Service

ROOT = Path(__file__).resolve().parents[2]
LONGEST_S = 500
"""After so long the test fails: nothing goes on any more."""


TEXT_LINE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z (info|warning|error) +\S")
"""Time, level and event of a log line in the form for people."""


class Ahead(Clock):
    """The system's clock, ahead by what a file says, for this process and the run's."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.path.write_text("0")

    @property  # type: ignore[override]
    def now(self) -> int:
        return time.time_ns() // 1_000_000 + int(1_000 * float(self.path.read_text()))

    @now.setter
    def now(self, value: int) -> None:
        self.advance(value - self.now)

    def advance(self, milliseconds: int) -> None:
        new = self.path.with_suffix(".new")
        new.write_text(str(float(self.path.read_text()) + milliseconds / 1_000))
        new.replace(self.path)


@pytest.fixture
def play(tmp_path: Path) -> Play:
    return Play(tmp_path, Service(tmp_path, clock=Ahead(tmp_path / "ahead")))


class Process:
    def __init__(self, play: Play) -> None:
        self.play = play
        self.log = play.root / "log"
        self.child = self.start()

    def start(self) -> subprocess.Popen[bytes]:
        environment = {**os.environ, "TESTS_CLOCK_AHEAD": str(self.play.root / "ahead"),
                       "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent / "clock"), str(ROOT)])}  # fmt: skip
        with self.log.open("ab") as log:
            command = [sys.executable, "-m", "rag_audit", "run", "provider.toml"]
            self.child = subprocess.Popen(command, cwd=self.play.root, env=environment, stderr=log)
        return self.child

    def kill(self) -> None:
        self.child.kill()
        self.child.wait()
        self.start()

    def said(self) -> str:
        return self.log.read_text()

    def wait_for(self, what: str) -> None:
        until = time.monotonic() + LONGEST_S
        while what not in self.said():
            assert self.child.poll() is None and time.monotonic() < until, self.said()
            time.sleep(0.05)


class Others:
    """Witnesses and an account, who look at the run's folder."""

    def __init__(self, play: Play) -> None:
        self.play = play
        self.done: set[tuple[str, str]] = set()

    def look(self) -> None:
        for name in ("w-1", "w-2"):
            if (self.play.public(name) / "header.json").exists():
                self._look(name)

    def once(self, name: str, what: str) -> bool:
        return (name, what) not in self.done and not self.done.add((name, what))  # type: ignore[func-returns-value]

    def _look(self, name: str) -> None:
        public, play = self.play.public(name), self.play
        header = Publication.load(public).parsed_header()
        if (public / "window.json").exists() and _ended(public):
            if self.once(name, "end"):
                play.witness(name)
        elif self.once(name, "cosign"):
            play.witness(name)
        elif self.once(name, "reveal"):
            play.reveal(name)
            play.clock.now = max(play.clock.now, header.opens_at)
        elif (name, "asked") not in self.done and self._ask(public):
            self.done.add((name, "asked"))
            play.clock.now = header.closes_at + 1_000

    def send(self, request: Any) -> Any:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(30)
            connection.connect(str(self.play.root / "socket"))
            connection.sendall(request.canonical() + b"\n")
            with connection.makefile("rb") as stream:
                if not (line := stream.readline()):
                    raise ConnectionAbortedError
                return json.loads(line)

    def _ask(self, public: Path) -> bool:
        """One question, whose request is repeated until it is answered."""

        try:
            self.play.service.accounts["law-1"].ask(
                Publication.load(public), QUESTIONS["law"][0], self.play.service.key.verifier, self.send
            )
        except (OSError, RagAuditError):
            return False
        return True


def _ended(public: Path) -> bool:
    last = WindowFile.load(public).entries[-1]
    return isinstance(last, dict) and last.get("type") == "trailer"


@pytest.mark.parametrize("kills", [3, pytest.param(25, marks=pytest.mark.full)])
def test_a_run_that_is_killed_goes_on_to_two_windows_that_pass(
    play: Play, kills: int, tmp_path: Path
) -> None:
    chance, until = random.Random(kills), time.monotonic() + LONGEST_S
    play.configure(schedule={"lead": "1h"}, proving={"records": "all"})
    process, others = Process(play), Others(play)
    after = chance.uniform(0.2, 2)
    try:
        while process.child.poll() is None:
            assert time.monotonic() < until, process.said()
            others.look()
            time.sleep(0.05)
            after -= 0.05
            if kills and after <= 0:
                kills, after = kills - 1, chance.uniform(0.2, 2)
                process.kill()
    finally:
        process.child.kill()
        process.child.wait()
    assert process.child.returncode == 0, process.said()
    assert "all windows are done: schedule.windows in provider.toml" in process.said()
    assert "Traceback" not in process.said()
    for name, before in (("w-1", ()), ("w-2", ("w-1",))):
        file = WindowFile.load(play.public(name))
        assert sum(e["type"] == "query" for e in file.entries) == 1  # type: ignore[index, call-overload]
        verdict = play.verdict(name, tmp_path / f"receipts-{name}", *before)
        assert verdict.passed, (verdict.deciding, process.said())


@pytest.mark.full
def test_a_process_that_cannot_write_refuses_and_goes_on_once_it_can(play: Play) -> None:
    """The system's own limit in place of a full disk: a file that grows beyond it cannot be written."""
    play.configure(schedule={"lead": "1h"})
    process, others = Process(play), Others(play)
    account, until = play.service.accounts["medicine-1"], time.monotonic() + LONGEST_S

    def ask() -> str:
        public = Publication.load(play.public("w-1"))
        try:
            account.ask(public, QUESTIONS["medicine"][0], play.service.key.verifier, others.send)
        except RagAuditError as exc:
            return str(exc)
        return "answered"

    try:
        others.done.add(("w-1", "asked"))
        while ("w-1", "reveal") not in others.done or "not open" in ask():
            assert time.monotonic() < until, process.said()
            others.look()
            time.sleep(0.05)
        assert ask() == "answered"
        limit = resource.prlimit(process.child.pid, resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))
        assert "could not be written" in ask() and "could not be written" in ask()
        time.sleep(1)
        assert process.child.poll() is None and "could not be written" in ask()
        resource.prlimit(process.child.pid, resource.RLIMIT_FSIZE, limit)
        while ask() != "answered":
            assert time.monotonic() < until and process.child.poll() is None, process.said()
            play.clock.advance(31_000)
            time.sleep(0.2)
    finally:
        process.child.kill()
        process.child.wait()
    run = play.supervisor()
    play.settle(run)
    slots = [(r.account, r.i) for r in run.windows["w-1"].records]
    assert len(slots) >= 2 and [i for _, i in slots] == list(range(1, len(slots) + 1))
    run.stop(1)


def test_sigterm_ends_a_run_and_the_next_one_goes_on(play: Play) -> None:
    pytest.importorskip("starlette")
    play.configure(schedule={"lead": "1h"}, serve={"http": "127.0.0.1:0"})
    process = Process(play)
    try:
        process.wait_for("w-1 waits for cosignatures")
        url = re.findall(r"listening on (http://127\.0\.0\.1:[0-9]+)", process.said())[0]
        with urllib.request.urlopen(f"{url}/public/header.json", timeout=60) as answer:
            assert answer.read() == (play.public("w-1") / "header.json").read_bytes()
        assert (play.root / "socket").is_socket()
        result = json.loads(
            CliRunner()
            .invoke(main, ["provider", "status", str(play.root / "provider.toml"), "--json"])
            .stdout
        )
        assert (
            "rag-audit provider open" not in result["windows"][0]["waits_for"]
            and "witness cosign" in result["windows"][0]["waits_for"]
        )
        assert result["running"] and [(w["window"], w["status"]) for w in result["windows"]] == [
            ("w-1", "committed")
        ]
        second = subprocess.run([sys.executable, "-m", "rag_audit", "run", "provider.toml"], cwd=play.root,
                                capture_output=True, text=True, timeout=LONGEST_S)  # fmt: skip
        assert second.returncode == 2 and "another process uses this folder" in second.stderr
        process.child.send_signal(signal.SIGTERM)
        assert process.child.wait(LONGEST_S) == 0
    finally:
        process.child.kill()
        process.child.wait()
    assert "stopped" in process.said() and not (play.root / "socket").exists()
    assert all(TEXT_LINE.match(line) for line in process.said().splitlines())
    text = CliRunner().invoke(main, ["provider", "status", str(play.folder)]).stdout
    assert "no process runs it" in text and "w-1: committed" in text
    assert play.settle(play.supervisor()) == ["resume w-1"]


@pytest.mark.parametrize("form", ["json", "text"])
def test_each_line_of_a_run_has_one_form_with_time_and_level_also_its_last_error(
    play: Play, form: str
) -> None:
    shutil.rmtree(play.root / "docs")
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-m", "rag_audit", "run", "provider.toml", "--log", form], cwd=play.root,
                          env=environment, capture_output=True, text=True, timeout=LONGEST_S)  # fmt: skip
    assert done.returncode == 2 and done.stdout == ""
    lines = done.stderr.splitlines()
    assert "the folder of the documents does not exist" in lines[-1] and "create the folder" in lines[-1]
    for line in lines:
        if form == "text":
            assert TEXT_LINE.match(line), line
        else:
            assert json.loads(line).keys() >= {"time", "level", "event"}
    assert "error" in lines[-1]


def test_jobs_end_while_answers_still_leave(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The time for jobs counts from the end of the run, so the times of answers and jobs do not add up."""
    play = Play(tmp_path)
    stopping: list[bool] = []

    def listen(stack: ExitStack, supervisor: Supervisor, _: RunConfig) -> None:
        stack.callback(lambda: stopping.append(supervisor._jobs.stopping.is_set()))

    monkeypatch.setattr(command, "_listen", listen)
    monkeypatch.setattr(Supervisor, "finished", True)
    done = CliRunner().invoke(main, ["run", str(play.root / "provider.toml")])
    assert done.exit_code == 0 and stopping == [True], done.output
