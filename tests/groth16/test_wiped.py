"""What a Groth16 proof leaves in the memory of its process, and of the one that assigns wires."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from systems import random_system

from rag_audit import _native
from rag_audit.relation.field import MODULUS
from tests.scan.left import integer, left_behind, montgomery

pytestmark = [
    pytest.mark.full,
    pytest.mark.skipif(sys.platform != "linux", reason="reads another process's memory under /proc"),
]


@pytest.mark.parametrize("constraints", [40, 1500])
def test_a_proof_leaves_no_private_value_in_memory(tmp_path: Path, constraints: int) -> None:
    """Values of wires as integers and as the core computes with them, and the rows of the constraints' products."""
    system = random_system(constraints, seed=5)
    r1cs, zkey = tmp_path / "c.r1cs", tmp_path / "k.zkey"
    r1cs.write_bytes(system.r1cs())
    _native.groth16_setup_one_party(r1cs, zkey)
    private = [x for x in set(system.values[1 + system.public :]) if x >> 240]
    rows = [x for a, b, _ in system.rows for x in map(system.dot, (a, b)) if x >> 240]
    rows = [x for x in rows if x not in system.inputs() and -x % MODULUS not in system.inputs()]
    # All of a small system, and some of a large one, since looking for them takes longer than the proof.
    private, rows = (x[:: 1 + len(x) // 60] for x in (private, rows))
    secrets = {f"value {i}": integer(x) for i, x in enumerate(private)}
    secrets |= {f"value {i} in the core": montgomery(x) for i, x in enumerate(private)}
    secrets |= {f"negative of value {i}": integer(-x) for i, x in enumerate(private)}
    secrets |= {f"row {i}": montgomery(x) for i, x in enumerate(rows)}
    assert min(len(private), len(rows)) > 15
    script = f"_native.groth16_prove({str(zkey)!r}, take(), {str(r1cs)!r})"
    assert left_behind(script, [system.wtns()], secrets) == {}
