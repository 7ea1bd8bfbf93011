"""A verdict's report: one typed model (`model`), made once (`build`), and the faces that are rendered from it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rag_audit.verify.verifier import Verdict


def render(verdict: Verdict, *, every_check: bool = True) -> str:
    """A verdict as text for people (`text.render`).

    :param every_check: False leaves passed checks out
    """
    # The verifier imports the model's package, whose faces import the verifier.
    from rag_audit.verify.report import text

    return text.render(verdict, every_check=every_check)
