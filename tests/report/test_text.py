"""The text face: ten questions on its first screen, and the sentences that once misled a reader."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from rag_audit.report.build import report_of
from rag_audit.report.meaning import factor, one_in, strength
from rag_audit.report.model import Report
from rag_audit.report.text import render
from rag_audit.report.verification import ReportedVerdict
from rag_audit.verify.checks.trust import _difference
from tests.report.conftest import NOW

SCREEN = 54
"""Lines of 100 characters, as a large terminal has them."""


def screen(report: Report) -> str:
    """The first screen as one line, so that no sentence is cut by a line break."""
    return " ".join(" ".join(render(report).split("\n")[:SCREEN]).split())


QUESTIONS: dict[str, Callable[[Report], list[str]]] = {
    "passed?": lambda r: [r.line, "All 71 checks of window w-1 of example.org/rag passed"],
    "what is eps, and is it good?": lambda r: [
        "privacy eps_audit is 12.39 for up to 2 colluding accounts of 3 queries each; for lists this is weak, because it"
        " is above 10",
        "a probability of 1 in 2 that a document of one position is present becomes at most 240,386 in 240,387, except with"
        " probability 1e-5 (delta)",
        "a test that wrongly suspects 1 in 100 absent documents of one position recognises at most 52 in 100 present ones",
    ],
    "who vouches?": lambda r: [
        "signed by w1 and w2 cosigned both the window header and the end of the ledger (trust.toml requires 2 of 2"
        " witnesses);"
        " the beacon consists of nonces of w1 and w2; the provider signed with key"
        f" example.org/rag+{r.vouching.provider.key_id}"
    ],
    "how many records, proofs, receipts?": lambda r: [
        "counted 7 records (7 proved, 7 require a proof) sent by 5 of 5 accounts; the reader supplied 7 receipts: 7 in"
        " agreement with the ledger, 4 from accounts that trust.toml lists"
    ],
    "which requirement is closest to its limit?": lambda r: [
        "limits the window meets these limits without a margin: max_delta is 0.00001 (at most 1e-5),",
        "the closest other limit: min_receipts is 4 (at least 1), of which the window uses 25 %",
    ],
    "what is weaker than it could be?": lambda r: [
        "weaker setup: one party made the keys of the proofs",
        "document_embedding: only the provider's word shows that the committed vectors are computed from the documents'"
        " texts",
    ],
    "what does retrieval lose?": lambda r: [
        "retrieval law and medicine: every score has noise with a standard deviation of 1.0308 times the maximum change"
        " by one document (sigma/Delta)",
        "on public collections (docs/study.md), the share of questions that find their passage among five results is"
        " 17.0 to 55.5 % with noise at sigma/Delta 0.25, 0.0 to 0.3 % with noise at sigma/Delta 4.03 and 62.9 to 96.8 %"
        " without a mechanism",
    ],
    "what is outside?": lambda r: [
        "outside the figures do not cover the content of a returned passage (its account reads it), the text that a"
        " model writes from it, coalitions above 2 accounts, and answers outside of the ledger; the end of this report"
        " lists 16 such points"
    ],
    "which window comes before and after?": lambda r: [
        "chain this window is the first of its origin",
        f"the next window has to name this header, {r.window.header[:16]}.., and this final root,"
        f" {r.window.root[:16]}..",
    ],
    "what do I do now?": lambda r: ["now keep window.json, its siblings, trust.toml and the receipts with this report"],
}  # fmt: skip


@pytest.mark.parametrize("question", QUESTIONS)
def test_the_first_screen_answers(question: str, reports: dict[str, Report]) -> None:
    result = screen(reports["PASS"])
    for answer in QUESTIONS[question](reports["PASS"]):
        assert answer in result


def test_the_checks_are_left_to_who_asks_and_to_who_failed(reports: dict[str, Report]) -> None:
    row = re.compile(r"^(?:pass|fail|undecided|unproven|unmet) {2,}", re.MULTILINE)
    assert not row.findall(render(reports["PASS"]))
    for name in ("FAIL", "UNDECIDED", "UNPROVEN", "UNMET"):
        assert len(row.findall(render(reports[name]))) == len(reports[name].checks)
    with_checks = render(reports["PASS"], checks=True)
    assert len(row.findall(with_checks)) == 71 and "  exact          eps 12.39  <- eps_audit" in with_checks
    assert "requirements of trust.toml" in with_checks


def test_lines_fit_and_the_verdict_alone_stands_at_the_margin(reports: dict[str, Report]) -> None:
    for report in reports.values():
        lines = render(report, checks=True).split("\n")
        assert lines[0] == report.line
        start = lines.index("checks")
        assert all(
            len(line) <= 100 or line.lstrip().startswith(("again", "read", "expected"))
            for line in lines[1:start]
        )
        assert not [
            line for line in lines[1:] if line.startswith(("PASS", "FAIL", "UNMET", "UNPROVEN", "UNDECIDED"))
        ]


# Sentences that misled a reader.


def test_a_sampled_verdict_never_says_eps_audit(reports: dict[str, Report]) -> None:
    text = render(reports["PASS-SAMPLED"], checks=True)
    assert "eps_audit" not in text and "eps_if_conforming is 12.39" in text
    partial = reports["PASS-SAMPLED"]
    partial = partial.model_copy(update={"figures": partial.figures.model_copy(update={"sampled": 3})})
    said = screen(partial)
    assert (
        "up to a share 0.5 of the records may be false or without noise, and the draw misses a larger share with"
        " probability at most" in said
    )


def test_a_realised_figure_above_the_bound_is_explained(verdicts: dict[str, ReportedVerdict]) -> None:
    verdict = verdicts["PASS"]
    figures: Any = {**verdict.figures, "eps_realised": "12.4"}
    report = report_of(replace(verdict, figures=figures), now=NOW)
    assert report.figures.realised_above
    assert "the figure for the sent queries is above eps_audit, which is no contradiction" in " ".join(
        render(report).split()
    )
    assert "no contradiction" not in render(report_of(verdict, now=NOW))


def test_the_coalition_s_counts_are_named(reports: dict[str, Report]) -> None:
    result = next(c.actual for c in reports["PASS"].checks if c.id == "coalition.count")
    assert result == "c = 2: 2 accounts repeated a question almost word for word, 2 in one tenant"


def test_unmet_names_every_requirement(reports: dict[str, Report]) -> None:
    report = reports["UNMET"]
    text = screen(report)
    assert len(report.decided_by) == 4
    assert all(f"unmet {name}" in text for name in report.decided_by)
    assert "does not meet trust.toml: 4 requirements not met (receipt.independent" in text
    assert (
        "the window does not meet 4 of 17 requirements: max_epsilon is 12.39 (required: at most 1)"
        in " ".join(render(report).split())
    )
    assert "max_theta is 0.8 (trust.toml has no limit)" in " ".join(render(report).split())


def test_the_positions_are_the_windows_own(reports: dict[str, Report]) -> None:
    report = reports["PASS"]
    big = [t.model_copy(update={"capacity": 100_000, "longest": 5}) for t in report.tenants]
    assert "1,024" not in render(report)
    assert "among 8 positions with probability 25 % a query (K = 2), 58 % over 3" in screen(report)
    assert "among 100,000 positions with probability 0.005 % a query (K = 5), 0.015 % over 3" in screen(
        report.model_copy(update={"tenants": big})
    )
    half = [t.model_copy(update={"capacity": 64, "longest": 60}) for t in report.tenants]
    assert "with probability 94 % a query (K = 60), nearly 100 % over 3" in screen(
        report.model_copy(update={"tenants": half})
    )


def test_no_time_is_in_raw_milliseconds(reports: dict[str, Report]) -> None:
    for report in reports.values():
        assert not re.search(r"\b1[78]\d{11}\b", render(report, checks=True))
    result = {c.id: c.actual for c in reports["PASS"].checks}
    assert result["header.published"] == "a quorum at 2027-01-15 08:00:00 UTC"


def test_no_dictionary_is_printed(reports: dict[str, Report]) -> None:
    for report in reports.values():
        assert not re.search(r"[{}\[\]]", render(report, checks=True))
    pins = {"a": "1", "b": "2"}
    assert _difference(pins, {"a": "1", "b": "3", "c": "4"}) == "b is 3, the pin is 2 (and 1 more)"
    assert _difference(pins, {"a": "1"}) == "b is missing, the pin is 2"
    assert _difference(pins, [1]) == "no named artefacts"


def test_a_window_of_the_future_is_noted(verdicts: dict[str, ReportedVerdict]) -> None:
    text = render(report_of(verdicts["PASS"], now=NOW - 20_000_000))
    assert "  - the window is dated after this report: " in text


def test_a_report_can_be_filed(reports: dict[str, Report]) -> None:
    report = reports["PASS"]
    text = render(report)
    assert "Verified 2027-01-15 10:46:40 UTC by rag-audit 0." in text
    assert f"  receipts   7 files  {report.filing.receipts.sha256}" in text


def test_a_window_that_failed_has_no_figure(reports: dict[str, Report]) -> None:
    for name in ("FAIL", "UNDECIDED", "UNPROVEN"):
        text = render(reports[name], checks=True)
        assert "12.39" not in text
        assert "privacy      not established" in text


def test_a_file_that_the_provider_did_not_sign_is_not_held_against_it(reports: dict[str, Report]) -> None:
    said = "fetch the file a second time before you blame the provider for any failure"
    assert said in " ".join(render(reports["FAIL"]).split())
    assert not [n for n in ("UNDECIDED", "UNPROVEN", "UNMET") if said in " ".join(render(reports[n]).split())]


def test_odds_are_said_of_the_tenants_that_sample(reports: dict[str, Report]) -> None:
    report = reports["PASS"]
    first, second = report.tenants
    kept = first.model_copy(update={"exclusion_factor": "4.2558", "exclusion_factor_all_accounts": "166.11"})
    said = " ".join(render(report.model_copy(update={"tenants": [kept, second]})).split())
    assert (
        f"accounts of {first.tenant} that never received a given document of one position may conclude"
        in said
    )
    assert "factor of at most 4.2558 for 2 accounts (exclusion_factor) and 166.11 for all accounts" in said
    assert "the presence of a document that an account asks for has no protection" in said
    assert "exclusion_factor" not in render(report)


def test_numbers_in_words_stay_upper_bounds() -> None:
    assert [one_in(p) for p in (0.00001, 0.3, 0.5, 0.51996, 1.0, 0)] == [
        "1 in 100,000", "1 in 3", "50 in 100", "52 in 100", "100 in 100", "0"
    ]  # fmt: skip
    assert [factor(e) for e in (0.1, 1, 12.39, 40)] == [
        "a factor 1.2", "a factor 2.8", "a factor 240,386", "a factor of e^40, which is above a million"
    ]  # fmt: skip
    assert [strength(e).split(",")[0] for e in (1, 1.01, 10, 10.1)] == [
        "strong",
        "moderate",
        "moderate",
        "weak",
    ]


def test_an_explanation_of_several_tenants_is_printed_once(reports: dict[str, Report]) -> None:
    report = reports["UNDECIDED"]
    first = next(c for c in report.checks if c.decides)
    twice = [c for c in report.checks if c is not first] + [
        first.model_copy(update={"id": f"{first.base}.{tenant}", "tenant": tenant}) for tenant in "ab"
    ]
    assert first.explanation is not None
    text = " ".join(render(report.model_copy(update={"checks": twice})).split())
    assert text.count(first.explanation.failed) == 1
    assert f"undecided {first.base}.a" in text and f"undecided {first.base}.b" in text
