"""One function says how strong a window's protection is, and every format of a report says the same."""

from __future__ import annotations

import html
import json
import re
from dataclasses import replace
from typing import Any

import pytest

from rag_audit.cli.reports import FORMATS
from rag_audit.report import render_report
from rag_audit.report.build import report_of
from rag_audit.report.html import words
from rag_audit.report.meaning import strength
from rag_audit.report.model import Protection, Report, TenantReport
from rag_audit.report.strength import protection_of, tier
from rag_audit.report.verification import ReportedVerdict
from rag_audit.report.vsa import EXTENSION
from rag_audit.verify.verdict import OutcomeName
from tests.report.conftest import NOW, OUTCOMES, verify
from tests.simulate.cases import FOLDER, run

WARNING = "It does not show that this protects much"


def texts(report: Report) -> dict[str, str]:
    result = {kind: html.unescape(render_report(report, kind, checks=True)) for kind in FORMATS}
    return {kind: re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", text)) for kind, text in result.items()}


def levels(report: Report) -> dict[str, str]:
    """What each format that programs read says of the protection."""
    created = {kind: render_report(report, kind) for kind in FORMATS}
    predicate = json.loads(created["vsa"])["predicate"]
    result = re.search(r'<property name="protection" value="([a-z-]+)" />', created["junit"])
    said = re.search(r"Protection: ([a-z ]+?)(?:\.| \()", " ".join(created["text"].split()))
    assert result is not None and said is not None
    return {
        "json": json.loads(created["json"])["protection"]["level"],
        "vsa": predicate[EXTENSION]["protection"]["level"],
        "sarif": json.loads(created["sarif"])["runs"][0]["properties"]["protection"]["level"],
        "junit": result[1],
        "text": said[1].replace(" ", "-"),
    }


@pytest.mark.parametrize("name", OUTCOMES)
def test_every_format_says_the_same(name: str, reports: dict[str, Report]) -> None:
    report = reports[name]
    assert set(levels(report).values()) == {report.protection.level}
    warned = {kind for kind, text in texts(report).items() if WARNING in text}
    passed = name.startswith("PASS")
    weak = report.protection.level in ("none", "weak")
    assert warned == (set(FORMATS) if passed and weak else set())
    predicate = json.loads(render_report(report, "vsa"))["predicate"]
    level = report.protection.level.upper()
    assert predicate["verifiedLevels"] == [f"RAG_AUDIT_PROTECTION_{level}" if passed else "FAILED"]


EXPECTED: dict[str, str] = {
    "PASS": "weak", "PASS-SAMPLED": "weak", "PASS-INTEGRITY": "none", "UNMET": "weak",
    "FAIL": "not-established", "UNDECIDED": "not-established", "UNPROVEN": "not-established",
}  # fmt: skip


@pytest.mark.parametrize("name", OUTCOMES)
def test_the_levels_of_the_example(name: str, reports: dict[str, Report]) -> None:
    assert reports[name].protection.level == EXPECTED[name]


def test_tiers_of_epsilon() -> None:
    assert [tier(e) for e in (0.0, 1.0, 1.01, 10.0, 10.1, 1e9, float("inf"), float("nan"))] == [
        "strong", "strong", "moderate", "moderate", "weak", "weak", "none", "none",
    ]  # fmt: skip
    for eps in (0.5, 5.0, 50.0, float("inf")):
        named = tier(eps)
        assert strength(eps).startswith(named) and words.strength(eps).startswith(
            {"none": "no"}.get(named, named)
        )


def judged(
    reports: dict[str, Report], *tenants: dict[str, Any], outcome: OutcomeName = "PASS", **given: Any
) -> Protection:
    """The protection of a window with tenants of these parameters."""
    first = reports["PASS"].tenants[0]
    result: list[TenantReport] = [
        first.model_copy(update={"tenant": f"t{number}", **update}) for number, update in enumerate(tenants)
    ]
    options: dict[str, Any] = {"drawn": None, "records": 7, "beta": None, **given}
    standing = options.pop("standing", "proved")
    return protection_of(outcome, standing, options.pop("eps", "1"), result, **options)


SAMPLING = {"mechanism": "sampling", "eps": "inf", "exclusion_factor": "3.3334"}


def test_the_weakest_tenant_decides(reports: dict[str, Report]) -> None:
    strong, weak = {"eps": "0.9"}, {"eps": "12"}
    assert judged(reports, strong).level == "strong" and judged(reports, strong).warning is None
    assert judged(reports, strong, {"eps": "9"}).level == "moderate"
    result = judged(reports, strong, weak)
    assert result.level == "weak" and result.reasons == ["t1: epsilon 12 is above 10"]
    assert WARNING in str(result.warning)
    bare = judged(reports, weak, {"mechanism": "none", "eps": "inf"}, outcome="PASS-INTEGRITY")
    assert bare.level == "none" and bare.reasons[0].startswith("t1: no mechanism protects the documents")
    assert WARNING in str(bare.warning)


def test_an_infinite_epsilon_is_warned_of(reports: dict[str, Report]) -> None:
    """The warning disappeared where epsilon was infinite, which is where it says most."""
    for update in ({"eps": "inf"}, SAMPLING, {**SAMPLING, "exclusion_factor": "inf"}):
        result = judged(reports, update, eps="inf")
        assert result.level in ("none", "weak") and WARNING in str(result.warning), update
    assert judged(reports, SAMPLING, eps="inf").level == "weak"
    assert judged(reports, {**SAMPLING, "exclusion_factor": "inf"}, eps="inf").level == "none"
    assert "3.3334" in judged(reports, SAMPLING, eps="inf").reasons[0]


def test_a_missing_figure_is_no_protection(reports: dict[str, Report]) -> None:
    result = judged(reports, {"eps": None}, eps=None)
    assert result.level == "none" and WARNING in str(result.warning)
    assert judged(reports, eps=None).level == "none"


def test_a_sample_of_the_records_is_weak_whatever_epsilon_is(reports: dict[str, Report]) -> None:
    """Up to a share beta of the answers may have no protection; where each was drawn, none is left out."""
    options: dict[str, Any] = {"outcome": "PASS-SAMPLED", "standing": "if-conforming", "beta": "0.1"}
    result = judged(reports, {"eps": "0.5"}, drawn=3, **options)
    assert result.level == "weak" and "up to a share 0.1 of them" in result.reasons[0]
    assert WARNING in str(result.warning)
    assert judged(reports, {"eps": "0.5"}, drawn=7, **options).level == "strong"
    assert judged(reports, {"eps": "0.5"}, drawn=None, **options).level == "weak"


def test_a_window_that_does_not_pass_is_not_warned_of_as_a_pass(reports: dict[str, Report]) -> None:
    result = judged(reports, {"eps": "12"}, outcome="UNMET")
    assert result.level == "weak" and result.warning is None


def test_integrity_alone_passes_with_a_level() -> None:
    """The library's verdict on a window whose tenant has no mechanism, in both modes."""
    passed = verify()
    tenants = {"law": {"mechanism": "none", "eps": "inf", "exclusion_factor": None}}
    bare = [
        t.model_copy(update={"mechanism": "none", "eps": "inf", "gains": []}) for t in passed.facts.tenants
    ]
    for mode, outcome in (("full", "PASS-INTEGRITY"), ("sampled", "PASS-INTEGRITY-SAMPLED")):
        figures: Any = {**passed.figures, "eps_audit": "inf", "eps_audit_by": "no-bound", "tenants": tenants,
                        "mode": mode, "sampled": 3, "beta": "0.5", "eta": "0.5", "challenge": "own"}  # fmt: skip
        verdict = replace(passed, figures=figures, described=replace(passed.facts, tenants=bare))
        report = report_of(verdict, now=NOW)
        assert (report.outcome, report.protection.level) == (outcome, "none")
        predicate = json.loads(render_report(report, "vsa"))["predicate"]
        assert predicate["verificationResult"] == "PASSED"
        assert predicate["verifiedLevels"] == ["RAG_AUDIT_PROTECTION_NONE"]
        assert {kind for kind, text in texts(report).items() if WARNING in text} == set(FORMATS)


def of_case(name: str) -> Report:
    verdict = run(json.loads((FOLDER / name / "case.json").read_text()), FOLDER / name)
    assert isinstance(verdict, ReportedVerdict)
    return report_of(verdict, now=NOW)


def test_epsilon_of_some_tenants_is_not_the_windows() -> None:
    """Of a window with sampling and noise: the requirement is asked of the noise alone, and the row says so."""
    report = of_case("sampling")
    assert report.outcome == "PASS" and report.figures.eps == "inf"
    row = next(r for r in report.requirements if r.name == "max_epsilon")
    assert (
        row.actual != "inf"
        and row.scope is not None
        and row.scope.startswith("only ")
        and "; no epsilon bounds" in row.scope
    )
    page = re.search(
        r"<tr><th[^>]*>epsilon for k_max accounts[^<]*</th>.*?</tr>", render_report(report, "html")
    )
    assert page is not None and "met in part" in page[0] and ">met<" not in page[0]
    assert row.scope in " ".join(render_report(report, "text", checks=True).split())
    assert WARNING in texts(report)["text"] and report.protection.level == "weak"


def test_figures_of_a_document_table_are_for_whole_documents() -> None:
    """The page gives the maximum size of a document, and no power of the factor for larger ones."""
    report = of_case("documents")
    size = report.figures.positions_per_document
    assert size is not None and size > 1
    page = texts(report)["html"]
    assert f"Both figures are for a document of at most {size} positions." in page
    assert "has at least the s-th power" not in page
    assert "which share one Bernoulli bit." in page
    only = all(tenant.documents is not None for tenant in report.tenants)
    assert ("A document with several positions is several units" in page) is not only
    assert "one document of a document table changes" in texts(report)["text"]
