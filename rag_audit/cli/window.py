"""`rag-audit open`, `serve`, `close` and `prove`: the provider's side."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from rag_audit.attest.release import LEAST_PERIOD_S, MAX_PERIOD_S
from rag_audit.beacon.drand import QUICKNET
from rag_audit.beacon.values import members_of
from rag_audit.cli.common import (
    PATH,
    SOCKET,
    emit,
    internal_error,
    json_option,
    progress,
    say,
    signing_key,
    stages,
)
from rag_audit.cli.options import duration, model_option
from rag_audit.cli.settings import resume, settings_of, store_settings
from rag_audit.cli.witness import load_nonce_lines
from rag_audit.commit.stored import EMBED_RUN, forget, unfinished
from rag_audit.encoding.canonical import read_json, read_text
from rag_audit.errors import PolicyError
from rag_audit.formats.chain import ClosedWindow
from rag_audit.formats.layout import Layout
from rag_audit.formats.policy import Policy
from rag_audit.formats.publication import MAX_PUBLICATION_BYTES
from rag_audit.formats.records import DrandBeacon, PreviousWindow, RosterEntry, WitnessBeacon
from rag_audit.formats.windowfile import WindowFile
from rag_audit.index.embedders import DEFAULT_EMBEDDER, EMBEDDERS, Embedder, get_embedder
from rag_audit.index.texts import load_directory
from rag_audit.ledger.note import MAX_NOTE_BYTES
from rag_audit.parties.account import load_roster
from rag_audit.parties.provider.service import (
    admit_notes,
    answer_lines,
    certifying,
    serve_socket,
    stopped_by_signal,
)
from rag_audit.parties.provider.window import Window
from rag_audit.proofs.executors import open_executor
from rag_audit.proofs.groth16.instance import MAX_QUERIES

executor_option = click.option(
    "--executor",
    "address",
    help="a cluster: dask://host:port or ray://host:port, with RAG_AUDIT_WORKER_KEY set",
)
workers_option = click.option(
    "--workers", type=click.IntRange(min=1), default=1, show_default=True, help="prover processes here"
)

low_memory_option = click.option(
    "--low-memory",
    is_flag=True,
    help="make scan proofs in less memory and more time; the proofs are the same",
)


@click.command("open")
@click.argument("directory", type=PATH)
@click.option("--policy", "policy_file", type=PATH, help="the window's policy (`rag-audit policy new`)")
@click.option("--roster", type=PATH, help="accounts (`rag-audit account add`)")
@click.option(
    "--docs", type=PATH, help="folder with a <tenant>.jsonl or a folder of text files for each tenant"
)
@click.option("--key", type=PATH, help="the provider's signing key (`rag-audit keygen`)")
@click.option("--origin", help="the ledger's name; the key's name by default")
@click.option(
    "--embedder",
    "name",
    type=click.Choice(EMBEDDERS),
    default=DEFAULT_EMBEDDER,
    show_default=True,
    help="what embeds documents and queries, as `policy new --embedder` was told",
)
@model_option
@click.option(
    "--witness", "witnesses", type=PATH, multiple=True, help="a witness's nonce line; repeat for each"
)
@click.option(
    "--drand",
    type=click.IntRange(min=1),
    help="beacon: this round of drand's quicknet, not the witnesses' nonces",
)
@click.option("--drand-signature", help="the round's signature in hexadecimal, once it is out")
@click.option("--previous", type=PATH, help="the public folder of the window before this one")
@click.option(
    "--opens-in",
    callback=duration,
    help="date the window once everything is committed: it opens so long after (30s, 15m), and lasts as long as the "
    "policy says",
)
@json_option
def open_(
    directory: Path,
    policy_file: Path | None,
    roster: Path | None,
    docs: Path | None,
    key: Path | None,
    origin: str | None,
    name: str,
    model: Path | None,
    witnesses: tuple[Path, ...],
    drand: int | None,
    drand_signature: str | None,
    previous: Path | None,
    opens_in: int | None,
    as_json: bool,
) -> None:
    """Open a window in DIRECTORY; run again to take the witnesses' notes from its public/notes folder.

    Large indices take minutes. After an interruption the same command resumes where it stopped; nothing is published
    before everything is committed.
    """
    if unfinished(directory):
        if policy_file is None or roster is None or docs is None or key is None or not witnesses:
            raise click.UsageError("a new window needs --policy, --roster, --docs, --key and --witness")
        signer = signing_key(key)
        policy = Policy.parse(read_json(policy_file, max_bytes=MAX_PUBLICATION_BYTES), field=policy_file.name)
        nonces = WitnessBeacon.parse(
            {"source": "witnesses", "witnesses": load_nonce_lines(witnesses)}, field="--witness"
        )
        beacon = (
            nonces if drand is None else DrandBeacon(source="drand", chain=QUICKNET.hash.hex(), round=drand)
        )
        documents = {tenant: [d.text for d in texts] for tenant, texts in load_directory(docs).items()}
        limits = {"query_tokens": policy.tokens.query, "document_tokens": policy.tokens.document}
        embedder = get_embedder(name, folder=model, **limits)
        _warn_of_cuts(embedder, documents)
        window = Window.open(
            store_settings(directory, key, model),
            key=signer,
            origin=origin or signer.name,
            policy=policy,
            roster=load_roster(roster),
            documents=documents,
            beacon=beacon,
            witnesses=[m.vkey for m in members_of(nonces)],
            previous=None if previous is None else previous_window(previous, policy),
            embedder=embedder,
            opens_in=opens_in,
            progress=stages(),
        )
    else:
        window = resume(directory)
    with window:
        admit_notes(window, say)
        if drand_signature is not None:
            window.admit_drand([drand_signature])
        result = {
            "status": window.status,
            "opening": window.opening_digest,
            "opens_at": window.opening.opens_at,
            "public": str(Layout(directory).public.folder),
        }
    emit(result, as_json)


def _warn_of_cuts(embedder: Embedder, documents: Mapping[str, Sequence[str]]) -> None:
    """Print how many documents are longer than the part of them that is embedded."""
    limit = embedder.limits.document
    for tenant, texts in documents.items():
        cut = sum(
            embedder.cut_documents(texts[first : first + EMBED_RUN])
            for first in range(0, len(texts), EMBED_RUN)
        )
        if cut:
            say(
                f"{cut} of {len(texts)} documents of {tenant} are longer than {limit} tokens: they are found by their"
                f" first {limit} only, and handed back whole"
            )


def previous_window(public: Path, policy: Policy) -> PreviousWindow:
    """The reference to a closed window as the predecessor of a new one.

    :raises PolicyError: the policy gives the new window the predecessor's id, which witnesses refuse
    """
    before = ClosedWindow.of(WindowFile.load(public), field="--previous")
    if before.opening.window == policy.window:
        raise PolicyError("a window's id must be new", field="policy.window", found=policy.window)
    return before.as_previous()


@click.command()
@click.argument("directory", type=PATH)
@click.argument("line", type=PATH)
@click.option(
    "--witness", "witnesses", type=PATH, multiple=True, required=True, help="a witness's nonce line; repeat"
)
@json_option
def enrol(directory: Path, line: Path, witnesses: tuple[Path, ...], as_json: bool) -> None:
    """Add the account of a roster LINE to an open window; its queries wait for the beacon that the witnesses draw.

    The witnesses cosign and reveal as for an opening (`witness cosign`, `witness beacon`); then run `open` again.
    """
    account = RosterEntry.parse(read_json(line, max_bytes=65_536), field=line.name)
    nonces = {"source": "witnesses", "witnesses": load_nonce_lines(witnesses)}
    with resume(directory) as window:
        entry = window.enrol(account, WitnessBeacon.parse(nonces, field="--witness"))
    emit({"account": entry.account, "seq": entry.seq}, as_json)


@click.command()
@click.argument("directory", type=PATH)
@click.option("--socket", "address", type=SOCKET, help="listen on this Unix socket until interrupted")
@click.option("--stdio", is_flag=True, help="answer requests from stdin, one JSON line each")
@click.option(
    "--eager",
    default=0,
    show_default=True,
    help="prove this many answers before they leave, whatever the policy",
)
@click.option(
    "--ahead",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="make the noise certificates of this many next slots of every account in advance, between the queries",
)
@click.option(
    "--release-every",
    "period",
    type=click.FloatRange(LEAST_PERIOD_S, MAX_PERIOD_S),
    help="answers that are proved first leave at multiples of so many seconds after their request; by default by the "
    "tenant's size",
)
@low_memory_option
def serve(
    directory: Path,
    address: Path | None,
    stdio: bool,
    eager: int,
    ahead: int,
    period: float | None,
    low_memory: bool,
) -> None:
    """Answer signed requests, one JSON line for each."""
    left = iter(range(eager))
    if (address is None) == (not stdio):
        raise click.UsageError("give one of --socket and --stdio")
    try:
        with (
            stopped_by_signal(),
            resume(directory, low_memory=low_memory) as window,
            certifying(window, ahead, say),
        ):
            window.release.period_s = period
            if address is None:
                answer_lines(window, sys.stdin.buffer, sys.stdout.buffer, left)
            else:
                serve_socket(window, address, left, say, _report_fault)
    except KeyboardInterrupt:
        say("stopped")


def _report_fault(exc: BaseException) -> None:
    for line in internal_error(exc, ["serve"]):
        say(line)


@click.command()
@click.argument("directory", type=PATH)
@click.option(
    "--abandon", is_flag=True, help="close a window that never became usable, so that the chain can go on"
)
@click.option(
    "--no-certificate",
    "certify",
    flag_value=False,
    default=True,
    help="close without the coalition proof that the policy asks for, and verifiers then do not decide",
)
@executor_option
@workers_option
@json_option
def close(
    directory: Path, abandon: bool, certify: bool, address: str | None, workers: int, as_json: bool
) -> None:
    """Close a window; run again to take the witnesses' cosignatures of the final checkpoint.

    The estimator runs over the window's queries, and the coalition proof is made if the policy asks for one. After an
    interruption the same command resumes.
    """
    with resume(directory) as window, open_executor(address, workers=workers) as executor:
        window.close(abandoned=abandon, certify=certify, executor=executor, progress=progress("certificate"))
        admit_notes(window, say)
        path = window.export()
        emit({"status": window.status, "records": len(window.records), "window": str(path)}, as_json)


@click.command()
@click.argument("directory", type=PATH)
@click.option("--challenge", "note", type=PATH, help="a verifier's challenge note; all records without it")
@executor_option
@workers_option
@click.option(
    "--ahead",
    type=click.IntRange(min=1),
    is_flag=False,
    flag_value=1,
    metavar="[COUNT]",
    help="while the window is open: make noise certificates of each account's next slots, one if no count is given",
)
@click.option(
    "--together",
    type=click.IntRange(2, MAX_QUERIES),
    help="prove up to so many records of a groth16 tenant at once (`setup new --together` makes the key)",
)
@low_memory_option
@json_option
def prove(
    directory: Path,
    note: Path | None,
    address: str | None,
    workers: int,
    ahead: int | None,
    together: int | None,
    low_memory: bool,
    as_json: bool,
) -> None:
    """Make the missing proofs and add them to window.json. The command can be interrupted and run again.

    Proofs are made by processes here, or by a cluster, which sees sealed jobs only (`worker-key`). With --ahead only
    the noise certificates are made, the part of a proof that does not depend on the query (scan tenants).
    """
    if ahead is not None and note is not None:
        raise click.UsageError("give one of --ahead and --challenge")
    if ahead is not None and together is not None:
        raise click.UsageError("give one of --ahead and --together")
    show, count = progress("proofs" if ahead is None else "certificates"), 0

    def counted(done: int, total: int) -> None:
        nonlocal count
        count = done
        show(done, total)

    with resume(directory, low_memory=low_memory) as window:
        admit_notes(window, say)
        with open_executor(address, workers=workers) as executor:
            if ahead is not None:
                made = window.certify_ahead(ahead, executor=executor, progress=counted)
                emit({"made": made, "certificates": count}, as_json)
                return
            if note is None:
                made = window.prove(together=together, executor=executor, progress=counted)
            else:
                text = read_text(note, max_bytes=MAX_NOTE_BYTES)
                made = window.answer_challenge(text, together=together, executor=executor, progress=counted)
        emit({"made": made, "proofs": count, "window": str(Layout(directory).public.window)}, as_json)


@click.command("forget")
@click.argument("directory", type=PATH)
@click.confirmation_option(prompt="delete seed and retained queries of this window for good?")
def forget_(directory: Path) -> None:
    """Delete a window's seed and retained queries now, before the policy's date: nothing can be proved after it."""
    settings_of(directory)
    forget(directory)
    say(f"deleted the secrets of {directory}")
