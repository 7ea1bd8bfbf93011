"""A window of many records at its provider: `python -m bench.window --records 1000 10000 [--questions FILE] [--json]`.

A provider answers N questions of N / 10 accounts. It then does all work that grows with the records: it reads the
window back, closes it with the coalition proof that its policy asks for, writes the window file and answers a
challenge. A verifier draws the challenge and verifies.

Stand-ins replace the records' proofs, as in `bench.verify`. The coalition proof is real up to its maximum of 65,535
records, and left out beyond it. The questions are lines of a file (`squad_dev_v1.1_questions.jsonl.gz`), or made up. If
the file has too few questions, the script makes up the rest. Each step is measured in this process. Target: close to
verify in 60 s at 10^4 records.
"""

from __future__ import annotations

import gzip
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from random import Random

from bench.accounts import ORIGIN, TENANT, WINDOW, Bench
from bench.common import by_figure, emit, parser
from bench.service import text
from bench.verify import STAND_IN, trust_text
from rag_audit._internal.canonical import jcs
from rag_audit.attest.query import Query
from rag_audit.attest.window import Window
from rag_audit.commit.draft import (
    Embedding,
    EstimatorParameters,
    Period,
    PrivacyTarget,
    Tenants,
    draft_policy,
)
from rag_audit.log.note import sign_note
from rag_audit.log.signing import SigningKey
from rag_audit.models.records import request_message
from rag_audit.models.requests import Answer, SignedRequest
from rag_audit.models.roster import add_to_roster
from rag_audit.models.trust import Trust
from rag_audit.models.windowfile import WindowFile
from rag_audit.retrieval.query import OpenedQuery
from rag_audit.verify.drawing import draw_challenge

GROUP = 256
"""The number of requests in one batch."""
MAX_CERTIFIED = 65_535
FEWEST = 4


class Large(Bench):
    """One window of a tenant, with a provider, a witness and a verifier in one process."""

    def __init__(self, root: Path, records: int, questions: Iterator[str]) -> None:
        accounts = max(FEWEST, records // 10)
        super().__init__(root, accounts, 0, records)
        self.questions = questions
        self.policy = draft_policy(
            Period(WINDOW, self.clock() + 3_600_000, self.clock() + 30 * 86_400_000),
            Tenants({TENANT: 1000}, accounts_max=accounts),
            PrivacyTarget(n=-(-records // accounts), k_max=8, eps_acc="14"),
            embedding=Embedding(self.embedder.dimension),
            estimator=EstimatorParameters(
                coalition_proof=("scan", records) if records <= MAX_CERTIFIED else None
            ),
        )

    def run(self) -> None:
        """Run all steps."""
        add_to_roster(self.root / "roster.json", *(line for _, line in self.accounts))
        window = self._open()
        self.costs.step("answers", lambda: self._answer_all(window))
        window.shut()
        window = self.costs.step(
            "resume", lambda: Window.resume(window.directory, key=self.key, clock=self.clock)
        )
        with window:
            for record in window.records:
                for name in STAND_IN:
                    window.publisher.proof_path(record, name).write_bytes(jcs(STAND_IN[name]))
            self.costs.step("close", window.close)
            self._end(window)
            self.costs.step("export", window.export)
            note = self.costs.step("challenge", lambda: self._challenge(window))
            self.costs.step("prove, all stored", lambda: window.answer_challenge(note))
            self._verify(window)

    def _answer_all(self, window: Window) -> None:
        digest, rng = self._publication(window).header_digest(), Random(3)
        accounts, kept = len(self.accounts), False
        step = min(GROUP, accounts)  # a batch answers at most one question of each account
        for start in range(0, self.queries, step):
            queries = []
            for number in range(start, min(start + step, self.queries)):
                (key, line), i = self.accounts[number % accounts], number // accounts + 1
                requested = OpenedQuery(next(self.questions), rng.randbytes(32), self.embedder)
                message = request_message(ORIGIN, digest, TENANT, line.account, i, requested.hq)
                request = SignedRequest(
                    type="request", v=1, origin=ORIGIN, header=digest, tenant=TENANT, account=line.account, i=i,
                    hq=requested.hq, sig=key.sign(message).hex(), query=requested.text, salt=requested.salt.hex(),
                )  # fmt: skip
                queries.append(Query(request, requested))
            for outcome in window.answers.answer(queries):
                if not isinstance(outcome, Answer):
                    raise SystemExit(f"refused: {outcome}")
                if not kept:
                    self._keep(outcome.receipt)
                    kept = True

    def _challenge(self, window: Window) -> str:
        """Draw the verifier's challenge and sign it."""
        witness = SigningKey.load(self.root / "witness" / "key")
        trust = Trust.from_toml(trust_text(self.key, [witness], [], self.embedder).encode(), source="trust")
        key = SigningKey.generate("verifier")
        return str(
            sign_note(
                draw_challenge(WindowFile.load(window.context.layout.public.folder), trust, key).text(), key
            )
        )


def questions(path: Path | None) -> Iterator[str]:
    """Yield the questions of a file, then made-up questions."""
    if path is not None:
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            yield from (json.loads(line)["question"] for line in lines)
    rng = Random(2)
    while True:
        yield text(rng)


def main() -> None:
    """Measure and print."""
    options = parser(__doc__)
    options.add_argument("--records", type=int, nargs="+", default=[1000, 10_000])
    options.add_argument("--questions", type=Path, help="a gzipped file of JSON lines, each with a question")
    args = options.parse_args()
    windows = {}
    for records in args.records:
        with tempfile.TemporaryDirectory(dir=".", prefix=".bench-") as folder:
            bench = Large(Path(folder), records, questions(args.questions))
            bench.run()
            public = bench.root / "window" / "public"
            size = sum(p.stat().st_size for p in public.glob("**/*.json"))
        windows[str(records)] = {"bytes": size, **by_figure(bench.costs.of)}
    emit({"records": args.records, "windows": windows}, as_json=args.json)


if __name__ == "__main__":
    main()
