"""SARIF and JUnit reports of runs without a verdict have the form that the public schemas ask."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.test_short_reports import outputs, verify, written
from tests.report.schemas import complaints_of_junit, complaints_of_sarif
from tests.report.test_messages import UNREADABLE
from tests.simulate.cases import FOLDER


@pytest.mark.full
@pytest.mark.parametrize("name", UNREADABLE)
def test_short_reports_have_the_public_schemas_form(name: str, tmp_path: Path) -> None:
    case = json.loads((FOLDER / name / "case.json").read_text())
    words = [word for path in case["challenges"] for word in ("--challenge", FOLDER / name / path)]
    verify(FOLDER / name / case["window"], FOLDER / name / case["trust"], *outputs(tmp_path), *words)
    formats = written(tmp_path)
    assert complaints_of_sarif(formats["sarif"]) == []
    assert complaints_of_junit(formats["junit"]) == []
