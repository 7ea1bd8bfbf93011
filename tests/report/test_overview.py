"""The page alone answers an officer's questions, and each answer depends on its checks."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Any

import pytest

from rag_audit.models.trust import ServiceTrust, Trust
from rag_audit.report.build import report_of
from rag_audit.report.claims import SENTENCES
from rag_audit.report.html import decision, overview, regulation
from rag_audit.report.html.page import render
from rag_audit.report.language import language_of
from rag_audit.report.model import Report, ServiceReport
from rag_audit.report.protection import odds_after
from tests.report.conftest import EXAMPLES, NOW, OUTCOMES

EN = language_of("en")
ANSWERS = {"service", "purpose", "operator", "contact", "period", "size", "answers", "verifier", "trust", "witness", "setup",
           "person", "proved", "unproved", "good", "decision", "questions", "signature"}  # fmt: skip
"""Which service and period, who vouches, what is proved and what not, what it means for a person, whether that is good, what to
ask, what a signature means."""


class Answers(HTMLParser):
    """The text of each element with `data-answer`, and the targets and ids of references."""

    def __init__(self, markup: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str | None] = []
        self.found: dict[str, str] = {}
        self.ids: set[str] = set()
        self.targets: set[str] = set()
        self.terms = 0
        self.feed(markup)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        values = dict(attributes)
        self.ids |= {str(values["id"])} if "id" in values else set()
        if tag == "a":
            self.targets.add(str(values["href"]))
        self.terms += tag == "dfn"
        if tag not in ("br", "meta", "input", "wbr"):
            self.open.append(values.get("data-answer"))

    def handle_endtag(self, tag: str) -> None:
        self.open.pop()

    def handle_data(self, data: str) -> None:
        for name in {name for name in self.open if name is not None}:
            self.found[name] = self.found.get(name, "") + data


def _answers(report: Report) -> dict[str, str]:
    return {name: re.sub(r"\s+", " ", text).strip() for name, text in Answers(render(report)).found.items()}


def _sampling(report: Report, factor: str = "10") -> Report:
    """The report as if its tenants sampled documents."""
    tenants = [t.model_copy(update={"mechanism": "sampling", "keep": "0.9", "exclusion_factor": factor})
               for t in report.tenants]  # fmt: skip
    protections = []
    for p in report.protections:
        absence = p.absence.model_copy(update={"strength": "moderate", "exclusion_factor": factor, "positions": 4,
                                               "odds": odds_after(float(factor))})  # fmt: skip
        lists = p.lists.model_copy(update={"strength": "none", "eps": None, "odds": None})
        presence = p.presence.model_copy(update={"keep": "0.9"})
        protections.append(p.model_copy(update={"absence": absence, "lists": lists, "presence": presence}))
    return report.model_copy(update={"tenants": tenants, "protections": protections})


@pytest.mark.parametrize("name", OUTCOMES)
def test_the_page_alone_answers_every_question(name: str, reports: dict[str, Report]) -> None:
    report = reports[name]
    answers = _answers(report)
    assert answers.keys() >= ANSWERS and all(answers[n] for n in ANSWERS)
    assert report.window.origin in answers["service"] and "2027-01-15 08:00:10 UTC" in answers["period"]
    assert all(w.name in answers["witness"] for w in report.vouching.witnesses)
    assert answers["questions"].count("?") >= 3
    assert report.window.window in answers["signature"] and "not the next window" in answers["signature"]


@pytest.mark.parametrize("name", ["FAIL", "UNDECIDED", "UNPROVEN"])
def test_no_figure_remains_without_its_checks(name: str, reports: dict[str, Report]) -> None:
    passed, report = _answers(reports["PASS"]), reports[name]
    answers = _answers(report)
    assert "12.39" in render(reports["PASS"]) and "12.39" not in render(report).partition("<details")[0]
    assert "exposure" in passed and "exposure" not in answers
    assert "established nothing about your record" in answers["person"]
    assert "no row has an established figure" in answers["good"] or name == "UNPROVEN"
    assert "Refuse" in answers["decision"] and decision.supported(report) == "refuse"
    assert answers["proved"].startswith("yes") is False


@pytest.mark.parametrize(
    "claim", ["answers", "randomness", "ledger", "chain", "coalition", "receipts-independent"]
)
def test_a_rule_is_followed_only_if_its_checks_passed(claim: str, reports: dict[str, Report]) -> None:
    """A claim that the report does not make is never printed as a followed rule."""
    report = reports["PASS"]
    before = {tuple(rule.checks): rule.answer for rule in overview.rules(EN, report)}
    claims = [line for line in report.claims if line.id != claim]
    after = {
        tuple(rule.checks): rule.answer
        for rule in overview.rules(EN, report.model_copy(update={"claims": claims}))
    }
    checks = tuple(SENTENCES[claim].checks)
    assert before[checks] == "yes" and after[checks] == "open"
    assert {k: v for k, v in before.items() if k != checks} == {k: v for k, v in after.items() if k != checks}


def test_a_failed_check_answers_no_for_its_own_rules_only(reports: dict[str, Report]) -> None:
    report = reports["PASS"]
    checks = [c.model_copy(update={"outcome": "fail", "decides": True}) if c.base == "proof.valid" else c
              for c in report.checks]  # fmt: skip
    failed = report.model_copy(update={"outcome": "FAIL", "checks": checks, "claims": [], "exit_code": 1})
    answers = {tuple(rule.checks): rule.answer for rule in overview.rules(EN, failed)}
    assert answers[tuple(SENTENCES["answers"].checks)] == "no"
    assert answers[tuple(SENTENCES["ledger"].checks)] == "open" and overview.followed(failed) == "no"
    # A damaged copy accuses nobody.
    assert overview.followed(reports["FAIL"]) == "open"
    assert {rule.answer for rule in overview.rules(EN, reports["FAIL"])} == {"open"}


def test_the_two_parts_and_the_rows_are_never_merged(reports: dict[str, Report]) -> None:
    """A strength belongs to a row: the part about rules has none, and a better row changes no other row."""
    report = _sampling(reports["PASS"])
    markup = render(report)
    rules = markup[markup.index('id="verdict"') : markup.index('id="protection"')]
    assert not re.search("strong|moderate|weak", re.sub(r"<[^>]*>", "", rules))
    (group, *_) = overview.groups(report)
    strengths = [row.line.strength for row in overview.rows(EN, group)]
    assert strengths == ["strong", "none", "none", "moderate"]


def test_sampling_in_plain_words(reports: dict[str, Report]) -> None:
    answers = _answers(_sampling(reports["PASS"]))
    for words in ("with a probability of 90 in 100", "accounts of other tenants cannot receive it (proved)",
                  "by a factor of at most 10 (odds of 1 in 2 become at most 10 in 11)"):  # fmt: skip
        assert words in answers["person"]
    drawn = _answers(_sampling(reports["PASS-SAMPLED"]))
    assert (
        "in the answers that were drawn" in drawn["person"] or "cannot receive it (proved)" in drawn["person"]
    )
    exact = _answers(reports["PASS-INTEGRITY"])
    assert "in 100 of 100 cases" in exact["person"]


def test_fields_of_the_trust_file_name_their_source(reports: dict[str, Report]) -> None:
    report = reports["PASS"]
    service = ServiceReport(
        purpose="search in files", operator="Example GmbH", contact="dpo@example.org", keys_made_by="A and B"
    )
    witnesses = [w.model_copy(update={"relation": "a public authority"}) for w in report.vouching.witnesses]
    vouching = report.vouching.model_copy(update={"service": service, "witnesses": witnesses})
    answers = _answers(report.model_copy(update={"vouching": vouching}))
    for name, value in (
        ("purpose", service.purpose),
        ("operator", service.operator),
        ("contact", service.contact),
    ):
        assert str(value) in answers[name] and "stated by the trust file" in answers[name]
    assert "A and B" in answers["setup"] and "a public authority" in answers["witness"]
    assert "not stated" in _answers(report)["operator"]


def test_the_trust_files_words_reach_the_report() -> None:
    trust = Trust.load(EXAMPLES / "trust.toml")
    witnesses = [w.model_copy(update={"independent": False}) for w in trust.witness]
    told = trust.model_copy(update={"service": ServiceTrust(purpose="p", operator="o"), "witness": witnesses})
    from rag_audit.models.windowfile import WindowFile
    from rag_audit.report.verification import verify_window

    file = WindowFile.load(EXAMPLES / "window.json")
    report = report_of(verify_window(file, trust=told, receipts=[EXAMPLES / "receipts"]), now=NOW)
    assert report.vouching.service == ServiceReport(
        purpose="p", operator="o", contact=None, keys_made_by=None
    )
    assert overview.one_party(report) and "One party plays all roles" in render(report)


def test_one_party_is_named_only_if_it_operates_every_witness(reports: dict[str, Report]) -> None:
    report = reports["PASS"]

    def of(*changes: dict[str, Any]) -> Report:
        pairs = zip(report.vouching.witnesses, changes, strict=True)
        witnesses = [w.model_copy(update=change) for w, change in pairs]
        return report.model_copy(
            update={"vouching": report.vouching.model_copy(update={"witnesses": witnesses})}
        )

    same = {"independent": False}
    own = {"fingerprint": report.vouching.provider.fingerprint}
    assert overview.one_party(of(same, same)) and overview.one_party(of(same, own))
    assert not overview.one_party(of(same, {})) and not overview.one_party(report)
    assert "One party plays" not in render(report)


def test_references_resolve_within_the_page(reports: dict[str, Report]) -> None:
    for name in ("PASS", "FAIL"):
        page = Answers(render(reports[name]))
        assert page.targets and all(target.removeprefix("#") in page.ids for target in page.targets)
        assert page.terms >= 20


def test_questions_come_from_the_window(reports: dict[str, Report]) -> None:
    failed = decision.questions(EN, reports["FAIL"])
    assert len(failed) == len(set(failed)) == 3 and "ledger.root" in failed[0]
    assert "Epsilon 12.39" in decision.questions(EN, reports["PASS"])[0]
    assert decision.supported(reports["PASS"]) == decision.supported(reports["UNMET"]) == "conditions"
    clean = _sampling(reports["PASS"]).model_copy(update={"weaker": []})
    assert decision.supported(clean) == "conditions"  # observers of lists have no protection
    strong = [
        p.model_copy(update={"lists": p.lists.model_copy(update={"strength": "strong"})})
        for p in clean.protections
    ]
    assert decision.supported(clean.model_copy(update={"protections": strong})) == "sign"


def test_the_regulations_clauses_depend_on_the_ledger(reports: dict[str, Report]) -> None:
    met = {c.place: c.met for c in regulation.clauses(EN, reports["PASS"])}
    assert met["12(1)"] == "part" and met["12(3)(b)"] == "yes" and met["12(3)(d)"] == met["19(2)"] == "no"
    assert {c.met for c in regulation.clauses(EN, reports["FAIL"])} <= {"no", "part"}
    assert [c.met for c in regulation.clauses(EN, reports["FAIL"])][:4] == ["no"] * 4


def test_a_tenant_that_differs_only_in_its_questions_is_not_described_twice(
    reports: dict[str, Report],
) -> None:
    (group,) = overview.groups(reports["PASS"])
    assert group.tenants == ["law", "medicine"] and max(group.realised) == 8
