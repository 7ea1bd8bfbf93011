"""Phase A, commit: fix everything that a window will be checked against before it opens.

This module writes no files; `stored` stores its results. Every commitment to tenant data is hiding and freshly blinded
in each window, so that published commitments cannot be compared, or subtracted, across windows.
"""

from __future__ import annotations

import hashlib
import heapq
import hmac
import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rag_audit._internal.canonical import Json, digest_hex, jcs, parse_hex, parse_json
from rag_audit._internal.durable import PRIVATE_MODE, create_private, read_private, replace_file
from rag_audit._internal.errors import PolicyError, SchemaError, StoreError
from rag_audit.commit.provable import check_encoder
from rag_audit.commit.tables import WindowTable, key_of
from rag_audit.log.merkle import leaf_hash
from rag_audit.log.tlog_proof import MAX_PROOF_BYTES
from rag_audit.log.tree import MerkleTree
from rag_audit.models.header import check_roster, list_root
from rag_audit.models.manifest import Manifest, as_json
from rag_audit.models.names import NameOpening
from rag_audit.models.passage import EMPTY, Passage
from rag_audit.models.policy import Policy
from rag_audit.models.records import (
    EMPTY_LEDGER,
    BeaconSource,
    PreviousWindow,
    RosterEntry,
    SlotKey,
    TableEntry,
    TenantEntry,
    WindowHeader,
    document_digest,
)
from rag_audit.models.requests import MAX_ANSWER_BYTES
from rag_audit.proofs.backends import SYSTEMS
from rag_audit.proofs.coalition import coalition_proof_policy
from rag_audit.proofs.policy import check_policy
from rag_audit.proofs.proving import IndexCommitment, backend
from rag_audit.proofs.statements.tenant import proof_constants
from rag_audit.relation.field import from_hex, random_element, to_hex
from rag_audit.relation.native_secrets import seed_commitment
from rag_audit.retrieval.embedders import Embedder, owner_of_score_window
from rag_audit.retrieval.engine import TenantIndex, check_capacity

_DOCUMENT_BYTES = 192
"""Upper bound on a document's fields in an answer other than its text, its metadata and the key of its document."""


def _bytes_of(text: str) -> int:
    """The bytes of a text in an answer's JSON."""
    return len(json.dumps(text, ensure_ascii=False).encode())


@dataclass(frozen=True)
class WindowSecrets:
    """The secrets that stay with the provider: seed, blindings, and the key of the data retained for later proving.

    :param index_salts: the salt of each tenant's C_idx, or the 32-byte blinding key of a scan tenant's commitment
    :param document_key: PRF key of the salts under C_docs
    :param retention_key: the key that encrypts queries until the policy's deletion date, and the blindings of noise
        proofs until their use; deleting it deletes them
    """

    s0: int
    s1: int
    index_salts: Mapping[str, int]
    document_key: bytes
    retention_key: bytes

    def __repr__(self) -> str:
        return "WindowSecrets(...)"

    @classmethod
    def draw(cls, tenants: Sequence[str]) -> WindowSecrets:
        """Draw fresh secrets from the operating system."""
        return cls(
            s0=random_element(),
            s1=random_element(),
            index_salts={tenant: random_element() for tenant in tenants},
            document_key=secrets.token_bytes(32),
            retention_key=secrets.token_bytes(32),
        )

    def document_salt(self, tenant: str, position: int) -> bytes:
        """The 32-byte salt of one committed position: HMAC-SHA256(document_key, tenant || 0 || position)."""
        message = tenant.encode() + b"\0" + position.to_bytes(8, "big")
        return hmac.digest(self.document_key, message, "sha256")

    def column_salt(self, name: str, tenant: str) -> bytes:
        """The 32-byte salt of the commitment to a tenant's column: HMAC-SHA256(document_key, "/" || name || 0 ||
        tenant). No tenant's id starts with a slash, so no document has this salt."""
        return hmac.new(self.document_key, f"/{name}\0{tenant}".encode(), hashlib.sha256).digest()

    def listed_rows_secret(self, slot: SlotKey, hq: str, before: str | None) -> bytes:
        """The 32 secret bytes behind the commitment to a tenant's listed rows after a record:
        HMAC-SHA256(document_key, "/listed" || 0 || slot, hq and the preceding commitment). A different question in the
        slot gives different bytes. A different preceding chain, which a restored backup could start, does so too.

        :param before: the commitment in the tenant's preceding record; None before its first
        """
        named: Json = {
            "tenant": slot.tenant, "account": slot.account, "i": slot.i, "hq": hq, "before": before,
        }  # fmt: skip
        return hmac.new(self.document_key, b"/listed\0" + jcs(named), hashlib.sha256).digest()

    def with_new_seed(self) -> WindowSecrets:
        """The same secrets with another seed, drawn from the operating system."""
        return replace(self, s0=random_element(), s1=random_element())

    def save(self, path: Path, *, again: bool = False) -> None:
        """Write the secrets to a new file with mode 0600.

        :param again: replace an existing file
        """
        value: Json = {
            "v": 1,
            "s0": to_hex(self.s0),
            "s1": to_hex(self.s1),
            "index_salts": {t: to_hex(s) for t, s in self.index_salts.items()},
            "document_key": self.document_key.hex(),
            "retention_key": self.retention_key.hex(),
        }
        if again:
            replace_file(path, jcs(value), mode=PRIVATE_MODE)
        else:
            create_private(path, jcs(value))

    @classmethod
    def load(cls, path: Path) -> WindowSecrets:
        """Read the secrets back; a file that others can read is refused, since they may know the noise already."""
        name = path.name
        value = parse_json(read_private(path, max_bytes=16 << 20), source=name)
        salts = value.get("index_salts") if isinstance(value, dict) else None
        if not isinstance(value, dict) or value.get("v") != 1 or not isinstance(salts, dict):
            raise SchemaError("the file does not contain a window's secrets", field=name)
        return cls(
            s0=from_hex(value.get("s0"), field=f"{name}.s0"),
            s1=from_hex(value.get("s1"), field=f"{name}.s1"),
            index_salts={t: from_hex(s, field=f"{name}.index_salts") for t, s in salts.items()},
            document_key=parse_hex(value.get("document_key"), 32, field=f"{name}.document_key"),
            retention_key=parse_hex(value.get("retention_key"), 32, field=f"{name}.retention_key"),
        )


@dataclass(frozen=True)
class CommittedTenant:
    """One tenant's private index and its public entry.

    :param documents_at: the document at each occupied position
    :param documents: the tree with root C_docs and one leaf for each position
    :param points: the points with digest C_idx; empty for proof systems without points
    :param table: the document table, if the tenant has one
    """

    entry: TenantEntry
    index: TenantIndex
    documents_at: Mapping[int, Passage]
    documents: MerkleTree
    points: bytes = b""
    table: WindowTable | None = None

    def name_at(self, position: int) -> NameOpening | None:
        """The opening of the name of the document at an occupied position; None without a document table.

        :raises StoreError: the position has no row, so its text belongs to no document and may not be returned
        """
        if self.table is None:
            return None
        rows, number = self.table.table.rows, int(self.table.row_of_position[position])
        if number >= len(rows) or (key := rows[number].key) is None:
            raise StoreError(
                "a passage has no row in the document table",
                field=f"position {position} of {self.entry.tenant}",
                expected="a row with a name for each passage",
                hint="restore the window's folder from a copy: another program changed the table or the texts",
            )
        return NameOpening(key=key, salt=rows[number].salt.hex())


@dataclass(frozen=True)
class Commitment:
    """The result of `commit`: the window header, the documents that its digests name, and the secrets behind them."""

    header: WindowHeader
    policy: Policy
    manifest: Manifest
    roster: Sequence[RosterEntry]
    tenants: Mapping[str, CommittedTenant]
    secrets: WindowSecrets


def embedder_manifest(embedder: Embedder, policy: Policy) -> Manifest:
    """The manifest under C_emb: embedder artefacts with their prompt template, and the schema (the paper's R1)."""
    return {
        "v": 1,
        "embedder": embedder.manifest(),
        "schema": {
            "dimension": embedder.dimension,
            "tenants": [{"tenant": t.tenant, "capacity": t.capacity} for t in policy.tenants],
        },
    }


def check_score_window(policy: Policy, embedder: Embedder) -> None:
    """Refuse a policy whose score window was chosen for another embedder, whose scores have another range.

    :raises PolicyError: the window is another embedder's default
    """
    noise = policy.noise
    if noise is None or (noise.lo, noise.hi) == embedder.score_window:
        return
    owner = owner_of_score_window(noise.lo, noise.hi)
    if owner not in (None, embedder.name):
        lo, hi = embedder.score_window
        raise PolicyError(
            "the policy's score window belongs to another embedder", field="policy.noise",
            expected=f"{lo}..{hi}, the window of {embedder.name}",
            actual=f"{noise.lo}..{noise.hi}, the window of {owner}",
            hint=f"make a policy with `rag-audit provider policy new --embedder {embedder.name}`",
        )  # fmt: skip


def check_limits(policy: Policy, embedder: Embedder) -> None:
    """Refuse token limits that the embedder does not have, for example above the maximum of its model.

    :raises PolicyError: the embedder's limits differ from the policy's
    """
    limits = (embedder.limits.query, embedder.limits.document)
    if limits != (policy.tokens.query, policy.tokens.document):
        raise PolicyError("the embedder's token limits differ from the policy's limits", field="policy.tokens",
                          expected=f"query {limits[0]}, document {limits[1]}",
                          actual=f"query {policy.tokens.query}, document {policy.tokens.document}",
                          hint=f"make a policy with `rag-audit provider policy new --embedder {embedder.name}"
                               f" --query-tokens {limits[0]}`, which takes the embedder's limit for"
                               " documents")  # fmt: skip


def check_inputs(
    policy: Policy,
    roster: Sequence[RosterEntry],
    documents: Mapping[str, Sequence[Passage]],
    embedder: Embedder,
) -> Manifest:
    """Check that a window's inputs are consistent.

    :param documents: documents by tenant; every tenant of the policy must have its own, within its capacity
    :returns: the embedder's manifest
    :raises PolicyError: the policy is not well-formed, or embedder, roster and documents do not fit it
    :raises CapacityError: there are more documents than positions
    """
    check_policy(policy, embedder.dimension)
    check_score_window(policy, embedder)
    check_coalition_proof(policy, embedder.dimension)
    check_roster(roster, policy)
    check_tenants(policy, documents)
    for part in policy.tenants:
        check_capacity(len(documents[part.tenant]), part.capacity, field=f"documents.{part.tenant}")
        mechanism = policy.mechanism(part)
        named = mechanism.table is not None
        check_answers(part.tenant, documents[part.tenant], mechanism.longest, named=named)
    check_limits(policy, embedder)
    manifest = embedder_manifest(embedder, policy)
    check_circuits(policy, manifest)
    return manifest


def check_tenants(policy: Policy, documents: Mapping[str, Sequence[Passage]]) -> None:
    """Check that documents and policy name the same tenants.

    :raises PolicyError: they do not
    """
    if set(documents) != (named := {t.tenant for t in policy.tenants}):
        raise PolicyError(
            "documents and policy name different tenants", expected=sorted(named), actual=sorted(documents)
        )


def check_answers(tenant: str, documents: Sequence[Passage], longest: int, *, named: bool = False) -> None:
    """Check that accounts can read every answer, even the answer with the longest documents.

    :param longest: the maximum number of documents in an answer
    :param named: whether answers have the keys of documents, since the tenant has a document table
    :raises PolicyError: the total of the longest documents exceeds the limit
    """
    sizes = heapq.nlargest(
        longest,
        (
            (_bytes_of(d.text) + len(d.metadata or b"") + (_bytes_of(key_of(d)) if named else 0), number)
            for number, d in enumerate(documents)
        ),
    )
    room = MAX_ANSWER_BYTES - MAX_PROOF_BYTES - _DOCUMENT_BYTES * longest
    if (actual := sum(size for size, _ in sizes)) > room:
        size, number = sizes[0]
        name = documents[number].name_in(tenant, number)
        raise PolicyError(
            "the longest answer of the tenant would be too large",
            field=f"documents.{tenant}",
            expected=f"at most {room} bytes of JSON in the {longest} longest documents in total",
            actual=f"{actual} bytes; the longest is {name} with {size}",
            hint="split long texts into passages, or lower the number of documents in an answer",
        )


def commit(
    *,
    origin: str,
    policy: Policy,
    roster: Sequence[RosterEntry],
    manifest: Manifest,
    tenants: Mapping[str, CommittedTenant],
    window_secrets: WindowSecrets,
    beacon: BeaconSource,
    previous: PreviousWindow | None,
) -> Commitment:
    """Commit to policy, roster, embedder and seed. The tenants' indices and texts are already committed
    (`commit_tenant`)."""
    header = header_of(origin=origin, policy=policy, roster=roster, manifest=manifest, beacon=beacon,
                         tenants=[t.entry for t in tenants.values()], window_secrets=window_secrets,
                         previous=previous)  # fmt: skip
    return Commitment(header, policy, manifest, roster, tenants, window_secrets)


def header_of(
    *,
    origin: str,
    policy: Policy,
    roster: Sequence[RosterEntry],
    manifest: Manifest,
    tenants: Sequence[TenantEntry],
    window_secrets: WindowSecrets,
    beacon: BeaconSource,
    previous: PreviousWindow | None,
) -> WindowHeader:
    """The window header, entry 0 of the ledger, over the tenants' commitments and the rest."""
    return WindowHeader(
        type="header",
        v=1,
        origin=origin,
        window=policy.window,
        opens_at=policy.opens_at,
        closes_at=policy.closes_at,
        previous=previous,
        beacon=beacon,
        c_emb=digest_hex(as_json(manifest)),
        c_seed=to_hex(seed_commitment(window_secrets.s0, window_secrets.s1)),
        c_policy=policy.digest(),
        roster=list_root(roster),
        tenants=list_root(tenants),
        ledger=EMPTY_LEDGER,
    )


def check_circuits(policy: Policy, manifest: Manifest) -> None:
    """Check that the policy names the circuits that will prove its records.

    :raises PolicyError: a digest differs from this release's digest for policy and embedder, or the circuit cannot
        prove a statement for them: `embed` with an embedder without integer normalisation, or with more than 64 tokens
    """
    for part in policy.tenants:
        if part.system not in SYSTEMS:
            continue
        constants = proof_constants(policy, part, manifest)
        check_encoder(part.tenant, part.system, constants)
        result = backend(part.system).circuits(constants)
        for name, named in part.circuits.items():
            if result.get(name) != named:
                raise PolicyError(
                    "the policy names another circuit than its constants and the embedder determine",
                    field=f"policy.tenants.{part.tenant}.circuits.{name}",
                    expected=result.get(
                        name, f"this release has no proof of {name} with this embedder and query limit"
                    ),
                    actual=named,
                )


def commit_tenant(
    tenant: str,
    index: TenantIndex,
    documents_at: Mapping[int, Passage],
    window_secrets: WindowSecrets,
    committed: IndexCommitment,
    table: tuple[WindowTable, TableEntry] | None = None,
) -> CommittedTenant:
    """Commit to a tenant's index and texts with positions and salts that were drawn before.

    :param committed: the result of `Backend.commit_index` for this index
    :param table: the document table with its entry, if the tenant has one
    """
    tree = MerkleTree(
        leaf_hash(document_digest(window_secrets.document_salt(tenant, p), documents_at.get(p, EMPTY).data))
        for p in range(index.capacity)
    )
    entry = TenantEntry(
        tenant=tenant,
        capacity=index.capacity,
        c_idx=committed.digest.hex(),
        c_docs=tree.root().hex(),
        table=None if table is None else table[1],
    )
    return CommittedTenant(
        entry, index, documents_at, tree, committed.points, None if table is None else table[0]
    )


def check_coalition_proof(policy: Policy, dimension: int) -> None:
    """Refuse a policy if this release could not make its coalition proof at the window's closing.

    :raises PolicyError: the system or circuit does not exist, or belongs to another release
    """
    coalition_proof = policy.estimator.coalition_proof
    if coalition_proof is None:
        return
    p, q = policy.estimator.theta
    circuit = coalition_proof_policy(coalition_proof.system, coalition_proof.records, dimension, (p, q))[
        "circuit"
    ]
    if coalition_proof.circuit != circuit:
        raise PolicyError("the circuit differs from the circuit of this release",
                          field="policy.estimator.coalition_proof.circuit", expected=circuit,
                          actual=coalition_proof.circuit)  # fmt: skip
