"""A window of many accounts, step by step: `python -m bench.accounts [--accounts N] [--roster N] [--json]`.

The accounts request enrolment. The provider approves them, opens a window over the roster, enrols more accounts while
the window is open, reads the window back, answers questions of different accounts and closes the window. A verifier
reads and verifies it. All parties run in this process, on one disk. Proofs are stand-ins, as in `bench.verify`.

The script also runs the roster functions over a second roster, which may be larger. The figures reveal each cost that
grows with the square of either number.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, TypeVar

from bench.common import Cost, by_figure, emit, measured, parser
from bench.service import LEAD_MS, text
from bench.verify import STAND_IN, keys_of, trust_text, without_proofs
from rag_audit._internal.canonical import jcs, parse_json
from rag_audit.attest.state import Places
from rag_audit.attest.window import Window
from rag_audit.commit.draft import Embedding, Period, PrivacyTarget, Tenants, draft_policy
from rag_audit.commit.preparing import Terms
from rag_audit.log.merkle import HashTree, leaf_hash
from rag_audit.log.signing import SigningKey
from rag_audit.models.enrolling import EnrolmentRequest
from rag_audit.models.header import check_roster, list_root
from rag_audit.models.policy import Policy
from rag_audit.models.publication import Publication
from rag_audit.models.records import CountersignedReceipt, RosterEntry, WitnessBeacon, request_message
from rag_audit.models.requests import Answer, SignedRequest
from rag_audit.models.roster import RosterFile, add_to_roster, admit, load_roster
from rag_audit.models.windowfile import WindowFile
from rag_audit.report.verification import verify_window
from rag_audit.retrieval.embedders import Embedder, get_embedder
from rag_audit.retrieval.query import OpenedQuery
from rag_audit.service.enrolment_book import EnrolmentBook, Intake
from rag_audit.verify.case import Status
from rag_audit.witness.witness import Witness

ORIGIN, WINDOW, TENANT = "bench.example", "bench", "bench"
DOCUMENTS, ASKED = 1000, 1000
"""The number of enrolment requests that are measured. Each request costs one fsync, whatever their total number."""
T = TypeVar("T")


@dataclass
class Costs:
    """The cost of each step."""

    of: dict[str, Cost]

    def step(self, name: str, work: Callable[[], T]) -> T:
        """Measure a step."""
        self.of[name], result = measured(work)
        return result


def keys_and_lines(count: int, prefix: str = "account") -> list[tuple[SigningKey, RosterEntry]]:
    """Make the accounts' keys and their roster lines."""
    result = []
    for number in range(count):
        key = SigningKey.generate(name := f"{prefix}-{number}")
        public = key.verifier.public.hex()
        result.append((key, RosterEntry(account=name, tenant=TENANT, key=public, custody="account")))
    return result


def policy_of(accounts: int, embedder: Embedder) -> Policy:
    """Draft a policy of one scan tenant that gives each account two queries."""
    now = int(time.time() * 1000)
    return draft_policy(
        Period(WINDOW, now + 3_600_000, now + 86_400_000),
        Tenants({TENANT: DOCUMENTS}, accounts_max=accounts, system="scan"),
        PrivacyTarget(n=2, k_max=8, eps_acc="14"),
        embedding=Embedding(embedder.dimension),
    )


def rosters(costs: Costs, root: Path, count: int, embedder: Embedder) -> None:
    """Measure the roster functions on a roster of `count` accounts."""
    lines = [line for _, line in keys_and_lines(count)]
    policy, path = policy_of(count + 1, embedder), root / "large.json"
    costs.step("write", lambda: add_to_roster(path, *lines))
    costs.step("read", lambda: load_roster(path))
    costs.step("check", lambda: check_roster(lines, policy))
    costs.step("commit", lambda: list_root(lines))
    places = costs.step("places", lambda: Places(policy, lines))
    one = keys_and_lines(1, "late")[0][1]
    costs.step("one more", lambda: places.take([one]))


class Bench:
    """One window with its provider and one witness."""

    def __init__(self, root: Path, roster: int, enrolled: int, queries: int) -> None:
        self.root, self.costs, self.embedder, self.ahead = root, Costs({}), get_embedder(), 0
        self.key = SigningKey.generate(ORIGIN)
        self.witness = Witness.init(root / "witness", "witness", clock=self.clock)
        self.accounts = keys_and_lines(roster)
        self.late = keys_and_lines(enrolled, "late")
        self.policy = policy_of(roster + enrolled, self.embedder)
        self.queries = queries

    def clock(self) -> int:
        return int(time.time() * 1000) + self.ahead

    def run(self) -> None:
        """Run all steps."""
        self._enrolments()
        window = self._open()
        self.costs.step("enrol", lambda: window.enrol_all([line for _, line in self.late], self._beacon()))
        self.costs.step("beacons", lambda: self._draw(window))
        window.shut()
        window = self.costs.step(
            "resume", lambda: Window.resume(window.directory, key=self.key, clock=self.clock)
        )
        with window:
            publication = self.costs.step("account reads", lambda: self._publication(window))
            requests = self._requests(publication)
            answers = self.costs.step("query", lambda: [self._ask(window, request) for request in requests])
            self._keep(answers[0].receipt)
            self.costs.step("close", window.close)
            self.costs.step("end", lambda: self._end(window))
            self._verify(window)

    def _enrolments(self) -> None:
        """Measure the steps from the enrolment requests to the roster."""
        with EnrolmentBook(self.root / "book.sqlite") as book:
            intake = Intake(
                book, self.key, ORIGIN, windows=lambda: [WINDOW], open_=lambda: None, clock=self.clock,
                roster=RosterFile(self.root / "roster.json").line,
            )  # fmt: skip
            signed = [
                EnrolmentRequest.sign(line, key, origin=ORIGIN, window=WINDOW) for key, line in self.accounts
            ]
            requested = [r.dump() for r in signed[:ASKED]]
            self.costs.step("request", lambda: [intake.answer(value) for value in requested])
            book._db.execute("PRAGMA synchronous = OFF")
            for request in signed[ASKED:]:
                book.take(request, 0, [WINDOW])
            book._db.execute("PRAGMA synchronous = FULL")
            waiting = self.costs.step("list", lambda: [kept.request for kept in book.requests()])

            def approve() -> None:
                admit(self.root / "roster.json", waiting)
                book.decide(waiting, "approved")

            self.costs.step("approve", approve)

    def _beacon(self) -> WitnessBeacon:
        vkey, commitment = str(self.witness.vkey), self.witness.nonce_commitment().hex()
        member = {"name": "witness", "vkey": vkey, "commitment": commitment}
        return WitnessBeacon.parse({"source": "witnesses", "witnesses": [member]}, field="beacon")

    def _open(self) -> Window:
        rng = Random(1)
        window = self.costs.step("open", lambda: Window.open(
            self.root / "window", key=self.key, policy=self.policy,
            roster=load_roster(self.root / "roster.json"), documents={TENANT: [text(rng) for _ in range(DOCUMENTS)]},
            terms=Terms(ORIGIN, self._beacon(), opens_in=LEAD_MS), clock=self.clock, embedder=self.embedder,
        ))  # fmt: skip
        entry, note = jcs(window.header.dump()), window.context.layout.public.checkpoint(1)
        window.admit([str(self.witness.cosign_header(note.read_text(), entry, log_key=self.key.verifier))])
        window.admit([self._reveal(note.read_text(), entry, 0, ())])
        self.ahead = LEAD_MS
        return window

    def _reveal(self, note: str, entry: bytes, index: int, path: Any) -> str:
        return str(self.witness.reveal(note, entry, log_key=self.key.verifier, witnesses=[self.witness.vkey], quorum=1,
                                       index=index, path=path))  # fmt: skip

    def _draw(self, window: Window) -> None:
        """Let the witness read the enrolments, cosign them and reveal its nonce."""
        public = window.context.layout.public
        file = WindowFile.load(public.folder)
        entries = [jcs(e) for e in file.entries]
        tree, last = HashTree(leaf_hash(e) for e in entries), len(entries) - 1
        # An entry's time must not be later than its quorum's time, which has whole seconds.
        time.sleep(1.0)
        note = self.witness.cosign(
            public.checkpoint(tree.size).read_text(),
            log_key=self.key.verifier,
            consistency=tree.consistency_path(1),
        )
        window.admit([str(note)])
        window.admit([self._reveal(str(note), entries[last], last, tree.inclusion_path(last))])

    def _publication(self, window: Window) -> Publication:
        publication = Publication.load(window.context.layout.public.folder)
        publication.check()
        return publication

    def _requests(self, publication: Publication) -> list[SignedRequest]:
        """Sign one question for each account, in turns from the roster and from the accounts that joined later."""
        digest, rng, result = publication.header_digest(), Random(2), []
        pairs = [
            pair for both in zip(self.accounts, self.late, strict=False) for pair in both
        ] or self.accounts
        for key, line in pairs[: self.queries]:
            requested = OpenedQuery(text(rng), rng.randbytes(32), self.embedder)
            message = request_message(ORIGIN, digest, TENANT, line.account, 1, requested.hq)
            result.append(SignedRequest(
                type="request", v=1, origin=ORIGIN, header=digest, tenant=TENANT, account=line.account, i=1,
                hq=requested.hq, sig=key.sign(message).hex(), query=requested.text, salt=requested.salt.hex(),
            ))  # fmt: skip
        return result

    def _keep(self, receipt: str) -> None:
        """Countersign a receipt for the verifier."""
        key, line = self.accounts[0]
        draft = CountersignedReceipt(type="receipt", v=1, account=line.account, receipt=receipt, disclosed=None,
                                     sig="0" * 128)  # fmt: skip
        (self.root / "receipts").mkdir()
        signed = draft.model_copy(update={"sig": key.sign(draft.message()).hex()})
        (self.root / "receipts" / "1.json").write_bytes(signed.canonical())

    def _ask(self, window: Window, request: SignedRequest) -> Answer:
        reply = window.handle(parse_json(request.canonical(), source="request"))
        if not isinstance(reply, Answer):
            raise SystemExit(f"refused: {reply.reason}: {reply.detail}")
        return reply

    def _end(self, window: Window) -> None:
        file = WindowFile.load(window.context.layout.public.folder)
        entries = [jcs(e) for e in file.entries]
        tree = HashTree(leaf_hash(e) for e in entries)
        known = self.witness.last(window.header.log)
        assert known is not None
        note = self.witness.cosign(
            file.final_checkpoint, log_key=self.key.verifier, consistency=tree.consistency_path(known[0]),
            trailer=(entries[-1], tree.inclusion_path(tree.size - 1)), entries=entries,
        )  # fmt: skip
        window.admit([str(note)])

    def _verify(self, window: Window) -> None:
        public = window.context.layout.public.folder
        file = self.costs.step("read window", lambda: WindowFile.load(public))
        keys = keys_of(window.commitment.tenants.values(), self.embedder)
        whole = file.model_copy(update={
            "verification_keys": keys, "proofs": {str(r.seq): STAND_IN for r in window.records},
        })  # fmt: skip
        trust = self.root / "trust.toml"
        named = [(line.account, line.key) for _, line in self.accounts[:1000]]
        witness = SigningKey.load(self.root / "witness" / "key")
        trust.write_text(trust_text(self.key, [witness], named, self.embedder))
        with without_proofs():
            verdict = self.costs.step(
                "verify", lambda: verify_window(whole, trust=trust, receipts=[self.root / "receipts"])
            )
        wrong = {c.id for c in verdict.checks if c.status is not Status.PASS} - {"coalition.cap"}
        if wrong:  # random questions are similar, so the estimator counts their accounts as one coalition
            raise SystemExit(f"the window does not pass: {', '.join(sorted(wrong))}")


def main() -> int:
    """Measure and print."""
    options = parser(__doc__)
    options.add_argument(
        "--accounts", type=int, default=10_000, help="of the window, those that join it included"
    )
    options.add_argument(
        "--enrolled", type=int, help="how many join the open window; a tenth of the accounts"
    )
    options.add_argument("--queries", type=int, help="by as many accounts; a tenth of the accounts")
    options.add_argument("--roster", type=int, default=100_000, help="lines of the second roster")
    args = options.parse_args()
    enrolled = max(1, args.accounts // 10) if args.enrolled is None else args.enrolled
    queries = max(1, args.accounts // 10) if args.queries is None else args.queries
    with tempfile.TemporaryDirectory(dir=".", prefix=".bench-") as folder:
        bench, large = Bench(Path(folder), args.accounts - enrolled, enrolled, queries), Costs({})
        bench.run()
        files = {p.name: p.stat().st_size for p in (bench.root / "window" / "public").glob("*.json")}
        header = files.pop("header.json")
        sizes = {"header.json": header, "window": sum(files.values())}
        rosters(large, bench.root, args.roster, bench.embedder)
    emit({"accounts": args.accounts, "enrolled": enrolled, "queries": queries, "bytes": sizes,
          **by_figure(bench.costs.of), "roster": {"accounts": args.roster, **by_figure(large.of)}},
         as_json=args.json)  # fmt: skip
    return 0


if __name__ == "__main__":
    sys.exit(main())
