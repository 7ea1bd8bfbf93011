"""A verdict's report: one typed model (`model`), made once (`build`), and the formats that are rendered from it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rag_audit._internal.canonical import Json
    from rag_audit.log.signing import SigningKey
    from rag_audit.report.model import Report, ShortReport
    from rag_audit.report.verification import ReportedVerdict


def render_report(
    report: Report | ShortReport,
    name: str,
    *,
    checks: bool = False,
    colour: bool = False,
    key: SigningKey | None = None,
    places: Mapping[str, str] | None = None,
    language: str = "en",
) -> str:
    """A report in one format, with a line break at the end. The function loads only the modules that this format needs.

    :param name: one of `rag_audit.cli.reports.FORMATS`, or `brief` or `summary` for the verdict in at most four or
        twelve lines
    :param checks: for text, show every check and figure
    :param colour: for text, colour the output for a terminal
    :param key: for a verification summary, the key that signs it
    :param places: for SARIF, the paths of window and trust file by role, relative to the folder where a code host looks
        for them
    :param language: for HTML, one of `rag_audit.report.languages.LANGUAGES`
    """
    match name:
        case "json":
            from rag_audit._internal.printable import json_text

            return json_text(report.dump()) + "\n"
        case "html":
            from rag_audit.report.html import page

            return page.render(report, language)
        case "junit":
            from rag_audit.report import junit

            return junit.render(report)
        case "sarif":
            from rag_audit.report import sarif

            return sarif.render(report, places)
        case "vsa":
            from rag_audit.report import vsa

            return vsa.render(report, key)
        case "svr":
            from rag_audit.report import svr

            return svr.render(report, key)
        case "brief":
            from rag_audit.report import text

            return text.brief(report)
        case "summary":
            from rag_audit.report import summary

            return summary.render(report, colour=colour)
        case _:
            from rag_audit.report import text

            return text.render(report, checks=checks, colour=colour)


def render(verdict: ReportedVerdict, *, every_check: bool = True) -> str:
    """A verdict's report as text for people (`text.render`).

    :param every_check: False leaves checks out where all of them passed
    """
    from rag_audit.report.build import report_of

    return render_report(report_of(verdict), "text", checks=every_check)


def as_json(verdict: ReportedVerdict) -> dict[str, Json]:
    """A verdict's report as a JSON value, for programs (docs/schemas/report.json)."""
    from rag_audit.report.build import report_of

    return report_of(verdict).dump()
