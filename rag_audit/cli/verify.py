"""`rag-audit verify` and `challenge`: the verifier's side."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import click

from rag_audit._internal.canonical import digest_hex
from rag_audit._internal.durable import replace_file
from rag_audit._internal.regular import open_regular
from rag_audit.cli.common import (
    PATH,
    after,
    emit,
    estimated,
    json_option,
    named,
    patiently,
    say,
    signing_key,
    tell,
)
from rag_audit.cli.options import (
    PROCESSES,
    choice_option,
    default_option,
    flag_option,
    gathered,
    path_option,
    previous_option,
)
from rag_audit.cli.reports import FORMATS, Output, command_line
from rag_audit.log.note import sign_note
from rag_audit.models.trust import Trust
from rag_audit.models.windowfile import WindowFile
from rag_audit.proofs.checking import Checking, one_by_one
from rag_audit.proofs.description import described
from rag_audit.report.languages import LANGUAGES
from rag_audit.verify.inputs import VerifierOptions

EXAMPLE = Path(__file__).parent / "example"
"""The folder of the finished window that the package contains (docs/examples/packaged.py)."""
LARGE = 1000
"""The command stores the results of proofs if more records than this have proofs."""


@dataclass(frozen=True)
class _Files:
    """A verifier's own files.

    :param challenges: notes that the verifier drew itself
    """

    trust: Path | None
    receipts: tuple[Path, ...]
    previous: tuple[Path, ...]
    challenges: tuple[Path, ...]

    def options(self) -> list[tuple[str, Path]]:
        """The files with the options that name them."""
        return [
            *(("--trust", path) for path in (self.trust,) if path is not None),
            *(("--receipts", path) for path in self.receipts),
            *(("--previous", path) for path in self.previous),
            *(("--challenge", path) for path in self.challenges),
        ]


@dataclass(frozen=True)
class Proofs:
    """How the proofs are verified.

    :param jobs: processes of this machine
    :param address: a cluster
    :param no_cache: verify the proofs of a large window that an earlier run found valid too
    """

    jobs: int
    address: str | None
    no_cache: bool

    @contextmanager
    def checking(self, progress: Callable[[int, int], None]) -> Iterator[Callable[[WindowFile], Checking]]:
        """A function that makes the `Checking` of a window."""
        with ExitStack() as stack:
            run = one_by_one
            if self.jobs > 1 or self.address is not None:
                from rag_audit.proofs.executors import open_executor, run_jobs

                executor = stack.enter_context(open_executor(self.address, workers=self.jobs))
                run = partial(run_jobs, executor=executor)

            def checking(file: WindowFile) -> Checking:
                remembered = None
                large = len(file.proofs) > LARGE and sys.platform != "emscripten"  # not in a browser
                if large and not self.no_cache:
                    from rag_audit.proofs.remembered import VerifiedProofs

                    remembered = VerifiedProofs(
                        digest_hex(file.entries[0]), elsewhere=self.address is not None
                    )
                    if remembered.damaged:
                        say(f"WARNING: the cache has {remembered.damaged} damaged lines, which were ignored")
                return Checking(run=run, remembered=remembered, progress=progress)

            yield checking


@click.command()
@click.argument("window", type=PATH, required=False)
@gathered(
    "files",
    _Files,
    path_option(
        "--trust",
        help="this verifier's trust file (`rag-audit verifier trust new`); --example has its own",
    ),
    path_option("--receipts", multiple=True, help="countersigned receipts: files or folders"),
    previous_option,
    path_option(
        "--challenge",
        "challenges",
        multiple=True,
        help="the challenge that this verifier drew itself; the provider may have chosen the challenge in WINDOW",
    ),
)
@gathered(
    "options",
    VerifierOptions,
    choice_option(
        "--engine",
        choices=["native", "py_ecc", "snarkjs", "reference"],
        default="native",
        help=f"the verifier of proofs; {', '.join(words.second for words in described().values())}",
    ),
    click.option("--max-epsilon", help="a lower limit than the limit in trust.toml"),
    flag_option("--allow-unsafe-setup", help="accept keys that one party made; the verdict names them"),
)
@path_option(
    "--model", help="the folder of an ONNX embedder's files, to re-execute the embedder on disclosed queries"
)
@path_option(
    "--attacks",
    help="the provider's attacks.json (`rag-audit lab attack run`); the report shows it, and the verdict ignores it",
)
@gathered(
    "proofs",
    Proofs,
    default_option(
        "--jobs",
        type=PROCESSES,
        default=1,
        help="processes that verify proofs; the native verifier uses every core without this option",
    ),
    click.option(
        "--executor",
        "address",
        help="verify proofs on a cluster that you trust: dask://host:port or ray://host:port,"
        " with RAG_AUDIT_WORKER_KEY set",
    ),
    flag_option(
        "--no-cache",
        help="verify every proof of a large window, also the proofs that an earlier run verified",
    ),
)
@click.option(
    "--signer",
    help="of a bundle: the public key, as text or file, that must have signed the packed report; get it from the"
    " verifier who signed, and not with the bundle",
)
@flag_option("--example", help="verify the example window of this package, without WINDOW and --trust")
@click.option(
    "--offline",
    is_flag=True,
    default=True,
    expose_value=False,
    help="no network (the default, and the only mode)",
)
@gathered(
    "output",
    Output,
    flag_option("--brief", help="print the verdict in four lines"),
    flag_option("--details", help="print every check and every figure"),
    click.option(
        "--format",
        "formats",
        type=click.Choice(FORMATS),
        multiple=True,
        help="format of the report (text by default); repeat it for several, each with its --output in the same order",
    ),
    path_option(
        "--output",
        "outputs",
        multiple=True,
        help="the file for the report of the --format with the same number, or - for standard output",
    ),
    default_option(
        "--language",
        type=click.Choice(LANGUAGES),
        default=LANGUAGES[0],
        help="the language of the HTML report",
    ),
    path_option(
        "--sign",
        help="the verifier's key (`rag-audit verifier keygen`), which signs text, JSON, HTML, vsa and svr",
    ),
    json_option,
)
@click.pass_context
def verify(
    ctx: click.Context,
    window: Path | None,
    files: _Files,
    options: VerifierOptions,
    model: Path | None,
    attacks: Path | None,
    proofs: Proofs,
    signer: str | None,
    example: bool,
    output: Output,
) -> None:
    """Verify WINDOW (window.json or its folder): PASS with eps_audit, or FAIL with the reason.

    WINDOW may also be a bundle (`rag-audit verifier bundle`). The command then repeats the sender's verification with
    the packed files and options, and compares the result with the packed report. With --trust, the reader's own trust
    file and options decide in place of the sender's.

    The command prints at most twelve lines with the verdict in the first and the last one. --details prints every
    check and every figure, and --format text the report without the checks that passed.

    The command prints the verdict before it writes reports. If it cannot write a report, it prints a warning on
    standard error, and the exit code is still the verdict's code. A run without a verdict also writes its reports.

    `--example` prints the verdict on a packaged window in four lines; `--details`, `--format` and `--json` print the
    report of this window.
    """
    from rag_audit.report.verification import verify_window
    from rag_audit.verify.inputs import Inputs

    if example:
        if window or files.options():
            raise click.UsageError(
                "--example verifies the packaged window with its own trust file and receipts: omit WINDOW,"
                " --trust, --receipts, --previous and --challenge"
            )
        window, files = (
            EXAMPLE / "window.json",
            _Files(EXAMPLE / "trust.toml", (EXAMPLE / "receipts",), (), ()),
        )
    unread: list[str] = []
    if files.previous:
        from rag_audit.cli.earlier import earlier_windows

        earlier = earlier_windows(files.previous, window)
        files, unread = replace(files, previous=earlier.windows), earlier.notes
    bundle = window if window is not None and is_bundle(window) else None
    if bundle is not None:
        _check_bundle(files, options, (model, attacks))
    elif signer is not None:
        raise click.UsageError("--signer checks the report of a bundle, and WINDOW is no bundle")
    trust = files.trust
    if window is None or (trust is None and bundle is None):
        absent, hint, remedy = (
            ("window", "'WINDOW'", "Name window.json or the public folder of a window, or give --example.")
            if window is None
            else ("trust", "'--trust'", "A verdict needs the verifier's own trust file: write one with `rag-audit"
                  " verifier trust new`, or name the trust.toml of a pilot (`rag-audit init`).")
        )  # fmt: skip
        option = next(p for p in ctx.command.params if p.name == absent)
        raise click.MissingParameter(remedy, ctx=ctx, param=option, param_hint=hint)
    given = [window, *(path for _, path in files.options()), *([] if attacks is None else [attacks])]
    plan = output.planned(given, {"window": window} | ({} if trust is None else {"trust": trust}))
    command = command_line(ctx, window, files.options())
    inputs = Inputs()
    plan.begin(command)
    remarks: Sequence[str] = ()
    try:
        with (
            patiently("verifying") as quiet,
            proofs.checking(after(quiet, estimated("verifying proofs"))) as checking,
        ):
            if trust is None or bundle is not None:
                from rag_audit.cli.packed import Reader, verify_packed

                verdict = verify_packed(
                    window, Reader(trust, files.challenges, options, signer), inputs, checking
                )
                remarks = verdict.notes[:2]
            else:
                verdict = verify_window(
                    window,
                    trust=trust,
                    receipts=files.receipts,
                    previous=files.previous,
                    challenges=files.challenges,
                    options=options,
                    model=model,
                    attacks=attacks,
                    inputs=inputs,
                    checking=checking,
                )
    except BrokenPipeError:
        raise
    except Exception as exc:
        if (error := named(exc)) is None:
            plan.fail(exc, inputs, command)
            raise
        plan.refuse(error, inputs, command)
        tell(error)
        ctx.exit(int(error.exit_code))
    verdict = replace(verdict, notes=[*verdict.notes, *unread])
    for note in unread:
        say(note)
    if example and verdict.passed and output.prints_default:
        plan = replace(plan, printed="brief")
    plan.write(verdict, checks=output.details, command=command)
    for remark in remarks:
        say(remark)
    if output.as_json and verdict.measured is not None:
        for above in verdict.measured.above_certified:
            say(
                f"WARNING: a lower bound is above the certified epsilon, so one of the two figures is wrong: {above}"
            )
    ctx.exit(int(verdict.exit_code))


def is_bundle(path: Path) -> bool:
    """Whether a path names a bundle instead of a window file. Only the ending decides: under the name window.json, an
    archive must not bring its own trust file.

    :raises click.UsageError: the file is an archive under another ending
    """
    if os.path.isdir(path):
        return False
    if path.suffix.lower() == ".zip":
        return True
    with suppress(OSError), open_regular(path) as handle:
        if handle.read(4) == b"PK\x03\x04":
            raise click.UsageError(
                f"{path} is an archive and no window file: if you expect a bundle, rename it to end with .zip"
            )
    return False


def _check_bundle(files: _Files, options: VerifierOptions, others: Sequence[Path | None]) -> None:
    """Refuse options that contradict a bundle.

    :param others: the values of --model and --attacks
    :raises click.UsageError: an option names a file besides a bundle, or changes the sender's requirements
    """
    if files.receipts or files.previous or any(path is not None for path in others):
        raise click.UsageError(
            "a bundle has its own receipts and windows: omit --receipts, --previous, --model and --attacks, or unpack"
            " the archive and verify the files in it"
        )
    if files.trust is None and (
        files.challenges or options.max_epsilon is not None or options.allow_unsafe_setup
    ):
        raise click.UsageError(
            "--challenge, --max-epsilon and --allow-unsafe-setup belong to the reader's requirements, and a bundle has"
            " the sender's: give --trust too"
        )


@click.command()
@click.argument("window", type=PATH)
@path_option("--key", required=True, help="the verifier's signing key")
@path_option("--trust", required=True, help="mode, beta and eta come from here")
@path_option("--out", required=True, help="where the signed note goes")
@json_option
def challenge(window: Path, key: Path, trust: Path, out: Path, as_json: bool) -> None:
    """Draw the records to prove from the final checkpoint of WINDOW, and sign the draw."""
    from rag_audit.verify.drawing import draw_challenge, number_drawn

    trusted = Trust.load(trust)
    file = WindowFile.load(window)
    signer = signing_key(key)
    drawn = draw_challenge(file, trusted, signer)
    replace_file(out, str(sign_note(drawn.text(), signer)).encode())
    emit({"challenge": str(out), "records": number_drawn(drawn, file)}, as_json)
