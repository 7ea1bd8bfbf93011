"""`rag-audit demo`."""

from __future__ import annotations

from pathlib import Path

import click

from rag_audit.cli.common import PATH
from rag_audit.cli.options import default_option, flag_option, path_option


@click.command()
@path_option(
    "--docs",
    help="your own texts: one folder for each tenant; without it the docstrings of the standard library",
)
@click.option(
    "--embedder",
    type=click.Choice(["minilm-int", "minilm-int-lexical-768", "wordllama-lexical-768"]),
    help="the embedder  [default: minilm-int if its files are installed, else wordllama-lexical-768]",
)
@flag_option(
    "--skip-unreadable",
    help="with --docs: omit and name unreadable files and lines and those without text, instead of stopping",
)
@default_option("--dir", "directory", type=PATH, default=Path("demo-window"), help="the folder for all files")
@flag_option("--keep", help="refuse to overwrite an earlier demo in --dir")
@click.pass_context
def demo(
    ctx: click.Context,
    docs: Path | None,
    embedder: str | None,
    skip_unreadable: bool,
    directory: Path,
    keep: bool,
) -> None:
    """Run one window from commit to verdict on real text; each party has its own process and folder."""
    from rag_audit.cli.demo.run import run_demo

    ctx.exit(
        run_demo(directory, docs=docs, keep=keep, skip_unreadable=skip_unreadable, embedder_name=embedder)
    )
