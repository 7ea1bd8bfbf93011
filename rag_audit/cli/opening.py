"""`rag-audit open` and `enrol`: a window's beginning, and accounts that join it later."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from rag_audit.beacon.drand import QUICKNET
from rag_audit.beacon.values import members_of
from rag_audit.cli.ahead import stop_if_wanting
from rag_audit.cli.common import PATH, emit, json_option, say, signing_key, stages
from rag_audit.cli.options import duration, model_option
from rag_audit.cli.settings import resume, store_settings
from rag_audit.cli.witness import load_nonce_lines
from rag_audit.commit.stored import EMBED_RUN, unfinished
from rag_audit.encoding.canonical import read_json
from rag_audit.errors import PolicyError
from rag_audit.formats.chain import ClosedWindow
from rag_audit.formats.layout import Layout
from rag_audit.formats.passage import Passage
from rag_audit.formats.policy import Policy
from rag_audit.formats.publication import MAX_PUBLICATION_BYTES
from rag_audit.formats.records import DrandBeacon, PreviousWindow, RosterEntry, WitnessBeacon
from rag_audit.formats.windowfile import WindowFile
from rag_audit.index.embedders import DEFAULT_EMBEDDER, EMBEDDERS, Embedder, get_embedder
from rag_audit.index.texts import load_directory
from rag_audit.parties.provider.service import admit_notes
from rag_audit.parties.provider.window import Window
from rag_audit.parties.roster import load_roster
from rag_audit.verify.ahead import Parties


@click.command("open")
@click.argument("directory", type=PATH)
@click.option("--policy", "policy_file", type=PATH, help="the window's policy (`rag-audit policy new`)")
@click.option("--roster", type=PATH, help="accounts (`rag-audit account add`)")
@click.option(
    "--docs", type=PATH, help="folder with a <tenant>.jsonl or a folder of text files for each tenant"
)
@click.option(
    "--text-alone",
    is_flag=True,
    help="hand out texts alone: without the other fields of the lines of <tenant>.jsonl, and without files' names",
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
@click.option(
    "--trust",
    type=PATH,
    help="a verifier's trust file: nothing is opened, if it asks for more than this window has",
)
@json_option
@click.pass_context
def open_(
    ctx: click.Context,
    directory: Path,
    policy_file: Path | None,
    roster: Path | None,
    docs: Path | None,
    text_alone: bool,
    key: Path | None,
    origin: str | None,
    name: str,
    model: Path | None,
    witnesses: tuple[Path, ...],
    drand: int | None,
    drand_signature: str | None,
    previous: Path | None,
    opens_in: int | None,
    trust: Path | None,
    as_json: bool,
) -> None:
    """Open a window in DIRECTORY; run again to take the witnesses' notes from its public/notes folder.

    With --key a window that a program opened is taken over by the commands.

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
        before = None if previous is None else previous_window(previous, policy)
        documents = {
            tenant: [d.passage for d in texts]
            for tenant, texts in load_directory(docs, text_alone=text_alone).items()
        }
        limits = {"query_tokens": policy.tokens.query, "document_tokens": policy.tokens.document}
        embedder = get_embedder(name, folder=model, **limits)
        accounts, witnessed = load_roster(roster), [m.vkey for m in members_of(nonces)]
        if trust is not None:
            parties = Parties(
                origin or signer.name, signer.verifier, witnessed, beacon, accounts, embedder.manifest(),
                0 if before is None else before.abandoned,
            )  # fmt: skip
            stop_if_wanting(ctx, policy, trust, parties, as_json=as_json)
        _warn_of_cuts(embedder, documents)
        window = Window.open(
            store_settings(directory, key, model),
            key=signer,
            origin=origin or signer.name,
            policy=policy,
            roster=accounts,
            documents=documents,
            beacon=beacon,
            witnesses=witnessed,
            previous=before,
            embedder=embedder,
            opens_in=opens_in,
            progress=stages(),
        )
    else:
        if key is not None and not Layout(directory).settings.exists():  # opened by a program
            with Window.resume(directory, key=signing_key(key), model=model):
                store_settings(directory, key, model)
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


def _warn_of_cuts(embedder: Embedder, documents: Mapping[str, Sequence[Passage]]) -> None:
    """Print how many documents are longer than the part of them that is embedded."""
    limit = embedder.limits.document
    for tenant, passages in documents.items():
        texts = [passage.text for passage in passages]
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
