"""`rag-audit verifier cumulative`: the bound for several windows over one index."""

from __future__ import annotations

from pathlib import Path

import click

from rag_audit.cli.common import PATH, emit, json_option


@click.command()
@click.argument("windows", type=PATH, nargs=-1, required=True)
@click.option("--delta", help="delta for all windows in total; the largest delta_policy by default")
@json_option
def cumulative(windows: tuple[Path, ...], delta: str | None, as_json: bool) -> None:
    """Compute the total bound of WINDOWS over one index: window.json files, their folders, or policy files.

    The command verifies no window: run `rag-audit verify` on each window first.
    """
    from rag_audit.mechanisms.accounting.values import text
    from rag_audit.report.cumulative import compose, load_window
    from rag_audit.report.policy_text import COVERS, by_exclusion_factor, covers

    total = compose([load_window(path) for path in windows], delta)
    covered = covers([part.policy for part in total.windows]) or COVERS
    lines = [covered, ""]
    lines += [
        f"window {part.policy.window}: {part.compositions:,} queries by {part.policy.k_max} accounts,"
        f" eps {text(eps)} for this window"
        for part, eps in zip(total.windows, total.alone, strict=True)
    ]
    # The total has the chance of all windows already.
    table = None if total.table is None else (*total.table, False)
    lines += [
        f"total: eps {text(total.bound.eps)} at delta {text(total.bound.delta)}, for {', '.join(total.tenants)}",
        *(f"  - {assumption}" for assumption in total.bound.assumptions),
        *by_exclusion_factor(
            (name, text(total.exclusion_factor), text(total.exclusion_factor_all_accounts), table)
            for name in total.tenants
        ),
        "this command verified no window: run `rag-audit verify` on the last window, with --previous for each of the"
        " others. Windows of the chain that are not given can raise each figure",
    ]
    emit({"covers": covered, **total.as_json()}, as_json, lines)
