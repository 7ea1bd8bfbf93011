"""The private inputs of statements' proofs, and the proof data that a provider stores. No verifier reads them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from rag_audit._internal.canonical import Json
from rag_audit._internal.errors import WitnessError
from rag_audit.models.records import SlotKey, WindowHeader
from rag_audit.proofs.statements.document_table import DocumentTablePublic
from rag_audit.proofs.statements.tenant import ColumnCommitment, SlotPublic, TenantPublic
from rag_audit.relation.field import digest_to_field
from rag_audit.relation.native import slot_id


@dataclass(frozen=True)
class RecordPrivate:
    """The private inputs of one record's proofs, which `repr` omits. Large or slow ones are functions; only statements
    that need them call them.

    :param s0: first half of the seed
    :param s1: second half of the seed
    :param index_salt: salt of the index commitment, or its 32-byte blinding key
    :param rows: the committed index, int8, shape (capacity, dimension)
    :param noise: the slot's noise, int32, shape (capacity,); for a tenant with pooled listing its Bernoulli bits,
        one byte each
    :param scores: the query's scores, int32, shape (capacity,)
    :param noise_proof: the slot's precomputed noise proof, if there is one
    :param tokens: the query's tokens, truncated at the embedder's limit
    :param vector: the query vector, int8
    :param salt_q: salt of hq
    :param salt_c: salt of cq
    :param salt_k: salt of htopk
    :param positions: the listed positions in rank order
    :param low_memory: see `SlotProofJob`; for systems that have this choice
    :param sample: for a tenant with a sample, one byte 0 or 1 for each position, and the opening of their commitment
    :param pooled_listing: the further inputs of a tenant with pooled listing, which has no noise, no noise proof and no
        `sample`, and whose `positions` have the number of positions for each empty place; None for other tenants
    """

    s0: int = field(repr=False)
    s1: int = field(repr=False)
    index_salt: int = field(repr=False)
    rows: Callable[[], bytes] = field(repr=False)
    noise: Callable[[], bytes] = field(repr=False)
    scores: Callable[[], bytes] = field(repr=False)
    noise_proof: Callable[[], NoiseProof | None] = field(repr=False)
    tokens: Sequence[int] = field(repr=False)
    vector: bytes = field(repr=False)
    salt_q: int = field(repr=False)
    salt_c: int = field(repr=False)
    salt_k: int = field(repr=False)
    positions: Sequence[int] = field(repr=False)
    low_memory: bool = False
    sample: tuple[bytes, bytes] | None = field(repr=False, default=None)
    pooled_listing: PooledListingPrivate | None = field(repr=False, default=None)


@dataclass(frozen=True)
class PooledListingPrivate:
    """The additional private inputs for a record of a tenant with pooled listing, which `repr` omits.

    :param table_key: `TablePrivate.key` of the tenant's document table
    :param row_of_position: `TablePrivate.row_of_position`
    :param kept: the bit of each row of the table, one byte 0 or 1, shape (rows,)
    :param carried_opening: `CommittedTable.carried_opening`
    :param listed: the tenant's listed rows before the record, one byte 0 or 1, shape (rows,)
    :param before: the secret of their commitment (`Backend.commit_listed`), which is that of the tenant's preceding
        record; None before the tenant's first record, when `carried_opening` opens their commitment
    :param after: the secret of the commitment to the listed rows after the record
    """

    table_key: bytes = field(repr=False)
    row_of_position: bytes = field(repr=False)
    kept: bytes = field(repr=False)
    carried_opening: bytes = field(repr=False)
    listed: bytes = field(repr=False)
    before: bytes | None = field(repr=False)
    after: bytes = field(repr=False)


@dataclass(frozen=True)
class NoiseProof:
    """A slot's noise proof. `blindings` stay secret until the slot's query is proved; if they are lost, a new proof of
    the same noise replaces it.

    :param proof: the proof of the noise
    :param commitments: commitments to the noise of all positions, 32 bytes a point
    :param blindings: blindings of these commitments, 32 bytes each
    """

    proof: bytes
    commitments: bytes
    blindings: bytes = field(repr=False)


@dataclass(frozen=True)
class ColumnPrivate:
    """The private inputs of a column's proof, which `repr` omits.

    :param s0: first half of the seed
    :param s1: second half of the seed
    :param salt: 32 secret bytes of this column, tenant and window, for systems with a salt in their commitment
    :param low_memory: see `SlotProofJob`; for systems that have this choice
    """

    s0: int = field(repr=False)
    s1: int = field(repr=False)
    salt: bytes = field(repr=False)
    low_memory: bool = False


@dataclass(frozen=True)
class TablePrivate:
    """A document table as its commitment before the beacon takes it. `repr` omits the values. Key and values determine
    the commitment, so a provider stores them and no blindings.

    :param key: 32 secret bytes from which the blindings are derived, of this tenant and window only
    :param row_of_position: the row of each position, int32, shape (capacity,); the number of rows for a position
        without a row
    :param names: the name of each row, 32 bytes, shape (rows,); None for a row that never had a document
    """

    key: bytes = field(repr=False)
    row_of_position: bytes = field(repr=False)
    names: Sequence[bytes | None] = field(repr=False)


@dataclass(frozen=True)
class PreviousTablePrivate:
    """The table before, as the proof of the next table takes it. `repr` omits the values.

    :param key: `TablePrivate.key` of that window
    :param names: `TablePrivate.names` of that window
    :param bits: the bit of each row, one byte 0 or 1, shape (rows,)
    :param positions: the number of positions of each row, int32, shape (rows,)
    :param opening: `CommittedTable.carried_opening` of that window
    :param carried: for each row, whether it is in this window's table. The rows that are follow the drawn rows there,
        in the same order
    :param listed: with pooled listing, the rows that were listed when that window ended, one byte 0 or 1, shape
        (rows,), and the blindings of their commitment; otherwise None
    """

    key: bytes = field(repr=False)
    names: Sequence[bytes | None] = field(repr=False)
    bits: bytes = field(repr=False)
    positions: bytes = field(repr=False)
    opening: bytes = field(repr=False)
    carried: Sequence[bool] = field(repr=False)
    listed: tuple[bytes, bytes] | None = field(default=None, repr=False)


@dataclass(frozen=True)
class DocumentTablePrivate:
    """The private inputs of the proof of a sample by document, which `repr` omits.

    :param s0: first half of the seed
    :param s1: second half of the seed
    :param table: the values behind the commitment to the table
    :param previous: the values behind the commitment to the table before; None in the first window of a chain
    :param low_memory: see `SlotProofJob`
    """

    s0: int = field(repr=False)
    s1: int = field(repr=False)
    table: TablePrivate = field(repr=False)
    previous: PreviousTablePrivate | None = field(repr=False)
    low_memory: bool = False

    def check(self, public: DocumentTablePublic) -> None:
        """Return if there is a table before exactly if the statement names one.

        :raises WitnessError: statement and private inputs disagree
        """
        if (public.previous is None) != (self.previous is None):
            raise WitnessError(
                "the statement and the private inputs disagree",
                field="previous",
                expected="no table before" if public.previous is None else "a table before",
                actual="none" if self.previous is None else "one",
            )


@dataclass(frozen=True)
class CommittedColumn:
    """A tenant's committed and proved column, one for each window.

    :param commitment: the commitment; the ledger gets its digest
    :param proof: the proof as files carry it
    :param opening: the secret salt or blindings of the commitment, which must outlive the window's proving: the ledger
        names one commitment, and no other has this opening
    """

    commitment: ColumnCommitment
    proof: dict[str, Json]
    opening: bytes = field(repr=False)


@dataclass(frozen=True)
class CommittedTable(CommittedColumn):
    """A tenant's sample by document, committed and proved. `commitment` and `opening` are of the sample.

    :param carried: the commitment to the table with its bits, which the next window of the chain names
    :param carried_opening: the secret blindings of the bits and of the numbers of positions of the rows, and with
        pooled listing of the rows that are listed when the window begins, which must outlive the chain's next proof
    """

    carried: ColumnCommitment
    carried_opening: bytes = field(repr=False)


@dataclass(frozen=True)
class CoalitionPrivate:
    """The private inputs of a coalition proof, which `repr` omits.

    :param vectors: the records' vectors, int8 in -7..7, row by row, shape (records, dimension)
    :param salts: salt of each record's cq
    :param labels: label of each account, 0..accounts - 1
    """

    vectors: bytes = field(repr=False)
    salts: Sequence[int] = field(repr=False)
    labels: Sequence[int] = field(repr=False)


def slot_public(slot: SlotKey, tenant: TenantPublic, *, header: WindowHeader, beacon: bytes) -> SlotPublic:
    """The public values of a slot's noise proof, from published entries only.

    :param beacon: the beacon value that the slots of the account use
    """
    return SlotPublic(
        tenant=tenant,
        c_seed=int(header.c_seed, 16),
        beacon=digest_to_field(beacon),
        slot=slot_id(header.window, slot.tenant, slot.account, slot.i),
    )
