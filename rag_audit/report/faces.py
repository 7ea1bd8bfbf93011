"""The formats of a report by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from rag_audit._internal.printable import json_text
from rag_audit.log.keys import SigningKey
from rag_audit.report import junit, sarif, text, vsa
from rag_audit.report.model import Report, ShortReport

AnyReport = Report | ShortReport


def face(
    report: AnyReport,
    name: str,
    *,
    checks: bool = False,
    colour: bool = False,
    key: SigningKey | None = None,
    places: Mapping[str, str] | None = None,
) -> str:
    """A report in one format, which ends with a line break.

    :param name: one of `rag_audit.cli.reports.FORMATS`
    :param checks: of text, every check and figure
    :param colour: of text, for a terminal
    :param key: of a verification summary, the key that signs it
    :param places: of SARIF, the paths of window and trust file by role, relative to where a code host looks for them
    """
    if name == "text":
        if isinstance(report, ShortReport):
            return text.render_short(report, colour=colour)
        return text.render(report, checks=checks, colour=colour)
    if name == "vsa":
        return vsa.render(report, key)
    if name == "sarif":
        return sarif.render(report, places)
    return _PLAIN[name](report)


def _json(report: AnyReport) -> str:
    return json_text(report.dump()) + "\n"


def _html(report: AnyReport) -> str:
    from rag_audit.report import html  # the accountant's curves, which no other format needs

    return html.render(report)


_PLAIN: dict[str, Callable[[AnyReport], str]] = {
    "json": _json,
    "html": _html,
    "junit": junit.render,
}
