"""The public values of circuits for several records, or for a hash of the proved values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rag_audit._internal.errors import SchemaError
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
class CoalitionDigest(PublicValues):
    """The public value of a window's coalition proof by the circuit `coalition`.

    :param statement: hash of everything that the coalition proof is about (`groth16.coalition`)
    """

    statement: int
