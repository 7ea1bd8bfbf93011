"""A window's beginning in two parts: preparing it, which takes long, and opening what is prepared, which does not.

The first needs neither dates nor the window before, so it runs while that one serves. The second waits for its closing
record, since the opening names the root that has it (docs/protocol.md, "Witness rules").
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from rag_audit._internal.durable import replace_file
from rag_audit._internal.errors import PolicyError, WindowStateError
from rag_audit.attest.opening import inputs_of, make_folder, require_future, witnesses_of
from rag_audit.attest.window import now_ms
from rag_audit.commit.commitment import opening_of
from rag_audit.commit.prepared import Preparation, load_preparation
from rag_audit.commit.stored import (
    OpenProgress,
    StoredCommitment,
    commit_tenants,
    draw_seed,
    forget_unfinished,
    lock_folder,
    store_texts,
    unfinished,
    write_stored,
)
from rag_audit.log.checkpoint import Checkpoint
from rag_audit.log.keys import SigningKey, VerifierKey
from rag_audit.log.merkle import leaf_hash
from rag_audit.log.place import open_ledger
from rag_audit.models.layout import Layout
from rag_audit.models.manifest import as_json, check_manifest
from rag_audit.models.models import check_line
from rag_audit.models.opening import check_roster
from rag_audit.models.passage import Passage, passage
from rag_audit.models.policy import Policy
from rag_audit.models.publication import PUBLICATION, Publication
from rag_audit.models.records import BeaconSource, Opening, PreviousWindow, RosterEntry
from rag_audit.proofs.policy import check_policy
from rag_audit.retrieval.embedders import Embedder


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
    progress: OpenProgress | None = None,
) -> Preparation:
    """Embed the texts and commit to them for a window that `open_prepared` will open, whenever that is.

    Nothing is published. An interrupted call resumes as `Window.open` does, and so does `Window.open` itself.

    :param policy: its dates do not count yet, past or not
    :param beacon: the witnesses' nonces, if they are known
    :raises PolicyError: the policy is not well-formed, or roster or documents do not fit it
    :raises WindowStateError: the folder already holds a window
    """
    if origin is not None:
        check_line(origin, field="origin")
    placed = {tenant: [passage(d) for d in own] for tenant, own in documents.items()}
    embedder, manifest = inputs_of(policy, roster, placed, embedder)
    make_folder(directory)
    lock = lock_folder(directory)
    try:
        if not unfinished(directory):
            raise WindowStateError("the folder already holds a window", field=str(directory),
                                   hint="prepare the next one in a folder of its own")  # fmt: skip
        _, tenants = commit_tenants(directory, policy, manifest, placed, embedder, progress)
        store_texts(directory, tenants)
        made = Preparation(
            origin=origin,
            policy=policy.dump(),
            embedder=as_json(manifest),
            roster=list(roster),
            tenants=[t.entry for t in tenants.values()],
            beacon=beacon,
            witnesses=[str(w) for w in witnesses],
        )
        made.save(directory)
    finally:
        os.close(lock)
    return made


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
) -> Opening:
    """Date a prepared window, chain it, and write and publish its opening, entry 0; `Window.resume` then goes on.

    Neither texts nor rows are read: the work is that of signing one checkpoint. What is left out is taken from the
    preparation.

    :param policy: one that differs from the prepared one in id and dates only
    :param opens_in: as for `Window.open`
    :raises WindowStateError: nothing is prepared in the folder
    :raises PolicyError: the policy is another, would open in the past, or has another roster; no beacon is known
    """
    if origin is not None:
        check_line(origin, field="origin")
    lock = lock_folder(directory)
    try:
        if not unfinished(directory):
            raise WindowStateError("the folder already holds a window", field=str(directory),
                                   hint="use Window.resume")  # fmt: skip
        made, window_secrets = load_preparation(directory)
        manifest = check_manifest(made.embedder)
        chosen = made.parsed_policy() if policy is None else made.redated(policy)
        if opens_in is not None:
            chosen = chosen.moved(clock() + opens_in)
        check_policy(chosen, manifest["schema"]["dimension"])
        require_future(chosen, clock())
        accounts = made.roster if roster is None else list(roster)
        check_roster(accounts, chosen)
        if (source := beacon or made.beacon) is None:
            raise PolicyError("the window was prepared without a beacon", field="beacon",
                              hint="a nonce line of each witness: `rag-audit open --witness`")  # fmt: skip
        window_secrets = draw_seed(directory, window_secrets)
        opening = opening_of(
            origin=origin or made.origin or key.name, policy=chosen, roster=accounts, manifest=manifest,
            tenants=made.tenants, window_secrets=window_secrets, beacon=source, previous=previous,
        )  # fmt: skip
        stored = StoredCommitment(
            opening=opening,
            policy=chosen.dump(),
            embedder=made.embedder,
            roster=accounts,
            tenants=made.tenants,
            witnesses=[str(w) for w in witnesses_of(witnesses or made.parsed_witnesses(), source)],
        )
        write_stored(directory, stored)
        with open_ledger(Layout(directory).ledger, Layout(directory).ledger_place) as store:
            store.append(opening.canonical()).result()
        forget_unfinished(directory)
        _publish(directory, stored, key)
    finally:
        os.close(lock)
    return opening


def _publish(directory: Path, stored: StoredCommitment, key: SigningKey) -> None:
    """Write what witnesses need, as `Publisher.publish` does for a window that a crash left without it."""
    public, opening = Layout(directory).public, stored.opening
    head = Checkpoint(opening.log, 1, leaf_hash(opening.canonical()))
    replace_file(public.checkpoint(1), str(head.sign(key)).encode())
    publication = Publication(
        mediaType=PUBLICATION,
        opening=opening.dump(),
        policy=stored.policy,
        embedder=stored.embedder,
        roster=[r.dump() for r in stored.roster],
        tenants=[t.dump() for t in stored.tenants],
    )
    replace_file(public.opening, publication.canonical())
