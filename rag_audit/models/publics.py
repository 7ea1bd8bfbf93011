"""The public values of tenants, slots and records, from which statements are built (`formats.statements`).

Prover and verifier both build them here, from published entries only; none is ever read from a proof.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from rag_audit._internal.canonical import jcs, sha256
from rag_audit._internal.errors import SchemaError, WitnessError
from rag_audit.models.constants import Constants
from rag_audit.models.manifest import Manifest
from rag_audit.models.policy import Policy
from rag_audit.models.records import ListingRecord, Opening, QueryRecord, TenantEntry
from rag_audit.models.statements import (
    EmbedStatement,
    KeptStatement,
    ListedStatement,
    SampledStatement,
    Statement,
)
from rag_audit.models.tenants import TenantPolicy
from rag_audit.relation.commitments import sampling_slot
from rag_audit.relation.field import digest_to_field
from rag_audit.relation.native import slot_id


@dataclass(frozen=True)
class StaticTable:
    """A static embedder's table as proofs of claim A1 need it. Each proof system computes its own commitment to it once
    per machine (`proofs.groth16.embed.table_tree`, `proofs.scan.embed.table_columns`) and accepts only the pinned one.

    :param rows: a function that returns the table, int8, row by row, shape (tokens, dimension); it belongs to a module,
        so a job carries it by name and calls it in the process that proves
    :param digest: SHA-256 over the rows
    :param norm_factor: factor of the embedder's integer normalisation
    :param depth: depth of groth16's tree over the rows
    :param tree: SHA-256 over that tree's nodes, leaves first, 32 bytes big-endian each
    :param columns: SHA-256 over the scan argument's commitments to the columns, preceded by their numbers
    """

    rows: Callable[[], bytes]
    digest: str
    tokens: int
    dimension: int
    norm_factor: int
    depth: int
    tree: str
    columns: str


@dataclass(frozen=True)
class KeptCommitment:
    """The commitment to a tenant's kept positions.

    :param digest: 64 hexadecimal digits in the ledger: a field element, or the digest of `points`
    :param points: commitments to the column's rows; empty for systems without points
    """

    digest: str
    points: bytes = b""


@dataclass(frozen=True)
class TenantPublic:
    """The published values of one tenant on which its proofs rest.

    :param tenant: the tenant's id
    :param opening: digest of the opening record, 64 hexadecimal digits
    :param c_idx: the index commitment in the opening, 64 hexadecimal digits
    :param points: the list of points whose digest c_idx is; empty for systems without points, and at a verifier's
        until `ProofSystem.open_key` has found them in the window file
    :param artefacts: digests of the embedder's artefacts by name, from the manifest under C_emb
    :param table: the table that the artefacts commit to, if the embedder has one; a verifier has only the digests
    :param kept: the commitment to the kept positions, once the ledger has it; None where every position is kept
    """

    tenant: str
    opening: str
    c_idx: str
    constants: Constants
    artefacts: Mapping[str, str]
    points: bytes = b""
    table: StaticTable | None = None
    kept: KeptCommitment | None = None

    def static_table(self) -> StaticTable:
        """The embedder's table.

        :raises WitnessError: the embedder has none
        """
        if self.table is None:
            raise WitnessError("the embedder has no table that A1 could be proved from", field="embedder")
        return self.table

    def keeping(self, kept: KeptCommitment) -> TenantPublic:
        """The same values with the commitment to the kept positions."""
        return replace(self, kept=kept)

    def table_digest(self, artefact: str) -> str:
        """The digest under C_emb of a commitment to the embedder's table.

        :param artefact: name of the commitment
        :raises SchemaError: the manifest has no artefact of this name
        """
        digest = self.artefacts.get(artefact)
        if digest is None:
            raise SchemaError("the embedder's manifest commits to no table", field=f"artefacts.{artefact}")
        return digest


@dataclass(frozen=True)
class SlotPublic:
    """The public values of one noise slot, which exist before there is a record for it.

    :param c_seed: commitment to the window's seed
    :param beacon: f(beacon value)
    :param slot: the noise slot
    """

    tenant: TenantPublic
    c_seed: int
    beacon: int
    slot: int


@dataclass(frozen=True)
class KeptPublic(SlotPublic):
    """The public values of a tenant's kept positions, which exist once the window's beacon is drawn; `slot` is the
    tenant's sampling slot.

    :param keep: Pi: a position is kept if its draw is below it
    """

    keep: int

    @property
    def context(self) -> bytes:
        """32 bytes that bind the proof to opening and tenant."""
        return sha256(
            b"rag-audit/kept/v1" + jcs({"opening": self.tenant.opening, "tenant": self.tenant.tenant})
        )

    def statement(self, c_kept: int) -> KeptStatement:
        """The statement that a commitment holds these positions."""
        return KeptStatement(
            digest_to_field(self.context), self.c_seed, self.beacon, self.slot, self.keep, c_kept
        )


@dataclass(frozen=True)
class HeldBits:
    """The commitments to what an account holds around one record, as the ledger has them, 64 hexadecimal digits each.

    :param before: that of the account's record before this one; None before its first, where nothing is held
    """

    before: str | None
    after: str


@dataclass(frozen=True)
class RecordPublic(SlotPublic):
    """The public values of one record, from which every statement about it is built.

    :param ctx: digest of the record's context
    :param hq: the record's commitment to the query's tokens
    :param cq: the record's query-vector commitment
    :param htopk: the record's commitment to the listed positions
    :param held: of a listing tenant, the commitments to what the account held before the record and holds after it
    """

    ctx: int
    hq: int
    cq: int
    htopk: int
    held: HeldBits | None = None

    def retrieve(self, c_idx: int) -> Statement:
        """The statement of claims A2 to A4.

        :param c_idx: the tenant's index commitment as the proof system's field element
        :raises SchemaError: the tenant samples, and the commitment to its kept positions is missing
        """
        values = (self.ctx, self.c_seed, self.beacon, self.slot, c_idx, self.cq, self.htopk)
        if not self.tenant.constants.sampled:
            return Statement(*values)
        if self.tenant.kept is None:
            raise SchemaError("the ledger does not say which positions are kept", field="kept",
                              expected=f"an entry for {self.tenant.tenant}")  # fmt: skip
        c_kept = int(self.tenant.kept.digest, 16)
        if self.held is None:
            return SampledStatement(*values, c_kept)
        return ListedStatement(*values, c_kept, self.held.before, self.held.after)

    def embed(self, table: int) -> EmbedStatement:
        """The statement of claim A1.

        :param table: the commitment to the embedder's table as the proof system's field element
        """
        return EmbedStatement(self.ctx, table, self.hq, self.cq)


@dataclass(frozen=True)
class SlotKey:
    """The slot of an account's i-th query in the window, i = 1, 2, .."""

    tenant: str
    account: str
    i: int

    def ahead(self, steps: int) -> SlotKey:
        """The account's slot `steps` queries later."""
        return SlotKey(self.tenant, self.account, self.i + steps)


def tenant_public(
    entry: TenantEntry,
    *,
    policy: Policy,
    manifest: Manifest,
    opening_digest: str,
    points: bytes = b"",
    table: StaticTable | None = None,
    kept: KeptCommitment | None = None,
) -> TenantPublic:
    """The public values on which a tenant's proofs rest, from published documents only.

    :param manifest: the document under C_emb
    :param points: the points whose digest C_idx is, where the caller has them
    :param table: the table that the manifest's artefacts commit to, where the caller has it
    :param kept: the commitment to the tenant's kept positions, where it samples and the ledger has it
    :raises SchemaError: the policy does not have the tenant
    """
    tenant_policy = policy.tenant(entry.tenant)
    if tenant_policy is None:
        raise SchemaError("the policy does not have this tenant", field="policy.tenants", found=entry.tenant)
    artefacts = manifest["embedder"].get("artefacts")
    return TenantPublic(
        tenant=entry.tenant,
        opening=opening_digest,
        c_idx=entry.c_idx,
        constants=proof_constants(policy, tenant_policy, manifest),
        artefacts=artefacts if isinstance(artefacts, dict) else {},
        points=points,
        table=table,
        kept=kept,
    )


def slot_public(slot: SlotKey, tenant: TenantPublic, *, opening: Opening, beacon: bytes) -> SlotPublic:
    """The public values of a slot's noise certificate, from published entries only.

    :param beacon: the beacon value that the slots of the account use
    """
    return SlotPublic(
        tenant=tenant,
        c_seed=int(opening.c_seed, 16),
        beacon=digest_to_field(beacon),
        slot=slot_id(opening.window, slot.tenant, slot.account, slot.i),
    )


def kept_public(tenant: TenantPublic, policy: Policy, *, opening: Opening, beacon: bytes) -> KeptPublic:
    """The public values of a sampled tenant's kept positions, from published entries only.

    :param beacon: the window's beacon value, which tenants with accounts that enrol later use too
    :raises SchemaError: the tenant keeps every position
    """
    keep = policy.rules_by_name(tenant.tenant).keep
    if keep is None:
        raise SchemaError("the tenant is not sampled", field="kept", found=tenant.tenant)
    return KeptPublic(
        tenant=tenant,
        c_seed=int(opening.c_seed, 16),
        beacon=digest_to_field(beacon),
        slot=sampling_slot(opening.window, tenant.tenant),
        keep=keep,
    )


def record_public(
    record: QueryRecord,
    tenant: TenantPublic,
    *,
    opening: Opening,
    beacon: bytes,
    before: QueryRecord | None = None,
) -> RecordPublic:
    """The public values of a record's proofs. Prover and verifier both build them here, from published entries only.

    :param beacon: the beacon value that the slots of the record's account use
    :param before: of a listing tenant, the account's record before this one, i - 1; None before its first
    :raises SchemaError: a listing tenant's record, or the one before it, does not say what the account holds
    """
    held = None
    if tenant.constants.listing:
        if (before is None) != (record.i == 1) or (before is not None and before.i != record.i - 1):
            raise SchemaError("the account's record before this one is missing", field=f"record {record.seq}",
                              expected=f"i = {record.i - 1}", found=before and before.i)  # fmt: skip
        held = HeldBits(None if before is None else _held(before), _held(record))
    return RecordPublic(
        tenant=tenant,
        ctx=digest_to_field(record.context(tenant.opening)),
        c_seed=int(opening.c_seed, 16),
        beacon=digest_to_field(beacon),
        slot=slot_id(record.window, record.tenant, record.account, record.i),
        hq=int(record.hq, 16),
        cq=int(record.cq, 16),
        htopk=int(record.htopk, 16),
        held=held,
    )


def _held(record: QueryRecord) -> str:
    if not isinstance(record, ListingRecord):
        raise SchemaError("the record does not say what its account holds", field=f"record {record.seq}.held")
    return record.held


def proof_constants(policy: Policy, tenant_policy: TenantPolicy, manifest: Manifest) -> Constants:
    """The constants of a tenant's proofs, from its policy and the embedder's dimension and normalisation."""
    quantiser = manifest["embedder"].get("quantiser")
    norm_factor = quantiser.get("norm_factor") if isinstance(quantiser, dict) else None
    dimension = manifest["schema"]["dimension"]
    return policy.constants(tenant_policy, dimension, norm_factor if type(norm_factor) is int else None)
