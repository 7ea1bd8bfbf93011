"""`rag-audit verifier bundle`: one archive with the files and the report of a verification."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import click

from rag_audit.cli.common import (
    PATH,
    after,
    emit,
    estimated,
    json_option,
    patiently,
    say,
    signing_key,
)
from rag_audit.cli.earlier import earlier_windows
from rag_audit.cli.options import (
    PROCESSES,
    default_option,
    flag_option,
    gathered,
    path_option,
    previous_option,
)
from rag_audit.cli.reports import distinct
from rag_audit.cli.verify import Proofs
from rag_audit.report.archive import digest_of
from rag_audit.verify.inputs import VerifierOptions, require_window


@dataclass(frozen=True)
class _Inputs:
    """The verifier's files besides the window."""

    trust: Path
    receipts: tuple[Path, ...]
    previous: tuple[Path, ...]
    challenges: tuple[Path, ...]


def _options(max_epsilon: str | None, allow_unsafe_setup: bool) -> VerifierOptions:
    return VerifierOptions(max_epsilon=max_epsilon, allow_unsafe_setup=allow_unsafe_setup)


@click.command("bundle")
@click.argument("window", type=PATH)
@gathered(
    "inputs",
    _Inputs,
    path_option("--trust", required=True, help="this verifier's trust file"),
    path_option("--receipts", multiple=True, help="countersigned receipts: files or folders"),
    previous_option,
    path_option(
        "--challenge", "challenges", multiple=True, help="a challenge that this verifier drew itself"
    ),
)
@gathered(
    "options",
    _options,
    click.option("--max-epsilon", help="a lower limit than the limit in trust.toml"),
    flag_option("--allow-unsafe-setup", help="accept keys that one party made; the verdict names them"),
)
@default_option("--jobs", type=PROCESSES, default=1, help="processes that verify proofs")
@path_option("--sign", help="the verifier's key (`rag-audit verifier keygen`), which signs the report")
@path_option("--output", required=True, help="the archive to write, bundle.zip for example")
@json_option
@click.pass_context
def bundle(
    ctx: click.Context,
    window: Path,
    inputs: _Inputs,
    options: VerifierOptions,
    jobs: int,
    sign: Path | None,
    output: Path,
    as_json: bool,
) -> None:
    """Verify WINDOW, and pack the files of the verification and its report into one archive.

    `rag-audit verify` repeats the verification from the archive alone. The command writes the archive for every
    verdict, and the exit code is the verdict's code. The archive contains every receipt, and the receipts may contain
    questions and texts.
    """
    from rag_audit.report.bundled import Files, make_bundle

    earlier = earlier_windows(inputs.previous, window)
    inputs = replace(inputs, previous=earlier.windows)
    for note in earlier.notes:
        say(note)
    own = [] if sign is None else [sign]
    distinct([output], [window, inputs.trust, *inputs.receipts, *inputs.previous, *inputs.challenges, *own])
    key = None if sign is None else signing_key(sign)
    require_window(window)
    files = Files(window, inputs.trust, inputs.receipts, inputs.previous, inputs.challenges)
    with (
        patiently("verifying") as quiet,
        Proofs(jobs, None, no_cache=False).checking(after(quiet, estimated("verifying proofs"))) as checking,
    ):
        report = make_bundle(files, output, options=options, key=key, checking=checking)
    digest = digest_of(output)
    emit(
        {"bundle": str(output), "sha256": digest, "verdict": report.line, "notes": earlier.notes},
        as_json,
        [
            report.line,
            f"bundle: {output}  {digest}",
            f"next: rag-audit verify {output} repeats the verification",
        ],
    )
    ctx.exit(report.exit_code)
