"""Load on a window over HTTP: `python -m bench.http [--documents N] [--accounts N] [--rate R] [--kills K] [--json]`.

The real server, `rag-audit provider serve --http`, runs in a separate process on loopback. A client with a bounded
number of connections runs in this process. The client signs all requests before the measurement starts. It then sends
them at a fixed rate, even if earlier requests have no answer yet. A request's latency counts from the time at which the
request was due.

In a second run the script kills the server (SIGKILL) and restarts it K times. Every account then repeats its unanswered
request. At the end the script checks each receipt and the ledger: the ledger must have exactly one record for every
request.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from bench.common import emit, parser
from bench.service import opened, text
from rag_audit._internal.canonical import parse_json
from rag_audit.account.account import Account, check_receipt
from rag_audit.cli.settings import store_settings
from rag_audit.log.keys import VerifierKey
from rag_audit.log.signing import SigningKey
from rag_audit.log.store import read_ledger
from rag_audit.models.publication import Publication
from rag_audit.models.records import QueryRecord, parse_entry, request_message
from rag_audit.models.requests import Answer, SignedRequest
from rag_audit.retrieval.embedders import Embedder, get_embedder
from rag_audit.retrieval.query import OpenedQuery

ATTEMPTS = 400
PAUSE_S = 0.1
"""The pause between two attempts after a broken connection; with `ATTEMPTS`, the longest time for a restart."""
TIMEOUT_S = 30.0
CONNECTIONS = 128


@dataclass
class Server:
    """The command that serves. The measurement can kill it and start it at the same port."""

    folder: Path
    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    port: int = 0
    options: Sequence[str] = ()
    _process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        """Start the server, and wait until it listens."""
        command = [
            sys.executable,
            "-m",
            "rag_audit",
            "provider",
            "serve",
            str(self.folder),
            "--http",
            f"127.0.0.1:{self.port}",
        ]
        with (self.folder.parent / "server.log").open("a+") as log:
            log.seek(0, os.SEEK_END)
            begin = log.tell()
            self._process = subprocess.Popen(
                [*command, *self.options], stderr=log, text=True, env=self.environment
            )
            while True:
                log.seek(begin)
                result = [line for line in log.read().splitlines() if "listening on http://" in line]
                if result:
                    break
                if self._process.poll() is not None:
                    log.seek(begin)
                    raise SystemExit(f"the server did not start:\n{log.read()[-2000:]}")
                time.sleep(0.05)
        self.port = int(result[0].rpartition(":")[2])

    def kill(self) -> None:
        """End the server at once, as a crash does."""
        self._end(signal.SIGKILL)

    def stop(self) -> int:
        """End the server as an operator does.

        :returns: its exit code
        """
        return self._end(signal.SIGTERM)

    def cpu_seconds(self) -> float:
        """The processor time that the process has used so far."""
        assert self._process is not None
        parts = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(parts[11]) + int(parts[12])) / os.sysconf("SC_CLK_TCK")

    def _end(self, number: signal.Signals) -> int:
        if self._process is None:
            return 0
        self._process.send_signal(number)
        code = self._process.wait(60)
        self._process = None
        return code


@dataclass
class Ticket:
    """One signed request and its result."""

    request: SignedRequest
    body: bytes
    after: Ticket | None
    """the account's request before it"""
    done: asyncio.Event = field(default_factory=asyncio.Event)
    reply: bytes = b""
    latency: float = 0.0
    attempts: int = 0


def sign(
    accounts: Sequence[Account], window: Publication, embedder: Embedder, firsts: Mapping[str, int], each: int
) -> list[Ticket]:
    """Sign the next requests of every account, in the order of sending.

    :param firsts: the number of each account's first request; 1 for an account that is not in it
    :param each: the number of requests of each account
    """
    rng, origin, digest = (
        Random(sum(firsts.values())),
        window.parsed_header().origin,
        window.header_digest(),
    )
    tickets: list[Ticket] = []
    last: dict[str, Ticket] = {}
    for number in range(each):
        for account in accounts:
            i = firsts.get(account.account, 1) + number
            query = OpenedQuery(text(rng), rng.randbytes(32), embedder)
            named = (origin, digest, account.tenant, account.account, i, query.hq)
            request = SignedRequest(
                type="request", v=1, origin=origin, header=digest, tenant=account.tenant, account=account.account,
                i=i, hq=query.hq, sig=account.sign(request_message(*named)).hex(), query=query.text,
                salt=query.salt.hex(),
            )  # fmt: skip
            ticket = Ticket(request, request.canonical(), last.get(account.account))
            last[account.account] = ticket
            tickets.append(ticket)
    return tickets


class Client:
    """A bounded number of connections to one loopback port; the client reuses each connection."""

    def __init__(self, server: Server, connections: int = CONNECTIONS) -> None:
        self._server = server
        self._free: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []
        self._places = asyncio.Semaphore(connections)

    async def post(self, body: bytes) -> tuple[int, bytes]:
        """Post one request; return status and body of the response.

        :raises OSError: the connection ended, or could not be made
        """
        async with self._places:
            pair = (
                self._free.pop()
                if self._free
                else await asyncio.open_connection("127.0.0.1", self._server.port)
            )
            try:
                async with asyncio.timeout(TIMEOUT_S):
                    result = await self._exchange(*pair, body)
            except (OSError, asyncio.IncompleteReadError, TimeoutError) as exc:
                pair[1].close()
                raise ConnectionError from exc
            self._free.append(pair)
            return result

    async def _exchange(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, body: bytes
    ) -> tuple[int, bytes]:
        head = f"POST /v1/query HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
        writer.write(head.encode() + b"\r\n\r\n" + body)
        answer = (await reader.readuntil(b"\r\n\r\n")).lower()
        length = int(answer.partition(b"content-length: ")[2].partition(b"\r")[0])
        return int(answer[9:12]), await reader.readexactly(length)

    def close(self) -> None:
        """Close the open connections."""
        for _, writer in self._free:
            writer.close()


async def send_all(server: Server, tickets: Sequence[Ticket], rate: float, kills: int) -> dict[str, Any]:
    """Send every request when it is due, and repeat it until it is answered.

    :param rate: requests a second, or 0 for as many as the connections allow
    :param kills: how often the server is killed and restarted meanwhile
    """
    client, began, answered, restarts = Client(server), time.perf_counter(), 0, []

    async def settle(ticket: Ticket, due: float) -> None:
        nonlocal answered
        await asyncio.sleep(max(0.0, began + due - time.perf_counter()))
        if ticket.after is not None:
            await ticket.after.done.wait()
        start = began + due if rate else time.perf_counter()
        while ticket.attempts < ATTEMPTS:
            ticket.attempts += 1
            try:
                status, reply = await client.post(ticket.body)
            except OSError:
                await asyncio.sleep(PAUSE_S)
                continue
            if status == 200:
                ticket.reply = reply
                answered += 1
                break
            if status not in (429, 503):
                raise SystemExit(f"refused with {status}: {reply[:400]!r}")
            await asyncio.sleep(1.0)
        ticket.latency = time.perf_counter() - start
        ticket.done.set()

    async def kill() -> None:
        for number in range(kills):
            while answered < len(tickets) * (number + 1) // (kills + 1):
                await asyncio.sleep(0.005)
            server.kill()
            start = time.perf_counter()
            await asyncio.to_thread(server.start)
            restarts.append(time.perf_counter() - start)

    killer = asyncio.create_task(kill())
    if rate:
        await asyncio.gather(*(settle(ticket, number / rate) for number, ticket in enumerate(tickets)))
    else:
        await _in_turn(tickets, settle)
    seconds = time.perf_counter() - began
    await killer
    client.close()
    ordered = sorted(ticket.latency for ticket in tickets)
    return {
        "requests": len(tickets),
        "answered": answered,
        "seconds": seconds,
        "answered_per_second": answered / seconds,
        "latency_ms": {
            f"p{share}": 1000 * ordered[min(len(ordered) - 1, len(ordered) * share // 100)]
            for share in (50, 90, 99)
        },
        "repeated": sum(ticket.attempts > 1 for ticket in tickets),
        "restart_seconds": restarts,
    }


async def _in_turn(tickets: Sequence[Ticket], settle: Any, batch: int = 32) -> None:
    """Settle the requests, at most `batch` at a time."""
    left = iter(tickets)

    async def work() -> None:
        for ticket in left:
            await settle(ticket, 0.0)

    await asyncio.gather(*(work() for _ in range(batch)))


def check(
    folder: Path, window: Publication, provider: VerifierKey, tickets: Sequence[Ticket]
) -> dict[str, int]:
    """Check every receipt, and that the ledger has exactly one record for each request and no other records."""
    records = [
        entry
        for body, _ in read_ledger(folder / "ledger.sqlite")
        if isinstance(entry := parse_entry(parse_json(body, source="ledger"), field="ledger"), QueryRecord)
    ]
    by_slot = {(record.account, record.i): record for record in records}
    lost = wrong = 0
    for ticket in tickets:
        request = ticket.request
        record = by_slot.get((request.account, request.i))
        if not ticket.reply or record is None:
            lost += 1
            continue
        answer = Answer.parse(parse_json(ticket.reply, source="reply"), field="reply")
        receipt = check_receipt(answer.receipt, window, provider, request=request)
        wrong += receipt.record != record
    return {
        "records": len(records),
        "lost": lost,
        "slots_reused": len(records) - len(by_slot),
        "other_records": wrong,
    }


def measure(root: Path, options: Any) -> dict[str, Any]:
    """Open a window, or reuse the window in the folder, and load it."""
    gains = tuple(int(gain) for gain in options.gains.split(",") if gain)
    folder = root / "window"
    if not folder.exists():
        window, key, _ = opened(root, options.documents, options.accounts, options.n, gains)
        key.save(root / "provider.skey")
        store_settings(folder, root / "provider.skey", None)
        window.shut()
    key = SigningKey.load(root / "provider.skey")
    publication, embedder = Publication.load(folder / "public"), get_embedder()
    accounts = [Account(root / f"account-{i}") for i in range(options.accounts)]
    header = publication.parsed_header()
    if time.time() > header.closes_at / 1000:
        raise SystemExit("the window that lies there has ended: name another folder")
    time.sleep(max(0.0, header.opens_at / 1000 + 1 - time.time()))
    server, result = Server(folder), {}
    each = -(-options.queries // options.accounts)
    runs = [("steady", 0), *([("killed", options.kills)] if options.kills else [])]
    every: list[Ticket] = []
    start = time.perf_counter()
    server.start()
    result["start_seconds"] = time.perf_counter() - start
    try:
        for name, kills in runs:
            following = {record.account: record.i + 1 for record in _records(folder)}
            tickets = sign(accounts, publication, embedder, following, each)[: options.queries]
            before = server.cpu_seconds()
            result[name] = asyncio.run(send_all(server, tickets, options.rate, kills))
            if not kills:
                result[name]["server_cpu_ms"] = 1000 * (server.cpu_seconds() - before) / len(tickets)
            every += tickets
    finally:
        server.stop()
    result["checked"] = check(folder, publication, key.verifier, every)
    return {"documents": options.documents, "gains": list(gains), "accounts": options.accounts,
            "rate": options.rate, **result}  # fmt: skip


def _records(folder: Path) -> list[QueryRecord]:
    entries = (parse_entry(parse_json(body, source="ledger"), field="ledger")
               for body, _ in read_ledger(folder / "ledger.sqlite"))  # fmt: skip
    return [entry for entry in entries if isinstance(entry, QueryRecord)]


def main() -> int:
    """Measure and print."""
    options = parser(__doc__)
    options.add_argument("--documents", type=int, default=100_000)
    options.add_argument("--accounts", type=int, default=1_000)
    options.add_argument("--queries", type=int, default=3_000, help="of each run")
    options.add_argument(
        "--rate", type=float, default=300.0, help="requests a second; 0 for as many as get answers"
    )
    options.add_argument("--kills", type=int, default=3)
    options.add_argument("--gains", default="", help="of the noise; empty for a tenant without noise")
    options.add_argument("--n", type=int, default=64, help="queries of an account in the window")
    options.add_argument("--folder", type=Path, help="keep the window here, or take the one that lies here")
    args = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        emit(measure(args.folder or Path(folder), args), as_json=args.json)
    return 0


if __name__ == "__main__":
    sys.exit(main())
