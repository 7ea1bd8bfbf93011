"""Four lines for each tenant: each has its own strength and figure, and no line colours another one."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from rag_audit._internal.errors import EncodingError, ExitCode
from rag_audit.cli.reports import FORMATS
from rag_audit.models.trust import Trust
from rag_audit.report import render_report
from rag_audit.report.build import filing_of, report_of, report_of_error
from rag_audit.report.explanations import explanations
from rag_audit.report.model import Report, TenantProtection
from rag_audit.report.protection import exclusion_tier, odds_after, odds_words, protections_of
from rag_audit.report.text import brief
from rag_audit.report.verification import ReportedVerdict, verify_window
from rag_audit.verify.case import Check, Status
from rag_audit.verify.inputs import Inputs
from tests.report.conftest import EXAMPLES, NOW, verify
from tests.simulate.cases import FOLDER, run


def of_case(name: str) -> Report:
    verdict = run(json.loads((FOLDER / name / "case.json").read_text()), FOLDER / name)
    assert isinstance(verdict, ReportedVerdict)
    return report_of(verdict, now=NOW)


def strengths(protection: TenantProtection) -> dict[str, str]:
    return {name: line.strength for name, line in protection.lines.items()}


def made(
    report: Report, *, failed: str | None = None, judged: bool = True, figures: Any = None
) -> TenantProtection:
    """The lines of the first tenant, with one check that did not pass."""
    from rag_audit.report.claims import Passed

    checks = [
        Check(c.id, Status.UNPROVEN if c.base == failed else Status(c.outcome), c.expected, c.actual)
        for c in report.checks
    ]
    passed = Passed(checks, frozenset())
    return protections_of(
        figures or report.figures,
        report.counts,
        report.tenants,
        passed,
        judged=judged,
        vouching=report.vouching,
    )[0]


def test_a_weak_epsilon_colours_no_other_line(reports: dict[str, Report]) -> None:
    first, second = reports["PASS"].protections
    assert [first.tenant, second.tenant] == ["law", "medicine"]
    assert strengths(first) == {"isolation": "strong", "lists": "weak", "presence": "none", "absence": "none"}
    assert first.lists.eps == "12.39" and first.lists.delta == "1e-5" and first.lists.accounts == 2
    tenants = [t.model_copy(update={"eps": "0.5"}) for t in reports["PASS"].tenants]
    changed = made(reports["PASS"].model_copy(update={"tenants": tenants}))
    assert strengths(changed) == {
        "isolation": "strong",
        "lists": "strong",
        "presence": "none",
        "absence": "none",
    }


def test_a_factor_for_absence_does_not_make_lists_private() -> None:
    law, medicine = of_case("documents").protections
    assert strengths(law) == {
        "isolation": "strong",
        "lists": "none",
        "presence": "none",
        "absence": "moderate",
    }
    assert law.absence.exclusion_factor == "3.3334" and law.absence.accounts is None
    assert law.absence.positions == 2 and law.lists.eps is None
    assert law.absence.figure == (
        "a missing result makes absence more likely, by a factor of at most 3.3334 for any number of accounts: a"
        " probability of 1 in 2 that a document of at most 2 positions is absent becomes at most 17 in 22"
    )
    assert "(70 in 100)" in law.presence.figure and law.presence.keep == "0.7"
    assert medicine.absence.exclusion_factor is None and medicine.lists.eps == "12.39"


def test_exposure_is_a_number_of_documents_next_to_exact_retrieval() -> None:
    law = of_case("documents").protections[0]
    exposure = law.presence.exposure
    assert exposure is not None
    # Two accounts with three questions of two positions each could read 12 documents; the table has room for 6.
    assert (exposure.accounts, exposure.documents, exposure.limit, exposure.exact) == (2, 6, 6, 6)
    assert exposure.by_chance is None and not exposure.exceeds_exact
    assert exposure.realised == 2


def test_a_window_without_figures_has_none_in_its_lines(reports: dict[str, Report]) -> None:
    for name in ("FAIL", "UNDECIDED"):
        for protection in reports[name].protections:
            assert set(strengths(protection).values()) == {"not-established"}, name
            assert not any(line.checks for line in protection.lines.values())
    for protection in reports["UNPROVEN"].protections:
        assert strengths(protection) | {"isolation": ""} == {
            "isolation": "", "lists": "not-established", "presence": "not-established",
            "absence": "not-established",
        }  # fmt: skip
        assert protection.lists.eps is None and protection.presence.exposure is None


@pytest.mark.parametrize("check", ["header.indices", "proof.valid", "ledger.accounts"])
def test_isolation_depends_on_its_checks(check: str, reports: dict[str, Report]) -> None:
    report = reports["PASS"]
    assert made(report).isolation.strength == "strong"
    assert check in made(report).isolation.checks
    line = made(report, failed=check).isolation
    assert line.strength == "not-established" and not line.proved
    assert made(report, judged=False).isolation.strength == "not-established"


def test_answers_without_proof_weaken_each_established_line(reports: dict[str, Report]) -> None:
    report = reports["PASS-SAMPLED"]
    records = report.counts.records
    part = report.figures.model_copy(update={"sampled": records - 1})
    tenants = [t.model_copy(update={"eps": "0.5", "exclusion_factor": "2", "exclusion_factor_all_accounts": "2"})
               for t in report.tenants]  # fmt: skip
    report = report.model_copy(update={"tenants": tenants})
    line = made(report, figures=part)
    assert strengths(line) == {"isolation": "weak", "lists": "weak", "presence": "none", "absence": "weak"}
    assert not line.isolation.proved and "some answers have no proof" in line.lists.reasons[-1]
    assert made(report).lists.strength == "strong"


def test_odds_in_plain_words() -> None:
    def words(factor: float) -> str:
        return odds_words(factor, "it is absent").removeprefix("a probability of 1 in 2 that it is absent ")

    assert words(10.0) == "becomes at most 10 in 11"
    assert words(2.0) == "becomes at most 2 in 3"
    assert words(2.05) == "becomes at most 21 in 31"  # rounded up
    assert words(float("inf")) == words(float("nan")) == "can become nearly 1"
    assert odds_after(1_000_001.0) is None
    for factor in (1.0, 1.01, 3.3334, 9.99, 10.01, 12345.6):
        odds = odds_after(factor)
        assert odds is not None and odds.likely / (odds.of - odds.likely) >= factor


def test_limits_of_the_exclusion_factor() -> None:
    assert [exclusion_tier(f) for f in (1, 3, 3.1, 20, 20.1, 150, 150.1, float("inf"), float("nan"))] == [
        "strong", "strong", "moderate", "moderate", "weak", "weak", "none", "none", "none",
    ]  # fmt: skip


@pytest.mark.parametrize(("dependent", "labelled"), [((), False), (("w1",), True), (("w1", "w2"), True)])
def test_a_pilot_has_a_label(dependent: tuple[str, ...], labelled: bool) -> None:
    """A quorum of both witnesses needs each of them."""
    trust = Trust.load(EXAMPLES / "trust.toml")
    witnesses = [w.model_copy(update={"independent": w.name not in dependent}) for w in trust.witness]
    trust = trust.model_copy(update={"witness": witnesses})
    verdict = verify_window(EXAMPLES / "window.json", trust=trust, receipts=[EXAMPLES / "receipts"])
    report = report_of(verdict, now=NOW)
    assert verdict.passed and ("allow=pilot-witnesses" in verdict.line) is labelled
    assert [w.name for w in report.vouching.witnesses if not w.independent] == [*dependent]
    assert report.warnings[0].startswith("PILOT: trust.toml shows that w1") is labelled
    for kind in FORMATS:
        assert ("PILOT: " in render_report(report, kind)) is labelled, kind
    assert ("meaning: PILOT, " in brief(report)) is labelled
    first = brief(report).splitlines()[0]
    summary = render_report(report, "summary").splitlines()
    for line in (first, summary[0], summary[-1], render_report(report, "text").splitlines()[0]):
        assert ("allow=pilot-witnesses" in line.split(" ")) is labelled, line


def test_the_check_of_a_pilot_states_the_independent_receipts() -> None:
    trust = Trust.load(EXAMPLES / "trust.toml")
    dependent = {"account": [a.model_copy(update={"independent": False}) for a in trust.account]}
    pilot = {"witness": [w.model_copy(update={"independent": False}) for w in trust.witness]}

    def checked(changes: dict[str, Any]) -> tuple[str, str]:
        verdict = verify_window(
            EXAMPLES / "window.json", trust=trust.model_copy(update=changes), receipts=[EXAMPLES / "receipts"]
        )
        (check,) = (c for c in verdict.checks if c.id == "receipt.independent")
        (line,) = (r for r in report_of(verdict, now=NOW).requirements if r.name == "min_receipts")
        assert line.actual == check.actual.split(" ")[0]
        return check.status.value, check.actual

    assert checked(dependent | pilot) == ("pass", "4 (0 independent)")
    assert checked(dependent) == ("unmet", "0")
    assert checked(pilot) == checked({}) == ("pass", "4")
    words = explanations()["receipt.independent"].means
    assert "in a pilot" in words and "dependent accounts count too" in words


@pytest.mark.parametrize(("limit", "passed"), [(8, True), (7, False), (None, True)])
def test_trust_limits_the_documents_that_accounts_can_read(limit: int | None, passed: bool) -> None:
    verdict = verify(max_exposure=limit)
    assert verdict.passed is passed
    checks = {c.id: c for c in verdict.checks}
    assert ("trust.max_exposure" in checks) is (limit is not None)
    if not passed:
        assert verdict.exit_code is ExitCode.UNMET and verdict.line.startswith("UNMET trust.max_exposure ")
        assert checks["trust.max_exposure"].actual == (
            "8 documents of tenant law, by 2 accounts of 3 queries each"
        )


def test_the_parent_of_folders_with_receipts_is_named(tmp_path: Path) -> None:
    """It counted as a folder with no receipt, so the window did not meet min_receipts."""
    shutil.copytree(EXAMPLES / "receipts", tmp_path / "receipts" / "w-1")
    with pytest.raises(EncodingError, match="its subfolders have") as caught:
        verify_window(
            EXAMPLES / "window.json", trust=EXAMPLES / "trust.toml", receipts=[tmp_path / "receipts"]
        )
    assert caught.value.actual == "receipts in w-1"
    assert str(caught.value.hint).endswith(f" {tmp_path}/receipts/w-1")
    short = report_of_error(caught.value, filing_of(Inputs()), [tmp_path / "receipts"])
    assert short.next_steps[0].endswith(" w-1") and str(tmp_path) not in str(short.dump())
    (tmp_path / "empty" / "w-1").mkdir(parents=True)
    verdict = verify_window(
        EXAMPLES / "window.json", trust=EXAMPLES / "trust.toml", receipts=[tmp_path / "empty"]
    )
    assert verdict.line.startswith("UNMET receipt.independent ")


def test_brief_states_the_factor_of_absence_where_no_epsilon_exists() -> None:
    first, _, meaning, following = brief(of_case("documents")).splitlines()
    assert first.startswith("PASS eps_audit=none(sampling) exclusion_factor=3.3334 ")
    assert re.search(r" delta=1e-5 k_max=2 decisive=law( allow=[a-z-]+)*$", first)
    assert meaning.startswith(
        "meaning: tenant law has no epsilon: mechanism sampling bounds no epsilon; a missing"
    )
    assert "becomes at most 17 in 22" in meaning and following.startswith("next: ")


def test_the_decisive_tenant_is_named_where_figures_are(reports: dict[str, Report]) -> None:
    assert reports["PASS"].figures.decisive == "law" and " decisive=law " in reports["PASS"].line
    assert reports["FAIL"].figures.decisive is None and "decisive=" not in reports["FAIL"].line
    assert of_case("documents").figures.decisive == "law"  # sampling: no epsilon, next to noise with 12.39
