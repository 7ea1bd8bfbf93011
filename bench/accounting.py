"""Time and memory of the accountant: `python -m bench.accounting [--json]`.

Each policy's bounds are computed in a separate process. No result is cached, and the memory figure covers one policy
only. Targets: 100 ms for a typical policy, under 5 s and 1 GiB for any with up to 10^7 queries.
"""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

from bench.common import by_figure, emit, measured, parser
from rag_audit.mechanisms.accounting import Mechanism, audit_bounds, membership
from rag_audit.mechanisms.accounting.calibration import calibrate

POLICIES: list[tuple[str, tuple[int, ...], int, int, int]] = [
    # name, gains, lattice, n, k; membership composes 2n k queries, and the accountant accepts at most 2^24
    ("one query", (1, 8), 128, 1, 1),
    ("typical", (1, 8, 64), 32, 200, 10),
    ("the paper's own noise", (1, 8, 64, 512, 3547), 16, 10_000, 50),
    ("narrow noise, 8 million queries", (1, 8), 16, 80_000, 100),
    ("five gains, 8 million queries", (1, 8, 64, 512, 4096), 64, 80_000, 100),
    ("six gains, 8 million queries", (1, 8, 64, 512, 4096, 32768), 64, 80_000, 100),
]


def measure(policy: tuple[str, tuple[int, ...], int, int, int]) -> dict[str, Any]:
    """Measure a policy's bounds and its membership figures from a cold start, including the imports' memory."""
    name, gains, lattice, n, k = policy
    mechanism = Mechanism(gains, lattice)
    costs = {}
    costs["bounds"], bounds = measured(
        lambda: audit_bounds(mechanism, n=n, eps_acc=1, delta_acc="1e-9", k=k, delta="1e-5")
    )
    costs["membership"], _ = measured(lambda: membership(mechanism, n * k))
    return {
        "policy": name,
        "queries": n * k,
        "eps_audit": bounds.eps_audit,
        "eps_gaussian": bounds.comparisons["exact_gaussian"],
        **by_figure(costs),
    }


def calibration_seconds() -> float:
    """Finding the least noise for eps 2 at k = 10, n = 200."""
    cost, _ = measured(lambda: calibrate("exact", n=200, k=10, eps_joint=2, delta="2e-5", delta_acc="1e-6"))
    return cost.seconds


def main() -> None:
    """Measure and print."""
    options = parser(__doc__)
    options.add_argument("--policies", type=int, default=len(POLICIES), help="only the first so many")
    args = options.parse_args()
    context = get_context("spawn")
    with ProcessPoolExecutor(max_workers=1, max_tasks_per_child=1, mp_context=context) as pool:
        figures = {
            "policies": list(pool.map(measure, POLICIES[: args.policies])),
            "seconds": {"calibrate": pool.submit(calibration_seconds).result()},
        }
    emit(figures, as_json=args.json)


if __name__ == "__main__":
    main()
