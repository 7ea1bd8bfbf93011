"""Parts that the blocks of the integer encoder share: divisions, ranges, tables and the LayerNorm
(docs/scan/feed-forward.md, attention.md)."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from rag_audit.proofs.backends.reference.extensions import (
    HALF,
    Functional,
    below,
    dot,
    eq_table,
    evaluation,
    log2,
)
from rag_audit.proofs.backends.reference.group import Point, encode
from rag_audit.proofs.backends.reference.lookup import Said, Segment
from rag_audit.proofs.backends.reference.session import Column, Expr, Pairs, Session, total
from rag_audit.proofs.backends.reference.transcript import Transcript
from rag_audit.relation.field import MODULUS

LIMB_BITS, LIMBS_TAG, ACTIVATIONS_TAG, BITS_TAG = 12, 12, 14, 1
MAX_PLACES, MAX_WIDTH, MAX_SCALE = 64, 1024, 11
MAX_ROW_BITS, ROOT_ENTRIES = 12, 32
ACTIVATIONS = list(range(-(1 << 11), 1 << 11))
ROOT, FIRST_SLACK, SECOND_SLACK = range(4), range(4, 12), range(12, 20)
"""Entries of R and of both slacks among the entries of a place."""


@dataclass(frozen=True)
class Blocks:
    """A number of components as an odd number of blocks of 2^`variables` components; each block is a column."""

    components: int

    @property
    def variables(self) -> int:
        return (self.components & -self.components).bit_length() - 1

    @property
    def count(self) -> int:
        return self.components >> self.variables

    def entries(self, places: int) -> list[int]:
        """The entries of each column of a matrix with these components and so many places."""
        return [places << self.variables] * self.count


@dataclass(frozen=True)
class Matrix:
    """A committed matrix, with a row for each input and a column for each output.

    :param points: the rows of the column of each block of inputs and of outputs, all blocks of outputs for one block of
        inputs in turn; entry i 2^m + j is that of the block's input i and output j, of 2^m outputs
    """

    inputs: int
    outputs: int
    points: Sequence[Sequence[Point]]

    def fits(self, inputs: int, outputs: int, row_bits: int) -> bool:
        """Whether the matrix has these sizes, and the commitments of a matrix of these sizes."""
        rows = (self._entries - 1 >> row_bits) + 1
        count = Blocks(self.inputs).count * Blocks(self.outputs).count
        sizes = (self.inputs, self.outputs, len(self.points)) == (inputs, outputs, count)
        return sizes and all(len(column) == rows for column in self.points)

    @property
    def _entries(self) -> int:
        return 1 << Blocks(self.inputs).variables + Blocks(self.outputs).variables

    @cached_property
    def columns(self) -> list[Column]:
        """The columns in a run."""
        return [Column(rows, log2(self._entries)) for rows in self.points]

    def parts(self, of_input: Sequence[int], of_output: Sequence[int], factor: int = 1) -> Pairs:
        """The columns with a factor for each block: eq of the upper coordinates `of_input`, and an element of
        `of_output`."""
        of_inputs = eq_table(of_input, Blocks(self.inputs).count)
        factors = (factor * a * b % MODULUS for a in of_inputs for b in of_output)
        return list(zip(self.columns, factors, strict=True))


@dataclass(frozen=True)
class Dense:
    """A dense layer with a committed matrix."""

    matrix: Matrix
    bias: Sequence[int]

    def fits(self, inputs: int, outputs: int, row_bits: int) -> bool:
        """Whether the layer has these sizes, and a bias of 16-bit integers."""
        return self.matrix.fits(inputs, outputs, row_bits) and len(self.bias) == outputs and int16(self.bias)


def int16(values: Iterable[int]) -> bool:
    """Whether all values are 16-bit integers."""
    return all(-(1 << 15) <= value < 1 << 15 for value in values)


def take(columns: Iterator[Column], count: int) -> list[Column]:
    """The next `count` columns."""
    return [next(columns) for _ in range(count)]


def widths(bits: int) -> list[int]:
    """The widths of a remainder's limbs, the lowest limb first."""
    below = -(-bits // LIMB_BITS) - 1
    return [LIMB_BITS] * below + [bits - LIMB_BITS * below]


def of_limbs(remainders: Sequence[int]) -> list[int]:
    """The widths of the tables for remainders of so many bits: 12, then the top limbs' widths, each once."""
    return list(dict.fromkeys([LIMB_BITS, *(widths(bits)[-1] for bits in remainders)]))


@dataclass(frozen=True)
class Remainder:
    """The limbs of a remainder, which is not negative and has `bits` bits.

    :param limbs: the columns of each limb below the top, a column for each block
    :param tops: the derived top limbs, one for each block
    """

    bits: int
    limbs: Sequence[Sequence[Column]]
    tops: Sequence[Said]

    @classmethod
    def of(cls, bits: int, blocks: int, columns: Iterator[Column]) -> Remainder:
        """The next columns as the limbs below the top."""
        limbs = [take(columns, blocks) for _ in widths(bits)[:-1]]
        return cls(bits, limbs, [derived() for _ in range(blocks)])

    def segments(self, variables: int) -> list[Segment]:
        """Limb by limb and block by block, then the top limbs."""
        rows = 1 << variables
        below = [Segment(LIMBS_TAG, [column], rows) for limb in self.limbs for column in limb]
        return below + [Segment(widths(self.bits)[-1], [top], rows) for top in self.tops]

    def dividend(
        self,
        session: Session,
        label: str,
        at: Functional,
        weights: Sequence[int],
        quotients: Sequence[Column],
        scale: int,
    ) -> Expr:
        """The sum of scale times quotient and remainder, with a weight for each block.

        The prover sends the share of the columns under `label`. The top limbs have the values that the lookup read.
        """
        (sent,) = session.send(label, 1)
        pairs = [(column, w * scale % MODULUS) for w, column in zip(weights, quotients, strict=True)]
        for k, limb in enumerate(self.limbs):
            pairs += [
                (column, (w << LIMB_BITS * k) % MODULUS) for w, column in zip(weights, limb, strict=True)
            ]
        session.claim(at, pairs, sent)
        top = LIMB_BITS * len(self.limbs)
        values = zip(weights, self.tops, strict=True)
        return total([(1, sent), *((w << top, said.value) for w, said in values)])


def derived() -> Said:
    """An entry with a value that the prover sends when the lookup reads it."""
    return Said(lambda session: session.send("derived entry", 1)[0])


def in_range(columns: Sequence[Column], variables: int) -> list[Segment]:
    """All entries are in -2048..2047."""
    return [Segment(ACTIVATIONS_TAG, [column], 1 << variables) for column in columns]


def activations(multiplicities: Column) -> Segment:
    """The table of -2048..2047."""
    return Segment(ACTIVATIONS_TAG, [ACTIVATIONS], len(ACTIVATIONS), multiplicities)


def in_limbs(column: Column, entries: int) -> Segment:
    """All entries are limbs of 12 bits."""
    return Segment(LIMBS_TAG, [column], entries)


def limb_tables(bits: Sequence[int], multiplicities: Sequence[Column]) -> list[Segment]:
    """The tables of limbs of these widths."""
    each = zip(bits, multiplicities, strict=True)
    return [Segment(width, [range(1 << width)], 1 << width, column) for width, column in each]


def parts(columns: Sequence[Column], point: Sequence[int]) -> Pairs:
    """The combination of a matrix's columns at the coordinates that number its blocks."""
    return list(zip(columns, eq_table(point, len(columns)), strict=True))


def weights_at(blocks: Blocks, by_block: Sequence[int], point: Sequence[int]) -> list[int]:
    """A weight for each component: that of its block times eq at its number in the block."""
    return [w * e % MODULUS for w in by_block for e in eq_table(point[: blocks.variables])]


def extension(values: Sequence[int], point: Sequence[int]) -> int:
    """The extension of a list at a point."""
    return dot(values, eq_table(point, len(values)))


def halved(variables: int, claim: Expr) -> Expr:
    """The claim divided by 2^variables."""
    return pow(HALF, variables, MODULUS) * claim


@dataclass(frozen=True)
class Norm:
    """The LayerNorm of a block.

    :param scale: fraction bits of the block's result
    """

    gain: Sequence[int]
    bias: Sequence[int]
    scale: int

    @property
    def bits(self) -> int:
        """S: bits of the remainder of y."""
        return 54 - self.scale

    def fits(self, width: int) -> bool:
        return len(self.gain) == len(self.bias) == width and int16(self.gain) and int16(self.bias)


def weights_digest(
    kind: str, sizes: Iterable[int], layers: Sequence[Dense], norm: Norm, table: Sequence[int]
) -> bytes:
    """SHA-256 over the kind of a block, its sizes, the points of its matrices, and the 16-bit integers of its vectors
    and its table."""
    hashed = hashlib.sha256(f"rag-audit/{kind}/v2".encode())
    for size in sizes:
        hashed.update(size.to_bytes(4, "little"))
    for layer in layers:
        for column in layer.matrix.points:
            hashed.update(b"".join(map(encode, column)))
    for values in (*(layer.bias for layer in layers), norm.gain, norm.bias, table):
        hashed.update(struct.pack(f"<{len(values)}h", *values))
    return hashed.digest()


@dataclass(frozen=True)
class Deviations:
    """The end of a LayerNorm: a' is the sum of h_j r_j at the place `place`, with h_j = d eq(v, j) less the sum of all
    eq(v, k).

    :param weights: h
    :param component: v
    """

    value: Expr
    weights: Sequence[int]
    place: Sequence[int]
    component: Sequence[int]

    def rows(self, session: Session, matrix: Matrix, o: Sequence[int], sums: tuple[Expr, Expr]) -> Expr:
        """The extension at the input o of W h, for the sums of W_ij eq(v, j) and of W_ij over the outputs j, which are
        claims about the matrix's columns."""
        inputs, outputs = Blocks(matrix.inputs), Blocks(matrix.outputs)
        row, rest = o[: inputs.variables], o[inputs.variables :]
        low, high = self.component[: outputs.variables], self.component[outputs.variables :]
        of_blocks = eq_table(high, outputs.count)
        session.claim(evaluation([*low, *row]), matrix.parts(rest, of_blocks), sums[0])
        ones = Functional(tuple(row), (1,) * (1 << outputs.variables), 1 << inputs.variables)
        session.claim(ones, matrix.parts(rest, [1] * outputs.count), sums[1])
        return len(self.weights) * sums[0] - below(self.component, len(self.weights)) * sums[1]


def layer_norm(
    session: Session,
    norm: Norm,
    by_block: Sequence[int],
    point: Sequence[int],
    y: Sequence[Column],
    rest: Remainder,
    roots: Column,
) -> Deviations:
    """Claims that y is the LayerNorm of values that are still hidden (docs/scan/feed-forward.md, "In full").

    :param by_block: the powers of lambda
    :param point: the point of the lookup, of components and then of places
    """
    width, m = len(norm.gain), Blocks(len(norm.gain)).variables
    q_t, half = point[m:], 1 << norm.bits - 1
    dividend = rest.dividend(session, "norm", evaluation(point), by_block, y, 1 << norm.bits)
    w3 = weights_at(Blocks(width), by_block, point)
    w2 = [w * c % MODULUS for w, c in zip(w3, norm.gain, strict=True)]
    e2 = dividend - half * sum(by_block) - (dot(w3, norm.bias) << 42)

    chi = session.challenge("roots")
    u, claim = session.reduce("roots", q_t, e2 + chi * (width << 84) - chi * chi, 3)
    r, a, v, s_1, s_2, f, h, k = session.send("roots", 8)
    session.product("norm", r, a, f)
    session.product("root", r, v, h)
    session.product("root", r, h, k)
    session.constraint("roots", f + chi * (k + s_1) + chi * chi * (s_1 + s_2 - 2 * h - v) - claim)
    for entries, value in ((ROOT, r), (FIRST_SLACK, s_1), (SECOND_SLACK, s_2)):
        session.claim(number(u, ROOT_ENTRIES, entries), [(roots, 1)], value)

    c = log2(width)
    mu = session.challenge("deviations")
    both, claim = session.reduce("deviations", [HALF] * c + u, halved(c, v + mu * a), 2)
    (deviation,) = session.send("deviations", 1)
    at_component = eq_table(both[:c], width)
    session.product("deviation", deviation, deviation + mu * dot(at_component, w2), claim)
    sum_ = sum(at_component)
    weights = [(width * e - sum_) % MODULUS for e in at_component]
    return Deviations(deviation, weights, both[c:], both[:c])


def number(point: Sequence[int], stride: int, entries: range) -> Functional:
    """The number with limbs of 12 bits in these entries, of each item's `stride` entries."""
    coefficients = [0] * stride
    for k, entry in enumerate(entries):
        coefficients[entry] = 1 << LIMB_BITS * k
    return Functional(tuple(point), tuple(coefficients), 1 << len(point))


def allowed(places: int, row_bits: int = MAX_ROW_BITS) -> bool:
    """Whether runs have this number of places, in rows of 2^row_bits values."""
    return places in range(1, min(MAX_PLACES, 1 << row_bits) + 1) and places.bit_count() == 1


def placed(matrix: Sequence[Sequence[Point]], width: int, places: int, row_bits: int) -> bool:
    """Whether these are commitments to the columns of a matrix with so many components and places."""
    rows = [(entries - 1 >> row_bits) + 1 for entries in Blocks(width).entries(places)]
    return [len(column) for column in matrix] == rows


def say_matrices(
    said: Transcript, inputs: Sequence[Sequence[Point]], outputs: Sequence[Sequence[Point]]
) -> None:
    """The commitments to the first and the last matrix of a statement."""
    for label, columns in (("inputs", inputs), ("outputs", outputs)):
        for rows in columns:
            said.points(label, rows)
