"""The pins of all-MiniLM-L6-v2, by the reference's curve and by the model's integers."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from rag_audit._internal.errors import SetupError
from rag_audit.proofs.backends.reference.group import G, decode, encode, in_base, total
from rag_audit.retrieval.embedders.integer_bert.files import load_files
from rag_audit.retrieval.embedders.integer_bert.pins import (
    INPUT_SHA256,
    POINT_BYTES,
    InputPins,
    header,
    input_pins,
    input_vectors,
    layer_vectors,
    matrix_columns,
    place_columns,
    published_pins,
    tables,
    word_rows,
)
from rag_audit.retrieval.embedders.integer_bert.published import FILE_PINS, SCALES
from vectors.pins import main

FOLDER = os.environ.get("RAG_AUDIT_MINILM") or None
"""The folder of the published files of all-MiniLM-L6-v2."""


def points(data: bytes) -> list[bytes]:
    return [data[i : i + POINT_BYTES] for i in range(0, len(data), POINT_BYTES)]


def test_the_published_pins_are_points_of_the_curve() -> None:
    pins = input_pins(published_pins())
    assert pins.digest() == INPUT_SHA256
    assert (len(points(pins.words)), len(points(pins.places))) == (3072, 6)
    sample = points(pins.words)[::97] + points(pins.places)
    assert all(decode(point) is not None for point in sample)
    assert len(set(points(pins.words + pins.places))) == 3078


def test_other_pins_have_another_digest() -> None:
    pins = input_pins(published_pins())
    changed = [replace(pins, scale=5), replace(pins, vocabulary=30_521)]
    for name in ("words", "places", "gain", "bias", "unused"):
        data = getattr(pins, name)
        changed.append(replace(pins, **{name: data[:-1] + bytes([data[-1] ^ 1])}))
    assert len({INPUT_SHA256, *(each.digest() for each in changed)}) == 8


def test_a_file_of_another_length_is_refused() -> None:
    pins = input_pins(published_pins())
    data = pins.encode()
    assert InputPins.parse(data, 30_522, 384, 6) == pins
    for bad in (data[:-1], data + b"\0", b""):
        with pytest.raises(SetupError, match="another length"):
            InputPins.parse(bad, 30_522, 384, 6)


def test_points_in_a_base_are_the_sums() -> None:
    digits = [decode(encode(total([(k, G(k))]))) for k in (1, 2, 3)] + [None]
    assert in_base(15, digits) == total([(1, G(1)), (30, G(2)), (675, G(3))])
    assert in_base(15, []) is None


@pytest.mark.data
@pytest.mark.skipif(FOLDER is None, reason="RAG_AUDIT_MINILM names no folder")
def test_the_published_pins_are_those_of_the_model() -> None:
    """The three vectors, and three points in the reference's own arithmetic."""
    assert FOLDER is not None
    files = load_files(Path(FOLDER), SCALES, FILE_PINS)
    pins = input_pins(published_pins())
    first = files.tokenizer.encode("").ids[0]
    assert input_vectors(files.model, first) == (pins.gain, pins.bias, pins.unused)
    words, places = word_rows(files.model), place_columns(files.model)
    for component, row in ((0, 0), (383, 7)):
        entries = words[4096 * row : 4096 * (row + 1), component].tolist()
        assert (
            encode(total((v, G(i)) for i, v in enumerate(entries))) == points(pins.words)[8 * component + row]
        )
    entries = places[4096:8192, 2].tolist()
    assert encode(total((v, G(i)) for i, v in enumerate(entries))) == points(pins.places)[2 * 2 + 1]
    # The last layer's second matrix is the last one: its last point is that of its last inputs and outputs.
    layers = files.model.shape.layers
    *_, columns = matrix_columns(files.model, layers)
    entries = columns[-4096:, -1].tolist()
    end = layer_vectors(files.model, layers)
    point = published_pins()[: -len(end)][-POINT_BYTES:]
    assert encode(total((v, G(i)) for i, v in enumerate(entries))) == point
    data = published_pins()
    assert data.startswith(header(files.model)) and data.endswith(end)
    start = len(header(files.model)) + len(pins.encode())
    assert data[start:].startswith(tables(files.model))


@pytest.mark.data
@pytest.mark.skipif(FOLDER is None, reason="RAG_AUDIT_MINILM names no folder")
def test_all_published_pins_are_those_of_the_model() -> None:
    assert main(["--model", str(FOLDER), "--check"]) == 0
