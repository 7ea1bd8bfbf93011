"""Sentences of a report that must agree with what its checks found, on published windows."""

from __future__ import annotations

import html
import json
import re

import pytest

from rag_audit.report import render_report
from rag_audit.report.build import report_of
from rag_audit.report.model import Report
from rag_audit.report.verification import ReportedVerdict
from tests.report.conftest import NOW
from tests.simulate.cases import FOLDER, run


def said(name: str) -> tuple[Report, str, str]:
    """The report of a window, and its text and its page, each as one line."""
    verdict = run(json.loads((FOLDER / name / "case.json").read_text()), FOLDER / name)
    assert isinstance(verdict, ReportedVerdict)
    report = report_of(verdict, now=NOW)
    page = html.unescape(re.sub(r"<[^>]*>", "", render_report(report, "html")))
    text = render_report(report, "text", checks=True)
    return report, " ".join(text.split()), " ".join(page.split())


def test_a_pin_that_the_window_does_not_match_is_compared_before_the_provider_is_blamed() -> None:
    report, text, page = said("another-key-pinned")
    assert "does not match a value that trust.toml pins" in report.sentence
    assert report.next_steps[1].startswith("compare the pins of trust.toml")
    for face_ in (text, page):
        assert "statement of the provider" not in face_ and "no signature of provider key" not in face_
    assert "Compare that pin with its source first" in page


def test_a_file_that_the_provider_did_not_sign_is_fetched_again_first() -> None:
    report, text, page = said("record-dropped")
    assert "is not the ledger that the provider signed" in report.sentence
    assert report.next_steps[1].startswith("fetch window.json")
    assert "['" not in text and "['" not in page
    for face_ in (text, page):
        assert "fetch the file a second time before you blame the provider for any failure" in face_


def test_a_false_statement_of_the_window_is_still_one() -> None:
    report, _, page = said("kept-exchanged")
    assert (
        " is false: 2 checks" in report.sentence and "At least one statement of the window is false" in page
    )
    assert any("ask the provider for an answer in writing" in step for step in report.next_steps)


@pytest.mark.parametrize("name", ["no-draw", "a-disclosed-query-that-was-not-asked"])
def test_an_undecided_window_denies_no_signature_that_was_checked(name: str) -> None:
    report, text, page = said(name)
    assert report.outcome == "UNDECIDED" and "no signature of this key counts" not in page
    assert all(c.outcome == "pass" for c in report.checks if c.id in ("ledger.checkpoint", "header.chain"))
    assert "no signature of provider key" not in text and "the previous window is not established" not in text


def test_a_disclosed_query_that_does_not_open_is_the_accounts_to_export_again() -> None:
    report, _, _ = said("a-disclosed-query-that-was-not-asked")
    (check,) = (c for c in report.checks if c.decides)
    assert check.expected == "a text and a salt that open hq"
    assert any("ask the account" in step for step in report.next_steps)


def test_no_limit_counts_as_met_in_any_format_where_nothing_is_established() -> None:
    report, text, page = said("opening-without-quorum")
    assert {r.outcome for r in report.requirements} == {"unproven"}
    assert not [c for c in report.checks if "withheld" in c.actual]
    assert ">met<" not in render_report(report, "html") and "above). Noise" not in page
    assert "eps_audit" not in text and "w2 cosigned only the end" in text


def test_a_limit_of_samples_says_which_tenant_it_is_not_applied_to() -> None:
    report, _, page = said("keeps-too-few")
    (limit,) = (r for r in report.requirements if r.name == "max_exclusion_factor")
    assert (
        limit.scope
        == "only law; the limit is not applied to medicine, which has noise and a factor of 18.729"
    )
    assert "A document that was not received (medicine)" in page
    assert (
        "no figure bounds the information that lists contain about it." not in page
        and "No epsilon is promised for law." in page
    )


def test_a_limit_that_is_absent_is_to_be_set() -> None:
    report, text, _ = said("max-epsilon-absent")
    assert report.next_steps[0] == "set max_epsilon in trust.toml, and repeat the verification"
    assert "trust.toml lacks max_epsilon" in text and "less privacy than you require" not in text


def test_a_receipt_in_two_files_counts_once() -> None:
    report, text, _ = said("one-receipt-under-two-names")
    assert (report.counts.receipts_handed_in, report.counts.receipts_agreeing) == (1, 1)
    assert "the reader supplied 1 receipt (in 2 files): 1 in agreement" in text


def test_advice_names_what_is_missing() -> None:
    assert any("set beta and eta" in s for s in said("sampled-mode-without-beta-and-eta")[0].next_steps)
    report, text, _ = said("no-records")
    assert not any("ask the provider for the missing parts" in s for s in report.next_steps)
    assert "counted no record: none of 4 accounts sent a query" in text


def test_every_tenant_s_epsilon_is_on_the_first_screen() -> None:
    report, text, _ = said("documents")
    own = next(t for t in report.tenants if t.tenant == "medicine")
    assert (
        own.eps != report.figures.eps
        and f"eps of tenant medicine is {own.eps} (" in text.partition("signed by")[0]
    )
