"""Durable appends a second: the ledger store compared with pymerkle's own SQLite tree, on the same disk.

    python -m bench.ledger [--records N] [--appenders N] [--json]

An append counts after its acknowledgement, when the record is on the disk. The script makes its folder in the current
folder, because the folder for temporary files may be a memory file system.
"""

from __future__ import annotations

import tempfile
import threading
import time
from functools import partial
from pathlib import Path

from pymerkle import SqliteTree

from bench.common import emit, parser
from rag_audit._internal.canonical import jcs
from rag_audit.log.store import LedgerStore

RETAINED = bytes(512)


def record(index: int, account: str, i: int) -> bytes:
    """An entry of the size and form of a query record."""
    digests = {name: "0" * 64 for name in ("hq", "cq", "htopk", "hans")}
    head = {"type": "query", "v": 1, "window": "2026-w1", "seq": index, "tenant": "t", "proof": None}
    return jcs({**head, **digests, "account": account, "i": i, "ts": 1_800_000_000_000, "sig": "0" * 128})


def store_rate(directory: Path, records: int, appenders: int) -> float:
    """Return records a second with `appenders` threads that each wait for their own record."""
    each = -(-records // appenders)

    def run(account: str) -> None:
        for i in range(1, each + 1):
            store.append(partial(record, account=account, i=i), slot=(account, i), private=RETAINED).result()

    with LedgerStore(directory / f"store-{appenders}.sqlite") as store:
        threads = [threading.Thread(target=run, args=(f"account-{n}",)) for n in range(appenders)]
        start = time.perf_counter()
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        return each * appenders / (time.perf_counter() - start)


def pymerkle_rate(directory: Path, records: int) -> float:
    """Return records a second of `SqliteTree.append_entry`, one commit each."""
    tree = SqliteTree(str(directory / "pymerkle.sqlite"))
    start = time.perf_counter()
    for index in range(records):
        tree.append_entry(record(index, "account", index + 1))
    return records / (time.perf_counter() - start)


def open_seconds(directory: Path, appenders: int) -> tuple[int, float]:
    """Return the number of records in a file, and the time to open it with the check of every row."""
    start = time.perf_counter()
    with LedgerStore(directory / f"store-{appenders}.sqlite") as store:
        return len(store), time.perf_counter() - start


def main() -> None:
    """Measure and print."""
    arguments = parser(__doc__)
    arguments.add_argument("--records", type=int, default=8192)
    arguments.add_argument("--appenders", type=int, nargs="+", default=[1, 16, 64, 256])
    options = arguments.parse_args()
    with tempfile.TemporaryDirectory(dir=".", prefix=".bench-") as folder:
        directory = Path(folder)
        rates = {
            n: store_rate(directory, options.records if n > 1 else options.records // 8, n)
            for n in options.appenders
        }
        size, seconds = open_seconds(directory, options.appenders[-1])
        figures = {
            "bytes": {"record": len(record(0, "account-0", 1)), "retained": len(RETAINED)},
            "durable_records_per_second": {f"{n} appenders": round(rate) for n, rate in rates.items()},
            "pymerkle_sqlite_records_per_second": round(pymerkle_rate(directory, options.records // 8)),
            "open_and_verify": {"records": size, "seconds": seconds},
        }
    emit(figures, as_json=options.json)


if __name__ == "__main__":
    main()
