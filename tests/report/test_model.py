"""The report holds what the verdict says, all of it, and nothing that is secret."""

from __future__ import annotations

import html
import json
import re
from dataclasses import replace
from typing import Any

import pytest

from rag_audit._internal.printable import is_line
from rag_audit._internal.words import counted, instant, listed
from rag_audit.cli.reports import FORMATS
from rag_audit.errors import PolicyError
from rag_audit.models.policy import Policy
from rag_audit.report import render_report
from rag_audit.report.build import report_of
from rag_audit.report.explanations import base_id
from rag_audit.report.model import Report
from rag_audit.report.requirements import nearest
from rag_audit.report.text import render
from rag_audit.report.verification import ReportedVerdict, verify_window
from tests.cli.test_injection import NASTY
from tests.report.conftest import EXAMPLES, NOW, OUTCOMES
from tests.simulate.cases import FOLDER as WINDOWS
from tests.simulate.cases import run


@pytest.mark.parametrize("name", OUTCOMES)
def test_a_report_says_what_its_verdict_says(
    name: str, verdicts: dict[str, ReportedVerdict], reports: dict[str, Report]
) -> None:
    verdict, report = verdicts[name], reports[name]
    assert (report.outcome, report.line) == (name, verdict.line) and report.line.split()[0] == name
    assert report.exit_code == int(verdict.exit_code)
    assert [(c.id, c.outcome, c.actual) for c in report.checks] == [
        (c.id, c.status.value, c.actual) for c in verdict.checks
    ]
    assert report.decided_by == [c.id for c in report.checks if c.decides]
    assert (report.decided_by == []) == verdict.passed
    assert verdict.deciding is None or report.decided_by[0] == verdict.deciding.id
    assert report.does_not_prove == verdict.does_not_prove
    standing = dict.fromkeys(("FAIL", "UNDECIDED", "UNPROVEN"), "not-established")
    standing["PASS-SAMPLED"] = "if-conforming"
    assert report.figures.standing == standing.get(name, "proved")
    assert Report.parse(json.loads(json.dumps(report.dump())), field="report") == report
    assert all(is_line(s) for s in _strings(report.dump()))


def test_every_unmet_requirement_is_among_what_decided(reports: dict[str, Report]) -> None:
    unmet = [r for r in reports["UNMET"].requirements if r.outcome == "unmet"]
    assert {r.name for r in unmet} == {"max_epsilon", "min_k_max", "max_theta", "min_receipts"}
    assert {r.check for r in unmet} == set(reports["UNMET"].decided_by)
    used = {r.name: (r.limit, r.actual, r.used) for r in unmet}
    assert used["max_epsilon"] == ("1", "12.39", "12.39") and used["min_k_max"] == ("9", "2", "4.5")
    assert used["max_theta"] == (None, "0.8", None) and used["min_receipts"] == ("5", "4", "1.25")
    assert nearest(reports["UNMET"].requirements)[0].name == "max_epsilon"


def test_who_vouches_how_much_and_when(reports: dict[str, Report]) -> None:
    report = reports["PASS"]
    vouching, counts = report.vouching, report.counts
    assert [(w.name, w.header, w.end, w.beacon) for w in vouching.witnesses] == [
        ("w1", True, True, True),
        ("w2", True, True, True),
    ]
    assert vouching.provider.key_id == "c2435078" and vouching.beacon.source == "witnesses"
    assert (counts.records, counts.requested, counts.proved, counts.receipts_handed_in) == (7, 7, 7, 7)
    assert (counts.receipts_accepted, counts.receipts_agreeing, counts.receipts_independent) == (7, 7, 4)
    assert sum(q.queries * q.accounts for q in counts.queries_by_account) == 7
    assert report.timeline.activity is not None and sum(report.timeline.activity.counts) == 7
    kinds = [e.kind for e in report.timeline.events]
    order = ["header-quorum", "beacon", "first-query", "last-query", "trailer"]
    assert [k for k in kinds if k in order] == order and kinds[-2:] == ["challenge", "verified"]
    assert report.chain.before is None and report.chain.after is not None
    assert report.chain.after.header == report.window.header and report.chain.after.abandoned == 0


def test_a_contradicted_receipt_is_not_counted_as_agreeing(reports: dict[str, Report]) -> None:
    """The changed record has a receipt, and so has every ledger that held it."""
    counts = reports["FAIL"].counts
    assert counts.receipts_accepted == 7 and counts.receipts_agreeing < 7


def test_what_is_weaker(reports: dict[str, Report]) -> None:
    assert [w.id for w in reports["PASS"].weaker] == ["setup", "document_embedding", "receipts"]
    assert [w.id for w in reports["PASS-SAMPLED"].weaker] == [
        "setup",
        "document_embedding",
        "sampled",
        "receipts",
    ]
    assert reports["PASS-INTEGRITY"].weaker[0].id == "mechanism"


def test_a_window_dated_after_its_report_has_a_note(verdicts: dict[str, ReportedVerdict]) -> None:
    early = report_of(verdicts["PASS"], now=NOW - 20_000_000)
    assert early.timeline.future and "dated after this report" in early.notes[0]
    assert "2027-01-15 08:00:00 UTC" in early.notes[0]
    late = report_of(verdicts["PASS"], now=NOW)
    assert not late.timeline.future and not [n for n in late.notes if "dated" in n]


def test_inputs_are_named_by_their_digests() -> None:
    verdict = verify_window(
        EXAMPLES / "window.json", trust=EXAMPLES / "trust.toml", receipts=[EXAMPLES / "receipts"]
    )
    filing = report_of(verdict, now=NOW).filing
    import hashlib

    lines = ""
    for path in sorted((EXAMPLES / "receipts").glob("*.json")):
        lines += f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n"
    assert (filing.receipts.files, filing.receipts.sha256) == (7, hashlib.sha256(lines.encode()).hexdigest())
    result = {f.role: (f.name, f.sha256) for f in filing.inputs}
    for role, name in (("window", "window.json"), ("trust", "trust.toml")):
        assert result[role] == (name, hashlib.sha256((EXAMPLES / name).read_bytes()).hexdigest())
    assert str(EXAMPLES) not in json.dumps(report_of(verdict).dump())


def test_accounts_are_numbers_alone(reports: dict[str, Report]) -> None:
    """What window.json says of accounts stays there; checks that fail quote it, as they do everywhere."""
    text = json.dumps(reports["PASS"].dump())
    for account in ("law-1", "law-2", "law-3", "medicine-1", "medicine-2"):
        assert account not in text


def test_a_hostile_file_writes_no_line(verdicts: dict[str, ReportedVerdict]) -> None:
    verdict = verdicts["UNDECIDED"]
    checks = [replace(c, expected=NASTY, actual=NASTY, at=NASTY) for c in verdict.checks]
    spoilt = report_of(replace(verdict, checks=checks, notes=[NASTY]), now=NOW, command=(NASTY,))
    assert all(is_line(s) for s in _strings(spoilt.dump()))


def test_ids_without_their_tenant() -> None:
    assert base_id("proof.embed.valid.law") == ("proof.embed.valid", "law")
    assert base_id("proof.key.embed.valid") == ("proof.key", "embed.valid")
    assert base_id("ledger.sample") == ("ledger.sample", None)


def test_words() -> None:
    assert instant(1_800_000_000_000) == "2027-01-15 08:00:00 UTC"
    assert instant(1_800_000_000_007) == "2027-01-15 08:00:00.007 UTC"
    assert instant(2**53 - 1) == f"{2**53 - 1} ms after 1970"
    assert [counted(n, "record") for n in (0, 1, 2000)] == ["0 records", "1 record", "2,000 records"]
    assert [listed(["a", "b", "c"][:n]) for n in range(1, 4)] == ["a", "a and b", "a, b and c"]


def _strings(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [s for v in value.values() for s in _strings(v)]
    if isinstance(value, list):
        return [s for v in value for s in _strings(v)]
    return [value] if isinstance(value, str) else []


def test_windows_handed_in_before_are_added_up() -> None:
    """The bound that `rag-audit verifier cumulative` gives for both, where the chain reaches what was handed in."""
    from rag_audit.report.cumulative import compose, load_window

    folder = WINDOWS / "in-a-row"
    case = json.loads((folder / "case.json").read_text())
    verdict = run(case, folder)
    assert isinstance(verdict, ReportedVerdict) and verdict.passed
    report = report_of(verdict, now=NOW)
    cumulative = report.figures.cumulative
    batch = compose([load_window(folder / name) for name in (case["window"], *case["previous"])]).as_json()
    assert cumulative is not None and report.chain.reached == 1
    assert (cumulative.windows, cumulative.eps, cumulative.delta) == (2, batch["eps"], batch["delta"])
    assert float(cumulative.eps) > float(report.figures.eps or "inf")
    assert f"the eps of 2 windows over one index is {cumulative.eps} in total" in " ".join(
        render(report).split()
    )
    condition = "the figure is valid only if the other window verifies, and this run did not verify it"
    assert cumulative.condition == condition
    formats = {
        kind: re.sub(r"\s+", " ", html.unescape(render_report(report, kind, checks=True))) for kind in FORMATS
    }
    assert not [kind for kind, result in formats.items() if condition not in result]
    for result in formats.values():
        quoted = re.split(r"eps " + re.escape(cumulative.eps), result)[1:]
        assert all(condition in after[:120] for after in quoted)
    alone = run({**case, "previous": []}, folder)
    assert isinstance(alone, ReportedVerdict)
    report = report_of(alone, now=NOW)
    assert report.figures.cumulative is None and "chain" in [w.id for w in report.weaker]


def test_an_earlier_policy_that_is_not_well_formed_adds_nothing_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """An earlier window commits to its policy, and no check of this run is about what that policy says."""

    def refuse(policy: Policy, dimension: int | None) -> None:
        if policy.window != last:
            raise PolicyError("not well-formed")

    folder = WINDOWS / "in-a-row"
    case = json.loads((folder / "case.json").read_text())
    last = json.loads((folder / case["window"]).read_text())["policy"]["window"]
    monkeypatch.setattr("rag_audit.report.facts.check_policy", refuse)
    verdict = run(case, folder)
    assert isinstance(verdict, ReportedVerdict) and verdict.passed
    report = report_of(verdict, now=NOW)
    assert report.figures.cumulative is None
    assert "cumulative" not in [claim.id for claim in report.claims]
