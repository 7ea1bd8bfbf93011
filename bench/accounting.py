"""Time and memory of the accountant: `python -m bench.accounting [--json]`.

Each policy's bounds are computed in a process of its own, so that nothing is cached and the memory is that
policy's alone. Targets: 100 ms for a typical policy, under 5 s and 1 GiB for any with up to 10^7 queries.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

from rag_audit.accounting import Mechanism, audit_bounds, calibrate, membership

POLICIES: list[tuple[str, tuple[int, ...], int, int, int]] = [
    # name, gains, lattice, n, k
    ("one query", (1, 8), 128, 1, 1),
    ("typical", (1, 8, 64), 32, 200, 10),
    ("the paper's own noise", (1, 8, 64, 512, 3547), 16, 10_000, 50),
    ("narrow noise, 10^7 queries", (1, 8), 16, 100_000, 100),
    ("five gains, 10^7 queries", (1, 8, 64, 512, 4096), 64, 100_000, 100),
    ("six gains, 10^7 queries", (1, 8, 64, 512, 4096, 32768), 64, 100_000, 100),
]


def measure(policy: tuple[str, tuple[int, ...], int, int, int]) -> dict[str, Any]:
    """Seconds and resident MiB of a policy's bounds, and of its membership figures, from a cold start."""
    name, gains, lattice, n, k = policy
    mechanism = Mechanism(gains, lattice)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.perf_counter()
    bounds = audit_bounds(mechanism, n=n, eps_acc=1, delta_acc="1e-9", k=k, delta="1e-5")
    bounded = time.perf_counter()
    membership(mechanism, n * k)
    done = time.perf_counter()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {
        "policy": name,
        "queries": n * k,
        "eps_audit": bounds.eps_audit,
        "eps_gaussian": bounds.comparisons["exact_gaussian"],
        "bounds_s": round(bounded - start, 3),
        "membership_s": round(done - bounded, 3),
        "peak_mib": peak // 1024,
        "of_which_imports_mib": before // 1024,
    }


def calibration_seconds() -> float:
    """Finding the least noise for eps 2 at k = 10, n = 200."""
    start = time.perf_counter()
    calibrate("exact", n=200, k=10, eps_joint=2, delta="2e-5", delta_acc="1e-6")
    return round(time.perf_counter() - start, 3)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output")
    arguments = parser.parse_args()
    context = get_context("spawn")
    with ProcessPoolExecutor(max_workers=1, max_tasks_per_child=1, mp_context=context) as pool:
        policies = list(pool.map(measure, POLICIES))
        result = {
            "cores": os.cpu_count(),
            "load": os.getloadavg()[0],
            "policies": policies,
            "calibrate_s": pool.submit(calibration_seconds).result(),
        }
    if arguments.json:
        print(json.dumps(result))
        return
    for row in policies:
        print(
            f"{row['policy']:28} {row['queries']:>10,} queries  eps {row['eps_audit']:<10g}"
            f" {row['bounds_s']:6.3f} s  membership {row['membership_s']:6.3f} s  {row['peak_mib']:4} MiB"
        )
    print(f"exact calibration {result['calibrate_s']} s")


if __name__ == "__main__":
    main()
