"""`rag-audit verifier explain`: the meaning of a verdict's check, the possible causes of its failing, and the
remedies."""

from __future__ import annotations

import textwrap

import click

from rag_audit.cli.common import emit, json_option

_WIDTH = 100


@click.command()
@click.argument("check", required=False)
@json_option
def explain(check: str | None, as_json: bool) -> None:
    """Explain CHECK, an id from a verdict with or without its tenant (proof.valid.law), or list all checks.

    The explanation states when the check passes, the consequence of a failure, possible honest causes, the next step,
    and the section of the documentation. With the name of a group, for example trust, the command lists its checks.
    """
    from rag_audit.report.explanations import GROUPS, explained, explanations

    if check is None or check in GROUPS:
        result = {name: e.means for name, e in explanations().items() if check in (None, name.split(".")[0])}
        rows = [_row(name, means) for name, means in result.items()]
        emit({"checks": result}, as_json, [line for row in rows for line in row])
        return
    e = explained(check)
    lines = [check, *_wrapped(f"Passes if {e.means}."), "", *_wrapped(e.failed), "", "  Honest causes:"]
    lines += [line for cause in e.honest_causes for line in _wrapped(cause, "  - ", "    ")]
    lines += ["", *_wrapped(f"Next step: {e.ask}."), f"  Read: {e.section}"]
    emit({"check": check, **e.dump()}, as_json, lines)


def _row(name: str, means: str) -> list[str]:
    return textwrap.wrap(means, _WIDTH, initial_indent=f"{name:26}", subsequent_indent=" " * 26)


def _wrapped(text: str, first: str = "  ", rest: str = "  ") -> list[str]:
    return textwrap.wrap(text, _WIDTH, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False)
