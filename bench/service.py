"""The time of a query at the server and at the account, by step: `python -m bench.service [--documents N] [--json]`.

One window of one scan tenant over synthetic texts runs in this process and on its disk. Accounts ask one after another.
The script prints the processor time of the answering thread, step by step. Separate threads precompute the noise; the
noise and all work of the account have separate figures. The rest of the total is parsing, checks and locks.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

from bench.common import emit, measured, parser
from rag_audit._internal.canonical import Json, jcs, parse_json
from rag_audit.account.account import Account
from rag_audit.attest import answers, query
from rag_audit.attest.window import Window
from rag_audit.commit.draft import NoiseParameters, Period, PrivacyTarget, Tenants, draft_policy
from rag_audit.commit.preparing import Terms
from rag_audit.log.signing import SigningKey
from rag_audit.mechanisms.base import Mechanism
from rag_audit.mechanisms.none import Exact
from rag_audit.models.publication import Publication
from rag_audit.models.records import WitnessBeacon
from rag_audit.retrieval.embedders import Embedder, get_embedder
from rag_audit.retrieval.query import OpenedQuery
from rag_audit.witness.witness import Witness

TENANT = "bench"
WORDS = ("index", "query", "account", "tenant", "noise", "record", "proof", "ledger", "witness", "policy")
LEAD_MS = 60_000
"""The time between the commitments and the opening. The witness must cosign in this time, even on a busy machine."""
STEPS = (
    "check_signed",
    "check_opened",
    "select_positions",
    "document_openings",
    "query_record",
    "seal_retained",
)


def text(rng: Random) -> str:
    """Make a text of a dozen words and numbers, with a direction of its own."""
    return " ".join(f"{rng.choice(WORDS)} {rng.randrange(10_000)}" for _ in range(6))


def opened(
    root: Path,
    documents: int,
    accounts: int,
    n: int,
    mechanism: tuple[int, ...] | Mechanism,
    *,
    lattice: int = 64,
    k_max: int = 1,
    embedder: Embedder | None = None,
    texts: Sequence[str] | None = None,
    lead_ms: int = LEAD_MS,
) -> tuple[Window, SigningKey, list[Account]]:
    """Open a window: provider, one witness and the accounts run in this process.

    :param mechanism: of the tenant, or the gains of its noise; without gains answers are exact
    """
    rng, key = Random(1), SigningKey.generate("bench.example.org")
    witness = Witness.init(root / "witness", "witness")
    asking = [Account.create(root / f"account-{i}", f"account-{i}", TENANT) for i in range(accounts)]
    now = int(time.time() * 1000)
    gains = mechanism if isinstance(mechanism, tuple) else ()
    other = Exact() if isinstance(mechanism, tuple) else mechanism
    mechanisms = None if gains else {TENANT: other}
    policy = draft_policy(
        Period("bench", now + 3_600_000, now + 7_200_000),
        Tenants({TENANT: documents}, accounts_max=accounts, system="scan", mechanisms=mechanisms),
        PrivacyTarget(n=n, k_max=k_max, eps_acc="100"),
        noise=NoiseParameters(gains or (1, 8), lattice),
    )
    ahead = [0]

    def clock() -> int:
        return int(time.time() * 1000) + ahead[-1]

    member = {"name": "witness", "vkey": str(witness.vkey), "commitment": witness.nonce_commitment().hex()}
    beacon = WitnessBeacon.parse({"source": "witnesses", "witnesses": [member]}, field="beacon")
    window = Window.open(
        root / "window", key=key, policy=policy, roster=[a.roster_entry for a in asking],
        documents={TENANT: texts or [text(rng) for _ in range(documents)]}, clock=clock, embedder=embedder,
        terms=Terms(key.name, beacon, opens_in=lead_ms),
    )  # fmt: skip
    entry, checkpoint = jcs(window.header.dump()), window.directory / "public" / "checkpoint-1.txt"
    window.admit([str(witness.cosign_header(checkpoint.read_text(), entry, log_key=key.verifier))])
    reveal = witness.reveal(
        checkpoint.read_text(), entry, log_key=key.verifier, witnesses=[witness.vkey], quorum=1
    )
    window.admit([str(reveal)])
    ahead.append(lead_ms)  # the clock skips the time to the opening
    return window, key, asking


@contextmanager
def timed(costs: dict[str, float]) -> Iterator[None]:
    """Add the thread's processor time of each of `STEPS`, of the durable append and of the receipt to `costs`."""
    places: list[tuple[Any, str, str]] = [(query, name, name) for name in STEPS]
    places += [(answers, "make_receipt", "make_receipt")]
    before = [(owner, name, getattr(owner, name)) for owner, name, _ in places]

    def wrapped(function: Callable[..., Any], label: str) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            start = time.thread_time()
            try:
                return function(*args, **options)
            finally:
                costs[label] += time.thread_time() - start

        return call

    for (owner, name, label), (_, _, function) in zip(places, before, strict=True):
        setattr(owner, name, wrapped(function, label))
    try:
        yield
    finally:
        for owner, name, function in before:
            setattr(owner, name, function)


def measure(root: Path, documents: int, queries: int, gains: tuple[int, ...]) -> dict[str, Any]:
    """Return the processor time of a query, in milliseconds, after a few queries that warm caches."""
    accounts, warm = 4, 4
    window, key, asking = opened(root, documents, accounts, 2 * (queries + warm), gains)
    publication, rng = Publication.load(window.directory / "public"), Random(2)
    embedder = get_embedder()
    server: dict[str, float] = defaultdict(float)
    totals: dict[str, float] = defaultdict(float)

    def ask(number: int) -> None:
        account = asking[number % accounts]
        start = time.thread_time()
        request = account.request(publication, text(rng), embedder=embedder)
        line = request.canonical()
        requested = time.thread_time()
        reply = window.handle(parse_json(line, source="request")).canonical()
        answered = time.thread_time()
        value: Json = parse_json(reply, source="reply")
        account.accept(publication, request, value, key.verifier, embedder=embedder)
        totals["request"] += requested - start
        totals["answer"] += answered - requested
        totals["accept"] += time.thread_time() - answered

    with window:
        for number in range(warm):
            ask(number)
        totals.clear()
        with timed(server):
            whole, _ = measured(lambda: [ask(number) for number in range(queries)])
        one = OpenedQuery(text(rng), bytes(32), embedder)
        embedding, _ = measured(lambda: one.vector)
        window.context.commitment.tenants[TENANT].index.scores(one.vector)  # packs the rows
        scoring, _ = measured(lambda: window.context.commitment.tenants[TENANT].index.scores(one.vector))
    each = 1000 / queries
    return {
        "documents": documents,
        "gains": list(gains),
        "queries": queries,
        "server_ms": {"all": totals["answer"] * each, **{name: cost * each for name, cost in server.items()}},
        "account_ms": {"request": totals["request"] * each, "accept": totals["accept"] * each},
        "one_ms": {"embedding": 1000 * embedding.cpu_seconds, "scores": 1000 * scoring.cpu_seconds},
        "all_threads_ms": 1000 * whole.cpu_seconds / queries,
        "wall_ms": 1000 * whole.seconds / queries,
        "peak_bytes": whole.peak_bytes,
    }


def main() -> int:
    """Measure and print."""
    options = parser(__doc__)
    options.add_argument("--documents", type=int, default=100_000)
    options.add_argument("--queries", type=int, default=40)
    options.add_argument("--gains", default="1,8", help="of the noise; empty for none")
    args = options.parse_args()
    gains = tuple(int(gain) for gain in args.gains.split(",") if gain)
    with tempfile.TemporaryDirectory() as folder:
        emit(measure(Path(folder), args.documents, args.queries, gains), as_json=args.json)
    return 0


if __name__ == "__main__":
    sys.exit(main())
