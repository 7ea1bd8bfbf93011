"""Proofs of a document table: all positions of a row share one coin, which persists (docs/scan/document-table.md)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

from rag_audit._internal.errors import EncodingError
from rag_audit.proofs.backends.reference import limits
from rag_audit.proofs.backends.reference.closing import close
from rag_audit.proofs.backends.reference.drawn import DRAW_BITS, BernoulliBits, Drawing, Seed
from rag_audit.proofs.backends.reference.extensions import evaluation, log2
from rag_audit.proofs.backends.reference.group import POINT_BYTES, Point, decode
from rag_audit.proofs.backends.reference.lookup import Columns, Entry, Segment, look_up
from rag_audit.proofs.backends.reference.session import Column, Expr, Session, limbs, row_bits
from rag_audit.proofs.backends.reference.transcript import Reader

RUN, POOLED_RUN = "document table", "pooled document table"
MAX_ROWS, NAME_LIMBS, NAME_LIMB_BITS = 1 << 20, 5, 51
ROW_TAG, COUNT_TAG, CARRIED_TAG = 4, 5, 6
NAMES = ("named", *["name"] * NAME_LIMBS)
BEFORE = (*(f"previous {label}" for label in NAMES), "previous kept", "previous count")
POOLED_BEFORE = (*BEFORE, "previous listed")


@dataclass(frozen=True)
class DocumentTable:
    """A window's table.

    :param rows: how many rows it has, the first `fresh` of them new
    :param most: the largest number of positions of a row
    :param row: commitments to the row of each position
    :param names: commitments to the columns of names
    :param before: commitments to names, coins and numbers of positions of the table before, and with pooled listing to
        the rows that were listed when the window before ended
    """

    context: bytes
    seed: Seed
    capacity: int
    rows: int
    most: int
    fresh: int
    bound: int
    row: Sequence[Point]
    names: Sequence[Sequence[Point]]
    before: Sequence[Sequence[Point]] | None

    @classmethod
    def decode(
        cls,
        context: bytes,
        seed: Seed,
        numbers: tuple[int, int, int, int, int],
        table: bytes,
        previous: bytes | None,
        *,
        listed: bool = False,
    ) -> DocumentTable:
        """A table from the points of its columns, 32 bytes each.

        :param numbers: capacity, rows, `most`, `fresh` and `bound`
        :param listed: whether the last column of the table before has listed rows
        :raises EncodingError: a number is out of range, another number of points, or one off the curve
        """
        capacity, rows, *_ = numbers
        row, names = table_columns(table, capacity, rows)
        columns = len(POOLED_BEFORE if listed else BEFORE)
        before = None if previous is None else _split(previous, [rows] * columns, capacity, "previous")
        return cls(context, seed, *numbers, row, names, before)

    def __post_init__(self) -> None:
        limits.require(
            capacity=limits.positions(self.capacity),
            rows=1 <= self.rows <= min(MAX_ROWS, self.capacity),
            most=1 <= self.most <= self.capacity,
            fresh=1 <= self.fresh <= self.rows and (self.before is not None or self.fresh == self.rows),
        )
        limits.require(
            bound=1 <= self.bound < 1 << DRAW_BITS,
            names=len(self.names) == len(NAMES),
            before=self.before is None or len(self.before) in (len(BEFORE), len(POOLED_BEFORE)),
        )
        bits = row_bits(self.capacity)
        each = {label: len(points) == (entries - 1 >> bits) + 1 for label, entries, points in self.columns()}
        limits.require(**each)

    @property
    def pooled(self) -> bool:
        """Whether rows stay listed."""
        return self.before is not None and len(self.before) == len(POOLED_BEFORE)

    @property
    def run(self) -> str:
        """The label of the run."""
        return POOLED_RUN if self.pooled else RUN

    def columns(self) -> list[tuple[str, int, Sequence[Point]]]:
        """Label, entries and commitments."""
        of_before = () if self.before is None else POOLED_BEFORE if self.pooled else BEFORE
        labels = [*NAMES, *of_before]
        points = [*self.names, *(self.before or ())]
        rest = [(label, self.rows, column) for label, column in zip(labels, points, strict=True)]
        return [("row", self.capacity, self.row), *rest]


def table_columns(table: bytes, capacity: int, rows: int) -> tuple[list[Point], list[list[Point]]]:
    """The points of the column of rows, and of the columns of names.

    :raises EncodingError: a number is out of range, another number of points, or one off the curve
    """
    limits.require(capacity=limits.positions(capacity), rows=1 <= rows <= min(MAX_ROWS, capacity))
    row, *names = _split(table, [capacity, *[rows] * len(NAMES)], capacity, "table")
    return row, names


def _split(data: bytes, entries: Sequence[int], capacity: int, field: str) -> list[list[Point]]:
    """The points of columns with so many entries."""
    bits = row_bits(capacity)
    sizes = [(count - 1 >> bits) + 1 for count in entries]
    expected = POINT_BYTES * sum(sizes)
    if len(data) != expected:
        raise EncodingError(
            "the commitment has another length", field=field, expected=f"{expected} bytes", actual=len(data)
        )
    points = iter([decode(data[i : i + POINT_BYTES]) for i in range(0, expected, POINT_BYTES)])
    return [list(islice(points, size)) for size in sizes]


def _carried(names: Sequence[Column], *marks: Column) -> list[Entry]:
    return [names[0], Columns(limbs(names[1:], bits=NAME_LIMB_BITS)), *marks]


def read(table: DocumentTable, reader: Reader) -> tuple[Session, list[Column]]:
    """The whole run: its claims, and the columns of coins by position, of coins by row, and of numbers of positions.
    With pooled listing then the column of rows that are listed when the window begins."""
    coins = BernoulliBits(table.context, table.seed, table.fresh, table.bound)
    said, n = reader.transcript, table.capacity
    said.raw("context", table.context)
    table.seed.absorb(said)
    said.integers(("capacity", n), ("rows", table.rows), ("positions per row", table.most))
    said.integers(("fresh rows", table.fresh), ("bound", table.bound))
    said.integer("previous tables", int(table.before is not None))
    session = Session(reader, row_bits(n))
    given = []
    for label, entries, points in table.columns():
        said.points(label, points)
        given.append(session.column(points, entries))
    row, named, *rest = given
    names, before = [named, *rest[:NAME_LIMBS]], rest[NAME_LIMBS:]
    draws = Drawing.sent(session, coins, table.rows)
    (slot,) = draws.slots
    kept, end = slot.column, table.most + 1
    own = [n, table.rows, 1, end + 1, *([table.rows] if before else []), *([table.rows] * table.pooled)]
    sample, count, unplaced, numbers, *taken = session.commit("table columns", own)
    listed: list[Column] = []
    one = [1] * end
    segments = [
        Segment(ROW_TAG, [row, sample], n),
        Segment(ROW_TAG, [range(table.rows), kept], table.rows, count),
        Segment(ROW_TAG, [[table.rows], [0]], 1, unplaced),
        Segment(COUNT_TAG, [range(end), one], end + 1, numbers),
        Segment(COUNT_TAG, [count, named], table.rows),
    ]
    if before:
        carried, *listed = taken
        names_before, marks = before[: len(NAMES)], before[len(NAMES) :]
        kept_before, count_before, *listed_before = marks
        segments += [
            Segment(COUNT_TAG, [count_before, carried], table.rows),
            Segment(CARRIED_TAG, _carried(names, kept, *listed), table.rows),
            Segment(CARRIED_TAG, _carried(names, kept, *listed), table.fresh, 1),
            Segment(CARRIED_TAG, _carried(names_before, kept_before, *listed_before), table.rows, carried),
        ]
    look_up(session, [*draws.segments(), *segments])
    draws.compare(session)
    a = session.challenges("fresh coins", log2(table.fresh))
    coin = slot.looked[coins.VALUE]
    session.claim(evaluation(a, table.fresh), [(kept, 1), (coin, -1)], Expr())
    for column in listed:
        a = session.challenges("unlisted rows", log2(table.fresh))
        session.claim(evaluation(a, table.fresh), [(column, 1)], Expr())
    draws.prove_words(session)
    close(session)
    return session, [sample, kept, count, *listed]
