"""`rag-audit export`: a window in the formats of other tools."""

from __future__ import annotations

from pathlib import Path

import click

from rag_audit.cli.common import PATH, emit, json_option
from rag_audit.formats.windowfile import WindowFile


@click.command()
@click.argument("window", type=PATH)
@click.option("--tiles", type=PATH, help="folder for the ledger as static files (C2SP tlog-tiles)")
@click.option(
    "--snarkjs", type=PATH, help="folder for the Groth16 proofs with keys, public inputs and commands"
)
@json_option
def export(window: Path, tiles: Path | None, snarkjs: Path | None, as_json: bool) -> None:
    """Write a closed WINDOW (window.json, or its folder) in formats that other tools read.

    Nothing is verified here. --tiles makes a folder that any static web server can publish: `checkpoint`, and hash
    tiles and entry bundles below `tile/`. --snarkjs makes one that `sh verify.sh` checks with snarkjs alone.
    """
    from rag_audit.export.log import write_tiles
    from rag_audit.export.snarkjs import write_snarkjs

    if tiles is None and snarkjs is None:
        raise click.UsageError("give --tiles, --snarkjs, or both")
    file = WindowFile.load(window)
    made: dict[str, object] = {}
    if tiles is not None:
        made |= {"tiles": str(tiles), "entries": write_tiles(file, tiles)}
    if snarkjs is not None:
        made |= {
            "snarkjs": str(snarkjs),
            "proofs": len(write_snarkjs(file, snarkjs)),
            "run": f"sh {snarkjs}/verify.sh",
        }
    emit(made, as_json)
