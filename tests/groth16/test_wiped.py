"""What a Groth16 proof leaves in the memory of its process, and of the one that assigns wires."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from systems import random_system

from rag_audit import _native
from rag_audit.proofs.backends.groth16.circuit import assign, compile_circuit, plan
from rag_audit.relation.field import MODULUS, to_bytes
from tests.circuits.sampled_case import EXACT, sampled_case
from tests.scan.left import Child, counted, integer, left_behind, montgomery

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


WITNESS = """
inputs = [(name, take()) for name in {names!r}]
made = _native.groth16_witness({plan!r}, inputs)
assert len(made) == {wires}
"""


@pytest.mark.circuits
def test_a_witness_by_a_plan_leaves_no_wire_in_memory(tmp_path: Path) -> None:
    """Neither its registers nor the witness once it is released, whether it was proved with or not. As long as somebody
    holds the witness, its wires are found."""
    case = sampled_case(EXACT, 1)
    inputs = {name: [x] if isinstance(x, int) else x for name, x in case.job().inputs().items()}
    circuit = compile_circuit(EXACT)
    path, zkey = plan(circuit), tmp_path / "k.zkey"
    assert path is not None
    result = assign(circuit, inputs)
    assert isinstance(result, _native.Groth16Witness)
    wtns = result.wtns()
    wires = [int.from_bytes(wtns[at : at + 32], "little") for at in range(76, len(wtns), 32)]
    assert len(wires) == len(result)
    public = {
        x for values in case.public().values() for x in ([values] if isinstance(values, int) else values)
    }
    given = {x for values in inputs.values() for x in values} - public
    private = [x for x in wires if x >> 240 and x not in given | public][::50]
    assert len(private) > 20
    secrets = {f"wire {i}": integer(x) for i, x in enumerate(private)}
    secrets |= {f"wire {i} in the core": montgomery(x) for i, x in enumerate(private)}
    secrets |= {f"input {i} in the core": montgomery(x) for i, x in enumerate(given) if x >> 240}
    secrets |= {f"input {i}": integer(x) for i, x in enumerate(given) if x >> 240}
    _native.groth16_setup_one_party(circuit.r1cs, zkey)
    handed = [b"".join(map(to_bytes, values)) for values in inputs.values()]
    script = WITNESS.format(names=list(inputs), plan=str(path), wires=len(wires))
    proved = f"_native.groth16_prove({str(zkey)!r}, made, {str(circuit.r1cs)!r})\n"
    assert left_behind(script + "del made", handed, secrets) == {}
    assert left_behind(script + proved + "del made", handed, secrets) == {}
    with Child(script) as child:
        child.hand(*handed)
        child.wait()
        held = counted(child.pid, secrets, tries=1)
    assert {f"wire {i}" for i in range(len(private))} <= held.keys()
