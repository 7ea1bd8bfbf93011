"""`rag-audit keygen`."""

from __future__ import annotations

from pathlib import Path

import click

from rag_audit.cli.common import PATH, emit, json_option
from rag_audit.durable import replace_file
from rag_audit.ledger.note import SigningKey


@click.command()
@click.argument("out", type=PATH)
@click.option("--name", required=True, help="the key's name in signed notes, e.g. provider.example/rag")
@json_option
def keygen(out: Path, name: str, as_json: bool) -> None:
    """Make an Ed25519 key for a provider or verifier: OUT (mode 0600) and OUT.pub."""
    key = SigningKey.generate(name)
    key.save(out)
    replace_file(out.with_name(out.name + ".pub"), f"{key.verifier}\n".encode())
    emit({"vkey": str(key.verifier)}, as_json, str(key.verifier))
