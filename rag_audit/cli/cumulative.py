"""`rag-audit verifier cumulative`: the bound for several windows over one index."""

from __future__ import annotations

from pathlib import Path

import click

from rag_audit.cli.common import PATH, emit, json_option


@click.command()
@click.argument("windows", type=PATH, nargs=-1, required=True)
@click.option("--delta", help="delta for all windows together; the largest delta_policy by default")
@json_option
def cumulative(windows: tuple[Path, ...], delta: str | None, as_json: bool) -> None:
    """Compose WINDOWS over one index: window.json files, their folders, or policy files.

    Nothing is verified here: run `rag-audit verify` on each window first.
    """
    from rag_audit.mechanisms.accounting.values import text
    from rag_audit.report.cumulative import compose, load_window
    from rag_audit.report.policy_text import COVERS, by_odds, covers

    found = compose([load_window(path) for path in windows], delta)
    covered = covers([part.policy for part in found.windows]) or COVERS
    lines = [covered, ""]
    lines += [
        f"window {part.policy.window}: {part.compositions:,} queries by {part.policy.k_max} accounts,"
        f" alone eps {text(eps)}"
        for part, eps in zip(found.windows, found.alone, strict=True)
    ]
    lines += [
        f"together: eps {text(found.bound.eps)} at delta {text(found.bound.delta)}, for {', '.join(found.tenants)}",
        *(f"  - {assumption}" for assumption in found.bound.assumptions),
        *by_odds(
            (name, text(found.odds_unlisted), text(found.odds_unlisted_all_accounts))
            for name in found.tenants
        ),
        "not verified here: run `rag-audit verify` on each window",
    ]
    emit({"covers": covered, **found.as_json()}, as_json, lines)
