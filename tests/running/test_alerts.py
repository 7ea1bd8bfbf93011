"""The alert rules of docs/deploy/alerts.yml against the metrics of runs: no rule fires while a window serves, each fires in
the situation that it is for, and `readyz` names the cause.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from rag_audit.errors import StoreError
from rag_audit.service.app import WindowApplication
from rag_audit.service.limits import Limits
from rag_audit.service.running import health, witnesses
from rag_audit.service.running.health import RunHealth
from rag_audit.service.running.supervisor import RETRY_MS
from rag_audit.service.server import Server, listen
from rag_audit.witness.http import Provider, WitnessApplication, WitnessService
from rag_audit.witness.offers import Offers
from tests.running.play import LASTS, LEAD, Play
from tests.running.promql import Scrape, Vector, evaluate, names
from tests.running.test_asking import server_of
from tests.window.simulator import QUESTIONS, TEXTS

ROOT = Path(__file__).parents[2]
RULES: dict[str, dict[str, Any]] = {
    rule["alert"]: rule
    for group in yaml.safe_load((ROOT / "docs/deploy/alerts.yml").read_text())["groups"]
    for rule in group["rules"]
}


class Watched:
    """A run and the scrapes of its metrics."""

    def __init__(self, play: Play) -> None:
        self.play = play
        self.server: Server | None = None
        self.start()

    def start(self) -> None:
        """Start the run with the configuration that the folder has now."""
        self.run = self.play.supervisor()
        self.app = WindowApplication(self.run.served, Limits(), iter(()), _raise, lambda: False)
        self.health = RunHealth(self.run)
        self.app.add(self.health)
        self.app.cause = self.health.cause
        self.scrapes: list[Scrape] = []

    def stop(self) -> None:
        self.run.stop(1)
        self.app.close()
        if self.server is not None:
            self.server.shut()

    def scrape(self) -> Scrape:
        self.scrapes.append(Scrape.of(self.play.clock() / 1000, self.app.metrics()))
        return self.scrapes[-1]

    def fires(self, alert: str) -> Vector:
        return evaluate(RULES[alert]["expr"], self.scrapes)

    def unready(self) -> str | None:
        return asyncio.run(self.app.unready())

    def serve(self) -> None:
        """Bring the first window to its time."""
        self.play.settle(self.run)
        self.play.activate(self.run, "w-1")
        self.play.settle(self.run)

    def until_preparation(self) -> None:
        header = self.run.windows["w-1"].header
        self.play.clock.now = header.closes_at - 300_000 + 1


def _raise(exc: BaseException) -> None:
    raise exc


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[Watched]:
    result = Watched(Play(tmp_path))
    yield result
    result.stop()


class Situation(NamedTuple):
    """What happens after a scrape during which the rule must not fire.

    :param before: what happens before this scrape
    :param after: what happens after it
    :param cause: what `readyz` then says, or None if the window answers
    """

    before: Callable[[Watched, pytest.MonkeyPatch], object]
    after: Callable[[Watched, pytest.MonkeyPatch], object]
    cause: str | None = None


def serves(watched: Watched, patch: pytest.MonkeyPatch) -> None:
    watched.serve()


def ends(watched: Watched, patch: pytest.MonkeyPatch) -> None:
    """The window is over, and no witness looks."""
    watched.play.ask(watched.run, "w-1", "law-1", QUESTIONS["law"][0])
    watched.play.clock.advance(LASTS + 1)
    watched.play.settle(watched.run)


def ends_long_ago(watched: Watched, patch: pytest.MonkeyPatch) -> None:
    ends(watched, patch)
    watched.play.clock.advance(601_000)
    watched.run.step()


def grows(watched: Watched, patch: pytest.MonkeyPatch) -> None:
    """There are more passages than positions, and the window's time passes."""
    watched.play.documents({**TEXTS, "law": [f"Clause {n} is a text." for n in range(5000)]})
    watched.until_preparation()
    watched.play.settle(watched.run)
    ends(watched, patch)


def has_a_faulty_line(watched: Watched, patch: pytest.MonkeyPatch) -> None:
    with (watched.play.root / "docs" / "law.jsonl").open("ab") as file:
        file.write(b'{"text": 3}\n')
    watched.until_preparation()
    watched.play.settle(watched.run)


def fails_again_and_again(watched: Watched, patch: pytest.MonkeyPatch) -> None:
    has_a_faulty_line(watched, patch)
    for _ in range(11):
        watched.play.clock.advance(RETRY_MS + 1)
        watched.play.settle(watched.run)


def has_a_dead_witness(watched: Watched, patch: pytest.MonkeyPatch) -> None:
    watched.stop()
    watched.play.remote = {"w2": {"url": "http://127.0.0.1:1"}}
    watched.play.configure()
    watched.start()
    watched.play.settle(watched.run)


def waits(watched: Watched, patch: pytest.MonkeyPatch) -> None:
    watched.play.clock.advance(601_000)
    watched.run.step()


def has_a_witness(watched: Watched, patch: pytest.MonkeyPatch) -> None:
    watched.stop()
    server = server_of(watched.play, "w1")
    server.start()
    watched.play.remote = {"w1": {"url": server.url}}
    watched.play.configure()
    watched.start()
    watched.play.settle(watched.run)  # it cosigns
    watched.server = server


def answers_slowly(watched: Watched, patch: pytest.MonkeyPatch) -> None:
    ticks = iter(range(0, 1000, 6))
    patch.setattr(witnesses, "monotonic", lambda: next(ticks))
    watched.play.witness("w-1", "w2")
    watched.play.clock.advance(1_000)
    watched.play.settle(watched.run)  # and reveals its nonce


def fills_the_disk(watched: Watched, patch: pytest.MonkeyPatch) -> None:
    usage = type("Usage", (), {"total": 100, "free": 9})
    patch.setattr(health.shutil, "disk_usage", lambda _: usage)


def cannot_write(watched: Watched, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(watched.run.windows["w-1"].state.store, "_failure", StoreError("cannot be written"))


def published(watched: Watched, patch: pytest.MonkeyPatch) -> None:
    watched.play.settle(watched.run)
    watched.play.witness("w-1", "w1")
    watched.play.settle(watched.run)


def misses_a_cosignature(watched: Watched, patch: pytest.MonkeyPatch) -> None:
    watched.play.clock.advance(LEAD)
    watched.play.settle(watched.run)


def stands_still(watched: Watched, patch: pytest.MonkeyPatch) -> None:
    watched.play.clock.advance(301_000)


SITUATIONS = {
    "RagAuditNotServing": Situation(serves, ends, "the window is closed: w-1 waits for cosignatures of w1, w2 on its end"),
    "RagAuditNoFurtherWindow": Situation(serves, grows, "the run makes no further window, because"),
    "RagAuditPreparationFails": Situation(serves, has_a_faulty_line),
    "RagAuditManyRetries": Situation(
        serves, fails_again_and_again, "the window is closed: prepare w-2 failed: the line is not a document"
    ),
    "RagAuditWitnessDown": Situation(has_a_dead_witness, waits, "the window is"),
    "RagAuditWitnessSlow": Situation(has_a_witness, answers_slowly, "the window is committed: w-1 waits for reveals of w2"),
    "RagAuditProofsWaiting": Situation(serves, ends, "the window is closed"),
    "RagAuditDiskFills": Situation(serves, fills_the_disk),
    "RagAuditLedgerUnwritable": Situation(serves, cannot_write, "the ledger could not be written"),
    "RagAuditWindowOverdue": Situation(serves, ends_long_ago, "the window is closed"),
    "RagAuditWindowAbandoned": Situation(published, misses_a_cosignature, "the window is"),
    "RagAuditRunStuck": Situation(serves, stands_still),
}  # fmt: skip


def test_there_are_twelve_rules_with_a_situation_each() -> None:
    assert len(RULES) == 12 and RULES.keys() == SITUATIONS.keys()
    for rule in RULES.values():
        assert rule.keys() <= {"alert", "expr", "for", "labels", "annotations"}
        assert re.fullmatch(r"[0-9]+[smhd]", rule.get("for", "0s"))
        assert rule["labels"]["severity"] in ("critical", "warning")
        assert rule["annotations"].keys() == {"summary", "action"}


def test_every_metric_of_a_rule_exists_and_no_rule_fires_while_a_window_serves(watched: Watched) -> None:
    watched.serve()
    watched.scrape()
    watched.play.clock.advance(60_000)
    watched.play.ask(watched.run, "w-1", "law-1", QUESTIONS["law"][0])
    watched.run.step()
    watched.scrape()
    metrics = watched.app.metrics().decode()
    for alert, rule in RULES.items():
        assert names(rule["expr"])
        for name in names(rule["expr"]):
            base = re.sub(r"_(total|sum|count)$", "", name)
            assert re.search(rf"^# TYPE {base}(_total)? ", metrics, re.MULTILINE), (alert, name)
        assert not watched.fires(alert), alert
    assert watched.unready() is None


@pytest.mark.parametrize("alert", RULES)
def test_a_rule_fires_in_its_situation_and_not_before(
    alert: str, watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    situation = SITUATIONS[alert]
    if alert == "RagAuditProofsWaiting":
        watched.stop()
        watched.play.configure(proving={"workers": 0, "records": "all"})
        watched.start()
    situation.before(watched, monkeypatch)
    watched.scrape()
    assert not watched.fires(alert)
    situation.after(watched, monkeypatch)
    watched.scrape()
    assert watched.fires(alert)
    reason = watched.unready()
    assert (situation.cause or "") in (reason or "") and (situation.cause is None) == (reason is None), reason


def test_readyz_names_the_cause_before_the_first_window(watched: Watched) -> None:
    with (watched.play.root / "docs" / "law.jsonl").open("ab") as file:
        file.write(b'{"text": 3}\n')
    watched.play.settle(watched.run)
    reason = watched.unready()
    assert reason == "no window is served: prepare w-1 failed: the line is not a document"
    watched.play.documents(TEXTS)
    watched.play.clock.advance(RETRY_MS + 1)
    watched.serve()
    assert watched.unready() is None


def test_metrics_name_neither_accounts_nor_files(watched: Watched) -> None:
    with (watched.play.root / "docs" / "law.jsonl").open("ab") as file:
        file.write(b'{"text": 3}\n')
    watched.play.settle(watched.run)
    text = watched.app.metrics().decode() + str(watched.unready())
    assert "law" not in text and str(watched.play.root) not in text


def test_a_witness_that_does_not_know_the_provider_is_named(watched: Watched) -> None:
    watched.stop()
    play = watched.play
    witness = play.service.witnesses["w1"]
    stranger = Provider("other.example", play.service.key.verifier, [witness.vkey], 1)
    service = WitnessService(witness, Offers(play.root / "w1", witness), [stranger])
    app = WitnessApplication(service, Limits(), _raise)
    watched.server = Server(app, listen("127.0.0.1", 0), Limits())
    watched.server.start()
    play.remote = {"w1": {"url": watched.server.url}}
    play.configure()
    watched.start()
    play.settle(watched.run)
    assert any("witness w1:" in line and "does not know the log" in line for line in play.said), play.said
    failures = watched.scrape().samples["rag_audit_witness_failures_total"]
    assert failures == {frozenset({("witness", "w1")}): 1.0}
    waits = "w-1 waits for cosignatures of w1 (the run asks them) and cosignatures of w2"
    assert watched.unready() == f"the window is committed: {waits}"
