"""`rag-audit provider serve`, `close`, `prove` and `delete_secrets`: the provider's open window."""

from __future__ import annotations

import socket
import sys
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path

import click

from rag_audit._internal.canonical import read_text
from rag_audit._internal.clock import now_ms
from rag_audit.attest.release import MAX_PERIOD_S, MIN_PERIOD_S
from rag_audit.attest.window import Window
from rag_audit.cli.common import (
    PATH,
    SOCKET,
    after,
    emit,
    internal_error,
    json_option,
    patiently,
    progress,
    say,
)
from rag_audit.cli.config import configured, given
from rag_audit.cli.options import PROCESSES, Real, default_option, flag_option, gathered, path_option
from rag_audit.cli.settings import resume, settings_of
from rag_audit.commit.stored import delete_secrets
from rag_audit.log.note import MAX_NOTE_BYTES
from rag_audit.models.chain import Unanswered, outcome_of
from rag_audit.models.layout import Layout
from rag_audit.proofs.description import described
from rag_audit.proofs.executors import open_executor
from rag_audit.proofs.proving import MAX_BATCH
from rag_audit.retrieval.noise_pool import READY_BYTES, READY_SLOTS
from rag_audit.service.enrolment_book import EnrolmentBook, Intake
from rag_audit.service.lines import answer_lines, listening
from rag_audit.service.process import precomputing, stopped_by_signal
from rag_audit.service.running.witnesses import admit_notes

executor_option = click.option(
    "--executor",
    "address",
    help="a cluster: dask://host:port or ray://host:port, with RAG_AUDIT_WORKER_KEY set",
)
workers_option = default_option("--workers", type=PROCESSES, default=1, help="prover processes here")

low_memory_option = flag_option(
    "--low-memory", help="make scan proofs in less memory and more time; the proofs are the same"
)


@dataclass(frozen=True)
class Listening:
    """The options about the place of requests, one of which is given."""

    address: Path | None
    http: str | None
    stdio: bool

    def chosen(self, named: Sequence[str]) -> Listening:
        """The one place.

        :param named: the options of the command line, which replace those of provider.toml
        :raises click.UsageError: no place is given, or several
        """
        values = asdict(self)
        chosen = {name: values[name] for name in named or values if values[name]}
        if len(chosen) != 1:
            raise click.UsageError("give one of --socket, --http and --stdio")
        return Listening(**{"address": None, "http": None, "stdio": False, **chosen})


@dataclass(frozen=True)
class Enrolling:
    """The options about enrolment requests: their book, and the windows beside the open one that they may be for."""

    enrolments: Path | None
    coming: tuple[str, ...]


@dataclass(frozen=True)
class Memory:
    """The options about memory: scan proofs in less of it, and the MiB of precomputed noise."""

    low_memory: bool
    noise_mib: int


@click.command()
@click.argument("directory", type=PATH)
@configured("serve")
@gathered(
    "listening_at",
    Listening,
    click.option("--socket", "address", type=SOCKET, help="listen on this Unix socket until interrupted"),
    click.option(
        "--http", metavar="HOST:PORT", help="answer over HTTP until interrupted (port 0: any free port)"
    ),
    flag_option("--stdio", help="answer requests from stdin, one JSON line each"),
)
@default_option(
    "--eager",
    default=0,
    help="prove this number of answers before they leave, also if the policy does not require it",
)
@default_option(
    "--precompute",
    type=click.IntRange(min=0),
    default=0,
    help="precompute the noise proofs of this number of next slots of every account, between the queries",
)
@click.option(
    "--release-every",
    "period",
    type=Real(MIN_PERIOD_S, MAX_PERIOD_S),
    help="an answer with an early proof leaves at a multiple of this time in seconds after its request; the default "
    "depends on the tenant's size",
)
@gathered(
    "memory",
    Memory,
    low_memory_option,
    default_option(
        "--noise-memory",
        "noise_mib",
        type=click.IntRange(1, 1 << 20),
        default=READY_BYTES >> 20,
        help=f"maximum MiB of precomputed noise, with 4 bytes a position for each slot; at most {READY_SLOTS} slots",
    ),
)
@gathered(
    "enrolling",
    Enrolling,
    path_option("--enrolments", help="with --http: store accounts' requests for a roster line in this book"),
    click.option(
        "--for-window",
        "coming",
        multiple=True,
        help="with --enrolments: also accept requests for this window; repeat",
    ),
)
@click.pass_context
def serve(
    ctx: click.Context,
    /,
    directory: Path,
    listening_at: Listening,
    eager: int,
    precompute: int,
    period: float | None,
    memory: Memory,
    enrolling: Enrolling,
) -> None:
    """Answer signed requests, one JSON line for each, or over HTTP (docs/http.md)."""
    left = iter(range(eager))
    place = listening_at.chosen(given(ctx, "address", "http", "stdio"))
    book_file, coming = enrolling.enrolments, enrolling.coming
    if place.http is None and not given(ctx, "enrolments"):
        book_file = None  # provider.toml's book is for requests over HTTP
    if (book_file is not None and place.http is None) or (coming and book_file is None):
        raise click.UsageError("--for-window needs --enrolments, which needs --http")
    http_listener = None if place.http is None else http_socket(place.http)
    try:
        with (
            stopped_by_signal(),
            resume(directory, low_memory=memory.low_memory, noise_mib=memory.noise_mib) as window,
            precomputing(window, precompute, say),
        ):
            window.release.period_s = period
            if http_listener is not None:
                with nullcontext() if book_file is None else EnrolmentBook(book_file) as book:
                    serve_http(window, http_listener, left, book, coming)
            elif place.address is None:
                answer_lines(window, sys.stdin.buffer, sys.stdout.buffer, left)
            else:
                with listening(
                    window, place.address, say, _report_fault, eager=left, field="--socket"
                ) as thread:
                    thread.join()
    except KeyboardInterrupt:
        say("stopped")


def http_socket(text: str) -> socket.socket:
    """Open the socket of an option's address before any long work. The service needs the packages of an extra."""
    from rag_audit.service.server import listen, parse_address

    return listen(*parse_address(text, field="--http"))


def serve_http(
    window: Window,
    listener: socket.socket,
    eager: Iterator[int],
    book: EnrolmentBook | None = None,
    coming: Sequence[str] = (),
) -> None:
    """Answer over HTTP until interrupted.

    :param book: takes enrolment requests, for the window and the coming windows
    """
    from rag_audit._internal.log_lines import log_lines, remove_handler
    from rag_audit.service.connections import allow_connections
    from rag_audit.service.limits import Limits
    from rag_audit.service.server import http_service

    allow_connections(Limits())
    header = window.header
    intake = None if book is None else Intake(
        book, window.context.key, header.origin, windows=lambda: [header.window, *coming],
        open_=lambda: header.window if window.status == "active" else None, clock=now_ms,
        roster=window.state.accounts.get,
    )  # fmt: skip
    with http_service(window, listener, eager=eager, on_fault=_report_fault, intake=intake) as service:
        say(f"listening on {service.url}")
        handler = log_lines()
        try:
            service.run()
        finally:
            remove_handler(handler)


def _report_fault(exc: BaseException) -> None:
    for line in internal_error(exc, ["serve"]):
        say(line)


@click.command()
@click.argument("directory", type=PATH)
@configured("certify", "executor")
@flag_option("--abandon", help="close a window that never became usable, so that the chain can continue")
@click.option(
    "--no-coalition-proof",
    "certify",
    flag_value=False,
    default=True,
    help="close without the coalition proof that the policy requires; verifiers then leave the coalition undecided",
)
@executor_option
@workers_option
@json_option
def close(
    directory: Path, abandon: bool, certify: bool, address: str | None, workers: int, as_json: bool
) -> None:
    """Close a window; a second run adds the witnesses' cosignatures on the final checkpoint.

    The command estimates coalitions from the window's queries, and makes the coalition proof if the policy requires it.
    After an interruption the same command continues. The command prints the outcome of the window, and the counts of
    abandoned and empty windows for the next window header.
    """
    show = progress("coalition_proof")
    with resume(directory) as window, open_executor(address, workers=workers) as executor:
        with patiently("estimating coalitions") as quiet:
            window.close(abandoned=abandon, certify=certify, executor=executor, progress=after(quiet, show))
        admit_notes(window, say)
        path = window.export()
        counts = Unanswered.before(window.header).after(outcome := outcome_of(window.state.entries))
        emit({"status": window.status, "records": len(window.records), "window": str(path),
              "outcome": outcome.value, **asdict(counts)}, as_json)  # fmt: skip


@click.command()
@click.argument("directory", type=PATH)
@configured("executor", "low memory")
@path_option("--challenge", "note", help="a verifier's challenge note; all records by default")
@executor_option
@workers_option
@click.option(
    "--precompute",
    type=click.IntRange(min=1),
    is_flag=False,
    flag_value=1,
    metavar="[COUNT]",
    help="while the window is open: precompute noise proofs of each account's next slots; COUNT is 1 by default",
)
@click.option(
    "--batch",
    type=click.IntRange(1, MAX_BATCH),
    help="maximum records of a tenant in one proof, by default as many as the free memory allows; 1 makes one proof for"
    f" each record ({', '.join(words.batches for words in described().values() if words.batches)})",
)
@low_memory_option
@json_option
def prove(
    directory: Path,
    note: Path | None,
    address: str | None,
    workers: int,
    precompute: int | None,
    batch: int | None,
    low_memory: bool,
    as_json: bool,
) -> None:
    """Make the missing proofs and add them to window.json. After an interruption the same command continues.

    Processes on this machine make the proofs, or a cluster that receives encrypted jobs (`provider worker-key`).
    With --precompute the command only precomputes the noise proofs. They are the part of a proof that does not depend
    on the query (scan tenants).
    """
    if precompute is not None and note is not None:
        raise click.UsageError("--precompute excludes --challenge")
    if precompute is not None and batch is not None:
        raise click.UsageError("--precompute excludes --batch")
    show, count = progress("proofs" if precompute is None else "noise proofs"), 0

    def counted(done: int, total: int) -> None:
        nonlocal count
        count = done
        show(done, total)

    with resume(directory, low_memory=low_memory) as window:
        admit_notes(window, say)
        with open_executor(address, workers=workers) as executor:
            if precompute is not None:
                paths = window.precompute_noise_proofs(precompute, executor=executor, progress=counted)
                emit({"created": paths, "noise_proofs": count}, as_json)
                return
            if note is None:
                paths = window.prove(batch=batch, executor=executor, progress=counted)
            else:
                text = read_text(note, max_bytes=MAX_NOTE_BYTES)
                paths = window.answer_challenge(text, batch=batch, executor=executor, progress=counted)
        emit({"created": paths, "proofs": count, "window": str(Layout(directory).public.window)}, as_json)


@click.command("delete-secrets")
@click.argument("directory", type=PATH)
@click.confirmation_option(prompt="permanently delete the seed and the stored queries of this window?")
def delete_secrets_(directory: Path) -> None:
    """Delete a window's seed and stored queries before the policy's date; then no proof can be made."""
    settings_of(directory)
    delete_secrets(directory)
    say(f"deleted the secrets of {directory}")
