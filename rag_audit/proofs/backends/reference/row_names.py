"""Names of the rows of opened positions (docs/scan/row-names.md)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from rag_audit.proofs.backends.reference import limits
from rag_audit.proofs.backends.reference.closing import close
from rag_audit.proofs.backends.reference.document_table import (
    MAX_ROWS,
    NAME_LIMB_BITS,
    NAMES,
    table_columns,
)
from rag_audit.proofs.backends.reference.extensions import Entries, eq_table, log2
from rag_audit.proofs.backends.reference.group import Point
from rag_audit.proofs.backends.reference.lookup import Columns, Segment, look_up
from rag_audit.proofs.backends.reference.session import Session, limbs, row_bits
from rag_audit.proofs.backends.reference.transcript import Reader
from rag_audit.relation.field import MODULUS

RUN = "row names"
MAX_OPENED, NAME_TAG = 10_000, 10


@dataclass(frozen=True)
class RowNames:
    """Opened positions with the names of their rows.

    :param row: commitments to the row of each position
    :param columns: commitments to the marks of rows with a name, and to the five columns of names
    :param positions: increasing numbers below the capacity
    :param names: the name of each position's row, as an element
    """

    context: bytes
    capacity: int
    rows: int
    row: Sequence[Point]
    columns: Sequence[Sequence[Point]]
    positions: Sequence[int]
    names: Sequence[int]

    @classmethod
    def decode(
        cls,
        context: bytes,
        capacity: int,
        rows: int,
        table: bytes,
        positions: Sequence[int],
        names: Sequence[int],
    ) -> RowNames:
        """A statement from the points of the table's columns, 32 bytes each.

        :raises EncodingError: a number is out of range, another number of points, or one off the curve
        """
        row, columns = table_columns(table, capacity, rows)
        return cls(context, capacity, rows, row, columns, positions, names)

    def __post_init__(self) -> None:
        n = self.capacity
        limits.require(capacity=limits.positions(n), rows=1 <= self.rows <= min(MAX_ROWS, n))
        bits = row_bits(n)
        sizes = [(len(self.row), n), *((len(column), self.rows) for column in self.columns)]
        limits.require(
            table=len(self.columns) == len(NAMES)
            and all(points == (entries - 1 >> bits) + 1 for points, entries in sizes),
            positions=1 <= len(self.positions) <= min(MAX_OPENED, n)
            and all(0 <= position < n for position in self.positions)
            and all(a < b for a, b in pairwise(self.positions)),
            names=len(self.names) == len(self.positions) and all(0 <= name < MODULUS for name in self.names),
        )


def read(opened: RowNames, reader: Reader) -> Session:
    """The whole run: its claims."""
    said, n = reader.transcript, opened.capacity
    said.raw("context", opened.context)
    said.integers(("capacity", n), ("rows", opened.rows))
    session = Session(reader, row_bits(n))
    said.points("row", opened.row)
    row = session.column(opened.row, n)
    given = []
    for label, points in zip(NAMES, opened.columns, strict=True):
        said.points(label, points)
        given.append(session.column(points, opened.rows))
    named, *name = given
    count = len(opened.positions)
    said.integer("opened positions", count)
    for position, element in zip(opened.positions, opened.names, strict=True):
        said.integer("opened position", position)
        said.scalar("opened name", element)
    numbers, multiplicities = session.commit("row name columns", [count, opened.rows])
    different = list(dict.fromkeys(opened.names))
    one = [1] * len(different)
    look_up(
        session,
        [
            Segment(NAME_TAG, [numbers, different, one], len(different), among=count),
            Segment(
                NAME_TAG,
                [range(opened.rows), Columns(limbs(name, bits=NAME_LIMB_BITS)), named],
                opened.rows,
                multiplicities,
            ),
        ],
    )
    weights = eq_table(session.challenges("opened rows", log2(count)), count)
    of_names = dict.fromkeys(different, 0)
    for element, weight in zip(opened.names, weights, strict=True):
        of_names[element] = (of_names[element] + weight) % MODULUS
    (number,) = session.send("row numbers", 1)
    by_position = zip(opened.positions, weights, strict=True)
    session.claim(Entries(tuple(by_position)), [(row, 1)], number)
    session.claim(Entries(tuple(enumerate(of_names.values()))), [(numbers, 1)], number)
    close(session)
    return session
