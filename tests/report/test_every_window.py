"""Every window of vectors/windows has a report, and its faces agree: nothing that a file holds costs a verdict."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rag_audit.cli.reports import FORMATS
from rag_audit.report import render_report
from rag_audit.report.build import report_of
from rag_audit.report.verification import ReportedVerdict
from tests.report.conftest import NOW
from tests.report.schemas import complaints_of_junit, complaints_of_sarif
from tests.report.test_report_formats import of_json, of_junit, of_sarif, of_text
from tests.simulate.cases import run

WINDOWS = Path(__file__).resolve().parents[2] / "vectors/windows"
CASES = sorted(path.parent.name for path in WINDOWS.glob("*/case.json"))


@pytest.mark.full
@pytest.mark.parametrize("name", CASES)
def test_a_window_s_faces_agree(name: str) -> None:
    case = json.loads((WINDOWS / name / "case.json").read_text())
    verdict = run(case, WINDOWS / name)
    if not isinstance(verdict, ReportedVerdict):
        assert case["expect"]["verdict"] is None
        return
    report = report_of(verdict, now=NOW)
    assert (report.outcome, report.exit_code) == (case["expect"]["verdict"], case["expect"]["exit_code"])
    formats = {kind: render_report(report, kind, checks=True) for kind in FORMATS}
    said = of_json(formats["json"])
    assert said.not_passed == case["expect"]["not_passed"]
    assert of_text(formats["text"]) == of_sarif(formats["sarif"]) == of_junit(formats["junit"]) == said
    assert complaints_of_sarif(formats["sarif"]) == complaints_of_junit(formats["junit"]) == []
    assert report.line.split()[0] in formats["html"]
    assert all(line.isprintable() for text in formats.values() for line in text.split("\n"))


def test_there_are_windows() -> None:
    assert len(CASES) > 200
