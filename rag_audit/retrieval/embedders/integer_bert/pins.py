"""The pins of an integer encoder's embeddings: what a verifier of the encoder's input has instead of the model's rows
(docs/scan/encoder-input.md).

No window uses these pins yet. `minilm-input.pins` has those of all-MiniLM-L6-v2. `python vectors/pins.py --check`
computes all of them again from the model's folder.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib.resources import files as resources

import numpy as np
import numpy.typing as npt

from rag_audit._internal.errors import SetupError
from rag_audit.retrieval.embedders.integer_bert.semantics import IntegerModel

POINT_BYTES = 32
ROW_VARIABLES = 12
"""A column's commitment has a point for each 2^12 entries."""
PLACES = 64
"""Place rows that are pinned: the largest number of places of a proof."""
PINS = "minilm-input.pins"
PINS_SHA256 = "efbf1e04e1860325229ba2c1aceee2770ea60cee3031a96b6368f268e4ab2b42"
"""The digest of the embeddings of all-MiniLM-L6-v2."""


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

    @classmethod
    def parse(cls, data: bytes, vocabulary: int, width: int, scale: int) -> InputPins:
        """The pins in a file: the fields from `words` on, one after another.

        :raises SetupError: the file has another length
        """
        sizes = (
            POINT_BYTES * width * _rows(vocabulary),
            POINT_BYTES * (width // _entries(width)) * _rows(PLACES * _entries(width)),
            2 * width,
            2 * width,
            4 * width,
        )
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
def published_pins() -> InputPins:
    """The pins of all-MiniLM-L6-v2.

    :raises SetupError: the package's file is altered
    """
    data = resources(__package__).joinpath(PINS).read_bytes()
    pins = InputPins.parse(data, 30_522, 384, 6)
    if pins.digest() != PINS_SHA256:
        raise SetupError("the pins of the embeddings are altered", field=PINS,
                         expected=PINS_SHA256, actual=pins.digest())  # fmt: skip
    return pins


def input_vectors(model: IntegerModel, first: int) -> tuple[bytes, bytes, bytes]:
    """Gain, bias and the row of unused places of a model, as pins have them.

    :param first: the first special token, which is the first token of each text
    """
    rows = _parameters(model)
    unused = rows["word"][first].astype("<i4") + rows["place"][0]
    return rows["gain"].tobytes(), rows["bias"].tobytes(), unused.astype("<i4").tobytes()


def _parameters(model: IntegerModel) -> dict[str, npt.NDArray[np.int16]]:
    """The parameters up to the LayerNorm of the embeddings, by name."""
    out, start = {}, 0
    integers = np.frombuffer(model.weights, "<i2")
    for name, rows, columns in model.shape.parameters():
        out[name] = integers[start : start + rows * columns].reshape(rows, columns)
        start += rows * columns
        if name == "bias":
            break
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
