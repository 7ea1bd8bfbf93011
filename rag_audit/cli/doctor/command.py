"""`rag-audit doctor`: what is missing for which role."""

from __future__ import annotations

from dataclasses import asdict

import click

from rag_audit import __version__
from rag_audit._internal.errors import SetupError
from rag_audit.cli.common import emit, json_option
from rag_audit.cli.doctor.roles import ROLES, examine


@click.command()
@click.option("--role", "roles", multiple=True, type=click.Choice(list(ROLES)),
              help="look at what this role needs; may be repeated; without it at all of them")  # fmt: skip
@json_option
@click.pass_context
def doctor(ctx: click.Context, roles: tuple[str, ...], as_json: bool) -> None:
    """Say what this installation has for each role, what is missing, and the command that brings it.

    Exit code 0 says that the roles asked for are complete, or a verifier's if none is named; 2 that something is
    missing. Nothing is installed or sent.
    """
    found = examine(roles or tuple(ROLES))
    lacking = {role: found.lacking(role) for role in found.roles}
    value = {
        "version": __version__,
        "checks": {name: asdict(finding) for name, finding in found.found.items()},
        "roles": {role: {"complete": not names, "missing": names} for role, names in lacking.items()},
    }
    width = max(map(len, (*found.found, *found.roles)))
    lines = [f"rag-audit {__version__}", ""]
    for name, finding in found.found.items():
        lines.append(f"{name:{width}}  {finding.state:7}  {finding.found}")
        if finding.remedy is not None:
            lines.append(f"{'':{width}}  {'':7}  -> {finding.remedy}")
    lines.append("")
    for role, names in lacking.items():
        lines.append(f"{role:{width}}  {'lacks ' + ', '.join(names) if names else 'complete'}")
    emit(value, as_json, lines)
    if any(lacking[role] for role in roles or ("verifier",)):
        ctx.exit(int(SetupError.exit_code))
