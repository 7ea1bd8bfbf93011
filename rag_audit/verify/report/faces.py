"""The faces of a report by name."""

from __future__ import annotations

from collections.abc import Callable

from rag_audit.errors.printable import json_text
from rag_audit.ledger.keys import SigningKey
from rag_audit.verify.report import junit, sarif, text, vsa
from rag_audit.verify.report.model import Report


def face(
    report: Report,
    name: str,
    *,
    checks: bool = False,
    colour: bool = False,
    key: SigningKey | None = None,
) -> str:
    """A report's face, which ends with a line break.

    :param name: one of `rag_audit.cli.reports.FORMATS`
    :param checks: of text, every check and figure
    :param colour: of text, for a terminal
    :param key: of a verification summary, the key that signs it
    """
    if name == "text":
        return text.render(report, checks=checks, colour=colour)
    if name == "vsa":
        return vsa.render(report, key)
    return _PLAIN[name](report)


def _json(report: Report) -> str:
    return json_text(report.dump()) + "\n"


def _html(report: Report) -> str:
    from rag_audit.verify import page  # the accountant's curves, which no other face needs

    return page.render(report)


_PLAIN: dict[str, Callable[[Report], str]] = {
    "json": _json,
    "html": _html,
    "sarif": sarif.render,
    "junit": junit.render,
}
