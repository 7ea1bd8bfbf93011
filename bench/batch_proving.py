"""Several records in one proof, and in single proofs: `python -m bench.batch_proving [--documents N] [--count Q]
[--json]`.

The script measures proofs of one record and one proof of Q records: bytes a record, processor seconds a record to prove
and to verify in a batch (all threads), and the peak memory of the whole process. It makes the proofs of single records
last. docs/scan/batch.md lists the measured figures.
"""

from __future__ import annotations

import dataclasses

from bench.batch import tenant
from bench.common import emit, measured, parsed, parser
from bench.proofs import failures, job, parts
from rag_audit import _native as native
from rag_audit.proofs.backends.scan.column import SlotProofJob
from rag_audit.proofs.backends.scan.retrieve import FORM, RecordsJob


def main() -> None:
    """Measure and print."""
    options = parser(__doc__)
    options.add_argument("--documents", type=int, default=100_000)
    options.add_argument("--dimension", type=int, default=256)
    options.add_argument("--gains", default="1,8,64", help="comma-separated")
    options.add_argument("--count", type=int, default=16, help="Q")
    options.add_argument(
        "--groups", type=int, default=4, help="proofs of Q records that are verified at once"
    )
    options.add_argument("--low-memory", action="store_true")
    args = parsed(options)
    key, single, noise = tenant(args.documents, args.dimension, tuple(int(g) for g in args.gains.split(",")))
    single = dataclasses.replace(single, low_memory=args.low_memory)
    noise_proof = single.noise_proof
    if not isinstance(noise_proof, SlotProofJob):
        raise SystemExit("bench.batch_proving measures tenants with noise")
    count, statement = args.count, single.statement
    together = RecordsJob((single,) * count, tuple(f"record {i}" for i in range(count)))
    proved_batch, batch = measured(together.run)
    peak_of_batch = proved_batch.peak_bytes
    proof = FORM.parse(batch, count, field="proof")
    if proof.parts is None:
        raise SystemExit("the first record carries the proof")

    def verify_batch() -> None:
        batch = native.ScanBatch(key.index, key.parameters)
        records = [statement.encode(("c_seed", "beacon", "slot", "ctx", "cq", "htopk"))] * count
        assert proof.parts is not None
        if batch.add([(records, *proof.parts)] * args.groups) or not batch.holds():
            raise SystemExit("a proof that was just made does not verify")

    verify_batch()  # the generators are made once
    verified_batch, _ = measured(verify_batch)
    proved_noise, result = measured(noise_proof.run)
    alone = dataclasses.replace(single, noise_proof=result, noise=noise)
    made_query, value = measured(job(alone).run)
    wire = parts(key, value)
    records = count * args.groups
    verified, bad = measured(lambda: failures(key, [wire] * records, [statement] * records))
    if bad:
        raise SystemExit("a proof that was just made does not verify")
    emit(
        {
            "documents": args.documents,
            "gains": args.gains,
            "count": count,
            "low_memory": args.low_memory,
            "bytes_alone": sum(map(len, wire)),
            "bytes_batch": sum(map(len, proof.parts)) / count,
            "prove_cpu_alone": proved_noise.cpu_seconds + made_query.cpu_seconds,
            "prove_cpu_batch": proved_batch.cpu_seconds / count,
            "verify_cpu_alone": verified.cpu_seconds / records,
            "verify_cpu_batch": verified_batch.cpu_seconds / records,
            "peak_bytes_batch": peak_of_batch,
        },
        as_json=args.json,
    )


if __name__ == "__main__":
    main()
