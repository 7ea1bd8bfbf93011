"""The beginning of a window: its folder, and the commitment that is made there or read back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from rag_audit._internal.errors import PolicyError, StoreError, WindowStateError
from rag_audit.commit.commitment import Commitment, check_inputs, commit
from rag_audit.commit.stored import (
    OpenProgress,
    commit_tenants,
    draw_seed,
    load_commitment,
    store_commitment,
    store_texts,
    unfinished,
)
from rag_audit.log.keys import VerifierKey
from rag_audit.models.beacon import members_of
from rag_audit.models.layout import Layout
from rag_audit.models.manifest import Manifest
from rag_audit.models.models import check_line
from rag_audit.models.passage import Passage
from rag_audit.models.policy import Policy
from rag_audit.models.records import BeaconSource, PreviousWindow, RosterEntry, WitnessBeacon
from rag_audit.proofs.policy import check_policy
from rag_audit.retrieval.embedders import Embedder, get_embedder


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
        raise StoreError("the window's folder cannot be made", field=str(folder), found=exc.strerror) from exc


def witnesses_of(witnesses: Sequence[VerifierKey], beacon: BeaconSource) -> list[VerifierKey]:
    """The witnesses whose cosignatures the window waits for: the given ones, or else the beacon's.

    :raises PolicyError: there are no witnesses
    """
    found = list(witnesses)
    if not found and isinstance(beacon, WitnessBeacon):
        found = [m.vkey for m in members_of(beacon)]
    if not found:
        raise PolicyError("a window needs witnesses", field="witnesses")
    return found


def require_future(policy: Policy, now: int) -> None:
    """Refuse a window that would open in the past, which witnesses would not cosign.

    :raises PolicyError: the window would open in the past
    """
    if policy.opens_at <= now:
        raise PolicyError("a window must be committed before it opens", field="policy.opens_at",
                          expected=f"later than {now}", found=policy.opens_at,
                          hint="`open --opens-in 15m` dates it once all is committed, and keeps what is")  # fmt: skip


def begin(
    folder: Path,
    *,
    origin: str,
    policy: Policy,
    roster: Sequence[RosterEntry],
    manifest: Manifest,
    documents: Mapping[str, Sequence[Passage]],
    beacon: BeaconSource,
    witnesses: Sequence[VerifierKey],
    embedder: Embedder,
    previous: PreviousWindow | None,
    opens_in: int | None,
    clock: Callable[[], int],
    progress: OpenProgress | None,
) -> Commitment:
    """Commit to everything in a folder that this process has locked. Parameters are those of `Window.open`.

    :param manifest: the manifest that `check_inputs` returned
    :raises WindowStateError: the folder already holds a window
    """
    check_line(origin, field="origin")
    if not unfinished(folder):
        raise WindowStateError(
            "the folder already holds a window", field=str(folder), hint="use Window.resume"
        )
    window_secrets, tenants = commit_tenants(folder, policy, manifest, documents, embedder, progress)
    store_texts(folder, tenants)
    # All that takes long is done by now, so that a date counted from here leaves the witnesses their time.
    if opens_in is not None:
        policy = policy.moved(clock() + opens_in)
        check_policy(policy, embedder.dimension)
    # Checked again, since large indices can take longer than their provider expected.
    require_future(policy, clock())
    window_secrets = draw_seed(folder, window_secrets)
    commitment = commit(origin=origin, policy=policy, roster=roster, manifest=manifest, tenants=tenants,
                  window_secrets=window_secrets, beacon=beacon, previous=previous)  # fmt: skip
    store_commitment(folder, commitment, witnesses)
    return commitment


def inputs_of(
    policy: Policy,
    roster: Sequence[RosterEntry],
    documents: Mapping[str, Sequence[Passage]],
    embedder: Embedder | None,
) -> tuple[Embedder, Manifest]:
    """The embedder, and the manifest under C_emb, for inputs that fit together.

    :raises PolicyError: the inputs do not fit together
    """
    embedder = embedder or get_embedder(
        query_tokens=policy.tokens.query, document_tokens=policy.tokens.document
    )
    return embedder, check_inputs(policy, roster, documents, embedder)


def read_back(
    folder: Path, now: int, embedder: Embedder | None, model: Path | None = None
) -> tuple[Commitment, list[VerifierKey], Embedder]:
    """Read back and check the commitment in a folder, with its witnesses and its embedder.

    :param model: the files of the committed embedder, if it has any and is not given itself
    :raises StoreError: the state is missing or altered, or the embedder is not the committed one
    """
    commitment, witnesses = load_commitment(folder, now)
    return commitment, witnesses, committed_embedder(commitment.manifest, commitment.policy, embedder, model)


def committed_embedder(
    manifest: Manifest, policy: Policy, embedder: Embedder | None = None, model: Path | None = None
) -> Embedder:
    """The embedder that a window committed to: the given one, or that of its name.

    :param model: its files, if it has any and is not given itself
    :raises StoreError: it is not the committed one
    """
    part, tokens = manifest["embedder"], policy.tokens
    embedder = embedder or get_embedder(
        part["kind"], folder=model, query_tokens=tokens.query, document_tokens=tokens.document
    )
    if embedder.manifest() != part:
        raise StoreError("the embedder is not the committed one", field="embedder", expected=part["kind"])
    return embedder
