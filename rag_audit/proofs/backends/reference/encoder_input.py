"""Proofs that the first matrix of the integer encoder belongs to hidden tokens (docs/scan/encoder-input.md)."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from rag_audit.proofs.backends.reference import limits
from rag_audit.proofs.backends.reference.attention import at, read_marks
from rag_audit.proofs.backends.reference.block import (
    ACTIVATIONS,
    BITS_TAG,
    LIMB_BITS,
    MAX_ROW_BITS,
    MAX_SCALE,
    MAX_WIDTH,
    ROOT_ENTRIES,
    Blocks,
    Norm,
    Remainder,
    activations,
    allowed,
    halved,
    in_limbs,
    in_range,
    layer_norm,
    limb_tables,
    of_limbs,
    placed,
    widths,
)
from rag_audit.proofs.backends.reference.closing import close
from rag_audit.proofs.backends.reference.embed import MAX_WORDS, query_call
from rag_audit.proofs.backends.reference.extensions import HALF, Functional, dot, evaluation, log2, powers
from rag_audit.proofs.backends.reference.group import Point, encode
from rag_audit.proofs.backends.reference.lookup import Segment, look_up
from rag_audit.proofs.backends.reference.poseidon import Call, permutations
from rag_audit.proofs.backends.reference.session import Column, Expr, Session, total
from rag_audit.proofs.backends.reference.transcript import Reader
from rag_audit.relation.field import MODULUS

RUN, MIN_WORDS, LARGEST_UNUSED = "encoder input", 3, 1 << 16


@dataclass(frozen=True)
class Embeddings:
    """The committed embeddings of a model.

    :param vocabulary: V
    :param places: P, the number of place rows
    :param row_bits: v; rows of all columns of a run have 2^`row_bits` values
    :param words: the rows of the column of each component of all word rows
    :param of_places: the rows of each column of the place rows
    :param unused: f, the row of an unused place
    """

    vocabulary: int
    places: int
    row_bits: int
    words: Sequence[Sequence[Point]]
    of_places: Sequence[Sequence[Point]]
    norm: Norm
    unused: Sequence[int]

    def __post_init__(self) -> None:
        limits.require(
            vocabulary=MIN_WORDS <= self.vocabulary <= MAX_WORDS,
            places=allowed(self.places),
            width=2 <= self.width <= MAX_WIDTH,
            scale_x=0 <= self.norm.scale <= MAX_SCALE,
            row_bits=1 <= self.row_bits <= MAX_ROW_BITS,
        )
        rows = (self.vocabulary - 1 >> self.row_bits) + 1
        limits.require(
            words=all(len(column) == rows for column in self.words),
            of_places=placed(self.of_places, self.width, self.places, self.row_bits),
            norm=self.norm.fits(self.width),
            unused=len(self.unused) == self.width and all(abs(f) <= LARGEST_UNUSED for f in self.unused),
        )

    @property
    def width(self) -> int:
        return len(self.words)

    @property
    def token_bits(self) -> int:
        """n."""
        return log2(self.vocabulary)

    @property
    def digits(self) -> tuple[int, int]:
        """l and h: the bits of the lower and of the upper digit of a token."""
        upper = self.token_bits // 2
        return self.token_bits - upper, upper

    @cached_property
    def digest(self) -> bytes:
        sizes = (self.vocabulary, self.width, self.places, self.norm.scale, self.row_bits)
        hashed = hashlib.sha256(b"rag-audit/encoder-input/v1")
        for size in sizes:
            hashed.update(size.to_bytes(4, "little"))
        for column in (*self.words, *self.of_places):
            hashed.update(b"".join(map(encode, column)))
        for kind, values in (("h", self.norm.gain), ("h", self.norm.bias), ("i", self.unused)):
            hashed.update(struct.pack(f"<{self.width}{kind}", *values))
        return hashed.digest()

    def limb_widths(self) -> list[int]:
        """The widths of the tables of limbs."""
        return list(dict.fromkeys([*of_limbs([self.norm.bits, self.token_bits]), BITS_TAG]))


@dataclass(frozen=True)
class Input:
    """The public values of a run.

    :param marks: the commitment to a mark for each place
    :param outputs: the rows of each column of x
    """

    context: int
    embeddings: Embeddings
    places: int
    hq: int
    marks: Point
    outputs: Sequence[Sequence[Point]]

    def __post_init__(self) -> None:
        table = self.embeddings
        limits.require(places=allowed_of(table, self.places))
        limits.require(outputs=placed(self.outputs, table.width, self.places, table.row_bits))


def allowed_of(table: Embeddings, places: int) -> bool:
    """Whether a run with these embeddings has this number of places."""
    return allowed(places) and places <= min(table.places, 1 << table.row_bits)


@dataclass(frozen=True)
class Tokens:
    """Hidden tokens: a number for each place, and the limbs of V - 1 less the number, the lowest limb first."""

    salts: Sequence[Expr]
    numbers: Sequence[Expr]
    limbs: Sequence[Sequence[Expr]]

    @classmethod
    def read(cls, session: Session, table: Embeddings, marks: Sequence[Expr], texts: int = 1) -> Tokens:
        """The tokens of so many texts with the marks of all of their places."""
        count, below = len(marks), len(widths(table.token_bits)) - 1
        sent = session.send("tokens", texts + (1 + below) * count)
        salts, sent = sent[:texts], sent[texts:]
        numbers, *limbs = (sent[k * count : (k + 1) * count] for k in range(1 + below))
        for first in marks[:: count // texts]:
            session.constraint("first place", first - 1)
        inverse = pow(1 << LIMB_BITS * below, -1, MODULUS)
        tops = []
        for p, number in enumerate(numbers):
            lower = total((1 << LIMB_BITS * k, limb[p]) for k, limb in enumerate(limbs))
            tops.append(inverse * (table.vocabulary - 1 - number - lower))
        return cls(salts, numbers, [*limbs, tops])

    def calls(self, marks: Sequence[Expr], hashes: Sequence[int]) -> list[Call]:
        """The hash of the list of each text."""
        size = len(marks) // len(hashes)
        return [
            query_call(self.numbers[at : at + size], marks[at : at + size], salt, hq)
            for at, salt, hq in zip(range(0, len(marks), size), self.salts, hashes, strict=True)
        ]


@dataclass(frozen=True)
class Parts:
    """The columns of a run, without multiplicities."""

    table: Embeddings
    words: Sequence[Column]
    of_places: Sequence[Column]
    marks: Sequence[Expr]
    tokens: Tokens
    x: Sequence[Column]
    low: Column
    high: Column
    rest: Remainder
    roots: Column

    @staticmethod
    def entries(table: Embeddings, places: int) -> list[int]:
        """The entries of the columns that a prover commits to."""
        (low, high), limbs = table.digits, len(widths(table.norm.bits)) - 1
        of_width = Blocks(table.width).entries(places)
        return [places << low, places << high, *of_width * limbs, ROOT_ENTRIES * places]

    @classmethod
    def of(
        cls,
        session: Session,
        table: Embeddings,
        hidden: tuple[Sequence[Expr], Tokens],
        x: Sequence[Column],
        sent: Iterator[Column],
    ) -> Parts:
        """The next columns, in the order of `entries`, and those of the embeddings.

        :param hidden: marks and tokens
        """
        words = [session.column(rows, table.vocabulary) for rows in table.words]
        (entries, *_) = Blocks(table.width).entries(table.places)
        of_places = [session.column(rows, entries) for rows in table.of_places]
        low, high = next(sent), next(sent)
        rest = Remainder.of(table.norm.bits, len(x), sent)
        return cls(table, words, of_places, *hidden, x, low, high, rest, next(sent))

    def lookups(self) -> list[Segment]:
        """All lookups but the tables."""
        places, (low, high) = len(self.marks), self.table.digits
        of_x = log2(places) + Blocks(self.table.width).variables
        of_tokens = zip(widths(self.table.token_bits), self.tokens.limbs, strict=True)
        return [
            Segment(BITS_TAG, [self.low], places << low),
            Segment(BITS_TAG, [self.high], places << high),
            Segment(BITS_TAG, [self.marks], places),
            *(Segment(width, [limb], places) for width, limb in of_tokens),
            *in_range(self.x, of_x),
            *self.rest.segments(of_x),
            in_limbs(self.roots, ROOT_ENTRIES * places),
        ]

    def claims(self, session: Session) -> None:
        """All claims after the lookup, up to the hash."""
        table = self.table
        by_block = powers(session.challenge("input blocks"), len(self.x))
        point = self.rest.tops[0].point
        end = layer_norm(session, table.norm, by_block, point, self.x, self.rest, self.roots)
        unused = dot(end.weights, table.unused) * (1 - at(self.marks, end.place))
        self._rows(session, end.value - unused, end.weights, end.place)
        self._digits(session)

    def _rows(self, session: Session, claim: Expr, h: Sequence[int], u: Sequence[int]) -> None:
        """The claim is the sum of h_j times component j of the used rows, at a point of places."""
        (low, high), places = self.table.digits, len(self.marks)
        both, claim = session.reduce("lower digits", [*[HALF] * low, *u], halved(low, claim), 2)
        q_a, q_p = both[:low], both[low:]
        y, k = session.send("lower digits", 2)
        session.product("lower digits", y, k, claim)
        session.claim(evaluation(both), [(self.low, 1)], y)

        shares = session.send("place rows", len(self.of_places))
        size, of_text = 1 << Blocks(self.table.width).variables, places // len(self.tokens.salts)
        place = tuple(q_p[: log2(of_text)])  # all texts have the same place rows
        for b, (column, share) in enumerate(zip(self.of_places, shares, strict=True)):
            of_block = tuple(h[b * size : (b + 1) * size])
            session.claim(Functional(place, of_block, of_text), [(column, 1)], share)

        of_words = halved(high, k - total((1, share) for share in shares))
        q_b, claim = session.reduce("upper digits", [HALF] * high, of_words, 2)
        z, f = session.send("upper digits", 2)
        session.product("upper digits", z, f, claim)
        session.claim(evaluation([*q_b, *q_p]), [(self.high, 1)], z)
        session.claim(evaluation([*q_a, *q_b]), list(zip(self.words, h, strict=True)), f)

    def _digits(self, session: Session) -> None:
        """Each used place has one lower and one upper digit, those of its token; other places have none."""
        (low, high), places = self.table.digits, len(self.marks)
        s = session.challenges("digits", log2(places))
        (c,) = session.send("digits", 1)
        mu = session.challenge("digits")
        used = mu * at(self.marks, s)
        for column, digits, value in (
            (self.low, [mu + a for a in range(1 << low)], used + c),
            (self.high, [mu + (b << low) for b in range(1 << high)], used + at(self.tokens.numbers, s) - c),
        ):
            coefficients = tuple(digit % MODULUS for digit in digits)
            session.claim(Functional(tuple(s), coefficients, places), [(column, 1)], value)


def read(claim: Input, reader: Reader) -> Session:
    """The whole run, with all its claims."""
    said, table, places = reader.transcript, claim.embeddings, claim.places
    said.scalar("context", claim.context)
    said.raw("embeddings", table.digest)
    said.integer("places", places)
    said.scalar("hq", claim.hq)
    said.points("marks of places", [claim.marks])
    for rows in claim.outputs:
        said.points("outputs", rows)
    session = Session(reader, table.row_bits)
    of_marks = session.column([claim.marks], places)
    (entries, *_) = Blocks(table.width).entries(places)
    x = [session.column(rows, entries) for rows in claim.outputs]
    limb_bits = table.limb_widths()
    tables = [len(ACTIVATIONS), *(1 << width for width in limb_bits)]
    sent = iter(session.commit("input columns", Parts.entries(table, places) + tables))
    marks = read_marks(session, of_marks, places)
    tokens = Tokens.read(session, table, marks)
    parts = Parts.of(session, table, (marks, tokens), x, sent)
    of_activations, *of_widths = sent
    look_up(
        session,
        [*parts.lookups(), activations(of_activations), *limb_tables(limb_bits, of_widths)],
    )
    parts.claims(session)
    permutations(session, tokens.calls(marks, [claim.hq]))
    close(session)
    return session
