"""Cases of the circuit `documents`, by the Python reference. Every public value follows from the case, so a case whose
tables break the statement is a cheating prover with consistent commitments."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from rag_audit.proofs.backends.groth16.circuit import Inputs
from rag_audit.proofs.backends.groth16.documents import DocumentTableJob, moves
from rag_audit.proofs.backends.groth16.instance import DOCUMENTS_INPUTS, DocumentsInstance
from rag_audit.proofs.backends.groth16.statements import DocumentsStatement
from rag_audit.relation import commitments, document_table
from rag_audit.relation.bernoulli import PROBABILITY_RANGE
from rag_audit.relation.draws import bernoulli_bits
from rag_audit.relation.field import MODULUS
from rag_audit.relation.poseidon import hash_list
from rag_audit.relation.vectors import pack_bits

TINY = DocumentsInstance(8, 5)


@dataclass(frozen=True)
class Table:
    """A table with its bits.

    :param names: 0 for a row without a name
    :param row: the row of each position; the number of rows for a position without a row
    :param counts: the numbers of positions in the marks, if they are not those of `row`
    """

    names: tuple[int, ...]
    kept: tuple[bool, ...]
    row: tuple[int, ...]
    names_salt: int
    rows_salt: int
    carried_salt: int
    counts: tuple[int, ...] | None = None

    @property
    def positions(self) -> list[int]:
        return list(self.counts or (self.row.count(row) for row in range(len(self.names))))

    @property
    def names_hash(self) -> int:
        return hash_list(*document_table.names_list(self.names_salt, self.names))

    @property
    def c_table(self) -> int:
        rows = len(self.names)
        return hash_list(*document_table.rows_list(self.rows_salt, self.names_hash, rows, self.row))

    @property
    def c_carried(self) -> int:
        listed = document_table.carried_list(
            self.carried_salt, self.names_hash, len(self.row), self.kept, self.positions
        )
        return hash_list(*listed)


@dataclass(frozen=True)
class DocumentsCase:
    """A tenant's table in one window, the table before, and what the prover claims about both.

    :param carried: the row of the table before of each row after the drawn ones
    :param sample: the sampled positions, if they are not those of `table`
    :param moved: the input `move`, if it is not that of `carried`
    """

    instance: DocumentsInstance
    ctx: int
    s0: int
    s1: int
    beacon: int
    slot: int
    keep: int
    kept_salt: int
    drawn: int
    most: int
    table: Table
    before: Table | None
    carried: tuple[int, ...] = ()
    sample: tuple[bool, ...] | None = None
    moved: tuple[int, ...] | None = None

    def coins(self) -> list[bool]:
        kappa = commitments.noise_key(self.s0, self.s1, self.beacon, self.slot)
        return bernoulli_bits(kappa, self.instance.rows, self.keep)

    def sampled(self) -> list[bool]:
        return list(self.sample or ([*self.table.kept, False][row] for row in self.table.row))

    def inputs(self) -> Inputs:
        rows, capacity, before = self.instance.rows, self.instance.capacity, self.before
        sampled, table = self.sampled(), self.table
        # Without a table before the prover takes one without names, bits and positions.
        empty = Table((0,) * rows, (False,) * rows, (rows,) * capacity, 0, 0, 0)
        then = before or empty
        return {
            "ctx": self.ctx,
            "c_seed": commitments.seed_commitment(self.s0, self.s1),
            "beacon": self.beacon,
            "slot": self.slot,
            "keep": self.keep,
            "drawn": self.drawn,
            "most": self.most,
            "continued": 0 if before is None else 1,
            "c_table": table.c_table,
            "c_previous": 0 if before is None else before.c_carried,
            "c_carried": table.c_carried,
            "c_kept": commitments.sample_commitment(self.kept_salt, sampled),
            "s0": self.s0,
            "s1": self.s1,
            "kept_salt": self.kept_salt,
            "kept": pack_bits(sampled),
            "names_salt": table.names_salt,
            "name": list(table.names),
            "table_salt": table.rows_salt,
            "row": document_table.pack_rows(rows, table.row),
            "carried_salt": table.carried_salt,
            "mark": document_table.pack_marks(capacity, table.kept, table.positions),
            "before_names_salt": then.names_salt,
            "before_name": list(then.names),
            "before_salt": then.carried_salt,
            "before_mark": document_table.pack_marks(capacity, then.kept, then.positions),
            "move": list(self.moved or moves(rows, self.drawn, self.carried)),
        }

    def job(self) -> DocumentTableJob:
        inputs = self.inputs()
        public: dict[str, Any] = {name: inputs[name] for name in DOCUMENTS_INPUTS}
        private = {name: value for name, value in inputs.items() if name not in public}
        return DocumentTableJob(self.instance, DocumentsStatement(**public), private)


def _rows(rng: random.Random, capacity: int, most: int, names: Sequence[int]) -> tuple[int, ...]:
    """A row for each position: at most `most` positions of a row with a name, and some positions without a row."""
    places = [row for row, name in enumerate(names) if name for _ in range(rng.randrange(most + 1))]
    rng.shuffle(places)
    result = [*places[:capacity], *[len(names)] * (capacity - len(places))]
    rng.shuffle(result)
    return tuple(result)


def first_case(instance: DocumentsInstance, seed: int, most: int = 2) -> DocumentsCase:
    """The first window of a chain, with random secrets; the last row has no name."""
    rng = random.Random(seed)
    ctx, s0, s1, beacon, slot, kept_salt, *salts = (rng.randrange(MODULUS) for _ in range(9))
    keep = PROBABILITY_RANGE // 2
    kappa = commitments.noise_key(s0, s1, beacon, slot)
    kept = tuple(bernoulli_bits(kappa, instance.rows, keep))
    names = (*(rng.randrange(1, MODULUS) for _ in range(instance.rows - 1)), 0)
    table = Table(names, kept, _rows(rng, instance.capacity, most, names), *salts)
    return DocumentsCase(
        instance, ctx, s0, s1, beacon, slot, keep, kept_salt, instance.rows, most, table, None
    )


def next_case(before: DocumentsCase, seed: int, drawn: int) -> DocumentsCase:
    """The next window: rows without positions give way to `drawn` new ones. Positions of the rows are drawn again."""
    rng = random.Random(seed)
    rows, capacity = before.instance.rows, before.instance.capacity
    ctx, s0, s1, beacon, slot, kept_salt, *salts = (rng.randrange(MODULUS) for _ in range(9))
    unused = [row for row, count in enumerate(before.table.positions) if not count]
    replaced = set(rng.sample(unused, drawn))
    carried = tuple(row for row in range(rows) if row not in replaced)
    coins = bernoulli_bits(commitments.noise_key(s0, s1, beacon, slot), rows, before.keep)
    names = tuple(rng.randrange(1, MODULUS) for _ in range(drawn)) + tuple(
        before.table.names[r] for r in carried
    )
    kept = (*coins[:drawn], *(before.table.kept[r] for r in carried))
    table = Table(names, kept, _rows(rng, capacity, before.most, names), *salts)
    return DocumentsCase(
        before.instance,
        ctx,
        s0,
        s1,
        beacon,
        slot,
        before.keep,
        kept_salt,
        drawn,
        before.most,
        table,
        before.table,
        carried,
    )


def of_rows(case: DocumentsCase, row: Sequence[int]) -> DocumentsCase:
    """The case with these positions in its table."""
    return replace(case, table=replace(case.table, row=tuple(row)))


def small_chain() -> tuple[DocumentsCase, DocumentsCase]:
    """Two windows of `TINY` whose rows a test can name. Before: row 0 has two positions, row 1 has one, rows 2 and 3 have
    a name and no position, row 4 has no name; the bits are those of the stream. After: two new rows, then rows 0, 1
    and 4."""
    rows, capacity = TINY.rows, TINY.capacity
    first = first_case(TINY, 3)
    first = of_rows(first, (0, rows, 1, rows, 0, rows, rows, rows))
    second = next_case(first, 4, 2)
    # Which two of the rows 2, 3 and 4 give way is random; here they are 2 and 3.
    carried = (0, 1, 4)
    names = (*second.table.names[:2], *(first.table.names[r] for r in carried))
    kept = (*second.table.kept[:2], *(first.table.kept[r] for r in carried))
    table = replace(second.table, names=names, kept=kept, row=(2, rows, 3, 0, 2, rows, 1, rows))
    assert len(table.row) == capacity
    return first, replace(second, table=table, carried=carried)
