"""`rag-audit policy check`, and the same question before `open`: what a verifier's trust file will say of a window."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from rag_audit._internal.errors import ExitCode
from rag_audit.cli.common import PATH, emit, json_option, say
from rag_audit.cli.options import path_option, read_policy
from rag_audit.models.policy import Policy
from rag_audit.models.trust import Trust
from rag_audit.verify.ahead import Parties, change_of, check_ahead
from rag_audit.verify.case import Check, Status, worst


@click.command("check")
@click.argument("file", type=PATH)
@path_option("--trust", required=True, help="the verifier's trust file (`rag-audit trust new`)")
@json_option
@click.pass_context
def check(ctx: click.Context, file: Path, trust: Path, as_json: bool) -> None:
    """Say what a verifier with a trust file would find wanting in windows under the policy FILE.

    Exit codes are the verdict's: 3 where something is asked for that the policy does not give.
    """
    policy = read_policy(file)
    checks = check_ahead(policy, Trust.load(trust))
    wanting = _wanting(checks)
    value = {"policy": str(file), "trust": str(trust), "wanting": [_row(c, policy) for c in wanting]}
    met = f"{file} has what {trust} asks of a policy: {len(checks)} checks"
    emit(value, as_json, [line for c in wanting for line in _lines(c, policy)] or met)
    ctx.exit(int(_code(wanting)))


def stop_if_wanting(
    ctx: click.Context, policy: Policy, trust: Path, parties: Parties, *, as_json: bool
) -> None:
    """End the command before entry 0 if a verifier with this trust file would not pass the window."""
    wanting = _wanting(check_ahead(policy, Trust.load(trust), parties))
    if not wanting:
        return
    if as_json:
        emit({"status": "not opened", "wanting": [_row(c, policy) for c in wanting]}, as_json)
    say(f"nothing was opened: {len(wanting)} checks of {trust} would not pass")
    for line in (line for c in wanting for line in _lines(c, policy)):
        say(line)
    ctx.exit(int(_code(wanting)))


def _wanting(checks: Sequence[Check]) -> list[Check]:
    return [c for c in checks if c.status is not Status.PASS]


def _code(wanting: Sequence[Check]) -> ExitCode:
    """The exit code of a verdict with these checks."""
    return worst({c.status for c in wanting}).exit_code


def _row(check: Check, policy: Policy) -> dict[str, object]:
    change = change_of(check.id, policy)
    return {**check.as_json(), **({} if change is None else {"change": change})}


def _lines(check: Check, policy: Policy) -> list[str]:
    lines = [f"{check.status.value:9}  {check.id}", f"  trust.toml asks: {check.expected}",
             f"  the window has:  {check.found}"]  # fmt: skip
    change = change_of(check.id, policy)
    return lines if change is None else [*lines, f"  decided by {change}"]
