"""Coalition proofs of the scan argument: `python -m bench.coalition [--records N] [--tau T] [--json]`.

The window has honest accounts, and ten accounts that share a probe. The script measures making and verifying the
coalition proof: seconds, cpu_seconds (all threads; compare this figure while other jobs run) and peak_bytes of the
process. It first makes a small proof, which makes the generators and tables. Target at 3,000 records of 256 components
on two cores: 20 s, 200 KB, and 0.2 s to verify.
"""

from __future__ import annotations

import base64
from typing import Any

import numpy as np

from bench.common import Cost, by_figure, emit, measured, parsed, parser
from rag_audit import _native as native
from rag_audit.proofs.backends.scan.coalition import SYSTEM
from rag_audit.proofs.statements.coalition import CoalitionStatement
from rag_audit.proofs.statements.private import CoalitionPrivate
from rag_audit.relation.field import to_bytes
from rag_audit.relation.tags import TAG_VECTOR
from rag_audit.relation.vectors import pack_nibbles

DIMENSION, SCALE, THETA, TENANTS, COALITION = 256, 0.22, (4, 5), 3, 10


def commitment(salt: int, row: list[int]) -> int:
    """Compute cq with the native hash."""
    elements = b"".join(map(to_bytes, [salt, *pack_nibbles(row)]))
    return int.from_bytes(native.poseidon_hash_list(TAG_VECTOR, elements), "big")


def window(records: int, accounts: int, tau: int) -> tuple[CoalitionStatement, CoalitionPrivate]:
    """Make vectors uniform on the sphere, quantised as embedders do; the first ten accounts share one vector."""
    rng = np.random.default_rng(1)
    unit = rng.standard_normal((records, DIMENSION))
    askers = np.arange(records) % accounts
    coalition = min(COALITION, accounts)
    unit[askers < coalition] = unit[0]
    unit /= np.linalg.norm(unit, axis=1, keepdims=True)
    rows = np.clip(np.rint(unit * 7 / SCALE), -7, 7).astype(np.int8)
    salts = [(1 << 250) + i for i in range(records)]
    statement = CoalitionStatement(
        ctx=1,
        cq=tuple(commitment(salt, row) for salt, row in zip(salts, rows.tolist(), strict=True)),
        account=tuple(askers.tolist()),
        tenant=tuple(a % TENANTS for a in range(accounts)),
        first=tuple(max(0, j - tau) if tau else 0 for j in range(records)),
        theta=THETA,
        c=coalition,
        c_tenant=-(-coalition // TENANTS),
        dimension=DIMENSION,
        capacity=records,
    )
    labels = tuple(0 if a < coalition else a for a in range(accounts))
    return statement, CoalitionPrivate(rows.tobytes(), salts, labels)


def main() -> None:
    """Measure and print."""
    options = parser(__doc__)
    options.add_argument("--records", type=int, default=3000)
    options.add_argument("--accounts", type=int, default=300)
    options.add_argument("--tau", type=int, default=0, help="query positions; 0: the whole window")
    args = parsed(options)
    warm, secret = window(20, 10, 0)
    SYSTEM.steps.verify(warm, SYSTEM.prove(warm, secret), key=None)

    statement, secret = window(args.records, args.accounts, args.tau)
    costs: dict[str, Cost] = {}
    costs["certify"], certificate = measured(lambda: SYSTEM.prove(statement, secret))
    costs["verify"], _ = measured(lambda: SYSTEM.steps.verify(statement, certificate, key=None))
    runs = [base64.b64decode(run) for run in (certificate["records"], *certificate["pairs"])]
    figures: dict[str, Any] = {
        "records": args.records,
        "accounts": args.accounts,
        "tau": args.tau,
        "pairs": sum(j - first for j, first in enumerate(statement.first)),
        "runs": len(runs),
        **by_figure(costs),
        "bytes": sum(map(len, runs)),
    }
    emit(figures, as_json=args.json)


if __name__ == "__main__":
    main()
