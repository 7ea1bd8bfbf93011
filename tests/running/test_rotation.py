"""Three windows of a run in a row, for every mechanism: with and without questions, enrolments and new keys.

The clock is the test's, so nothing here depends on how busy the machine is. Witness w1 is asked over HTTP and sees
closing records alone; witness w2 reads the folder and decides from all entries. Both have to come to the counts of the
provider.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from rag_audit._internal.canonical import jcs
from rag_audit.account.account import Account
from rag_audit.commit.tables import load_table
from rag_audit.errors import ExitCode
from rag_audit.log.merging import merge_signatures
from rag_audit.log.note import parse_note
from rag_audit.mechanisms import Mechanism
from rag_audit.mechanisms.base import TableShape
from rag_audit.mechanisms.none import Exact
from rag_audit.mechanisms.pooled_listing import PooledListing, PoolRules
from rag_audit.mechanisms.sampling import Sampling
from rag_audit.models.chain import ClosedWindow, Unanswered
from rag_audit.models.enrolling import EnrolmentRequest
from rag_audit.models.publication import Publication
from rag_audit.models.windowfile import WindowFile
from rag_audit.relation.bernoulli import PROBABILITY_RANGE
from rag_audit.report.cumulative import compose, load_window
from rag_audit.report.verification import ReportedVerdict, verify_window
from tests.running.play import Play
from tests.running.test_asking import server_of
from tests.running.test_joining import Joined
from tests.window.simulator import ORIGIN, QUESTIONS, TEXTS

KEEP = 9 * PROBABILITY_RANGE // 10
DOCUMENTS = {tenant: texts[:4] for tenant, texts in TEXTS.items()}
MECHANISMS: Mapping[str, Mechanism | None] = {
    "noise": None,  # as for services that name no mechanism
    "sampling": Sampling(keep=KEEP),
    "documents": Sampling(keep=KEEP, documents=TableShape(8, 2, 2)),
    "pooled": PooledListing(keep=KEEP, rules=PoolRules(0, 60, "0.3"), documents=TableShape(8, 2, 2)),
    "none": Exact(),
}
REQUIRE: dict[str, Any] = {
    "mechanisms": ["noise", "sampling", "pooled-listing", "none"],
    "max_exclusion_factor": "30",
    "min_keep": "0.5",
    "max_K_share": "0.5",
}
Plan = Sequence[str]
"""What happens in each window: `q`, law-1 asks; `r`, it asks for a new key, which is approved; a digit, the account
law-DIGIT is enrolled and asks; the digit with a dash, it is enrolled and does not ask."""
PLANS: Mapping[str, Plan] = {
    "always asked": ("q", "q", "q"),
    "a quiet day": ("q", "", "q"),
    "quiet at first": ("", "", "q"),
    "everything": ("qr7", "8-", "q7"),
    "new keys on quiet days": ("r", "r9-", "qr"),
}
DEFAULT = [
    ("noise", "a quiet day"),
    ("sampling", "everything"),
    ("documents", "everything"),
    ("pooled", "everything"),
    ("none", "a quiet day"),
]
REST = [(mechanism, plan) for plan in PLANS for mechanism in MECHANISMS if (mechanism, plan) not in DEFAULT]


@dataclass
class Rotation:
    """A run with both kinds of witness, and who asks it."""

    play: Play
    joined: Joined
    questions: dict[str, int] = field(default_factory=dict)
    following: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """the documents that the next window reads"""

    def settle(self, window: str) -> None:
        """Let the run, w1 over HTTP and w2 in the folder do what each can, until nothing changes."""
        for _ in range(20):
            acts = self.play.settle(self.joined.run)
            if not self._look(window) and not acts:
                return
        raise AssertionError(self.play.said)

    def _look(self, window: str) -> bool:
        """What w2 does when it looks at a window: the cosignature, or the nonce, that is missing."""
        public, witness = self.play.public(window), self.play.service.witnesses["w2"]
        if not (public / "header.json").exists():
            return False
        file = WindowFile.load(public) if (public / "window.json").exists() else None
        values: list[Any] = [Publication.load(public).header] if file is None else list(file.entries)
        size, notes = len(values), public / "notes"
        if file is not None and values[-1]["type"] not in ("enrolment", "trailer"):
            return False
        notes.mkdir(exist_ok=True)
        if not (cosigned := notes / f"cosign-{size}-w2.txt").exists():
            if values[-1]["type"] == "enrolment":
                from tests.witness.conftest import Ledger

                ledger = Ledger(self.play.service.key, entries=[jcs(v) for v in values])
                known = witness.last(Publication.load(public).parsed_header().log)
                assert known is not None
                text = (public / f"checkpoint-{size}.txt").read_text()
                note = witness.cosign(text, log_key=self.play.service.key.verifier,
                                      consistency=ledger.consistency(known[0]))  # fmt: skip
                cosigned.write_text(str(note))
            else:
                self.play.witness(window, "w2")
            self.play.clock.advance(1_000)
            return True
        requested = values[-1]["type"] in ("header", "enrolment")
        if (
            requested
            and (notes / f"cosign-{size}-w1.txt").exists()
            and not (notes / f"beacon-{size}-w2.txt").exists()
        ):
            self._reveal(public, values, size)
            return True
        return False

    def _reveal(self, public: Path, values: list[Any], size: int) -> None:
        from tests.witness.conftest import Ledger

        key, witnesses = self.play.service.key.verifier, self.play.service.witnesses
        ledger, keys = (
            Ledger(self.play.service.key, entries=[jcs(v) for v in values]),
            [w.vkey for w in witnesses.values()],
        )
        texts = [public / f"checkpoint-{size}.txt", *(public / "notes").glob(f"cosign-{size}-*.txt")]
        merged = merge_signatures([parse_note(path.read_text()) for path in texts], [key, *keys])
        note = witnesses["w2"].reveal(merged, ledger.entries[-1], log_key=key, witnesses=keys, quorum=2, index=size - 1,
                                      path=ledger.tree.inclusion_path(size - 1))  # fmt: skip
        (public / "notes" / f"beacon-{size}-w2.txt").write_text(str(note))

    def one(self, window: str, plan: str) -> None:
        """A window from its opening to its cosigned end."""
        self.settle(window)
        self.play.documents(self.following)
        header = Publication.load(self.play.public(window)).parsed_header()
        self.play.clock.now = max(self.play.clock.now, header.opens_at)
        self.settle(window)
        for at, what in enumerate(plan):
            if what == "q":
                self.ask(window, "law-1")
            elif what == "r":
                self.renew(window)
            elif what.isdigit():
                self.enrol(window, f"law-{what}", asks=plan[at + 1 : at + 2] != "-")
        self.play.clock.now = header.closes_at + 1
        self.settle(window)

    def ask(self, window: str, name: str) -> None:
        number = self.questions[name] = self.questions.get(name, -1) + 1
        self.play.ask(self.joined.run, window, name, QUESTIONS["law"][number % 3])

    def renew(self, window: str) -> None:
        """A new key for law-1, signed by the old one, which counts from the next window on."""
        account = self.play.service.accounts["law-1"]
        account.keys.renew("law-1")
        request = EnrolmentRequest.sign(account.roster_entry, account.keys.newest, origin=ORIGIN, window=window,
                                        previous=account.keys.before)  # fmt: skip
        assert self.joined.run.intake is not None
        self.joined.run.intake.answer(json.loads(request.canonical()))
        self.joined.decide("approve", "--account", "law-1")
        self.settle(window)

    def enrol(self, window: str, name: str, *, asks: bool) -> None:
        """An account that joins, unless it is on the roster."""
        roster = Publication.load(self.play.public(window)).roster
        if name not in [line["account"] for line in roster if isinstance(line, dict)]:
            self.joined.ask(name, window)
            self.joined.decide("approve", "--account", name)
            self.settle(window)
            self.play.service.accounts[name] = Account(self.play.root / "accounts" / name)
        if asks:
            self.ask(window, name)

    def verdict(self, number: int, receipts: Path) -> ReportedVerdict:
        """Verify a window with all windows before it. The verifier knows law-1's key of that window."""
        public = self.play.public(f"w-{number}")
        publication = Publication.load(public)
        line = next(
            entry for entry in publication.roster if isinstance(entry, dict) and entry["account"] == "law-1"
        )
        receipts.mkdir()
        for account in self.play.service.accounts.values():
            account.export_receipts(publication, receipts, disclose=True)
        trust = self.play.service.trust(publication.parsed_policy(), independent=("law-1",), **REQUIRE)
        known = [a.model_copy(update={"key": line["key"]}) for a in trust.account]
        return verify_window(
            WindowFile.load(public),
            trust=trust.model_copy(update={"account": known}),
            receipts=[receipts],
            previous=[self.play.public(f"w-{before}") / "window.json" for before in range(1, number)],
        )


def questions_in(plan: str) -> int:
    return plan.count("q") + sum(c.isdigit() and plan[at + 1 : at + 2] != "-" for at, c in enumerate(plan))


@pytest.mark.parametrize(
    ("mechanism", "plan"),
    [*DEFAULT, *(pytest.param(*case, marks=pytest.mark.full) for case in REST)],
    ids=lambda value: value.replace(" ", "-"),
)
def test_three_windows_follow_each_other(tmp_path: Path, mechanism: str, plan: str) -> None:
    own = MECHANISMS[mechanism]
    policy: dict[str, Any] = {} if own is None else {"mechanisms": dict.fromkeys(DOCUMENTS, own)}
    play = Play(tmp_path, accounts_max=5, **policy)
    play.documents(DOCUMENTS)
    for path in (play.root / "nonces").glob("w1-*"):
        path.unlink()
    play.nonces(6, "w2")
    with ExitStack() as stack:
        server = stack.enter_context(server_of(play, "w1"))
        server.start()
        play.remote = {"w1": {"url": server.url}}
        joined = Joined(play)
        joined.run.stop(1)
        play.configure(enrolment={"requests": "enrolments.sqlite"}, serve={"http": "127.0.0.1:0"},
                       schedule={"windows": 3}, proving={"records": "all"})  # fmt: skip
        joined.run = play.supervisor()
        rotation = Rotation(play, joined)
        for number, happens in enumerate(PLANS[plan], 1):
            # The first document is missing in the second window and returns in the third.
            changed = {tenant: texts[number % 2 :] for tenant, texts in DOCUMENTS.items()}
            rotation.following = changed if mechanism in ("documents", "pooled") else DOCUMENTS
            rotation.one(f"w-{number}", happens)
        for number in (1, 2, 3):
            rotation.settle(f"w-{number}")
        assert joined.run.finished, play.said
        joined.run.stop(1)
    empty = 0
    for number, happens in enumerate(PLANS[plan], 1):
        header = Publication.load(play.public(f"w-{number}")).parsed_header()
        assert Unanswered.before(header) == Unanswered(0, empty), number
        result = rotation.verdict(number, tmp_path / f"receipts-{number}")
        assert result.figures["empty"] == empty and result.figures["abandoned"] == 0
        requested = questions_in(happens)
        if requested:
            assert result.passed, (result.line, result.deciding)
            assert f" records={requested} " in result.line and f" abandoned=0 empty={empty} " in result.line
        else:
            assert result.exit_code is ExitCode.UNMET
            assert {c.id for c in result.checks if c.status.value != "pass"} == {
                "trust.records",
                "receipt.independent",
                "trust.query_embedding",
            }
        closed = ClosedWindow.of(WindowFile.load(play.public(f"w-{number}")), field="window")
        empty = 0 if requested else empty + 1
        assert closed.unanswered == Unanswered(0, empty)
    if mechanism in ("documents", "pooled"):
        _assert_bits_persist(play)
    batch = compose([load_window(play.public(f"w-{number}")) for number in (1, 2, 3)])
    assert len(batch.windows) == 3 and batch.tenants == ["law", "medicine"]


def _assert_bits_persist(play: Play) -> None:
    """Every document keeps the bit of the first window, and each table has the documents that its window read."""
    for tenant, texts in DOCUMENTS.items():
        loaded = [load_table(play.folder / "windows" / f"w-{number}", tenant).table for number in (1, 2, 3)]
        bits = [{row.key: row.sampled for row in own.rows if row.key is not None} for own in loaded]
        assert bits[0] == bits[1] == bits[2] and len(bits[0]) == len(texts)
        present = [sum(row.positions for row in own.rows) for own in loaded]
        assert present == [len(texts), len(texts) - 1, len(texts)]
