"""The second verifier and the native prover of A1 for the integer encoder: the test computes the commitments to the
embeddings from a model's integers, and takes no other value from the native core than the proof."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass, replace

import pytest

from rag_audit.proofs.backends.reference import attention, encoder, encoder_embed, feed_forward
from rag_audit.proofs.backends.reference.block import Blocks, Dense, Norm
from rag_audit.proofs.backends.reference.encoder_embed import EncoderEmbedded
from rag_audit.proofs.backends.reference.encoder_input import Embeddings
from rag_audit.proofs.backends.reference.group import G, Point, total
from rag_audit.proofs.backends.reference.transcript import Reader, Transcript
from rag_audit.retrieval.embedders.integer_bert.files import load_files
from rag_audit.retrieval.embedders.integer_bert.semantics import IntegerModel, exp_table, gelu_table
from tests.embedders import small_bert
from tests.native.test_encoder import FIRST, NORM_FACTOR, TOKENS, core, prove, statement

PLACE_ROWS, ROW_BITS = 16, 12


@dataclass
class Weights:
    """The integers of a model, read from the first on."""

    left: list[int]

    def take(self, count: int) -> list[int]:
        """The next integers."""
        taken, self.left = self.left[:count], self.left[count:]
        return taken

    def matrix(self, rows: int, columns: int) -> list[list[int]]:
        """The next integers, row by row."""
        return [self.take(columns) for _ in range(rows)]

    def dense(self, inputs: int, outputs: int) -> Dense:
        """A dense layer."""
        return Dense(self.matrix(inputs, outputs), self.take(outputs))

    def norm(self, width: int, scale: int) -> Norm:
        """The gain and the bias of a LayerNorm."""
        return Norm(self.take(width), self.take(width), scale)


def committed(column: Iterable[int]) -> list[Point]:
    """A column of one row with the blinding 0."""
    return [total((value, G(k)) for k, value in enumerate(column))]


def int16(data: bytes) -> list[int]:
    return list(struct.unpack(f"<{len(data) // 2}h", data))


def parts(model: IntegerModel) -> tuple[Embeddings, list[encoder.Layer]]:
    """The model as the second verifier has it."""
    shape, scales, weights = model.shape, model.scales, Weights(int16(model.weights))
    width, size = shape.width, 1 << Blocks(shape.width).variables
    words, places = (weights.matrix(rows, width) for rows in (shape.vocabulary, shape.places))
    of_words = [committed(row[j] for row in words) for j in range(width)]
    of_places = [
        committed(value for row in places[:PLACE_ROWS] for value in row[b : b + size])
        for b in range(0, width, size)
    ]
    unused = [word + place for word, place in zip(words[FIRST], places[0], strict=True)]
    norm = weights.norm(width, scales.x)
    table = Embeddings(shape.vocabulary, PLACE_ROWS, ROW_BITS, of_words, of_places, norm, unused)
    exp, gelu = int16(exp_table()), int16(gelu_table(scales.z, scales.g))
    layers = []
    for _ in range(shape.layers):
        dense = [weights.dense(width, width) for _ in range(4)]
        of_attention = attention.Weights(
            shape.heads, scales.x, scales.q, scales.v, scales.o, *dense, weights.norm(width, scales.x), exp
        )
        dense = [weights.dense(width, shape.inner), weights.dense(shape.inner, width)]
        of_feed_forward = feed_forward.Weights(
            scales.x, scales.z, scales.g, *dense, weights.norm(width, scales.x), gelu
        )
        layers.append(encoder.Layer(of_attention, of_feed_forward))
    assert not weights.left
    return table, layers


@pytest.mark.parametrize(
    ("tokens", "places"), [([2, 3], 2), pytest.param(TOKENS, 16, marks=pytest.mark.full)]
)
def test_a_native_proof_is_accepted_for_its_statement_alone(
    tmp_path_factory: pytest.TempPathFactory, tokens: list[int], places: int
) -> None:
    folder = small_bert.write(tmp_path_factory.mktemp("small"))
    model = load_files(folder, small_bert.SCALES).model
    table, layers = parts(model)
    public = statement(model, tokens)
    proof = prove(core(model), public, tokens, places)
    context, hq, cq = (int.from_bytes(public[i : i + 32], "big") for i in (0, 32, 64))
    right = EncoderEmbedded(context, table, layers, places, NORM_FACTOR, hq, cq)

    def holds(claim: EncoderEmbedded) -> bool:
        return encoder_embed.read(claim, Reader(Transcript(encoder_embed.RUN), proof)).holds()

    assert holds(right)
    assert not holds(replace(right, hq=hq + 1))
    assert not holds(replace(right, cq=cq + 1))
