"""Groth16 compared with the scan argument at common sizes: `python -m bench.beside [--documents 64 256] [--json]`.

Both systems prove one record of the same rows, vector and policy (d = 256, K = 5) in one run, for each size and for
each list of gains. The first use of a size compiles its circuit and makes its key, which is not measured: at N = 256
and three gains that is a set-up of 2^19 rows and takes minutes. The first witness makes or reads the circuit's plan and
is not counted.

`ratio` is Groth16's figure divided by the scan argument's figure, for:

- the whole proof;
- the part that remains to be proved after the query arrives (the noise proof is precomputed);
- one verification;
- the bytes.
"""

from __future__ import annotations

from typing import Any

from bench import scan
from bench.common import Cost, by_figure, emit, measured, parser
from rag_audit import _native as native
from rag_audit.proofs.backends.groth16.circuit import assign, compile_circuit
from rag_audit.proofs.backends.groth16.instance import PUBLIC_INPUTS, RetrieveInstance
from rag_audit.proofs.backends.groth16.job import RecordInputs, RecordsJob
from rag_audit.proofs.backends.groth16.keys import proving_key
from rag_audit.proofs.statements.retrieve import Statement
from rag_audit.relation.commitments import (
    index_commitment,
    seed_commitment,
    topk_commitment,
    vector_commitment,
)

DIMENSION, LISTED = 256, 5
SALT, SALT_C, SALT_K = 6, 7, 8


def record(documents: int, gains: tuple[int, ...]) -> RecordInputs:
    """Make a record from fixed numbers."""
    rows, vector, _, _, positions = scan.make_case(documents, DIMENSION, gains, LISTED)
    instance = RetrieveInstance(documents, DIMENSION, LISTED, gains, scan.LO, scan.HI, scan.LATTICE)
    statement = Statement(
        ctx=5,
        c_seed=seed_commitment(scan.S0, scan.S1),
        beacon=scan.BEACON,
        slot=1,
        c_idx=index_commitment(SALT, rows.tolist()),
        cq=vector_commitment(SALT_C, vector.tolist()),
        htopk=topk_commitment(SALT_K, positions),
    )
    return RecordInputs(
        instance=instance,
        statement=statement,
        s0=scan.S0,
        s1=scan.S1,
        index_salt=SALT,
        rows=rows.tobytes(),
        vector=vector.tobytes(),
        salt_c=SALT_C,
        salt_k=SALT_K,
        positions=positions,
    )


def groth16(documents: int, gains: tuple[int, ...]) -> dict[str, Any]:
    """Measure witness, proof and verification of one record."""
    one = record(documents, gains)
    statement, circuit, keys = one.statement, compile_circuit(one.instance), proving_key(one.instance)
    inputs = RecordsJob(one.instance, (one,)).inputs()
    assign(circuit, inputs)
    costs: dict[str, Cost] = {}
    costs["witness"], witness = measured(lambda: assign(circuit, inputs))
    costs["prove"], proof = measured(lambda: native.groth16_prove(keys.zkey, witness, circuit.r1cs))
    vk = native.groth16_verification_key(str(keys.zkey))
    public = statement.encode(PUBLIC_INPUTS)
    costs["verify"], bad = measured(lambda: native.groth16_verify_batch(vk, [proof], [public]))
    if bad:
        raise SystemExit("a proof that was just made does not verify")
    return {"constraints": circuit.constraints, **by_figure(costs), "bytes": {"proofs": len(proof)}}


def beside(documents: int, gains: tuple[int, ...]) -> dict[str, Any]:
    """Measure both systems at one size, and compute the ratios."""
    ours = scan.measure(documents, DIMENSION, gains, LISTED, 1)
    theirs = groth16(documents, gains)
    a, b = theirs["seconds"], ours["seconds"]
    proving = a["witness"] + a["prove"]
    return {
        "documents": documents,
        "gains": list(gains),
        "groth16": theirs,
        "scan": ours,
        "ratio": {
            "prove": proving / (b["noise_proof"] + b["query_proof"]),
            "prove_after_the_query": proving / b["query_proof"],
            "verify": a["verify"] / b["verify"],
            "bytes": theirs["bytes"]["proofs"] / ours["bytes"]["proofs"],
        },
    }


def main() -> None:
    """Measure and print."""
    options = parser(__doc__)
    options.add_argument("--documents", type=int, nargs="+", default=[64, 256])
    options.add_argument("--gains", nargs="+", default=["1", "1,8,64"], help="comma-separated, each list")
    options.add_argument("--threads", type=int, default=native.threads())
    args = options.parse_args()
    native.set_threads(args.threads)
    lists = [tuple(int(g) for g in text.split(",")) for text in args.gains]
    scan.measure(min(args.documents), DIMENSION, lists[0], LISTED, 1)
    emit({"sizes": [beside(n, gains) for n in args.documents for gains in lists]}, as_json=args.json)


if __name__ == "__main__":
    main()
