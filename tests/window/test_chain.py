"""Windows in a row: what the next opening says of those before it, and what a verifier who has them finds."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from rag_audit._internal.canonical import jcs
from rag_audit.attest.window import Window
from rag_audit.errors import ExitCode
from rag_audit.log.note import Note, parse_note
from rag_audit.models.chain import ClosedWindow
from rag_audit.models.records import PreviousWindow
from rag_audit.models.windowfile import WindowFile
from rag_audit.report import as_json, render
from rag_audit.report.verification import ReportedVerdict
from rag_audit.verify.checks import header
from rag_audit.witness import witness as witness_module
from rag_audit.witness.witness import WitnessRefused
from tests.window.simulator import QUESTIONS, Service
from tests.window.test_enrolment import verdict

MALICIOUS: dict[str, tuple[dict[str, int], set[str]]] = {
    "hides-both": ({"abandoned": 0, "empty": 0}, {"header.abandoned", "header.empty"}),
    "hides-the-empty": ({"empty": 0}, {"header.empty"}),
    "calls-the-abandoned-empty": ({"abandoned": 0, "empty": 2}, {"header.abandoned", "header.empty"}),
    "calls-the-empty-abandoned": ({"abandoned": 2, "empty": 0}, {"header.abandoned", "header.empty"}),
}
"""What an opening may falsely say of an abandoned and an empty window before it, and the checks that find it."""


@dataclass
class Chain:
    """One origin's windows, in folders named by their ids."""

    service: Service

    def run(
        self, name: str, previous: PreviousWindow | None, *, how: str = "complete", wait: bool = True
    ) -> PreviousWindow:
        """One window to its cosigned end.

        :param how: complete; empty, opened and closed without a query; abandoned before its beacon
        :param wait: until its interval is over
        """
        service = self.service
        window = service.commit(name, previous=previous, window=name)
        if how == "abandoned":
            text = (window.directory / "public" / "checkpoint-1.txt").read_text()
            for witness in service.witnesses.values():
                note = witness.cosign_header(text, jcs(window.header.dump()), log_key=service.key.verifier)
                window.admit([str(note)])
        else:
            service.cosign_header(window)
            service.clock.now = window.header.opens_at
        if how == "complete":
            service.ask(window, "law-1", QUESTIONS["law"][0])
        service.finish(window, abandoned=how == "abandoned")
        window.shut()
        if wait:
            service.clock.now = window.header.closes_at + 1
        return self.previous(name)

    def file(self, name: str) -> Path:
        return self.service.root / name / "public" / "window.json"

    def previous(self, name: str) -> PreviousWindow:
        return ClosedWindow.of(WindowFile.load(self.file(name)), field="window.json").as_previous()


@pytest.fixture(scope="module")
def chain(tmp_path_factory: pytest.TempPathFactory) -> Chain:
    """A complete window, an abandoned one, an empty one and a complete one; then those whose counts lie."""
    result = Chain(Service(tmp_path_factory.mktemp("chain")))
    first = result.run("w-1", None)
    second = result.run("w-2", first, how="abandoned")
    third = result.run("w-3", second, how="empty")
    assert [(p.abandoned, p.empty) for p in (first, second, third)] == [(0, 0), (1, 0), (1, 1)]
    fourth = result.run("w-4", third)
    assert (fourth.abandoned, fourth.empty) == (0, 0)
    for name, (lie, _) in MALICIOUS.items():
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(witness_module, "check_chain", lambda *_: None)  # witnesses that look away
            result.run(name, third.model_copy(update=lie))
    return result


def verify(
    chain: Chain, name: str, patch: pytest.MonkeyPatch, *given: Path | str, **options: Any
) -> ReportedVerdict:
    files = [chain.file(g) if isinstance(g, str) else g for g in given]
    return verdict(chain.service, chain.service.root / name, patch, previous=files, **options)


def faults(actual: ReportedVerdict) -> set[str]:
    return {c.id for c in actual.checks if c.status.value != "pass"}


def line(actual: ReportedVerdict, check: str) -> str:
    return next(c.actual for c in actual.checks if c.id == check)


@pytest.mark.parametrize(
    ("given", "reach", "count"),
    [
        ((), "the witnesses are the only evidence", "1 (the witnesses are the only evidence)"),
        (("w-3",), "1 earlier window, the witnesses are the only", "1 (the witnesses are the only evidence)"),
        (("w-2", "w-3"), "2 earlier windows, the witnesses", "1 (the witnesses are the only evidence)"),
        (("w-2", "w-3", "w-1"), "3 earlier windows, back to the origin's first window", "1"),
    ],
    ids=["none", "the last", "those that came to nothing", "all"],
)
def test_what_came_to_nothing_is_counted_and_printed(
    chain: Chain, monkeypatch: pytest.MonkeyPatch, given: tuple[str, ...], reach: str, count: str
) -> None:
    result = verify(chain, "w-4", monkeypatch, *given)
    assert result.exit_code is ExitCode.UNMET and faults(result) == {"trust.max_abandoned"}
    assert " abandoned=1 empty=1 " in result.line
    assert (result.figures["abandoned"], result.figures["empty"]) == (1, 1)
    assert reach in line(result, "header.chain")
    assert line(result, "header.abandoned") == line(result, "header.empty") == count


def test_a_complete_window_ends_the_count(chain: Chain, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a complete window in hand nothing of the count rests on the witnesses, first window or not."""
    service = chain.service
    sixth = Chain(service)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(witness_module, "check_chain", lambda *_: None)
        sixth.run("w-6", chain.previous("w-4"))
    result = verify(chain, "w-6", monkeypatch, "w-4")
    assert result.passed, result.deciding
    assert "abandoned=0 empty=0" in result.line and line(result, "header.abandoned") == "0"


@pytest.mark.parametrize("given", [("w-3",), ("w-3", "w-2", "w-1")], ids=["the last", "all"])
@pytest.mark.parametrize("name", MALICIOUS)
def test_a_count_that_hides_windows(
    chain: Chain, monkeypatch: pytest.MonkeyPatch, name: str, given: tuple[str, ...]
) -> None:
    """The witnesses looked away; whoever has the window before this one sees it."""
    generous = {"require": {"max_abandoned": 2}}
    assert verify(chain, name, monkeypatch, **generous).passed
    result = verify(chain, name, monkeypatch, *given, **generous)
    assert result.exit_code is ExitCode.FAIL and faults(result) == MALICIOUS[name][1]


@pytest.mark.parametrize("name", MALICIOUS)
def test_no_witness_cosigns_a_count_that_hides_windows(service: Service, name: str) -> None:
    chain = Chain(service)
    third = chain.run("w-3", chain.run("w-2", None, how="abandoned"), how="empty")
    hidden = third.model_copy(update=MALICIOUS[name][0])
    with (
        service.commit("w-4", previous=hidden, window="w-4") as window,
        pytest.raises(WitnessRefused, match="the count of"),
    ):
        service.cosign_header(window)
    with service.commit("w-5", previous=third, window="w-5") as window:
        service.cosign_header(window)


@pytest.mark.parametrize(
    ("limit", "status", "unmet"),
    [({}, ExitCode.PASS, set()), ({"max_empty": 1}, ExitCode.PASS, set()),
     ({"max_empty": 0}, ExitCode.UNMET, {"trust.max_empty"})],
    ids=["by default", "as many as are allowed", "fewer"],
)  # fmt: skip
def test_windows_without_a_query_pass_up_to_a_limit(
    chain: Chain, monkeypatch: pytest.MonkeyPatch, limit: dict[str, int], status: ExitCode, unmet: set[str]
) -> None:
    options = {"require": {"max_abandoned": 1, **limit}}
    result = verify(chain, "w-4", monkeypatch, "w-1", "w-2", "w-3", **options)
    assert result.exit_code is status and faults(result) == unmet
    assert " abandoned=1 empty=1 " in result.line
    report: Any = as_json(result)
    assert report["figures"]["empty"] == 1 and report["chain"]["before"]["empty"] == 1
    assert "1 window without a query since the last complete one" in " ".join(render(result).split())


@pytest.mark.parametrize(
    ("name", "given", "status"),
    [
        ("w-4", ("w-2",), ExitCode.MALFORMED),
        ("w-1", ("w-2",), ExitCode.MALFORMED),
        ("w-4", ("w-3", "w-1"), ExitCode.MALFORMED),
    ],
    ids=["another than the named predecessor", "a predecessor where none is named", "a gap"],
)
def test_windows_that_are_not_the_ones_before(
    chain: Chain, monkeypatch: pytest.MonkeyPatch, name: str, given: tuple[str, ...], status: ExitCode
) -> None:
    result = verify(chain, name, monkeypatch, *given)
    assert result.exit_code is status
    assert faults(result) - {"trust.max_abandoned"} == {"header.chain"}


@pytest.mark.parametrize("fork", ["w-4", "w-5"], ids=["the same window id", "another window id"])
def test_a_second_window_after_the_same_predecessor_is_evidence_against_the_provider(
    service: Service, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, fork: str
) -> None:
    """Provider and witnesses went on from a copy of their folders, and closed two windows after one predecessor."""
    chain = Chain(service)
    first = chain.run("w-1", None)
    shutil.copytree(service.root, tmp_path / "fork")
    other = Chain(service.copied(tmp_path / "fork", service.clock()))
    chain.run("w-4", first)
    other.run(fork, first)
    result = verify(chain, "w-4", monkeypatch, other.file(fork))
    assert result.exit_code is ExitCode.FAIL
    assert faults(result) - {"trust.max_abandoned"} == {"header.chain"}


def test_a_fork_next_to_the_window_before_is_evidence_against_the_provider(
    service: Service, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The fork is found if the other supplied windows are those of the chain, too."""
    chain = Chain(service)
    first = chain.run("w-1", None)
    shutil.copytree(service.root, tmp_path / "fork")
    other = Chain(service.copied(tmp_path / "fork", service.clock()))
    chain.run("w-3", chain.run("w-2", first))
    other.run("w-9", first)
    result = verify(chain, "w-3", monkeypatch, "w-2", other.file("w-9"))
    assert result.exit_code is ExitCode.FAIL and faults(result) == {"header.chain"}
    digests = [
        ClosedWindow.of(WindowFile.load(f), field="window").digest
        for f in (chain.file("w-2"), other.file("w-9"))
    ]
    assert all(digest in line(result, "header.chain") for digest in digests)
    file = WindowFile.load(other.file("w-9"))
    note = parse_note(file.final_checkpoint)
    alone = str(Note(note.text, note.signatures[:-1]))
    (tmp_path / "alone.json").write_bytes(jcs({**file.dump(), "final_checkpoint": alone}))
    result = verify(chain, "w-3", monkeypatch, "w-2", tmp_path / "alone.json")
    assert result.exit_code is ExitCode.MALFORMED and faults(result) == {"header.chain"}
    monkeypatch.setattr(header, "_no_fork", lambda *given: True)
    result = verify(chain, "w-3", monkeypatch, "w-2", other.file("w-9"))
    assert result.exit_code is ExitCode.MALFORMED, "without the check the second window is only one too many"


def test_two_ends_of_one_window_are_evidence_against_the_provider(
    service: Service, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Provider and witnesses ended a copy of a window a second time, without one of its records."""
    chain = Chain(service)
    first = chain.run("w-1", None)
    with service.open("w-2", previous=first, window="w-2") as window:
        service.ask(window, "law-1", QUESTIONS["law"][0])
        shutil.copytree(service.root, tmp_path / "fork")
        other = Chain(service.copied(tmp_path / "fork", service.clock()))
        service.ask(window, "law-1", QUESTIONS["law"][1])
        service.finish(window)
        service.clock.now = window.header.closes_at + 1
    folder = tmp_path / "fork" / "w-2"
    with Window.resume(folder, key=service.key, clock=other.service.clock) as window:
        other.service.finish(window)
    chain.run("w-3", chain.previous("w-2"))
    own, second = chain.file("w-2"), other.file("w-2")
    roots = {WindowFile.load(path).final_head().root.hex() for path in (own, second)}
    for name, given in (
        ("w-3", (own, second)),
        ("w-3", (second, own)),
        ("w-2", (second,)),
        ("w-2", (second, own)),
    ):
        result = verify(chain, name, monkeypatch, "w-1", *given)
        assert result.exit_code is ExitCode.FAIL and "header.chain" in faults(result)
        assert len(roots) == 2 and all(root in line(result, "header.chain") for root in roots)
    assert "header.chain" not in faults(verify(chain, "w-3", monkeypatch, "w-1", own, own)), "a copy"
    file = WindowFile.load(second)
    note = parse_note(file.final_checkpoint)
    alone = str(Note(note.text, note.signatures[:-1]))
    (tmp_path / "alone.json").write_bytes(jcs({**file.dump(), "final_checkpoint": alone}))
    result = verify(chain, "w-3", monkeypatch, "w-1", own, tmp_path / "alone.json")
    assert result.exit_code is ExitCode.MALFORMED and "header.chain" in faults(result)
    monkeypatch.setattr(header, "_no_fork", lambda *given: True)
    assert "header.chain" not in faults(verify(chain, "w-3", monkeypatch, "w-1", second, own)), (
        "the last counts"
    )


def test_a_damaged_predecessor_is_no_evidence_against_this_window(
    chain: Chain, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    value = WindowFile.load(chain.file("w-3")).dump()
    value["policy"]["n"] += 1  # not under the checkpoint: this window's verifier does not look
    (tmp_path / "other.json").write_bytes(jcs(value))
    result = verify(chain, "w-4", monkeypatch, tmp_path / "other.json")
    assert faults(result) == {"trust.max_abandoned"}
    value["entries"][1]["value"] = "00" * 32
    (tmp_path / "damaged.json").write_bytes(jcs(value))
    result = verify(chain, "w-4", monkeypatch, tmp_path / "damaged.json")
    assert result.exit_code is ExitCode.MALFORMED
    assert faults(result) == {"header.chain", "trust.max_abandoned"}


def test_a_predecessor_that_no_quorum_cosigned_shows_nothing(
    chain: Chain, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Its provider alone could have signed any end."""
    file = WindowFile.load(chain.file("w-3"))
    note = parse_note(file.final_checkpoint)
    alone = str(Note(note.text, note.signatures[:-1]))
    (tmp_path / "alone.json").write_bytes(jcs({**file.dump(), "final_checkpoint": alone}))
    result = verify(chain, "w-4", monkeypatch, tmp_path / "alone.json")
    assert result.exit_code is ExitCode.MALFORMED
    assert faults(result) == {"header.chain", "trust.max_abandoned"}


def test_a_window_that_closes_early_ends_its_interval(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    chain = Chain(service)
    previous = chain.run("w-1", None, wait=False)
    chain.run("w-2", previous)
    first, second = (WindowFile.load(chain.file(name)) for name in ("w-1", "w-2"))
    early = ClosedWindow.of(first, field="w-1").header.closes_at
    assert ClosedWindow.of(second, field="w-2").header.opens_at < early
    result = verify(chain, "w-2", monkeypatch, "w-1")
    assert result.passed, result.deciding


def test_overlapping_windows(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    chain = Chain(service)
    with service.open("w-1", window="w-1") as window:
        service.ask(window, "law-1", QUESTIONS["law"][0])
        service.clock.advance(50_000)  # the provider's clock is ahead when it closes
        window.close()
        service.clock.advance(-50_000)
        service.finish(window)
    with monkeypatch.context() as patch:
        patch.setattr(witness_module, "check_chain", lambda *_: None)
        chain.run("w-2", chain.previous("w-1"))
    result = verify(chain, "w-2", monkeypatch, "w-1")
    assert result.exit_code is ExitCode.FAIL and faults(result) == {"header.chain"}
    assert "overlapping" in line(result, "header.chain")


def test_a_second_window_with_the_same_predecessor_gets_no_witness(service: Service) -> None:
    previous = Chain(service).run("w-1", None)
    with service.commit("w-2", previous=previous, window="w-2") as one:
        service.cosign_header(one)
        with service.commit("w-3", previous=previous, window="w-3") as other, pytest.raises(WitnessRefused):
            service.cosign_header(other)


def test_a_first_window_twice_gets_no_witness(service: Service) -> None:
    Chain(service).run("w-1", None)
    with service.commit("w-2", window="w-2") as window, pytest.raises(WitnessRefused, match="not the last"):
        service.cosign_header(window)


def test_an_abandoned_window_lets_the_chain_go_on(service: Service) -> None:
    previous = Chain(service).run("w-1", None, how="abandoned")
    hidden = previous.model_copy(update={"abandoned": 0})
    with service.commit("w-2", previous=hidden, window="w-2") as window, pytest.raises(WitnessRefused):
        service.cosign_header(window)
    with service.commit("w-3", previous=previous, window="w-3") as window:
        service.cosign_header(window)
        assert window.status == "active"
