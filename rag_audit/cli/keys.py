"""`rag-audit provider keygen` and `worker-key`, and `rag-audit verifier keygen`."""

from __future__ import annotations

from pathlib import Path

import click

from rag_audit._internal.durable import beside, replace_file
from rag_audit.cli.common import PATH, emit, json_option
from rag_audit.log.signing import SigningKey
from rag_audit.proofs.executors import KEY_VARIABLE, new_worker_key


@click.command("keygen")
@click.argument("out", type=PATH)
@click.option(
    "--name", required=True, help="the key's name, which is also the ledger's name, e.g. example.org/rag"
)
@json_option
def provider_keygen(out: Path, name: str, as_json: bool) -> None:
    """Make the key that signs a provider's ledger: OUT (mode 0600), and OUT.pub for all other parties."""
    _keygen(out, name, as_json)


@click.command("keygen")
@click.argument("out", type=PATH)
@click.option(
    "--name", required=True, help="the key's name in challenges and reports, e.g. verifier.example.org"
)
@json_option
def verifier_keygen(out: Path, name: str, as_json: bool) -> None:
    """Make the key that signs a verifier's challenges and reports: OUT (mode 0600), and OUT.pub for trust.toml."""
    _keygen(out, name, as_json)


def _keygen(out: Path, name: str, as_json: bool) -> None:
    """Make an Ed25519 key, and print its public part."""
    key = SigningKey.generate(name)
    key.save(out)
    replace_file(beside(out, out.name + ".pub"), f"{key.verifier}\n".encode())
    emit({"vkey": str(key.verifier)}, as_json, str(key.verifier))


@click.command("worker-key")
@click.argument("out", type=PATH)
@json_option
def worker_key(out: Path, as_json: bool) -> None:
    """Make the key that encrypts proving jobs for other machines: OUT (mode 0600), the same file on each.

    The environment variable RAG_AUDIT_WORKER_KEY of the provider and of each worker names this file.
    """
    new_worker_key(out)
    emit({"key": str(out), "variable": KEY_VARIABLE}, as_json, f"export {KEY_VARIABLE}={out.resolve()}")
