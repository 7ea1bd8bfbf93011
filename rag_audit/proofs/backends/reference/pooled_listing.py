"""Proofs of pooled listing: records that act one after another on one set of listed rows
(docs/scan/pooled-listing.md)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rag_audit.proofs.backends.reference import limits
from rag_audit.proofs.backends.reference.closing import close
from rag_audit.proofs.backends.reference.document_table import MAX_ROWS
from rag_audit.proofs.backends.reference.drawn import DRAW_BITS, BernoulliBits, Drawing, Drawn, Seed
from rag_audit.proofs.backends.reference.group import Point
from rag_audit.proofs.backends.reference.index import NIBBLES, Index, IndexLink, nibbles
from rag_audit.proofs.backends.reference.lookup import Columns, Segment, look_up
from rag_audit.proofs.backends.reference.poseidon import Call, list_calls
from rag_audit.proofs.backends.reference.query import (
    MAX_SCORE,
    REACH,
    Asked,
    Record,
    every_score,
    of_list,
    read_lists,
    score_rows,
    selection,
)
from rag_audit.proofs.backends.reference.session import Column, Expr, Session, row_bits
from rag_audit.proofs.backends.reference.transcript import Reader
from rag_audit.relation.scores import ScoreWindow
from rag_audit.relation.tags import TAG_TOPK, TAG_VECTOR

RUN = "pooled listing"
REACHED_TAG, RELEVANT_TAG, UPDATE_TAG, ROW_TAGS = 7, 8, 9, 1 << 11
UPDATES = 16
PLACE = 3
"""Hidden values of a place: whether it has a text, the inverse of its score, and its number in htopk."""


@dataclass(frozen=True)
class Requested:
    """One record: the slot of its chance, and what it publishes, commitments to the listed rows after it among it."""

    seed: Seed
    cq: int
    htopk: int
    after: Sequence[Point]


@dataclass(frozen=True)
class PooledListing:
    """Records in the order of the ledger.

    :param rows: how many rows the document table has
    :param most: the largest number of positions of a row
    :param bound: chance, over 2^40
    :param row: commitments to the row of each position
    :param kept: commitments to the coin of each row
    :param before: commitments to the rows that are listed before the first record
    """

    context: bytes
    index: Index
    rows: int
    most: int
    bound: int
    threshold: int
    window: ScoreWindow
    listed: int
    row: Sequence[Point]
    kept: Sequence[Point]
    before: Sequence[Point]
    records: Sequence[Requested]

    def __post_init__(self) -> None:
        n, d = self.index.capacity, self.index.dimension
        limits.require(
            capacity=limits.positions(n),
            dimension=limits.components(d),
            listed=limits.listed(self.listed, n),
            hi=self.window.hi < MAX_SCORE,
            records=limits.batch(len(self.records), n, ()),
            rows=1 <= self.rows <= min(MAX_ROWS, n),
            most=1 <= self.most <= n,
            bound=1 <= self.bound < 1 << DRAW_BITS,
            threshold=1 <= self.threshold <= REACH * d,
        )
        bits = row_bits(n)
        each = {label: len(points) == (entries - 1 >> bits) + 1 for label, entries, points in self.columns()}
        after = {len(record.after) == (self.rows - 1 >> bits) + 1 for record in self.records}
        limits.require(**each, after=after == {True})

    def columns(self) -> list[tuple[str, int, Sequence[Point]]]:
        """Label, entries and commitments."""
        n, rows = self.index.capacity, self.rows
        return [("row", n, self.row), ("kept", rows, self.kept), ("listed before", rows, self.before)]

    @property
    def answers(self) -> Asked:
        """The lists alone, as a query proof has them."""
        commitments = [(record.cq, record.htopk) for record in self.records]
        return Asked(self.context, self.index, [], self.window, self.listed, [], None, commitments)


@dataclass(frozen=True)
class Chance(BernoulliBits):
    """The draws of several slots."""

    of_slots: Sequence[Seed] = ()

    @property
    def seeds(self) -> Sequence[Seed]:
        return self.of_slots


@dataclass(frozen=True)
class _Own:
    """A record's columns that a query proof does not have.

    :param sample: marks of the positions of listed rows
    :param reaches: marks of the positions that reach the threshold
    :param relevant: how many of a row's positions do
    :param other: how many do not
    :param idle: marks of the rows without such a position
    :param unplaced: positions without a row, by whether they reach the threshold
    """

    sample: Column
    reaches: Column
    relevant: Column
    other: Column
    idle: Column
    unplaced: Column


def _statement(reader: Reader, claim: PooledListing, chance: Chance) -> None:
    said, index, window = reader.transcript, claim.index, claim.window
    said.raw("context", claim.context)
    said.raw("index", index.digest)
    chance_of = ("bound", chance.bound)
    said.integers(("capacity", index.capacity), ("dimension", index.dimension), ("rows", claim.rows))
    said.integers(("positions per row", claim.most), chance_of, ("threshold", claim.threshold))
    said.integers(("lo", window.lo), ("hi", window.hi), ("lattice", window.lattice), ("listed", claim.listed))
    for label, _, points in claim.columns():
        said.points(label, points)
    said.integer("record count", len(claim.records))
    for record in claim.records:
        record.seed.absorb(said)
        said.scalars(("cq", record.cq), ("htopk", record.htopk))
        said.points("listed after", record.after)


def read(claim: PooledListing, reader: Reader) -> Session:
    """The whole run: its claims."""
    index, count = claim.index, len(claim.records)
    seeds = [record.seed for record in claim.records]
    chance = Chance(claim.context, seeds[0], claim.rows, claim.bound, seeds)
    _statement(reader, claim, chance)
    session = Session(reader, row_bits(index.capacity))
    link = IndexLink.read(session, index, count)
    row, kept, before = (session.column(points, entries) for _, entries, points in claim.columns())
    after = [session.column(record.after, claim.rows) for record in claim.records]
    draws = Drawing.sent(session, chance, claim.rows, after)
    records, own, tables = _columns(session, claim, link)
    shown = _places(session, claim, records)
    calls: list[Call] = []
    for record, places, elements, said in zip(
        records, shown, link.lists(session), claim.records, strict=True
    ):
        calls += list_calls(session, TAG_VECTOR, elements, said.cq)
        calls += list_calls(session, TAG_TOPK, [record.salt, claim.listed, *places], said.htopk)

    named = [*draws.segments(), *_tables(claim, tables)]
    for number, components in enumerate(link.components()):
        record, of, slot = records[number], own[number], draws.slots[number]
        named.append(Segment(REACHED_TAG, [record.scores, record.step, of.reaches], index.capacity))
        named += of_list(record, number, index.capacity, components)
        named += _rows(claim, number, of, (row, kept, before), slot)
        before = slot.column
    look_up(session, named)
    draws.compare(session)
    selection(session, index.capacity, records, [of.sample for of in own])
    draws.prove_words(session, calls)
    close(session, link)
    return session


def _columns(
    session: Session, claim: PooledListing, link: IndexLink
) -> tuple[list[Record], list[_Own], Sequence[Column]]:
    """The records' columns and lists, and the multiplicities of scores, nibbles, numbers and updates."""
    n, rows, answers = claim.index.capacity, claim.rows, claim.answers
    each = [*[n] * (3 + answers.limbs), n, n, rows, rows, rows, 2]
    tables = [score_rows(claim.index.dimension), len(NIBBLES), claim.most + 1, UPDATES]
    sent = session.commit("pooled columns", each * len(claim.records) + tables)
    records, own = [], []
    for i, of in enumerate(read_lists(session, answers, len(claim.records))):
        step, weighed, selected, *rest = sent[i * len(each) : (i + 1) * len(each)]
        distance, rest = rest[: answers.limbs], rest[answers.limbs :]
        records.append(Record(link.scores[i], step, weighed, None, selected, distance, *of))
        own.append(_Own(*rest))
    return records, own, sent[len(each) * len(records) :]


def _places(session: Session, claim: PooledListing, records: Sequence[Record]) -> list[list[Expr]]:
    """What htopk has for each place: the capacity if the score is 0."""
    none, size = claim.index.capacity, PLACE * claim.listed
    sent = session.send("places", size * len(records))
    shown = []
    for i, record in enumerate(records):
        own = sent[i * size : (i + 1) * size]
        places = own[2::PLACE]
        for j, (position, score) in enumerate(zip(record.positions, record.values, strict=True)):
            filled, inverse, place = own[PLACE * j : PLACE * (j + 1)]
            session.product("empty place", score, inverse, filled)
            session.product("filled place", score, filled, score)
            session.product("place", filled, position - none, place - none)
        shown.append(places)
    return shown


def _tables(claim: PooledListing, multiplicities: Sequence[Column]) -> list[Segment]:
    of_scores, of_nibbles, of_numbers, of_updates = multiplicities
    scores = every_score(claim.index.dimension)
    steps = [claim.window.quantise(score) for score in scores]
    reached = [int(score >= claim.threshold) for score in scores]
    updates = []
    for x in range(UPDATES):
        drawn, kept, idle = x % 4, x >> 2 & 1, x >> 3
        updates.append((drawn, kept, idle, int(drawn > 0 or (kept == 1 and idle == 0))))
    numbers = range(claim.most + 1)
    return [
        Segment(REACHED_TAG, [scores, steps, reached], len(scores), of_scores),
        nibbles(of_nibbles),
        Segment(RELEVANT_TAG, [numbers, [1]], len(numbers), of_numbers),
        Segment(UPDATE_TAG, list(zip(*updates, strict=True)), UPDATES, of_updates),
    ]


def _rows(
    claim: PooledListing, number: int, of: _Own, given: tuple[Column, Column, Column], slot: Drawn
) -> list[Segment]:
    rows, tag = claim.rows, ROW_TAGS + number
    row, kept, before = given
    after, chance = slot.column, slot.looked[Chance.VALUE]
    drawn = Columns([(before, 1), (chance, 2)])
    return [
        Segment(tag, [row, of.reaches, of.sample], claim.index.capacity),
        Segment(tag, [range(rows), [1] * rows, after], rows, of.relevant),
        Segment(tag, [range(rows), [0] * rows, after], rows, of.other),
        Segment(tag, [[rows, rows], [0, 1], [0, 0]], 2, of.unplaced),
        Segment(RELEVANT_TAG, [of.relevant, of.idle], rows),
        Segment(UPDATE_TAG, [drawn, kept, of.idle, after], rows),
    ]
