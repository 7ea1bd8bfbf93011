"""A run of windows one after the other, step by step, with a clock that the test moves."""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from rag_audit.cli import main
from rag_audit.commit import preparing
from rag_audit.errors import RagAuditError, SetupError, StoreError
from rag_audit.mechanisms.base import TableShape
from rag_audit.mechanisms.sampling import Sampling
from rag_audit.models.drand import QUICKNET
from rag_audit.models.publication import Publication
from rag_audit.models.records import DrandBeacon
from rag_audit.models.requests import Answer, Refusal
from rag_audit.models.windowfile import WindowFile
from rag_audit.retrieval.embedders.hashed_words import HashedWords
from rag_audit.retrieval.engine import CapacityError
from rag_audit.retrieval.texts import DOCUMENT_COLUMN
from rag_audit.service.running.supervisor import RETRY_MS
from tests.counting import counted
from tests.running.play import LASTS, LEAD, Play
from tests.window.simulator import QUESTIONS, TEXTS, Clock, Service
from tests.witness.test_drand import QUICKNET_1000


@pytest.fixture
def play(tmp_path: Path) -> Play:
    return Play(tmp_path)


def test_two_windows_follow_each_other_over_changed_documents(play: Play, tmp_path: Path) -> None:
    play.configure(proving={"records": "all"})
    run = play.supervisor()
    assert play.settle(run) == ["prepare w-1", "ended prepare w-1", "open w-1", "resume w-1"]
    assert len(list((play.root / "nonces").iterdir())) == 4
    play.activate(run, "w-1")
    first = play.ask(run, "w-1", "law-1", QUESTIONS["law"][0])
    assert play.settle(run) == [] and (play.folder / "current").resolve() == play.public("w-1").resolve()
    play.documents({**TEXTS, "law": [*TEXTS["law"][1:], "A statute is a written law."]})
    header = Publication.load(play.public("w-1")).parsed_header()
    assert header.closes_at - header.opens_at == LASTS
    play.clock.now = header.closes_at - 300_000 + 1
    assert play.settle(run) == ["prepare w-2", "ended prepare w-2"]
    assert any("8 vectors reused, 1 texts embedded" in line for line in play.said)
    assert not list((play.public("w-2")).iterdir())
    play.clock.now = header.closes_at + 1
    assert play.settle(run) == ["close w-1", "ended close w-1"]
    assert any("w-1 waits for cosignatures of w1, w2 on its end" in line for line in play.said)
    play.witness("w-1")
    acts = play.settle(run)
    assert acts[-2:] == ["open w-2", "resume w-2"] and "prove w-1" in acts
    assert "done w-1" in play.activate(run, "w-2")
    assert Publication.load(play.public("w-2")).parsed_header().opens_at == header.closes_at + 1 + LEAD
    answer = play.ask(run, "w-2", "law-1", "What is a statute?")
    assert isinstance(first, Answer) and isinstance(answer, Answer)
    play.clock.advance(LASTS)
    play.settle(run)
    play.witness("w-2")
    assert not run.finished
    assert "done w-2" in play.settle(run) and run.finished
    assert any("w-1: the only record is proved (2 new proofs); " in line for line in play.said), play.said
    for name, before in (("w-1", ()), ("w-2", ("w-1",))):
        verdict = play.verdict(name, tmp_path / f"receipts-{name}", *before)
        assert verdict.passed, verdict.deciding
    # Their secrets go on the policy's date.
    kept = Publication.load(play.public("w-1")).parsed_policy().delete_after
    secrets = play.folder / "windows" / "w-1" / "secrets.json"
    play.clock.now = kept - 1
    assert play.settle(run) == [] and secrets.exists()
    play.clock.now = kept
    assert play.settle(run) == ["forget w-1"] and not secrets.exists()
    assert run.stop(1)


def test_a_run_that_ends_between_any_two_steps_goes_on(play: Play) -> None:
    """A new supervisor for every step: nothing is in memory that matters."""
    acts: list[str] = []

    def one() -> str | None:
        run = play.supervisor()
        try:
            act = run.step()
            while act is not None and act.startswith(("resume", "notes")):
                act = run.step()  # which each one does: a note that is taken already stays as it is
        finally:
            assert run.stop(1)
        if act is not None:
            acts.append(act)
        return act

    def all_() -> None:
        while one() is not None:
            assert len(acts) < 60, acts

    for name in ("w-1", "w-2"):
        all_()
        play.witness(name)
        all_()
        play.clock.advance(1_000)
        play.reveal(name)
        all_()
        play.clock.now = Publication.load(play.public(name)).parsed_header().opens_at
        run = play.supervisor()
        play.settle(run)
        assert isinstance(play.ask(run, name, "law-1", QUESTIONS["law"][0]), Answer)
        run.stop(1)
        play.clock.advance(LASTS + 1)
        all_()
        play.witness(name)
        all_()
    assert acts == [
        "prepare w-1",
        "open w-1",
        "close w-1",
        "prepare w-2",
        "open w-2",
        "done w-1",
        "close w-2",
        "done w-2",
    ]
    run = play.supervisor()
    assert run.finished and run.stop(1)


def test_a_witness_that_is_away_delays_the_next_window_and_is_named(play: Play) -> None:
    run = play.supervisor()
    play.settle(run)
    play.activate(run, "w-1")
    play.ask(run, "w-1", "law-1", QUESTIONS["law"][0])
    play.clock.advance(LASTS + 1)
    play.settle(run)
    play.witness("w-1", "w1")
    play.settle(run)
    play.clock.advance(3_600_000)
    assert play.settle(run) == [] and not (play.public("w-2") / "header.json").exists()
    said = [line for line in play.said if "w-1 waits for cosignatures of w2 on its end" in line]
    assert len(said) == 2  # once, and again after an hour
    play.witness("w-1", "w2")
    assert "open w-2" in play.settle(run)
    header = Publication.load(play.public("w-2")).parsed_header()
    assert header.opens_at == play.clock() + LEAD and header.previous is not None
    assert header.previous.abandoned == 0
    run.stop(1)


def test_an_opening_that_the_witnesses_did_not_cosign_in_time_is_abandoned_and_another_one_opened(
    play: Play,
) -> None:
    run = play.supervisor()
    play.settle(run)
    play.witness("w-1", "w1")
    play.settle(run)
    play.clock.advance(LEAD)
    acts = play.settle(run)
    assert acts[:1] == ["abandon w-1"] and "prepare w-2" in acts
    assert any("w-1 lacks cosignatures of w2" in line and "abandoned" in line for line in play.said)
    assert not (play.public("w-2") / "header.json").exists()  # w1 knows the window, so it has to see its end
    play.witness("w-1", "w1")
    assert "open w-2" in play.settle(run)
    previous = Publication.load(play.public("w-2")).parsed_header().previous
    assert previous is not None and previous.abandoned == 1
    assert not run.finished
    run.stop(1)


def test_a_window_that_no_witness_saw_is_in_nobody_s_chain(play: Play) -> None:
    run = play.supervisor()
    play.settle(run)
    play.clock.advance(LEAD)
    assert "open w-2" in play.settle(run)
    assert Publication.load(play.public("w-2")).parsed_header().previous is None
    assert "done w-1" in play.activate(run, "w-2")
    assert isinstance(play.ask(run, "w-2", "law-1", QUESTIONS["law"][0]), Answer)
    run.stop(1)


def test_reveals_that_come_late_open_the_window_late(play: Play) -> None:
    run = play.supervisor()
    play.settle(run)
    play.witness("w-1")
    play.settle(run)
    play.clock.advance(LEAD + 60_000)
    assert play.settle(run) == []
    assert any("reveals of w1, w2" in line and "opens late" in line for line in play.said)
    play.reveal("w-1")
    assert play.settle(run) != []
    assert isinstance(play.ask(run, "w-1", "law-1", QUESTIONS["law"][0]), Answer)
    run.stop(1)


def test_a_window_with_a_drand_round_opens_once_its_signature_lies_there(tmp_path: Path) -> None:
    due = QUICKNET.round_time(1000)
    play = Play(tmp_path, Service(tmp_path, clock=Clock(1_000 * (due - 61) - LEAD)))
    path = play.root / "provider.toml"
    path.write_text('beacon = "drand"\n' + path.read_text())
    run = play.supervisor()
    assert "open w-1" in play.settle(run)
    source = Publication.load(play.public("w-1")).parsed_header().beacon
    assert isinstance(source, DrandBeacon) and source.round == 1000
    play.witness("w-1")
    play.settle(run)
    assert any("waits for round 1000 of drand" in line for line in play.said)
    play.clock.now = 1_000 * due
    note = play.public("w-1") / "notes" / "drand-1000.txt"
    note.write_text("00" * 48)
    assert play.settle(run) == [] and any(
        "w-1: " in line and "the next attempt follows in" in line for line in play.said
    )
    note.write_text(QUICKNET_1000 + "\n")
    play.clock.advance(30_001)
    assert play.settle(run) == ["beacon w-1"]
    assert isinstance(play.ask(run, "w-1", "law-1", QUESTIONS["law"][0]), Answer)
    run.stop(1)


def test_a_window_is_shut_only_once_nobody_uses_it(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    """What serves HTTP counts the requests that use a window by itself."""
    run = play.supervisor()
    play.settle(run)
    window, requested = run.windows["w-1"], []

    def unused(given: object, seconds: float) -> bool:
        requested.append((given, window.state.store.failure, seconds > 0, run.served.newest))
        window.refuse("not-open", "is it still open?")
        return True

    monkeypatch.setattr(run.served, "unused", unused)
    assert run.served.named(window.header_digest) is window and run.served.named("00" * 32) is None
    play.clock.now = Publication.load(play.public("w-1")).parsed_policy().delete_after
    run.step()
    assert requested == [(window, None, True, None)]
    run.stop(1)


def test_a_reveal_that_comes_before_a_cosignature_is_taken_with_it(play: Play) -> None:
    run = play.supervisor()
    play.settle(run)
    play.witness("w-1")
    play.clock.advance(1_000)
    play.reveal("w-1")
    late = play.public("w-1") / "notes" / "cosign-1-w2.txt"
    late.rename(play.root / "late")
    assert any(act.startswith("notes") for act in play.settle(run))
    assert run.windows["w-1"].status == "committed"
    (play.root / "late").rename(late)
    play.settle(run)
    assert run.windows["w-1"].status == "active"
    run.stop(1)


def test_a_window_that_is_not_done_by_its_date_of_deletion_is_deleted_all_the_same(play: Play) -> None:
    run = play.supervisor()
    play.settle(run)
    play.activate(run, "w-1")
    play.clock.now = Publication.load(play.public("w-1")).parsed_policy().delete_after
    assert play.settle(run)[:2] == ["done w-1", "prepare w-2"]
    assert not (play.folder / "windows" / "w-1" / "secrets.json").exists()
    assert any(
        "is not finished on its policy's date of deletion, so the run stops working on it" in line
        for line in play.said
    )
    run.stop(1)


def test_without_nonce_lines_a_run_waits_and_says_of_whom(play: Play) -> None:
    for path in (play.root / "nonces").glob("w2-*"):
        path.unlink()
    (play.root / "nonces" / "noise").write_text("{}")
    run = play.supervisor()
    assert play.settle(run) == ["prepare w-1", "ended prepare w-1"]
    assert any(
        "w-1 waits for nonces of w2: each runs `rag-audit witness nonce`" in line for line in play.said
    )
    run.step()
    assert sum("noise is not a nonce line" in line for line in play.said) == 1
    play.nonces(1, "w2")
    assert play.settle(run)[:1] == ["open w-1"]
    run.stop(1)


def test_a_challenge_is_answered_and_answered_once(play: Play, tmp_path: Path) -> None:
    play.configure(schedule={"windows": 1})
    run = play.supervisor()
    play.settle(run)
    play.activate(run, "w-1")
    play.settle(run)
    for tenant in TEXTS:
        play.ask(run, "w-1", f"{tenant}-1", QUESTIONS[tenant][0])
    play.clock.advance(LASTS + 1)
    play.settle(run)
    play.witness("w-1")
    assert play.settle(run)[-1] == "done w-1" and run.finished
    window = type("Closed", (), {"directory": play.folder / "windows" / "w-1",
                                 "header": Publication.load(play.public("w-1")).parsed_header()})  # fmt: skip
    notes = play.public("w-1") / "notes"
    (notes / "challenge-a.txt").write_text(play.service.challenge(window))  # type: ignore[arg-type]
    (notes / "challenge-b.txt").write_text("no note\n")
    (notes / "challenge-0.txt").write_bytes(b"\xff")
    (notes / "challenge-1.txt").mkdir()
    acts = play.settle(run)
    assert "challenge w-1/challenge-a.txt" in acts
    (told,) = [line for line in play.said if "challenge-a.txt" in line]
    assert re.fullmatch(
        r"w-1: the records that challenge-a\.txt draws are proved \([1-9][0-9]* new proofs\)", told
    )
    for name in ("0", "1", "b"):
        assert sum(f"challenge-{name}.txt is not answered" in line for line in play.said) == 1
    assert run.stop(1)
    again = play.supervisor()
    assert not any("challenge-a" in act for act in play.settle(again))
    assert again.stop(1)
    assert play.verdict("w-1", tmp_path / "receipts").passed


def test_a_clock_that_goes_back_is_said_and_keeps_the_order_of_entries(play: Play) -> None:
    run = play.supervisor()
    play.settle(run)
    play.activate(run, "w-1")
    play.clock.advance(120_000)
    play.ask(run, "w-1", "law-1", QUESTIONS["law"][0])
    play.settle(run)
    play.clock.advance(-100_000)
    assert play.settle(run) == []
    assert any("the clock went back by 10" in line for line in play.said)
    play.ask(run, "w-1", "medicine-1", QUESTIONS["medicine"][0])
    records = run.windows["w-1"].records
    assert records[1].ts >= records[0].ts
    run.stop(1)


def test_a_document_that_cannot_be_read_keeps_the_window_from_being_made_or_is_left_out(play: Play) -> None:
    with (play.root / "docs" / "law.jsonl").open("ab") as file:
        file.write(b'{"text": 3}\n')
    run = play.supervisor()
    assert play.settle(run) == ["prepare w-1"]
    assert any("law.jsonl, line 6" in line and "the next attempt follows in" in line for line in play.said)
    run.stop(1)
    play.said.clear()
    play.configure(documents={"skip_unreadable": True})
    run = play.supervisor()
    assert "open w-1" in play.settle(run)
    assert any("omitted 1: the line is not a document: law.jsonl, line 6" in line for line in play.said)
    assert any("read law: 5 documents in 5 positions from 1 file" in line for line in play.said)
    run.stop(1)


def test_a_failed_act_is_in_the_status_until_it_succeeds(play: Play) -> None:
    def status() -> dict[str, Any]:
        return dict(
            json.loads(CliRunner().invoke(main, ["provider", "status", str(play.folder), "--json"]).stdout)
        )

    with (play.root / "docs" / "law.jsonl").open("ab") as file:
        file.write(b'{"text": 3}\n')
    run = play.supervisor()
    play.settle(run)
    first = play.clock.now
    play.clock.advance(RETRY_MS)
    play.settle(run)
    [failure] = status()["failures"]
    assert any("a change of provider.toml needs a restart" in line for line in play.said)
    assert failure["action"] == "prepare w-1" and "law.jsonl, line 6" in failure["message"]
    assert (failure["attempts"], failure["first_at"], failure["last_at"]) == (2, first, play.clock.now)
    assert failure["next_at"] == play.clock.now + RETRY_MS and status()["free_bytes"] > 0
    text = CliRunner().invoke(main, ["provider", "status", str(play.folder)]).stdout
    assert "prepare w-1 failed 2 times since" in text and "the next attempt follows at" in text
    play.documents(TEXTS)
    play.clock.advance(RETRY_MS)
    assert "open w-1" in play.settle(run) and status()["failures"] == []
    run.stop(1)


def enlarge(play: Play) -> None:
    play.documents({**TEXTS, "law": [f"Statute {number} is a written law." for number in range(100)]})


def remove_documents(play: Play) -> None:
    shutil.rmtree(play.root / "docs")


@pytest.mark.parametrize(
    ("harm", "error"),
    [
        (enlarge, "more documents than the tenant's capacity"),
        (remove_documents, "the folder of the documents does not exist"),
    ],
)
def test_a_preparation_that_cannot_succeed_ends_the_run_and_is_not_repeated(
    play: Play, harm: Callable[[Play], None], error: str
) -> None:
    harm(play)
    run = play.supervisor()
    assert run.step() == "prepare w-1"
    with pytest.raises(RagAuditError, match=error):
        while True:
            run.step()
    assert sum("prepare w-1" in line for line in play.said) == 1 and not run.finished
    assert any(error in line and "the run makes no further window" in line for line in play.said)
    [failure] = run.directory.state.failures
    assert failure.action == "prepare w-1" and failure.next_at == 0
    run.stop(1)
    text = CliRunner().invoke(main, ["provider", "status", str(play.folder)]).stdout
    assert text.startswith("no process runs it: correct the object of the failure below")
    assert "the run makes no further attempt" in text


@pytest.mark.parametrize(
    ("texts", "told"),
    [
        ([f"Statute {number}." for number in range(7)], ["law: documents", "--documents", "--fresh-rows"]),
        (["One.", "Two.", "Three."], ["law: 'long'", "--positions-per-document", "documents.chunk"]),
    ],
    ids=["too few rows", "a document above the limit"],
)
def test_documents_that_do_not_fit_the_table_end_the_run(
    tmp_path: Path, texts: list[str], told: list[str]
) -> None:
    table = Sampling(keep=1 << 39, documents=TableShape(8, 2, 2))
    play = Play(tmp_path, mechanisms=dict.fromkeys(TEXTS, table))
    play.documents({**TEXTS, "law": texts})
    if len(texts) == 3:
        path = play.root / "docs" / "law.jsonl"
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        path.write_text("".join(json.dumps({**line, DOCUMENT_COLUMN: "long"}) + "\n" for line in lines))
    run = play.supervisor()
    with pytest.raises(RagAuditError) as caught:
        for _ in range(5):
            run.step()
    assert caught.value.exit_code == 2
    [failure] = run.directory.state.failures
    assert failure.next_at == 0 and all(word in failure.message for word in told), failure.message
    run.stop(1)


@pytest.mark.parametrize("harm", [enlarge, remove_documents])
def test_a_preparation_that_cannot_succeed_embeds_no_text(play: Play, harm: Callable[[Play], None]) -> None:
    harm(play)
    run = play.supervisor()
    with counted(HashedWords, "embed_documents") as embedded, pytest.raises(RagAuditError) as caught:
        while True:
            run.step()
    assert embedded.count == 0 and caught.value.exit_code == 2
    run.stop(1)


def test_the_next_attempt_reuses_the_vectors_of_a_failed_one(
    play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = sum(map(len, TEXTS.values()))

    def fails(*arguments: object, **options: object) -> None:
        raise StoreError("the disk is full")

    run = play.supervisor()
    with counted(HashedWords, "embed_documents", lambda _, texts, **__: len(texts)) as embedded:
        with monkeypatch.context() as patch:
            patch.setattr(preparing, "replace_file", fails)
            play.settle(run)
        assert "prepare w-1" in [f.action for f in run.directory.state.failures] and embedded.count == texts
        play.clock.advance(RETRY_MS)
        assert "open w-1" in play.settle(run)
    assert embedded.count == texts, "the second attempt embeds no text"
    run.stop(1)


def test_a_preparation_that_cannot_succeed_lets_the_open_window_end(play: Play, tmp_path: Path) -> None:
    play.configure(proving={"records": "all"})
    run = play.supervisor()
    play.settle(run)
    play.activate(run, "w-1")
    enlarge(play)
    closes = Publication.load(play.public("w-1")).parsed_header().closes_at
    play.clock.now = closes - 300_000 + 1
    assert play.settle(run)[0] == "prepare w-2"
    assert isinstance(play.ask(run, "w-1", "law-1", QUESTIONS["law"][0]), Answer)
    play.clock.now = closes + 1
    assert play.settle(run) == ["close w-1", "ended close w-1"]
    play.witness("w-1")
    with pytest.raises(CapacityError):
        play.settle(run)
    assert play.verdict("w-1", tmp_path / "receipts").passed
    run.stop(1)


def test_a_full_disk_loses_no_answer_and_records_none_by_half(
    play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = play.supervisor()
    play.settle(run)
    play.activate(run, "w-1")
    play.settle(run)
    window = run.windows["w-1"]
    publication = Publication.load(play.public("w-1"))
    real = type(window.state.store)._execute

    def full(self: Any, statement: str, *parameters: object) -> Any:
        if statement == "COMMIT":
            raise sqlite3.OperationalError("database or disk is full")
        return real(self, statement, *parameters)

    request = play.service.accounts["law-1"].request(publication, QUESTIONS["law"][0])
    value = json.loads(request.canonical())
    with monkeypatch.context() as patch:
        patch.setattr(type(window.state.store), "_execute", full)
        refusal = run.served.handle(value)
        assert isinstance(refusal, Refusal) and refusal.reason == "unavailable"
    with monkeypatch.context() as patch:

        def no_room(_: Path) -> None:
            raise StoreError("cannot be written", actual="No space left on device")

        patch.setattr("rag_audit.service.running.supervisor.try_room", no_room)
        assert play.settle(run) == []
        assert run.windows["w-1"] is window and isinstance(run.served.handle(value), Refusal)
        assert any("The service refuses requests and loses none" in line for line in play.said)
    play.clock.advance(30_001)
    assert "resume w-1" in play.settle(run)
    assert isinstance(run.served.handle(value), Answer)
    assert [(r.account, r.i) for r in run.windows["w-1"].records] == [("law-1", 1)]
    assert isinstance(run.served.handle(value), Answer) and len(run.windows["w-1"].records) == 1
    run.stop(1)


def test_a_folder_is_run_by_one_process(play: Play) -> None:
    run = play.supervisor()
    with pytest.raises(SetupError, match="another process uses this folder"):
        play.supervisor()
    run.stop(1)
    play.configure(schedule={"prefix": "other-"})
    with pytest.raises(SetupError, match="another prefix"):
        play.supervisor()
    play.configure()
    play.supervisor().stop(1)


def test_late_requests_reach_the_window_that_recorded_them(play: Play) -> None:
    run = play.supervisor()
    play.settle(run)
    play.activate(run, "w-1")
    play.settle(run)
    publication = Publication.load(play.public("w-1"))
    request = play.service.accounts["law-1"].request(publication, QUESTIONS["law"][0])
    value = json.loads(request.canonical())
    answer = run.served.handle(value)
    assert isinstance(answer, Answer)
    play.clock.advance(LASTS + 1)
    play.settle(run)
    play.witness("w-1")
    play.settle(run)
    assert set(run.windows) == {"w-1", "w-2"}
    assert isinstance(again := run.served.handle(value), Answer) and again.documents == answer.documents
    late = run.served.handle({**value, "i": 2})
    assert isinstance(late, Refusal) and late.header == publication.header_digest()
    run.stop(1)
    assert WindowFile.load(play.public("w-1")).entries
