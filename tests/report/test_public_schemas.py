"""SARIF and JUnit reports validate against their public schemas, on every outcome."""

from __future__ import annotations

import json

import pytest

from rag_audit.report import render_report
from rag_audit.report.model import Report
from tests.report.conftest import OUTCOMES
from tests.report.schemas import complaints_of_junit, complaints_of_sarif

pytestmark = pytest.mark.full


@pytest.mark.parametrize("name", OUTCOMES)
def test_reports_are_valid(name: str, reports: dict[str, Report]) -> None:
    assert complaints_of_sarif(render_report(reports[name], "sarif")) == []
    assert complaints_of_junit(render_report(reports[name], "junit")) == []


def test_others_are_not(reports: dict[str, Report]) -> None:
    log = json.loads(render_report(reports["FAIL"], "sarif"))
    log["runs"][0]["results"][0]["level"] = "fatal"
    assert any("'fatal' is not one of" in words for words in complaints_of_sarif(json.dumps(log)))
    suites = render_report(reports["FAIL"], "junit")
    assert complaints_of_junit(suites.replace("<failure ", "<verdict ").replace("</failure>", "</verdict>"))
    assert complaints_of_junit(suites.replace(' tests="', ' test="'))
