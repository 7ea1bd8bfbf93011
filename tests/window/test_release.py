"""Answers that are proved first: when they leave says nothing of how long the proof took."""

from __future__ import annotations

import json
import logging
import threading
from typing import Any

import pytest

from rag_audit.attest import proving
from rag_audit.attest.release import Release, period_of
from rag_audit.attest.window import Window
from rag_audit.errors import PolicyError
from rag_audit.models.publication import Publication
from rag_audit.models.requests import Refusal
from tests.window.simulator import QUESTIONS, Service

PERIOD_S = 4.0
QUESTION = QUESTIONS["law"][0]


class Prover:
    """Takes the time that it is told, on the window's own clock, and proves nothing."""

    def __init__(self, service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
        self.service = service
        self.takes_ms = 0
        self.proved = 0
        monkeypatch.setattr(proving.Prover, "prove_now", lambda own, draft, query, positions: self.prove())

    def prove(self) -> str:
        self.service.clock.advance(self.takes_ms)
        self.proved += 1
        return "ab" * 32

    def schedule(self, **changes: Any) -> Release:
        """On the service's clock, which jumps where others would wait."""
        clock = self.service.clock
        values = {"clock": lambda: clock.now / 1000, "sleep": lambda s: clock.advance(round(s * 1000))}
        return Release(PERIOD_S, **{**values, **changes})


@pytest.fixture
def prover(service: Service, monkeypatch: pytest.MonkeyPatch) -> Prover:
    return Prover(service, monkeypatch)


def waited(service: Service, window: Window, account: str, text: str, *, eager: bool = True) -> list[int]:
    """Milliseconds from a request to its record's time, and to its answer."""
    publication = Publication.load(window.directory / "public")
    sent = service.clock.now
    request = service.accounts[account].request(publication, text)
    reply = window.handle(json.loads(request.canonical()), eager=eager)
    service.accounts[account].accept(publication, request, reply.dump(), service.key.verifier)
    return [window.records[-1].ts - sent, service.clock.now - sent]


def test_a_proof_of_any_length_leaves_at_the_same_time(service: Service, prover: Prover) -> None:
    with service.open() as window:
        window.release = prover.schedule()
        for takes, question in zip((20, 3_990, 4_000), QUESTIONS["law"], strict=True):
            prover.takes_ms = takes
            assert waited(service, window, "law-1", question) == [4_000, 4_000]
        assert window.release.missed == 0 and prover.proved == 3


def test_a_missed_slot_is_the_next_one_and_is_said_without_secrets(
    service: Service, prover: Prover, caplog: pytest.LogCaptureFixture
) -> None:
    with service.open() as window, caplog.at_level(logging.WARNING):
        window.release = prover.schedule()
        prover.takes_ms = 4_001
        assert waited(service, window, "law-1", QUESTION) == [8_000, 8_000]
        prover.takes_ms = 11_000
        assert waited(service, window, "law-1", QUESTIONS["law"][1]) == [12_000, 12_000]
        assert window.release.missed == 2
    said = [r.getMessage() for r in caplog.records if r.name == "rag_audit.attest.release"]
    assert len(said) == 2 and "4 s after its request (2 so far)" in said[1]
    assert not any("law" in line or QUESTION in line or "4001" in line for line in said)


def test_other_answers_are_not_held(service: Service, prover: Prover) -> None:
    with service.open() as window:
        window.release = prover.schedule()
        assert waited(service, window, "law-1", QUESTION, eager=False) == [0, 0]
        # The same request again is answered from the store, at once.
        waited(service, window, "law-2", QUESTION)
        now = service.clock.now
        publication = Publication.load(window.directory / "public")
        assert publication and prover.proved == 1 and service.clock.now == now


def test_others_are_answered_while_one_waits(service: Service, prover: Prover) -> None:
    waiting, go_on = threading.Event(), threading.Event()

    def sleep(seconds: float) -> None:
        waiting.set()
        assert go_on.wait(60)
        service.clock.advance(round(seconds * 1000))

    with service.open() as window:
        window.release = prover.schedule(sleep=sleep)
        result: list[Any] = []
        asker = threading.Thread(target=lambda: result.append(waited(service, window, "law-1", QUESTION)))
        asker.start()
        try:
            assert waiting.wait(60) and not window.records
            assert waited(service, window, "law-2", QUESTION, eager=False) == [0, 0]
            assert [r.account for r in window.records] == ["law-2"]
        finally:
            go_on.set()
            asker.join()
        assert result == [[4_000, 4_000]]


def test_a_slot_after_the_windows_end_is_no_answer(service: Service, prover: Prover) -> None:
    with service.open() as window:
        window.release = prover.schedule()
        service.clock.now = window.header.closes_at - 100
        publication = Publication.load(window.directory / "public")
        request = service.accounts["law-1"].request(publication, QUESTION)
        reply = window.handle(json.loads(request.canonical()), eager=True)
        assert isinstance(reply, Refusal) and reply.reason == "closed" and not window.records


def test_the_period_is_a_public_size_or_the_providers() -> None:
    assert [period_of(64, 1), period_of(100_000, 1), period_of(100_000, 3), period_of(10**6, 3)] == [
        2,
        2,
        4,
        31,
    ]
    for bad in (0.0, -1.0, float("nan"), float("inf"), 3_601.0):
        with pytest.raises(PolicyError, match="period") as caught:
            Release(bad)
        assert caught.value.field == "release.period_s"
    schedule = Release(clock=lambda: 10.0, sleep=lambda s: pytest.fail(f"waits {s}"))
    schedule.delay(8.0, capacity=64, components=1)
    assert schedule.missed == 0
