"""A whole window whose proofs are made on a real cluster, by the command, through interruption and loss."""

from __future__ import annotations

import base64
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from rag_audit._internal.canonical import jcs
from rag_audit.attest.window import Window
from rag_audit.models.records import SlotKey
from rag_audit.models.windowfile import WindowFile
from rag_audit.proofs.checking import Checking
from rag_audit.proofs.executors import open_executor, run_jobs
from tests.executors.conftest import ROOT, Cluster
from tests.window.simulator import QUESTIONS, Finished, Service

INTERRUPTED = 130


@pytest.fixture
def start() -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Starts a command. What is still running ends with the test: without its cluster it would wait for ever."""
    started: list[subprocess.Popen[str]] = []

    def command(*arguments: object) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-m", "rag_audit", *map(str, arguments), "--json"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            # A shell's background jobs, and what they start, ignore it.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
        started.append(process)
        return process

    yield command
    for process in started:
        process.kill()
        process.wait()


def finish(command: subprocess.Popen[str]) -> tuple[dict[str, Any], str]:
    out, err = command.communicate(timeout=300)
    assert command.returncode == 0, err
    return json.loads(out), err


def made(directory: Path) -> dict[str, int]:
    """The proofs that stand, by file, with when each was written."""
    return {path.name: path.stat().st_mtime_ns for path in (directory / "proofs").glob("*.json")}


def test_a_window_proved_on_a_cluster_through_an_interruption_and_a_lost_worker(
    cluster: Cluster, start: Callable[..., subprocess.Popen[str]], tmp_path: Path
) -> None:
    service = Service(tmp_path / "service")
    # So many records that the command is still at work when it is interrupted, and when a worker is lost.
    each = 4
    with service.open(system="scan", n=each // 2) as window:
        directory = window.directory
    service.key.save(service.root / "key")
    (directory / "settings.json").write_bytes(jcs({"key": str(service.root / "key")}))

    # The noise proofs of everyone's first slot, before anything is asked.
    ahead = start("provider", "prove", directory, "--precompute", "--executor", cluster.address)
    assert finish(ahead)[0] == {"created": 4, "noise_proofs": 4}
    with Window.resume(directory, key=service.key, clock=service.clock) as window:
        kept = window.noise_proofs.get(SlotKey("law", "law-1", 1))
        assert kept is not None
        for number in range(each):
            for tenant, questions in QUESTIONS.items():
                service.ask(window, f"{tenant}-{1 + number % 2}", questions[number % len(questions)])
        service.finish(window)
        note = service.root / "challenge.txt"
        note.write_text(service.challenge(window))
    prove = ("provider", "prove", directory, "--challenge", note, "--executor", cluster.address)
    total = len(QUESTIONS) * each * 2

    command = start(*prove)
    while not made(directory) and command.poll() is None:
        time.sleep(0.01)
    command.send_signal(signal.SIGINT)
    _, err = command.communicate(timeout=300)
    before = made(directory)
    assert command.returncode == INTERRUPTED and "finished work is stored" in err, err
    assert "Traceback" not in err, err
    assert 0 < len(before) < total

    command = start(*prove)
    assert cluster.kill_a_busy_worker(lambda: command.poll() is None)
    result, err = finish(command)
    assert result["created"] == total - len(before) and result["proofs"] == total
    assert "a worker was lost; its job runs once more" in err
    after = made(directory)
    assert len(after) == total and before.items() <= after.items(), "no finished proof is made again"
    assert finish(start(*prove))[0]["created"] == 0

    with Window.resume(directory, key=service.key, clock=service.clock) as window:
        policy = window.policy
        receipts = service.receipts(window, service.root / "receipts")
    file = WindowFile.load(directory / "public")
    first = next(e["seq"] for e in file.entries if (e.get("account"), e.get("i")) == ("law-1", 1))
    assert base64.b64decode(file.proofs[str(first)]["retrieve"]["noise_proof"]) == kept.proof
    verdict = Finished(service, directory, file, policy, receipts).verify(
        require={"query_embedding": "proved"}
    )
    assert verdict.passed, verdict.deciding
    assert verdict.figures["proved"] == len(QUESTIONS) * each

    # And verified there, by workers who then decide.
    with open_executor(cluster.address) as executor:
        elsewhere = Finished(service, directory, file, policy, receipts).verify(
            require={"query_embedding": "proved"},
            checking=lambda _: Checking(run=partial(run_jobs, executor=executor)),
        )
    assert elsewhere.checks == verdict.checks
