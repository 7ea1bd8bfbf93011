"""The cost of an answer in the account's own client: `python -m bench.client [--documents N] [--queries N] [--json]`.

The real server, `rag-audit provider serve --http`, runs in a separate process on loopback. Four accounts ask in this
process with the clients of the package: one question after another (`Client`), and one question of each account at a
time (`AsyncClient`). The script prints the processor time of this process and of the server for each answer, and the
number of `fsync` calls of the client. A question needs two of them before it is sent, for the request and its folder,
and two more before the account deletes the request, for the receipt and its folder: after a crash the account has
either the request, which it repeats, or the receipt.

With `--pooled` the tenant has pooled listing, and each text is a document. Each answer starts from the set of listed
documents that the answer before it leaves, so the server answers in the order of the ledger.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

from bench.common import emit, parser
from bench.http import Server
from bench.service import opened, text
from rag_audit.account.client.asynchronous import AsyncClient
from rag_audit.account.client.sync import Client
from rag_audit.cli.settings import store_settings
from rag_audit.mechanisms.base import Mechanism, TableShape
from rag_audit.mechanisms.pooled_listing import PooledListing, PoolRules
from rag_audit.models.publication import Publication
from rag_audit.retrieval.embedders import get_embedder

ACCOUNTS = 4
LEAD_MS = 20_000
"""The time between the commitments and the opening; the server's clock is the machine's."""


@contextmanager
def counted_syncs() -> Iterator[list[int]]:
    """Count the calls of `os.fsync` in this process."""
    count, before = [0], os.fsync

    def fsync(fd: int) -> None:
        count[0] += 1
        before(fd)

    os.fsync = fsync
    try:
        yield count
    finally:
        os.fsync = before


def pooled_listing(documents: int) -> Mechanism:
    """Return pooled listing over documents of up to four positions."""
    shape = TableShape(rows=documents, positions_per_document=4, fresh_rows=None)
    return PooledListing(keep=19 * 2**40 // 20, rules=PoolRules(0, 354, "0.1"), documents=shape)


def measure(root: Path, documents: int, queries: int, *, pooled: bool) -> dict[str, Any]:
    """Return the time of an answer in milliseconds, and the number of calls of `fsync`."""
    mechanism = pooled_listing(documents) if pooled else ()
    window, key, accounts = opened(root, documents, ACCOUNTS, 2 * queries + 2, mechanism, lead_ms=LEAD_MS)
    key.save(root / "provider.skey")
    store_settings(window.directory, root / "provider.skey", None)
    opens_at = window.header.opens_at
    window.shut()
    publication, embedder, rng = Publication.load(window.directory / "public"), get_embedder(), Random(3)
    time.sleep(max(0.0, opens_at / 1000 - time.time()))
    server = Server(window.directory)
    server.start()
    result: dict[str, Any] = {"documents": documents, "queries": queries, "pooled": pooled}
    try:
        url = f"http://127.0.0.1:{server.port}"
        with Client(url, key.verifier) as client:
            for account in accounts:  # warms caches and connections
                client.ask(account, text(rng), window=publication, embedder=embedder)
            with counted_syncs() as syncs, _timed(result, "client", queries, server):
                for number in range(queries):
                    account = accounts[number % ACCOUNTS]
                    client.ask(account, text(rng), window=publication, embedder=embedder)
            result["client"]["fsyncs"] = syncs[0] / queries

        async def ask_all() -> None:
            async with AsyncClient(url, key.verifier) as client:

                async def ask(number: int) -> None:
                    for _ in range(queries // ACCOUNTS):
                        await client.ask(accounts[number], text(rng), window=publication, embedder=embedder)

                with _timed(result, "async_client", queries // ACCOUNTS * ACCOUNTS, server):
                    await asyncio.gather(*[ask(number) for number in range(ACCOUNTS)])

        asyncio.run(ask_all())
    finally:
        server.stop()
    return result


@contextmanager
def _timed(result: dict[str, Any], name: str, queries: int, server: Server) -> Iterator[None]:
    """Store the time of each of the questions that the body asks."""
    own, others, wall = time.process_time(), server.cpu_seconds(), time.perf_counter()
    yield
    each = 1000 / queries
    result[name] = {
        "cpu_ms": (time.process_time() - own) * each,
        "server_cpu_ms": (server.cpu_seconds() - others) * each,
        "wall_ms": (time.perf_counter() - wall) * each,
    }


def main() -> int:
    """Measure and print."""
    options = parser(__doc__)
    options.add_argument("--documents", type=int, default=10_000)
    options.add_argument("--queries", type=int, default=400, help="questions of each client")
    options.add_argument("--pooled", action="store_true", help="pooled listing instead of exact answers")
    args = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        figures = measure(Path(folder), args.documents, args.queries, pooled=args.pooled)
        emit(figures, as_json=args.json)
    return 0


if __name__ == "__main__":
    sys.exit(main())
