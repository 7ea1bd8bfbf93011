"""The page says what the report says, to anybody, and nothing of a file becomes a part of it."""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from jinja2 import UndefinedError
from markupsafe import Markup
from pydantic import ValidationError

from rag_audit.mechanisms import accounting
from rag_audit.mechanisms.accounting import curves as sampled
from rag_audit.mechanisms.accounting.bernoulli import Sampling
from rag_audit.mechanisms.accounting.documents import flip_probability_for, pooled_epsilon, pooled_factor
from rag_audit.mechanisms.accounting.values import text as text_of
from rag_audit.mechanisms.descriptions.base import Ceiling
from rag_audit.models.models import Model
from rag_audit.relation.bernoulli import PROBABILITY_RANGE
from rag_audit.report.html import curves, privacy, words
from rag_audit.report.html.evidence import GROUPS
from rag_audit.report.html.page import environment, render
from rag_audit.report.html.record import in_order
from rag_audit.report.html.study import study
from rag_audit.report.model import InputFile, Report
from tests.report.conftest import OUTCOMES

ROOT = Path(__file__).resolve().parents[2]
MAX_BYTES = 500_000
TAGS = {
    *(
        "html",
        "head",
        "meta",
        "title",
        "style",
        "body",
        "header",
        "main",
        "footer",
        "section",
        "article",
        "h1",
        "h2",
        "h3",
    ),
    *(
        "p",
        "a",
        "span",
        "strong",
        "em",
        "code",
        "pre",
        "div",
        "dl",
        "dt",
        "dd",
        "ul",
        "ol",
        "li",
        "figure",
        "figcaption",
    ),
    *("svg", "desc", "path", "rect", "text", "table", "caption", "thead", "tbody", "tr", "th", "td"),
    *("fieldset", "legend", "label", "input", "wbr", "nav", "details", "summary", "dfn"),
}
ATTRIBUTES = {
    *(
        "lang",
        "charset",
        "http-equiv",
        "content",
        "name",
        "id",
        "class",
        "viewbox",
        "role",
        "aria-labelledby",
    ),
    *(
        "aria-label",
        "aria-hidden",
        "d",
        "x",
        "y",
        "width",
        "height",
        "scope",
        "href",
        "tabindex",
        "type",
        "checked",
    ),
    "data-label",
    "data-answer",
    "data-checks",
}
SECTIONS = [
    "person",
    "verdict",
    "protection",
    "parties",
    "decision",
    "scope",
    "now",
    "outside",
    "figures",
    "epsilon",
    "test",
    "retrieval",
    "window",
    "requirements",
    "vouching",
    "checks",
    "nist",
    "ai-act",
    "again",
    "glossary",
]
HOSTILE = "\"'><script>alert(1)</script><img src=x onerror=alert(2)></style></svg><a href='javascript:alert(3)'>&lt;"


class Page(HTMLParser):
    """The elements of a page, which must be closed in the order in which they were opened."""

    def __init__(self, markup: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(markup)
        self.close()
        assert self.open == []

    def handle_starttag(self, name: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append((name, dict(attributes)))
        assert len(dict(attributes)) == len(attributes)
        if name not in ("br", "meta", "input", "wbr"):
            self.open.append(name)

    def handle_endtag(self, name: str) -> None:
        assert self.open.pop() == name

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self.texts.append(data)

    def all(self, name: str) -> list[dict[str, str | None]]:
        return [attributes for result, attributes in self.tags if result == name]

    @property
    def text(self) -> str:
        return re.sub(r"\s+", " ", "".join(self.texts))


def _changed(report: Report, **update: Any) -> Report:
    return report.model_copy(update=update)


def _with_tenant(report: Report, accounts: int = 10, **update: Any) -> Report:
    """The report with one tenant in place of its tenants."""
    tenant = report.tenants[0].model_copy(update={"accounts_max": accounts, **update})
    return _changed(report, tenants=[tenant])


def _listing(report: Report) -> Report:
    keep = round(0.7 * PROBABILITY_RANGE)
    flip = flip_probability_for("0.1", queries=2000)
    coins = {
        "keep": "0.7",
        "keep_over_range": keep,
        "flip_probability": f"{flip / PROBABILITY_RANGE:.8f}",
        "flip_over_range": flip,
    }
    factor = text_of(pooled_factor(keep, flip, queries=2000))
    return _with_tenant(
        report,
        mechanism="pooled-listing",
        gains=[],
        sigma_over_delta=None,
        eps=text_of(pooled_epsilon(keep, flip)),
        exclusion_factor=factor,
        exclusion_factor_all_accounts=factor,
        capacity=4096,
        **coins,
    )


@pytest.mark.parametrize("name", OUTCOMES)
def test_a_page_says_what_its_report_says(name: str, reports: dict[str, Report]) -> None:
    report = reports[name]
    page = Page(render(report))
    text = page.text
    for part in (
        f"Verdict: {name}",
        report.sentence,
        report.line,
        report.filing.version,
        *(c.id for c in report.checks),
        *(words.sentence(line) for line in report.does_not_prove),
        *(r.words for r in report.requirements),
        *(words.sentence(s) for s in report.next_steps),
        *(w.better for w in report.weaker),
        *(str(i.sha256) for i in report.filing.inputs if i.sha256),
        *(str(w.fingerprint) for w in report.vouching.witnesses),
        *(e.words for e in report.timeline.events),
        *report.notes,
    ):
        assert re.sub(r"\s+", " ", part) in text, part
    assert ("No statement on this page counts as proved" in text) == (name in ("FAIL", "UNDECIDED"))
    assert ("This verification did not establish the window as a whole" in text) == (name == "UNPROVEN")
    assert all(claim.words in text for claim in report.claims)
    left_out = {"test", "retrieval"} if report.figures.standing == "not-established" else set()
    expected = [section for section in SECTIONS if section not in left_out]
    assert [a["id"] for a in page.all("section") if a["id"] != "why"] == expected
    assert ("why" in [a["id"] for a in page.all("section")]) == (not name.startswith("PASS"))


@pytest.mark.parametrize("name", OUTCOMES)
def test_a_page_is_one_file_that_connects_to_nothing(name: str, reports: dict[str, Report]) -> None:
    markup = render(reports[name])
    page = Page(markup)
    assert len(markup.encode()) < MAX_BYTES / 4
    assert {tag for tag, _ in page.tags} <= TAGS
    assert {name for _, attributes in page.tags for name in attributes} <= ATTRIBUTES
    assert all(str(a["href"]).startswith("#") for a in page.all("a"))
    style = re.search(r"<style>(.*?)</style>", markup, re.DOTALL)
    assert style is not None and not re.search(r"url\(|@import|@font-face|expression|</", style[1])
    digest = base64.b64encode(hashlib.sha256(style[1].encode()).digest()).decode()
    policy = next(
        str(a["content"]) for a in page.all("meta") if a.get("http-equiv") == "Content-Security-Policy"
    )
    assert policy == f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"


@pytest.mark.parametrize("name", OUTCOMES)
def test_pictures_have_words(name: str, reports: dict[str, Report]) -> None:
    markup = render(reports[name])
    page = Page(markup)
    ids = [a["id"] for _, a in page.tags if "id" in a]
    assert len(ids) == len(set(ids))
    drawn = [a for a in page.all("svg") if a.get("role") == "img"]
    without_figures = {"PASS-INTEGRITY": 1, "FAIL": 0, "UNDECIDED": 1, "UNPROVEN": 1}
    assert len(drawn) == without_figures.get(name, 4)
    for picture in drawn:
        assert all(label in ids for label in str(picture["aria-labelledby"]).split())
    assert all(a.get("aria-hidden") == "true" for a in page.all("svg") if a.get("role") != "img")
    for figure in re.findall(r"<figure>.*?</figure>", markup, re.DOTALL):
        assert "<table" in figure and "<title " in figure and "<desc " in figure
    assert all(a.get("scope") in ("row", "col") for a in page.all("th"))


def _hostile(value: Any) -> Any:
    """Every text of a report that a file decides, replaced: those that its model lets be anything."""
    if isinstance(value, list):
        return [HOSTILE if isinstance(item, str) else _hostile(item) for item in value]
    if not isinstance(value, Model):
        return value
    for name in type(value).model_fields:
        result = getattr(value, name)
        spoilt = HOSTILE if isinstance(result, str) else _hostile(result)
        try:
            type(value).model_validate({**value.model_dump(), name: _dumped(spoilt)})
        except ValidationError:
            continue
        value = value.model_copy(update={name: spoilt})
    return value


def _dumped(value: Any) -> Any:
    if isinstance(value, list):
        return [_dumped(item) for item in value]
    return value.model_dump() if isinstance(value, Model) else value


@pytest.mark.parametrize("name", ("PASS", "FAIL"))
def test_a_hostile_file_adds_no_element_and_no_attribute(name: str, reports: dict[str, Report]) -> None:
    spoilt = _hostile(reports[name])
    assert HOSTILE in (spoilt.window.origin, spoilt.checks[0].actual) and spoilt.checks[0].id == HOSTILE
    page = Page(render(spoilt))
    assert {tag for tag, _ in page.tags} <= TAGS
    assert {name for _, attributes in page.tags for name in attributes} <= ATTRIBUTES
    assert all(str(a["href"]).startswith("#") for a in page.all("a"))
    assert page.text.count(re.sub(r"\s+", " ", HOSTILE)) > 100
    classes = {c for _, a in page.tags for c in str(a.get("class") or "").split()}
    assert not [c for c in classes if not re.fullmatch(r"[a-z][a-z0-9-]*", c)]


def test_a_window_with_many_tenants_has_a_page_of_bounded_size(reports: dict[str, Report]) -> None:
    report = reports["FAIL"]
    tenants = [
        report.tenants[0].model_copy(
            update={"tenant": f"{i}-" + "t" * 100, "lattice": i + 1, "words": '"' * 9000}
        )
        for i in range(2000)
    ]
    line = report.checks[0].model_copy(
        update={"actual": '"' * 5000, "expected": '"' * 5000, "at": '"' * 5000}
    )
    checks = [
        line.model_copy(
            update={"id": f"proof.valid.{i}-" + "t" * 100, "outcome": "fail" if i % 2 else "pass"}
        )
        for i in range(7000)
    ]
    counts = report.counts.model_copy(update={"queries_by_account": report.counts.queries_by_account * 2000})
    file = InputFile(role="sibling", name='"' * 250, sha256="0" * 64)
    inputs = [file] * 1500
    grown = _changed(
        report,
        tenants=tenants,
        checks=checks,
        counts=counts,
        notes=['"' * 9000] * 500,
        does_not_prove=["d" * 9000] * 500,
        next_steps=["s" * 9000] * 500,
        filing=report.filing.model_copy(update={"inputs": inputs, "command": ['"' * 9000] * 500}),
    )
    markup = render(grown)
    assert len(markup.encode()) < MAX_BYTES
    page = Page(markup)
    left = re.search(r"([0-9,]+) of 7,000 checks left out of this table", page.text)
    shown = [str(a["class"]) for a in page.all("tr") if a.get("class")]
    assert left is not None and len(shown) == 7000 - int(left[1].replace(",", "")) > 20
    assert {c.split()[0] for c in shown} == {"ok", "wrong"}


def test_the_curve_of_epsilon_goes_through_the_verdicts_figures(reports: dict[str, Report]) -> None:
    report = reports["PASS"]
    f = report.figures
    (protection,) = curves.protections(report)
    assert protection.tenants == ("law", "medicine")
    curve = dict(curves.epsilon_curve(report, protection))
    assert [accounting.text(curve[k]) for k in (1, f.k_max, protection.accounts_max)] == [
        f.eps_one_account, f.eps, f.eps_all_accounts,
    ]  # fmt: skip
    tests = {t.accounts: t for t in curves.tests_of(report, protection)}
    assert accounting.text(tests[f.k_max].at_one_percent) == f.tpr_at_fpr_1pct
    text = Page(render(report)).text
    assert "recognises at most 52 in 100 documents, for 2 accounts" in text
    assert f"k_max: {f.eps}" in text and "one account: 8.0834" in text and "all accounts: 16.036" in text


def test_a_listing_tenants_charts_are_the_closed_forms(reports: dict[str, Report]) -> None:
    report = _listing(reports["PASS"])
    (protection,) = curves.protections(report)
    curve = dict(curves.epsilon_curve(report, protection))
    # ln(1 + 0.7 / (0.3 q)) for any number of accounts: docs/accounting.md, "Pooled listing"
    q = float(report.tenants[0].flip_probability or 0)
    for accounts in (1, 2, 10):
        assert curve[accounts] == pytest.approx(math.log1p(0.7 / 0.3 / q), rel=1e-4)
    assert {t.accounts: round(t.at_one_percent, 3) for t in curves.tests_of(report, protection)}[2] == 0.71
    text = Page(render(report)).text
    assert (
        "at δ = 0" in text
        and "An exact closed form for the random bits of the mechanism, rounded up; it is not a Gaussian approximation."
        in text
    )


def test_sampling_and_none_say_that_there_is_no_epsilon(reports: dict[str, Report]) -> None:
    coin = round(0.9 * PROBABILITY_RANGE)
    sampled = _with_tenant(
        reports["PASS"],
        mechanism="sampling",
        gains=[],
        sigma_over_delta=None,
        eps="inf",
        keep="0.9",
        keep_over_range=coin,
        exclusion_factor="10",
        exclusion_factor_all_accounts="10",
    )
    text = Page(render(sampled)).text
    assert "There is no epsilon for any number of accounts" in text and "factor of at most 10" in text
    assert "recognises at most 91.1 in 100 documents, for any number of accounts" in text
    bare = Page(render(reports["PASS-INTEGRITY"])).text
    assert (
        "There is no epsilon: answers are exact" in bare
        and "There is no bound: a test may recognise every document." in bare
    )
    assert "Any privacy of law and medicine" in bare


def test_a_pass_is_not_taken_for_protection(reports: dict[str, Report]) -> None:
    """A weak figure says so beside the verdict, and what rests on one party's keys says that where it is called
    proved."""
    report = reports["PASS"]
    weak, one_party = (
        "law and medicine: epsilon 12.39 is above 10",
        "if the one party that made their keys forged no proof",
    )
    html = render(report)
    assert weak in html and one_party in html
    claims = [claim for claim in report.claims if claim.id != "keys"]
    better = render(report.model_copy(update={"claims": claims, "warnings": []}))
    assert weak not in better and one_party not in better
    assert weak not in render(reports["UNPROVEN"])


def test_the_end_is_cosigned_after_what_it_ends(reports: dict[str, Report]) -> None:
    """Of which witnesses give the second alone."""
    report = reports["PASS"]
    places = [e.kind for e in in_order(report.timeline.events)]
    assert places.index("last-query") < places.index("trailer") < places.index("final-quorum")
    assert places.index("header-quorum") < places.index("beacon") < places.index("opens")
    end = next(e for e in report.timeline.events if e.kind == "final-quorum")
    closing = next(e for e in report.timeline.events if e.kind == "trailer")
    assert end.at is not None and closing.at is not None and end.at < closing.at
    html = render(report)
    assert html.index("in the same second") > html.index("the provider closed the ledger")
    # What is a whole second earlier stays so.
    earlier = [
        e.model_copy(update={"at": closing.at - 1600}) if e is end else e for e in report.timeline.events
    ]
    assert [e.kind for e in in_order(earlier)].index("final-quorum") < places.index("trailer")


def test_parameters_that_the_accountant_refuses_leave_charts_out(reports: dict[str, Report]) -> None:
    for change in (
        {"gains": [1], "lattice": 3},
        {"gains": [7, 7], "lattice": 64},
        {"gains": [1], "lattice": 1 << 20},
    ):
        text = Page(render(_with_tenant(reports["PASS"], **change))).text
        assert "There is no epsilon: the accountant finds no finite bound for this policy." in text
    missing = reports["PASS"].figures.model_copy(update={"eps": None, "tpr_at_fpr_1pct": None})
    assert "not computed" in Page(render(_changed(reports["UNDECIDED"], figures=missing))).text


def test_every_group_of_checks_can_be_shown_alone(reports: dict[str, Report]) -> None:
    """Without a script: by a rule of the style sheet for each."""
    markup = render(reports["FAIL"])
    page = Page(markup)
    shown = {str(a["id"]).removeprefix("show-") for a in page.all("input")}
    assert shown == {
        "all",
        "wrong",
        *(g for g in GROUPS if any(c.id.startswith(g) for c in reports["FAIL"].checks)),
    }
    for group in GROUPS:
        assert f"#checks:has(#show-{group}:checked) tbody tr:not(.in-{group})" in markup
    rows = [str(a["class"]).split() for a in page.all("tr") if a.get("class")]
    assert len(rows) == len(reports["FAIL"].checks)
    assert sum("wrong" in row for row in rows) == sum(c.outcome != "pass" for c in reports["FAIL"].checks)


def test_measurements_are_those_of_the_study() -> None:
    """study.json against the tables of docs/study.md, number by number."""
    page = (ROOT / "docs/study.md").read_text()
    measured = study()
    assert measured.made_by.removesuffix(" --lists 6000 --windows 6000 --seed 1") in page
    assert "--lists 6000 --windows 6000 --seed 1" in page
    result = {}
    for section in re.split(r"^### ", page, flags=re.MULTILINE)[1:]:
        name = section.partition("\n")[0]
        facts = next(c for c in measured.collections if c.name == name)
        assert (
            f"{facts.passages:,} passages on {facts.positions:,} positions, {facts.questions:,} questions; exact top"
            f" {measured.top_k} finds {facts.exact} %"
        ) in section
        for mechanism, share, error in re.findall(
            r"^\| ([\w-]+, [^|]+) \| ([0-9.]+) ± ([0-9.]+) %", section, re.MULTILINE
        ):
            result[name, mechanism] = [share, error]
    written = {}
    for setting in measured.settings:
        value = (
            f"sigma/Delta {setting.sigma_over_delta}" if setting.sigma_over_delta else f"keep {setting.keep}"
        )
        for name, figures in setting.actual.items():
            written[name, f"{setting.mechanism}, {value}"] = figures
        if setting.gains:
            mechanism = accounting.Mechanism(tuple(setting.gains), setting.lattice)
            assert f"{mechanism.sigma_over_delta:.3g}" == setting.sigma_over_delta
    assert written == result and len(result) == 24


@pytest.mark.parametrize("eps, factor, belief", [
    (0.0, "1.00", "from even odds (50 in 100) to at most 50 in 100"),
    (1.0, "2.72", "from even odds (50 in 100) to at most 74 in 100"),
    (12.39, "240,386", "from even odds (1 in 2 to be wrong) to a certainty that is wrong only 1 time in 240,387"),
    (67.931, "10 to the power 30", "from even odds (1 in 2 to be wrong) to a certainty that is wrong only 1 time in"
     " 10 to the power 30"),
    (math.inf, "without any limit", "from even odds to certainty"),
])  # fmt: skip
def test_epsilon_in_words(eps: float, factor: str, belief: str) -> None:
    assert (words.factor(eps), words.belief(eps)) == (factor, belief)


def test_small_figures_in_words_are_rounded_up() -> None:
    assert words.one_in(1e-5) == "1 in 100,000" and words.one_in(3e-5) == "1 in 33,333"
    assert words.in_hundred(0.51996) == "52 in 100" and words.in_hundred(0.0121) == "1.21 in 100"
    assert (
        words.in_hundred(0.99991) == "100 in 100"
        and words.in_hundred(0.9951) == "99.51 in 100"
        and words.at_most(0.71001) == "71.1 %"
    )
    assert [words.strength(e).split()[0] for e in (0.9, 1, 9, 10, 10.1)] == [
        "strong",
        "strong",
        "moderate",
        "moderate",
        "weak",
    ]


def test_a_text_that_is_cut_after_a_space_has_one_space() -> None:
    assert words.clip("one two", 4) == "one [7 characters; see the report in JSON]"
    assert words.clip("one", 3) == "one"


def test_a_template_escapes_what_it_did_not_make() -> None:
    def made(template: str, **values: object) -> str:
        return environment().from_string(template).render(**values)

    markup = '<p title="{{ title }}">{{ text }}{{ code }}{{ absent }}{{ number }}{{ "&" }}</p>'
    values = {"title": '"x"', "text": "<b>", "code": Markup("<i></i>"), "absent": None, "number": 1234}
    assert made(markup, **values) == '<p title="&quot;x&quot;">&lt;b&gt;<i></i>1,234&amp;</p>'
    assert made("{{ text }}", text="a\u202eb\n") == "a\\u202eb\\n"
    assert made("{{ text|breakable }}", text="a.<b>") == "a.<wbr>&lt;b&gt;"
    assert made("{{ text|nowrap }}", text="<b>") == '<span class="nowrap">&lt;b&gt;</span>'
    with pytest.raises(UndefinedError):
        made("{{ unknown }}")


def test_a_page_is_the_same_for_the_same_report(reports: dict[str, Report]) -> None:
    again = Report.parse(json.loads(json.dumps(reports["PASS"].dump())), field="report")
    assert render(again) == render(reports["PASS"])


def test_each_rate_of_the_best_test_has_one_rounding() -> None:
    """Between the corners of a closed form, the page rounds a rate up like the accountant, who rounds the rate at 1 %."""
    sample = Sampling(keep=9 * PROBABILITY_RANGE // 10)
    corners = [(0.0, sampled.roc(sample, 0.0)), (float(sample.dropped), 1.0), (1.0, 1.0)]
    ceiling = Ceiling(2, corners, sampled.roc(sample, 0.01))
    for rate in (0.01, 0.05):
        shown = words.at_most(privacy._at(ceiling, rate))
        assert shown == words.at_most(sampled.roc(sample, rate)), rate
    assert shown == "95.1 %" and privacy._at(ceiling, 0.5) == 1.0
