"""`rag-audit doctor`: the missing parts for each role."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import click

from rag_audit import __version__
from rag_audit._internal.errors import SchemaError, SetupError, brief
from rag_audit.cli.common import emit, json_option
from rag_audit.cli.doctor import findings
from rag_audit.cli.doctor.findings import Finding
from rag_audit.cli.options import path_option

CHECKS: dict[str, Callable[[], Finding]] = {
    "python": findings.python,
    "packages": findings.packages,
    "native core": findings.native,
    "machine": findings.machine,
    "clock": findings.clock,
    "cache": findings.cache,
    **{
        f"packages[{extra}]": partial(findings.packages, extra)
        for extra in ("provider", "onnx", "documents", "serve", "client", "experiments", "dev")
    },
    "minilm-int": findings.minilm,
    "node": findings.node,
    "npm packages": findings.npm,
    "checkout": findings.sources,
    "rust": findings.rust,
    "tools": findings.tools,
    "collections": findings.data,
}
"""All checks, in the order of the output."""

_BASE = ("python", "packages", "native core", "machine", "clock")
_PROVIDER = (*_BASE, "cache", "packages[provider]")
_GROTH16 = (*_PROVIDER, "node", "npm packages")

ROLES: dict[str, tuple[str, ...]] = {
    "verifier": (*_BASE, "cache"),
    "witness": _BASE,
    "account": _PROVIDER,
    "account-http": (*_PROVIDER, "packages[client]"),
    "provider": (*_PROVIDER, "packages[documents]", "packages[serve]", "packages[client]"),
    "provider-commands": _PROVIDER,
    "provider-minilm": (*_PROVIDER, "minilm-int"),
    "provider-onnx": (*_PROVIDER, "packages[onnx]"),
    "provider-documents": (*_PROVIDER, "packages[documents]"),
    "provider-http": (*_PROVIDER, "packages[serve]"),
    "provider-groth16": _GROTH16,
    "experiments": (*_PROVIDER, "packages[experiments]", "collections"),
    "developer": (*_GROTH16, "packages[onnx]", "packages[documents]", "packages[serve]", "packages[client]",
                  "packages[experiments]", "packages[dev]", "checkout", "rust", "tools"),
}  # fmt: skip
"""The needs of each role, as names of `CHECKS`. `provider` follows docs/quickstart.md, with documents in files and a
service over HTTP; `provider-commands` opens and serves windows on one machine. Proving answers of Groth16 tenants
also needs Node."""


def _check_backup(ctx: click.Context, folder: Path, as_json: bool) -> None:
    """Print the parts of a backup, and end with exit code 2 if one is damaged."""
    from rag_audit.cli.doctor.backup import parts

    found = parts(folder)
    width = max(len(part.name) for part in found)
    emit(
        {"folder": str(folder), "parts": [asdict(part) for part in found]},
        as_json,
        [f"{part.name:{width}}  {part.state:14}  {part.told}" for part in found],
    )
    if any(part.state == "damaged" for part in found):
        ctx.exit(int(SetupError.exit_code))


@dataclass(frozen=True)
class Examination:
    """The findings for all parts that any role needs."""

    roles: tuple[str, ...]
    actual: dict[str, Finding]

    def lacking(self, role: str) -> list[str]:
        """The checks that make a role incomplete."""
        return [name for name in ROLES[role] if self.actual[name].state == "missing"]


def examine(roles: Iterable[str] = tuple(ROLES)) -> Examination:
    """Check all parts that the roles need, each part once.

    :raises SchemaError: no role has this name
    """
    requested = tuple(roles)
    for role in requested:
        if role not in ROLES:
            raise SchemaError(
                "no role has this name", field="role", expected=", ".join(ROLES), actual=brief(role)
            )
    needed = {name for role in requested for name in ROLES[role]}
    return Examination(requested, {name: check() for name, check in CHECKS.items() if name in needed})


@click.command()
@click.option("--role", "roles", multiple=True, type=click.Choice(list(ROLES)),
              help="check the parts of this role; may be repeated; all roles by default")  # fmt: skip
@path_option("--backup", help="check the backup of a provider's, an account's or a witness's folder instead")
@json_option
@click.pass_context
def doctor(ctx: click.Context, roles: tuple[str, ...], backup: Path | None, as_json: bool) -> None:
    """Show the complete and the missing parts of this installation for each role, with the commands that add them.

    With --backup, the command shows which parts of a folder are complete, and which must not be restored
    (docs/deploy/operations.md).

    Exit code 0: the named roles are complete, or the role of a verifier if no role is named. Exit code 2: a part is
    missing or damaged. The command installs no package and sends no data.
    """
    if backup is not None:
        if roles:
            raise click.UsageError("--backup checks a folder, and --role an installation: give one of them")
        _check_backup(ctx, backup, as_json)
        return
    result = examine(roles or tuple(ROLES))
    lacking = {role: result.lacking(role) for role in result.roles}
    value = {
        "version": __version__,
        "checks": {name: asdict(finding) for name, finding in result.actual.items()},
        "roles": {role: {"complete": not names, "missing": names} for role, names in lacking.items()},
    }
    width = max(map(len, (*result.actual, *result.roles)))
    lines = [f"rag-audit {__version__}", ""]
    for name, finding in result.actual.items():
        lines.append(f"{name:{width}}  {finding.state:7}  {finding.actual}")
        if finding.remedy is not None:
            lines.append(f"{'':{width}}  {'':7}  -> {finding.remedy}")
    lines.append("")
    for role, names in lacking.items():
        lines.append(f"{role:{width}}  {'lacks ' + ', '.join(names) if names else 'complete'}")
    emit(value, as_json, lines)
    if any(lacking[role] for role in roles or ("verifier",)):
        ctx.exit(int(SetupError.exit_code))
