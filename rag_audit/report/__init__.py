"""A verdict's report: one typed model (`model`), made once (`build`), and the faces that are rendered from it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rag_audit._internal.canonical import Json
    from rag_audit.report.verification import ReportedVerdict


def render(verdict: ReportedVerdict, *, every_check: bool = True) -> str:
    """A verdict's report as text for people (`text.render`).

    :param every_check: False leaves checks out where all of them passed
    """
    # The verifier imports parts of the model, and the builder imports the verifier.
    from rag_audit.report.build import report_of
    from rag_audit.report.text import render as as_text

    return as_text(report_of(verdict), checks=every_check)


def as_json(verdict: ReportedVerdict) -> dict[str, Json]:
    """A verdict's report as a JSON value, for programs (docs/schemas/report.json)."""
    from rag_audit.report.build import report_of

    return report_of(verdict).dump()
