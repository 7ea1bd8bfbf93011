"""Query proofs: the listed positions are the first of all noised scores, for one record or several
(docs/scan/query.md, batch.md)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rag_audit.proofs.backends.reference import limits
from rag_audit.proofs.backends.reference.closing import close
from rag_audit.proofs.backends.reference.extensions import below, eq_table, evaluation, log2, numbers
from rag_audit.proofs.backends.reference.group import Point
from rag_audit.proofs.backends.reference.index import NIBBLES, Index, IndexLink, nibbles
from rag_audit.proofs.backends.reference.lookup import RANGE, Columns, Segment, in_range, look_up, ranges
from rag_audit.proofs.backends.reference.poseidon import Call, list_calls, permutations
from rag_audit.proofs.backends.reference.session import (
    Column,
    Expr,
    Pairs,
    Session,
    joined,
    limbs,
    row_bits,
    total,
)
from rag_audit.proofs.backends.reference.transcript import Reader
from rag_audit.relation.scores import ScoreWindow
from rag_audit.relation.tags import TAG_TOPK, TAG_VECTOR

RUN = "query"
SCORES_TAG, OWN_TAGS, LIMB_BITS, LARGEST = 2, 1 << 10, 16, 254
REACH, MAX_SCORE = 49, 1 << 31


@dataclass(frozen=True)
class Asked:
    """The public values of query proofs; noise is the rows of the noise proofs, one list per record, none without
    gains."""

    context: bytes
    index: Index
    gains: Sequence[int]
    window: ScoreWindow
    listed: int
    noise: Sequence[Sequence[Point]]
    kept: Sequence[Point] | None
    commitments: Sequence[tuple[int, int]]
    """cq and htopk of each record."""

    def __post_init__(self) -> None:
        index, count = self.index, len(self.commitments)
        rows = (index.capacity - 1 >> row_bits(index.capacity, count)) + 1
        noised = count if self.gains else 0
        limits.require(
            capacity=limits.positions(index.capacity),
            dimension=limits.components(index.dimension),
            gains=not self.gains or limits.noised(self.gains),
            listed=limits.listed(self.listed, index.capacity),
            hi=self.window.hi < MAX_SCORE,
            records=limits.batch(count, index.capacity, self.gains, sampled=self.kept is not None),
            noise=[len(column) for column in self.noise] == [rows] * noised,
            kept=self.kept is None or len(self.kept) == rows,
        )

    @property
    def limbs(self) -> int:
        """Limbs of the difference of two keys."""
        n = log2(self.index.capacity)
        span = self.window.lattice + LARGEST * sum(self.gains) + 1
        return -(-(n + span.bit_length()) // LIMB_BITS)


@dataclass(frozen=True)
class Record:
    """The columns and the list of one record."""

    scores: Column
    step: Column
    weighed: Column | None
    """Kept scores, of a sampled tenant."""
    noise: Column | None
    selected: Column
    distance: Sequence[Column]
    salt: Expr
    positions: Sequence[Expr]
    values: Sequence[Expr]
    order: Sequence[Expr]

    @property
    def noised(self) -> Pairs:
        result = (self.weighed or self.step, self.noise)
        return [(c, 1) for c in result if c is not None]


def _statement(reader: Reader, claim: Asked) -> None:
    said, index, window = reader.transcript, claim.index, claim.window
    said.raw("context", claim.context)
    said.raw("index", index.digest)
    said.integers(("capacity", index.capacity), ("dimension", index.dimension))
    said.integers(("gain count", len(claim.gains)), *(("gain", gain) for gain in claim.gains))
    said.integers(("lo", window.lo), ("hi", window.hi), ("lattice", window.lattice), ("listed", claim.listed))
    said.integers(("record count", len(claim.commitments)), ("noise columns", len(claim.noise)))
    for rows in claim.noise:
        said.points("noise", rows)
    said.integer("kept columns", claim.kept is not None)
    said.points("kept", claim.kept or [])
    for cq, htopk in claim.commitments:
        said.scalars(("cq", cq), ("htopk", htopk))


def read(claim: Asked, reader: Reader) -> Session:
    _statement(reader, claim)
    index, count = claim.index, len(claim.commitments)
    session = Session(reader, row_bits(index.capacity, count))
    link = IndexLink.read(session, index, count)
    kept = None if claim.kept is None else session.column(claim.kept, index.capacity)
    records, tables = _columns(session, claim, link, sampled=kept is not None)
    lists = link.lists(session)
    calls: list[Call] = []
    for record, elements, (cq, htopk) in zip(records, lists, claim.commitments, strict=True):
        calls += list_calls(session, TAG_VECTOR, elements, cq)
        listed: list[Expr | int] = [record.salt, claim.listed, *record.positions]
        calls += list_calls(session, TAG_TOPK, listed, htopk)
    _lookups(session, claim, link, records, tables)
    selection(session, index.capacity, records, [] if kept is None else [kept])
    permutations(session, calls)
    close(session, link)
    return session


def _columns(
    session: Session, claim: Asked, link: IndexLink, *, sampled: bool
) -> tuple[list[Record], Sequence[Column]]:
    """Columns and lists of the records, and the multiplicities of scores, ranges and nibbles."""
    capacity, b = claim.index.capacity, claim.limbs
    noise: list[Column | None] = [session.column(rows, capacity) for rows in claim.noise]
    noise = noise or [None] * len(link.scores)
    own = [capacity] * (2 + sampled + b)
    tables = [score_rows(claim.index.dimension), RANGE, len(NIBBLES)]
    sent = session.commit("answer columns", own * len(noise) + tables)
    records = []
    listed = read_lists(session, claim, len(noise))
    for i, (scores, z, of) in enumerate(zip(link.scores, noise, listed, strict=True)):
        step, *columns = sent[i * len(own) : (i + 1) * len(own)]
        weighed = columns.pop(0) if sampled else None
        selected, *distance = columns
        records.append(Record(scores, step, weighed, z, selected, distance, *of))
    return records, sent[len(own) * len(noise) :]


def read_lists(
    session: Session, claim: Asked, count: int
) -> list[tuple[Expr, list[Expr], list[Expr], list[Expr]]]:
    """Salt, positions, values and limbs of the order of each record's list."""
    k, b = claim.listed, claim.limbs
    size = 1 + 2 * k + (k - 1) * b
    sent, lists = session.send("listed", size * count), []
    for i in range(count):
        salt, *rest = sent[i * size : (i + 1) * size]
        positions, values, order = rest[:k], rest[k : 2 * k], rest[2 * k :]
        keys = [_key(claim.index.capacity, p, y) for p, y in zip(positions, values, strict=True)]
        for j in range(k - 1):
            gap = total((1 << LIMB_BITS * x, o) for x, o in enumerate(order[j * b : (j + 1) * b]))
            session.constraint("order of the list", keys[j] - keys[j + 1] - 1 - gap)
        lists.append((salt, positions, values, order))
    return lists


def _key(capacity: int, position: Expr, value: Expr) -> Expr:
    """2^n y + 2^n - 1 - p: the order of positions."""
    places = 1 << log2(capacity)
    return places * value - position + (places - 1)


def score_rows(dimension: int) -> int:
    return 1 << log2(2 * REACH * dimension + 1)


def every_score(dimension: int) -> list[int]:
    """The rows of the table of scores: -49 d to 49 d, the last one repeated."""
    maximum = REACH * dimension
    return [min(row - maximum, maximum) for row in range(score_rows(dimension))]


def score_table(dimension: int, steps: Callable[[int], int], multiplicities: Column) -> Segment:
    """Every score from -49 d to 49 d, with its lattice step."""
    scores = every_score(dimension)
    return Segment(SCORES_TAG, [scores, [steps(score) for score in scores]], len(scores), multiplicities)


def _lookups(
    session: Session, claim: Asked, link: IndexLink, records: Sequence[Record], tables: Sequence[Column]
) -> None:
    index = claim.index
    capacity, (of_scores, in_ranges, of_nibbles) = index.capacity, tables
    named = [
        score_table(index.dimension, claim.window.quantise, of_scores),
        nibbles(of_nibbles),
        ranges(in_ranges),
    ]
    for number, (r, components) in enumerate(zip(records, link.components(), strict=True)):
        named += [
            Segment(SCORES_TAG, [r.scores, r.step], capacity),
            *of_list(r, number, capacity, components),
        ]
    look_up(session, named)


def of_list(record: Record, number: int, capacity: int, components: Segment) -> list[Segment]:
    """The lookups of one record's list."""
    tag, k = OWN_TAGS + number, len(record.positions)
    return [
        Segment(tag, [range(capacity), Columns(record.noised)], capacity, record.selected),
        Segment(tag, [record.positions, record.values], k),
        components,
        *(in_range(d, capacity) for d in record.distance),
        *[in_range(record.order, len(record.order))] * (k > 1),
    ]


def selection(session: Session, capacity: int, records: Sequence[Record], kept: Sequence[Column]) -> None:
    """The listed positions are the first ones.

    :param kept: each record's marks of the positions that score; none if all do
    """
    lanes = log2(len(records))
    tau = session.challenges("selection", lanes + log2(capacity))
    chi = session.challenge("selected rows")
    point, claim = session.reduce("selection", tau, 0, 3)
    weights, p = eq_table(point[:lanes], len(records)), point[lanes:]
    b, y, d, chosen, square = session.send("selection", 5)
    f, inside = sum(weights), below(p, capacity)
    minimum = [_key(capacity, r.positions[-1], r.values[-1]) for r in records]
    places, whole = 1 << log2(capacity), inside * f
    above = places * y + (places - 1) * whole - numbers(p, capacity) * f
    above -= inside * total(zip(weights, minimum, strict=True))
    session.product("selection", b, above, chosen)
    session.product("selected rows", b, b, square)
    shown = whole * (2 * chosen - above - 1 + b - d) + chi * (square - whole * b) - claim
    at, values = evaluation(p), [b, y, d]
    pairs = [
        joined(weights, [[(r.selected, 1)] for r in records]),
        joined(weights, [r.noised for r in records]),
        joined(weights, [limbs(r.distance) for r in records]),
    ]
    if kept:
        coin, step, weighed, scored = session.send("kept rows", 4)
        session.product("kept rows", coin, step, scored)
        shown += chi * chi * (scored - weighed)
        values += [coin, step, weighed]
        weighed_columns = [r.weighed for r in records if r.weighed is not None]
        for columns in (kept, [r.step for r in records], weighed_columns):
            pairs.append(joined(weights, [[(c, 1)] for c in columns]))
    session.constraint("selection", shown)
    for result, value in zip(pairs, values, strict=True):
        session.claim(at, result, value)
