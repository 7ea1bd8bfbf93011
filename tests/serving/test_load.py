"""Load on the real server, which is killed meanwhile: nothing is lost and no slot serves twice. No time is asserted."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest

from bench.http import Server, check, send_all, sign
from rag_audit.account.account import embedder_of
from rag_audit.cli.settings import store_settings
from rag_audit.models.publication import Publication
from tests.cli import forked
from tests.cli.forked import CLOCK
from tests.window.simulator import Service

ROOT = Path(__file__).parents[2]


@dataclass
class ForkedServer(Server):
    """The same command in processes that are forked from one that has imported everything: many starts cost little."""

    starts: int = 0
    child: BaseProcess | None = None

    def start(self) -> None:
        self.starts += 1
        streams = self.folder.parent / f"start-{self.starts}"
        streams.mkdir()
        (streams / "in").touch()
        arguments = ["provider", "serve", str(self.folder), "--http", f"127.0.0.1:{self.port}", *self.options]
        self.child = forked.start(arguments, ROOT, streams, self.environment)
        said = streams / "err"
        while not (said.exists() and "listening on http://" in said.read_text()):
            assert self.child.is_alive(), said.read_text()
            time.sleep(0.02)
        line = next(line for line in said.read_text().splitlines() if "listening on http://" in line)
        self.port = int(line.rpartition(":")[2])

    def _end(self, number: signal.Signals) -> int:
        assert self.child is not None and self.child.pid is not None
        os.kill(self.child.pid, number)
        self.child.join()
        code = self.child.exitcode
        assert code is not None
        return code


@pytest.mark.parametrize(("each", "kills"), [(6, 1), pytest.param(60, 200, marks=pytest.mark.full)])
def test_kills_under_load_lose_nothing_and_use_no_slot_twice(
    parties: Service, each: int, kills: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # On a busy machine a start takes longer than the measurement's client waits.
    monkeypatch.setattr("bench.http.ATTEMPTS", 1 << 30)
    with parties.open(system="scan", n=each, eps_acc="400") as window:
        folder = window.directory
    parties.key.save(parties.root / "provider.skey")
    store_settings(folder, parties.root / "provider.skey", None)
    ahead = parties.root / "ahead"
    ahead.write_text(str(parties.clock.now / 1000 + 60 - time.time()))
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(CLOCK), str(ROOT)]),
        "TESTS_CLOCK_AHEAD": str(ahead),
    }
    publication = Publication.load(folder / "public")
    tickets = sign(list(parties.accounts.values()), publication, embedder_of(publication), {}, each)
    server = Server(folder, environment) if kills == 1 else ForkedServer(folder, environment)
    server.start()
    try:
        result = asyncio.run(send_all(server, tickets, rate=0, kills=kills))
    finally:
        code = server.stop()
    assert code == 0
    assert result["answered"] == len(tickets) == each * len(parties.accounts)
    assert len(result["restart_seconds"]) == kills
    assert check(folder, publication, parties.key.verifier, tickets) == {
        "records": len(tickets), "lost": 0, "slots_reused": 0, "other_records": 0,
    }  # fmt: skip
