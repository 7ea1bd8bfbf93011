"""Load on the real server, which is killed meanwhile: nothing is lost and no slot serves twice. No time is asserted."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path

import pytest

from bench.http import Server, check, send_all, sign
from rag_audit.cli.settings import store_settings
from rag_audit.formats.publication import Publication
from rag_audit.parties.account import embedder_of
from tests.cli.forked import CLOCK
from tests.window.simulator import Service

ROOT = Path(__file__).parents[2]


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
    server = Server(folder, environment)
    server.start()
    try:
        found = asyncio.run(send_all(server, tickets, rate=0, kills=kills))
    finally:
        code = server.stop()
    assert code == 0
    assert found["answered"] == len(tickets) == each * len(parties.accounts)
    assert len(found["restart_seconds"]) == kills
    assert check(folder, publication, parties.key.verifier, tickets) == {
        "records": len(tickets), "lost": 0, "slots_reused": 0, "other_records": 0,
    }  # fmt: skip
