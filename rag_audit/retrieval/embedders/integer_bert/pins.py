"""The pins of an integer encoder: what a verifier of proofs of claim A1 has instead of the model's integers
(docs/scan/encoder-embed.md).

`minilm.pins` has those of all-MiniLM-L6-v2. `python vectors/pins.py --check` computes all of them again from the
model's folder.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import astuple, dataclass
from functools import cache
from hashlib import sha256
from importlib.resources import files as resources

import numpy as np
import numpy.typing as npt

from rag_audit._internal.errors import SetupError
from rag_audit.retrieval.embedders.integer_bert.semantics import IntegerModel, exp_table, gelu_table

POINT_BYTES = 32
ROW_VARIABLES = 12
"""A column's commitment has a point for each 2^12 entries."""
PLACES = 64
"""Place rows that are pinned: the largest number of places of a proof."""
PINS = "minilm.pins"
PINS_SHA256 = "58d9f7c821fdc3c5e3b9e85279d42a4dcf6c0905eccaecf635c22e3cd6375b46"
"""SHA-256 of the pins of all-MiniLM-L6-v2."""
INPUT_SHA256 = "efbf1e04e1860325229ba2c1aceee2770ea60cee3031a96b6368f268e4ab2b42"
"""The digest of its embeddings."""
DOMAIN = b"rag-audit/encoder-pins/v1\0\0\0"
MATRICES = ("q", "k", "v", "a", "z", "f")
VECTORS = (*(f"{name}.bias" for name in MATRICES), "gain1", "bias1", "gain2", "bias2")
"""The parameters of a layer in the order of the pins."""


@dataclass(frozen=True)
class InputPins:
    """Commitments to word rows and place rows, and three vectors.

    :param vocabulary: the number of word rows
    :param width: components of a row
    :param scale: fraction bits of the LayerNorm's results
    :param words: the points of component 0, 1, .., of all word rows each, 32 bytes a point
    :param places: the points of the place rows, block by block of components
    :param gain: the LayerNorm's gain, int16
    :param bias: its bias, int16
    :param unused: the row of unused places, int32
    """

    vocabulary: int
    width: int
    scale: int
    words: bytes
    places: bytes
    gain: bytes
    bias: bytes
    unused: bytes

    @staticmethod
    def length(vocabulary: int, width: int) -> int:
        """The number of bytes of the fields from `words` on."""
        return sum(InputPins._sizes(vocabulary, width))

    @staticmethod
    def _sizes(vocabulary: int, width: int) -> tuple[int, ...]:
        return (
            POINT_BYTES * width * _rows(vocabulary),
            POINT_BYTES * (width // _entries(width)) * _rows(PLACES * _entries(width)),
            2 * width,
            2 * width,
            4 * width,
        )

    @classmethod
    def parse(cls, data: bytes, vocabulary: int, width: int, scale: int) -> InputPins:
        """The fields from `words` on, one after another.

        :raises SetupError: other lengths
        """
        sizes = cls._sizes(vocabulary, width)
        if len(data) != sum(sizes):
            raise SetupError("the pins of the embeddings have another length", field="pins",
                             expected=f"{sum(sizes)} bytes", actual=f"{len(data)} bytes")  # fmt: skip
        parts, start = [], 0
        for size in sizes:
            parts.append(data[start : start + size])
            start += size
        return cls(vocabulary, width, scale, *parts)

    def encode(self) -> bytes:
        """The file of `parse`."""
        return self.words + self.places + self.gain + self.bias + self.unused

    def digest(self) -> str:
        """The digest that a statement names: SHA-256 over sizes, points and vectors."""
        sizes = struct.pack("<5I", self.vocabulary, self.width, PLACES, self.scale, ROW_VARIABLES)
        return sha256(b"rag-audit/encoder-input/v1" + sizes + self.encode()).hexdigest()


def _rows(entries: int) -> int:
    return -(-entries >> ROW_VARIABLES)


def _entries(width: int) -> int:
    """Components of a block: the largest power of two that divides the width."""
    return width & -width


@cache
def published_pins() -> bytes:
    """The pins of all-MiniLM-L6-v2.

    :raises SetupError: the package's file is altered
    """
    data = resources(__package__).joinpath(PINS).read_bytes()
    actual = sha256(data).hexdigest()
    if actual != PINS_SHA256:
        raise SetupError("the pins of the encoder are altered", field=PINS,
                         expected=PINS_SHA256, actual=actual)  # fmt: skip
    return data


def input_pins(data: bytes) -> InputPins:
    """The part of a model's pins that its embeddings determine."""
    sizes = struct.unpack_from("<13I", data, len(DOMAIN))
    vocabulary, width, scale = sizes[4], sizes[1], sizes[6]
    start = len(DOMAIN) + 4 * len(sizes)
    part = data[start : start + InputPins.length(vocabulary, width)]
    return InputPins.parse(part, vocabulary, width, scale)


def header(model: IntegerModel) -> bytes:
    """The first bytes of a model's pins: the domain and all sizes."""
    shape, scales = model.shape, astuple(model.scales)
    sizes = (shape.layers, shape.width, shape.heads, shape.inner, shape.vocabulary, PLACES, *scales)
    return DOMAIN + struct.pack("<13I", *sizes, ROW_VARIABLES)


def tables(model: IntegerModel) -> bytes:
    """The tables of exp and of GELU, int16."""
    return exp_table() + gelu_table(model.scales.z, model.scales.g)


def layer_vectors(model: IntegerModel, layer: int) -> bytes:
    """Biases, gains and LayerNorm's biases of a layer, int16.

    :param layer: from 1 on
    """
    return b"".join(_parameters(model)[f"{layer}.{name}"].tobytes() for name in VECTORS)


def matrix_columns(model: IntegerModel, layer: int) -> Iterator[npt.NDArray[np.int16]]:
    """The matrices of a layer as columns, shape (entries, columns) each: a column for each block of inputs and of
    outputs, with the outputs of an input one after another.

    :param layer: from 1 on
    """
    for name in MATRICES:
        matrix = _parameters(model)[f"{layer}.{name}"]
        rows, columns = (_entries(count) for count in matrix.shape)
        blocks = matrix.reshape(-1, rows, matrix.shape[1] // columns, columns).transpose(1, 3, 0, 2)
        yield blocks.reshape(rows * columns, -1)


def input_vectors(model: IntegerModel, first: int) -> tuple[bytes, bytes, bytes]:
    """Gain, bias and the row of unused places of a model, as pins have them.

    :param first: the first special token, which is the first token of each text
    """
    rows = _parameters(model)
    unused = rows["word"][first].astype("<i4") + rows["place"][0]
    return rows["gain"].tobytes(), rows["bias"].tobytes(), unused.astype("<i4").tobytes()


def _parameters(model: IntegerModel) -> dict[str, npt.NDArray[np.int16]]:
    """All parameters by name."""
    out, start = {}, 0
    integers = np.frombuffer(model.weights, "<i2")
    for name, rows, columns in model.shape.parameters():
        out[name] = integers[start : start + rows * columns].reshape(rows, columns)
        start += rows * columns
    return out


def word_rows(model: IntegerModel) -> npt.NDArray[np.int16]:
    """The word rows, shape (vocabulary, width)."""
    return _parameters(model)["word"]


def place_columns(model: IntegerModel) -> npt.NDArray[np.int16]:
    """The pinned place rows as blocks of 2^m components, shape (places 2^m, blocks): component j of a block of place p
    is in the row p 2^m + j.
    """
    width = model.shape.width
    places = _parameters(model)["place"][:PLACES].reshape(PLACES, -1, _entries(width))
    return places.transpose(0, 2, 1).reshape(-1, width // _entries(width))
