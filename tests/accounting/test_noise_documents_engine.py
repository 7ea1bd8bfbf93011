"""Noise and a document of three positions, through the document table, the noise and the selection of the engine.

A test that observes one list in two worlds, with the document and without, exceeds the epsilon of one position, and
stays below the epsilon of three positions (docs/accounting.md, "Documents").
"""

from __future__ import annotations

import math
from random import Random

import numpy as np
from scipy.stats import beta

from rag_audit.commit.document_table import place_documents
from rag_audit.mechanisms import accounting
from rag_audit.mechanisms.base import TableShape
from rag_audit.relation.field import MODULUS
from rag_audit.relation.scores import ScoreWindow
from rag_audit.retrieval.engine import TenantIndex, draw_noise, select

CAPACITY, POSITIONS, LISTED, TRIALS = 16, 3, 4, 8000
GAINS, WINDOW = (1,), ScoreWindow(0, 16, 16)
DELTA = 0.05
QUERY = np.array([4, 0], np.int8)


def listed_whole(number: int, *, present: bool) -> bool:
    """Whether one list contains all positions of the document, or the same positions without a document."""
    rng = Random(number)
    place = rng.sample(range(CAPACITY), POSITIONS)
    table = place_documents(TableShape(4, POSITIONS, None), {"X": POSITIONS}).table
    table = table.with_bits(np.ones(table.drawn, np.int8))
    rows = np.zeros((CAPACITY, 2), np.int8)
    if present:
        rows[place] = 4
    kept = table.sampled_positions(table.row_of_position(["X"] * POSITIONS, place, CAPACITY))
    noise = draw_noise(rng.randrange(MODULUS), CAPACITY, GAINS)
    index = TenantIndex(rows, tuple(range(CAPACITY)))
    return set(place) <= set(select(index, QUERY, noise, WINDOW, LISTED, kept))


def test_epsilon_of_a_document_covers_a_list_and_epsilon_of_a_position_does_not() -> None:
    with_it, without = (
        sum(listed_whole(2 * number + present, present=present) for number in range(TRIALS))
        for present in (True, False)
    )
    low = float(beta.ppf(0.005, with_it, TRIALS - with_it + 1))
    high = float(beta.ppf(0.995, without + 1, TRIALS - without))
    shown = math.log((low - DELTA) / high)
    single = accounting.Mechanism(GAINS, WINDOW.lattice)
    of_position, of_document = (accounting.eps_at(single, size, DELTA) for size in (1, POSITIONS))
    assert of_position < shown <= of_document
