"""`rag-audit provider open` and `enrol`: a window's beginning, and accounts that join it later."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path

import click

from rag_audit._internal.canonical import digest_hex, read_json
from rag_audit._internal.errors import PolicyError
from rag_audit.attest.window import Window
from rag_audit.cli.ahead import stop_if_wanting
from rag_audit.cli.common import PATH, emit, json_option, say, signing_key, stages
from rag_audit.cli.config import configured, given
from rag_audit.cli.documents import Reading, reading_options
from rag_audit.cli.options import (
    choice_option,
    duration,
    flag_option,
    gathered,
    line,
    model_option,
    path_option,
)
from rag_audit.cli.settings import resume, settings_of, store_settings, stored_model
from rag_audit.cli.witness import load_nonce_lines
from rag_audit.commit.preparing import Terms, load_preparation, open_prepared, prepare
from rag_audit.commit.stored import unfinished
from rag_audit.log.place import choose
from rag_audit.models.beacon import members_of
from rag_audit.models.chain import ClosedWindow, Unanswered
from rag_audit.models.drand import QUICKNET
from rag_audit.models.layout import Layout
from rag_audit.models.manifest import check_manifest
from rag_audit.models.passage import Passage
from rag_audit.models.policy import Policy
from rag_audit.models.publication import MAX_PUBLICATION_BYTES
from rag_audit.models.records import BeaconSource, DrandBeacon, Opening, PreviousWindow, WitnessBeacon
from rag_audit.models.roster import MAX_ROSTER_BYTES, load_roster, parse_lines
from rag_audit.models.windowfile import WindowFile
from rag_audit.retrieval.cuts import describe_repeated_ids, note_cuts, with_embeddable
from rag_audit.retrieval.embedders import DEFAULT_EMBEDDER, EMBEDDERS, get_embedder
from rag_audit.retrieval.inventory import Inventory, grouped
from rag_audit.retrieval.vectors import CachedEmbedder
from rag_audit.service.running.witnesses import admit_notes
from rag_audit.verify.ahead import Parties


@dataclass(frozen=True)
class Shared:
    """The options of `open` that all windows share, and provider.toml can state.

    :param name: the embedder, and `model` the place of its files
    :param vectors: the cache of document vectors
    :param store: the place of the ledgers
    """

    policy_file: Path | None
    roster: Path | None
    docs: Path | None
    reading: Reading
    key: Path | None
    origin: str | None
    name: str
    model: Path | None
    vectors: Path | None
    store: str | None

    def policy(self) -> Policy | None:
        """The policy, if its file is named."""
        if self.policy_file is None:
            return None
        return Policy.parse(
            read_json(self.policy_file, max_bytes=MAX_PUBLICATION_BYTES), field=self.policy_file.name
        )

    def choose_store(self, directory: Path) -> None:
        """Store where the window's ledger will be; without the option it is where an interrupted call wanted it."""
        if self.store is not None:
            choose(Layout(directory).ledger_place, self.store)


@dataclass(frozen=True)
class Own:
    """The options of `open` about one window.

    :param witnesses: the files with the witnesses' nonce lines
    """

    witnesses: tuple[Path, ...]
    drand: int | None
    drand_signature: str | None
    previous: Path | None
    opens_in: int | None
    trust: Path | None

    def nonces(self) -> WitnessBeacon | None:
        """The witnesses' nonce lines, if there are any."""
        if not self.witnesses:
            return None
        return WitnessBeacon.parse(
            {"source": "witnesses", "witnesses": load_nonce_lines(self.witnesses)}, field="--witness"
        )

    def beacon(self) -> BeaconSource | None:
        """The drand round that is named, or else the witnesses' nonces."""
        if self.drand is None:
            return self.nonces()
        return DrandBeacon.parse(
            {"source": "drand", "chain": QUICKNET.hash.hex(), "round": self.drand}, field="--drand"
        )


@click.command("open")
@click.argument("directory", type=PATH)
@configured("key", "header", "documents", "embedder")
@gathered(
    "shared",
    Shared,
    path_option("--policy", "policy_file", help="the window's policy (`rag-audit provider policy new`)"),
    path_option("--roster", help="accounts (`rag-audit account add`)"),
    path_option("--docs", help="folder with a <tenant>.jsonl or a folder of text files for each tenant"),
    reading_options,
    path_option("--key", help="the provider's signing key (`rag-audit provider keygen`)"),
    click.option("--origin", callback=line, help="the ledger's name; the key's name by default"),
    choice_option(
        "--embedder",
        "name",
        choices=EMBEDDERS,
        default=DEFAULT_EMBEDDER,
        help="what embeds documents and queries, as `provider policy new --embedder` was told",
    ),
    model_option,
    path_option(
        "--vectors",
        help="your own cache of document vectors, made if it is missing: texts that it knows are not embedded again",
    ),
    click.option(
        "--store",
        help="where the ledger is kept: `sqlite`, in DIRECTORY, by default; or postgresql://user@host/database, whose "
        "password libpq reads from ~/.pgpass or PGPASSWORD",
    ),
)
@gathered(
    "own",
    Own,
    path_option("--witness", "witnesses", multiple=True, help="a witness's nonce line; repeat for each"),
    click.option(
        "--drand",
        type=click.IntRange(min=1),
        help="beacon: this round of drand's quicknet, not the witnesses' nonces",
    ),
    click.option("--drand-signature", help="the round's signature in hexadecimal, once it is out"),
    path_option("--previous", help="the public folder of the window before this one"),
    click.option(
        "--opens-in",
        callback=duration,
        help="date the window once everything is committed: it opens so long after (30s, 15m), and lasts as long as"
        " the policy says",
    ),
    path_option(
        "--trust", help="a verifier's trust file: nothing is opened, if it asks for more than this window has"
    ),
)
@flag_option(
    "--prepare",
    "prepare_only",
    help="only embed and commit, publish nothing; the same command without it opens what is prepared, and needs no "
    "--docs and no --policy again",
)
@json_option
@click.pass_context
def open_(
    ctx: click.Context, /, directory: Path, shared: Shared, own: Own, prepare_only: bool, as_json: bool
) -> None:
    """Open a window in DIRECTORY; run again to take the witnesses' notes from its public/notes folder.

    With --key a window that a program opened is taken over by the commands.

    Large indices take minutes. After an interruption the same command resumes where it stopped; nothing is published
    before everything is committed. With --prepare that part is done ahead, while the window before this one serves; to
    open what is prepared takes no longer than to sign it.
    """
    inventory = Inventory()
    if unfinished(directory):
        # Documents that only provider.toml names are those of the preparation.
        ready = Layout(directory).prepared.exists() and not given(ctx, "docs") and not prepare_only
        begun = (
            _open_prepared(ctx, directory, shared, own, as_json)
            if ready
            else _begin(ctx, directory, shared, own, inventory, prepare_only=prepare_only, as_json=as_json)
        )
        read = {"inventory": inventory.as_json()} if as_json and not ready else {}
        if begun is None:
            emit({"status": "prepared", "public": str(Layout(directory).public.folder), **read}, as_json)
            return
        if isinstance(
            begun, Opening
        ):  # its index is read where it is needed: once the witnesses' notes are there
            emit(_result(directory, "committed", digest_hex(begun.dump()), begun), as_json)
            return
        window = begun
    else:
        read = {}
        if shared.key is not None and not Layout(directory).settings.exists():  # opened by a program
            with Window.resume(directory, key=signing_key(shared.key), model=shared.model):
                store_settings(directory, shared.key, shared.model)
        window = resume(directory)
    with window:
        admit_notes(window, say)
        if own.drand_signature is not None:
            window.admit_drand([own.drand_signature])
        result = _result(directory, window.status, window.opening_digest, window.opening)
    emit({**result, **read}, as_json)


def _begin(
    ctx: click.Context,
    directory: Path,
    shared: Shared,
    own: Own,
    inventory: Inventory,
    *,
    prepare_only: bool,
    as_json: bool,
) -> Window | None:
    """Open a window over the given documents; or prepare one, and return None."""
    policy, nonces, beacon = shared.policy(), own.nonces(), own.beacon()
    needed: dict[str, object] = {
        "--policy": policy,
        "--roster": shared.roster,
        "--docs": shared.docs,
        "--key": shared.key,
    }
    if not prepare_only:
        needed["--witness"] = nonces
    if (
        policy is None
        or shared.roster is None
        or shared.docs is None
        or shared.key is None
        or None in needed.values()
    ):
        *most, last = needed
        raise click.UsageError(f"a new window needs {', '.join(most)} and {last}")
    signer, accounts = signing_key(shared.key), load_roster(shared.roster)
    before = None if own.previous is None else previous_window(own.previous, policy.window)
    read = shared.reading.load(shared.docs, inventory)
    documents = {tenant: [d.passage for d in texts] for tenant, texts in read.items()}
    limits = {"query_tokens": policy.tokens.query, "document_tokens": policy.tokens.document}
    embedder = get_embedder(shared.name, folder=shared.model, **limits)
    witnessed = [] if nonces is None else [m.vkey for m in members_of(nonces)]
    if own.trust is not None and beacon is not None:
        parties = Parties(
            shared.origin or signer.name, signer.verifier, witnessed, beacon, accounts, embedder.manifest(),
            Unanswered.stated(before),
        )  # fmt: skip
        stop_if_wanting(ctx, policy, own.trust, parties, as_json=as_json)
    folder = store_settings(directory, shared.key, shared.model)
    shared.choose_store(directory)
    with ExitStack() as stack:
        if shared.vectors is None:
            used, new = embedder, documents
        else:
            used = cached = stack.enter_context(CachedEmbedder(embedder, shared.vectors, say=say))
            new = cached.unknown_of(documents)
        for line in (*describe_repeated_ids(documents), *grouped("cut", note_cuts(embedder, new, inventory))):
            say(line)

        def commit(documents: Mapping[str, Sequence[Passage]]) -> Window | None:
            if prepare_only:
                prepare(folder, policy=policy, roster=accounts, documents=documents, embedder=used,
                        origin=shared.origin, beacon=beacon, witnesses=witnessed, progress=stages())  # fmt: skip
                return None
            assert beacon is not None
            return Window.open(
                folder,
                key=signer,
                policy=policy,
                roster=accounts,
                documents=documents,
                terms=Terms(shared.origin or signer.name, beacon, witnessed, before, own.opens_in),
                embedder=used,
                progress=stages(),
            )

        return with_embeddable(
            commit, documents, used, inventory, skip=shared.reading.skip_unreadable, say=say
        )


def _open_prepared(ctx: click.Context, directory: Path, shared: Shared, own: Own, as_json: bool) -> Opening:
    """Date, chain and publish the prepared window in a folder."""
    made, _ = load_preparation(directory)
    if shared.key is not None:
        store_settings(directory, shared.key, shared.model or stored_model(directory))
    shared.choose_store(directory)
    signer = signing_key(Path(settings_of(directory).key))
    policy, nonces, beacon = shared.policy(), own.nonces(), own.beacon() or made.beacon
    accounts = made.roster if shared.roster is None else load_roster(shared.roster)
    chosen = made.parsed_policy() if policy is None else policy
    before = None if own.previous is None else previous_window(own.previous, chosen.window)
    witnessed = made.parsed_witnesses() if nonces is None else [m.vkey for m in members_of(nonces)]
    if own.trust is not None and beacon is not None:
        parties = Parties(
            shared.origin or made.origin or signer.name, signer.verifier, witnessed, beacon, accounts,
            check_manifest(made.embedder)["embedder"], Unanswered.stated(before),
        )  # fmt: skip
        stop_if_wanting(ctx, chosen, own.trust, parties, as_json=as_json)
    return open_prepared(
        directory,
        key=signer,
        origin=shared.origin,
        policy=policy,
        roster=accounts,
        beacon=beacon,
        witnesses=witnessed,
        previous=before,
        opens_in=own.opens_in,
    )


def _result(directory: Path, status: str, digest: str, opening: Opening) -> dict[str, object]:
    return {
        "status": status,
        "opening": digest,
        "opens_at": opening.opens_at,
        **asdict(Unanswered.before(opening)),
        "public": str(Layout(directory).public.folder),
    }


def previous_window(public: Path, window: str) -> PreviousWindow:
    """The reference to a closed window as the predecessor of a new one.

    :param window: the new window's id
    :raises PolicyError: it is the predecessor's, which witnesses refuse
    """
    before = ClosedWindow.of(WindowFile.load(public), field="--previous")
    if before.opening.window == window:
        raise PolicyError("a window's id must be new", field="policy.window", found=window)
    return before.as_previous()


@click.command()
@click.argument("directory", type=PATH)
@click.argument("lines", metavar="LINE...", type=PATH, nargs=-1, required=True)
@path_option("--witness", "witnesses", multiple=True, required=True, help="a witness's nonce line; repeat")
@json_option
def enrol(directory: Path, lines: tuple[Path, ...], witnesses: tuple[Path, ...], as_json: bool) -> None:
    """Add the accounts of roster LINEs to an open window; their queries wait for the beacon that the witnesses draw.

    A LINE is a file with one line or a list of them, as a roster is one. All of them wait for one beacon, over one
    checkpoint; an account that is enrolled already stays as it is. The witnesses cosign and reveal as for an opening
    (`witness cosign`, `witness beacon`); then run `provider open` again.
    """
    accounts = [a for p in lines for a in parse_lines(read_json(p, max_bytes=MAX_ROSTER_BYTES), field=p.name)]
    nonces = {"source": "witnesses", "witnesses": load_nonce_lines(witnesses)}
    with resume(directory) as window:
        new = [a for a in accounts if window.state.accounts.get(a.account) != a]
        made = window.enrol_all(new, WitnessBeacon.parse(nonces, field="--witness"))
        shown = [{"account": e.account, "seq": e.seq} for e in made]
    one = (
        shown[0]
        if len(accounts) == 1 and shown
        else {"enrolled": len(shown), "already": len(accounts) - len(new)}
    )
    emit(one, as_json)
