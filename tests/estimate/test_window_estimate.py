"""The estimate in a window: made at close, declared without names, and held against k_max by a stranger."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from rag_audit._internal.canonical import parse_json
from rag_audit.attest.window import Window
from rag_audit.errors import ExitCode, StoreError
from rag_audit.models.windowfile import WindowFile
from rag_audit.report.verification import ReportedVerdict, verify_window
from rag_audit.verify.case import Status
from tests.window.simulator import QUESTIONS, Service

PROBE = "Did the clinic treat Jane Roe for hepatitis in 2019?"


def closed(service: Service, requested: dict[str, str]) -> tuple[Window, WindowFile, ReportedVerdict]:
    window = service.open()
    for account, text in requested.items():
        service.ask(window, account, text)
    service.finish(window)
    file = WindowFile.load(window.directory / "public")
    return window, file, verify_window(file, trust=service.trust(window.policy))


def status(verdict: ReportedVerdict, check: str) -> Status | None:
    return next((c.status for c in verdict.checks if c.id == check), None)


def test_a_coalition_above_k_max_fails_the_window_without_names(tmp_path: Path) -> None:
    service = Service(tmp_path)
    probes = {
        "law-1": PROBE,
        "law-2": PROBE + " Please.",
        "medicine-1": PROBE,
        "medicine-2": QUESTIONS["medicine"][0],
    }
    window, file, verdict = closed(service, probes)
    coalition = file.entries[-1]["coalition"]
    assert coalition == {
        "c": 3, "c_tenant": 2, "theta": [4, 5], "tau": 0, "tau_unit": "positions", "coalition_proof": None,
    }  # fmt: skip
    assert verdict.exit_code is ExitCode.FAIL
    assert verdict.line == "FAIL coalition.cap"
    assert verdict.deciding is not None
    assert verdict.deciding.expected == "c at most k_max = 2"
    assert verdict.deciding.actual == (
        "c = 3: 3 accounts repeated a question almost word for word, 2 in one tenant (declared, not proved)"
    )
    assert verdict.figures["coalition"] == "not-checked"

    kept = window.directory / "estimate.json"
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    evidence = parse_json(kept.read_bytes(), source="estimate.json")
    assert isinstance(evidence, dict)
    assert evidence["clusters"] == [["law-1", "law-2", "medicine-1"]]
    assert evidence["joins"] == [
        {"earlier": 2, "later": 3, "accounts": ["law-1", "law-2"]},
        {"earlier": 2, "later": 4, "accounts": ["law-1", "medicine-1"]},
    ]
    window.shut()


def test_a_declared_estimate_within_k_max_stays_not_checked(tmp_path: Path) -> None:
    service = Service(tmp_path)
    requested = {f"{tenant}-{i + 1}": QUESTIONS[tenant][i] for tenant in QUESTIONS for i in range(2)}
    window, file, verdict = closed(service, requested)
    assert file.entries[-1]["coalition"]["c"] == 1
    assert status(verdict, "coalition.cap") is Status.PASS
    assert verdict.figures["coalition"] == "not-checked"
    window.shut()


def test_an_empty_window_declares_zero(tmp_path: Path) -> None:
    window, file, verdict = closed(Service(tmp_path), {})
    assert (file.entries[-1]["coalition"]["c"], file.entries[-1]["coalition"]["c_tenant"]) == (0, 0)
    assert status(verdict, "coalition.count") is Status.PASS
    assert verdict.exit_code is not ExitCode.PASS
    window.shut()


def test_a_window_whose_queries_cannot_be_opened_declares_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = Service(tmp_path)
    window = service.open()
    service.ask(window, "law-1", PROBE)
    monkeypatch.setattr(type(window.state.store), "private", lambda self, seq: None)
    with pytest.raises(StoreError):
        window.close()
    monkeypatch.undo()
    window.close()
    assert window.status == "closed"
    window.shut()
