"""The sizes of the smallest circuits about coins. A constraint that is taken away leaves one constraint fewer or one
wire more, whatever else it does: no check of these sources goes unnoticed."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from rag_audit.proofs.backends.groth16.circuit import compile_circuit
from rag_audit.proofs.backends.groth16.instance import Instance
from tests.circuits.sample_column_case import TINY as KEPT
from tests.circuits.sampled_case import EXACT, NOISY, SAMPLED

pytestmark = pytest.mark.circuits


@pytest.mark.parametrize(
    "instance, constraints, wires",
    [
        (KEPT, 3148, 3145),
        (NOISY, 5983, 5964),
        (SAMPLED, 3276, 3266),
        (EXACT, 2693, 2682),
        (replace(SAMPLED, queries=2), 4891, 4867),
    ],
    ids=lambda x: x.name if hasattr(x, "name") else None,
)
def test_no_constraint_is_missing(instance: Instance, constraints: int, wires: int) -> None:
    folder = compile_circuit(instance).folder
    result = json.loads((folder / "manifest.json").read_text())
    assert (result["constraints"], result["wires"]) == (constraints, wires)
