"""Proofs of the layers of the integer encoder in one run (docs/scan/encoder.md)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rag_audit.proofs.backends.reference import attention, feed_forward, limits
from rag_audit.proofs.backends.reference.block import (
    ACTIVATIONS,
    Blocks,
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
from rag_audit.proofs.backends.reference.session import Session
from rag_audit.proofs.backends.reference.transcript import Reader

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

    def sizes(self) -> tuple[object, ...]:
        """All that the layers of an encoder have in common: sizes, scales and tables."""
        a, f = self.attention, self.feed_forward
        scales = (a.scale_x, a.scale_q, a.scale_v, a.scale_o, f.scale_z, f.scale_g)
        return a.width, a.heads, f.inner, *scales, list(a.exp), list(f.gelu)


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
        limits.require(layers=1 <= len(self.layers) <= MAX_LAYERS, places=allowed(self.places))
        for layer in self.layers:
            a, f = layer.attention, layer.feed_forward
            limits.require(
                width=a.width == f.width,
                scale_x=a.scale_x == f.scale_x,
                layer=layer.sizes() == self.layers[0].sizes(),
            )
        first = self.layers[0]
        size = first.attention.width, self.places, row_bits(first, self.places)
        limits.require(inputs=placed(self.inputs, *size), outputs=placed(self.outputs, *size))


def row_bits(layer: Layer, places: int) -> int:
    """Rows of all columns have 2^`row_bits` values."""
    return max(attention.row_bits(layer.attention, places), feed_forward.row_bits(layer.feed_forward, places))


def _statement(reader: Reader, claim: Encoder) -> None:
    said, first = reader.transcript, claim.layers[0]
    a, f = first.attention, first.feed_forward
    said.scalar("context", claim.context)
    said.integer("layers", len(claim.layers))
    for layer in claim.layers:
        said.raw("attention weights", layer.attention.digest)
        said.raw("feed-forward weights", layer.feed_forward.digest)
    said.integers(("places", claim.places), ("width", a.width), ("heads", a.heads), ("inner", f.inner))
    said.integers(("scale x", a.scale_x), ("scale q", a.scale_q), ("scale v", a.scale_v))
    said.integers(("scale o", a.scale_o), ("scale z", f.scale_z), ("scale g", f.scale_g))
    said.points("marks of places", [claim.marks])
    say_matrices(said, claim.inputs, claim.outputs)


def read(claim: Encoder, reader: Reader) -> Session:
    """The whole run, with all its claims."""
    _statement(reader, claim)
    places, (first, *others) = claim.places, claim.layers
    session = Session(reader, row_bits(first, places))
    of_marks = session.column([claim.marks], places)
    matrix = Blocks(first.attention.width).entries(places)
    x, y = (
        [session.column(rows, matrix[0]) for rows in columns] for columns in (claim.inputs, claim.outputs)
    )
    of_attention = attention.Parts.entries(first.attention, places)
    of_feed_forward = feed_forward.Parts.entries(first.feed_forward, places)
    layer_entries = [*of_attention, *matrix, *of_feed_forward]
    limb_bits = of_limbs(first.remainders)
    tables = [attention.DISTANCES + 1, len(ACTIVATIONS), len(ACTIVATIONS), *(1 << w for w in limb_bits)]
    entries = layer_entries + [*matrix, *layer_entries] * len(others) + tables
    sent = iter(session.commit("encoder columns", entries))
    marks = attention.read_marks(session, of_marks, places)
    blocks: list[attention.Parts | feed_forward.Parts] = []
    before = x
    for number, layer in enumerate(claim.layers, 1):
        own = iter(take(sent, len(of_attention)))
        between = take(sent, len(matrix))
        blocks.append(attention.Parts.of(layer.attention, marks, before, between, own))
        own = iter(take(sent, len(of_feed_forward)))
        result = take(sent, len(matrix)) if number < len(claim.layers) else y
        blocks.append(feed_forward.Parts.of(layer.feed_forward, places, between, result, own))
        before = result
    of_exp, of_gelu, of_activations, *of_widths = sent
    segments: list[Segment] = in_range(x, log2(matrix[0]))
    for block in blocks:
        segments += block.lookups()
    tables_of = [
        attention.exp_table(first.attention.exp, of_exp),
        feed_forward.gelu_table(first.feed_forward.gelu, of_gelu),
        activations(of_activations),
        *limb_tables(limb_bits, of_widths),
    ]
    look_up(session, [*segments, *tables_of])
    for block in blocks:
        block.claims(session)
    close(session)
    return session
