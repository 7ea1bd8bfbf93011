"""What the process that assigns a circuit's wires has left of them once it has answered, and that it ends with its user."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from rag_audit.proofs.backends.groth16 import generator
from rag_audit.proofs.backends.groth16.circuit import compile_circuit, compute_witness
from tests.circuits.sampled_case import EXACT, sampled_case
from tests.scan.left import counted, integer, montgomery

pytestmark = [
    pytest.mark.circuits,
    pytest.mark.full,
    pytest.mark.skipif(sys.platform != "linux", reason="reads another process's memory under /proc"),
]

MARK = b"Full witnesses of a compiled circuit"
"""Of the generator's own source, which V8 keeps."""


def test_no_wire_is_left_where_wires_are_assigned() -> None:
    case = sampled_case(EXACT, 1)
    inputs = case.job().inputs()
    witness = compute_witness(compile_circuit(EXACT), inputs)
    values = [int.from_bytes(witness[at : at + 32], "little") for at in range(76, len(witness), 32)]
    given = [x for value in inputs.values() for x in ([value] if isinstance(value, int) else value)]
    private = [x for x in values if x >> 240 and x not in given][::50]
    assert len(private) > 20
    secrets = {f"wire {i}": integer(x) for i, x in enumerate(private)}
    secrets |= {f"wire {i} in the generator": montgomery(x) for i, x in enumerate(private)}
    secrets |= {f"input {i}": montgomery(x) for i, x in enumerate(given) if x >> 240}
    [process] = [kept._process for key, kept in generator._kept.items() if key[0] == os.getpid()][-1:]
    assert counted(process.pid, secrets, mark=MARK) == {}


CHILD = """
import sys
from rag_audit.proofs.backends.groth16 import generator
from rag_audit.proofs.backends.groth16.circuit import compile_circuit, compute_witness
from tests.circuits.sampled_case import EXACT, sampled_case
compute_witness(compile_circuit(EXACT), sampled_case(EXACT, 1).job().inputs())
[kept] = generator._kept.values()
print(kept._process.pid, flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("how", ["ends", "is killed"])
def test_that_process_ends_when_the_prover_s(how: str) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", CHILD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        pid = int(child.stdout.readline())
        assert b"witness.cjs" in Path(f"/proc/{pid}/cmdline").read_bytes()
        if how == "is killed":
            child.kill()
        child.communicate()
    for _ in range(50):
        line = Path(f"/proc/{pid}/cmdline")
        if not line.exists() or b"witness.cjs" not in line.read_bytes():
            return
        time.sleep(0.2)
    raise AssertionError("the generator goes on without its prover")
