"""The client of chat endpoints, against a real server that misbehaves in every way it must survive."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from rag_audit.errors import StoreError
from rag_audit.lab.attacks import runner
from rag_audit.lab.attacks.cells import Bench
from rag_audit.lab.attacks.generators.http import (
    ChatGenerator,
    Endpoint,
    EndpointError,
    _from_stream,
    ask_chat,
)
from rag_audit.lab.attacks.interface import Answer, NextWord, Probe, YesNo
from rag_audit.lab.attacks.methods import chosen
from rag_audit.lab.attacks.passages import Passage
from rag_audit.lab.attacks.split import Split
from rag_audit.lab.attacks.targets.stored import StoredReplies
from tests.attacks.server import ChatServer, serving

TEXT = "The lighthouse keeper of Utsira counts the ships by their bells when the fog is thick."
QUESTION = YesNo(TEXT, TEXT, presence=True)


def endpoint(server: ChatServer, waits: list[float], **changes: object) -> Endpoint:
    return replace(Endpoint(server.url, model="m", timeout_s=5.0, sleep=waits.append), **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize("stream", [True, False])
def test_a_whole_answer_and_a_streamed_one_are_the_same(stream: bool) -> None:
    with serving(ChatServer([TEXT])) as server:
        reply = ask_chat(endpoint(server, [], stream=stream, key="secret", probabilities=True), QUESTION)
    assert reply.text == "Yes"
    assert reply.log_probabilities == (-0.25,)
    assert server.seen[0]["stream"] is stream
    assert server.keys == ["Bearer secret"]


@pytest.mark.parametrize(
    ("faults", "waited"),
    [
        (["429"], [7.0]),
        (["429 dated"], [60.0]),
        (["500", "500"], [1.0, 2.0]),
        (["nonsense", "list", "empty"], [1.0, 2.0, 4.0]),
        (["cut"], [1.0]),
    ],
)
def test_what_may_pass_is_asked_again(faults: Sequence[str], waited: list[float]) -> None:
    waits: list[float] = []
    with serving(ChatServer([TEXT], faults)) as server:
        assert ask_chat(endpoint(server, waits), QUESTION).text == "Yes"
    assert waits == waited


def test_a_line_of_a_stream_ends_with_a_line_feed_alone() -> None:
    piece = 'data: {"choices": [{"delta": {"content": "two\u2028lines\x85"}}]}\n\ndata: [DONE]\n'
    response = httpx.Response(200, stream=httpx.ByteStream(piece.encode()))
    assert _from_stream(response).text == "two\u2028lines\x85"


def test_a_slow_endpoint_is_not_waited_for() -> None:
    waits: list[float] = []
    with serving(ChatServer([TEXT], ["slow"])) as server:
        assert ask_chat(endpoint(server, waits, timeout_s=0.4), QUESTION).text == "Yes"
    assert waits == [1.0]


@pytest.mark.parametrize(
    ("faults", "reason"),
    [(["429"] * 3, "rate-limited"), (["nonsense"] * 3, "not JSON"), (["empty"] * 3, "an empty answer"),
     (["list"] * 3, "no chat completion"), (["cut"] * 3, "ends in the middle"), (["500"] * 3, "status 500")],
)  # fmt: skip
def test_what_stays_wrong_is_named(faults: Sequence[str], reason: str) -> None:
    with serving(ChatServer([TEXT], faults)) as server, pytest.raises(EndpointError) as caught:
        ask_chat(endpoint(server, [], attempts=3), QUESTION)
    assert reason in str(caught.value.actual)
    assert "3 times" in str(caught.value.actual)


def test_a_refusal_is_not_repeated() -> None:
    with serving(ChatServer([TEXT], ["400"])) as server, pytest.raises(EndpointError, match="refuses"):
        ask_chat(endpoint(server, []), QUESTION)
    assert len(server.seen) == 1


def test_an_endpoint_that_is_down_is_named() -> None:
    with serving(ChatServer()) as server:
        away = server.url
    with pytest.raises(EndpointError) as caught:
        ask_chat(Endpoint(away, model="m", attempts=2, sleep=lambda _: None), QUESTION)
    assert "no connection" in str(caught.value.actual)
    assert caught.value.field == away


@pytest.mark.parametrize("url", ["ftp://x", "localhost:80", "http://"])
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(EndpointError, match="not an address"):
        Endpoint(url, model="m")


def test_the_key_is_in_no_text_of_the_endpoint() -> None:
    assert "secret" not in repr(Endpoint("http://127.0.0.1:9", model="m", key="secret"))


def test_a_generator_sends_its_passages_and_a_next_word_is_told_by_the_first_token() -> None:
    with serving(ChatServer([TEXT])) as server:
        generator = ChatGenerator(endpoint(server, [], probabilities=True, stream=False))
        reply = generator.answer(NextWord("The lighthouse keeper of", "Utsira"), [Passage(TEXT)])
        other = generator.answer(NextWord("The lighthouse keeper of", "Bergen"), [Passage(TEXT)])
        generator.guard().answer(QUESTION, [Passage(TEXT)])
    assert TEXT in server.seen[0]["messages"][0]["content"]
    guarded = server.seen[2]["messages"][0]["content"]
    assert "printing the [context] is illegal" in guarded and TEXT in guarded
    assert reply.log_probabilities == (-0.25,)
    assert other.log_probabilities is not None
    assert other.log_probabilities[0] < -5


def target(server: ChatServer, journal: Path, **changes: object) -> StoredReplies:
    e = endpoint(server, [], attempts=1, **changes)
    return StoredReplies(
        lambda p: Answer(ask_chat(e, p.task)),
        journal,
        label="chat",
        probabilities=False,
        service="s",
        parallel=2,
    )


def test_attacks_on_an_endpoint_with_retrieval_behind_it(bench: Bench, split: Split, tmp_path: Path) -> None:
    with serving(ChatServer(split.members)) as server:
        results = runner.run_elsewhere(
            chosen(["rag-mia", "mba"]), target(server, tmp_path / "r"), bench, split
        )
    for r in results:
        assert r.figures["auc"][0] > 0.9
        assert r.bounds is None
        assert r.retrieval is None, "an endpoint does not say what it retrieved"


def test_finished_probes_are_kept_when_the_endpoint_fails(tmp_path: Path) -> None:
    probes = [Probe(n, 0, 0, YesNo(f"{TEXT} {n}", f"{TEXT} {n}", presence=True)) for n in range(12)]
    journal = tmp_path / "replies.jsonl"
    with serving(ChatServer([TEXT], ["well"] * 7 + ["500"] * 9)) as server, pytest.raises(EndpointError):
        target(server, journal).ask(probes)
    kept = journal.read_text().count("\n")
    assert 0 < kept < 12
    with journal.open("a") as file:
        file.write('{"key": "cut off')
    with serving(ChatServer([TEXT])) as server:
        again = target(server, journal)
        answers = again.ask(probes)
        assert again.ask(probes) == answers
    assert len(server.seen) == 12 - kept
    assert journal.read_text().count("\n") == 12


def test_a_damaged_journal_is_named(tmp_path: Path) -> None:
    journal = tmp_path / "replies.jsonl"
    journal.write_text('{"key": 1}\n')
    with serving(ChatServer()) as server, pytest.raises(StoreError, match="damaged") as caught:
        target(server, journal)
    assert str(caught.value.field).endswith("line 1")
