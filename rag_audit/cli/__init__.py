"""The command `rag-audit`. Commands are thin: they read options, call the library, and print."""

from __future__ import annotations

import importlib
from typing import Any

import click

from rag_audit.cli.common import Group

COMMANDS = {
    "demo": (
        "rag_audit.cli.demo.command.demo",
        "Run one window from commit to verdict on real text; each party has its own process and folder.",
    ),
    "doctor": (
        "rag_audit.cli.doctor.command.doctor",
        "Show the complete and the missing parts of this installation for each role, with the commands that add them.",
    ),
    "init": (
        "rag_audit.cli.init.command.init",
        "Write the files of a service into DIRECTORY: keys, policy, trust file, provider.toml, pilot witnesses.",
    ),
    "run": (
        "rag_audit.cli.run.run",
        "Open, serve, close and prove windows on the schedule in the file CONFIG (docs/deploy/README.md).",
    ),
    "verify": (
        "rag_audit.cli.verify.verify",
        "Verify WINDOW (window.json or its folder): PASS with eps_audit, or FAIL with the reason.",
    ),
    "provider clean": (
        "rag_audit.cli.status.clean",
        "Remove unused parts of earlier window files from the public folder of the window in DIRECTORY.",
    ),
    "provider close": (
        "rag_audit.cli.window.close",
        "Close a window; a second run adds the witnesses' cosignatures on the final checkpoint.",
    ),
    "provider count": (
        "rag_audit.cli.count.count",
        "Count the documents in the folder DOCS, and estimate the time to embed them.",
    ),
    "provider diff": (
        "rag_audit.cli.diff.diff",
        "List the differences between the documents of --docs and the window in DIRECTORY.",
    ),
    "provider documents": (
        "rag_audit.cli.documents.documents_",
        "Copy documents from SOURCE into a folder that `provider open --docs` reads.",
    ),
    "provider enrol": (
        "rag_audit.cli.open.enrol",
        "Add the accounts of roster LINEs to an open window; they can send queries after the witnesses drew a beacon.",
    ),
    "provider enrolments": (
        "rag_audit.cli.enrolments.enrolments",
        "List, approve and reject the enrolment requests of a service, also while it runs.",
    ),
    "provider estimate": (
        "rag_audit.cli.estimate.estimate",
        "Find accounts that repeat a question almost word for word.",
    ),
    "provider export": (
        "rag_audit.cli.export.export",
        "Write a closed WINDOW (window.json, or its folder) in formats of other tools.",
    ),
    "provider delete-secrets": (
        "rag_audit.cli.window.delete_secrets_",
        "Delete a window's seed and stored queries before the policy's date; then no proof can be made.",
    ),
    "provider keygen": (
        "rag_audit.cli.keys.provider_keygen",
        "Make the key that signs a provider's ledger: OUT (mode 0600), and OUT.pub for all other parties.",
    ),
    "provider open": (
        "rag_audit.cli.open.open_",
        "Open a window in DIRECTORY; a second run reads the witnesses' notes from its public/notes folder.",
    ),
    "provider policy": (
        "rag_audit.cli.policy.policy",
        "Write a window's policy, and show its bounds and its cost in recall.",
    ),
    "provider prove": ("rag_audit.cli.window.prove", "Make the missing proofs and add them to window.json."),
    "provider serve": (
        "rag_audit.cli.window.serve",
        "Answer signed requests, one JSON line for each, or over HTTP (docs/http.md).",
    ),
    "provider setup": ("rag_audit.cli.setup.setup", "Make proving and verification keys."),
    "provider status": (
        "rag_audit.cli.status.status",
        "Show the state of the window in DIRECTORY and its next step, also while it serves.",
    ),
    "provider worker-key": (
        "rag_audit.cli.keys.worker_key",
        "Make the key that encrypts proving jobs for other machines: OUT (mode 0600), the same file on each.",
    ),
    "account": (
        "rag_audit.cli.account.account",
        "Use an account: key, questions and receipts; add accounts to a provider's roster.",
    ),
    "witness": (
        "rag_audit.cli.witness.witness",
        "Act as a witness: cosign a provider's checkpoints and draw its beacon.",
    ),
    "verifier bundle": (
        "rag_audit.cli.bundle.bundle",
        "Verify WINDOW, and pack the files of the verification and its report into one archive.",
    ),
    "verifier challenge": (
        "rag_audit.cli.verify.challenge",
        "Draw the records to prove from the final checkpoint of WINDOW, and sign the draw.",
    ),
    "verifier cumulative": (
        "rag_audit.cli.cumulative.cumulative",
        "Compute the total bound of WINDOWS over one index: window.json files, their folders, or policy files.",
    ),
    "verifier explain": (
        "rag_audit.cli.explain.explain",
        "Explain CHECK, an id from a verdict with or without its tenant (proof.valid.law), or list all checks.",
    ),
    "verifier keygen": (
        "rag_audit.cli.keys.verifier_keygen",
        "Make the key that signs a verifier's challenges and reports: OUT (mode 0600), and OUT.pub for trust.toml.",
    ),
    "verifier page": (
        "rag_audit.cli.page.page",
        "Write a page to FILE that verifies windows in a browser without a network.",
    ),
    "verifier trust": ("rag_audit.cli.trust.trust", "Write the trust file of a verifier."),
    "lab attack": (
        "rag_audit.lab.commands.attack.attack",
        "Run published membership attacks against your own service.",
    ),
    "lab canary": (
        "rag_audit.lab.commands.canary.canary",
        "Add random texts to your own index, and measure how many of them an attack recognises.",
    ),
    "lab experiment": (
        "rag_audit.lab.commands.experiment.experiment",
        "Repeat the paper's figures and tables, also with the audited engine.",
    ),
    "lab relevance": (
        "rag_audit.lab.commands.relevance.relevance",
        "Measure the raw score that separates relevant passages, for `provider policy new --relevance`.",
    ),
}
"""Each command's function, and the first sentence of its help. Only the called command's module is loaded, so a
verifier's process contains no code of the provider, and `--help` loads none."""


GROUPS = {
    "provider": "Operate windows step by step; `rag-audit run` does all steps of a service.",
    "verifier": "Write a trust file, draw challenges, explain checks; `rag-audit verify` verifies.",
    "lab": "Attack your own service, and repeat the published experiments.",
}
"""The groups with commands in `COMMANDS`, and their help. The commands of `account` and `witness` are in the modules
of these groups."""


class Commands(Group):
    """A group that loads a command's module on use.

    :param prefix: the words before the commands' own names in `COMMANDS`: empty for the group of all commands, or the
        group's name and a space
    """

    def __init__(self, *arguments: Any, prefix: str = "", **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._summaries = {
            name.removeprefix(prefix): summary
            for name, (_, summary) in COMMANDS.items()
            if name.startswith(prefix) and " " not in name.removeprefix(prefix)
        }
        if not prefix:
            self._summaries |= GROUPS
        self._prefix = prefix

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command of the first word.

        :raises click.UsageError: the group has no such command; the error names commands of other groups with this name
        """
        if self.get_command(ctx, args[0]) is None:
            groups = ((name, main.get_command(ctx, name)) for name in main.list_commands(ctx))
            named = [
                f"`rag-audit {name} {args[0]}`"
                for name, group in groups
                if isinstance(group, click.Group) and group.get_command(ctx, args[0]) is not None
            ]
            if named:
                ctx.fail(f"No such command {args[0]!r}. Use {' or '.join(named)}.")
        return super().resolve_command(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of the group's commands."""
        return sorted(self._summaries)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The named command, or None."""
        if cmd_name not in self._summaries:
            return None
        if not self._prefix and cmd_name in GROUPS:
            return Commands(cmd_name, prefix=f"{cmd_name} ", help=GROUPS[cmd_name])
        module, _, name = COMMANDS[self._prefix + cmd_name][0].rpartition(".")
        command: click.Command = getattr(importlib.import_module(module), name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the table of commands."""
        rows = {name: click.Command(name, help=summary) for name, summary in self._summaries.items()}
        click.Group(commands=rows).format_commands(ctx, formatter)


def _show_version(ctx: click.Context, _: click.Parameter, requested: bool) -> None:
    if requested and not ctx.resilient_parsing:
        from rag_audit import __version__  # reads the installed distribution's metadata

        click.echo(f"rag-audit, version {__version__}")
        ctx.exit()


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--version", is_flag=True, expose_value=False, is_eager=True, callback=_show_version,
              help="Show the version and exit.")  # fmt: skip
def main() -> None:
    """Check, without seeing the index, how much a RAG service can leak to a coalition of accounts.

    Exit codes: 0 pass, 1 a check found a false statement, 2 malformed or missing input, 3 a requirement is not met.
    """
