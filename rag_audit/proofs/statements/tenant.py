"""The public values of a tenant and of a slot, the inputs of every statement about them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from rag_audit._internal.errors import SchemaError, WitnessError
from rag_audit.mechanisms.base import SAMPLE
from rag_audit.models.constants import Constants
from rag_audit.models.manifest import (
    ENCODER_ARTEFACT,
    EncoderConstants,
    Manifest,
    Provable,
    ProvableConstants,
    ProvedEncoder,
    StaticTable,
    TableConstants,
)
from rag_audit.models.policy import Policy
from rag_audit.models.records import TableEntry, TenantEntry
from rag_audit.models.tenants import TenantPolicy
from rag_audit.relation.field import to_bytes


@dataclass(frozen=True)
class PublicValues:
    """Public values of one proof, which are field elements or lists of them."""

    def encode(self, names: Sequence[str]) -> bytes:
        """The named values as 32 bytes big-endian each; a list's elements follow one another.

        :raises EncodingError: a value is not a field element
        """
        values = (getattr(self, name) for name in names)
        return b"".join(to_bytes(x) for v in values for x in ((v,) if isinstance(v, int) else v))


@dataclass(frozen=True)
class ColumnCommitment:
    """The commitment to a column of a tenant.

    :param digest: 64 hexadecimal digits in the ledger: a field element, or the digest of `points`
    :param points: commitments to the column's rows; empty for systems without points
    """

    digest: str
    points: bytes = b""


@dataclass(frozen=True)
class TableCommitment(ColumnCommitment):
    """The commitment to a sample by document, with the columns of the table that records of pooled listing use.

    :param row: commitments to the row of each position
    :param kept: commitments to the bit of each row of the table
    :param carried: the digest of the table with its bits in the ledger, 64 hexadecimal digits
    :param listed: with pooled listing, the digest of the listed rows before the tenant's first record of the window, 64
        hexadecimal digits
    """

    row: bytes = b""
    kept: bytes = b""
    carried: str = ""
    listed: str = ""


@dataclass(frozen=True)
class TenantPublic:
    """The published values of one tenant that its proofs use.

    :param tenant: the tenant's id
    :param header: digest of the window header, 64 hexadecimal digits
    :param c_idx: the index commitment in the window header, 64 hexadecimal digits
    :param points: the list of points with digest c_idx; empty for systems without points, and for a verifier until
        `RecordProofs.open` has found them in the window file
    :param artefacts: digests of the embedder's artefacts by name, from the manifest under C_emb
    :param table: the table or encoder that the artefacts commit to, if the embedder has one; a verifier has only the
        digests
    :param columns: the commitments to the tenant's columns by name (`Mechanism.columns`), once the ledger has them
    :param documents: the commitment to the document table, if the window header has one
    """

    tenant: str
    header: str
    c_idx: str
    constants: Constants
    artefacts: Mapping[str, str]
    points: bytes = b""
    table: Provable | None = None
    columns: Mapping[str, ColumnCommitment] = field(default_factory=dict)
    documents: TableEntry | None = None

    @property
    def sample(self) -> ColumnCommitment | None:
        """The commitment to the sampled positions, once the ledger has it; None if every position is sampled."""
        return self.columns.get(SAMPLE)

    def static_table(self) -> StaticTable:
        """The embedder's table.

        :raises WitnessError: the embedder has none
        """
        if not isinstance(self.table, StaticTable):
            raise WitnessError("the embedder has no table that A1 could be proved from", field="embedder")
        return self.table

    def encoder(self) -> ProvedEncoder:
        """The embedder's integer encoder.

        :raises WitnessError: the embedder has none
        """
        if not isinstance(self.table, ProvedEncoder):
            raise WitnessError("the embedder has no encoder that A1 could be proved from", field="embedder")
        return self.table

    def table_digest(self, artefact: str) -> str:
        """The digest under C_emb of a commitment to the embedder's table or encoder.

        :param artefact: name of the commitment
        :raises SchemaError: the manifest has no artefact of this name
        """
        digest = self.artefacts.get(artefact)
        if digest is None:
            raise SchemaError("the embedder's manifest lacks a commitment", field=f"artefacts.{artefact}")
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


def tenant_public(
    entry: TenantEntry,
    *,
    policy: Policy,
    manifest: Manifest,
    header_digest: str,
    points: bytes = b"",
    table: Provable | None = None,
    columns: Mapping[str, ColumnCommitment] | None = None,
) -> TenantPublic:
    """The public values that a tenant's proofs use, from published documents only.

    :param manifest: the document under C_emb
    :param points: the points with digest C_idx, if the caller has them
    :param table: the table or encoder that the manifest's artefacts commit to, if the caller has it
    :param columns: the commitments to the tenant's columns by name, if the ledger has them
    :raises SchemaError: the policy does not have the tenant
    """
    tenant_policy = policy.tenant(entry.tenant)
    if tenant_policy is None:
        raise SchemaError("the policy does not have this tenant", field="policy.tenants", actual=entry.tenant)
    artefacts = manifest["embedder"].get("artefacts")
    return TenantPublic(
        tenant=entry.tenant,
        header=header_digest,
        c_idx=entry.c_idx,
        constants=proof_constants(policy, tenant_policy, manifest),
        artefacts=artefacts if isinstance(artefacts, dict) else {},
        points=points,
        table=table,
        columns=columns or {},
        documents=entry.table,
    )


def proof_constants(policy: Policy, tenant_policy: TenantPolicy, manifest: Manifest) -> Constants:
    """The constants of a tenant's proofs, from its policy and the embedder's dimension, and its table or encoder."""
    part = manifest["embedder"]
    quantiser, rows = part.get("quantiser"), part.get("vocabulary")
    factor = quantiser.get("norm_factor") if isinstance(quantiser, dict) else None
    table: ProvableConstants | None = None
    if type(factor) is int and ENCODER_ARTEFACT in part["artefacts"]:
        table = EncoderConstants(factor)
    elif type(factor) is int and type(rows) is int:
        table = TableConstants(rows, factor)
    return policy.constants(tenant_policy, manifest["schema"]["dimension"], table)
