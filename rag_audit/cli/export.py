"""`rag-audit provider export`: a window in the formats of other tools."""

from __future__ import annotations

from pathlib import Path

import click

from rag_audit.cli.common import PATH, emit, json_option, signing_key
from rag_audit.cli.options import path_option
from rag_audit.models.windowfile import WindowFile
from rag_audit.proofs.description import keyed_titles


@click.command()
@click.argument("window", type=PATH)
@path_option("--tiles", help="folder for the ledger as static files (C2SP tlog-tiles)")
@path_option(
    "--snarkjs", help=f"folder for the {keyed_titles()} proofs with keys, public inputs and commands"
)
@path_option("--cose", help="folder for a COSE Receipt (RFC 9942) of each entry; needs --key")
@path_option("--key", help="the provider's secret key; --cose signs the ledger's root with it")
@click.option(
    "--entry",
    "only",
    type=click.IntRange(min=0),
    multiple=True,
    help="with --cose: write only the entry with this index; may be repeated",
)
@json_option
def export(
    window: Path,
    tiles: Path | None,
    snarkjs: Path | None,
    cose: Path | None,
    key: Path | None,
    only: tuple[int, ...],
    as_json: bool,
) -> None:
    """Write a closed WINDOW (window.json, or its folder) in formats of other tools.

    The command verifies no part of the window. --tiles makes a folder for any static web server: `checkpoint`, and hash
    tiles and entry bundles below `tile/`. --snarkjs makes a folder that `sh verify.sh` checks with only snarkjs. --cose
    makes a folder for COSE libraries: `<index>.cose`, and the entry's bytes in `<index>.entry`.
    """
    from rag_audit.report.export import write_cose, write_snarkjs, write_tiles

    if tiles is None and snarkjs is None and cose is None:
        raise click.UsageError("give --tiles, --snarkjs or --cose")
    if (cose is None) is not (key is None):
        raise click.UsageError("--cose needs --key, and --key needs --cose: the provider signs each receipt")
    if only and cose is None:
        raise click.UsageError("--entry needs --cose")
    file = WindowFile.load(window)
    written: dict[str, object] = {}
    if tiles is not None:
        written |= {"tiles": str(tiles), "entries": write_tiles(file, tiles)}
    if snarkjs is not None:
        written |= {
            "snarkjs": str(snarkjs),
            "proofs": write_snarkjs(file, snarkjs),
            "run": f"sh {snarkjs}/verify.sh",
        }
    if cose is not None and key is not None:
        written |= {"cose": str(cose), "receipts": len(write_cose(file, cose, signing_key(key), only=only))}
    emit(written, as_json)
