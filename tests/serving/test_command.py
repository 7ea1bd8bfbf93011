"""`rag-audit provider serve --http` as a process of its own: started, stopped, killed, and started where it cannot be."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from rag_audit._internal.canonical import parse_json
from rag_audit.account.account import Account
from rag_audit.cli.settings import store_settings
from rag_audit.models.publication import Publication
from rag_audit.service.server import listen
from tests.cli.forked import CLOCK
from tests.window.simulator import Service

ROOT = Path(__file__).parents[2]


@pytest.fixture
def folder(parties: Service) -> Path:
    """An open window that the command can serve, for which its clock is put forward."""
    with parties.open(system="scan") as window:
        directory = window.directory
    parties.key.save(parties.root / "provider.skey")
    store_settings(directory, parties.root / "provider.skey", None)
    (parties.root / "ahead").write_text(str(parties.clock.now / 1000 + 60 - time.time()))
    return directory


def _command(folder: Path, address: str) -> subprocess.Popen[str]:
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(CLOCK), str(ROOT)]),
        "TESTS_CLOCK_AHEAD": str(folder.parent / "ahead"),
    }
    command = [sys.executable, "-m", "rag_audit", "provider", "serve", str(folder), "--http", address]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment)


@contextmanager
def served(folder: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The command, and where it says that it listens."""
    process = _command(folder, "127.0.0.1:0")
    try:
        assert process.stderr is not None
        line = next(line for line in process.stderr if "listening on" in line)
        yield process, line.split()[-1]
    finally:
        process.kill()
        process.wait()


def _post(url: str, body: bytes) -> bytes:
    request = urllib.request.Request(url + "/v1/query", body, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=60) as response:
            answer: bytes = response.read()
    except urllib.error.HTTPError as refused:
        answer = refused.read()
    return answer


def test_a_killed_service_answers_the_repeated_request_once(parties: Service, folder: Path) -> None:
    publication, account = Publication.load(folder / "public"), parties.accounts["law-1"]
    request = account.request(publication, "What is a contract?")
    with served(folder) as (process, url):
        first = _post(url, request.canonical())  # and it gets lost
        process.kill()
    account = Account(account.directory)
    assert account.request(publication, "What is a contract?") == request
    with served(folder) as (process, url):
        again = parse_json(_post(url, request.canonical()), source="reply")
        before = parse_json(first, source="reply")
        assert isinstance(again, dict) and isinstance(before, dict)
        assert again["documents"] == before["documents"]
        account.accept(publication, request, again, parties.key.verifier)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
        assert process.stderr is not None and "rag-audit: stopped\n" in process.stderr.read()


def test_a_port_that_is_taken_is_a_set_up_error(tmp_path: Path) -> None:
    with listen("127.0.0.1", 0) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        process = _command(tmp_path, address)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 2
    assert "rag-audit: the address cannot be listened on" in said and address in said
