"""Accounts that join a run: requests over HTTP, decided by another process, in the log while the window answers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from rag_audit.account.account import Account
from rag_audit.cli import main
from rag_audit.errors import RagAuditError, SchemaError
from rag_audit.models.enrolling import EnrolmentRequest
from rag_audit.models.publication import Publication
from rag_audit.models.requests import Answer
from rag_audit.models.roster import load_roster
from rag_audit.models.windowfile import WindowFile
from rag_audit.service.running.config import RunConfig
from tests.running.play import Play
from tests.running.test_asking import server_of
from tests.window.simulator import ORIGIN, QUESTIONS


class Joined:
    """A run whose window is open, with witnesses that are asked over HTTP or look at its folder."""

    def __init__(self, play: Play) -> None:
        self.play = play
        play.configure(enrolment={"requests": "enrolments.sqlite"}, serve={"http": "127.0.0.1:0"},
                       schedule={"windows": 2})  # fmt: skip
        self.run = play.supervisor()

    def activate(self) -> None:
        self.play.settle(self.run)
        self.play.activate(self.run, "w-1")

    def ask(self, name: str, window: str = "w-1", tenant: str = "law", **keys: Any) -> Any:
        folder = self.play.root / "accounts" / name
        asker = Account(folder) if folder.exists() else Account.create(folder, name, tenant)
        request = EnrolmentRequest.sign(asker.roster_entry, asker.keys.newest, origin=ORIGIN, window=window,
                                        previous=asker.keys.before)  # fmt: skip
        assert self.run.intake is not None
        return self.run.intake.answer(json.loads(request.canonical()))

    def decide(self, what: str, *options: str) -> Any:
        done = CliRunner().invoke(
            main, ["provider", "enrolments", what, str(self.play.root / "provider.toml"), "--json", *options]
        )
        assert done.exit_code == 0, done.output
        return json.loads(done.stdout)

    def enrolled(self) -> list[str]:
        return list(self.run.windows["w-1"].state.enrolled_at)

    def asks(self, name: str, question: str, window: str = "w-1") -> None:
        self.play.service.accounts[name] = Account(self.play.root / "accounts" / name)
        assert isinstance(self.play.ask(self.run, window, name, question), Answer)


def test_approved_accounts_are_in_the_log_of_the_open_window_and_on_the_next_roster(tmp_path: Path) -> None:
    """Both witnesses are asked over HTTP: nonces, cosignatures and reveals."""
    play = Play(tmp_path, accounts_max=5)
    for path in (play.root / "nonces").iterdir():
        path.unlink()
    with server_of(play, "w1") as first, server_of(play, "w2") as second:
        first.start(), second.start()
        play.remote = {"w1": {"url": first.url}, "w2": {"url": second.url}}
        joined = Joined(play)
        run = joined.run
        play.settle(run)
        play.clock.now = Publication.load(play.public("w-1")).parsed_header().opens_at
        play.ask(run, "w-1", "law-1", QUESTIONS["law"][0])
        assert joined.run.intake is not None and joined.run.intake.offer().windows == ["w-1", "w-2"]
        names = ["law-7", "law-8", "law-9"]
        assert [joined.ask(name).status for name in names] == ["pending"] * 3
        assert play.settle(run) == [] and joined.enrolled() == []
        joined.decide("approve", "--account", "law-7", "--account", "law-8")
        acts = play.settle(run)
        assert "enrol 2 in w-1" in acts and joined.enrolled() == ["law-7", "law-8"]
        assert "notes w-1: beacon-" in " ".join(acts) and run.windows["w-1"].state.waiting == {}
        joined.asks("law-7", QUESTIONS["law"][1])
        told = joined.ask("law-7")
        assert (told.status, told.seq) == ("enrolled", run.windows["w-1"].state.enrolled_at["law-7"])
        joined.decide("approve", "--all")  # another batch, with nonces of its own
        assert "enrol 1 in w-1" in play.settle(run) and joined.ask("law-9").status == "enrolled"
        joined.asks("law-9", QUESTIONS["law"][2])
        assert {line.account for line in load_roster(tmp_path / "roster.json")} >= set(names)
        play.clock.now = Publication.load(play.public("w-1")).parsed_header().closes_at + 1
        acts = play.settle(run)
        assert "close w-1" in acts and "open w-2" in acts
        play.clock.now = Publication.load(play.public("w-2")).parsed_header().opens_at
        joined.asks("law-8", QUESTIONS["law"][0], "w-2")
        roster = [line["account"] for line in Publication.load(play.public("w-2")).roster]  # type: ignore[index, call-overload]
        assert roster[-3:] == names
        assert run.stop(1)
    entries = WindowFile.load(play.public("w-1")).entries
    kinds = [e["type"] for e in entries]  # type: ignore[index, call-overload]
    assert kinds == [
        "header",
        "beacon",
        "query",
        "enrolment",
        "enrolment",
        "beacon",
        "beacon",
        "query",
        "enrolment",
        "beacon",
        "query",
        "trailer",
    ]


def test_witnesses_without_an_address_leave_a_line_and_look(tmp_path: Path) -> None:
    play = Play(tmp_path, accounts_max=5)
    joined = Joined(play)
    joined.activate()
    for name in ("w1", "w2"):  # the next opening's lines are there; more are wanted
        (tmp_path / "nonces").joinpath(next(p.name for p in (tmp_path / "nonces").glob(f"{name}-*"))).unlink()
        next((tmp_path / "nonces").glob(f"{name}-*")).rename(tmp_path / name / "kept")
    joined.ask("law-7")
    joined.decide("approve", "--all")
    assert play.settle(joined.run) == [] and any("wait for a nonce line of w1" in line for line in play.said)
    for name in ("w1", "w2"):
        (tmp_path / name / "kept").rename(tmp_path / "nonces" / f"{name}-late.json")
    acts = play.settle(joined.run)
    assert acts == [
        "nonce of w1 for enrolments of w-1",
        "nonce of w2 for enrolments of w-1",
        "enrol 1 in w-1",
    ]
    assert not list((tmp_path / "nonces").iterdir()) and not list((play.folder / "joining").iterdir())
    assert joined.run.stop(1)
    # Another process goes on with what the log says; the batch waits for the witnesses alone.
    joined.run = play.supervisor()
    assert play.settle(joined.run)[0] == "resume w-1" and joined.enrolled() == ["law-7"]
    trust = tmp_path / "trust.toml"
    trust.write_text(play.service.trust_text(Publication.load(play.public("w-1")).parsed_policy()))
    public = str(play.public("w-1"))
    for command in ("cosign", "beacon"):
        for name in ("w1", "w2"):
            _as_witness(play, command, name, public)
    assert "beacon-3-w1.txt, beacon-3-w2.txt" in play.settle(joined.run)[-1]
    joined.asks("law-7", QUESTIONS["law"][0])
    assert joined.run.stop(1)


def _as_witness(play: Play, command: str, name: str, public: str) -> None:
    """`witness cosign` and `witness beacon` with the witness's clock, which is the test's."""
    from unittest import mock

    from rag_audit.cli import witness as commands

    with mock.patch.object(commands, "Witness", lambda _: play.service.witnesses[name]):
        done = CliRunner().invoke(
            main,
            ["witness", command, str(play.root / name), public, "--trust", str(play.root / "trust.toml")],
        )
    assert done.exit_code == 0, done.output


def test_whom_the_open_window_has_no_place_for_waits_for_the_next(tmp_path: Path) -> None:
    play = Play(tmp_path, accounts_max=3)
    joined = Joined(play)
    joined.activate()
    account = play.service.accounts["law-1"]
    account.keys.renew("law-1")
    request = EnrolmentRequest.sign(account.roster_entry, account.keys.newest, origin=ORIGIN, window="w-1",
                                    previous=account.keys.before)  # fmt: skip
    assert joined.run.intake is not None
    joined.run.intake.answer(json.loads(request.canonical()))
    for name in ("law-7", "law-8"):
        joined.ask(name)
    full = CliRunner().invoke(
        main, ["provider", "enrolments", "approve", str(tmp_path / "provider.toml"), "--all"]
    )
    assert full.exit_code == 2 and "accounts_max" in full.stderr  # or the next window could not be opened
    assert len(load_roster(tmp_path / "roster.json")) == 4
    joined.decide("approve", "--account", "law-7", "--account", "law-1")
    assert play.settle(joined.run)[0] == "enrolments of w-1 are settled"
    told = joined.run.intake.answer(json.loads(request.canonical()))
    assert told.status == "approved" and "repeats an account" in told.reason and told.seq is None
    assert joined.enrolled() == ["law-7"]
    assert joined.run.stop(1)


def test_what_is_approved_after_the_end_is_for_the_next_window(tmp_path: Path) -> None:
    play = Play(tmp_path)
    joined = Joined(play)
    joined.activate()
    joined.ask("law-7")
    play.ask(joined.run, "w-1", "law-1", QUESTIONS["law"][0])
    play.clock.now = Publication.load(play.public("w-1")).parsed_header().closes_at + 1
    joined.decide("approve", "--all")
    acts = play.settle(joined.run)
    assert acts[0] == "1 accounts are not enrolled in w-1" and "close w-1" in acts
    told = joined.ask("law-7")
    assert told.status == "approved" and told.reason.startswith("from the next window on")
    with pytest.raises(RagAuditError, match="the provider accepts no enrolment for that window") as refused:
        joined.ask("law-8", "w-1")
    assert refused.value.expected == "w-2"
    assert joined.run.stop(1)


def test_a_book_that_fails_keeps_no_window_from_its_end(tmp_path: Path) -> None:
    play = Play(tmp_path)
    joined = Joined(play)
    joined.activate()
    play.ask(joined.run, "w-1", "law-1", QUESTIONS["law"][0])
    joined.run._joining.close()
    play.clock.now = Publication.load(play.public("w-1")).parsed_header().closes_at + 1
    assert "close w-1" in play.settle(joined.run)
    assert sum("no account is enrolled:" in line for line in play.said) == 1
    assert joined.run.stop(1)


def test_requests_come_over_http_alone(tmp_path: Path) -> None:
    play = Play(tmp_path)
    with pytest.raises(SchemaError) as refused:
        RunConfig.load(play.configure(enrolment={"requests": "enrolments.sqlite"}))
    assert "serve.http" in str(refused.value.expected)
