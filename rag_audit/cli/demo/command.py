"""`rag-audit demo`."""

from __future__ import annotations

from pathlib import Path

import click

from rag_audit.cli.common import PATH
from rag_audit.cli.options import default_option, flag_option, path_option


@click.command()
@path_option("--docs", help="your own texts: one folder a tenant (the standard library's docstrings without)")
@flag_option(
    "--skip-unreadable",
    help="of --docs: omit files and lines that cannot be read or hold no text, and name them, instead of stopping",
)
@default_option(
    "--dir", "directory", type=PATH, default=Path("demo-window"), help="where everything is written"
)
@flag_option("--keep", help="refuse to overwrite an earlier demo in --dir")
@click.pass_context
def demo(ctx: click.Context, docs: Path | None, skip_unreadable: bool, directory: Path, keep: bool) -> None:
    """One window from commit to verdict on real text, every party in a process and folder of its own."""
    from rag_audit.cli.demo.run import run_demo

    ctx.exit(run_demo(directory, docs=docs, keep=keep, skip_unreadable=skip_unreadable))
