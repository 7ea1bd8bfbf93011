"""One window from its texts to its verdict: `python -m bench.whole [--documents N] [--queries Q] [--json]`.

The script opens a window, answers queries, closes, proves and verifies the window. It includes all parts: keys,
witness, ledger, documents, receipts, A1. Opening, serving, proving and verifying run in separate processes, so that
each memory figure covers one phase. The texts are synthetic. The time to embed them is a separate figure, because it
depends on the embedder. `serve` gives the resident memory between queries, and one slot's precomputed noise.

A verifier's challenge draws `--alone` plus `--batch` records. The first `--alone` records get one proof each, the
other records share one proof, and the window must pass in sampled mode.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from math import exp
from multiprocessing import get_context
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from bench.common import Cost, by_figure, emit, measured, parser, resident_bytes
from bench.service import opened, text
from bench.verify import trust_text
from rag_audit._internal.canonical import Json, jcs, parse_json
from rag_audit.account.account import Account
from rag_audit.attest.window import Window
from rag_audit.log.merkle import HashTree, leaf_hash
from rag_audit.log.note import sign_note
from rag_audit.log.signing import SigningKey
from rag_audit.models.challenge import Challenge
from rag_audit.models.publication import Publication
from rag_audit.models.records import SlotKey
from rag_audit.models.windowfile import WindowFile
from rag_audit.report.verification import verify_window
from rag_audit.retrieval.embedders import get_embedder
from rag_audit.witness.witness import Witness

ACCOUNTS = 4
WARM = ACCOUNTS
DRAWS = 3
LEAD_MS = 3_600_000
"""The time between the dates in the window and the opening: 10^6 texts are stored, and the machine may be busy."""


class Embedding:
    """An embedder that measures its time for documents, and embeds each document only once."""

    def __init__(self) -> None:
        self._embedder, self.seconds, self.cpu_seconds = get_embedder(), 0.0, 0.0
        self._known: dict[str, Any] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._embedder, name)

    def embed_documents(self, texts: Any, *, first: int = 0) -> Any:
        start, cpu = time.perf_counter(), time.process_time()
        try:
            missing = list(dict.fromkeys(text for text in texts if text not in self._known))
            if missing:
                vectors = self._embedder.embed_documents(missing, first=first)
                self._known |= zip(missing, vectors, strict=True)
            return np.stack([self._known[text] for text in texts])
        finally:
            self.seconds += time.perf_counter() - start
            self.cpu_seconds += time.process_time() - cpu


def clock() -> int:
    """Return a time after the opening of the window."""
    return int(time.time() * 1000) + LEAD_MS


def open_window(
    root: str, documents: int, distinct: int, queries: int, gains: tuple[int, ...]
) -> dict[str, Any]:
    """Commit to everything, including the beacon."""
    place, embedder, rng = Path(root), Embedding(), Random(1)
    different = [text(rng) for _ in range(min(distinct, documents))]
    texts = [different[number % len(different)] for number in range(documents)]
    each = -(-queries // ACCOUNTS) + 1 + WARM // ACCOUNTS + DRAWS
    cost, (window, key, _) = measured(
        lambda: opened(
            place,
            documents,
            ACCOUNTS,
            each,
            gains,
            lattice=128,
            k_max=ACCOUNTS,
            embedder=embedder,
            texts=texts,
            lead_ms=LEAD_MS,
        )
    )
    key.save(place / "provider.skey")
    window.shut()
    without = Cost(cost.seconds - embedder.seconds, cost.cpu_seconds - embedder.cpu_seconds, cost.peak_bytes)
    return {
        **_figures(without),
        "embedding": {"seconds": embedder.seconds, "cpu_seconds": embedder.cpu_seconds},
        "folder_bytes": sum(p.stat().st_size for p in place.rglob("*") if p.is_file()),
    }


def serve(root: str, queries: int, niceness: int) -> dict[str, Any]:
    """Read the window back, answer queries one after another, and close.

    :param niceness: the number to add to the process's niceness, before it has threads
    """
    os.nice(niceness)
    place, rng = Path(root), Random(2)
    key, embedder = SigningKey.load(place / "provider.skey"), get_embedder()
    resumed, window = measured(lambda: Window.resume(place / "window", key=key, clock=clock))
    with window:
        asking = [Account(place / f"account-{i}") for i in range(ACCOUNTS)]
        publication = Publication.load(window.directory / "public")
        draws = [
            measured(lambda i=i: window.context.drawn(SlotKey("bench", "account-0", window.policy.n - i)))[0]  # type: ignore[misc]
            for i in range(DRAWS)
        ]

        def ask(number: int) -> Cost:
            account = asking[number % ACCOUNTS]
            request = account.request(publication, text(rng), embedder=embedder)
            _predrawn(window, SlotKey("bench", account.account, request.i))
            line = request.canonical()
            cost, reply = measured(lambda: window.handle(parse_json(line, source="request")).canonical())
            value: Json = parse_json(reply, source="reply")
            account.accept(publication, request, value, key.verifier, embedder=embedder)
            return cost

        window.noise_pool.prepare(SlotKey("bench", "account-0", 1))
        for number in range(WARM):
            ask(number)
        costs = [ask(number) for number in range(WARM, WARM + queries)]
        resident = resident_bytes()
        closed, _ = measured(window.close)
        witnessed, _ = measured(lambda: _end(window, key, place))
        asking[0].export_receipts(Publication.load(window.directory / "public"), place / "receipts")
    seconds = sorted(cost.seconds for cost in costs)
    return {
        "resume": _figures(resumed),
        "resident_bytes": resident,
        "query_ms": {
            "median": 1000 * seconds[len(seconds) // 2],
            "slowest": 1000 * seconds[-1],
            "cpu_median": 1000 * sorted(cost.cpu_seconds for cost in costs)[len(costs) // 2],
        },
        "draw": _figures(min(draws)),
        "close": _figures(closed),
        "witness": _figures(witnessed),
    }


def _predrawn(window: Window, slot: SlotKey) -> None:
    """Wait until a slot's noise is drawn, like the pause between two questions of a person."""
    pool = window.noise_pool
    pool.prepare(slot)
    while True:
        with pool._changed:
            if slot in pool._ready and not pool._planned and pool._drawing is None:
                return
        time.sleep(0.01)


def _end(window: Window, key: SigningKey, place: Path) -> None:
    """Let the witness read the finished window and cosign it, and give the cosignature to the provider."""
    witness = Witness(place / "witness", clock=clock)
    file = WindowFile.load(window.context.layout.public.folder)
    entries = [jcs(e) for e in file.entries]
    tree, known = HashTree(leaf_hash(e) for e in entries), witness.last(window.header.log)
    assert known is not None
    note = witness.cosign(
        file.final_checkpoint, log_key=key.verifier, consistency=tree.consistency_path(known[0]),
        trailer=(entries[-1], tree.inclusion_path(tree.size - 1)), entries=entries,
    )  # fmt: skip
    window.admit([str(note)])


def prove(root: str, alone: int, batch: int, low_memory: bool) -> dict[str, Any]:
    """Prove the records that a verifier's challenge draws."""
    place, costs = Path(root), {}
    verifier = SigningKey.generate("verifier")
    verifier.save(place / "verifier.skey")
    window = Window.resume(place / "window", key=SigningKey.load(place / "provider.skey"), clock=clock)
    with window:
        window.low_memory = low_memory
        tree, header = window.state.tree, window.header
        challenge = Challenge.new(
            verifier, header.origin, header.window, tree.size, tree.root(), alone + batch
        )
        drawn = challenge.positions([record.seq for record in window.records])
        if alone:  # the first proof includes making generators and tables
            costs["first"], _ = measured(lambda: window.prove(drawn[:1]))
        if alone > 1:
            costs["alone"], _ = measured(lambda: window.prove(drawn[1:alone]))
        if batch:
            costs["batch"], _ = measured(lambda: window.prove(drawn[alone:], batch=batch))
        window.answer_challenge(str(sign_note(challenge.text(), verifier)))
    return by_figure(costs)


def verify(root: str, challenged: int) -> dict[str, Any]:
    """Read and verify the window as an independent verifier does."""
    place, costs = Path(root), {}
    key, witness = SigningKey.load(place / "provider.skey"), SigningKey.load(place / "witness" / "key")
    verifier = SigningKey.load(place / "verifier.skey").verifier
    named = [
        (line.account, line.key)
        for line in (Account(place / f"account-{i}").roster_entry for i in range(ACCOUNTS))
    ]
    # A challenge of this size misses a fraction of 0.9 bad records with probability at most eta.
    sampled = {
        "mode": "sampled",
        "beta": "0.9",
        "eta": f"{exp(-0.9 * challenged) + 1e-9:.9f}",
        "challenge": "published",
    }
    trust = place / "trust.toml"
    trust.write_text(
        trust_text(key, [witness], named, get_embedder(), verifiers=[(verifier.name, str(verifier))],
                   max_epsilon="100000", **sampled)
    )  # fmt: skip
    public = place / "window" / "public"
    costs["read"], window = measured(lambda: WindowFile.load(public))
    costs["verify"], verdict = measured(
        lambda: verify_window(window, trust=trust, receipts=[place / "receipts"])
    )
    if not verdict.passed:
        raise SystemExit(f"the window does not pass: {verdict.line}")
    return {
        **by_figure(costs),
        "verdict": verdict.outcome,
        "proofs_bytes": len(json.dumps(window.dump()["proofs"])),
    }


def _figures(cost: Cost) -> dict[str, float]:
    return cost._asdict()


def alone_in_a_process(work: Callable[..., dict[str, Any]], *values: Any) -> dict[str, Any]:
    """Measure a phase in a separate process and return its figures."""
    with ProcessPoolExecutor(1, get_context("spawn"), max_tasks_per_child=1) as pool:
        result = pool.submit(work, *values).result()
    print(f"bench.whole: {work.__name__}: {json.dumps(result)}", file=sys.stderr, flush=True)
    return result


def main() -> int:
    """Measure and print."""
    options = parser(__doc__)
    options.add_argument("--documents", type=int, default=100_000)
    options.add_argument("--distinct", type=int, help="different texts, each embedded once; all")
    options.add_argument("--queries", type=int, default=20)
    options.add_argument("--gains", default="1,8,64")
    options.add_argument("--alone", type=int, default=1, help="records that are proved by themselves")
    options.add_argument("--batch", type=int, default=0, help="records after these, in one proof")
    options.add_argument("--low-memory", action="store_true")
    options.add_argument("--serve-nice", type=int, default=0, help="added to the serving process's niceness")
    options.add_argument("--folder", type=Path, help="where the window is kept; an empty or new folder")
    args = options.parse_args()
    gains = tuple(int(gain) for gain in args.gains.split(",") if gain)
    with tempfile.TemporaryDirectory(dir=".", prefix=".bench-") as folder:
        root = str(args.folder or folder)
        Path(root).mkdir(parents=True, exist_ok=True)
        figures = {
            "documents": args.documents,
            "distinct": args.distinct or args.documents,
            "gains": list(gains),
            "queries": args.queries,
            "alone": args.alone,
            "batch": args.batch,
            "open": alone_in_a_process(
                open_window, root, args.documents, args.distinct or args.documents, args.queries, gains
            ),
            "serve": alone_in_a_process(serve, root, args.queries, args.serve_nice),
            "prove": alone_in_a_process(prove, root, args.alone, args.batch, args.low_memory),
            "verify": alone_in_a_process(verify, root, args.alone + args.batch),
        }
    emit(figures, as_json=args.json)
    return 0


if __name__ == "__main__":
    sys.exit(main())
