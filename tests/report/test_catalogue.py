"""The message catalogue: every sentence of the page, in every language, with the same placeholders."""

from __future__ import annotations

import gettext
import re
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from rag_audit._internal.errors import SetupError
from rag_audit.cli import main
from rag_audit.report.html.page import render
from rag_audit.report.language import Language, _Untranslated, language_of
from rag_audit.report.languages import LANGUAGES
from rag_audit.report.model import Report
from tests.report.conftest import OUTCOMES

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "packaging"))
import catalogue  # noqa: E402


def test_the_catalogue_has_exactly_the_sentences_of_the_sources() -> None:
    template = catalogue.collected()
    assert catalogue.TEMPLATE.read_bytes() == catalogue.po(template)
    assert len(list(catalogue.sentences(template))) > 200


def test_a_language_has_every_sentence_with_its_placeholders() -> None:
    template = catalogue.collected()
    for code in LANGUAGES[1:]:
        own = catalogue.translated(code)
        assert catalogue.faults(template, own) == []
        assert (catalogue.LOCALE / f"{code}.mo").read_bytes() == catalogue.mo(own)


def test_a_difference_between_catalogues_is_found() -> None:
    template = catalogue.Catalog()
    template.add("%(a)s and %(b)s")
    template.add("more")
    template.add(("%(count)s file", "%(count)s files"))

    def of(*messages: tuple[object, object]) -> list[str]:
        own = catalogue.Catalog(locale="de")
        for name, text in messages:
            own.add(name, text)
        return catalogue.faults(template, own)

    plural = (("%(count)s file", "%(count)s files"), ("%(count)s Datei", "%(count)s Dateien"))
    assert of(("%(a)s and %(b)s", "%(b)s, %(a)s"), ("more", "mehr"), plural) == []
    assert of(("%(a)s and %(b)s", "%(a)s"), ("more", "mehr"), plural) == [
        "other placeholders: %(a)s and %(b)s"
    ]
    assert of(("%(a)s and %(b)s", "%(a)s %(b)s"), ("more", ""), plural) == ["no translation: more"]
    assert of(("%(a)s and %(b)s", "%(a)s %(b)s"), ("more", "100 %"), plural) == [
        "a per cent sign that is not doubled: more"
    ]
    assert of(("%(a)s and %(b)s", "%(a)s %(b)s"), ("old", "alt"), plural) == [
        "no translation: more",
        "not in the sources: old",
    ]


def test_a_missing_translation_is_marked_as_english() -> None:
    empty = gettext.NullTranslations()
    empty.add_fallback(_Untranslated())
    language = Language("de", empty)
    assert language.text("odds %(a)s", a="<b>") == '<span lang="en">odds &lt;b&gt;</span>'
    assert language.plural("%(count)s file", "%(count)s files", 2000) == '<span lang="en">2.000 files</span>'
    assert language.number("1,234.5") == "1.234,5" and language.quoted("x") == '<span lang="en">x</span>'


def test_a_missing_or_damaged_catalogue_is_a_named_error(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with pytest.raises(SetupError, match="no such language"):
        language_of("xx")
    monkeypatch.setattr("rag_audit.report.language.LANGUAGES", ("en", "xx", "yy"))
    monkeypatch.setattr("rag_audit.report.language.resources.files", lambda _: tmp_path)
    with pytest.raises(SetupError, match="missing from this installation"):
        language_of("xx")
    (tmp_path / "locale").mkdir()
    (tmp_path / "locale/yy.mo").write_bytes(b"not a catalogue")
    with pytest.raises(SetupError, match="damaged"):
        language_of("yy")


@pytest.mark.parametrize("name", OUTCOMES)
def test_a_german_page_has_the_elements_of_the_english_one(name: str, reports: dict[str, Report]) -> None:
    """What no catalogue has, which is the report's own text, is marked as English."""
    english, german = (render(reports[name], code) for code in LANGUAGES)
    assert '<html lang="de">' in german and "Wenn Ihr Datensatz in diesem Index ist" in german
    for pattern in ('id="[^"]*"', 'data-answer="[^"]*"', "<section"):
        assert re.findall(pattern, english) == re.findall(pattern, german)
    above = german.partition('<details id="fold-claims"')[0]
    unmarked = re.sub(r'<span lang="en">.*?</span>', "", above)
    for words in (" the ", " and ", " not "):
        assert words not in re.sub("<style>.*?</style>|<[^>]*>", "", unmarked), words
    assert '<div lang="en">' not in german


def test_the_command_writes_a_german_page(tmp_path: Path) -> None:
    page = tmp_path / "bericht.html"
    done = CliRunner().invoke(
        main, ["verify", "--example", "--format", "html", "--language", "de", "--output", str(page)]
    )
    assert done.exit_code == 0, done.output
    assert "Drei Fragen an den Anbieter" in page.read_text(encoding="utf-8")
    alone = CliRunner().invoke(main, ["verify", "--example", "--language", "de"])
    assert alone.exit_code == 2 and "--format html" in alone.output
    unknown = CliRunner().invoke(main, ["verify", "--example", "--format", "html", "--language", "xx"])
    assert unknown.exit_code == 2 and "xx" in unknown.output


def test_english_marks_no_text(reports: dict[str, Report]) -> None:
    markup = render(reports["PASS"])
    assert markup.count('lang="en"') == 1 and '<html lang="en">' in markup


def test_numbers_and_ranges_have_the_separators_of_the_language() -> None:
    assert [language_of(code).number("1,024.5..8,192") for code in ("en", "de")] == [
        "1,024.5..8,192",
        "1.024,5..8.192",
    ]
