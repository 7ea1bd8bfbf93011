"""The second verifier and the native prover of A1 for the integer encoder. A test computes the commitments to a model from
its integers, and compares them with the pins."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass, replace

import pytest

from rag_audit.errors import EncodingError
from rag_audit.proofs.backends.reference import attention, encoder, encoder_embed, feed_forward
from rag_audit.proofs.backends.reference.block import Blocks, Dense, Matrix, Norm
from rag_audit.proofs.backends.reference.encoder_embed import EncoderEmbedded, Hashes
from rag_audit.proofs.backends.reference.encoder_input import Embeddings
from rag_audit.proofs.backends.reference.encoder_pins import decode_pins
from rag_audit.proofs.backends.reference.group import G, Point, total
from rag_audit.proofs.backends.reference.transcript import Reader, Transcript
from rag_audit.retrieval.embedders.integer_bert.files import load_files
from rag_audit.retrieval.embedders.integer_bert.semantics import IntegerModel, exp_table, gelu_table
from tests.embedders import small_bert
from tests.native.test_encoder import FIRST, NORM_FACTOR, TOKENS, core, prove, prove_all, statement

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
        rows = self.matrix(inputs, outputs)
        size, columns = 1 << Blocks(outputs).variables, []
        height = 1 << Blocks(inputs).variables
        for i in range(0, inputs, height):
            for j in range(0, outputs, size):
                block = (row[j : j + size] for row in rows[i : i + height])
                columns.append(committed(value for row in block for value in row))
        return Dense(Matrix(inputs, outputs, columns), self.take(outputs))

    def norm(self, width: int, scale: int) -> Norm:
        """The gain and the bias of a LayerNorm."""
        return Norm(self.take(width), self.take(width), scale)


def committed(column: Iterable[int]) -> list[Point]:
    """A column of one row with the blinding 0."""
    terms = [(value, G(k)) for k, value in enumerate(column)]
    above, below = (total((abs(v), g) for v, g in terms if (v > 0) is sign) for sign in (True, False))
    return [total([(1, above), (-1, below)])]


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
        of_scales = scales.x, scales.q, scales.v, scales.o
        norm = weights.norm(width, scales.x)
        of_attention = attention.Weights(ROW_BITS, shape.heads, *of_scales, *dense, norm, exp)
        dense = [weights.dense(width, shape.inner), weights.dense(shape.inner, width)]
        of_scales_ = scales.x, scales.z, scales.g
        norm = weights.norm(width, scales.x)
        of_feed_forward = feed_forward.Weights(ROW_BITS, *of_scales_, *dense, norm, gelu)
        layers.append(encoder.Layer(of_attention, of_feed_forward))
    assert not weights.left
    return table, layers


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> IntegerModel:
    folder = small_bert.write(tmp_path_factory.mktemp("small"))
    return load_files(folder, small_bert.SCALES).model


def test_pins_have_one_encoding(model: IntegerModel) -> None:
    pins = core(model).pins()
    assert decode_pins(pins) == parts(model)
    for bad in (b"", b"x" + pins[1:], pins[:-1], pins + b"\0", pins[:90] + b"\xff" * 32 + pins[122:]):
        with pytest.raises(EncodingError):
            decode_pins(bad)


@pytest.mark.parametrize(
    ("at", "value", "field"),
    [
        (0, 25, "layers"),
        (1, 1, "width"),
        (2, 3, "heads"),
        (3, 4097, "inner"),
        (4, 2, "vocabulary"),
        (5, 24, "places"),
        (6, 12, "scale_x"),
        (7, 12, "scales"),
        (10, 12, "scale_z"),
        (12, 13, "row_bits"),
    ],
)
def test_sizes_out_of_range_are_refused_by_name(model: IntegerModel, at: int, value: int, field: str) -> None:
    pins = bytearray(core(model).pins())
    pins[28 + 4 * at : 32 + 4 * at] = value.to_bytes(4, "little")
    with pytest.raises(EncodingError) as refusal:
        decode_pins(bytes(pins))
    assert refusal.value.field == field


@pytest.mark.parametrize(
    ("tokens", "places"), [([2, 3], 2), pytest.param(TOKENS, 16, marks=pytest.mark.full)]
)
def test_a_native_proof_is_accepted_for_its_statement_alone(
    model: IntegerModel, tokens: list[int], places: int
) -> None:
    table, layers = decode_pins(core(model).pins())
    public = statement(model, tokens)
    proof = prove(core(model), public, tokens, places)
    context, hq, cq = (int.from_bytes(public[i : i + 32], "big") for i in (0, 32, 64))
    right = EncoderEmbedded([Hashes(context, hq, cq)], table, layers, places, NORM_FACTOR)

    def holds(claim: EncoderEmbedded) -> bool:
        return encoder_embed.read(claim, Reader(Transcript(encoder_embed.RUN), proof)).holds()

    assert holds(right)
    assert not holds(replace(right, queries=[Hashes(context, hq + 1, cq)]))
    assert not holds(replace(right, queries=[Hashes(context, hq, cq + 1)]))


@pytest.mark.full
def test_a_native_proof_of_several_is_accepted_for_its_queries_alone(model: IntegerModel) -> None:
    table, layers = decode_pins(core(model).pins())
    texts = [[2, 3], [2, 5]]
    public = [statement(model, tokens, 70 + k) for k, tokens in enumerate(texts)]
    proof = prove_all(core(model), public, texts, 2)
    queries = [Hashes(*(int.from_bytes(one[i : i + 32], "big") for i in (0, 32, 64))) for one in public]
    right = EncoderEmbedded(queries, table, layers, 2, NORM_FACTOR)

    def holds(claim: EncoderEmbedded) -> bool:
        return encoder_embed.read(claim, Reader(Transcript(encoder_embed.RUN), proof)).holds()

    assert holds(right)
    assert not holds(replace(right, queries=queries[::-1]))
