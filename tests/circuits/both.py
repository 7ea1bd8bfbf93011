"""Comparison of two witness generators: for every witness of a test, the circuit's plan must assign the same bytes as
circom's own code, and must refuse the same inputs. The fixture applies to all tests of a folder with a conftest.py that
imports it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rag_audit.errors import WitnessError
from rag_audit.proofs.backends.groth16 import circuit as circuits
from rag_audit.proofs.backends.groth16.circuit import Circuit, by_plan, plan


def by_plan_of(folder: Path, inputs: bytes) -> bytes | None:
    """The witness by a circuit's plan, for inputs as the generator is asked for them; None if they are refused."""
    values = {
        name: [int(x) for x in value] if isinstance(value, list) else int(value)
        for name, value in json.loads(inputs).items()
    }
    result = by_plan(Circuit(folder), values)
    return None if result is None else result.wtns()


@pytest.fixture(autouse=True)
def both(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compare every answer of the generator with the plan's, where there is one."""
    generate = circuits.generate

    def compared(folder: Path, inputs: bytes) -> bytes:
        try:
            result = generate(folder, inputs)
        except WitnessError:
            if plan(Circuit(folder)) is not None:
                assert by_plan_of(folder, inputs) is None, "the plan assigns what circom's code refuses"
            raise
        if plan(Circuit(folder)) is not None:
            created = by_plan_of(folder, inputs)
            assert created is not None, "the plan refuses what circom's code assigns"
            assert created == result, "the plan assigns other values than circom's code"
        return result

    monkeypatch.setattr(circuits, "generate", compared)
