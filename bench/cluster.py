"""Proving on a local Dask cluster: `python -m bench.cluster [--documents N] [--records R] [--workers W] [--json]`.

A window of synthetic texts answers R queries. Then W workers of one thread each prove its records. The jobs are sealed,
as for workers on other machines. The processor time is the sum over all workers and the provider's process while the
command runs, after each worker has loaded the package and made a proof of each kind.

Idle Dask processes also use processor time, in proportion to the wall-clock time and therefore to the machine's other
load. The script measures this idle time first, and `of_jobs` excludes it.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path
from random import Random

from bench.common import emit, measured, parser
from bench.service import opened, text
from rag_audit._internal.canonical import parse_json
from rag_audit.models.publication import Publication
from rag_audit.proofs.executors import KEY_VARIABLE, SealedExecutor, new_worker_key, worker_key
from rag_audit.retrieval.embedders import get_embedder

ACCOUNTS = 4
IDLE_S = 5.0


def process_seconds() -> float:
    """Return the processor time that this process has used, all threads."""
    return time.process_time()


def main() -> int:
    """Measure and print."""
    options = parser(__doc__)
    options.add_argument("--documents", type=int, default=30_000)
    options.add_argument("--records", type=int, default=8)
    options.add_argument("--workers", type=int, default=2)
    options.add_argument("--gains", default="1,8,64")
    options.add_argument("--batch", type=int, help="records in one proof")
    args = options.parse_args()
    gains = tuple(int(gain) for gain in args.gains.split(","))
    from distributed import Client, LocalCluster

    with tempfile.TemporaryDirectory(dir=".", prefix=".bench-") as folder:
        root, rng, embedder = Path(folder), Random(2), get_embedder()
        new_worker_key(root / "worker.key")
        os.environ[KEY_VARIABLE] = str(root / "worker.key")
        warm = 2 * args.workers * (args.batch or 1)
        requested = args.records + warm
        window, key, asking = opened(
            root, args.documents, ACCOUNTS, -(-requested // ACCOUNTS) + 1, gains, lattice=128, k_max=ACCOUNTS
        )
        with (
            window,
            LocalCluster(
                n_workers=args.workers, threads_per_worker=1, processes=True, dashboard_address=None
            ) as cluster,
            Client(cluster) as client,
        ):
            publication = Publication.load(window.directory / "public")
            for number in range(requested):
                account = asking[number % ACCOUNTS]
                request = account.request(publication, text(rng), embedder=embedder)
                reply = window.handle(parse_json(request.canonical(), source="request")).canonical()
                account.accept(
                    publication, request, parse_json(reply, source="reply"), key.verifier, embedder=embedder
                )
            window.noise_pool.close()
            executor = SealedExecutor(client.get_executor(pure=False), worker_key())
            seqs = [record.seq for record in window.records]
            first, _ = measured(lambda: window.prove(seqs[:warm], batch=args.batch, executor=executor))

            def used() -> float:
                return sum(client.run(process_seconds).values())

            before = used()
            nothing, _ = measured(lambda: time.sleep(IDLE_S))
            idle = (used() - before + nothing.cpu_seconds) / nothing.seconds
            before = used()
            cost, result = measured(lambda: window.prove(seqs[warm:], batch=args.batch, executor=executor))
            workers = used() - before
        if result < args.records:
            raise SystemExit(f"{result} of {args.records} records were proved")
    figures = {
        "documents": args.documents,
        "gains": list(gains),
        "records": args.records,
        "workers": args.workers,
        "batch": args.batch or 1,
        "warming_seconds": first.seconds,
        "prove": {
            "seconds": cost.seconds,
            "cpu_seconds": workers + cost.cpu_seconds,
            "of_provider": cost.cpu_seconds,
            "idle_per_second": idle,
            "of_jobs": workers + cost.cpu_seconds - idle * cost.seconds,
        },
    }
    emit(figures, as_json=args.json)
    return 0


if __name__ == "__main__":
    sys.exit(main())
