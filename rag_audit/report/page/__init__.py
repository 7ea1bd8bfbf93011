"""The page for those who sign: one file of HTML from a report, without scripts, without a network (docs/report.md)."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from importlib import resources

from rag_audit._internal.words import instant
from rag_audit.report.model import Report, ShortReport
from rag_audit.report.page import evidence, privacy, record, top, words
from rag_audit.report.page.markup import Child, Html, clip, raw, tag


def render(report: Report) -> str:
    """The page of a report.

    Every text of a file is escaped. The page's policy allows its own style sheet and nothing else: no script, no image,
    no font, no connection, no form.
    """
    title = f"{report.outcome}: window {report.window.window} of {report.window.origin}"
    return _page(title, _body(report))


def render_short(report: ShortReport) -> str:
    """The page of a run that has no whole report: what the run could not use, what to do, and every check that ran."""
    found = report.malformed
    rows = [] if found is None else [
        ("Object", found.object), ("Expected", found.expected), ("Actual", found.actual), ("Next step", found.next_step)
    ]  # fmt: skip
    files = [(f.role, f"{f.name} {f.sha256 or '(no file)'}") for f in report.filing.inputs]
    main = [
        tag("h1", clip(report.line, 400)),
        tag("p", report.sentence),
        _table("What could not be used", [(name, text) for name, text in rows if text is not None]),
        tag("h2", "What to do now"),
        tag("ul", [tag("li", _prose(step)) for step in report.next_steps]),
        _table("Checks that did not pass", [(c.id, f"{c.outcome}: found {c.found}, expected {c.expected}")
                                            for c in report.checks if c.outcome != "pass"]),
        _table("Files", files),
        tag("p", f"Made {instant(report.filing.verified_at)} by rag-audit {report.filing.version}."),
    ]  # fmt: skip
    return _page(report.line, [tag("main", main)])


def _prose(text: str) -> list[Child]:
    """A step as a sentence, its commands (between backticks) as code."""
    parts = words.sentence(clip(text, 600)).split("`")
    return [tag("code", part) if number % 2 else part for number, part in enumerate(parts)]


def _table(title: str, rows: Sequence[tuple[str, str]]) -> Html | None:
    if not rows:
        return None
    body = [tag("tr", tag("th", name, scope="row"), tag("td", clip(text, 600))) for name, text in rows]
    return tag("section", tag("h2", title), tag("table", tag("tbody", body)))


def _page(title: str, body: list[Html | None]) -> str:
    style = resources.files(__name__).joinpath("style.css").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("meta", name="referrer", content="no-referrer"),
        tag("title", title[:200]),
        tag("style", raw(style)),
    )
    return raw("<!doctype html>\n") + tag("html", head, tag("body", *body), lang="en") + "\n"


def _body(report: Report) -> list[Html | None]:
    main = [
        top.verdict(report),
        top.why(report),
        top.scope(report),
        top.next_steps(report),
        privacy.privacy(report),
        record.timeline(report),
        record.requirements(report),
        record.vouching(report),
        evidence.checks(report),
        evidence.nist(report),
        top.outside(report),
        evidence.again(report),
    ]
    foot = tag(
        "footer",
        tag(
            "p",
            "Made by rag-audit ",
            report.filing.version,
            " from the files above. The page has no script and connects to nothing; it says what the"
            " verification found and can itself be altered, so check it again before you rely on it.",
        ),
    )
    return [top.masthead(report), tag("main", *main), foot]
