"""What is public about tenants, slots and records, and the statements that are proved of them.

Prover and verifier both build them here, from published entries only; none is ever read from a proof.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from rag_audit.errors import SchemaError, WitnessError
from rag_audit.formats.constants import Constants
from rag_audit.formats.manifest import Manifest
from rag_audit.formats.policy import Policy, TenantPolicy
from rag_audit.formats.records import Opening, QueryRecord, TenantEntry
from rag_audit.relation.field import digest_to_field, to_bytes
from rag_audit.relation.native import slot_id


class PublicValues:
    """Public values of one proof, field elements or lists of them."""

    def encode(self, names: Sequence[str]) -> bytes:
        """The named values, 32 bytes big-endian each, a list's one after the other.

        :raises EncodingError: a value that is not a field element
        """
        values = (getattr(self, name) for name in names)
        return b"".join(to_bytes(x) for v in values for x in ((v,) if isinstance(v, int) else v))


@dataclass(frozen=True)
class Statement(PublicValues):
    """The public values of one record's proof, field elements. Policy constants (capacity, gains, score
    window) are not among them: they are fixed by the circuit that the policy's digest names.

    :param ctx: digest of the record's context; binds the proof to it
    :param c_seed: commitment to the window's seed
    :param beacon: f(beacon value)
    :param slot: the noise slot, from window, tenant, account and its count
    :param c_idx: the tenant's index commitment
    :param cq: the record's query-vector commitment
    :param htopk: the record's commitment to the listed positions
    """

    ctx: int
    c_seed: int
    beacon: int
    slot: int
    c_idx: int
    cq: int
    htopk: int


@dataclass(frozen=True)
class ManyStatement(PublicValues):
    """The public values of one proof for several records of one tenant and window: those of `Statement`, a list
    where they differ from record to record.
    """

    ctx: tuple[int, ...]
    c_seed: int
    beacon: tuple[int, ...]
    slot: tuple[int, ...]
    c_idx: int
    cq: tuple[int, ...]
    htopk: tuple[int, ...]

    @classmethod
    def of(cls, records: Sequence[Statement], places: int) -> ManyStatement:
        """The records' values in their order; places that are left over repeat the last record.

        :raises SchemaError: no records or too many, or one of another tenant's index or another window's seed
        """
        if not 1 <= len(records) <= places:
            raise SchemaError(
                "records do not fit a proof", field="records", expected=f"1..{places}", found=len(records)
            )
        for name in ("c_seed", "c_idx"):
            for number, record in enumerate(records):
                if getattr(record, name) != getattr(records[0], name):
                    raise SchemaError(
                        "records of several tenants or windows cannot share a proof",
                        field=f"records[{number}].{name}",
                    )
        filled = [*records, *[records[-1]] * (places - len(records))]
        lists = {
            name: tuple(getattr(r, name) for r in filled) for name in ("ctx", "beacon", "slot", "cq", "htopk")
        }
        return cls(c_seed=records[0].c_seed, c_idx=records[0].c_idx, **lists)


@dataclass(frozen=True)
class EmbedStatement(PublicValues):
    """The public values of one record's proof of claim A1; it shares hq and cq with the record.

    :param ctx: digest of the record's context; binds the proof to it
    :param table: root of the tree over the embedder's table, or digest of the commitments to its columns. A verifier
        takes it from a pin, since a prover who may choose the table may choose the vector
    :param hq: the record's commitment to the query's tokens
    :param cq: the record's query-vector commitment
    """

    ctx: int
    table: int
    hq: int
    cq: int


@dataclass(frozen=True)
class CoalitionDigest(PublicValues):
    """The public value of a window's coalition certificate by the circuit `coalition`.

    :param statement: hash of everything that the certificate is about (`groth16.coalition`)
    """

    statement: int


@dataclass(frozen=True)
class StaticTable:
    """A static embedder's table as proofs of claim A1 need it. Each proof system makes its own commitment to it once a
    machine (`proofs.groth16.embed.table_tree`, `proofs.scan.embed.table_columns`), and accepts the pinned one alone.

    :param rows: gives the table, int8, row by row, shape (tokens, dimension); a function of a module, which a job
        carries by name and calls in the process that proves
    :param digest: SHA-256 over the rows
    :param norm_factor: of the embedder's integer normalisation
    :param depth: of groth16's tree over the rows
    :param tree: SHA-256 over that tree's nodes, leaves first, 32 bytes big-endian each
    :param columns: SHA-256 over the scan argument's commitments to the columns, with their numbers before them
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
class TenantPublic:
    """What a window publishes about one tenant, as far as its proofs rest on it.

    :param tenant: its id
    :param opening: digest of the opening record, 64 hexadecimal digits
    :param c_idx: the index commitment as the opening has it, 64 hexadecimal digits
    :param points: what c_idx is the digest of where it is a list of points; empty where it is not, and at a verifier's
        until `ProofSystem.open_key` has found them in the window file
    :param artefacts: digests of the embedder's artefacts by name, from the manifest under C_emb
    :param table: what the artefacts commit to, where the embedder has such a table; a verifier has digests alone
    """

    tenant: str
    opening: str
    c_idx: str
    constants: Constants
    artefacts: Mapping[str, str]
    points: bytes = b""
    table: StaticTable | None = None

    def static_table(self) -> StaticTable:
        """The embedder's table.

        :raises WitnessError: it has none
        """
        if self.table is None:
            raise WitnessError("the embedder has no table that A1 could be proved from", field="embedder")
        return self.table

    def table_digest(self, artefact: str) -> str:
        """The digest under C_emb of a commitment to the embedder's table.

        :param artefact: which commitment
        :raises SchemaError: the manifest has none of this name
        """
        digest = self.artefacts.get(artefact)
        if digest is None:
            raise SchemaError("the embedder's manifest commits to no table", field=f"artefacts.{artefact}")
        return digest


@dataclass(frozen=True)
class SlotPublic:
    """What is public about one noise slot, before there is a record for it.

    :param c_seed: commitment to the window's seed
    :param beacon: f(beacon value)
    :param slot: the noise slot
    """

    tenant: TenantPublic
    c_seed: int
    beacon: int
    slot: int


@dataclass(frozen=True)
class RecordPublic(SlotPublic):
    """What is public about one record: every statement's public values are made of these.

    :param ctx: digest of the record's context
    :param hq: the record's commitment to the query's tokens
    :param cq: the record's query-vector commitment
    :param htopk: the record's commitment to the listed positions
    """

    ctx: int
    hq: int
    cq: int
    htopk: int

    def retrieve(self, c_idx: int) -> Statement:
        """The statement of A2 to A4.

        :param c_idx: the tenant's index commitment as the field element that the system makes of it
        """
        return Statement(self.ctx, self.c_seed, self.beacon, self.slot, c_idx, self.cq, self.htopk)

    def embed(self, table: int) -> EmbedStatement:
        """The statement of A1.

        :param table: the commitment to the embedder's table, likewise
        """
        return EmbedStatement(self.ctx, table, self.hq, self.cq)


@dataclass(frozen=True)
class SlotKey:
    """An account's i-th query in the window, i = 1, 2, .."""

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
) -> TenantPublic:
    """What a tenant's proofs rest on, from published documents only.

    :param manifest: the document under C_emb
    :param points: what C_idx is the digest of, where the caller has it
    :param table: what the manifest's artefacts commit to, where the caller has it
    :raises SchemaError: the policy does not have the tenant
    """
    part = policy.tenant(entry.tenant)
    if part is None:
        raise SchemaError("tenant without a policy", field="policy.tenants", found=entry.tenant)
    artefacts = manifest["embedder"].get("artefacts")
    return TenantPublic(
        tenant=entry.tenant,
        opening=opening_digest,
        c_idx=entry.c_idx,
        constants=proof_constants(policy, part, manifest),
        artefacts=artefacts if isinstance(artefacts, dict) else {},
        points=points,
        table=table,
    )


def slot_public(slot: SlotKey, tenant: TenantPublic, *, opening: Opening, beacon: bytes) -> SlotPublic:
    """What a slot's noise certificate states, from published entries only.

    :param beacon: the value that the slots of the account use
    """
    return SlotPublic(
        tenant=tenant,
        c_seed=int(opening.c_seed, 16),
        beacon=digest_to_field(beacon),
        slot=slot_id(opening.window, slot.tenant, slot.account, slot.i),
    )


def record_public(
    record: QueryRecord, tenant: TenantPublic, *, opening: Opening, beacon: bytes
) -> RecordPublic:
    """What a record's proofs state. Prover and verifier both build it here, from published entries only.

    :param beacon: the value that the slots of the record's account use
    """
    return RecordPublic(
        tenant=tenant,
        ctx=digest_to_field(record.context(tenant.opening)),
        c_seed=int(opening.c_seed, 16),
        beacon=digest_to_field(beacon),
        slot=slot_id(record.window, record.tenant, record.account, record.i),
        hq=int(record.hq, 16),
        cq=int(record.cq, 16),
        htopk=int(record.htopk, 16),
    )


def proof_constants(policy: Policy, part: TenantPolicy, manifest: Manifest) -> Constants:
    """What fixes a tenant's proofs: its policy, and dimension and normalisation of the embedder in the manifest."""
    quantiser = manifest["embedder"].get("quantiser")
    norm_factor = quantiser.get("norm_factor") if isinstance(quantiser, dict) else None
    dimension = manifest["schema"]["dimension"]
    return policy.constants(part, dimension, norm_factor if type(norm_factor) is int else None)
