"""Proofs of a query vector from the rows of the encoder's last layer (docs/scan/encoder-output.md)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rag_audit.proofs.backends.reference import limits
from rag_audit.proofs.backends.reference.attention import at, read_marks
from rag_audit.proofs.backends.reference.block import (
    ACTIVATIONS,
    BITS_TAG,
    LIMBS_TAG,
    MAX_ROW_BITS,
    MAX_WIDTH,
    Blocks,
    activations,
    allowed,
    halved,
    in_range,
    limb_tables,
    parts,
    placed,
)
from rag_audit.proofs.backends.reference.closing import close
from rag_audit.proofs.backends.reference.extensions import HALF, evaluation, log2
from rag_audit.proofs.backends.reference.group import Point
from rag_audit.proofs.backends.reference.index import NIBBLES
from rag_audit.proofs.backends.reference.lookup import Segment, look_up
from rag_audit.proofs.backends.reference.poseidon import permutations
from rag_audit.proofs.backends.reference.session import Column, Expr, Session
from rag_audit.proofs.backends.reference.transcript import Reader
from rag_audit.proofs.backends.reference.vector import MAX_FACTOR, Size, Vectors

RUN, STEPS_TAG, LARGEST = "encoder output", 16, 1 << 11


@dataclass(frozen=True)
class Output:
    """The public values of a run.

    :param marks: the commitment to a mark for each place
    :param inputs: the rows of each column of y
    """

    context: int
    places: int
    width: int
    norm_factor: int
    cq: int
    marks: Point
    inputs: Sequence[Sequence[Point]]

    def __post_init__(self) -> None:
        limits.require(
            places=allowed(self.places),
            width=2 <= self.width <= MAX_WIDTH,
            norm_factor=1 <= self.norm_factor <= MAX_FACTOR,
        )
        bits = row_bits(self.width, self.places)
        limits.require(inputs=placed(self.inputs, self.width, self.places, bits))


def row_bits(width: int, places: int) -> int:
    """Rows of all columns of a run have 2^`row_bits` values."""
    return min(MAX_ROW_BITS, log2(places) + Blocks(width).variables)


def size(width: int, norm_factor: int, places: int, texts: int = 1) -> Size:
    """The size of the vectors of so many texts, of so many rows each."""
    return Size(width, norm_factor, places * LARGEST, texts)


def lookups(vector: Vectors, steps: Column) -> list[Segment]:
    """The lookups of a vector, with the table of steps."""
    return [*vector.steps(STEPS_TAG, steps), *vector.limbs(LIMBS_TAG)]


def claims(session: Session, vector: Vectors, marks: Sequence[Expr], y: Sequence[Column]) -> None:
    """All claims after the lookup, up to the hash, with that each e is the sum of its text's used rows."""
    point, sums = vector.claims(session)
    m, t = Blocks(vector.size.dimension).variables, log2(len(marks) // vector.size.count)
    c = log2(vector.size.dimension)
    point, among = point[:c], point[c:]
    p, claim = session.reduce("used rows", [*[HALF] * t, *among], halved(t, sums), 2)
    (row,) = session.send("used rows", 1)
    session.product("used rows", at(marks, p), row, claim)
    session.claim(evaluation([*point[:m], *p]), parts(y, point[m:]), row)


def read(claim: Output, reader: Reader) -> Session:
    """The whole run, with all its claims."""
    said, places, width = reader.transcript, claim.places, claim.width
    said.scalar("context", claim.context)
    said.integers(("places", places), ("width", width), ("norm factor", claim.norm_factor))
    said.scalar("cq", claim.cq)
    said.points("marks of places", [claim.marks])
    for rows in claim.inputs:
        said.points("inputs", rows)
    session = Session(reader, row_bits(width, places))
    of_marks = session.column([claim.marks], places)
    entries = places << Blocks(width).variables
    y = [session.column(rows, entries) for rows in claim.inputs]
    of_vector, limb_bits = size(width, claim.norm_factor, places), [LIMBS_TAG, BITS_TAG]
    own = of_vector.entries()
    tables = [len(NIBBLES), len(ACTIVATIONS), *(1 << bits for bits in limb_bits)]
    sent = session.commit("output columns", own + tables)
    columns, (of_steps, of_activations, *of_widths) = sent[: len(own)], sent[len(own) :]
    marks = read_marks(session, of_marks, places)
    salt, *hidden = session.send("vector", 1 + of_vector.hidden)
    vector = Vectors(of_vector, columns, hidden)
    calls = vector.calls(session, [salt], [claim.cq])
    look_up(
        session,
        [
            Segment(BITS_TAG, [marks], places),
            *in_range(y, log2(entries)),
            *lookups(vector, of_steps),
            activations(of_activations),
            *limb_tables(limb_bits, of_widths),
        ],
    )
    claims(session, vector, marks, y)
    permutations(session, calls)
    close(session)
    return session
