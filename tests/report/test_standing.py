"""A window that is not established has its own verdict, and no privacy figure in any format of its report."""

from __future__ import annotations

import html
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rag_audit.cli.reports import FORMATS
from rag_audit.errors import ExitCode
from rag_audit.report import render_report
from rag_audit.report.build import filing_of, report_of, report_without_window
from rag_audit.report.explanations import explanations
from rag_audit.report.verification import ReportedVerdict, reported
from rag_audit.verify.case import Check, Status
from rag_audit.verify.inputs import Inputs
from rag_audit.verify.standing import RULES, Kind
from rag_audit.verify.verdict import QUOTING, WITHHELD, concluded
from tests.report.conftest import NOW
from tests.simulate.cases import FOLDER, run

UNPROVEN = ("opening-without-quorum", "opening-without-any-cosignature", "final-checkpoint-without-quorum",
            "an-enrolment-s-beacon-without-quorum", "sampled-mode-without-beta-and-eta", "no-records",
            "draw-of-the-provider-s-choice", "unsafe-setup")  # fmt: skip
"""Windows of vectors/windows in which nothing is false and something is not established."""
PRIVACY = re.compile(
    r"12\.39|8\.0834|16\.036|10\.228|15\.774|43\.673|0\.95356|0\.51996|52 in 100|240,386|3\.3334"
)
"""The figures of the windows' policies."""


def of_case(name: str) -> ReportedVerdict:
    verdict = run(json.loads((FOLDER / name / "case.json").read_text()), FOLDER / name)
    assert isinstance(verdict, ReportedVerdict)
    return verdict


def formats(verdict: ReportedVerdict) -> dict[str, str]:
    """Every format of the report, and the verdict's own line and figures."""
    report = report_of(verdict, now=NOW)
    result = {name: html.unescape(render_report(report, name, checks=True)) for name in FORMATS}
    short = report_without_window(verdict, ZeroDivisionError(), filing_of(Inputs()))
    result |= {f"short {name}": html.unescape(render_report(short, name, checks=True)) for name in FORMATS}
    return {**result, "line": verdict.line, "figures": json.dumps(verdict.figures)}


def test_every_check_has_its_kind_and_its_reason() -> None:
    assert set(RULES) == set(explanations())
    assert all(rule.reason for rule in RULES.values())
    limits = {check for check, rule in RULES.items() if rule.kind is Kind.LIMIT}
    assert all(check.startswith("trust.") for check in limits - {"receipt.independent"})


@pytest.mark.parametrize("name", UNPROVEN)
def test_what_is_not_established_has_no_figure_and_is_not_called_sound(name: str) -> None:
    verdict = of_case(name)
    assert verdict.exit_code is ExitCode.UNMET and verdict.outcome == "UNPROVEN"
    created = formats(verdict)
    for kind, text in created.items():
        assert not (result := PRIVACY.search(text)), (kind, result)
        assert not re.search(r"\bsound\b", text), kind
        assert kind == "figures" or "UNPROVEN" in text, kind
    assert created["line"].startswith("UNPROVEN ") and json.loads(created["json"])["line"] == created["line"]
    assert json.loads(created["short json"])["figures"] is None
    report = json.loads(created["json"])
    assert (report["outcome"], report["figures"]["standing"]) == ("UNPROVEN", "not-established")
    assert report["line"].startswith("UNPROVEN ") and report["figures"]["eps"] is None
    predicate = json.loads(created["vsa"])["predicate"]
    own = predicate["urn:rag-audit:verification:1"]
    assert predicate["verificationResult"] == "FAILED" and own["figures"] is None
    assert own["outcome"] == "UNPROVEN" and own["verdict"].startswith("UNPROVEN ")


@pytest.fixture(scope="module")
def bare(verdicts: dict[str, ReportedVerdict]) -> ReportedVerdict:
    return verdicts["PASS"]


def ended(verdict: ReportedVerdict, **statuses: str) -> ReportedVerdict:
    """The verdict with other outcomes of its checks; ids with an underscore for the point."""
    named = {name.replace("__", "."): Status(status) for name, status in statuses.items()}
    checks = [replace(c, status=named.get(c.id, c.status)) for c in verdict.checks]
    return reported(concluded(checks, verdict.figures, verdict.notes, verdict.needed), verdict.facts)


@pytest.mark.parametrize(("statuses", "outcome", "code"), [
    ({}, "PASS", 0),
    ({"trust__max_delta": "unmet"}, "UNMET", 3),
    ({"trust__max_delta": "unmet", "ledger__quorum": "unproven"}, "UNPROVEN", 3),
    ({"trust__max_delta": "unmet", "ledger__quorum": "unproven", "proof__present": "undecided"}, "UNDECIDED", 2),
    ({"ledger__quorum": "unproven", "proof__present": "undecided", "ledger__root": "fail"}, "FAIL", 1),
])  # fmt: skip
def test_the_worst_outcome_decides(
    statuses: dict[str, str], outcome: str, code: int, bare: ReportedVerdict
) -> None:
    result = ended(bare, **statuses)
    assert (result.outcome, int(result.exit_code)) == (outcome, code)
    assert result.established == (outcome in ("PASS", "UNMET")) == ("eps_audit" in result.figures)


def test_a_limit_beside_what_is_not_established_shows_no_figure(bare: ReportedVerdict) -> None:
    """The requirement that is not met either would quote epsilon."""
    result = ended(bare, trust__max_epsilon="unmet", ledger__quorum="unproven")
    assert result.line == "UNPROVEN ledger.quorum"
    assert all(not PRIVACY.search(text) for text in formats(result).values())
    assert {c.id for c in result.checks if c.actual == WITHHELD} == QUOTING & {c.id for c in result.checks}


@pytest.mark.parametrize(
    "check", ["header.quorum", "proof.valid.law", "trust.noise_table", "trust.min_k_max"]
)
def test_a_check_that_did_not_run_is_no_pass(check: str, bare: ReportedVerdict) -> None:
    """As after a fault in the order of the checks, which must not pass a window."""
    checks = [c for c in bare.checks if c.id != check]
    result = reported(concluded(checks, bare.figures, bare.notes, bare.needed), bare.facts)
    assert (result.outcome, result.deciding and result.deciding.id) == (
        "UNMET" if check == "trust.min_k_max" else "UNPROVEN", check
    )  # fmt: skip
    assert result.deciding == Check(
        check, result.status, "a check that runs on this window", "it did not run"
    )


def test_windows_have_every_check_that_had_to_run(bare: ReportedVerdict) -> None:
    names = ["honest", *(p.parent.name for p in sorted(Path(FOLDER).glob("*/case.json")) if _honest(p))]
    for verdict in (bare, *map(of_case, dict.fromkeys(names))):
        assert verdict.passed and not verdict.needed - {c.id for c in verdict.checks}


def _honest(path: Path) -> bool:
    case: dict[str, Any] = json.loads(path.read_text())
    return str(case["fault"]).startswith("nothing:")
