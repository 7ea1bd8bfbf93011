"""The HTML format, for the persons who sign: one file from a report, without scripts and network access
(docs/report.md).

`../templates` has the elements, and every sentence that needs no calculation; the modules of this package compute the
values that the templates print. A report quotes files from other parties, and their content remains text: a template
escapes each value that it prints, unless a template made the value.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterator
from functools import cache, partial
from importlib import resources

from jinja2 import Environment, PackageLoader, StrictUndefined, Undefined
from jinja2.ext import Extension
from jinja2.lexer import Token, TokenStream
from markupsafe import Markup

from rag_audit._internal import words as words_of
from rag_audit._internal.printable import printable
from rag_audit._internal.words import day, instant
from rag_audit.report import claims, protection, steps, weaknesses
from rag_audit.report.explanations import CAVEAT, Cause, cause_of
from rag_audit.report.html import (
    charts,
    curves,
    decision,
    evidence,
    overview,
    privacy,
    record,
    regulation,
    study,
    verdict,
    words,
)
from rag_audit.report.html.recognised import recognised
from rag_audit.report.language import Language, language_of
from rag_audit.report.model import Report, ShortReport

_BETWEEN_TAGS = re.compile(r"(?:\A|(?<=>))\s*\n\s*(?=<|\Z)")
_LINE_BREAK = re.compile(r"\s*\n\s*")


class Compact(Extension):
    """A line break between two tags, with the indentation after it, is no part of the page; any other is a space."""

    def filter_stream(self, stream: TokenStream) -> Iterator[Token]:
        """Shorten the text between a template's expressions and statements."""
        for token in stream:
            if token.type == "data":
                token = Token(
                    token.lineno, token.type, _LINE_BREAK.sub(" ", _BETWEEN_TAGS.sub("", token.value))
                )
            yield token


def render(report: Report | ShortReport, language: str = "en") -> str:
    """The page of a report, or of a run without a whole report.

    :param language: one of `rag_audit.report.languages.LANGUAGES`
    :raises SetupError: this installation lacks the catalogue of the language

    The page's policy allows only its own style sheet: no script, no image, no font, no connection, no form.
    """
    if isinstance(report, ShortReport):
        name, title = "short.html.j2", report.line
    else:
        name = "report.html.j2"
        title = f"{report.outcome}: {report.window.window}, {report.window.origin}"
    style = _file("style.css")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    page = environment(language).get_template(name)
    return f"<!doctype html>\n{page.render(report=report, title=title, policy=policy, style=Markup(style))}\n"


@cache
def environment(code: str = "en") -> Environment:
    """The environment that compiles the templates, with the functions that they may call.

    :param code: the language of the pages
    :raises SetupError: this installation lacks the catalogue of the language
    """
    language = language_of(code)
    result = Environment(
        loader=PackageLoader("rag_audit.report"),
        extensions=["jinja2.ext.i18n", Compact],
        autoescape=True,
        undefined=StrictUndefined,
        finalize=partial(finalized, language),
    )
    result.policies["ext.i18n.trimmed"] = True
    result.install_gettext_callables(language.translated, language.translated_plural, newstyle=True)  # type: ignore[attr-defined]
    result.filters |= {
        "clip": words.clip,
        "shortened": words.shortened,
        "sentence": words.sentence,
        "number": charts.number,
        "breakable": breakable,
        "nowrap": nowrap,
        "name": name_of,
        "quoted": language.quoted,
        "recognised": partial(recognised, language),
        "sentence_case": overview.sentence_start,
    }
    result.globals |= {
        "CAVEAT": CAVEAT, "Cause": Cause, "cause_of": cause_of,
        "day": day, "instant": instant, "curves": curves, "words_of": words_of, "claims": claims, "steps": steps,
        "warnings": protection, "weaknesses": weaknesses,
        "study": study, "charts": charts, "verdict": verdict, "privacy": privacy, "record": record,
        "evidence": evidence, "language": language, "overview": overview, "decision": decision,
        "regulation": regulation,
    }  # fmt: skip
    return result


def finalized(language: Language, value: str | int | Undefined | None) -> Markup | Undefined:
    """A value that a template prints, as markup in a language; an undefined name stays an error."""
    return value if isinstance(value, Undefined) else language.shown(value)


def breakable(name: str) -> Markup:
    """A name with points in it, which a narrow column may break after each."""
    return Markup("<wbr>").join(printable(part) for part in re.split(r"(?<=\.)", name))


def nowrap(text: str) -> Markup:
    """A text that stays on one line."""
    return Markup('<span class="nowrap">{}</span>').format(text)


def name_of(text: str) -> Markup:
    """The name of a service, which may break anywhere."""
    return Markup('<span class="name">{}</span>').format(printable(text))


def _file(name: str) -> str:
    return resources.files("rag_audit.report").joinpath("templates", name).read_text(encoding="utf-8")
