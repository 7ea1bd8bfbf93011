"""The allowed public values of a statement (docs/scan/transcript.md)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from rag_audit._internal.errors import EncodingError
from rag_audit.proofs.backends.reference.extensions import log2

MAX_POSITIONS, MAX_DIMENSION, MAX_GAINS, MAX_RATIO, MAX_LISTED = 1 << 24, 4096, 6, 8, 1024
MAX_RECORDS, MAX_ENTRIES_BITS = 64, 27


def require(**held: bool) -> None:
    """:raises EncodingError: a rule is violated; the error has the public value's name"""
    for name, rule in held.items():
        if not rule:
            raise EncodingError("a public value of the statement is out of range", field=name)


def positions(capacity: int) -> bool:
    return 1 <= capacity <= MAX_POSITIONS


def components(dimension: int) -> bool:
    return 1 <= dimension <= MAX_DIMENSION


def noised(gains: Sequence[int]) -> bool:
    """From one gain to six, the first 1, and each of the others from 1 to eight times the one before."""
    steps = all(1 <= b <= MAX_RATIO * a for a, b in pairwise(gains))
    return 1 <= len(gains) <= MAX_GAINS and gains[0] == 1 and steps


def listed(maximum: int, capacity: int) -> bool:
    return 1 <= maximum <= min(MAX_LISTED, capacity)


def batch(records: int, capacity: int, gains: Sequence[int], *, sampled: bool = False) -> bool:
    """One record of a sampled tenant; otherwise up to 64 records, in a proof no larger than the largest record's."""
    entries = 1 << log2(capacity * max(1, len(gains)))
    maximum = 1 if sampled else max(1, min(MAX_RECORDS, (1 << MAX_ENTRIES_BITS) // entries))
    return 1 <= records <= maximum
