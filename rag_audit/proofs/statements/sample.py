"""Values drawn from the window's seed: a tenant's sampled positions, and a slot's noise or Bernoulli bits."""

from __future__ import annotations

from dataclasses import dataclass

from rag_audit._internal.errors import SchemaError
from rag_audit.mechanisms.base import SAMPLE
from rag_audit.models.policy import Policy
from rag_audit.models.records import WindowHeader
from rag_audit.proofs.statements.column import ColumnPublic
from rag_audit.proofs.statements.document_table import DocumentTablePublic
from rag_audit.proofs.statements.tenant import ColumnCommitment, PublicValues, TenantPublic
from rag_audit.relation.field import digest_to_field
from rag_audit.relation.native import sampling_slot


@dataclass(frozen=True)
class SampleStatement(PublicValues):
    """The public values of the proof that a tenant's sampled positions are the Bernoulli bits of the window's seed.

    :param ctx: digest of window header and tenant, which binds the proof to them
    :param c_seed: commitment to the window's seed
    :param beacon: f(value of the window's beacon, entry 1 or its replacement)
    :param slot: the tenant's sampling slot
    :param keep: Pi: a position is sampled if its draw is below it
    :param c_kept: the commitment to the sampled positions
    """

    ctx: int
    c_seed: int
    beacon: int
    slot: int
    keep: int
    c_kept: int

    @classmethod
    def of(cls, column: ColumnPublic, c_kept: int) -> SampleStatement:
        """The statement that a commitment contains a column's bits."""
        return cls(
            digest_to_field(column.context), column.c_seed, column.beacon, column.slot, column.bound, c_kept
        )


def sample_public(
    tenant: TenantPublic, policy: Policy, *, header: WindowHeader, beacon: bytes
) -> ColumnPublic:
    """The public values of a tenant's sampled positions, from published entries only. They are a
    `DocumentTablePublic` if the policy has a document table.

    :param beacon: the window's beacon value, which tenants with accounts that enrol later use too
    :raises SchemaError: the tenant samples every position, or the window header has no table where the policy has one
    """
    mechanism = policy.mechanism_of(tenant.tenant)
    shape, entry = mechanism.table, tenant.documents
    if SAMPLE not in mechanism.columns:
        raise SchemaError("the tenant is not sampled", field="sample", actual=tenant.tenant)
    column = ColumnPublic(
        tenant=tenant,
        c_seed=int(header.c_seed, 16),
        beacon=digest_to_field(beacon),
        slot=sampling_slot(header.window, tenant.tenant),
        name=SAMPLE,
        bound=mechanism.sample_bound,
    )
    if shape is None:
        return column
    if entry is None:
        raise SchemaError("the window header has no document table", field=f"tenants.{tenant.tenant}.table",
                          expected="a table, since the policy has documents", actual=None)  # fmt: skip
    before = entry.previous
    return DocumentTablePublic(
        tenant=tenant,
        c_seed=column.c_seed,
        beacon=column.beacon,
        slot=column.slot,
        name=SAMPLE,
        bound=mechanism.sample_bound,
        rows=shape.rows,
        positions_per_document=shape.positions_per_document,
        drawn=shape.drawn(first=before is None),
        table=ColumnCommitment(entry.c_table),
        previous=None if before is None else ColumnCommitment(before.carried),
        pooled=mechanism.pools,
        listed=ColumnCommitment(before.listed) if mechanism.pools and before and before.listed else None,
    )
