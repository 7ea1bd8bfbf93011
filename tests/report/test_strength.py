"""Every format says the same about each line of a tenant's protection, and warns of the same."""

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
from rag_audit.report.intoto import EXTENSION
from rag_audit.report.meaning import strength
from rag_audit.report.model import Report
from rag_audit.report.protection import ADVERSARIES, warnings_of
from rag_audit.report.strength import tier
from rag_audit.report.verification import ReportedVerdict
from tests.report.conftest import NOW, OUTCOMES, verify
from tests.simulate.cases import FOLDER, run

LARGE = "epsilon 12.39 is above 10"
BARE = "no epsilon bounds what lists reveal"


def texts(report: Report) -> dict[str, str]:
    result = {kind: html.unescape(render_report(report, kind, checks=True)) for kind in FORMATS}
    return {kind: re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", text)) for kind, text in result.items()}


def strengths(lines: Any) -> dict[str, str]:
    return {name: lines[name]["strength"] for name in ADVERSARIES}


@pytest.mark.parametrize("name", OUTCOMES)
def test_every_format_says_the_same(name: str, reports: dict[str, Report]) -> None:
    report = reports[name]
    expected = [{name: line.strength for name, line in p.lines.items()} for p in report.protections]
    created = {kind: render_report(report, kind) for kind in FORMATS}
    predicate = json.loads(created["vsa"])["predicate"]
    assert [strengths(p) for p in json.loads(created["json"])["protections"]] == expected
    assert [strengths(p) for p in predicate[EXTENSION]["protections"]] == expected
    sarif = json.loads(created["sarif"])["runs"][0]
    assert [strengths(p) for p in sarif["properties"]["protections"]] == expected
    junit = dict(re.findall(r'<property name="protection\.([a-z.]+)" value="([a-z-]+)" />', created["junit"]))
    law = {adversary: junit[f"{adversary}.law"] for adversary in ADVERSARIES}
    assert law == expected[0] and len(junit) == len(ADVERSARIES) * len(report.protections)
    text = created["text"].splitlines()
    for adversary, level in expected[0].items():
        (line,) = (line for line in text if line.startswith(f"{adversary:11}  law"))
        assert line.partition(": ")[2].startswith(f"{level.replace('-', ' ')};")
    if not name.startswith("PASS"):
        assert predicate["verifiedLevels"] == ["FAILED"]
        return
    # Per adversary, the tenant with the weakest protection counts; adversaries are never combined.
    assert predicate["verifiedLevels"] == [
        f"RAG_AUDIT_{adversary.upper()}_{law[adversary].upper()}" for adversary in ADVERSARIES
    ]


@pytest.mark.parametrize("name", OUTCOMES)
def test_every_format_warns_of_the_same(name: str, reports: dict[str, Report]) -> None:
    report = reports[name]
    wanted = {"PASS-INTEGRITY": BARE}.get(name, LARGE) if name.startswith("PASS") or name == "UNMET" else None
    for kind, text in texts(report).items():
        assert (LARGE in text or BARE in text) is (wanted is not None), kind
        assert wanted is None or wanted in text, kind


def test_no_format_has_one_mark_for_a_window(reports: dict[str, Report]) -> None:
    report = reports["PASS"]
    assert "protection" not in json.loads(render_report(report, "json"))
    assert not any("Protection: " in text for text in texts(report).values())


def test_warnings_about_lists_and_exposure(reports: dict[str, Report]) -> None:
    first, second = reports["PASS"].protections
    assert warnings_of([first, second]) == [
        "law and medicine: epsilon 12.39 is above 10, and promises little about what lists reveal"
    ]
    at = first.model_copy(update={"lists": first.lists.model_copy(update={"eps": "10"})})
    above = first.model_copy(update={"lists": first.lists.model_copy(update={"eps": "10.001"})})
    assert warnings_of([at]) == [] and len(warnings_of([above])) == 1
    exposure = first.presence.exposure
    assert exposure is not None
    far = exposure.model_copy(update={"by_chance": "161", "exact": 100, "exceeds_exact": True})
    read = at.model_copy(update={"presence": at.presence.model_copy(update={"exposure": far})})
    (words,) = warnings_of([read])
    assert "161 documents to 2 accounts on average, more than 1.6 times the 100" in words


def test_tiers_of_epsilon() -> None:
    assert [tier(e) for e in (0.0, 1.0, 1.01, 10.0, 10.1, 1e9, float("inf"), float("nan"))] == [
        "strong", "strong", "moderate", "moderate", "weak", "weak", "none", "none",
    ]  # fmt: skip
    for eps in (0.5, 5.0, 50.0, float("inf")):
        named = tier(eps)
        assert strength(eps).startswith(named) and words.strength(eps).startswith(
            {"none": "no"}.get(named, named)
        )


def test_integrity_alone_passes_without_protection_of_lists() -> None:
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
        assert report.outcome == outcome and report.protections[0].lists.strength == "none"
        predicate = json.loads(render_report(report, "vsa"))["predicate"]
        assert predicate["verificationResult"] == "PASSED"
        assert "RAG_AUDIT_LISTS_NONE" in predicate["verifiedLevels"]
        assert {kind for kind, text in texts(report).items() if BARE in text} == set(FORMATS)


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
        r"<tr><th[^>]*>epsilon for the largest coalition that the policy covers[^<]*</th>.*?</tr>",
        render_report(report, "html"),
    )
    assert page is not None and "met in part" in page[0] and ">met<" not in page[0]
    assert row.scope in " ".join(render_report(report, "text", checks=True).split())
    assert BARE in texts(report)["text"]
    assert {p.lists.strength for p in report.protections} == {"none", "weak"}


def test_figures_of_a_document_table_are_for_whole_documents() -> None:
    """The page gives the maximum size of a document, and no power of the factor for larger ones."""
    report = of_case("documents")
    size = report.figures.positions_per_document
    assert size is not None and size > 1
    page = texts(report)["html"]
    assert f"Both factors are for a document of at most {size} positions." in page
    assert "has at least the s-th power" not in page
    assert "which one Bernoulli bit samples." in page
    only = all(tenant.documents is not None for tenant in report.tenants)
    assert ("A document with several positions is several units" in page) is not only
    assert "one document of a document table changes" in texts(report)["text"]
