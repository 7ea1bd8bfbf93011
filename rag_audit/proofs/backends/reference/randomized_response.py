"""Lists by randomized response: the first winners, and an account's disclosed set after them
(docs/scan/randomized-response.md)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rag_audit.proofs.backends.reference import limits
from rag_audit.proofs.backends.reference.closing import close
from rag_audit.proofs.backends.reference.extensions import HALF, Functional, eq_table, evaluation, log2
from rag_audit.proofs.backends.reference.group import Point
from rag_audit.proofs.backends.reference.index import NIBBLES, Index, IndexLink, nibbles
from rag_audit.proofs.backends.reference.lookup import Segment, look_up
from rag_audit.proofs.backends.reference.poseidon import list_calls, permutations
from rag_audit.proofs.backends.reference.query import REACH, SCORES_TAG, score_rows, score_table
from rag_audit.proofs.backends.reference.session import Column, Expr, Session, row_bits, total
from rag_audit.proofs.backends.reference.transcript import Reader
from rag_audit.relation.field import MODULUS
from rag_audit.relation.tags import TAG_TOPK, TAG_VECTOR

RUN = "listing"
PACKED_BITS = 252


@dataclass(frozen=True)
class Listed:
    """The public values of one record's list; four columns of bits by their rows."""

    context: bytes
    index: Index
    threshold: int
    maximum: int
    chance: Sequence[Point]
    kept: Sequence[Point]
    before: Sequence[Point]
    after: Sequence[Point]
    cq: int
    htopk: int

    def __post_init__(self) -> None:
        capacity, dimension = self.index.capacity, self.index.dimension
        rows = (capacity - 1 >> row_bits(capacity)) + 1
        limits.require(
            capacity=limits.positions(capacity),
            dimension=limits.components(dimension),
            threshold=1 <= self.threshold <= REACH * dimension,
            maximum=limits.listed(self.maximum, capacity),
            rows=all(len(column) == rows for column in self.columns),
        )

    @property
    def columns(self) -> tuple[Sequence[Point], ...]:
        return self.chance, self.kept, self.before, self.after


def _statement(reader: Reader, claim: Listed) -> None:
    said = reader.transcript
    said.raw("context", claim.context)
    said.raw("index", claim.index.digest)
    said.integers(("capacity", claim.index.capacity), ("dimension", claim.index.dimension))
    said.integers(("threshold", claim.threshold), ("most", claim.maximum))
    for label, rows in zip(("chance", "kept", "held before", "held after"), claim.columns, strict=True):
        said.integer("rows", len(rows))
        said.points(label, rows)
    said.scalars(("cq", claim.cq), ("htopk", claim.htopk))


def read(claim: Listed, reader: Reader) -> Session:
    _statement(reader, claim)
    index, capacity = claim.index, claim.index.capacity
    session, n = Session(reader, row_bits(capacity)), log2(capacity)
    link = IndexLink.read(session, index, 1)
    chance, kept, before, after = (session.column(rows, capacity) for rows in claim.columns)
    entries = [capacity, capacity, score_rows(index.dimension), len(NIBBLES)]
    relevant, listed, of_scores, of_nibbles = session.commit("list columns", entries)
    count, spare = -(-capacity // PACKED_BITS), log2(claim.maximum + 1)
    salt, *sent = session.send("list", 2 + count + n + spare)
    packed, (size, *bits) = sent[:count], sent[count:]
    end, room = bits[:n], bits[n:]
    for bit in bits:
        session.product("bit", bit, bit, bit)
    session.constraint("room", claim.maximum - size - _number(room))
    session.product("end of the list", claim.maximum - size, _number(end) - (capacity - 1), 0)
    (elements,) = link.lists(session)
    calls = list_calls(session, TAG_VECTOR, elements, claim.cq)
    calls += list_calls(session, TAG_TOPK, [salt, capacity, *packed], claim.htopk)
    look_up(
        session,
        [
            Segment(SCORES_TAG, [link.scores[0], relevant], capacity),
            score_table(index.dimension, lambda s: int(s >= claim.threshold), of_scores),
            *link.components(),
            nibbles(of_nibbles),
        ],
    )
    a = session.challenges("packed list", log2(count))
    strided = Functional(tuple(a), tuple(1 << k for k in range(PACKED_BITS)), count)
    value = total(zip(eq_table(a, count), packed, strict=True))
    session.claim(strided, [(listed, 1)], value)
    places = max(n, session.row_bits)
    everywhere = evaluation([HALF] * places)
    session.claim(everywhere, [(listed, 1)], pow(HALF, places, MODULUS) * size)
    _list(session, places, n, end, [chance, relevant, kept, before, listed, after], capacity)
    permutations(session, calls)
    close(session, link)
    return session


def _number(bits: Sequence[Expr]) -> Expr:
    return total((1 << k, bit) for k, bit in enumerate(bits))


def _list(
    session: Session, places: int, n: int, end: Sequence[Expr], columns: Sequence[Column], capacity: int
) -> None:
    tau, chi = session.challenges("list", places), session.challenge("held")
    p, claim = session.reduce("list", tau, 0, 5)
    within = Expr(1)
    for x, bit, both in zip(p[:n], end, session.send("end of the list", n), strict=True):
        session.product("up to the end", bit, within, both)
        within = (1 - x) * within + (1 - x) * bit + (2 * x - 1) * both
    for x in p[n:]:
        within = (1 - x) * within
    sent = session.send("list", 11)
    chance, relevant, kept, held, listed, after = sent[:6]
    wanted, fresh, alone, winners, newly = sent[6:]
    session.product("relevant and kept", relevant, kept, wanted)
    session.product("not held", wanted, 1 - held, fresh)
    session.product("or by chance", 1 - chance, fresh, alone)
    session.product("within the list", chance + alone, within, winners)
    session.product("newly held", 1 - held, listed, newly)
    session.constraint("list", winners - listed + chi * (held + newly - after) - claim)
    inside, whole = evaluation(p, capacity), evaluation(p)
    for number, (c, value) in enumerate(zip(columns, sent[:6], strict=True)):
        session.claim(whole if number == 4 else inside, [(c, 1)], value)
