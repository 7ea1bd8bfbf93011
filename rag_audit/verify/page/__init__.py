"""The page for those who sign: one file of HTML from a report, without scripts, without a network (docs/report.md)."""

from __future__ import annotations

import base64
import hashlib
from importlib import resources

from rag_audit.verify.page import evidence, privacy, record, top
from rag_audit.verify.page.markup import Html, raw, tag
from rag_audit.verify.report.model import Report


def render(report: Report) -> str:
    """The page of a report.

    Every text of a file is escaped. The page's policy allows its own style sheet and nothing else: no script, no image,
    no font, no connection, no form.
    """
    style = resources.files(__name__).joinpath("style.css").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    title = f"{report.outcome}: window {report.window.window} of {report.window.origin}"
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
    return raw("<!doctype html>\n") + tag("html", head, tag("body", *_body(report)), lang="en") + "\n"


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
