"""The public values of circuits for several records, or for a hash of the proved values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rag_audit._internal.errors import SchemaError
from rag_audit.proofs.statements.document_table import DocumentTablePublic
from rag_audit.proofs.statements.retrieve import SampledStatement, Statement
from rag_audit.proofs.statements.tenant import PublicValues
from rag_audit.relation.field import digest_to_field, from_hex


@dataclass(frozen=True)
class ManyStatement(PublicValues):
    """The public values of one proof for several records of one tenant and window. They are the values of `Statement`,
    as lists if they differ from record to record.
    """

    ctx: tuple[int, ...]
    c_seed: int
    beacon: tuple[int, ...]
    slot: tuple[int, ...]
    c_idx: int
    cq: tuple[int, ...]
    htopk: tuple[int, ...]

    @staticmethod
    def of(records: Sequence[Statement], places: int) -> ManyStatement:
        """The statement for records in their order; unused places repeat the last record.

        :returns: a `ManySampledStatement` for records of a sampled tenant
        :raises SchemaError: there are no records or too many, or they differ in index, seed or sampled positions
        """
        if not 1 <= len(records) <= places:
            raise SchemaError(
                "the number of records does not fit the proof",
                field="records",
                expected=f"1..{places}",
                actual=len(records),
            )
        first = records[0]
        for name in ("c_seed", "c_idx", "c_kept"):
            for number, record in enumerate(records):
                if getattr(record, name, None) != getattr(first, name, None):
                    raise SchemaError(
                        "records of several tenants or windows cannot share a proof",
                        field=f"records[{number}].{name}",
                    )
        filled = [*records, *[records[-1]] * (places - len(records))]
        lists = {
            name: tuple(getattr(r, name) for r in filled) for name in ("ctx", "beacon", "slot", "cq", "htopk")
        }
        if isinstance(first, SampledStatement):
            return ManySampledStatement(c_seed=first.c_seed, c_idx=first.c_idx, c_kept=first.c_kept, **lists)
        return ManyStatement(c_seed=first.c_seed, c_idx=first.c_idx, **lists)


@dataclass(frozen=True)
class ManySampledStatement(ManyStatement):
    """`ManyStatement` of a sampled tenant.

    :param c_kept: as in `SampledStatement`
    """

    c_kept: int


@dataclass(frozen=True)
class DocumentsStatement(PublicValues):
    """The public values of the circuit `documents`: a sample by document, and the tables that it is about.

    :param ctx: digest of window header, tenant, both tables and every public number
    :param c_seed: commitment to the window's seed
    :param beacon: f(value of the window's beacon, entry 1 or its replacement)
    :param slot: the tenant's sampling slot
    :param keep: Pi: the bit of a fresh row is 1 if its draw is below it
    :param drawn: the number of fresh rows, which are the first rows
    :param most: the maximum number of positions of a row
    :param continued: 1 if there is a table before, otherwise 0
    :param c_table: the commitment to the table in the window header
    :param c_previous: the commitment to the table before with its bits; 0 without one
    :param c_carried: the commitment to the table with its bits, which the next window names
    :param c_kept: the commitment to the sampled positions
    """

    ctx: int
    c_seed: int
    beacon: int
    slot: int
    keep: int
    drawn: int
    most: int
    continued: int
    c_table: int
    c_previous: int
    c_carried: int
    c_kept: int

    @classmethod
    def of(cls, public: DocumentTablePublic, *, c_carried: int, c_kept: int) -> DocumentsStatement:
        """The statement that two commitments contain the sample by document and the table with its bits.

        :raises EncodingError: a commitment in the window header is not a field element
        """
        before = public.previous
        return cls(
            ctx=digest_to_field(public.context),
            c_seed=public.c_seed,
            beacon=public.beacon,
            slot=public.slot,
            keep=public.bound,
            drawn=public.drawn,
            most=public.positions_per_document,
            continued=0 if before is None else 1,
            c_table=from_hex(public.table.digest, field="table.c_table"),
            c_previous=0 if before is None else from_hex(before.digest, field="table.previous.carried"),
            c_carried=c_carried,
            c_kept=c_kept,
        )


@dataclass(frozen=True)
class NamesStatement(PublicValues):
    """The public values of the circuit `names`: opened positions and names, and the table that has them.

    :param ctx: digest of window header, tenant, capacity, rows and table
    :param c_table: the commitment to the table in the window header
    :param c_opened: hash of the opened positions and names (`relation.document_table.opened_list`)
    """

    ctx: int
    c_table: int
    c_opened: int


@dataclass(frozen=True)
class CoalitionDigest(PublicValues):
    """The public value of a window's coalition proof by the circuit `coalition`.

    :param statement: hash of everything that the coalition proof is about (`groth16.coalition`)
    """

    statement: int
