"""The default output of `verify`: at most twelve lines, the verdict first and last, and a way out of a failure."""

from __future__ import annotations

import pytest

from rag_audit.log.signing import SigningKey
from rag_audit.report import render_report
from rag_audit.report.build import filing_of, report_of_beginning
from rag_audit.report.explanations import explanations
from rag_audit.report.model import Report
from rag_audit.report.signature import signed
from rag_audit.report.summary import MAX_LINES
from rag_audit.report.text import brief
from rag_audit.verify.inputs import Inputs


def shown(report: Report) -> list[str]:
    return render_report(report, "summary").splitlines()


def row(report: Report, label: str) -> str:
    """The text of the row with a label."""
    (line,) = (line for line in shown(report) if line.startswith(f"{label} "))
    return line[len(label) :].strip()


def test_every_outcome_has_at_most_twelve_lines_with_the_verdict_first_and_last(
    reports: dict[str, Report],
) -> None:
    for report in reports.values():
        first, *middle, last = shown(report)
        assert 4 <= len(middle) <= MAX_LINES - 2
        assert first == report.line and last.split(" ")[0] == report.outcome
        assert first.startswith(last.partition(" allow=")[0]) and set(last.split(" ")) <= set(
            first.split(" ")
        )
        assert not [
            line for line in middle if line.startswith(("PASS", "FAIL", "UNMET", "UNPROVEN", "UNDECIDED"))
        ]


def test_a_pass_states_figure_signers_counts_and_weaknesses(reports: dict[str, Report]) -> None:
    report = reports["PASS"]
    assert shown(report)[-1] == "PASS eps_audit=12.39 delta=1e-5 k_max=2 allow=unsafe-setup"
    assert row(report, "isolation").startswith(
        "law and medicine: strong; accounts of other tenants see no data of this index"
    )
    assert row(report, "lists").startswith(
        "law and medicine: weak; epsilon 12.39 for the lists of 2 accounts: a"
    )
    assert row(report, "presence").startswith("law and medicine: none; the text of a document that is")
    assert row(report, "presence").endswith("all questions in the log: at most 8)")
    assert row(report, "absence").startswith("law and medicine: none; no exclusion factor")
    assert row(report, "WARNING").startswith("law and medicine: epsilon 12.39 is above 10")
    assert row(report, "signed by").startswith("w1 and w2 cosigned")
    assert row(report, "counted").startswith("7 records (7 proved")
    assert "; weaker: setup, " in row(report, "details")
    assert row(report, "now").startswith("keep window.json")


def test_a_sampled_verdict_never_says_eps_audit(reports: dict[str, Report]) -> None:
    assert "eps_audit" not in render_report(reports["PASS-SAMPLED"], "summary")


def test_a_failure_ends_with_reason_innocent_cause_and_next_step(reports: dict[str, Report]) -> None:
    report = reports["FAIL"]
    labels = [line[:12].strip() for line in shown(report)[-5:-1]]
    assert labels == ["reason", "", "likely cause", "next step"]
    assert row(report, "reason").startswith("fail ledger.root, at final_checkpoint: read ")
    assert row(report, "likely cause") == "if nobody cheated: the file was edited or damaged in transit"
    assert row(report, "next step").startswith("rely on no figure of this window; fetch window.json")


@pytest.mark.parametrize("name", ["UNDECIDED", "UNPROVEN", "UNMET"])
def test_other_outcomes_end_the_same_way(name: str, reports: dict[str, Report]) -> None:
    report = reports[name]
    check = next(c for c in report.checks if c.decides)
    assert row(report, "reason").startswith(f"{check.outcome} {check.id}")
    assert row(report, "likely cause") and not row(report, "likely cause").startswith("if nobody cheated")
    assert row(report, "next step").startswith(report.next_steps[0])


def test_the_check_that_shows_a_damaged_file_comes_first(reports: dict[str, Report]) -> None:
    """Whatever other checks a damaged file fails, and in whatever order."""
    report = reports["FAIL"]
    turned = report.model_copy(update={"checks": report.checks[::-1]})
    assert row(turned, "reason").startswith("fail ledger.root")


def test_a_check_without_an_honest_cause_says_so(reports: dict[str, Report]) -> None:
    report = reports["FAIL"]
    none = next(e for e in explanations().values() if e.honest_causes[0].startswith("no honest cause"))
    (check, *_) = (c for c in report.checks if c.base == "ledger.root")
    changed = check.model_copy(update={"explanation": none})
    report = report.model_copy(update={"checks": [changed if c is check else c for c in report.checks]})
    assert row(report, "likely cause") == none.honest_causes[0]


def test_the_signature_is_named(reports: dict[str, Report]) -> None:
    key = SigningKey.generate("verifier.example.org")
    report = signed(reports["PASS"], key)
    assert f"report signed with verifier.example.org+{key.verifier.key_id.hex()}" in render_report(
        report, "summary"
    )
    assert "report signed" not in render_report(reports["PASS"], "summary")


def test_a_long_value_of_a_file_is_cut(reports: dict[str, Report]) -> None:
    report = reports["FAIL"]
    checks = [c.model_copy(update={"actual": "x" * 10_000, "at": "y" * 10_000}) for c in report.checks]
    lines = shown(report.model_copy(update={"checks": checks, "sentence": "z" * 10_000}))
    assert len(lines) <= MAX_LINES and max(map(len, lines)) <= 500


def test_a_run_without_a_verdict_has_its_line_first_and_last() -> None:
    report = report_of_beginning(filing_of(Inputs()))
    lines = render_report(report, "summary").splitlines()
    assert lines[0] == lines[-1] == report.line and len(lines) == 4


def test_colour_changes_no_character(reports: dict[str, Report]) -> None:
    plain = render_report(reports["PASS"], "summary")
    painted = render_report(reports["PASS"], "summary", colour=True)
    for code in ("\x1b[0m", "\x1b[1m", "\x1b[1;32m"):
        assert code in painted
        painted = painted.replace(code, "")
    assert painted == plain


def test_brief_has_four_lines_and_the_first_is_for_machines(reports: dict[str, Report]) -> None:
    lines = brief(reports["PASS"]).splitlines()
    assert len(lines) == 4 and lines[0] == (
        "PASS eps_audit=12.39 delta=1e-5 k_max=2 decisive=law allow=unsafe-setup"
    )
