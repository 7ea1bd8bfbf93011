"""The public values of circuits for several records, or for a hash of the proved values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from rag_audit._internal.errors import SchemaError
from rag_audit.proofs.chunks import narrowed
from rag_audit.proofs.statements.retrieve import SampledStatement, Statement
from rag_audit.proofs.statements.tenant import PublicValues


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
class RandomizedResponseStatement(PublicValues):
    """The public values of one proof for successive lists of one account of a tenant with randomized response.

    :param ctx: digest of each record's context
    :param c_seed: commitment to the window's seed
    :param beacon: f(beacon value) of each record
    :param slot: each record's slot
    :param c_idx: the tenant's index commitment
    :param cq: each record's query-vector commitment
    :param htopk: each record's commitment to the listed positions
    :param c_kept: the tenant's commitment to the sampled positions
    :param held_before: commitment to the account's disclosed set before the first of the records
    :param held_after: commitment to its disclosed set after the last
    :param chance: Q: a position is listed by chance if its draw is below it
    :param threshold: the minimum raw score of a relevant position
    :param most: M: maximum positions of a list
    """

    ctx: tuple[int, ...]
    c_seed: int
    beacon: tuple[int, ...]
    slot: tuple[int, ...]
    c_idx: int
    cq: tuple[int, ...]
    htopk: tuple[int, ...]
    c_kept: int
    held_before: int
    held_after: int
    chance: int
    threshold: int
    most: int

    @staticmethod
    def of(records: Sequence[RandomizedResponseStatement], places: int) -> RandomizedResponseStatement:
        """The statement for successive records of an account, each given by its own statement.

        :raises SchemaError: their number differs from the number of places, they do not follow one another, or their
            shared values differ
        """
        if len(records) != places:
            raise SchemaError("the number of records does not fit the proof", field="records", expected=places,
                              actual=len(records))  # fmt: skip
        first = records[0]
        for number, (one, after) in enumerate(pairwise(records)):
            if one.held_after != after.held_before:
                raise SchemaError("the records of a proof are not successive ones of one account",
                                  field=f"records[{number + 1}].held_before")  # fmt: skip
        for name in ("c_seed", "c_idx", "c_kept", "chance", "threshold", "most"):
            for number, record in enumerate(records):
                if getattr(record, name) != getattr(first, name):
                    raise SchemaError("records of several tenants or windows cannot share a proof",
                                      field=f"records[{number}].{name}")  # fmt: skip
        return replace(
            first,
            ctx=tuple(x for record in records for x in record.ctx),
            beacon=tuple(x for record in records for x in record.beacon),
            slot=tuple(x for record in records for x in record.slot),
            cq=tuple(x for record in records for x in record.cq),
            htopk=tuple(x for record in records for x in record.htopk),
            held_after=records[-1].held_after,
        )


@dataclass(frozen=True)
class CoalitionDigest(PublicValues):
    """The public value of a window's coalition proof by the circuit `coalition`.

    :param statement: hash of everything that the coalition proof is about (`groth16.coalition`)
    """

    statement: int


def joined(records: Sequence[PublicValues], places: int) -> ManyStatement | RandomizedResponseStatement:
    """The public values of one proof for records with these, in the proof's order.

    :raises SchemaError: the records cannot share a proof
    """
    if records and isinstance(records[0], RandomizedResponseStatement):
        return RandomizedResponseStatement.of(narrowed(RandomizedResponseStatement, records), places)
    return ManyStatement.of(narrowed(Statement, records), places)
