"""The commands with servers beside them: a ledger in PostgreSQL that is killed, and witnesses that answer over HTTP."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from rag_audit.models.windowfile import WindowFile
from tests.cli.conftest import Shell
from tests.cli.forked import CLOCK
from tests.postgres import cluster
from tests.running.play import Play
from tests.running.test_process import Ahead, Others, Process
from tests.window.simulator import ORIGIN, QUESTIONS, TEXTS, Service

pytestmark = pytest.mark.full
"""Time: each takes a window through some thirty processes."""
ROOT = Path(__file__).resolve().parents[2]
LONGEST_S = 300
LEAD_S = 3600


class Running:
    """A command that goes on by itself, in a process of its own under the shell's clock."""

    def __init__(self, shell: Shell, *arguments: object) -> None:
        self.log = shell.root / f"{arguments[0]}-{time.monotonic_ns()}.log"
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(CLOCK), str(ROOT)]),
                       "TESTS_CLOCK_AHEAD": str(shell.clock)}  # fmt: skip
        with self.log.open("wb") as log:
            self.process = subprocess.Popen([sys.executable, "-m", "rag_audit", *map(str, arguments)], cwd=shell.root,
                                            env=environment, stdout=log, stderr=log)  # fmt: skip

    def said(self, pattern: str) -> str:
        """Wait until the command has said it."""
        until = time.monotonic() + LONGEST_S
        while (result := re.search(pattern, self.log.read_text())) is None:
            assert self.process.poll() is None and time.monotonic() < until, self.log.read_text()
            time.sleep(0.05)
        return result[0]

    def end(self, number: signal.Signals) -> int:
        self.process.send_signal(number)
        return self.process.wait(LONGEST_S)


@contextmanager
def running(shell: Shell, *arguments: object) -> Iterator[Running]:
    command = Running(shell, *arguments)
    try:
        yield command
    finally:
        command.process.kill()
        command.process.wait()


@pytest.fixture
def provider(shell: Shell) -> Shell:
    """A provider with its documents, one account of each tenant, two witnesses, and a trust file of theirs."""
    for tenant, texts in TEXTS.items():
        (shell.root / "docs" / tenant).mkdir(parents=True)
        for number, text in enumerate(texts):
            (shell.root / "docs" / tenant / f"{number}.txt").write_text(text)
    shell.ok("provider", "keygen", "provider", "--name", ORIGIN)
    shell.ok("provider", "keygen", "verifier", "--name", "verifier.example.org")
    for name in ("w1", "w2"):
        (shell.root / f"{name}.pub").write_text(shell.ok("witness", "init", name, "--name", name))
    for tenant in TEXTS:
        line = shell.ok("account", "new", tenant, "--id", tenant, "--tenant", tenant)
        (shell.root / f"{tenant}.line").write_text(line)
    shell.ok("account", "add", "roster.json", *(f"{tenant}.line" for tenant in TEXTS))
    shell.ok(
        "verifier",
        "trust",
        "new",
        "trust.toml",
        "--origin",
        ORIGIN,
        "--provider",
        "provider.pub",
        "--witness",
        "w1.pub",
        "--witness",
        "w2.pub",
        "--verifier",
        "verifier.pub",
        "--account",
        "law.line",
    )
    shell.ok(
        "provider",
        "policy",
        "new",
        "policy.json",
        "--window",
        "w-1",
        *(a for t in TEXTS for a in ("--tenant", f"{t}=8")),
        "--n",
        5,
        "--k-max",
        2,
        "--mechanism",
        "noise",
        "--accounts",
        "16",
        "--eps-acc",
        14,
        "--top-k",
        2,
        "--lasts",
        "2h",
        "--coalition-proof",
        "none",
        "--opens-in",
        f"{LEAD_S}s",
    )
    return shell


def open_with(shell: Shell, nonces: Any, *options: str) -> None:
    told = shell.value(
        "provider",
        "open",
        "window",
        "--policy",
        "policy.json",
        "--roster",
        "roster.json",
        "--docs",
        "docs",
        "--key",
        "provider",
        *(a for path in nonces for a in ("--witness", path)),
        *options,
    )
    assert told["status"] == "committed"


def ask(shell: Shell, tenant: str, number: int, **options: Any) -> Any:
    return shell.run(
        "account",
        "query",
        QUESTIONS[tenant][number],
        "--account",
        tenant,
        "--window",
        "window/public",
        "--provider",
        "provider.pub",
        "--socket",
        "socket",
        **options,
    )


def test_a_ledger_in_postgresql_through_the_commands(provider: Shell) -> None:
    """The serving process is killed once, and the database's server once; what was answered is there."""
    shell = provider
    with cluster(durable=True) as database:
        for name in ("w1", "w2"):
            (shell.root / f"{name}.nonce").write_text(shell.ok("witness", "nonce", name))
        refused = shell.run(
            "provider",
            "open",
            "window",
            "--policy",
            "policy.json",
            "--roster",
            "roster.json",
            "--docs",
            "docs",
            "--key",
            "provider",
            "--witness",
            "w1.nonce",
            "--witness",
            "w2.nonce",
            "--store",
            "postgresql://u:secret@/db",
        )
        assert refused.returncode == 2 and "secret" not in refused.stderr
        open_with(shell, ("w1.nonce", "w2.nonce"), "--store", database.address)
        assert not (shell.root / "window" / "ledger.sqlite").exists()
        for step in ("cosign", "beacon"):
            for name in ("w1", "w2"):
                shell.ok("witness", step, name, "window/public", "--trust", "trust.toml")
        assert shell.value("provider", "open", "window")["status"] == "active"
        shell.put_forward(LEAD_S + 1)
        with running(shell, "provider", "serve", "window", "--socket", "socket") as first:
            first.said("listening on")
            assert ask(shell, "law", 0).returncode == 0
            second = shell.run("provider", "serve", "window", "--socket", "other")
            assert second.returncode == 2 and "another process" in second.stderr
            assert shell.value("provider", "status", "window")["records"] == 1
            assert first.end(signal.SIGKILL) == -signal.SIGKILL
        with running(shell, "provider", "serve", "window", "--socket", "socket") as again:
            again.said("listening on")
            assert ask(shell, "law", 1).returncode == 0
            database.kill()
            lost = ask(shell, "medicine", 0)
            assert lost.returncode == 2 and "Traceback" not in lost.stderr
            again.end(signal.SIGTERM)
        down = shell.run("provider", "close", "window")
        assert down.returncode == 2 and "does not answer" in down.stderr
        database.start()
        with running(shell, "provider", "serve", "window", "--socket", "socket") as last:
            last.said("listening on")
            assert ask(shell, "medicine", 0).returncode == 0  # the same request, which is answered once
            assert last.end(signal.SIGTERM) == 0
        assert shell.value("provider", "close", "window")["status"] == "closed"
        for name in ("w1", "w2"):
            shell.ok("witness", "cosign", name, "window/public", "--trust", "trust.toml")
        assert shell.value("provider", "close", "window")["status"] == "final"
    records = [
        (e["account"], e["i"])
        for e in WindowFile.load(shell.root / "window/public").entries  # type: ignore[index, call-overload]
        if e["type"] == "query"
    ]  # type: ignore[index, call-overload]
    assert records == [("law", 1), ("law", 2), ("medicine", 1)]


def test_a_run_keeps_its_ledgers_in_postgresql(tmp_path: Path) -> None:
    """`store` in provider.toml: the run is killed in each of its states, and the database's server once."""
    play = Play(tmp_path, Service(tmp_path, clock=Ahead(tmp_path / "ahead")))
    with cluster(durable=True) as database:
        path = play.configure(schedule={"lead": "1h", "windows": 1}, proving={"records": "all"})
        path.write_text(f'store = "{database.address}"\n' + path.read_text())
        process, others = Process(play), Others(play)
        killed: set[str] = set()
        until = time.monotonic() + LONGEST_S
        try:
            while process.child.poll() is None:
                assert time.monotonic() < until, process.said()
                others.look()
                for what in ("cosign", "reveal", "asked"):
                    if ("w-1", what) in others.done and what not in killed:
                        killed.add(what)
                        if what == "reveal":
                            database.kill()
                            database.start()
                        process.kill()
                time.sleep(0.05)
        finally:
            process.child.kill()
            process.child.wait()
        assert process.child.returncode == 0 and "Traceback" not in process.said(), process.said()
        assert killed == {"cosign", "reveal", "asked"} and not list(
            play.folder.glob("windows/*/ledger.sqlite")
        )
    assert play.verdict("w-1", tmp_path / "receipts").passed


def test_witnesses_that_serve_and_are_asked_by_command(provider: Shell) -> None:
    """One of them is killed between its cosignature and its nonce, and answers the same afterwards."""
    shell = provider

    def serve(name: str) -> Running:
        return Running(shell, "witness", "serve", name, "--http", "127.0.0.1:0", "--trust", "trust.toml")

    def url(witness: Running) -> str:
        return witness.said(r"http://127\.0\.0\.1:[0-9]+")

    def submit(name: str, witness: Running, *options: object) -> Any:
        return shell.value("witness", "submit", "window/public", "--url", url(witness), "--name", name, "--trust",
                           "trust.toml", *options)["notes"]  # fmt: skip

    def names(notes: list[str]) -> list[str]:
        return [Path(note).name for note in notes]

    first, second = serve("w1"), serve("w2")
    try:
        for name in ("w1", "w2"):
            (shell.root / f"{name}.nonce").write_text(shell.ok("witness", "nonce", name))
        open_with(shell, ("w1.nonce", "w2.nonce"))
        assert httpx.get(f"{url(first)}/readyz").json() == {"ready": True}
        assert names(submit("w1", first)) == ["cosign-1-w1.txt"]  # the quorum is not there yet
        assert names(submit("w2", second)) == ["cosign-1-w2.txt", "beacon-1-w2.txt"]
        assert first.end(signal.SIGKILL) == -signal.SIGKILL
        down = shell.run("witness", "submit", "window/public", "--url", "http://127.0.0.1:9", "--name", "w1", "--trust",
                         "trust.toml", "--patience", 0)  # fmt: skip
        assert down.returncode == 2 and "cannot be reached" in down.stderr
        first = serve("w1")
        assert names(submit("w1", first)) == ["beacon-1-w1.txt"] and submit("w1", first) == []
        assert shell.value("provider", "open", "window")["status"] == "active"
        shell.put_forward(LEAD_S + 1)
        for tenant in TEXTS:
            shell.ok(
                "account",
                "query",
                QUESTIONS[tenant][0],
                "--account",
                tenant,
                "--window",
                "window/public",
                "--provider",
                "provider.pub",
                "--provider-dir",
                "window",
            )
        for witness in (first, second):  # they look at the clock that was put forward, as a restart does
            assert witness.end(signal.SIGTERM) == 0
        first, second = serve("w1"), serve("w2")
        assert shell.value("provider", "close", "window")["status"] == "closed"
        end = len(WindowFile.load(shell.root / "window/public").entries)
        for name, witness in (("w1", first), ("w2", second)):
            assert names(submit(name, witness)) == [f"cosign-{end}-{name}.txt"]
        assert shell.value("provider", "close", "window")["status"] == "final"
        shell.ok("provider", "prove", "window")
        shell.ok(
            "account",
            "receipt",
            "export",
            "--account",
            "law",
            "--window",
            "window/public",
            "--out",
            "receipts",
            "--disclose",
        )
        done = shell.run(
            "verify", "window/public", "--trust", "trust.toml", "--receipts", "receipts", "--details"
        )
        assert "pass       ledger.quorum" in done.stdout and "pass       header.beacon" in done.stdout, (
            done.stdout
        )
        counted = httpx.get(f"{url(first)}/metrics").text
        assert 'rag_audit_witness_responses_total{route="/rag-audit/v1/trailer",status="200"} 1.0' in counted
    finally:
        for witness in (first, second):
            witness.process.kill()
            witness.process.wait()
