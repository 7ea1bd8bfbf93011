"""The German page of every sample has no English sentence, except names, quotations and words for machines."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser

import pytest

from rag_audit.cli.init.folder import PILOT_RELATION
from rag_audit.models.policy import OWN_DOCUMENTS
from rag_audit.report.build import report_of
from rag_audit.report.html.page import render
from rag_audit.report.html.recognised import NOTES, RESULTS, VERDICTS, recognised
from rag_audit.report.html.words import KNOWN
from rag_audit.report.language import language_of
from rag_audit.report.model import Report
from rag_audit.report.verification import ReportedVerdict
from tests.report.conftest import EXAMPLES, NOW, OUTCOMES
from tests.report.test_mistakes import FOREIGN, POOLED, _pilot_of, report
from tests.simulate.cases import FOLDER, run

CASES = ("honest", "sampling", "documents", "sampled", "in-a-row", "embedded", "certified", "ceremony",
         "record-dropped", "proof-of-another-record", "max-epsilon-exceeded", "final-checkpoint-without-quorum",
         "a-record-without-proof", "another-key-pinned", "no-receipts")  # fmt: skip
"""Windows of every outcome and mechanism."""
VOID = {"br", "meta", "input", "wbr", "link", "img"}
ALLOWED = (
    # names: services, windows, tenants, accounts, witnesses, mechanisms, levels of evidence, programs, collections
    r"(PASS|FAIL|UNMET|UNPROVEN|UNDECIDED)[A-Z-]*: w-[0-9]+, example.org/rag",
    r"(law|medicine):?|\(law, medicine\)|w[0-9]|(law|medicine)-[0-9]+",
    r"noise|sampling|pooled-listing|none|proved|declared|checked|not-checked|unsafe|ceremony|full|own|published|transparent",
    r"noise, sampling|pooled-listing, sampling|exact|re-executed(\([0-9/]+\))?|verifier",
    r"SQuAD dev v1.1|SciFact|PubMedQA.*|wordllama[a-z0-9-]*|hash.*|trust.toml|window.json|k_max",
    # titles of publications, standards and functions
    r"mode = \"full\" in trust.toml.|NIST SP 800-226|SHA-256|C_policy|ε|Index|Name|Epsilon.*|Delta.*|Verdict|Ledger|Position|Quorum|PASS, UNPROVEN",
    r"(σ/Δ|sigma/Delta) [0-9.,]+|docs/[a-z.#-]+",
)
"""What both languages may print alike."""
WORD = re.compile(r"[A-Za-zÄÖÜäöüß]{2,}")


class Texts(HTMLParser):
    """The text of each element, without the parts that the page marks as English, code and style."""

    def __init__(self, markup: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.found: set[str] = set()
        self.quoted: set[str] = set()
        self.feed(markup)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        values = dict(attributes)
        for name in ("aria-label", "data-label", "title"):
            if values.get(name) and not any(self.open):
                self.found.add(str(values[name]).strip())
        if tag not in VOID:
            english = tag != "html" and values.get("lang") == "en"
            self.open.append("quoted" if english else "code" if tag in ("style", "code", "pre") else "")

    def handle_endtag(self, tag: str) -> None:
        self.open.pop()

    def handle_data(self, data: str) -> None:
        text = re.sub(r"\s+", " ", data).strip()
        if text and "quoted" in self.open:
            self.quoted.add(text)
        elif text and not any(self.open):
            self.found.add(text)


def english_in(report: Report) -> set[str]:
    """The English texts of the German page: texts that the English page has too, without the allowed ones, and texts
    that the page marks as English, without quotations of checks."""
    english, german = (Texts(render(report, code)) for code in ("en", "de"))
    checks = [text for c in report.checks for text in (c.actual, c.expected, c.at) if text]
    challenges = [e.words for e in report.timeline.events if e.kind == "challenge"]
    quotations = re.sub(r"\s+", " ", "\n".join([*checks, *challenges, report.sentence, *report.notes]))
    strange = {text for text in german.quoted if text.partition(" [")[0].rstrip(".") not in quotations}
    return strange | {
        text
        for text in english.found & german.found
        if WORD.search(re.sub(r"[0-9:.-]+ (UTC|ms|min)", "", text))
        and text not in (report.window.origin, report.vouching.provider.name)
        and not any(re.fullmatch(pattern, text) for pattern in ALLOWED)
    }


@pytest.mark.parametrize("name", CASES)
def test_a_german_page_of_a_window_has_no_english_sentence(name: str) -> None:
    case = json.loads((FOLDER / name / "case.json").read_text(encoding="utf-8"))
    verdict = run(case, FOLDER / name)
    assert isinstance(verdict, ReportedVerdict)
    assert english_in(report_of(verdict, now=NOW, version="0")) == set()


@pytest.mark.parametrize("name", OUTCOMES)
def test_a_german_page_of_the_example_has_no_english_sentence(name: str, reports: dict[str, Report]) -> None:
    assert english_in(reports[name]) == set()


def test_a_german_page_of_pooled_listing_and_of_a_pilot_has_no_english_sentence(pooled: Report) -> None:
    assert english_in(pooled) == set()
    for folder in (EXAMPLES, POOLED):
        assert english_in(report(_pilot_of(folder), folder, folder)) == set()


def test_notes_and_relations_of_this_project_are_translated(reports: dict[str, Report]) -> None:
    report = reports["PASS"]
    witnesses = [w.model_copy(update={"relation": PILOT_RELATION}) for w in report.vouching.witnesses]
    vouching = report.vouching.model_copy(update={"witnesses": witnesses})
    told = report.model_copy(update={"notes": [OWN_DOCUMENTS], "vouching": vouching})
    markup = render(told, "de")
    assert OWN_DOCUMENTS not in markup and "anhand seiner eigenen Dokumente gewählt" in markup
    assert "made beside" not in markup and "vom Anbieter betrieben" in markup
    assert {OWN_DOCUMENTS, PILOT_RELATION} == {*KNOWN}


def _english(texts: list[str]) -> list[str]:
    """The texts that a German page quotes in English."""
    return [text for text in texts if 'lang="en"' in recognised(language_of("de"), text)]


def _left(report: Report) -> list[str]:
    """The English notes, sentence of the verdict and results of passed checks, on a German page."""
    passed = [c.actual for c in report.checks if c.outcome == "pass"]
    sentences = [text for text in passed if len(re.findall(r"(?<!\S)[a-z']{2,}(?!\S)", text)) > 1]
    return _english([*report.notes, report.sentence, *sentences])


@pytest.mark.parametrize("name", CASES)
def test_notes_and_results_of_passed_checks_are_german(name: str) -> None:
    case = json.loads((FOLDER / name / "case.json").read_text(encoding="utf-8"))
    verdict = run(case, FOLDER / name)
    assert isinstance(verdict, ReportedVerdict)
    made = report_of(verdict, now=NOW, version="0")
    assert made.notes and _left(made) == []
    assert _english(report_of(verdict, now=0, version="0").notes) == []  # dated after the report


@pytest.mark.parametrize("name", OUTCOMES)
def test_the_sentence_of_each_verdict_is_german(name: str, reports: dict[str, Report]) -> None:
    assert _left(reports[name]) == []


@pytest.mark.parametrize("name", FOREIGN)
def test_the_sentence_of_the_verifiers_own_mistake_is_german(name: str) -> None:
    assert _english([FOREIGN[name]().sentence]) == []


@pytest.mark.parametrize("message", [*NOTES, *VERDICTS, *RESULTS])
def test_each_pattern_has_a_translation_and_keeps_its_values(message: str) -> None:
    names = re.findall(r"%\((\w+)\)s", message)
    values = {name: f"value-{i}" for i, name in enumerate(names)}
    shown = str(recognised(language_of("de"), message % values))
    assert shown != message % values and 'lang="en"' not in shown
    assert all(value in shown for value in values.values())


def test_words_of_another_party_stay_a_quotation() -> None:
    german = language_of("de")
    assert recognised(german, "our index is safe") == '<span lang="en">our index is safe</span>'
    hostile = recognised(german, "cosigned by <script>alert(1)</script> of us")
    assert "<script" not in hostile and hostile.startswith('bestätigt von <span lang="en">')
    assert recognised(german, "1,234 signed requests").startswith("1.234 ")


@pytest.mark.parametrize("name", FOREIGN)
def test_a_german_page_of_the_verifiers_own_mistake_has_no_english_sentence(name: str) -> None:
    assert english_in(FOREIGN[name]()) == set()


def test_an_english_sentence_would_be_found(reports: dict[str, Report]) -> None:
    markup = "<html lang='de'><p>This is a sentence.</p><p lang='en'>Quoted.</p><code>x y</code></html>"
    assert Texts(markup).found == {"This is a sentence."} and Texts(markup).quoted == {"Quoted."}
    report = reports["UNMET"]
    strange = report.model_copy(update={"does_not_prove": ["a sentence without a translation"]})
    assert english_in(strange) == {"a sentence without a translation"}


def test_the_numbers_at_the_axes_of_a_german_page_have_german_separators(reports: dict[str, Report]) -> None:
    english, german = (
        re.findall(r'class="tick[^"]*">([^<]*)<', render(reports["PASS"], code)) for code in ("en", "de")
    )
    assert "0.1" in english, "the sample has an axis with a fraction"
    exchanged = str.maketrans(",.", ".,")
    assert german == [tick.translate(exchanged) for tick in english]


CHAIN_NOTE = (
    "law: the records of window w-1 are not verified here in sampled mode: the figures of the chain assume that they"
    " conform"
)
DIGEST = "38f59cd18da4ef2a"
BUNDLE_NOTES = (
    f"this verdict used the sender's trust file from the bundle ({DIGEST}): the sender chose its keys and its limits;"
    " --trust names your own. The sender also supplied the challenges that count as the verifier's own",
    f"this verdict used the sender's trust file from the bundle ({DIGEST}): the sender chose its keys and its limits;"
    " --trust names your own",
    "this verdict equals the verdict of the packed report; the packed report.json has no signature",
    "this verdict equals the verdict of the packed report; the key v+0a1b2c3d of --signer signed the packed report.json",
    "another release (0.2.0) made the packed report: its verdict line, its checks' outcomes, its window and its files"
    " equal this verdict's, and no check compared its other fields; the key v+0a1b2c3d signed the packed report.json;"
    " this run had no --signer, so no check shows who has this key",
    "WARNING: the packed report, which v+0a1b2c3d signed, says FAIL. this verdict used the reader's own trust file and"
    " options, and not the bundle's; challenges of the bundle counted like challenges of the window file. The packed"
    " report is about the same window and files, and its line differs from this verdict's line: FAIL header.root",
)


@pytest.mark.parametrize("note", [CHAIN_NOTE, *BUNDLE_NOTES])
def test_notes_about_bundles_and_chains_are_german(note: str) -> None:
    shown = str(recognised(language_of("de"), note))
    outside = re.sub(r'<span lang="en">.*?</span>', "", shown)
    assert not re.search(r"\b(the|verdict|packed|records|sender|signed)\b", outside), shown
    assert DIGEST not in note or DIGEST in shown


RARE = ("record-dropped", "another-key-pinned", "final-checkpoint-without-quorum", "a-record-without-proof",
        "proof-of-another-record")  # fmt: skip


def test_frequent_expectations_of_failed_checks_are_german() -> None:
    german, quoted = language_of("de"), 0
    found: set[str] = set()
    for name in RARE:
        verdict = run(json.loads((FOLDER / name / "case.json").read_text(encoding="utf-8")), FOLDER / name)
        assert isinstance(verdict, ReportedVerdict)
        for check in report_of(verdict, now=NOW, version="0").checks:
            if check.outcome != "pass" and check.expected and " " in check.expected:
                shown = str(recognised(german, check.expected))
                found.add(shown)
                quoted += shown.startswith('<span lang="en">')
    assert found and quoted <= len(found) // 3, (quoted, found)
