"""A model of the integer encoder as a verifier has it (docs/scan/encoder-embed.md, "Pins")."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

from rag_audit._internal.errors import EncodingError
from rag_audit.proofs.backends.reference import attention, encoder, feed_forward, limits
from rag_audit.proofs.backends.reference.block import (
    ACTIVATIONS,
    MAX_ROW_BITS,
    MAX_WIDTH,
    Blocks,
    Dense,
    Matrix,
    Norm,
    allowed,
)
from rag_audit.proofs.backends.reference.embed import MAX_WORDS
from rag_audit.proofs.backends.reference.encoder_input import Embeddings
from rag_audit.proofs.backends.reference.group import POINT_BYTES, Point, decode

DOMAIN = b"rag-audit/encoder-pins/v1\0\0\0"
SIZES = struct.Struct("<13I")


@dataclass
class Pins:
    """The bytes of pins, read from the first on."""

    left: bytes
    row_bits: int = 0

    def take(self, count: int) -> bytes:
        """The next bytes.

        :raises EncodingError: there are fewer
        """
        taken, self.left = self.left[:count], self.left[count:]
        if len(taken) != count:
            raise EncodingError(
                "the pins of the encoder end early",
                field="pins",
                expected=f"{count} more bytes",
                actual=len(taken),
            )
        return taken

    def integers(self, kind: str, count: int) -> list[int]:
        """The next integers, `h` of two bytes or `i` of four."""
        form = struct.Struct(f"<{count}{kind}")
        return list(form.unpack(self.take(form.size)))

    def columns(self, count: int, entries: int) -> list[list[Point]]:
        """The rows of the next columns, each of so many entries."""
        rows = (entries - 1 >> self.row_bits) + 1
        return [[decode(self.take(POINT_BYTES)) for _ in range(rows)] for _ in range(count)]

    def matrix(self, inputs: int, outputs: int) -> Matrix:
        """The next matrix."""
        left, right = Blocks(inputs), Blocks(outputs)
        points = self.columns(left.count * right.count, 1 << left.variables + right.variables)
        return Matrix(inputs, outputs, points)

    def norm(self, width: int, scale: int) -> Norm:
        """The next gain and bias of a LayerNorm."""
        gain, bias = (self.integers("h", width) for _ in range(2))
        return Norm(gain, bias, scale)


def decode_pins(data: bytes) -> tuple[Embeddings, list[encoder.Layer]]:
    """The embeddings and the layers of a model.

    :param data: the pins, whose SHA-256 a verifier pins
    :raises EncodingError: the bytes are no pins, or a value is out of range
    """
    pins = Pins(data)
    if pins.take(len(DOMAIN)) != DOMAIN:
        raise EncodingError("the pins of the encoder have another version", field="pins",
                            expected=DOMAIN.rstrip(b"\0").decode(), actual="other bytes")  # fmt: skip
    count, width, heads, inner, words, places, *scales, pins.row_bits = SIZES.unpack(pins.take(SIZES.size))
    x, q, v, o, z, g = scales
    limits.require(
        layers=1 <= count <= encoder.MAX_LAYERS,
        width=2 <= width <= MAX_WIDTH,
        inner=1 <= inner <= feed_forward.MAX_INNER,
        vocabulary=1 <= words <= MAX_WORDS,
        places=allowed(places),
        row_bits=1 <= pins.row_bits <= MAX_ROW_BITS,
    )
    of_words = pins.columns(width, words)
    (entries, *others) = Blocks(width).entries(places)
    of_places = pins.columns(1 + len(others), entries)
    norm, unused = pins.norm(width, x), pins.integers("i", width)
    table = Embeddings(words, places, pins.row_bits, of_words, of_places, norm, unused)
    exp, gelu = pins.integers("h", attention.DISTANCES), pins.integers("h", len(ACTIVATIONS))
    layers = []
    for _ in range(count):
        sizes = [(width, width)] * 4 + [(width, inner), (inner, width)]
        matrices = [pins.matrix(*size) for size in sizes]
        queries, keys, values, output, first, second = _dense(pins, matrices)
        norms = [pins.norm(width, x) for _ in range(2)]
        of_attention = attention.Weights(
            pins.row_bits, heads, x, q, v, o, queries, keys, values, output, norms[0], exp
        )
        of_feed_forward = feed_forward.Weights(pins.row_bits, x, z, g, first, second, norms[1], gelu)
        layers.append(encoder.Layer(of_attention, of_feed_forward))
    if pins.left:
        raise EncodingError("the pins of the encoder are too long", field="pins",
                            expected=f"{len(data) - len(pins.left)} bytes", actual=len(data))  # fmt: skip
    encoder.require_layers(layers)
    return table, layers


def _dense(pins: Pins, matrices: Sequence[Matrix]) -> list[Dense]:
    """The dense layers with these matrices, and the next biases."""
    return [Dense(matrix, pins.integers("h", matrix.outputs)) for matrix in matrices]
