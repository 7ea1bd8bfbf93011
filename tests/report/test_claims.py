"""Each sentence of a report rests on checks, and disappears from every format once one of them did not pass."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from rag_audit.cli.reports import FORMATS
from rag_audit.models.policy import Policy
from rag_audit.report import render_report
from rag_audit.report.build import report_of
from rag_audit.report.claims import INSTANTS, REQUIREMENTS, SENTENCES, WITNESSED, Claim, Passed
from rag_audit.report.model import Report
from rag_audit.report.requirements import WORDS
from rag_audit.report.verification import ReportedVerdict, reported
from rag_audit.verify.case import Check, Status
from rag_audit.verify.standing import RULES, TENANTS, Kind, base_id
from rag_audit.verify.verdict import concluded
from tests.report.conftest import EXAMPLES, NOW, verify
from tests.simulate.cases import FOLDER, run

WAYS = ("fail", "undecided", "unproven", "unmet", "absent")


def _case(name: str) -> ReportedVerdict:
    verdict = run(json.loads((FOLDER / name / "case.json").read_text()), FOLDER / name)
    assert isinstance(verdict, ReportedVerdict)
    return verdict


def _honest() -> list[str]:
    cases = sorted(FOLDER.glob("*/case.json"))
    return [
        path.parent.name for path in cases if json.loads(path.read_text())["fault"].startswith("nothing:")
    ]


@cache
def bases() -> dict[str, ReportedVerdict]:
    """Verdicts that pass: the worked example in both modes, and honest windows."""
    sampled = {"mode": "sampled", "beta": "0.5", "eta": "0.5", "challenge": "published"}
    result = {"example": verify(), "example, sampled": verify(**sampled)}
    result["example, re-executed"] = _re_executed(result["example"])
    result["example, two windows"] = _two_windows(result["example"])
    return {**result, **{name: _case(name) for name in _honest()}}


def _re_executed(verdict: ReportedVerdict) -> ReportedVerdict:
    """As if the window had no proofs of A1 and this verifier had embedded disclosed questions again."""
    figures = verdict.figures.copy()
    figures["query_embedding"] = "re-executed(4/7)"
    again = Check(
        "proof.query_embedding", Status.PASS, "cq is the pinned embedder's vector of the query", "7 of 7"
    )
    checks = [
        *(c for c in verdict.checks if not c.id.startswith(("proof.embed.", "proof.query_embedding"))),
        again,
    ]
    needed = {name for name in verdict.needed if not name.startswith("proof.embed.")} | {
        "proof.query_embedding"
    }
    return reported(concluded(checks, figures, verdict.notes, frozenset(needed)), verdict.described)


def _two_windows(verdict: ReportedVerdict) -> ReportedVerdict:
    """As if the window before this one had been handed in."""
    policy = Policy.parse(json.loads((EXAMPLES / "window.json").read_text())["policy"], field="policy")
    policies = [policy, policy.model_copy(update={"window": "w-0"})]
    return replace(verdict, described=replace(verdict.facts, policies=policies))


def without(verdict: ReportedVerdict, check: str, way: str) -> ReportedVerdict:
    """The verdict with every check of an id turned off in one way."""
    checks = [
        c if base_id(c.id)[0] != check else replace(c, status=Status(way))
        for c in verdict.checks
        if way != "absent" or base_id(c.id)[0] != check
    ]
    return reported(concluded(checks, verdict.figures, verdict.notes, verdict.needed), verdict.described)


def texts(report: Report) -> dict[str, str]:
    """Every format as one line without markup, so that a sentence is found wherever a line is broken."""
    result = {kind: html.unescape(render_report(report, kind, checks=True)) for kind in FORMATS}
    result["html"] = re.sub(r"<[^>]+>", "", result["html"])
    return {kind: re.sub(r"\s+", " ", text) for kind, text in result.items()}


def ways(verdict: ReportedVerdict, check: str) -> Iterator[str]:
    """The ways in which a check can be off; absent is one only where it had to run."""
    needed = {base_id(name)[0] for name in verdict.needed}
    yield from (way for way in WAYS if way != "absent" or check in needed)


def test_every_sentence_has_a_check_and_every_check_is_known() -> None:
    tables: list[dict[str, Claim]] = [dict(t) for t in (SENTENCES, INSTANTS, WITNESSED, REQUIREMENTS)]
    for table in tables:
        for name, claim in table.items():
            assert claim.checks and set(claim.ran) <= set(claim.checks), name
            assert set(claim.checks) <= set(RULES), name
            assert len(set(claim.checks)) == len(claim.checks), name
    assert set(REQUIREMENTS) == set(WORDS)
    evidence = {check for check, rule in RULES.items() if rule.kind is Kind.EVIDENCE}
    assert set(SENTENCES["privacy"].checks) == evidence


def test_a_sentence_is_in_every_format() -> None:
    seen = set()
    for verdict in bases().values():
        report = report_of(verdict, now=NOW)
        result = texts(report)
        for claim in report.claims:
            seen.add(claim.id)
            for kind, text in result.items():
                assert claim.words in text, (claim.id, kind)
            assert claim.checks == list(SENTENCES[claim.id].checks)
    assert set(SENTENCES) == seen


PAIRS = [
    (f"{kind}.{name}", claim, check)
    for kind, table in (
        ("sentence", SENTENCES),
        ("instant", INSTANTS),
        ("witness", WITNESSED),
        ("met", REQUIREMENTS),
    )
    for name, claim in table.items()
    for check in claim.checks
]


def test_no_row_of_the_table_holds_without_one_of_its_checks() -> None:
    """Each pair alone, whatever window has both: every other check passed."""
    every = [Check(name, Status.PASS, "", "") for name in RULES]
    assert all(Passed(every, frozenset()).holds(claim) for _, claim, _ in PAIRS)
    for name, claim, check in PAIRS:
        others = [c for c in every if c.id != check]
        for status in (Status.FAIL, Status.UNDECIDED, Status.UNPROVEN, Status.UNMET):
            assert not Passed([*others, Check(check, status, "", "")], frozenset()).holds(claim), (
                name,
                check,
            )
        assert not Passed(others, frozenset({check})).holds(claim), (name, check)
        assert not Passed(others, frozenset({f"{check}.law"})).holds(claim) or check not in TENANTS
        assert Passed(others, frozenset()).holds(claim) == (check not in claim.ran), (name, check)


EXAMPLE_CHECKS = sorted({base_id(check)[0] for check in RULES})


@pytest.mark.parametrize("check", EXAMPLE_CHECKS)
def test_a_sentence_goes_with_each_of_its_checks(check: str) -> None:
    """Each pair of a sentence and a check, in each way in which the check can be off, in each format."""
    tried, seen = 0, set[str]()
    for name, verdict in bases().items():
        if not any(base_id(c.id)[0] == check for c in verdict.checks):
            continue
        whole = report_of(verdict, now=NOW)
        resting = [claim for claim in whole.claims if check in claim.checks]
        rows = [r for r in whole.requirements if check in REQUIREMENTS[r.name].checks and r.outcome == "pass"]
        if seen.issuperset(claim.id for claim in resting) and tried:
            continue  # each sentence once: a window takes a second to render in every format
        seen |= {claim.id for claim in resting}
        instants = [
            e for e in whole.timeline.events if e.kind in INSTANTS and check in INSTANTS[e.kind].checks
        ]
        for way in ways(verdict, check):
            report = report_of(without(verdict, check, way), now=NOW)
            left = {claim.id for claim in report.claims}
            assert not left & {claim.id for claim in resting}, (name, way)
            result = texts(report)
            for claim in resting:
                assert not [kind for kind, text in result.items() if claim.words in text], (
                    name,
                    way,
                    claim.id,
                )
            assert not [e for e in report.timeline.events if e.kind in {e.kind for e in instants}]
            met = {r.name for r in report.requirements if r.outcome == "pass"}
            assert not met & {row.name for row in rows}, (name, way)
            for part, rests in WITNESSED.items():
                if check in rests.checks:
                    assert not [w for w in report.vouching.witnesses if getattr(w, part)], (name, way)
            if RULES[check].kind is Kind.EVIDENCE:
                assert report.figures.standing == "not-established" and report.figures.eps is None
                assert not report.outcome.startswith(("PASS", "UNMET"))
            tried += 1
    assert tried or check in NOT_RUN


NOT_RUN: dict[str, str] = {
    "trust.max_exposure": "shown only where trust.toml limits the number of documents",
    "trust.max_fresh_share": "shown only where trust.toml limits the replaced rows of document tables",
    "proof.system": "shown only where a record names an unknown system",
    "receipt.disclosed": "shown only where a disclosed question opens nothing",
}
"""Checks that no window that passes has, and why."""


EMPTY = re.compile(r"(^|[ (]): |: *[,;.]|  |\bNone\b|\bnan\b|\(\)|^\W|, ,| and \.|\bof +[.,]")
"""What a sentence with an empty subject, a doubled space or a missing value looks like."""


def sentences(report: Report) -> list[str]:
    """Every text of a report that is this package's sentence and no quotation of a check or a file."""
    return [
        report.sentence,
        *(c.words for c in report.claims),
        *report.warnings,
        *(line.figure for p in report.protections for line in p.lines.values()),
        *(w for line in report.weaker for w in (line.words, line.better)),
        *(r.words for r in report.retrieval),
        *(e.words for e in report.timeline.events),
        *report.notes,
        *report.next_steps,
        *report.does_not_prove,
    ]


@pytest.mark.parametrize("name", sorted(path.parent.name for path in FOLDER.glob("*/case.json")))
def test_no_window_has_a_sentence_without_a_subject(name: str) -> None:
    verdict = run(json.loads((FOLDER / name / "case.json").read_text()), FOLDER / name)
    if not isinstance(verdict, ReportedVerdict):
        return
    report = report_of(verdict, now=NOW)
    for sentence in sentences(report):
        assert not (result := EMPTY.search(sentence)), (result, sentence)
    words = re.sub(r"<(style|pre|code)[^>]*>.*?</\1>", "..", render_report(report, "html"), flags=re.DOTALL)
    shown = [html.unescape(text) for text in re.findall(r">([^<>]+)<", words)]
    assert not [text for text in shown if re.search(r"\bNone\b|  |^:  ", text)]
    answers = render_report(report, "text").partition("\nfiled under\n")[0].partition("\nprivacy ")[2]
    assert answers and not re.search(r"\bNone\b|: ,|\(\)", answers)
    assert not [c.words for c in report.claims if c.words[:1].islower()]
    established = report.figures.standing != "not-established"
    assert established == report.outcome.startswith(("PASS", "UNMET"))
    passed = {base_id(c.id)[0] for c in verdict.checks} - {
        base_id(c.id)[0] for c in verdict.checks if c.status is not Status.PASS
    }
    ran = {base_id(c.id)[0] for c in verdict.checks}
    unneeded = set(RULES) - ran - on_every_window()
    rows = [(c.id, SENTENCES[c.id]) for c in report.claims]
    if established or report.outcome == "UNPROVEN":
        rows += [(r.name, REQUIREMENTS[r.name]) for r in report.requirements if r.outcome == "pass"]
        rows += [(e.kind, INSTANTS[e.kind]) for e in report.timeline.events if e.kind in INSTANTS]
    for row, rests in rows:
        assert set(rests.checks) <= passed | unneeded, row


@cache
def on_every_window() -> frozenset[str]:
    """The checks that run on each of these windows, whatever they hold."""
    names = (
        "few",
        "embedded",
        "sampling",
        "certified",
        "no-records",
        "manifest-not-pinned",
    )
    return frozenset.intersection(*(frozenset(base_id(c.id)[0] for c in _case(n).checks) for n in names))


def test_a_sentence_of_an_unproven_window_goes_with_a_check_that_did_not_run() -> None:
    """Without the opening's quorum no check says when the opening was published."""
    verdict = _case("opening-without-quorum")
    assert verdict.outcome == "UNPROVEN" and "header.published" in verdict.needed
    assert not [c for c in verdict.checks if c.id == "header.published"]
    assert [c.status for c in verdict.checks if c.id == "header.root"] == [Status.PASS]
    checks = [c for c in verdict.checks if c.id != "header.root"]
    report = report_of(replace(verdict, checks=checks), now=NOW)
    assert not {"chain", "next", "ledger"} & {c.id for c in report.claims}
    assert not {"opens", "closes", "delete-after"} & {e.kind for e in report.timeline.events}
    assert not [w for w in report.vouching.witnesses if w.header]


def test_the_pattern_finds_what_it_is_there_for() -> None:
    bad: list[Any] = [
        "The ledger was not rewritten:  cosigned its beginning",
        ": cosigned",
        "drawn by None",
        "a  b",
    ]
    assert all(EMPTY.search(text) for text in bad)
    assert not EMPTY.search("The ledger was not rewritten: w1 and w2 cosigned its beginning and its end.")


def test_the_previous_window_is_named_once() -> None:
    """The sentence continues the words of `header.chain`, which name the window too if it was not supplied."""
    report = report_of(bases()["in-a-row-not-given"], now=NOW)
    (sentence,) = [claim.words for claim in report.claims if claim.id == "chain"]
    assert report.chain.before is not None
    assert sentence.count(report.chain.before.header[:16]) == 1 and "not supplied" in sentence
