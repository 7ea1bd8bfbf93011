"""`rag-audit account`, `query` and `receipt`: the account's side."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from errno import ECONNABORTED
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rag_audit._internal.canonical import Json, digest_hex, jcs, parse_json, read_bytes, read_json
from rag_audit._internal.durable import replace_file
from rag_audit._internal.errors import NotSent, RagAuditError, RequestRefused, SetupError
from rag_audit._internal.printable import printable, printable_text
from rag_audit.account.account import Account, check_receipt, embedder_of
from rag_audit.account.packing import pack_receipts
from rag_audit.account.prepared import Questions
from rag_audit.account.relevance import BANDS, relevant
from rag_audit.cli.common import PATH, SOCKET, Group, client_of, emit, json_option, say, verifier_key
from rag_audit.cli.enrolling import approve, names, request, status
from rag_audit.cli.options import flag_option, gathered, model_option, path_option
from rag_audit.models.publication import Publication
from rag_audit.models.records import CountersignedReceipt, RosterEntry
from rag_audit.models.requests import MAX_ANSWER_BYTES, AnsweredDocument, SignedRequest
from rag_audit.models.roster import MAX_ROSTER_BYTES, add_to_roster, parse_lines
from rag_audit.models.windowfile import WindowFile
from rag_audit.retrieval.embedders import Embedder, NothingToEmbed
from rag_audit.retrieval.tokens import tokens_beyond

if TYPE_CHECKING:
    from rag_audit.account.client.sync import Client
    from rag_audit.log.keys import VerifierKey


@click.group(cls=Group)
def account() -> None:
    """Use an account: key, questions and receipts; add accounts to a provider's roster."""


for _command in (request, approve, status, names):
    account.add_command(_command)


@account.command("new")
@click.argument("directory", type=PATH)
@click.option("--id", "name", required=True, help="the account's id")
@click.option("--tenant", required=True, help="the tenant with the documents for this account")
def account_new(directory: Path, name: str, tenant: str) -> None:
    """Make an account folder with its own key, and print the public roster line."""
    click.echo(jcs(Account.create(directory, name, tenant).roster_entry.dump()).decode())


@account.command("add")
@click.argument("roster", type=PATH)
@click.argument("lines", metavar="LINE...", type=PATH, nargs=-1, required=True)
@json_option
def account_add(roster: Path, lines: tuple[Path, ...], as_json: bool) -> None:
    """Add roster lines to the provider's ROSTER, all of them or none.

    A LINE is a file with one roster line or with a list of roster lines, or - for stdin.
    """
    entries = [entry for path in lines for entry in _lines(path)]
    count = len(add_to_roster(roster, *entries))
    one = {"account": entries[0].account, "tenant": entries[0].tenant} if len(entries) == 1 else {}
    emit({**one, "added": len(entries), "accounts": count}, as_json)


def _lines(path: Path) -> list[RosterEntry]:
    if str(path) == "-":
        data = sys.stdin.buffer.read(MAX_ROSTER_BYTES + 1)
        return parse_lines(
            parse_json(data, source="roster line", max_bytes=MAX_ROSTER_BYTES), field="roster line"
        )
    return parse_lines(read_json(path, max_bytes=MAX_ROSTER_BYTES), field=path.name)


@dataclass(frozen=True)
class _Service:
    """The options about the provider's service."""

    provider: str | None
    url: str | None
    address: Path | None
    provider_dir: Path | None

    def key(self) -> VerifierKey:
        """The provider's key.

        :raises click.UsageError: the options name no key, or no address, or several
        """
        if self.provider is None:
            raise click.UsageError(
                "give --provider: the provider's public key, or the file provider.skey.pub with it"
            )
        if [self.address, self.provider_dir, self.url].count(None) != 2:
            raise click.UsageError(
                "give one of --socket, --url and --provider-dir: the address of the service"
            )
        return verifier_key(self.provider, field="--provider")

    def local(self) -> Callable[[SignedRequest], Json]:
        """A function that sends a request to the service on this machine."""
        if self.address is not None:
            return over_socket(self.address)
        return _over_process(self.provider_dir or Path())


@click.command()
@click.argument("text", required=False)
@path_option("--account", "directory", required=True, help="the account's folder")
@path_option("--window", "public", help="the window's public folder; not needed with --url")
@gathered(
    "service",
    _Service,
    click.option("--provider", help="the provider's vkey, or a file with it; not needed with --later"),
    click.option("--url", help="the provider's service (`rag-audit provider serve --http`)"),
    click.option(
        "--socket", "address", type=SOCKET, help="the provider's socket (`rag-audit provider serve --socket`)"
    ),
    path_option(
        "--provider-dir",
        help="the provider's window folder on this machine; the command starts a service for it",
    ),
)
@path_option(
    "--receipts",
    help="also write the account's countersigned receipts for a verifier, into a folder with the window's id in this"
    " folder",
)
@flag_option("--later", help="only store the question; --prepared sends it later")
@flag_option("--prepared", help="send all stored questions, the oldest first")
@model_option
@json_option
def query(
    text: str | None,
    directory: Path,
    public: Path | None,
    service: _Service,
    receipts: Path | None,
    later: bool,
    prepared: bool,
    model: Path | None,
    as_json: bool,
) -> None:
    """Ask one question as an account, check the answer, and store its receipt.

    A stored question (--later) has no number yet and blocks no other question. If the provider refuses a stored
    question, the question stays stored, and the command sends the next ones. The command names each file with an
    invalid question and moves it into the folder prepared/set-aside of the account.
    """
    if (text is None) != prepared or (later and prepared):
        raise click.UsageError("give a question, or --prepared")
    if later:
        if public is None:
            raise click.UsageError("--later needs --window")
        window = Publication.load(public)
        window.check()
        path = Questions(directory, window).add(text or "", embedder_of(window, model))
        emit({"prepared": str(path)}, as_json, str(path))
        return
    key = service.key()
    if public is None and service.url is None:
        raise click.UsageError("give --window, or --url")
    asker = Account(directory)
    with ExitStack() as stack:
        client = None if service.url is None else stack.enter_context(client_of(service.url, key))
        send = service.local() if client is None else client.send
        window = Publication.load(public) if public is not None else _fetched(client, directory)
        embedder = embedder_of(window, model)

        def ask(question: str) -> dict[str, Json]:
            answer = asker.ask(window, question, key, send, embedder=embedder)
            if receipts is not None:
                asker.export_receipts(window, receipts / window.parsed_policy().window)
            beyond = tokens_beyond(window, question, embedder, model)
            if beyond:
                say(
                    f"the question is too long: its last {beyond} tokens exceed the window's limit and were ignored"
                )
            bands = _bands(answer.documents, question, embedder, window)
            if not as_json:  # texts keep their own lines
                click.echo(_shown(answer.documents, bands, threshold=window.parsed_policy().relevance))
            return {
                "documents": [d.dump() for d in answer.documents], "bands": [*bands], "tokens_beyond": beyond
            }  # fmt: skip

        if prepared:
            _ask_prepared(Questions(directory, window), ask, as_json)
            return
        value = ask(text or "")
    if as_json:
        emit(value, as_json)


def _ask_prepared(questions: Questions, ask: Callable[[str], dict[str, Json]], as_json: bool) -> None:
    """Ask the prepared questions. The function reports each refusal and each file that it sets aside, and raises the
    error after the last question."""
    answers: list[Json] = []
    refused: RagAuditError | None = None
    for path, question in questions:
        if isinstance(question, RagAuditError):
            refused = _set_aside(questions, path, question)
            continue
        if not as_json:
            click.echo(f"{'' if not answers else chr(10)}> {printable(question)}")
        try:
            answers.append({"question": question, **ask(question)})
        except RequestRefused as exc:
            say(f"refused: {exc}")
            refused = exc
            continue
        except NothingToEmbed as exc:
            refused = _set_aside(questions, path, exc)
            continue
        path.unlink()
    if as_json:
        emit({"answers": answers}, as_json)
    elif not answers and refused is None:
        click.echo("(no question is stored for this window)")
    if refused is not None:
        raise refused


def _set_aside(questions: Questions, path: Path, reason: RagAuditError) -> RagAuditError:
    """Move a file with an invalid question to another folder, and report it."""
    say(f"set aside: {questions.set_aside(path)}: {reason}")
    return reason


def _bands(
    documents: Sequence[AnsweredDocument], question: str, embedder: Embedder, window: Publication
) -> list[int | None]:
    """The score band of each document; None for a document that does not reach the policy's relevance threshold, and
    for each document if the policy has no threshold."""
    threshold = window.parsed_policy().relevance
    if threshold is None:
        return [None] * len(documents)
    bands = {
        d.position: band
        for d, band in relevant([d for d in documents if d.text], question, embedder, threshold)
    }
    return [bands.get(d.position) for d in documents]


def _shown(
    documents: Sequence[AnsweredDocument], bands: Sequence[int | None], *, threshold: int | None
) -> str:
    """Documents for people: each relevant text, with its source, if its metadata has one, and its score band."""
    texts = [d for d in documents if d.text]
    if not texts:
        return "(no passage was returned)"
    if threshold is None:
        return "\n\n".join("\n".join([printable_text(d.text), *_origin(d)]) for d in texts)
    shown = [
        "\n".join([printable_text(d.text), *_origin(d), f"[score band {band} of {BANDS}]"])
        for d, band in zip(documents, bands, strict=True)
        if band is not None
    ]
    return "\n\n".join(shown) or (
        f"(none of the {len(texts)} returned passages reaches the policy's relevance threshold; --json shows them)"
    )


def _origin(document: AnsweredDocument) -> list[str]:
    fields = document.metadata
    named = [f"{name}: {printable(str(fields[name]))}" for name in ("id", "source") if name in fields]
    return [f"[{', '.join(named)}]"] if named else []


def _fetched(client: Client | None, directory: Path) -> Publication:
    """The publication of a service's window. The function stores it in the account's folder for `account receipt
    export`."""
    assert client is not None
    window = client.publication()
    folder = directory / "windows" / window.header_digest()[:16]
    if not (folder / "header.json").exists():
        folder.mkdir(parents=True, exist_ok=True)
        replace_file(folder / "header.json", window.canonical())
    return window


def over_socket(path: Path) -> Callable[[SignedRequest], Json]:
    def send(request: SignedRequest) -> Json:
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
                try:
                    connection.connect(str(path))
                except OSError as exc:
                    raise NotSent.of_os_error(
                        exc,
                        "the provider does not answer",
                        field=path,
                        hint="no request was sent: start the provider's service, and repeat the command",
                    ) from exc
                connection.sendall(request.canonical() + b"\n")
                with connection.makefile("rb") as stream:
                    line = stream.readline(MAX_ANSWER_BYTES + 2)
                    if not line:
                        raise ConnectionAbortedError(ECONNABORTED, "the connection ended without an answer")
                    return parse_json(line.rstrip(b"\n"), source="reply", max_bytes=MAX_ANSWER_BYTES)
        except OSError as exc:
            raise SetupError.of_os_error(
                exc,
                "the provider does not answer",
                field=path,
                hint="repeat the command; it sends the same request",
            ) from exc

    return send


def _over_process(directory: Path) -> Callable[[SignedRequest], Json]:
    def send(request: SignedRequest) -> Json:
        command = [sys.executable, "-m", "rag_audit", "provider", "serve", str(directory), "--stdio"]
        done = subprocess.run(command, input=request.canonical() + b"\n", capture_output=True, check=False)
        if done.returncode or not done.stdout:
            raise SetupError(
                "the provider's service failed",
                field=str(directory),
                actual=done.stderr.decode(errors="replace").strip()[-500:],
            )
        return parse_json(done.stdout.splitlines()[0], source="reply")

    return send


@click.group(cls=Group)
def receipt() -> None:
    """Check receipts, or countersign them for a verifier."""


@receipt.command("verify")
@click.argument("file", type=PATH)
@path_option("--window", "public", required=True, help="the window's public folder")
@click.option("--provider", required=True, help="the provider's vkey, or a file with it")
@json_option
def receipt_verify(file: Path, public: Path, provider: str, as_json: bool) -> None:
    """Check one receipt: signatures, inclusion and openings."""
    data = read_bytes(file, max_bytes=1 << 20)
    text = data.decode("utf-8", "replace")
    if text.startswith("{"):
        text = CountersignedReceipt.parse(read_json(file, max_bytes=1 << 20), field=file.name).receipt
    check_receipt(text, Publication.load(public), verifier_key(provider, field="--provider"))
    emit({"receipt": "valid", "file": str(file)}, as_json, f"valid: {file}")


@receipt.command("pack")
@click.argument("receipts", type=PATH, nargs=-1, required=True)
@path_option("--window", required=True, help="the window of the receipts: window.json or its folder")
@path_option("--out", required=True, help="folder for receipts.json and its tiles")
@json_option
def receipt_pack(receipts: tuple[Path, ...], window: Path, out: Path, as_json: bool) -> None:
    """Pack many countersigned RECEIPTS (files or folders) into tiles for `verify --receipts`."""
    path, count = pack_receipts(receipts, out, digest_hex(WindowFile.load(window).entries[0]))
    emit({"receipts": count, "written": str(path)}, as_json, f"{count} receipts in {path}")


@receipt.command("check")
@path_option("--account", "directory", required=True, help="the account's folder")
@click.option("--url", required=True, help="the provider's service (`rag-audit provider serve --http`)")
@click.option("--provider", required=True, help="the provider's vkey, or a file with it")
@click.option("--witness", "witnesses", multiple=True, help="a witness's vkey, or a file with it; any number")
@json_option
def receipt_check(
    directory: Path, url: str, provider: str, witnesses: tuple[str, ...], as_json: bool
) -> None:
    """Compare an account's receipts with the log of the open window.

    The log must contain each record at the index in its receipt, and the log must extend every checkpoint that the
    account has seen in receipts and in earlier checks. A difference proves that the provider signed two logs.
    """
    keys = tuple(verifier_key(w, field="--witness") for w in witnesses)
    with client_of(url, verifier_key(provider, field="--provider")) as client:
        result = client.compare_receipts(Account(directory), _fetched(client, directory), keys)
    emit(asdict(result), as_json)


@receipt.command("export")
@path_option("--account", "directory", required=True, help="the account's folder")
@path_option("--window", "public", required=True, help="the window's public folder")
@path_option("--out", required=True, help="folder for the countersigned receipts")
@flag_option("--disclose", help="disclose query texts, so that a verifier can re-execute the embedder")
@flag_option(
    "--tlog-proof",
    "tlog",
    help="write C2SP .tlog-proof files against the cosigned final checkpoint instead; needs --provider",
)
@click.option("--provider", help="with --tlog-proof: the provider's vkey, or a file with it")
@json_option
def receipt_export(
    directory: Path,
    public: Path,
    out: Path,
    disclose: bool,
    tlog: bool,
    provider: str | None,
    as_json: bool,
) -> None:
    """Countersign an account's receipts of a window and write them for a verifier.

    With --tlog-proof, the command writes for each receipt a proof for readers of C2SP logs that its record is in the
    closed window's log, and the bytes of the record (.entry). Neither file discloses the openings in the receipt.
    """
    account, window = Account(directory), Publication.load(public)
    if tlog:
        if provider is None or disclose:
            raise click.UsageError("--tlog-proof needs --provider and excludes --disclose")
        key = verifier_key(provider, field="--provider")
        written = account.export_tlog_proofs(window, WindowFile.load(public), out, key)
    else:
        written = account.export_receipts(window, out, disclose=disclose)
    emit({"receipts": [str(p) for p in written]}, as_json, [str(p) for p in written])


account.add_command(query)
account.add_command(receipt)
