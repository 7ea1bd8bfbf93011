"""Proofs of a feed-forward block of the integer encoder (docs/scan/feed-forward.md)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from rag_audit.proofs.backends.reference import limits
from rag_audit.proofs.backends.reference.block import (
    ACTIVATIONS,
    MAX_ROW_BITS,
    MAX_SCALE,
    MAX_WIDTH,
    ROOT_ENTRIES,
    Blocks,
    Dense,
    Norm,
    Remainder,
    activations,
    allowed,
    extension,
    halved,
    in_limbs,
    in_range,
    layer_norm,
    limb_tables,
    of_limbs,
    parts,
    placed,
    say_matrices,
    take,
    weights_at,
    weights_digest,
    widths,
)
from rag_audit.proofs.backends.reference.closing import close
from rag_audit.proofs.backends.reference.extensions import HALF, dot, evaluation, log2, powers
from rag_audit.proofs.backends.reference.group import Point
from rag_audit.proofs.backends.reference.lookup import Segment, look_up
from rag_audit.proofs.backends.reference.session import Column, Session
from rag_audit.proofs.backends.reference.transcript import Reader
from rag_audit.relation.field import MODULUS

RUN, GELU_TAG, MAX_INNER = "feed forward", 13, 4096


@dataclass(frozen=True)
class Weights:
    """The weights of a block with its scales; `gelu` has a result for each of -2048..2047.

    :param row_bits: rows of all columns of a run have 2^`row_bits` values
    """

    row_bits: int
    scale_x: int
    scale_z: int
    scale_g: int
    first: Dense
    second: Dense
    norm: Norm
    gelu: Sequence[int]

    def __post_init__(self) -> None:
        limits.require(
            width=2 <= self.width <= MAX_WIDTH,
            inner=1 <= self.inner <= MAX_INNER,
            scale_x=0 <= self.scale_x <= MAX_SCALE and self.norm.scale == self.scale_x,
            scale_z=0 <= self.scale_z <= MAX_SCALE,
            scale_g=0 <= self.scale_g <= MAX_SCALE,
        )
        limits.require(
            row_bits=1 <= self.row_bits <= MAX_ROW_BITS,
            first=self.first.fits(self.width, self.inner, self.row_bits),
            second=self.second.fits(self.inner, self.width, self.row_bits),
            norm=self.norm.fits(self.width),
            gelu=len(self.gelu) == len(ACTIVATIONS) and all(g in range(-2048, 2048) for g in self.gelu),
        )

    @property
    def width(self) -> int:
        return len(self.second.bias)

    @property
    def inner(self) -> int:
        return len(self.first.bias)

    @property
    def dense_bits(self) -> int:
        """s: bits of the remainder of z."""
        return self.scale_x + 12 - self.scale_z

    @property
    def residual(self) -> int:
        """The power of two of x in r."""
        return 12 + self.scale_g - self.scale_x

    @property
    def remainders(self) -> list[int]:
        """The bits of both remainders."""
        return [self.dense_bits, self.norm.bits]

    @cached_property
    def digest(self) -> bytes:
        sizes = (self.width, self.inner, self.scale_x, self.scale_z, self.scale_g, self.row_bits)
        return weights_digest("feed-forward", sizes, (self.first, self.second), self.norm, self.gelu)


@dataclass(frozen=True)
class FeedForward:
    """The public values of one block: `inputs` and `outputs` have the rows of each column of x and y."""

    context: int
    weights: Weights
    places: int
    inputs: Sequence[Sequence[Point]]
    outputs: Sequence[Sequence[Point]]

    def __post_init__(self) -> None:
        limits.require(places=allowed(self.places, self.weights.row_bits))
        size = self.weights.width, self.places, self.weights.row_bits
        limits.require(inputs=placed(self.inputs, *size), outputs=placed(self.outputs, *size))


@dataclass(frozen=True)
class Parts:
    """The columns of a block, without multiplicities."""

    weights: Weights
    places: int
    x: Sequence[Column]
    y: Sequence[Column]
    z: Sequence[Column]
    g: Sequence[Column]
    dense_rest: Remainder
    norm_rest: Remainder
    roots: Column

    @staticmethod
    def entries(weights: Weights, places: int) -> list[int]:
        """The entries of the columns that a prover commits to."""
        of_width, of_inner = (Blocks(n).entries(places) for n in (weights.width, weights.inner))
        of_dense, of_norm = (len(widths(bits)) - 1 for bits in weights.remainders)
        return [*of_inner * (2 + of_dense), *of_width * of_norm, ROOT_ENTRIES * places]

    @classmethod
    def of(
        cls, weights: Weights, places: int, x: Sequence[Column], y: Sequence[Column], sent: Iterator[Column]
    ) -> Parts:
        """The next columns, in the order of `entries`."""
        width, inner = Blocks(weights.width).count, Blocks(weights.inner).count
        z, g = (take(sent, inner) for _ in range(2))
        dense = Remainder.of(weights.dense_bits, inner, sent)
        norm = Remainder.of(weights.norm.bits, width, sent)
        return cls(weights, places, x, y, z, g, dense, norm, next(sent))

    def lookups(self) -> list[Segment]:
        """The lookups of the columns but the range of x."""
        t = log2(self.places)
        of_inner, of_width = (t + Blocks(n).variables for n in (self.weights.inner, self.weights.width))
        both = zip(self.z, self.g, strict=True)
        return [
            *(Segment(GELU_TAG, [z, g], 1 << of_inner) for z, g in both),
            *self.dense_rest.segments(of_inner),
            *in_range(self.y, of_width),
            *self.norm_rest.segments(of_width),
            in_limbs(self.roots, ROOT_ENTRIES * self.places),
        ]

    def claims(self, session: Session) -> None:
        """All claims after the lookup, up to the closing."""
        weights, d = self.weights, self.weights.width
        width, inner = Blocks(d), Blocks(weights.inner)
        of_inner, of_width = (rest.tops[0].point for rest in (self.dense_rest, self.norm_rest))
        by_block = powers(session.challenge("feed-forward blocks"), max(inner.count, width.count))
        by_inner, by_width = by_block[: inner.count], by_block[: width.count]
        s, first, second = weights.dense_bits, weights.first, weights.second
        dividend = self.dense_rest.dividend(session, "dense", evaluation(of_inner), by_inner, self.z, 1 << s)
        w1 = weights_at(inner, by_inner, of_inner)
        e1 = dividend - (sum(by_inner) << s - 1) - (dot(w1, first.bias) << weights.scale_x)
        end = layer_norm(session, weights.norm, by_width, of_width, self.y, self.norm_rest, self.roots)
        e3 = end.value - (dot(end.weights, second.bias) << weights.scale_g)

        p_t, m, n = of_inner[inner.variables :], width.variables, inner.variables
        variables = log2(max(d, weights.inner))
        nu = session.challenge("matrices")
        o, claim = session.reduce("matrices", [HALF] * variables, halved(variables, e1 + nu * e3), 2)
        sent = session.send("matrices", 8)
        x_dense, x_norm, of_g, f1, weighed, all_, of_first, of_second = sent
        session.product("first matrix", f1, x_dense, of_first)
        f2 = end.rows(session, second.matrix, o, (weighed, all_))
        session.product("second matrix", f2, of_g, of_second)
        residual = extension(end.weights, o) << weights.residual
        session.constraint("matrices", claim - of_first - nu * of_second - nu * residual % MODULUS * x_norm)
        at = evaluation([*of_inner[:n], *o[:m]])
        session.claim(at, first.matrix.parts(o[m:], by_inner), f1)
        session.claim(evaluation([*o[:m], *p_t]), parts(self.x, o[m:]), x_dense)
        session.claim(evaluation([*o[:m], *end.place]), parts(self.x, o[m:]), x_norm)
        session.claim(evaluation([*o[:n], *end.place]), parts(self.g, o[n:]), of_g)


def gelu_table(gelu: Sequence[int], multiplicities: Column) -> Segment:
    """z with GELU's result."""
    return Segment(GELU_TAG, [ACTIVATIONS, gelu], len(ACTIVATIONS), multiplicities)


def _statement(reader: Reader, claim: FeedForward) -> None:
    said, weights = reader.transcript, claim.weights
    said.scalar("context", claim.context)
    said.raw("weights", weights.digest)
    said.integers(("places", claim.places), ("width", weights.width), ("inner", weights.inner))
    said.integers(("scale x", weights.scale_x), ("scale z", weights.scale_z), ("scale g", weights.scale_g))
    say_matrices(said, claim.inputs, claim.outputs)


def read(claim: FeedForward, reader: Reader) -> Session:
    """The whole run, with all its claims."""
    _statement(reader, claim)
    weights, places = claim.weights, claim.places
    session = Session(reader, weights.row_bits)
    entries = places << Blocks(weights.width).variables
    x, y = ([session.column(rows, entries) for rows in columns] for columns in (claim.inputs, claim.outputs))
    limb_bits = of_limbs(weights.remainders)
    tables = [len(ACTIVATIONS), len(ACTIVATIONS), *(1 << width for width in limb_bits)]
    sent = iter(session.commit("feed-forward columns", Parts.entries(weights, places) + tables))
    block = Parts.of(weights, places, x, y, sent)
    of_gelu, of_activations, *of_widths = sent
    look_up(
        session,
        [
            *in_range(x, log2(entries)),
            *block.lookups(),
            gelu_table(weights.gelu, of_gelu),
            activations(of_activations),
            *limb_tables(limb_bits, of_widths),
        ],
    )
    block.claims(session)
    close(session)
    return session
