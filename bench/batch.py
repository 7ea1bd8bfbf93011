"""Peak memory of verifying many records: `python -m bench.batch [--documents N] [--records 64,640,2048] [--json]`.

The script verifies one proof many times, in place of the proofs of many records of one tenant. The verifier decodes the
proofs in chunks and has one chunk in memory at a time. The script prints for each number of records: seconds,
cpu_seconds (all threads) and peak_bytes (the whole process). docs/scan/verification.md lists the measured figures.
"""

from __future__ import annotations

from bench.common import Cost, by_figure, emit, measured, parsed, parser
from bench.proofs import failures, job, parts
from bench.scan import BEACON, BLINDING_KEY, HI, LATTICE, LO, S0, S1, make_case
from rag_audit.proofs.backends.scan.column import SlotProofJob
from rag_audit.proofs.backends.scan.key import ScanKey, commit_index
from rag_audit.proofs.backends.scan.retrieve import RecordInputs
from rag_audit.proofs.batch import Lazy
from rag_audit.proofs.statements.retrieve import Statement


def tenant(documents: int, dimension: int, gains: tuple[int, ...]) -> tuple[ScanKey, RecordInputs, bytes]:
    """Make a tenant, the inputs of one of its records, and the noise of the record's slot."""
    case = make_case(documents, dimension, gains, 5)
    rows, vector, scores, noise, positions = case
    points = commit_index(rows.tobytes(), dimension, documents, BLINDING_KEY)
    key = ScanKey(points, dimension, documents, bytes(32), gains, 5, LO, HI, LATTICE)
    statement = case.statement(key.c_idx)
    noise_proof = SlotProofJob(key, statement.c_seed, BEACON, 1, S0, S1)
    record = RecordInputs(
        key, statement, noise_proof, noise, scores, vector.tobytes(), 7, 8, positions, BLINDING_KEY
    )
    return key, record, noise


def proved(
    documents: int, dimension: int, gains: tuple[int, ...]
) -> tuple[ScanKey, tuple[bytes, ...], Statement]:
    """Make a tenant, and one of its records with its proof."""
    key, record, _ = tenant(documents, dimension, gains)
    return key, parts(key, job(record).run()), record.statement


def main() -> None:
    """Measure and print."""
    options = parser(__doc__)
    options.add_argument("--documents", type=int, default=10_000)
    options.add_argument("--dimension", type=int, default=256)
    options.add_argument("--gains", default="1", help="comma-separated")
    options.add_argument("--records", default="64,640,2048", help="comma-separated")
    args = parsed(options)
    gains = tuple(int(g) for g in args.gains.split(","))
    key, wire, statement = proved(args.documents, args.dimension, gains)
    costs: dict[str, Cost] = {}
    for text in args.records.split(","):
        count = int(text)
        # Each record gets a copy of the proof on request, because the reader of a file decodes its proofs on request.
        proofs = Lazy(count, lambda _: tuple(bytes(bytearray(part)) for part in wire))
        statements = Lazy(count, lambda _: statement)
        costs[text], bad = measured(lambda p=proofs, s=statements: failures(key, p, s))  # type: ignore[misc]
        if bad:
            raise SystemExit("a proof that was just made does not verify")
    head = {
        "documents": args.documents,
        "dimension": args.dimension,
        "gains": list(gains),
        "bytes": sum(map(len, wire)),
    }
    emit({**head, **by_figure(costs)}, as_json=args.json)


if __name__ == "__main__":
    main()
