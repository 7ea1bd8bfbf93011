"""Witnesses of `retrieve` by plan and by circom's own code, and a proof of each: `python -m bench.assignment [--json]`.

For each size, list of gains and number of records in a proof, the script makes a witness in both ways, alternating, and
a proof after each pair. Processor seconds count all threads, including those of the process that runs circom's code.
The figures are medians of the rounds; the first round is not counted. `share` is the part that the witness has in the
total of witness and proof. The first use of a size compiles its circuit and makes its key and plan; the script does not
measure this preparation.
"""

from __future__ import annotations

import os
import statistics
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from bench.beside import record
from bench.common import emit, measured, parser
from rag_audit import _native as native
from rag_audit.proofs.backends.groth16 import generator
from rag_audit.proofs.backends.groth16.circuit import assign, compile_circuit, compute_witness
from rag_audit.proofs.backends.groth16.job import RecordsJob
from rag_audit.proofs.backends.groth16.keys import proving_key

TICKS = os.sysconf("SC_CLK_TCK")


def generators_seconds() -> float:
    """Return the processor seconds that the processes of circom's code have used so far."""
    total = 0.0
    for kept in generator._kept.values():
        fields = Path(f"/proc/{kept._process.pid}/stat").read_text().rpartition(")")[2].split()
        total += (int(fields[11]) + int(fields[12])) / TICKS
    return total


def whole(work: Callable[[], object]) -> tuple[float, float]:
    """Return wall-clock seconds, and the seconds of all processors including circom's process."""
    before = generators_seconds()
    cost, _ = measured(work)
    return cost.seconds, cost.cpu_seconds + generators_seconds() - before


def measure(documents: int, gains: tuple[int, ...], queries: int, rounds: int) -> dict[str, Any]:
    """Return the medians over the rounds."""
    one = record(documents, gains)
    instance = replace(one.instance, queries=queries)
    circuit, keys = compile_circuit(instance), proving_key(instance)
    inputs = RecordsJob(instance, (one,)).inputs()
    result: dict[str, list[tuple[float, float]]] = {"plan": [], "generator": [], "prove": []}
    for _ in range(rounds + 1):
        result["plan"].append(whole(lambda: assign(circuit, inputs)))
        result["generator"].append(whole(lambda: compute_witness(circuit, inputs)))
        prove = partial(native.groth16_prove, keys.zkey, assign(circuit, inputs), circuit.r1cs)
        result["prove"].append(whole(prove))
    clock, cpu = (
        {step: statistics.median(cost[k] for cost in costs[1:]) for step, costs in result.items()}
        for k in (0, 1)
    )
    return {
        "constraints": circuit.constraints,
        "seconds": clock,
        "cpu_seconds": cpu,
        "share": {step: cpu[step] / (cpu[step] + cpu["prove"]) for step in ("plan", "generator")},
    }


def main() -> None:
    """Measure and print."""
    options = parser(__doc__)
    options.add_argument("--documents", type=int, nargs="+", default=[64], help="N")
    options.add_argument("--gains", nargs="+", default=["1,8,64"], help="gains of each list, by commas")
    options.add_argument("--queries", type=int, nargs="+", default=[1], help="records of a proof")
    options.add_argument("--rounds", type=int, default=5, help="rounds that count")
    args = options.parse_args()
    figures = {
        f"{documents}-{gains}-{queries}": measure(
            documents, tuple(map(int, gains.split(","))), queries, args.rounds
        )
        for documents in args.documents
        for gains in args.gains
        for queries in args.queries
    }
    emit(figures, as_json=args.json)


if __name__ == "__main__":
    main()
