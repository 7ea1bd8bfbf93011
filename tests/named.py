"""The named error of a command. JSON output has its name, and the text for people does not."""

from __future__ import annotations

from typing import Any

import click
from click.testing import Result

from rag_audit.cli import verify
from rag_audit.cli.common import Group, tell
from rag_audit.errors import RagAuditError

LAST: list[str] = []
"""The name of the error that the last command of this process ended in, if it ended in one."""
_named = Group._named


def _noted(group: Group, ctx: click.Context) -> Any:
    LAST.clear()
    try:
        return _named(group, ctx)
    except RagAuditError as exc:
        LAST[:] = [exc.name]
        raise


Group._named = _noted  # type: ignore[method-assign]


def _told(error: RagAuditError) -> None:
    LAST[:] = [error.name]
    tell(error)


verify.tell = _told  # which writes reports of its errors, and tells them itself


def error_name(done: Result) -> str | None:
    """The name of the error in which the last command of `CliRunner` ended, or None if it ended in none."""
    return LAST[0] if LAST and done.exit_code else None
