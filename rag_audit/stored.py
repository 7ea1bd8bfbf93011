"""What a provider keeps of a window's commitment in the window's folder, and how it is checked when it is read back."""

from __future__ import annotations

import fcntl
import io
import os
import zipfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from rag_audit.canonical import Json, digest_hex, read_json
from rag_audit.commit import Commitment, WindowSecrets, list_root, recommit
from rag_audit.documents import DocumentStore
from rag_audit.durable import PRIVATE_MODE, replace_file
from rag_audit.engine import Int8Array, TenantIndex
from rag_audit.errors import StoreError, WindowStateError
from rag_audit.ledger.note import VerifierKey
from rag_audit.models import Model
from rag_audit.policy import Policy
from rag_audit.proofs import scan
from rag_audit.records import Opening, RosterEntry, TenantEntry
from rag_audit.relation.commitments import seed_commitment
from rag_audit.relation.field import to_bytes, to_hex

MAX_COMMITMENT_BYTES = 64 << 20
SECRETS_FILE = "secrets.json"


class _StoredCommitment(Model):
    """commitment.json: the provider's copy of what the opening commits to."""

    opening: Opening
    policy: Policy
    embedder: dict[str, Json]
    roster: list[RosterEntry]
    tenants: list[TenantEntry]
    witnesses: list[str]


def lock_folder(directory: Path) -> int:
    """Hold a window's folder for this process; close the handle to let go.

    :raises WindowStateError: another process holds it
    """
    try:
        handle = os.open(directory / ".lock", os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as exc:
        raise StoreError("window folder cannot be opened", field=str(directory), found=exc.strerror) from exc
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as exc:
        os.close(handle)
        raise WindowStateError("another process has this window open", field=str(directory)) from exc
    return handle


def store_commitment(directory: Path, made: Commitment, witnesses: Sequence[VerifierKey]) -> None:
    """Write what a commitment fixed: secrets, texts, indices, and the documents behind the opening."""
    made.secrets.save(directory / SECRETS_FILE)
    with DocumentStore(directory / "documents.sqlite") as documents:
        for name, tenant in made.tenants.items():
            documents.replace(name, tenant.texts)
    for name, tenant in made.tenants.items():
        data = io.BytesIO()
        np.savez(data, rows=tenant.index.rows, positions=np.array(tenant.index.positions, np.int64))
        replace_file(directory / "index" / f"{name}.npz", data.getvalue(), mode=PRIVATE_MODE)
        if tenant.points:
            scan.keep_index_file(*_points_file(directory, name, tenant.index, made.secrets), tenant.points)
    stored = _StoredCommitment(
        opening=made.opening,
        policy=made.policy,
        embedder=made.manifest,
        roster=list(made.roster),
        tenants=[t.entry for t in made.tenants.values()],
        witnesses=[str(w) for w in witnesses],
    )
    replace_file(directory / "commitment.json", stored.canonical())


def forget(directory: Path) -> None:
    """Delete a window's secrets: seed, blindings, and the key under which queries and salts were retained.

    Nothing can be proved or answered any more; what was published stays verifiable. The policy's `delete_after` is
    the date on which `Window.resume` does the same by itself.

    :raises WindowStateError: a process has the window open
    """
    lock = lock_folder(directory)
    try:
        (directory / SECRETS_FILE).unlink(missing_ok=True)
    finally:
        os.close(lock)


def load_commitment(directory: Path, now: int) -> tuple[Commitment, list[VerifierKey]]:
    """Read it back, and recompute every commitment from it.

    :returns: the commitment and the witnesses whose cosignatures are waited for
    :raises StoreError: missing, damaged, or not what the opening committed to
    :raises WindowStateError: the secrets were deleted on the policy's date
    """
    stored = _StoredCommitment.parse(
        read_json(directory / "commitment.json", max_bytes=MAX_COMMITMENT_BYTES), field="commitment.json"
    )
    delete_after = stored.policy.delete_after
    if now >= delete_after:
        (directory / SECRETS_FILE).unlink(missing_ok=True)
        raise WindowStateError("the window's secrets were deleted on the policy's date", field=str(directory),
                               expected=f"use before {delete_after}", found=now)  # fmt: skip
    drawn = WindowSecrets.load(directory / SECRETS_FILE)
    if set(drawn.index_salts) != {t.tenant for t in stored.tenants}:
        raise StoreError("secrets are another window's", field=f"{SECRETS_FILE}.index_salts")
    tenants = {}
    with DocumentStore(directory / "documents.sqlite") as documents:
        for committed in stored.tenants:
            name, part = committed.tenant, stored.policy.tenant(committed.tenant)
            if part is None:
                raise StoreError("tenants and policy disagree", field=f"tenant {name}")
            index = _load_index(directory, name)
            points = None
            if part.system == "scan":
                # Making them again takes most of a minute at 10^6 positions: only if the file is lost.
                points = scan.commit_index_file(*_points_file(directory, name, index, drawn))
            texts = documents.texts(name)
            tenants[name] = recommit(name, part.system, index, texts, drawn, points=points)
            if tenants[name].entry != committed:
                raise StoreError("index or texts changed inside the window", field=f"tenant {name}",
                                 expected=committed.dump(), found=tenants[name].entry.dump())  # fmt: skip
    made = Commitment(stored.opening, stored.policy, stored.embedder, stored.roster, tenants, drawn)
    for name, committed_to, found in (
        ("c_seed", stored.opening.c_seed, to_hex(seed_commitment(drawn.s0, drawn.s1))),
        ("c_policy", stored.opening.c_policy, stored.policy.digest()),
        ("c_emb", stored.opening.c_emb, digest_hex(stored.embedder)),
        ("roster", stored.opening.roster, list_root(stored.roster)),
        ("tenants", stored.opening.tenants, list_root(stored.tenants)),
    ):
        if committed_to != found:
            raise StoreError("stored state is not what the opening committed to", field=f"opening.{name}",
                             expected=committed_to, found=found)  # fmt: skip
    return made, [VerifierKey.parse(w, field="commitment.witnesses") for w in stored.witnesses]


def _load_index(directory: Path, tenant: str) -> TenantIndex:
    path = directory / "index" / f"{tenant}.npz"
    try:
        with np.load(path, allow_pickle=False) as data:
            return TenantIndex(data["rows"], tuple(int(p) for p in data["positions"]))
    except (OSError, ValueError, KeyError, EOFError, TypeError, zipfile.BadZipFile) as exc:
        raise StoreError("index cannot be read", field=f"index/{tenant}.npz", found=str(exc)) from exc


def _points_file(
    directory: Path, tenant: str, index: TenantIndex, drawn: WindowSecrets
) -> tuple[Path, Int8Array, int, bytes]:
    """Where a scan tenant's index commitment is kept, and what its tag is over."""
    path = directory / "index" / f"{tenant}.points"
    return path, index.rows, index.capacity, to_bytes(drawn.index_salts[tenant])
