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
from rag_audit.cli.policy_check import stop_if_wanting
from rag_audit.cli.settings import resume, settings_of, store_settings, stored_model
from rag_audit.cli.witness import load_nonce_lines
from rag_audit.commit.carrying import FIRST, Continuing, load_given_up
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
from rag_audit.models.records import BeaconSource, DrandBeacon, PreviousWindow, WindowHeader, WitnessBeacon
from rag_audit.models.roster import MAX_ROSTER_BYTES, load_roster, parse_lines
from rag_audit.models.windowfile import WindowFile
from rag_audit.retrieval.cuts import describe_repeated_ids, note_cuts, with_embeddable
from rag_audit.retrieval.embedders import DEFAULT_EMBEDDER, EMBEDDERS, get_embedder
from rag_audit.retrieval.inventory import Inventory, grouped
from rag_audit.retrieval.vectors import CachedEmbedder
from rag_audit.service.running.witnesses import admit_notes
from rag_audit.verify.policy_check import Parties


@dataclass(frozen=True)
class Shared:
    """The options of `open` that all windows share, and provider.toml can state.

    :param name: the embedder, and `model` the place of its files
    :param vectors: the cache of document vectors
    :param store: the place of the ledgers
    :param given_up: the documents that never return
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
    given_up: Path | None

    def policy(self) -> Policy | None:
        """The policy, if its file is named."""
        if self.policy_file is None:
            return None
        return Policy.parse(
            read_json(self.policy_file, max_bytes=MAX_PUBLICATION_BYTES), field=self.policy_file.name
        )

    def choose_store(self, directory: Path) -> None:
        """Store the place of the window's ledger. Without the option, the place of an interrupted call stays valid."""
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
        """The named drand round, or the witnesses' nonces if no round is named."""
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
    path_option("--roster", help="the file with the accounts (`rag-audit account add`)"),
    path_option("--docs", help="folder with a <tenant>.jsonl or a folder of text files for each tenant"),
    reading_options,
    path_option("--key", help="the provider's signing key (`rag-audit provider keygen`)"),
    click.option("--origin", callback=line, help="the ledger's name; the key's name by default"),
    choice_option(
        "--embedder",
        "name",
        choices=EMBEDDERS,
        default=DEFAULT_EMBEDDER,
        help="the embedder of documents and queries, the same as for `provider policy new --embedder`",
    ),
    model_option,
    path_option(
        "--vectors",
        help="a file that caches document vectors, so that the command embeds a known text only once",
    ),
    click.option(
        "--store",
        help="the ledger's database: `sqlite`, in DIRECTORY, by default; or postgresql://user@host/database"
        " (libpq reads the password from ~/.pgpass or PGPASSWORD)",
    ),
    path_option(
        "--given-up",
        help='the documents that left for good, JSON Lines {"tenant": .., "document": ..}: their rows of the document'
        " table become free, and the documents must not return",
    ),
)
@gathered(
    "own",
    Own,
    path_option("--witness", "witnesses", multiple=True, help="a witness's nonce line; repeat for each"),
    click.option(
        "--drand",
        type=click.IntRange(min=1),
        help="use this round of drand's quicknet as beacon, instead of the witnesses' nonces",
    ),
    click.option("--drand-signature", help="the round's signature in hexadecimal, after drand published it"),
    path_option("--previous", help="the public folder of the previous window"),
    click.option(
        "--opens-in",
        callback=duration,
        help="date the window after the commitments: it opens after this time (30s, 15m) and has the policy's duration",
    ),
    path_option(
        "--trust",
        help="a verifier's trust file: the window opens only if it meets the requirements in this file",
    ),
)
@flag_option(
    "--prepare",
    "prepare_only",
    help="only embed and commit, without publishing; the same command without --prepare opens the prepared window and "
    "needs no --docs and no --policy",
)
@json_option
@click.pass_context
def open_(
    ctx: click.Context, /, directory: Path, shared: Shared, own: Own, prepare_only: bool, as_json: bool
) -> None:
    """Open a window in DIRECTORY; a second run reads the witnesses' notes from its public/notes folder.

    With --key, the commands can continue a window that a program opened.

    A large index takes minutes. After an interruption the same command continues. The command publishes the window only
    after it has committed to all parts. With --prepare the command computes these commitments in advance, while the
    previous window serves; opening a prepared window then only takes a signature.
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
            begun, WindowHeader
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
        result = _result(directory, window.status, window.header_digest, window.header)
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
        *others, last = needed
        raise click.UsageError(f"a new window needs {', '.join(others)} and {last}")
    signer, accounts = signing_key(shared.key), load_roster(shared.roster)
    # A window that is only prepared needs no closed window before it.
    chained = own.previous is not None and not (prepare_only and own.trust is None)
    before = previous_window(own.previous, policy.window) if chained and own.previous is not None else None
    continuing = (
        FIRST
        if own.previous is None
        else Continuing([own.previous.absolute().parent], say, load_given_up(shared.given_up))
    )
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
                        origin=shared.origin, beacon=beacon, witnesses=witnessed, continuing=continuing,
                        progress=stages())  # fmt: skip
                return None
            assert beacon is not None
            return Window.open(
                folder,
                key=signer,
                policy=policy,
                roster=accounts,
                documents=documents,
                terms=Terms(
                    shared.origin or signer.name, beacon, witnessed, before, own.opens_in, continuing
                ),
                embedder=used,
                progress=stages(),
            )

        return with_embeddable(
            commit, documents, used, inventory, skip=shared.reading.skip_unreadable, say=say
        )


def _open_prepared(
    ctx: click.Context, directory: Path, shared: Shared, own: Own, as_json: bool
) -> WindowHeader:
    """Date, chain and publish the prepared window in a folder."""
    prepared, _ = load_preparation(directory)
    if shared.key is not None:
        store_settings(directory, shared.key, shared.model or stored_model(directory))
    shared.choose_store(directory)
    signer = signing_key(Path(settings_of(directory).key))
    policy, nonces, beacon = shared.policy(), own.nonces(), own.beacon() or prepared.beacon
    accounts = prepared.roster if shared.roster is None else load_roster(shared.roster)
    chosen = prepared.parsed_policy() if policy is None else policy
    before = None if own.previous is None else previous_window(own.previous, chosen.window)
    witnessed = prepared.parsed_witnesses() if nonces is None else [m.vkey for m in members_of(nonces)]
    if own.trust is not None and beacon is not None:
        parties = Parties(
            shared.origin or prepared.origin or signer.name, signer.verifier, witnessed, beacon, accounts,
            check_manifest(prepared.embedder)["embedder"], Unanswered.stated(before),
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


def _result(directory: Path, status: str, digest: str, header: WindowHeader) -> dict[str, object]:
    return {
        "status": status,
        "header": digest,
        "opens_at": header.opens_at,
        **asdict(Unanswered.before(header)),
        "public": str(Layout(directory).public.folder),
    }


def previous_window(public: Path, window: str) -> PreviousWindow:
    """The reference to a closed window as the predecessor of a new one.

    :param window: the new window's id
    :raises PolicyError: the id equals the predecessor's id, which witnesses refuse
    """
    before = ClosedWindow.of(WindowFile.load(public), field="--previous")
    if before.header.window == window:
        raise PolicyError(
            "the window has the id of the previous window", field="policy.window", actual=window
        )
    return before.as_previous()


@click.command()
@click.argument("directory", type=PATH)
@click.argument("lines", metavar="LINE...", type=PATH, nargs=-1, required=True)
@path_option("--witness", "witnesses", multiple=True, required=True, help="a witness's nonce line; repeat")
@json_option
def enrol(directory: Path, lines: tuple[Path, ...], witnesses: tuple[Path, ...], as_json: bool) -> None:
    """Add the accounts of roster LINEs to an open window; they can send queries after the witnesses drew a beacon.

    A LINE is a file with one roster line or with a list of roster lines. All new accounts wait for one beacon, over one
    checkpoint. The command ignores accounts that are already enrolled. The witnesses cosign and reveal as for a window
    header (`witness cosign`, `witness beacon`); then run `provider open` a second time.
    """
    accounts = [a for p in lines for a in parse_lines(read_json(p, max_bytes=MAX_ROSTER_BYTES), field=p.name)]
    nonces = {"source": "witnesses", "witnesses": load_nonce_lines(witnesses)}
    with resume(directory) as window:
        new = [a for a in accounts if window.state.accounts.get(a.account) != a]
        enrolled = window.enrol_all(new, WitnessBeacon.parse(nonces, field="--witness"))
        shown = [{"account": e.account, "seq": e.seq} for e in enrolled]
    one = (
        shown[0]
        if len(accounts) == 1 and shown
        else {"enrolled": len(shown), "already": len(accounts) - len(new)}
    )
    emit(one, as_json)
