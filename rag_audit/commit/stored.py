"""A window's commitment as it is stored in the window's folder, and its check when it is read back.

The rows of an index are in a file that is mapped into memory and must not change while a window is open. The files of
an interrupted `Window.open` are reused only for the very same documents: one blinding never hides two indices.
"""

from __future__ import annotations

import functools
import hashlib
import io
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

import numpy as np

from rag_audit._internal.canonical import Json, digest_hex, jcs, read_json
from rag_audit._internal.durable import PRIVATE_MODE, replace_file, sync_directory
from rag_audit._internal.errors import RagAuditError, SetupError, SizeError, StoreError, WindowStateError
from rag_audit._internal.lock import lock_file
from rag_audit.commit.commitment import Commitment, CommittedTenant, WindowSecrets, commit_tenant
from rag_audit.commit.tables import PlacedTable, WindowTable, load_table, store_table
from rag_audit.log.keys import VerifierKey
from rag_audit.log.place import begun, open_ledger
from rag_audit.models.header import compared
from rag_audit.models.layout import Layout
from rag_audit.models.manifest import Manifest, as_json, check_manifest
from rag_audit.models.models import Model
from rag_audit.models.passage import Passage
from rag_audit.models.policy import Policy
from rag_audit.models.publication import PUBLICATION, Publication
from rag_audit.models.records import RosterEntry, TenantEntry, WindowHeader
from rag_audit.models.tenants import TenantPolicy
from rag_audit.proofs.proving import backend
from rag_audit.relation.field import to_bytes, to_hex
from rag_audit.relation.native_secrets import seed_commitment
from rag_audit.retrieval.documents import DocumentStore
from rag_audit.retrieval.embedders import Embedder
from rag_audit.retrieval.embedders.base import document_number
from rag_audit.retrieval.engine import TenantIndex, check_vectors, draw_positions

MAX_COMMITMENT_BYTES = 64 << 20
MAX_KEYS_BYTES = 1 << 20
EMBED_RUN = 4096
"""The number of documents that are embedded at a time."""

OpenProgress = Callable[[str, int, int], None]
"""A function of (step, done, total)."""


class StoredCommitment(Model):
    """commitment.json: the provider's copy of the committed values."""

    header: WindowHeader
    policy: dict[str, Json]
    embedder: dict[str, Json]
    roster: list[RosterEntry]
    tenants: list[TenantEntry]
    witnesses: list[str]

    @classmethod
    def of(cls, commitment: Commitment, witnesses: Sequence[VerifierKey]) -> StoredCommitment:
        """A commitment, with the witnesses that its window waits for."""
        return cls(
            header=commitment.header,
            policy=commitment.policy.dump(),
            embedder=as_json(commitment.manifest),
            roster=list(commitment.roster),
            tenants=[t.entry for t in commitment.tenants.values()],
            witnesses=[str(w) for w in witnesses],
        )

    def publication(self) -> Publication:
        """The published part of the commitment, header.json."""
        return Publication(
            mediaType=PUBLICATION,
            header=self.header.dump(),
            policy=self.policy,
            embedder=self.embedder,
            roster=[r.dump() for r in self.roster],
            tenants=[t.dump() for t in self.tenants],
        )


def lock_folder(directory: Path) -> int:
    """Lock a window's folder for this process until the returned handle is closed.

    :raises WindowStateError: another process has locked it
    :raises StoreError: there is no such folder
    """
    handle = lock_file(Layout(directory).lock, wait=False)
    if handle is not None:
        return handle
    raise WindowStateError("another process has this window open", field=str(directory),
                           hint="stop it, or read beside it: `rag-audit provider status`, `provider estimate"
                                " window`")  # fmt: skip


def unfinished(directory: Path) -> bool:
    """Whether a folder contains no window yet: it is empty, or an interrupted `Window.open` left no durable header.

    :raises StoreError: the ledger cannot be read
    """
    layout = Layout(directory)
    if not layout.unfinished.exists():
        return not any(p.exists() for p in (layout.ledger, layout.secrets, layout.commitment))
    if not begun(layout.ledger, layout.ledger_place):
        return True
    with open_ledger(layout.ledger, layout.ledger_place) as store:
        return len(store) == 0


def fix_keys(directory: Path, keys: Mapping[str, str]) -> None:
    """Store the verification keys of a window's proofs when they are first used, since all proofs of a circuit must
    verify under the one key that the window file publishes.

    :param keys: digest of the verification key by circuit
    :raises SetupError: the window has another key for one of the circuits
    """
    path = Layout(directory).verification_keys
    known = read_json(path, max_bytes=MAX_KEYS_BYTES) if path.exists() else {}
    if not isinstance(known, dict):
        raise StoreError("the file does not contain a window's verification keys", field=str(path))
    for circuit, vk in keys.items():
        if known.get(circuit, vk) != vk:
            raise SetupError(
                "the installed key belongs to another window",
                field=f"circuit {circuit}",
                expected=f"vk {known[circuit]}",
                actual=f"vk {vk}",
                hint="keys change between windows: restore the window's own key in the cache",
            )
    if not known.keys() >= keys.keys():
        replace_file(path, jcs({**known, **keys}))


def delete_unfinished(directory: Path) -> None:
    """Mark the folder as a window's, once its header is durable."""
    Layout(directory).prepared.unlink(missing_ok=True)
    Layout(directory).unfinished.unlink(missing_ok=True)


def commit_tenants(
    directory: Path,
    policy: Policy,
    manifest: Manifest,
    documents: Mapping[str, Sequence[Passage]],
    embedder: Embedder,
    progress: OpenProgress | None,
    tables: Mapping[str, PlacedTable],
) -> tuple[WindowSecrets, dict[str, CommittedTenant]]:
    """Embed the tenants' texts, place them at random positions, and commit to vectors and texts.

    If an interrupted call left parts in the folder of an `unfinished` window, this call reuses them if all inputs of
    indices and texts are the same. Otherwise it deletes them, including the secrets.

    :param tables: the document tables of tenants that have one (`tables.place_tables`)
    :raises RagAuditError: a text cannot be embedded
    :raises StoreError: a file cannot be written, or changed since it was; or a text has no row of its document table
    """
    window_secrets = _begin(directory, digest_hex(_inputs(policy, manifest, documents)), sorted(documents))
    tenants = {}
    for tenant_policy in policy.tenants:
        own = documents[tenant_policy.tenant]
        index = _make_index(directory, tenant_policy, own, embedder, progress)
        placed = dict(zip(index.positions, own, strict=True))
        table = None
        if (placed_table := tables.get(tenant_policy.tenant)) is not None:
            table = placed_table.at(own, index.positions, tenant_policy.capacity)
            table.require_rows(tenant_policy.tenant, placed)
            store_table(directory, tenant_policy.tenant, table)
        tenants[tenant_policy.tenant] = _committed(
            directory, tenant_policy, index, placed, window_secrets, table, progress
        )
    return window_secrets, tenants


def _inputs(
    policy: Policy, manifest: Manifest, documents: Mapping[str, Sequence[Passage]]
) -> dict[str, Json]:
    """The inputs that determine the rows, the texts and their blindings."""
    tenants: list[Json] = []
    for tenant_policy in policy.tenants:
        over_texts = hashlib.sha256()
        for document in documents[tenant_policy.tenant]:
            data = document.data
            over_texts.update(len(data).to_bytes(8, "big") + data)
        tenants.append(
            {"tenant": tenant_policy.tenant, "system": tenant_policy.system, "texts": over_texts.hexdigest()}
        )
    return {"manifest": as_json(manifest), "tenants": tenants}


def _begin(directory: Path, inputs: str, tenants: Sequence[str]) -> WindowSecrets:
    """The secrets that an interrupted call drew for the same inputs. If there are none, the function first deletes
    all data that depend on other secrets, and then draws new ones."""
    layout = Layout(directory)
    marker, secrets, index = layout.unfinished, layout.secrets, layout.indices
    kept = jcs({"v": 1, "inputs": inputs})
    window_secrets = None
    with suppress(OSError, RagAuditError):  # interrupted before there was anything to go on with
        if marker.read_bytes() == kept:
            window_secrets = WindowSecrets.load(secrets)
    try:
        layout.prepared.unlink(missing_ok=True)
        if window_secrets is None:
            secrets.unlink(missing_ok=True)
            sync_directory(directory)
        for path in index.iterdir() if window_secrets is None else index.glob(".*"):
            path.unlink()
    except OSError as exc:
        raise StoreError.of_os_error(exc, "the file cannot be removed", field=directory) from exc
    if window_secrets is None:
        replace_file(marker, kept, mode=PRIVATE_MODE)
        window_secrets = WindowSecrets.draw(tenants)
        window_secrets.save(secrets)
    return window_secrets


def _make_index(
    directory: Path,
    tenant_policy: TenantPolicy,
    documents: Sequence[Passage],
    embedder: Embedder,
    progress: OpenProgress | None,
) -> TenantIndex:
    """A tenant's index, read from its file or made and stored there."""
    texts = [document.text for document in documents]
    layout = Layout(directory)
    rows, positions = layout.rows(tenant_policy.tenant), layout.positions(tenant_policy.tenant)
    if not rows.exists():
        drawn_positions = draw_positions(len(texts), tenant_policy.capacity)
        data = io.BytesIO()
        np.save(data, np.array(drawn_positions, np.int64))
        replace_file(positions, data.getvalue(), mode=PRIVATE_MODE)

        def write(out: BinaryIO) -> None:
            shape = (tenant_policy.capacity, embedder.dimension)
            header = {"descr": "|i1", "fortran_order": False, "shape": shape}
            np.lib.format.write_array_header_1_0(out, header)
            start = out.tell()
            out.truncate(start + tenant_policy.capacity * embedder.dimension)
            for first in range(0, len(texts), EMBED_RUN):
                if progress is not None:
                    progress(f"documents of {tenant_policy.tenant}", first, len(texts))
                try:
                    vectors = embedder.embed_documents(texts[first : first + EMBED_RUN], first=first)
                except RagAuditError as exc:
                    if (number := document_number(exc)) is not None:
                        exc.field = documents[number].name_in(tenant_policy.tenant, number)
                    raise
                check_vectors(vectors, dimensions=2, field="document vectors")
                for position, vector in zip(drawn_positions[first : first + EMBED_RUN], vectors, strict=True):
                    out.seek(start + position * embedder.dimension)
                    out.write(vector.tobytes())

        replace_file(rows, write, mode=PRIVATE_MODE)
        if progress is not None:
            progress(f"documents of {tenant_policy.tenant}", len(texts), len(texts))
    return _load_index(directory, tenant_policy.tenant)


def _committed(
    directory: Path,
    tenant_policy: TenantPolicy,
    index: TenantIndex,
    documents_at: Mapping[int, Passage],
    window_secrets: WindowSecrets,
    table: WindowTable | None,
    progress: OpenProgress | None = None,
) -> CommittedTenant:
    """The commitments to a tenant's stored index and texts. The function reads slow commitments from their file."""
    name = tenant_policy.tenant
    salt = to_bytes(window_secrets.index_salts[name])
    shown = progress and functools.partial(progress, f"index of {name}")
    system = backend(tenant_policy.system)
    committed = system.commit_index(index.rows, salt, Layout(directory).points(name), progress=shown)
    entry = None if table is None else (table, table.entry(system))
    return commit_tenant(name, index, documents_at, window_secrets, committed, entry)


def draw_seed(directory: Path, window_secrets: WindowSecrets) -> WindowSecrets:
    """Draw the seed of a window that is about to open, and replace the seed from its preparation.

    No slow computation depends on the seed. An unopened folder may be a copy of another folder, or a restored backup.
    With one seed and one beacon, both windows would draw the same noise.
    """
    drawn = window_secrets.with_new_seed()
    drawn.save(Layout(directory).secrets, again=True)
    return drawn


def store_texts(directory: Path, tenants: Mapping[str, CommittedTenant]) -> None:
    """Store the tenants' texts by position next to their indices. The function removes the texts of other tenants,
    which an earlier attempt may have stored."""
    with DocumentStore(Layout(directory).documents) as documents:
        documents.keep(tenants)
        for name, tenant in tenants.items():
            documents.replace(name, tenant.documents_at)


def store_commitment(directory: Path, commitment: Commitment, witnesses: Sequence[VerifierKey]) -> None:
    """Store the rest of a commitment next to its indices and texts: the documents that the window header commits to."""
    write_stored(directory, StoredCommitment.of(commitment, witnesses))


def write_stored(directory: Path, stored: StoredCommitment) -> None:
    """Write commitment.json.

    :raises SizeError: the roster exceeds the maximum size that accounts and witnesses read
    """
    data = stored.canonical()
    if len(data) > MAX_COMMITMENT_BYTES:
        raise SizeError("the roster is larger than the limit of accounts and witnesses", field="roster",
                        expected=f"at most {MAX_COMMITMENT_BYTES} bytes with the policy", actual=f"{len(data)}",
                        hint="open the window with fewer accounts, and enrol the other accounts in another"
                             " window")  # fmt: skip
    replace_file(Layout(directory).commitment, data)


def delete_secrets(directory: Path) -> None:
    """Delete a window's secrets: seed, blindings, and the key that encrypts retained queries and salts.

    After the deletion no proof or answer can be made for the window; published data remain verifiable. On the policy's
    date `delete_after`, `Window.resume` does the same without a call of this function. The document tables and their
    key stay, because the next window of the chain continues the tables (`commit.tables`).

    :raises WindowStateError: a process has the window open
    """
    lock = lock_folder(directory)
    try:
        Layout(directory).secrets.unlink(missing_ok=True)
    finally:
        os.close(lock)


def load_stored(directory: Path) -> StoredCommitment:
    """The provider's copy of the committed values. This function compares it with no other data.

    :raises EncodingError: the file cannot be read
    """
    value = read_json(Layout(directory).commitment, max_bytes=MAX_COMMITMENT_BYTES)
    return StoredCommitment.parse(value, field="commitment.json")


def load_commitment(directory: Path, now: int) -> tuple[Commitment, list[VerifierKey]]:
    """Read a stored commitment back, and recompute every commitment from its parts.

    :returns: the commitment, and the witnesses that the window waits for
    :raises StoreError: a part is missing, damaged, or does not match the commitment in the window header; or a text
        has no row of its document table
    :raises WindowStateError: the secrets were deleted on the policy's date
    """
    stored = load_stored(directory)
    policy = Policy.parse(stored.policy, field="commitment.json.policy")
    delete_after = policy.delete_after
    if now >= delete_after:
        Layout(directory).secrets.unlink(missing_ok=True)
        raise WindowStateError("the window's secrets were deleted on the policy's date", field=str(directory),
                               expected=f"use before {delete_after}", actual=now)  # fmt: skip
    window_secrets = WindowSecrets.load(Layout(directory).secrets)
    if set(window_secrets.index_salts) != {t.tenant for t in stored.tenants}:
        raise StoreError("the secrets belong to another window", field="secrets.json.index_salts")
    tenants = {}
    with DocumentStore(Layout(directory).documents) as documents:
        for committed in stored.tenants:
            name, tenant_policy = committed.tenant, policy.tenant(committed.tenant)
            if tenant_policy is None:
                raise StoreError(
                    "the stored tenants differ from the policy's tenants", field=f"tenant {name}"
                )
            index = _load_index(directory, name)
            table = None if tenant_policy.documents is None else load_table(directory, name)
            tenants[name] = _committed(
                directory, tenant_policy, index, documents.passages(name), window_secrets, table
            )
            if tenants[name].entry != committed:
                raise StoreError("the index, the texts or the document table changed inside the window",
                                 field=f"tenant {name}", expected=committed.dump(),
                                 actual=tenants[name].entry.dump())  # fmt: skip
            if table is not None:  # another program may have committed to the window
                table.require_rows(name, tenants[name].documents_at)
    commitment = Commitment(
        stored.header, policy, check_manifest(stored.embedder), stored.roster, tenants, window_secrets
    )
    for name, committed_to, actual in (
        ("c_seed", stored.header.c_seed, to_hex(seed_commitment(window_secrets.s0, window_secrets.s1))),
        *compared(stored.header, policy=stored.policy, embedder=stored.embedder, roster=stored.roster,
                  tenants=stored.tenants),
    ):  # fmt: skip
        if committed_to != actual:
            raise StoreError("the stored state differs from the commitments of the window"
                             " header", field=f"header.{name}",
                             expected=committed_to, actual=actual)  # fmt: skip
    return commitment, [VerifierKey.parse(w, field="commitment.witnesses") for w in stored.witnesses]


def _load_index(directory: Path, tenant: str) -> TenantIndex:
    layout = Layout(directory)
    rows, positions = layout.rows(tenant), layout.positions(tenant)
    path = rows
    try:
        mapped = np.lib.format.open_memmap(rows, mode="r")
        path = positions
        with positions.open("rb") as file:
            stored_positions = np.lib.format.read_array(file, allow_pickle=False)
        return TenantIndex(mapped, tuple(int(p) for p in stored_positions))
    except (OSError, ValueError, EOFError, TypeError) as exc:
        raise StoreError("the index cannot be read", field=f"index/{path.name}", actual=str(exc)) from exc
