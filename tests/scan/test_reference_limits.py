"""Public values beyond their limits, where the second verifier decides."""

from __future__ import annotations

import dataclasses
from itertools import product
from typing import Any

import pytest

from rag_audit.errors import EncodingError, PolicyError
from rag_audit.proofs.backends.reference import limits
from rag_audit.proofs.backends.reference.engine import records
from rag_audit.proofs.backends.scan.key import ScanKey, commit_index
from rag_audit.relation.noise import check_gains


@pytest.fixture(scope="module")
def key() -> ScanKey:
    points = commit_index(bytes(20 * 5), 5, 20, bytes(32))
    return ScanKey(points, 5, 20, bytes(32), (1, 8), 3, lo=5, hi=90, lattice=64)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"listed": 0}, "listed"),
        ({"listed": 21}, "listed"),
        ({"gains": (2,)}, "gains[0]"),
        ({"gains": (1, 9)}, "gains[1]"),
        ({"lattice": 3}, "lattice"),
        ({"lo": 90}, "window"),
        ({"hi": 64 * 5 + 1}, "hi"),
    ],
)
def test_a_policys_constants_are_refused_by_name(key: ScanKey, change: dict[str, Any], field: str) -> None:
    records(key)
    with pytest.raises(EncodingError) as refusal:
        records(dataclasses.replace(key, **change))
    assert refusal.value.field == field


def test_gains_are_those_of_the_relation() -> None:
    for count in (0, 1, 2, 3):
        for gains in product(range(10), repeat=count):
            try:
                check_gains(gains)
            except PolicyError:
                assert not limits.noised(gains)
            else:
                assert limits.noised(gains)
    assert limits.noised([1, 8, 64, 2, 16, 1])
    assert not limits.noised([1] * 7)
