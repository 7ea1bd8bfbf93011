"""`rag-audit verifier cumulative`: the bound for several windows over one index."""

from __future__ import annotations

from pathlib import Path

import click

from rag_audit._internal.errors import ExitCode
from rag_audit._internal.words import of_positions
from rag_audit.cli.common import PATH, emit, json_option


@click.command()
@click.argument("windows", type=PATH, nargs=-1, required=True)
@click.option("--delta", help="delta for all windows in total; the largest delta_policy by default")
@json_option
@click.pass_context
def cumulative(ctx: click.Context, windows: tuple[Path, ...], delta: str | None, as_json: bool) -> None:
    """Compute the total bound of WINDOWS over one index: window.json files, their folders, or policy files.

    The command verifies no window: run `rag-audit verify` on each window first. WINDOWS must contain every window from
    the first one of the chain to the last given one; if a window between is missing, the command prints the figures
    for the given windows only, and ends with exit code 3.
    """
    from rag_audit.mechanisms.accounting.values import text
    from rag_audit.report.cumulative import compose, load_window
    from rag_audit.report.policy_text import COVERS, by_exclusion_factor, covers

    total = compose([load_window(path) for path in windows], delta)
    covered = covers([part.policy for part in total.windows]) or COVERS
    missing = [
        f"the window before {gap['before']} (header {gap['header'][:16]}..) is not given"
        for gap in total.missing
    ]
    incomplete = f"INCOMPLETE chain, no total: {'; '.join(missing)}"
    lines = [*([incomplete, ""] if missing else []), covered, ""]
    scope = "the given windows only, not a total" if missing else "total"
    lines += [
        f"window {part.policy.window}: {part.compositions:,} queries by {part.policy.k_max} accounts,"
        f" eps {text(eps)} for this window"
        for part, eps in zip(total.windows, total.alone, strict=True)
    ]
    lines += [
        f"{scope}: eps {text(total.bound.eps)} at delta {text(total.bound.delta)}, for {', '.join(total.tenants)},"
        f" about a document {of_positions(total.positions)}",
        *(f"  - {assumption}" for assumption in total.bound.assumptions),
        *(
            f"{scope} for {tenant}: eps {text(eps)}"
            for tenant, eps in total.eps_of.items()
            if eps < total.bound.eps
        ),
        *(
            f"{tenant}: {count} of the given windows continue no table of another given window, so the factor counts"
            f" {count} bits of a document"
            for tenant, count in total.bits.items()
            if count > 1
        ),
        *by_exclusion_factor(
            (
                (name, text(own), text(every), total.table(name))
                for name, (own, every) in total.factors.items()
            ),
            total=True,
        ),
        "this command verified no window: run `rag-audit verify` on the last window, with --previous for each of the"
        " others. Windows after the last given one raise each figure of mechanisms that draw anew",
    ]
    if missing:
        lines.append(
            "next: give every window from the first one of the chain (its header names no window before)"
        )
    emit({"covers": covered, **total.as_json()}, as_json, lines)
    if missing:
        ctx.exit(int(ExitCode.UNMET))
