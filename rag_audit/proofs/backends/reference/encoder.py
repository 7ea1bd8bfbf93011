"""Proofs of the layers of the integer encoder in one run (docs/scan/encoder.md)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rag_audit.proofs.backends.reference import attention, feed_forward, limits
from rag_audit.proofs.backends.reference.block import (
    ACTIVATIONS,
    Blocks,
    Matrix,
    activations,
    allowed,
    in_range,
    limb_tables,
    of_limbs,
    placed,
    say_matrices,
    take,
)
from rag_audit.proofs.backends.reference.closing import close
from rag_audit.proofs.backends.reference.extensions import log2
from rag_audit.proofs.backends.reference.group import Point
from rag_audit.proofs.backends.reference.lookup import Segment, look_up
from rag_audit.proofs.backends.reference.session import Column, Expr, Session
from rag_audit.proofs.backends.reference.transcript import Reader, Transcript

RUN, MAX_LAYERS = "encoder", 24


@dataclass(frozen=True)
class Layer:
    """The weights of both blocks of a layer."""

    attention: attention.Weights
    feed_forward: feed_forward.Weights

    @property
    def remainders(self) -> list[int]:
        """The bits of the remainders of both blocks."""
        return [*self.attention.remainders, *self.feed_forward.remainders]

    @property
    def matrices(self) -> list[Matrix]:
        """The matrices of both blocks."""
        a, f = self.attention, self.feed_forward
        dense = (a.queries, a.keys, a.values, a.output, f.first, f.second)
        return [layer.matrix for layer in dense]

    def sizes(self) -> tuple[object, ...]:
        """All that the layers of an encoder have in common: sizes, scales and tables."""
        a, f = self.attention, self.feed_forward
        scales = (a.scale_x, a.scale_q, a.scale_v, a.scale_o, f.scale_z, f.scale_g)
        return a.row_bits, a.width, a.heads, f.inner, *scales, list(a.exp), list(f.gelu)


@dataclass(frozen=True)
class Encoder:
    """The public values of a run.

    :param marks: the commitment to a mark for each place
    :param inputs: the rows of each column of the first layer's x
    :param outputs: the rows of each column of the last layer's result
    """

    context: int
    layers: Sequence[Layer]
    places: int
    marks: Point
    inputs: Sequence[Sequence[Point]]
    outputs: Sequence[Sequence[Point]]

    def __post_init__(self) -> None:
        require_layers(self.layers)
        first = self.layers[0].attention
        limits.require(places=allowed(self.places, first.row_bits))
        size = first.width, self.places, first.row_bits
        limits.require(inputs=placed(self.inputs, *size), outputs=placed(self.outputs, *size))


def require_layers(layers: Sequence[Layer]) -> None:
    """:raises EncodingError: no layer or too many, or layers that differ in what all layers have in common"""
    limits.require(layers=1 <= len(layers) <= MAX_LAYERS)
    for layer in layers:
        a, f = layer.attention, layer.feed_forward
        limits.require(
            width=a.width == f.width,
            scale_x=a.scale_x == f.scale_x,
            row_bits=a.row_bits == f.row_bits,
            layer=layer.sizes() == layers[0].sizes(),
        )


@dataclass(frozen=True)
class Stack:
    """The blocks of all layers, in their order."""

    blocks: Sequence[attention.Parts | feed_forward.Parts]

    @staticmethod
    def entries(layers: Sequence[Layer], keys: int, texts: int = 1) -> list[int]:
        """The entries of the columns that a prover commits to, without those of the first x and of the last result.

        :param keys: the places of one text
        """
        places = keys * texts
        (first, *others), matrix = layers, Blocks(layers[0].attention.width).entries(places)
        of_attention = attention.Parts.entries(first.attention, keys, texts)
        of_layer = [*of_attention, *matrix, *feed_forward.Parts.entries(first.feed_forward, places)]
        return of_layer + [*matrix, *of_layer] * len(others)

    @classmethod
    def of(
        cls,
        layers: Sequence[Layer],
        marks: Sequence[Expr],
        x: Sequence[Column],
        y: Sequence[Column],
        sent: Iterator[Column],
        texts: int = 1,
    ) -> Stack:
        """The next columns, in the order of `entries`."""
        places, before = len(marks), x
        blocks: list[attention.Parts | feed_forward.Parts] = []
        for number, layer in enumerate(layers, 1):
            of_attention = attention.Parts.entries(layer.attention, places // texts, texts)
            own = iter(take(sent, len(of_attention)))
            between = take(sent, len(x))
            blocks.append(attention.Parts.of(layer.attention, marks, before, between, own, texts))
            of_feed_forward = feed_forward.Parts.entries(layer.feed_forward, places)
            own = iter(take(sent, len(of_feed_forward)))
            before = take(sent, len(x)) if number < len(layers) else y
            blocks.append(feed_forward.Parts.of(layer.feed_forward, places, between, before, own))
        return cls(blocks)

    def lookups(self) -> list[Segment]:
        """The lookups of all blocks but the range of the first x and the tables."""
        return [segment for block in self.blocks for segment in block.lookups()]

    def claims(self, session: Session) -> None:
        """All claims after the lookup, up to the closing."""
        for block in self.blocks:
            block.claims(session)


def tables(layer: Layer, of_exp: Column, of_gelu: Column) -> list[Segment]:
    """The tables of exp and of GELU."""
    return [
        attention.exp_table(layer.attention.exp, of_exp),
        feed_forward.gelu_table(layer.feed_forward.gelu, of_gelu),
    ]


TABLES = [attention.DISTANCES + 1, len(ACTIVATIONS)]
"""The entries of the multiplicities of both tables."""


def say_layers(said: Transcript, layers: Sequence[Layer], places: int) -> None:
    """The layers in a statement, with their sizes."""
    a, f = layers[0].attention, layers[0].feed_forward
    said.integer("layers", len(layers))
    for layer in layers:
        said.raw("attention weights", layer.attention.digest)
        said.raw("feed-forward weights", layer.feed_forward.digest)
    said.integers(("places", places), ("width", a.width), ("heads", a.heads), ("inner", f.inner))
    said.integers(("scale x", a.scale_x), ("scale q", a.scale_q), ("scale v", a.scale_v))
    said.integers(("scale o", a.scale_o), ("scale z", f.scale_z), ("scale g", f.scale_g))


def read(claim: Encoder, reader: Reader) -> Session:
    """The whole run, with all its claims."""
    said, places, layers = reader.transcript, claim.places, claim.layers
    said.scalar("context", claim.context)
    say_layers(said, layers, places)
    said.points("marks of places", [claim.marks])
    say_matrices(said, claim.inputs, claim.outputs)
    session = Session(reader, layers[0].attention.row_bits)
    of_marks = session.column([claim.marks], places)
    (entries, *_) = Blocks(layers[0].attention.width).entries(places)
    x, y = ([session.column(rows, entries) for rows in columns] for columns in (claim.inputs, claim.outputs))
    limb_bits = of_limbs(layers[0].remainders)
    of_tables = [*TABLES, len(ACTIVATIONS), *(1 << width for width in limb_bits)]
    sent = iter(session.commit("encoder columns", Stack.entries(layers, places) + of_tables))
    stack = Stack.of(layers, attention.read_marks(session, of_marks, places), x, y, sent)
    of_exp, of_gelu, of_activations, *of_widths = sent
    look_up(
        session,
        [
            *in_range(x, log2(entries)),
            *stack.lookups(),
            *tables(layers[0], of_exp, of_gelu),
            activations(of_activations),
            *limb_tables(limb_bits, of_widths),
        ],
    )
    stack.claims(session)
    close(session)
    return session
