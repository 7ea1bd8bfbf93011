"""The statement of claims A2 to A4: a record lists the positions that its tenant's mechanism selects."""

from __future__ import annotations

from dataclasses import dataclass

from rag_audit._internal.errors import SchemaError
from rag_audit.models.records import QueryRecord, WindowHeader
from rag_audit.proofs.statements.embed import EmbedStatement
from rag_audit.proofs.statements.tenant import PublicValues, SlotPublic, TenantPublic
from rag_audit.relation.field import digest_to_field
from rag_audit.relation.native import slot_id


@dataclass(frozen=True)
class Statement(PublicValues):
    """The public values of one record's proof, field elements. Policy constants (capacity, gains, score
    window) are not among them: they are fixed by the circuit that the policy's digest names.

    :param ctx: digest of the record's context, to which it binds the proof
    :param c_seed: commitment to the window's seed
    :param beacon: f(beacon value)
    :param slot: the noise slot, from window, tenant, account and the query's number
    :param c_idx: the tenant's index commitment
    :param cq: the record's query-vector commitment
    :param htopk: the record's commitment to the listed positions

    >>> statement = Statement(ctx=1, c_seed=2, beacon=3, slot=4, c_idx=5, cq=6, htopk=7)
    >>> statement.encode(("slot", "cq")).hex().lstrip("0")[:1], len(statement.encode(("slot", "cq")))
    ('4', 64)
    """

    ctx: int
    c_seed: int
    beacon: int
    slot: int
    c_idx: int
    cq: int
    htopk: int


@dataclass(frozen=True)
class SampledStatement(Statement):
    """`Statement` of a tenant with a sample. Unsampled positions score 0.

    :param c_kept: the tenant's commitment to the sampled positions, from the ledger
    """

    c_kept: int


@dataclass(frozen=True)
class PooledStatement(SampledStatement):
    """`SampledStatement` of a record with pooled listing. Its `htopk` has the number of positions in the place of each
    position without a score above 0.

    :param before: the ledger's commitment to the tenant's listed rows before the record, 64 hexadecimal digits; None
        before the first record of the window, when no row is listed
    :param after: the commitment to the tenant's listed rows after the record
    """

    before: str | None
    after: str


@dataclass(frozen=True)
class ListedRows:
    """The ledger's commitments to a tenant's listed rows before and after one record, 64 hexadecimal digits each.

    :param before: the commitment in the tenant's preceding record, of any account; None before its first record, when
        no row is listed
    """

    before: str | None
    after: str


@dataclass(frozen=True)
class RecordPublic(SlotPublic):
    """The public values of one record, the source of every statement about it.

    :param ctx: digest of the record's context
    :param hq: the record's commitment to the query's tokens
    :param cq: the record's query-vector commitment
    :param htopk: the record's commitment to the listed positions
    :param listed_rows: with pooled listing, the commitments to the tenant's listed rows before and after the record
    """

    ctx: int
    hq: int
    cq: int
    htopk: int
    listed_rows: ListedRows | None = None

    def retrieve(self, c_idx: int) -> Statement:
        """The statement of claims A2 to A4.

        :param c_idx: the tenant's index commitment as the proof system's field element
        :raises SchemaError: the tenant has a sample, and the commitment to it is missing; or with pooled listing, the
            commitments to the listed rows are
        """
        values = (self.ctx, self.c_seed, self.beacon, self.slot, c_idx, self.cq, self.htopk)
        if not self.tenant.constants.sampled:
            return Statement(*values)
        if self.tenant.sample is None:
            raise SchemaError("the ledger does not name the sampled positions", field="sample",
                              expected=f"an entry for {self.tenant.tenant}")  # fmt: skip
        c_kept = int(self.tenant.sample.digest, 16)
        if self.tenant.constants.pools:
            if self.listed_rows is None:
                raise SchemaError("the record does not say the tenant's listed rows", field="listed_rows")
            return PooledStatement(*values, c_kept, self.listed_rows.before, self.listed_rows.after)
        return SampledStatement(*values, c_kept)

    def embed(self, table: int) -> EmbedStatement:
        """The statement of claim A1.

        :param table: the commitment to the embedder's table as the proof system's field element
        """
        return EmbedStatement(self.ctx, table, self.hq, self.cq)


def record_public(
    record: QueryRecord,
    tenant: TenantPublic,
    *,
    header: WindowHeader,
    beacon: bytes,
    before: QueryRecord | None = None,
) -> RecordPublic:
    """The public values of a record's proofs. Prover and verifier both build them here, from published entries only.

    :param beacon: the beacon value that the slots of the record's account use
    :param before: for a tenant with pooled listing, the tenant's preceding record in the ledger; None before the first
    :raises SchemaError: a record with pooled listing, or the preceding one, has no commitment to the listed rows
    """
    listed = None
    if tenant.constants.pools:
        listed = ListedRows(None if before is None else _listed_rows(before), _listed_rows(record))
    return RecordPublic(
        tenant=tenant,
        ctx=digest_to_field(record.context(tenant.header)),
        c_seed=int(header.c_seed, 16),
        beacon=digest_to_field(beacon),
        slot=slot_id(record.window, record.tenant, record.account, record.i),
        hq=int(record.hq, 16),
        cq=int(record.cq, 16),
        htopk=int(record.htopk, 16),
        listed_rows=listed,
    )


def _listed_rows(record: QueryRecord) -> str:
    if record.listed_rows is None:
        raise SchemaError(
            "the record has no commitment to the tenant's listed rows",
            field=f"record {record.seq}.listed_rows",
        )
    return record.listed_rows
