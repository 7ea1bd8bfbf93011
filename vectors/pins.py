"""The pins of all-MiniLM-L6-v2 (docs/scan/encoder-embed.md).

    python vectors/pins.py --model FOLDER            # write the package's file and print its digest
    python vectors/pins.py --model FOLDER --check    # compute all points again, and compare with the file

FOLDER has the published files. An int16 is the sum of 15^k d_k with components d_k in -7..7, and commitments are
linear. So the points of the columns are sums of 15^k P_k, for the points P_k of tables of these components. The native
core commits to the tables, and the reference's arithmetic adds the points up.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

import numpy as np
import numpy.typing as npt

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from rag_audit import _native
from rag_audit.proofs.backends.reference import group
from rag_audit.retrieval.embedders.integer_bert import pins
from rag_audit.retrieval.embedders.integer_bert.files import Files, load_files
from rag_audit.retrieval.embedders.integer_bert.published import FILE_PINS, SCALES

FILE = Path(pins.__file__).resolve().parent / pins.PINS
BASE = 15
LEAST_ROWS, MOST_ROWS = 20_000, 1 << 14
"""A table of at least so many rows, and of few more, has commitments to 2^12 entries each."""

Rows = npt.NDArray[np.int64]


def digits_of(values: Rows) -> list[npt.NDArray[np.int8]]:
    """d_0, d_1, .. in -7..7, with values = sum of 15^k d_k."""
    out = []
    while values.any():
        digit = (values + BASE // 2) % BASE - BASE // 2
        out.append(digit.astype(np.int8))
        values = (values - digit) // BASE
    return out


def commit(rows: Rows) -> list[list[bytes]]:
    """The points of each column of a matrix, a point for each 2^12 entries."""
    columns, padding = rows.shape[1], max(0, LEAST_ROWS - len(rows))
    parts = [
        _native.ScanTable.commit(np.pad(digit, ((0, padding), (0, 0))).tobytes(), columns).encode()
        for digit in digits_of(rows)
    ]
    count = len(parts[0]) // group.POINT_BYTES // columns
    needed = -(-len(rows) >> pins.ROW_VARIABLES)

    def point(column: int, row: int) -> bytes:
        start = group.POINT_BYTES * (count * column + row)
        digits = [group.decode(part[start : start + group.POINT_BYTES]) for part in parts]
        return group.encode(group.in_base(BASE, digits))

    return [[point(column, row) for row in range(needed)] for column in range(columns)]


def points_of(columns: npt.NDArray[np.int16]) -> bytes:
    """The points of columns, one column after another."""
    entries, count = columns.shape
    parts = max(1, entries // MOST_ROWS)
    # The parts of a long column are columns of their own: each point is for 2^12 entries.
    apart = columns.reshape(parts, -1, count).transpose(1, 2, 0).reshape(-1, count * parts)
    return b"".join(point for column in commit(apart.astype(np.int64)) for point in column)


def computed(files: Files) -> bytes:
    """The pins of a model, from its integers."""
    model = files.model
    first = files.tokenizer.encode("").ids[0]
    data = [pins.header(model)]
    data += [points_of(pins.word_rows(model)), points_of(pins.place_columns(model))]
    data += [*pins.input_vectors(model, first), pins.tables(model)]
    for layer in range(1, model.shape.layers + 1):
        data += [points_of(columns) for columns in pins.matrix_columns(model, layer)]
        data.append(pins.layer_vectors(model, layer))
    return b"".join(data)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", required=True, type=Path, help="folder of the published files")
    parser.add_argument("--check", action="store_true", help="compare with the file instead of writing it")
    options = parser.parse_args(arguments)
    result = computed(load_files(options.model, SCALES, FILE_PINS))
    if not options.check:
        FILE.write_bytes(result)
        print(sha256(result).hexdigest())
        return 0
    same = FILE.read_bytes() == result
    print("the pins are those of the model" if same else "the pins are not those of the model")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
