"""The command `rag-audit`. Commands are thin: they read options, call the library, and print."""

from __future__ import annotations

import importlib

import click

from rag_audit import __version__
from rag_audit.cli.common import Group

COMMANDS = {
    "demo": "rag_audit.cli.demo.command.demo",
    "doctor": "rag_audit.cli.doctor.command.doctor",
    "attack": "rag_audit.lab.commands.attack.attack",
    "canary": "rag_audit.lab.commands.canary.canary",
    "experiment": "rag_audit.lab.commands.experiment.experiment",
    "keygen": "rag_audit.cli.keys.keygen",
    "worker-key": "rag_audit.cli.keys.worker_key",
    "account": "rag_audit.cli.account.account",
    "query": "rag_audit.cli.account.query",
    "receipt": "rag_audit.cli.account.receipt",
    "witness": "rag_audit.cli.witness.witness",
    "trust": "rag_audit.cli.trust.trust",
    "policy": "rag_audit.cli.policy.policy",
    "cumulative": "rag_audit.cli.cumulative.cumulative",
    "export": "rag_audit.cli.export.export",
    "open": "rag_audit.cli.opening.open_",
    "documents": "rag_audit.cli.documents.documents_",
    "diff": "rag_audit.cli.diff.diff",
    "enrol": "rag_audit.cli.opening.enrol",
    "enrolments": "rag_audit.cli.enrolments.enrolments",
    "status": "rag_audit.cli.status.status",
    "clean": "rag_audit.cli.status.clean",
    "run": "rag_audit.cli.run.run",
    "serve": "rag_audit.cli.window.serve",
    "close": "rag_audit.cli.window.close",
    "estimate": "rag_audit.cli.estimate.estimate",
    "prove": "rag_audit.cli.window.prove",
    "forget": "rag_audit.cli.window.forget_",
    "challenge": "rag_audit.cli.verify.challenge",
    "verify": "rag_audit.cli.verify.verify",
    "explain": "rag_audit.cli.explain.explain",
    "page": "rag_audit.cli.page.page",
    "setup": "rag_audit.cli.setup.setup",
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
        module, _, name = COMMANDS[cmd_name].rpartition(".")
        command: click.Command = getattr(importlib.import_module(module), name)
        return command


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="rag-audit")
def main() -> None:
    """Check, without seeing the index, how much a RAG service can leak to a coalition of accounts.

    Exit codes: 0 pass, 1 a check is proven false, 2 malformed or missing input, 3 not what was asked for.
    """
