"""The command `rag-audit`. Commands are thin: they read options, call the library, and print."""

from __future__ import annotations

import importlib

import click

from rag_audit import __version__
from rag_audit.cli.common import Group

COMMANDS = {
    "demo": "demo.demo",
    "doctor": "doctor.doctor",
    "attack": "attack.attack",
    "canary": "canary.canary",
    "experiment": "experiment.experiment",
    "keygen": "keys.keygen",
    "worker-key": "keys.worker_key",
    "account": "account.account",
    "query": "account.query",
    "receipt": "account.receipt",
    "witness": "witness.witness",
    "trust": "trust.trust",
    "policy": "policy.policy",
    "cumulative": "cumulative.cumulative",
    "export": "export.export",
    "open": "opening.open_",
    "documents": "documents.documents_",
    "diff": "diff.diff",
    "enrol": "opening.enrol",
    "enrolments": "enrolments.enrolments",
    "status": "status.status",
    "clean": "status.clean",
    "run": "run.run",
    "serve": "window.serve",
    "close": "window.close",
    "estimate": "estimate.estimate",
    "prove": "window.prove",
    "forget": "window.forget_",
    "challenge": "verify.challenge",
    "verify": "verify.verify",
    "explain": "explain.explain",
    "page": "page.page",
    "setup": "setup.setup",
}
"""The module of each command and its name there. Only the called command's module is loaded, so a verifier's process
holds no code of the provider."""


class Commands(Group):
    """The group of all commands, each of which is loaded on use."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of all commands."""
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The named command, or None."""
        if cmd_name not in COMMANDS:
            return None
        module, _, name = COMMANDS[cmd_name].partition(".")
        command: click.Command = getattr(importlib.import_module(f"{__name__}.{module}"), name)
        return command


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="rag-audit")
def main() -> None:
    """Check, without seeing the index, how much a RAG service can leak to a coalition of accounts.

    Exit codes: 0 pass, 1 a check is proven false, 2 malformed or missing input, 3 not what was asked for.
    """
