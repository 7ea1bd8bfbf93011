"""The beginning of a window: its folder, its commitments, and its header.

A window is opened in one step (`begin`) or in two steps: preparing it, which takes long, and opening the prepared
window, which is fast. The first step needs neither dates nor the previous window, so it can run while the previous
window serves. The second step waits for the trailer of the previous window, since the window header names the root that
contains it (docs/protocol.md, "Witness rules"; docs/decisions/0039-prepare-date-and-chain-a-window-apart.md).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rag_audit._internal.canonical import Json, read_json
from rag_audit._internal.clock import now_ms
from rag_audit._internal.durable import PRIVATE_MODE, replace_file
from rag_audit._internal.errors import PolicyError, StoreError, WindowStateError
from rag_audit.commit.carrying import (
    FIRST,
    Continuing,
    latest_headers,
    place_tables,
    require_ended,
    with_listed_rows,
)
from rag_audit.commit.commitment import (
    Commitment,
    CommittedTenant,
    WindowSecrets,
    check_inputs,
    check_tenants,
    commit,
    header_of,
)
from rag_audit.commit.stored import (
    MAX_COMMITMENT_BYTES,
    OpenProgress,
    StoredCommitment,
    commit_tenants,
    delete_unfinished,
    draw_seed,
    load_commitment,
    lock_folder,
    store_commitment,
    store_texts,
    unfinished,
    write_stored,
)
from rag_audit.commit.tables import PlacedTable
from rag_audit.log.checkpoint import Checkpoint
from rag_audit.log.keys import VerifierKey
from rag_audit.log.merkle import leaf_hash
from rag_audit.log.place import open_ledger
from rag_audit.log.signing import SigningKey
from rag_audit.models.beacon import members_of
from rag_audit.models.header import check_roster
from rag_audit.models.layout import Layout
from rag_audit.models.manifest import Manifest, as_json, check_manifest
from rag_audit.models.models import Model, One, check_line
from rag_audit.models.passage import Passage, passage
from rag_audit.models.policy import Policy
from rag_audit.models.records import (
    BeaconSource,
    PreviousWindow,
    RosterEntry,
    TenantEntry,
    WindowHeader,
    WitnessBeacon,
)
from rag_audit.proofs.policy import check_policy
from rag_audit.retrieval.embedders import Embedder, get_embedder

LATER = frozenset({"window", "opens_at", "closes_at", "delete_after"})
"""The policy fields that the preparation does not depend on."""


class Preparation(Model):
    """prepared.json: the inputs of a prepared window's opening. The file is private, since commitments are published
    only with the window header.

    :param origin: the ledger's name, if it is already known
    :param beacon: the source that was named during preparation, if any; the opening may replace it
    :param earlier: the folders of the earlier windows whose document tables the window continues
    """

    v: One = 1
    origin: str | None
    policy: dict[str, Json]
    embedder: dict[str, Json]
    roster: list[RosterEntry]
    tenants: list[TenantEntry]
    beacon: BeaconSource | None
    witnesses: list[str]
    earlier: list[str]

    def parsed_witnesses(self) -> list[VerifierKey]:
        """The witnesses that were named when the window was prepared."""
        return [VerifierKey.parse(w, field="prepared.json.witnesses") for w in self.witnesses]

    def parsed_policy(self) -> Policy:
        """The policy. Its dates may be in the past."""
        return Policy.parse(self.policy, field="prepared.json.policy")

    def redated(self, policy: Policy) -> Policy:
        """Another policy for the same preparation.

        :raises PolicyError: it differs in more than id and dates
        """
        prepared, given = self.parsed_policy().dump(), policy.dump()
        for name in sorted((prepared.keys() | given.keys()) - LATER):
            if prepared.get(name) != given.get(name):
                raise PolicyError("the window was prepared for another policy", field=f"policy.{name}",
                                  expected=prepared.get(name), actual=given.get(name),
                                  hint="with --docs the command checks the new policy against the texts, and keeps the"
                                  " index if embedder, texts, tenants and capacities are the same")  # fmt: skip
        return policy

    def save(self, directory: Path) -> None:
        """Write prepared.json."""
        replace_file(Layout(directory).prepared, self.canonical(), mode=PRIVATE_MODE)


def load_preparation(directory: Path) -> tuple[Preparation, WindowSecrets]:
    """Read a preparation back with its secrets. A later step, which reads the window back, compares the commitments
    with the index and the texts.

    :raises WindowStateError: the folder has no prepared window
    :raises StoreError: a part is missing
    """
    layout = Layout(directory)
    if not layout.prepared.exists():
        raise WindowStateError("no window is prepared in this folder", field=str(directory),
                               hint="prepare a window with `rag-audit provider open --prepare`, which also continues"
                                    " an interrupted run")  # fmt: skip
    value = read_json(layout.prepared, max_bytes=MAX_COMMITMENT_BYTES)
    result = Preparation.parse(value, field="prepared.json")
    window_secrets = WindowSecrets.load(layout.secrets)
    names = [t.tenant for t in result.tenants]
    if set(window_secrets.index_salts) != set(names):
        raise StoreError("the secrets belong to another window", field="secrets.json.index_salts")
    for path in (layout.documents, *(p for n in names for p in (layout.rows(n), layout.positions(n)))):
        if not path.exists():
            raise StoreError("a part of the prepared window is missing", field=str(path),
                             hint="`rag-audit provider open --prepare` makes the missing parts")  # fmt: skip
    return result, window_secrets


@dataclass(frozen=True)
class Inputs:
    """The inputs that a window commits to, checked for consistency.

    :param documents: each tenant's passages, without those of documents that wait (`place_tables`)
    :param manifest: the manifest under C_emb
    :param tables: the document tables of tenants that have one
    """

    policy: Policy
    roster: Sequence[RosterEntry]
    documents: Mapping[str, Sequence[Passage]]
    embedder: Embedder
    manifest: Manifest
    tables: Mapping[str, PlacedTable]

    @classmethod
    def of(
        cls,
        policy: Policy,
        roster: Sequence[RosterEntry],
        documents: Mapping[str, Sequence[str | Passage]],
        embedder: Embedder | None,
        continuing: Continuing,
    ) -> Inputs:
        """Check the inputs of a window.

        :param documents: each tenant's documents, each as a text or a passage
        :param embedder: None selects the default embedder
        :raises PolicyError: the inputs are inconsistent
        :raises RagAuditError: documents do not fit their table (`place_tables`)
        """
        tokens = policy.tokens
        embedder = embedder or get_embedder(query_tokens=tokens.query, document_tokens=tokens.document)
        placed = {tenant: [passage(d) for d in own] for tenant, own in documents.items()}
        # The table needs a policy and tenants that are well-formed; roster errors come first, as in `check_inputs`.
        check_policy(policy, embedder.dimension)
        check_roster(roster, policy)
        check_tenants(policy, placed)
        tables, kept = place_tables(policy, placed, continuing)
        return cls(policy, roster, kept, embedder, check_inputs(policy, roster, kept, embedder), tables)

    def commit_index(
        self, folder: Path, progress: OpenProgress | None
    ) -> tuple[WindowSecrets, dict[str, CommittedTenant]]:
        """Embed the documents and commit to them in a folder that this process has locked."""
        secrets, tenants = commit_tenants(
            folder, self.policy, self.manifest, self.documents, self.embedder, progress, self.tables
        )
        store_texts(folder, tenants)
        return secrets, tenants


def make_folder(folder: Path) -> None:
    """Make a window's folder with the parts that it needs from the start; all but `public` is private to the provider.

    :raises StoreError: the folder cannot be made
    """
    layout = Layout(folder)
    try:
        layout.public.folder.mkdir(parents=True, exist_ok=True)
        layout.proofs.mkdir(exist_ok=True)
        layout.indices.mkdir(exist_ok=True)
        folder.chmod(0o700)
    except OSError as exc:
        raise StoreError.of_os_error(exc, "the window's folder cannot be made", field=folder) from exc


def witnesses_of(witnesses: Sequence[VerifierKey], beacon: BeaconSource) -> list[VerifierKey]:
    """The witnesses that the window waits for: the given witnesses, or by default the beacon's.

    :raises PolicyError: there are no witnesses
    """
    result = list(witnesses)
    if not result and isinstance(beacon, WitnessBeacon):
        result = [m.vkey for m in members_of(beacon)]
    if not result:
        raise PolicyError("the window needs witnesses", field="witnesses")
    return result


def require_future(policy: Policy, now: int) -> None:
    """Refuse a window that would open in the past, which witnesses would not cosign.

    :raises PolicyError: the window would open in the past
    """
    if policy.opens_at <= now:
        raise PolicyError("the window must be committed before it opens", field="policy.opens_at",
                          expected=f"later than {now}", actual=policy.opens_at,
                          hint="`provider open --opens-in 15m` dates it once all is committed, and keeps"
                               " what is")  # fmt: skip


@dataclass(frozen=True)
class Terms:
    """The contents of a window header that are not commitments.

    :param origin: the ledger's name
    :param witnesses: the witnesses that the window waits for; empty selects the witnesses in `beacon`
    :param opens_in: milliseconds from the last commitment to the opening of the window; the policy's dates move
        accordingly (`Policy.moved`), and do not move if it is None
    :param continuing: the earlier windows whose document tables the window continues
    """

    origin: str
    beacon: BeaconSource
    witnesses: Sequence[VerifierKey] = ()
    previous: PreviousWindow | None = None
    opens_in: int | None = None
    continuing: Continuing = FIRST

    @property
    def waited_for(self) -> list[VerifierKey]:
        """The witnesses that must cosign before the window continues.

        :raises PolicyError: there are no witnesses
        """
        return witnesses_of(self.witnesses, self.beacon)


def begin(
    folder: Path, inputs: Inputs, terms: Terms, *, clock: Callable[[], int], progress: OpenProgress | None
) -> Commitment:
    """Commit to everything in a folder that this process has locked.

    :raises WindowStateError: the folder already contains a window
    """
    check_line(terms.origin, field="origin")
    _require_unfinished(folder, hint="use Window.resume")
    check_chain(inputs.policy, terms.continuing.folders, terms.previous)
    for tenant, placed in inputs.tables.items():
        if placed.previous is not None and inputs.policy.mechanism_of(tenant).pools:
            require_ended(tenant, placed.previous)
    secrets, tenants = inputs.commit_index(folder, progress)
    # All slow steps are complete at this point, so a date counted from here leaves the witnesses their time. The date
    # is checked a second time, since large indices can take longer than their provider expected.
    policy = _dated(inputs.policy, terms.opens_in, clock, inputs.embedder.dimension)
    commitment = commit(
        origin=terms.origin, policy=policy, roster=inputs.roster, manifest=inputs.manifest, tenants=tenants,
        window_secrets=draw_seed(folder, secrets), beacon=terms.beacon, previous=terms.previous,
    )  # fmt: skip
    store_commitment(folder, commitment, terms.waited_for)
    return commitment


def _require_unfinished(folder: Path, *, hint: str) -> None:
    """Refuse a folder that contains a window.

    :raises WindowStateError: the folder does
    """
    if not unfinished(folder):
        raise WindowStateError("the folder already contains a window", field=str(folder), hint=hint)


def _dated(policy: Policy, opens_in: int | None, clock: Callable[[], int], dimension: int) -> Policy:
    """A policy with the dates of its window.

    :raises PolicyError: the window would open in the past
    """
    if opens_in is not None:
        policy = policy.moved(clock() + opens_in)
    check_policy(policy, dimension)
    require_future(policy, clock())
    return policy


def read_back(
    folder: Path, now: int, embedder: Embedder | None, model: Path | None = None
) -> tuple[Commitment, list[VerifierKey], Embedder]:
    """Read back and check the commitment in a folder, with its witnesses and its embedder.

    :param model: the files of the committed embedder, if it has any and is not given itself
    :raises StoreError: the state is missing or altered, or the embedder differs from the committed embedder
    """
    commitment, witnesses = load_commitment(folder, now)
    return commitment, witnesses, committed_embedder(commitment.manifest, commitment.policy, embedder, model)


def committed_embedder(
    manifest: Manifest, policy: Policy, embedder: Embedder | None = None, model: Path | None = None
) -> Embedder:
    """The embedder that a window committed to: the given one, or the one with the committed name.

    :param model: the folder of its files, if it has any and `embedder` is None
    :raises StoreError: the embedder does not match the commitment
    """
    part, tokens = manifest["embedder"], policy.tokens
    embedder = embedder or get_embedder(
        part["kind"], folder=model, query_tokens=tokens.query, document_tokens=tokens.document
    )
    if embedder.manifest() != part:
        raise StoreError(
            "the embedder differs from the committed embedder", field="embedder", expected=part["kind"]
        )
    return embedder


def prepare(
    directory: Path,
    *,
    policy: Policy,
    roster: Sequence[RosterEntry],
    documents: Mapping[str, Sequence[str | Passage]],
    embedder: Embedder | None = None,
    origin: str | None = None,
    beacon: BeaconSource | None = None,
    witnesses: Sequence[VerifierKey] = (),
    continuing: Continuing = FIRST,
    progress: OpenProgress | None = None,
) -> Preparation:
    """Embed the texts and commit to them for a window that `open_prepared` will open at any later time.

    This function publishes no data. An interrupted call resumes as `Window.open` does; `Window.open` can also resume
    it.

    :param policy: its dates have no effect yet and may be past
    :param beacon: the witnesses' nonces, if they are known
    :raises PolicyError: the policy is not well-formed, or roster or documents do not fit it
    :raises WindowStateError: the folder already contains a window
    """
    if origin is not None:
        check_line(origin, field="origin")
    inputs = Inputs.of(policy, roster, documents, embedder, continuing)
    make_folder(directory)
    lock = lock_folder(directory)
    try:
        _require_unfinished(directory, hint="prepare the next window in another folder")
        _, tenants = inputs.commit_index(directory, progress)
        result = Preparation(
            origin=origin,
            policy=policy.dump(),
            embedder=as_json(inputs.manifest),
            roster=list(roster),
            tenants=[t.entry for t in tenants.values()],
            beacon=beacon,
            witnesses=[str(w) for w in witnesses],
            earlier=[str(folder.absolute()) for folder in continuing.folders],
        )
        result.save(directory)
    finally:
        os.close(lock)
    return result


def open_prepared(
    directory: Path,
    *,
    key: SigningKey,
    origin: str | None = None,
    policy: Policy | None = None,
    roster: Sequence[RosterEntry] | None = None,
    beacon: BeaconSource | None = None,
    witnesses: Sequence[VerifierKey] = (),
    previous: PreviousWindow | None = None,
    opens_in: int | None = None,
    clock: Callable[[], int] = now_ms,
) -> WindowHeader:
    """Date a prepared window, chain it, and write and publish its header, entry 0. `Window.resume` then continues.

    The function reads neither texts nor rows: its cost is the cost of signing one checkpoint. Omitted arguments are
    taken from the preparation.

    :param policy: a policy that differs from the prepared one only in id and dates
    :param opens_in: as for `Window.open`
    :raises WindowStateError: the folder has no prepared window
    :raises PolicyError: the policy differs otherwise, would open in the past, or has another roster; or no beacon is
        known
    """
    if origin is not None:
        check_line(origin, field="origin")
    lock = lock_folder(directory)
    try:
        _require_unfinished(directory, hint="use Window.resume")
        result, window_secrets = load_preparation(directory)
        manifest = check_manifest(result.embedder)
        chosen = result.parsed_policy() if policy is None else result.redated(policy)
        chosen = _dated(chosen, opens_in, clock, manifest["schema"]["dimension"])
        accounts = result.roster if roster is None else list(roster)
        check_roster(accounts, chosen)
        folders = [Path(folder) for folder in result.earlier]
        check_chain(chosen, folders, previous)
        if (source := beacon or result.beacon) is None:
            raise PolicyError("the window was prepared without a beacon", field="beacon",
                              hint="a nonce line of each witness: `rag-audit provider open --witness`")  # fmt: skip
        # The window before may have been abandoned since the preparation, before it had a sample.
        tenants = with_listed_rows(directory, chosen, result.tenants, folders)
        window_secrets = draw_seed(directory, window_secrets)
        header = header_of(
            origin=origin or result.origin or key.name, policy=chosen, roster=accounts, manifest=manifest,
            tenants=tenants, window_secrets=window_secrets, beacon=source, previous=previous,
        )  # fmt: skip
        stored = StoredCommitment(
            header=header,
            policy=chosen.dump(),
            embedder=result.embedder,
            roster=accounts,
            tenants=tenants,
            witnesses=[str(w) for w in witnesses_of(witnesses or result.parsed_witnesses(), source)],
        )
        write_stored(directory, stored)
        with open_ledger(Layout(directory).ledger, Layout(directory).ledger_place) as store:
            store.append(header.canonical()).result()
        delete_unfinished(directory)
        _publish(directory, stored, key)
    finally:
        os.close(lock)
    return header


def check_chain(policy: Policy, folders: Sequence[Path], previous: PreviousWindow | None) -> None:
    """Check that the document tables continue those of the window before.

    :param folders: `Continuing.folders`
    :raises PolicyError: the folders are those of another window, or missing
    """
    if not _persistent(policy):
        return
    expected = latest_headers(folders[0]) if folders else [None]
    if (named := None if previous is None else previous.header) not in expected:
        hint = (
            "name the folder of the previous window; a prepared window is prepared again and reuses its index"
        )
        raise PolicyError("the document tables continue those of another window than the previous one",
                          field="previous", expected=expected[0], actual=named, hint=hint)  # fmt: skip


def _persistent(policy: Policy) -> set[str]:
    """The tenants with document tables that continue earlier ones."""
    return {part.tenant for part in policy.tenants if policy.mechanism(part).persists}


def _publish(directory: Path, stored: StoredCommitment, key: SigningKey) -> None:
    """Write the files that witnesses need, as `Publisher.publish` does for a window that lacks them after a crash."""
    public, header = Layout(directory).public, stored.header
    head = Checkpoint(header.log, 1, leaf_hash(header.canonical()))
    replace_file(public.checkpoint(1), str(head.sign(key)).encode())
    replace_file(public.header, stored.publication().canonical())
