"""`rag-audit witness`: cosign checkpoints and reveal beacon nonces, over files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path

import click

from rag_audit._internal.canonical import Json, jcs, read_bytes, read_json, read_text
from rag_audit._internal.durable import replace_file
from rag_audit._internal.errors import RagAuditError, SetupError
from rag_audit.cli.common import PATH, Group, emit, internal_error, json_option, say, verifier_key
from rag_audit.cli.options import Command, default_option, flag_option, path_option
from rag_audit.log.checkpoint import Checkpoint
from rag_audit.log.keys import VerifierKey
from rag_audit.log.merging import merge_signatures
from rag_audit.log.merkle import HashTree, leaf_hash
from rag_audit.log.note import MAX_NOTE_BYTES, Note, parse_note, verify_note
from rag_audit.models.chain import ClosedWindow
from rag_audit.models.ending import entry_type
from rag_audit.models.layout import PublicFolder
from rag_audit.models.publication import MAX_PUBLICATION_BYTES, Publication
from rag_audit.models.trust import Trust
from rag_audit.models.windowfile import WindowFile
from rag_audit.witness.reading import LogReader
from rag_audit.witness.witness import Witness


@click.group(cls=Group)
def witness() -> None:
    """Act as a witness: cosign a provider's checkpoints and draw its beacon."""


@witness.command("init")
@click.argument("directory", type=PATH)
@click.option("--name", required=True, help="the witness's name in cosignatures")
@json_option
def init(directory: Path, name: str, as_json: bool) -> None:
    """Make a witness folder with a fresh key, and print its vkey."""
    result = Witness.init(directory, name)
    emit({"name": name, "vkey": str(result.vkey)}, as_json, str(result.vkey))


@witness.command("nonce")
@click.argument("directory", type=PATH)
def nonce(directory: Path) -> None:
    """Commit to a fresh beacon nonce, and print the public line that a provider puts into its window header."""
    member = Witness(directory)
    commitment = member.nonce_commitment().hex()
    click.echo(jcs({"name": member.vkey.name, "vkey": str(member.vkey), "commitment": commitment}).decode())


def _trusted(path: Path, origin: str) -> tuple[VerifierKey, list[VerifierKey], int]:
    """The provider's key, the witnesses' keys and the quorum, for a window of the provider that the file names."""
    trust = Trust.load(path)
    if trust.provider.origin != origin:
        # Otherwise another provider's key would be taken for this provider's key.
        raise SetupError(
            "the trust file is for another provider",
            field="trust.provider.origin",
            expected=origin,
            actual=trust.provider.origin,
        )
    witnesses = [VerifierKey.parse(w.vkey, field=f"trust.witness.{w.name}") for w in trust.witness]
    return VerifierKey.parse(trust.provider.vkey, field="trust.provider.vkey"), witnesses, trust.quorum


def _notes(public: Path, text: str, keys: Sequence[VerifierKey]) -> Note:
    """A checkpoint merged with the notes of known witnesses in its folder. Notes without a signature by a known key
    are skipped."""
    notes = [parse_note(text)]
    size = Checkpoint.parse(notes[0].text).size
    # By name: an open window has notes for each of its enrolments.
    for path in sorted({PublicFolder(public).note("cosign", size, key.name) for key in keys}):
        if not path.exists():
            continue
        try:
            other = parse_note(read_bytes(path, max_bytes=MAX_NOTE_BYTES), field=path.name)
            if other.text == notes[0].text:
                verify_note(other, keys, field=path.name)
                notes.append(other)
        except RagAuditError as exc:
            say(f"{path.name} is skipped: {exc.message}")
    return merge_signatures(notes, keys)


def _leave(path: Path, note: Note, as_json: bool) -> None:
    path.parent.mkdir(exist_ok=True)
    replace_file(path, str(note).encode())
    emit({"note": str(path)}, as_json, str(path))


def _of_window(argument: str, pinned: str) -> Callable[[Command], Command]:
    """The arguments of a witness's command that reads a window: the witness's own folder, the window, its trust file.

    :param pinned: the values that the command reads from the trust file
    """

    def decorate(command: Command) -> Command:
        trusted = path_option("--trust", required=True, help=f"this witness's trust file: {pinned}")
        for part in (json_option, trusted, click.argument(argument, type=PATH)):
            command = part(command)
        return click.argument("directory", type=PATH)(command)

    return decorate


@witness.command("cosign")
@_of_window("public", "the provider's key, the quorum")
def cosign(directory: Path, public: Path, trust: Path, as_json: bool) -> None:
    """Cosign the window in PUBLIC: its header before it opens, and its final checkpoint after it closed."""
    member = Witness(directory)
    window = Publication.load(public)
    header = window.parsed_header()
    log_key, _, _ = _trusted(trust, header.origin)
    if (public / "window.json").exists():
        last = member.last(header.log)
        if last is None:
            raise SetupError(
                "this witness has not cosigned the window header", field="log", actual=header.log
            )
        reader = LogReader(directory, header.log)
        end = reader.read(public / "window.json", since=last[0])
        tree, size = end.tree, end.size
        if size > tree.size or last[0] > size:
            raise SetupError(
                "the checkpoint does not fit the entries",
                field="window.json",
                expected=size,
                actual=tree.size,
            )
        trailer = entries = None
        if entry_type(end.last) == "trailer":
            trailer = (end.last, tree.inclusion_path(size - 1, size))
            # Whether the window is complete follows from all entries: they are read once, at the window's end.
            entries = [jcs(entry) for entry in WindowFile.load(public).entries]
        note = member.cosign(
            end.checkpoint,
            log_key=log_key,
            consistency=tree.consistency_path(last[0], size),
            trailer=trailer,
            entries=entries,
        )
        if trailer is not None:
            reader.forget()
    else:
        text = read_text(public / "checkpoint-1.txt", max_bytes=MAX_NOTE_BYTES)
        note = member.cosign_header(text, jcs(window.header), log_key=log_key)
        size = 1
    _leave(PublicFolder(public).note("cosign", size, member.vkey.name), note, as_json)


@witness.command("follow")
@_of_window("window", "its fellow witnesses, the quorum")
def follow(directory: Path, window: Path, trust: Path, as_json: bool) -> None:
    """Accept a closed WINDOW that this witness did not follow to its end, by a quorum of the other witnesses.

    This is for a witness that joins a provider's chain late, or was away: run it once for each window, in their order.
    Nothing is signed; the next window header can then be cosigned.
    """
    member = Witness(directory)
    file = WindowFile.load(window)
    closed = ClosedWindow.of(file, field=window.name)
    log_key, witnesses, quorum = _trusted(trust, closed.header.origin)
    entries = [jcs(e) for e in file.entries]
    tree = HashTree(leaf_hash(e) for e in entries)
    size = tree.size
    last = member.last(closed.header.log)
    known = 0 if last is None else last[0]
    member.follow(
        file.final_checkpoint,
        entries,
        log_key=log_key,
        witnesses=witnesses,
        quorum=quorum,
        consistency=tree.consistency_path(known, size) if 0 < known <= size else (),
    )
    counts = closed.unanswered
    emit({"window": closed.header.window, "outcome": closed.outcome.value, **asdict(counts)}, as_json,
         [f"follows {closed.header.log} to its end at {size} entries: the window is {closed.outcome.value}",
          f"the next window header has to count {counts.abandoned} abandoned and {counts.empty} empty"
          " windows"])  # fmt: skip


@witness.command("beacon")
@_of_window("public", "its fellow witnesses, the quorum")
def beacon(directory: Path, public: Path, trust: Path, as_json: bool) -> None:
    """Reveal this witness's nonce after the quorum has cosigned the window header (or a later enrolment)."""
    member = Witness(directory)
    window = Publication.load(public)
    log_key, witnesses, quorum = _trusted(trust, window.parsed_header().origin)
    text, entry, index, path = _named(directory, public, window)
    merged = _notes(public, text, (log_key, *witnesses))
    reveal = member.reveal(merged, entry, log_key=log_key, witnesses=witnesses, quorum=quorum,
                           index=index, path=path)  # fmt: skip
    _leave(PublicFolder(public).note("beacon", index + 1, member.vkey.name), reveal, as_json)


def _named(directory: Path, public: Path, window: Publication) -> tuple[str, bytes, int, Sequence[bytes]]:
    """The entry that waits for a beacon: checkpoint, entry, index and inclusion path."""
    if (public / "window.json").exists():
        end = LogReader(directory, window.parsed_header().log).read(public / "window.json")
        if entry_type(end.last) == "enrolment":
            index = end.tree.size - 1
            return end.checkpoint, end.last, index, end.tree.inclusion_path(index)
    return read_text(public / "checkpoint-1.txt", max_bytes=MAX_NOTE_BYTES), jcs(window.header), 0, ()


@witness.command("serve")
@click.argument("directory", type=PATH)
@click.option(
    "--http", metavar="HOST:PORT", required=True, help="the address of the service (port 0: any free port)"
)
@path_option(
    "--trust",
    "trusts",
    multiple=True,
    help="a trust file about a provider: cosign its windows, and reveal nonces",
)
@click.option(
    "--log",
    "logs",
    metavar="ORIGIN=VKEY",
    multiple=True,
    help="a provider's origin and key: cosign its windows, and reveal no nonce",
)
def serve(directory: Path, http: str, trusts: tuple[Path, ...], logs: tuple[str, ...]) -> None:
    """Answer providers over HTTP: C2SP's add-checkpoint, and the extension of docs/witnesses.md."""
    from rag_audit._internal.log_lines import log_lines, remove_handler
    from rag_audit.service.limits import Limits
    from rag_audit.service.process import stopped_by_signal
    from rag_audit.service.server import Server, listen, parse_address
    from rag_audit.witness.http import Provider, WitnessApplication, WitnessService
    from rag_audit.witness.offers import Offers

    member = Witness(directory)
    providers = []
    for path in trusts:
        origin = Trust.load(path).provider.origin
        providers.append(Provider(origin, *_trusted(path, origin)))
    for text in logs:
        origin, separator, key = text.partition("=")
        if not separator or not origin:
            raise SetupError(
                "the value is not a provider", field="--log", expected="ORIGIN=VKEY", actual=text
            )
        providers.append(Provider(origin, verifier_key(key, field="--log")))
    if not providers:
        raise click.UsageError("name the providers: --trust or --log")
    if len({p.origin for p in providers}) < len(providers):
        raise SetupError("two options name the same provider", field="--log and --trust")
    limits = Limits()
    listening = listen(*parse_address(http, field="--http"))
    app = WitnessApplication(
        WitnessService(member, Offers(directory, member), providers), limits, _report_fault
    )
    with stopped_by_signal(), Server(app, listening, limits) as server:
        say(f"witness {member.vkey.name} listens on {server.url}")
        handler = log_lines()
        try:
            server.run()
        except KeyboardInterrupt:
            say("stopped")
        finally:
            remove_handler(handler)


def _report_fault(exc: BaseException) -> None:
    for line in internal_error(exc, ["witness", "serve"]):
        say(line)


@witness.command("submit")
@click.argument("public", type=PATH)
@click.option("--url", required=True, help="the URL of the witness")
@click.option("--name", required=True, help="the name of the witness in the trust file")
@path_option("--trust", required=True, help="a trust file: the provider's key, the witnesses, the quorum")
@flag_option("--plain", help="the witness only supports C2SP's tlog-witness")
@default_option("--patience", type=click.IntRange(0, 86_400), default=60,
              help="seconds during which the command repeats a request without an answer")  # fmt: skip
@json_option
def submit(public: Path, url: str, name: str, trust: Path, plain: bool, patience: int, as_json: bool) -> None:
    """Request the missing cosignature of a witness for the window in PUBLIC over HTTP, and then its nonce."""
    from rag_audit.attest.submitting import Remote, Submitting, patiently_asked

    origin = Publication.load(public).parsed_header().origin
    log_key, witnesses, quorum = _trusted(trust, origin)
    key = next((w for w in witnesses if w.name == name), None)
    if key is None:
        raise SetupError("the trust file has no witness of this name", field="--name",
                         expected=" or ".join(w.name for w in witnesses), actual=name)  # fmt: skip
    remote, requested = Remote(key, url, plain), Submitting(public, log_key, witnesses)
    cosigned = patiently_asked(lambda: requested.cosign(remote), patience, say)
    revealed = None if plain else patiently_asked(lambda: requested.reveal(remote, quorum), patience, say)
    left = [str(path) for path in (cosigned, revealed) if path is not None]
    emit({"notes": left}, as_json, left or "no note is missing, or other witnesses have to cosign first")


def load_nonce_lines(paths: tuple[Path, ...]) -> list[Json]:
    """Read the lines that `witness nonce` printed, one in each file.

    :raises RagAuditError: a file is missing, or holds something else
    """
    lines = []
    for path in paths:
        try:
            lines.append(read_json(path, max_bytes=MAX_PUBLICATION_BYTES))
        except RagAuditError as exc:
            exc.field = f"--witness {path}"
            exc.hint = "give a nonce line, not the witness's key: the witness prints one with `rag-audit witness nonce`"
            raise
    return lines
