"""The factor of a document in three windows, through the document table and the engine.

The document has three positions at other places in each window, and each window asks for it once.
"""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from rag_audit.commit.document_table import DocumentTable, place_documents
from rag_audit.mechanisms.accounting.documents import sampling_factor
from rag_audit.mechanisms.base import TableShape
from rag_audit.retrieval.engine import draw_bernoulli_bits, select
from tests.accounting.test_missing import HALF, QUERY, WINDOW, index_of, limits

CAPACITY, POSITIONS, WINDOWS = 16, 3, 3


def missing(number: int, shape: TableShape) -> bool:
    """Whether no window of one chain returns the document."""
    rng, table = Random(number), None
    for window in range(WINDOWS):
        table = place_documents(shape, {"X": POSITIONS, "A": 1}, table, rng).table
        table = table.with_bits(draw_bernoulli_bits(10**6 * window + number, table.drawn, HALF))
        if returned(table, rng):
            return False
    return True


def returned(table: DocumentTable, rng: Random) -> bool:
    place = rng.sample(range(CAPACITY), POSITIONS)
    rows = table.row_of_position(["X"] * POSITIONS, place, CAPACITY)
    kept, noise = table.sampled_positions(rows), np.zeros(CAPACITY, np.int32)
    return any(
        p in place and kept[p] for p in select(index_of(place, CAPACITY), QUERY, noise, WINDOW, 5, kept)
    )


@pytest.mark.parametrize(
    ("fresh_rows", "bits"), [(2, 1), (None, WINDOWS)], ids=["persistent", "drawn in each window"]
)
def test_a_document_of_three_positions_in_three_windows(fresh_rows: int | None, bits: int) -> None:
    chains = 1500
    shape = TableShape(rows=8, positions_per_document=POSITIONS, fresh_rows=fresh_rows)
    low, high = limits(sum(missing(number, shape) for number in range(chains)), chains)
    assert low <= sampling_factor(HALF, bits=bits) <= high
    assert high < 1.5 * low
