"""The command `rag-audit`. Commands are thin: they read options, call the library, print."""

from __future__ import annotations

import click

from rag_audit import __version__
from rag_audit.cli import account, cumulative, demo, estimate, keys, policy, setup, verify, window, witness
from rag_audit.cli.common import Group


@click.group(cls=Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="rag-audit")
def main() -> None:
    """Check, without seeing the index, how much a RAG service can leak to a coalition of accounts.

    Exit codes: 0 pass, 1 a check is proven false, 2 malformed or missing input, 3 not what was asked for.
    """


for command in (
    demo.demo,
    keys.keygen,
    keys.worker_key,
    account.account,
    account.query,
    account.receipt,
    witness.witness,
    verify.trust,
    policy.policy,
    cumulative.cumulative,
    window.open_,
    window.enrol,
    window.serve,
    window.close,
    estimate.estimate,
    window.prove,
    window.forget_,
    verify.challenge,
    verify.verify,
    setup.setup,
):
    main.add_command(command)
