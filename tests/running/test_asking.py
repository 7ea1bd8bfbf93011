"""A run that asks its witnesses over HTTP, who look at no folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from rag_audit.cli import main
from rag_audit.errors import SchemaError
from rag_audit.models.publication import Publication
from rag_audit.service.limits import Limits
from rag_audit.service.running.config import RunConfig
from rag_audit.service.server import Server, listen
from rag_audit.witness.http import Provider, WitnessApplication, WitnessService
from rag_audit.witness.offers import Offers
from tests.running.play import Play
from tests.window.simulator import ORIGIN, QUESTIONS


def server_of(play: Play, name: str, port: int = 0) -> Server:
    witness, limits = play.service.witnesses[name], Limits()
    known = [w.vkey for w in play.service.witnesses.values()]
    provider = Provider(ORIGIN, play.service.key.verifier, known, len(known))
    service = WitnessService(witness, Offers(play.root / name, witness), [provider])
    return Server(WitnessApplication(service, limits, print), listen("127.0.0.1", port), limits)


def status(play: Play) -> dict[str, Any]:
    return dict(
        json.loads(CliRunner().invoke(main, ["provider", "status", str(play.folder), "--json"]).stdout)
    )


def test_windows_follow_each_other_with_witnesses_that_are_asked(tmp_path: Path) -> None:
    """One of them is down at first: the run says so once, and goes on when it is there."""
    play = Play(tmp_path)
    for path in (play.root / "nonces").iterdir():
        path.unlink()
    first, down = server_of(play, "w1"), server_of(play, "w2")
    port = int(down.url.rpartition(":")[2])
    play.remote = {"w1": {"url": first.url}, "w2": {"url": down.url}}
    play.configure(proving={"records": "challenged"}, schedule={"windows": 2})
    down.shut()
    with first:
        first.start()
        run = play.supervisor()
        play.settle(run)
        assert not list((tmp_path / "nonces").glob("w2-*")) and list((tmp_path / "nonces").glob("w1-*"))
        play.clock.advance(3_600_000)
        play.settle(run)
        assert sum("the witness cannot be reached" in line for line in play.said) == 1
        silent = status(play)
        assert [each["witness"] for each in silent["unresponsive"]] == ["w2"]
        assert silent["unresponsive"][0]["next_at"] > play.clock.now > silent["unresponsive"][0]["since"]
        assert silent["windows"][0]["waits_for"] == "the witnesses' nonces"  # and no end of another window
        text = CliRunner().invoke(main, ["provider", "status", str(play.folder)]).stdout
        assert "witness w2 does not answer since" in text and "the witness cannot be reached" in text
        assert any("w-1 waits for nonces of w2 (the run asks them)" in line for line in play.said)
        assert not any("rag-audit witness" in line for line in play.said)  # no witness has to act by itself
        with server_of(play, "w2", port) as second:
            second.start()
            play.clock.advance(60_001)
            acts = play.settle(run)
            assert "open w-1" in acts and any("witness w2 answers again" in line for line in play.said)
            assert status(play)["unresponsive"] == []
            assert [a for a in acts if a.startswith("notes")] == [
                "notes w-1: cosign-1-w1.txt",
                "notes w-1: cosign-1-w2.txt",
                "notes w-1: beacon-1-w1.txt, beacon-1-w2.txt",
            ]
            header = Publication.load(play.public("w-1")).parsed_header()
            play.clock.now = header.opens_at
            play.ask(run, "w-1", "law-1", QUESTIONS["law"][0])
            play.clock.now = header.closes_at + 1
            acts = play.settle(run)
            assert "close w-1" in acts and "open w-2" in acts  # both cosigned the end, and gave nonces
            assert acts[-1].startswith("notes w-2: beacon-1-w1.txt") or "notes w-2" in str(acts)
            assert play.service.witnesses["w2"].last(header.log) is not None
        assert run.stop(1)


def test_plain_witnesses_alone_give_no_beacon(tmp_path: Path) -> None:
    play = Play(tmp_path)
    plain = {"url": "https://witness.example", "plain": True}
    play.remote = {"w1": plain}
    config = RunConfig.load(play.configure())
    assert [k.name for k in config.beacon_witnesses] == ["w2"]
    assert [(r.key.name, r.plain) for r in config.remotes] == [("w1", True)]
    play.remote = {"w1": plain, "w2": plain}
    with pytest.raises(SchemaError, match="not well-formed") as refused:
        RunConfig.load(play.configure())
    assert "plain witnesses give no nonces" in str(refused.value.expected)
    play.remote = {"w1": {"url": "ftp://witness.example"}}
    with pytest.raises(SchemaError) as refused:
        RunConfig.load(play.configure())
    assert "https://HOST/PREFIX" in json.dumps(refused.value.as_json())
