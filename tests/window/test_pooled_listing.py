"""Windows with pooled listing: chains, answers from several threads with a kill, and one malicious provider a check."""

from __future__ import annotations

import itertools
import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rag_audit.account.account import Account
from rag_audit.attest.answers import Answers
from rag_audit.attest.listed_rows import ListedRowSets
from rag_audit.attest.state import LedgerState
from rag_audit.attest.window import Window
from rag_audit.commit.carrying import Continuing
from rag_audit.errors import ExitCode, RequestRefused
from rag_audit.mechanisms.base import TableShape
from rag_audit.mechanisms.pooled_listing import PooledListing, PoolRules
from rag_audit.mechanisms.sampling import Sampling
from rag_audit.models.chain import ClosedWindow
from rag_audit.models.receipts import contradictions, open_receipt
from rag_audit.models.records import CountersignedReceipt, QueryRecord, SlotKey
from rag_audit.models.windowfile import WindowFile
from rag_audit.relation.bernoulli import PROBABILITY_RANGE
from rag_audit.relation.field import to_hex
from rag_audit.relation.native import hash_elements_list, topk_elements
from rag_audit.report.cumulative import compose, load_window
from rag_audit.report.verification import ReportedVerdict, verify_window
from rag_audit.retrieval.serving.pooled_listing import PooledListingServing, PooledRules, reference_answer
from tests.window.pooled_asker import ask_all, question
from tests.window.simulator import QUESTIONS, TEXTS, Service
from tests.window.test_document_tables import FIRST, SECOND, THIRD, Texts, passages

KEEP = 7 * PROBABILITY_RANGE // 10
SHAPE = TableShape(rows=10, positions_per_document=2, fresh_rows=3)
POOLED = PooledListing(keep=KEEP, rules=PoolRules(0, 60, "0.3"), documents=SHAPE)
CERTAIN = replace(POOLED, keep=PROBABILITY_RANGE - 1)
"""Samples every document, so that an answer has the relevant ones whatever the beacon."""
MEDICINE = Sampling(keep=KEEP, documents=SHAPE)
ACCEPTED: dict[str, Any] = {
    "mechanisms": ["pooled-listing", "sampling"],
    "max_exclusion_factor": "20",
    "min_keep": "0.7",
    "max_abandoned": 1,
    "max_empty": 1,
}
FAIL = ExitCode.FAIL
ASKED = (("law-1", 0), ("law-2", 1), ("law-1", 1), ("law-2", 2), ("law-1", 2))
"""The questions of a window, by account and number of `QUESTIONS`, in ledger order."""


class PooledChain:
    """Windows of one origin with pooled listing, one after another."""

    def __init__(self, root: Path, *, accounts: int = 0) -> None:
        self.service = Service(root)
        for number in range(3, 3 + accounts):
            name = f"law-{number}"
            folder = root / "accounts" / name
            self.service.accounts[name] = Account.create(folder, name, "law")
        self.windows: list[Path] = []

    def open(self, texts: Texts, **changes: Any) -> Window:
        number = len(self.windows) + 1
        previous = None
        if self.windows:
            before = WindowFile.load(self.windows[-1] / "public")
            previous = ClosedWindow.of(before, field="previous").as_previous()
        window = self.service.commit(
            f"w-{number}",
            previous=previous,
            documents={"law": passages(texts), "medicine": passages({"m": TEXTS["medicine"][:2]})},
            continuing=Continuing(self.windows[::-1], lambda line: None),
            **{
                "window": f"w-{number}",
                "capacities": {"law": 16, "medicine": 16},
                "system": "scan",
                "mechanisms": {"law": POOLED, "medicine": MEDICINE},
                **changes,
            },
        )
        self.windows.append(window.directory)
        self.service.cosign_header(window)
        self.service.clock.now = window.header.opens_at
        return window

    def run(self, texts: Texts, **changes: Any) -> Path:
        """A window from header to trailer, with its proofs."""
        with self.open(texts, **changes) as window:
            for account, number in ASKED:
                self.service.ask(window, account, QUESTIONS["law"][number])
            self.finish(window)
        return window.directory

    def finish(self, window: Window) -> None:
        self.service.ask(window, "medicine-1", QUESTIONS["medicine"][0])
        self.service.finish(window)
        window.answer_challenge(self.service.challenge(window))

    def resumed(self, number: int) -> Window:
        return Window.resume(self.windows[number - 1], key=self.service.key, clock=self.service.clock)

    def verify(self, number: int) -> ReportedVerdict:
        folder = self.windows[number - 1]
        with self.resumed(number) as window:
            receipts = self.service.receipts(window, folder / "receipts")
            trust = self.service.trust(window.policy, **ACCEPTED)
        previous = [p / "public" for p in self.windows[: number - 1]]
        return verify_window(folder / "public", trust=trust, receipts=[receipts], previous=previous)


@pytest.fixture(scope="session")
def pooled(tmp_path_factory: pytest.TempPathFactory) -> PooledChain:
    """Three windows: documents are edited, deleted, added, and one returns."""
    result = PooledChain(tmp_path_factory.mktemp("pooled"))
    for texts in (FIRST, SECOND, THIRD):
        result.run(texts)
    return result


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[PooledChain]:
    yield PooledChain(tmp_path)


def law_records(window: Window) -> list[QueryRecord]:
    return [r for r in window.records if r.tenant == "law"]


def recompute(window: Window) -> list[set[int]]:
    """The set after each record of the tenant, recomputed in exact integers from the retained questions; every record
    must commit to it, list its rows, and hash its places."""
    context, samples = window.context, window.samples
    mechanism = context.mechanism("law")
    assert isinstance(mechanism, PooledListing)
    rows, table = samples.rows("law"), samples.proved_table("law")
    index = context.tenant("law").index
    rules = PooledRules(mechanism.rules.threshold, mechanism.longest, mechanism.window)
    listed: list[int] = table.listed_at_first().tolist()
    before, result = None, []
    for record in law_records(window):
        retained = context.retained(record)
        query = retained.opened(context.embedder)
        slot = SlotKey(record.tenant, record.account, record.i)
        listed, places = reference_answer(
            index.scores(query.vector).tolist(), table.row_of_position.tolist(), rules, listed=listed,
            kept=rows.kept.tolist(), chance=context.drawn(slot).tolist(),
        )  # fmt: skip
        assert [p for p in places if p is not None] == list(retained.positions)
        secret = context.secrets.listed_rows_secret(slot, record.hq, before)
        constants = context.public("law").constants
        assert context.system("law").commit_listed(constants, bytes(listed), secret) == record.listed_rows
        shown = [index.capacity if p is None else p for p in places]
        assert to_hex(hash_elements_list(*topk_elements(query.salts.top_k, shown))) == record.htopk
        before = record.listed_rows
        result.append({row for row, bit in enumerate(listed) if bit})
    return result


def test_three_windows_pass(pooled: PooledChain) -> None:
    for number in (1, 2, 3):
        verdict = pooled.verify(number)
        assert verdict.passed, (number, verdict.deciding)
        assert "law:pooled-listing" in verdict.line
        assert {"ledger.listed_rows", "proof.chain", "proof.valid.law"} <= {c.id for c in verdict.checks}
        figures = verdict.figures["tenants"]["law"]
        assert 0 < float(figures["eps"]) < 10  # medicine has no epsilon, so the window has none
        # 1/((1 - 0.7)(1 - 0.3)^W), for all nine queries of the tenant in each of the W windows so far, whatever
        # the size of the coalition.
        assert figures["exclusion_factor"] == figures["exclusion_factor_all_accounts"]
        assert float(figures["exclusion_factor"]) == pytest.approx(1 / (0.3 * 0.7**number), rel=0.01)


def test_a_chain_of_one_document_and_one_query(fresh: PooledChain) -> None:
    """The second window carries the only document's bit; the other row stays empty."""
    shape = TableShape(rows=2, positions_per_document=2, fresh_rows=1)
    mechanisms = {"law": replace(POOLED, documents=shape), "medicine": MEDICINE}
    for _ in range(2):
        with fresh.open({"b": FIRST["b"]}, n=1, mechanisms=mechanisms) as window:
            fresh.service.ask(window, "law-1", QUESTIONS["law"][0])
            recompute(window)
            fresh.finish(window)
    for number in (1, 2):
        verdict = fresh.verify(number)
        assert verdict.passed, verdict.deciding


def test_answers_follow_one_growing_set(pooled: PooledChain) -> None:
    for number in (1, 2, 3):
        with pooled.resumed(number) as window:
            sets = recompute(window)
            records = law_records(window)
        assert [(r.account, r.i) for r in records] == [
            ("law-1", 1),
            ("law-2", 1),
            ("law-1", 2),
            ("law-2", 2),
            ("law-1", 3),
        ]
        assert all(earlier <= later for earlier, later in itertools.pairwise(sets))
        assert len({r.listed_rows for r in records}) == len(records)


def test_windows_add_up(pooled: PooledChain) -> None:
    windows = [load_window(folder / "public") for folder in pooled.windows]
    one, three = compose(windows[:1]), compose(windows)
    assert three.bound.eps == one.bound.eps
    # One persistent bit of probability 0.7 for the chain, and chance in each window.
    assert one.exclusion_factor is not None and three.exclusion_factor is not None
    medicine = compose(windows[:1])
    assert medicine.exclusion_factor == one.exclusion_factor
    assert three.exclusion_factor == pytest.approx(1 / (0.3 * 0.7**3), rel=2e-3)


def test_a_repeated_request_gets_its_answer_again(fresh: PooledChain) -> None:
    with fresh.open(FIRST) as window:
        first = fresh.service.ask(window, "law-1", QUESTIONS["law"][0])
        fresh.service.ask(window, "law-2", QUESTIONS["law"][1])
        record = law_records(window)[0]
        retained = window.context.retained(record)
        assert [d.position for d in first.documents] == list(retained.positions)


def test_a_request_that_starts_from_an_older_set_enters_no_ledger(
    fresh: PooledChain, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An answer whose predecessor failed after the selection would fork the chain."""
    with fresh.open(FIRST) as window:
        fresh.service.ask(window, "law-1", QUESTIONS["law"][0])
        stale = ListedRowSets.start(window.answers._listed, "law")
        fresh.service.ask(window, "law-2", QUESTIONS["law"][1])
        monkeypatch.setattr(ListedRowSets, "start", lambda self, tenant: stale)
        size = len(window.state.entries)
        with pytest.raises(RequestRefused, match="an earlier request of the tenant failed") as caught:
            fresh.service.ask(window, "law-1", QUESTIONS["law"][1])
        assert caught.value.reason == "unavailable" and len(window.state.entries) == size
        monkeypatch.undo()
        fresh.service.ask(window, "law-1", QUESTIONS["law"][1])
        recompute(window)


def test_a_record_that_was_not_inserted_stops_no_later_request(fresh: PooledChain) -> None:
    """The store refuses a record after its entry was made, and a record of another tenant takes its index."""
    with fresh.open(FIRST) as window:
        fresh.service.ask(window, "law-1", QUESTIONS["law"][0])
        (first,) = law_records(window)
        draft = first.model_copy(update={"listed_rows": "11" * 32})
        with pytest.raises(RequestRefused) as caught:
            window.state.begin(draft, slot=("law-1", 1), private=b"", preceding=first.listed_rows)()
        assert caught.value.reason == "slot-used"
        fresh.service.ask(window, "medicine-1", QUESTIONS["medicine"][0])
        fresh.service.ask(window, "law-2", QUESTIONS["law"][1])
        recompute(window)


def concurrent(chain: PooledChain, requests: int, accounts: int, kill_after: int, tmp_path: Path) -> Window:
    """A window in which threads of a process ask until the process is killed; this process asks the rest."""
    changes = {"n": requests // accounts, "accounts_max": accounts, "k_max": accounts}
    with chain.open(FIRST, **changes) as window:
        folder = window.directory
    key = tmp_path / "provider.skey"
    chain.service.key.save(key)
    command = [sys.executable, "-m", "tests.window.pooled_asker", str(folder), str(key),
               str(chain.service.root / "accounts"), str(chain.service.clock())]  # fmt: skip
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as asker:
        assert asker.stdout is not None
        seen = 0
        for _ in asker.stdout:
            seen += 1
            if seen == kill_after:
                asker.send_signal(signal.SIGKILL)
                break
    assert seen == kill_after
    window = chain.resumed(len(chain.windows))
    assert kill_after <= len(law_records(window)) < requests
    own = [a for a in chain.service.accounts.values() if a.tenant == "law"]
    assert ask_all(window, own, chain.service.key.verifier) == []
    assert len(law_records(window)) == requests
    return window


def check_concurrent(tmp_path: Path, requests: int, accounts: int, kill_after: int) -> None:
    chain = PooledChain(tmp_path / "service", accounts=accounts - 2)
    with concurrent(chain, requests, accounts, kill_after, tmp_path) as window:
        sets = recompute(window)
        assert len(sets) == requests
        order = [r.account for r in law_records(window)]
        assert order != sorted(order)  # the accounts asked at once
        chain.finish(window)
    verdict = chain.verify(1)
    assert verdict.passed, verdict.deciding


def test_requests_of_several_threads_with_a_kill_give_one_chain(tmp_path: Path) -> None:
    check_concurrent(tmp_path, requests=60, accounts=6, kill_after=25)


@pytest.mark.full
def test_500_requests_of_several_threads_with_a_kill_give_one_chain(tmp_path: Path) -> None:
    check_concurrent(tmp_path, requests=500, accounts=10, kill_after=230)


# -- malicious providers -----------------------------------------------------------------------------------------------


def start_from(monkeypatch: pytest.MonkeyPatch, base: dict[int, int]) -> None:
    """A provider whose record with a number (of those of the tenant, from 0) starts from the set after fewer records
    than precede it, in its ledger and in its proofs.

    :param base: for each such record, how many records its set counts
    """
    place = LedgerState.place

    def start(self: ListedRowSets, tenant: str) -> tuple[str | None, Any]:
        records = self._context.state.of_tenant[tenant]
        count = base.get(len(records), len(records)) if tenant == "law" else len(records)
        before = None if count == 0 else records[count - 1].listed_rows
        return before, self.before(tenant, count)

    def moved(self: LedgerState, record: QueryRecord) -> int:
        actual = place(self, record)
        return base.get(actual, actual) if record.tenant == "law" else actual

    monkeypatch.setattr(ListedRowSets, "start", start)
    monkeypatch.setattr(LedgerState, "place", moved)
    monkeypatch.setattr(LedgerState, "_chain", lambda self, record, preceding: None)


@pytest.mark.parametrize(
    "base",
    [
        pytest.param({4: 0}, id="cleared: a record starts from no listed row"),
        pytest.param({4: 3}, id="forked: two records start from one set"),
        pytest.param({4: 1}, id="skipped: the sets of three records are left out"),
    ],
)
def test_a_set_other_than_the_preceding_records_fails(
    fresh: PooledChain, monkeypatch: pytest.MonkeyPatch, base: dict[int, int]
) -> None:
    with monkeypatch.context() as patched:
        start_from(patched, base)
        fresh.run(FIRST)
    verdict = fresh.verify(1)
    assert {c.id for c in verdict.checks if c.status.exit_code is FAIL} == {"proof.valid.law"}
    (check,) = [c for c in verdict.checks if c.id == "proof.valid.law"]
    assert "1 invalid proof" in str(check.actual)


def test_two_requests_of_a_batch_take_effect_one_by_one(fresh: PooledChain) -> None:
    """Requests that arrive at once are one batch, and the second starts from the set that the first produced."""
    with fresh.open(FIRST) as window:
        from rag_audit.attest.query import Query
        from rag_audit.models.publication import Publication

        publication = Publication.load(window.directory / "public")
        queries = []
        for account in ("law-1", "law-2"):
            request = fresh.service.accounts[account].request(publication, QUESTIONS["law"][0])
            query = Query.parse(json.loads(request.canonical()), window.context.embedder)
            window.answers.receive(query)
            queries.append(query)
        fresh.service.clock.advance(7)
        outcomes = window.answers.answer(queries)
        assert all(getattr(outcome, "type", None) == "answer" for outcome in outcomes), outcomes
        first, second = law_records(window)
        assert queries[0].chain == (None, first.listed_rows)
        assert queries[1].chain == (first.listed_rows, second.listed_rows)
        recompute(window)


def test_the_successor_of_a_failed_request_of_its_batch_is_refused(
    fresh: PooledChain, monkeypatch: pytest.MonkeyPatch
) -> None:
    with fresh.open(FIRST) as window:
        from rag_audit.attest.query import Query
        from rag_audit.models.publication import Publication

        publication = Publication.load(window.directory / "public")
        queries = []
        for account in ("law-1", "law-2"):
            request = fresh.service.accounts[account].request(publication, QUESTIONS["law"][0])
            query = Query.parse(json.loads(request.canonical()), window.context.embedder)
            window.answers.receive(query)
            queries.append(query)
        seal = Answers._seal

        def failing(self: Answers, query: Any) -> None:
            if query.account == "law-1":
                raise OSError("no space left")
            seal(self, query)

        monkeypatch.setattr(Answers, "_seal", failing)
        fresh.service.clock.advance(7)
        first, second = window.answers.answer(queries)
        assert isinstance(first, OSError) and getattr(second, "reason", None) == "unavailable"
        assert law_records(window) == []


def test_more_records_than_m_fail(fresh: PooledChain, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three accounts with three queries each may have nine records; the provider answers a tenth."""
    with fresh.open(FIRST, accounts_max=2) as window:
        with monkeypatch.context() as patched:
            patched.setattr(Answers, "_check_turn", lambda self, query: None)
            for number in range(4):
                for account in ("law-1", "law-2"):
                    fresh.service.ask(window, account, question(account, number))
        fresh.finish(window)
    verdict = fresh.verify(1)
    failed = {c.id: c for c in verdict.checks if c.status.exit_code is FAIL}
    assert {*failed} == {"ledger.limit", "ledger.listed_rows"}
    assert failed["ledger.listed_rows"].actual == "tenant law has 8 records, and its maximum m is 6"


def test_a_relevant_row_that_is_left_out_has_no_proof(
    fresh: PooledChain, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The prover computes the set from the scores; native tests have provers that lie about each column."""
    answers = PooledListingServing._answer

    def omitting(self: PooledListingServing, *args: Any) -> Any:
        result = answers(self, *args)
        return type(result)(args[3].copy(), (None,) * len(result.places))

    with fresh.open(FIRST, mechanisms={"law": CERTAIN, "medicine": MEDICINE}) as window:
        with monkeypatch.context() as patched:
            patched.setattr(PooledListingServing, "_answer", omitting)
            fresh.service.ask(window, "law-1", QUESTIONS["law"][0])
        chance = window.context.drawn(SlotKey("law", "law-1", 1))
        rows = window.samples.rows("law")
        assert rows.kept.any() and len(chance) == SHAPE.rows
        fresh.service.finish(window)
        with pytest.raises(Exception, match="no proof for"):
            window.answer_challenge(fresh.service.challenge(window))


def test_a_receipt_with_a_text_in_an_empty_place_contradicts_the_record(
    fresh: PooledChain, tmp_path: Path
) -> None:
    """htopk says which places are empty, so a receipt cannot open another position there."""
    with fresh.open(FIRST, top_k=4, mechanisms={"law": CERTAIN, "medicine": MEDICINE}) as window:
        for account, number in ASKED:
            fresh.service.ask(window, account, QUESTIONS["law"][number])
        fresh.service.finish(window)
        folder = fresh.service.receipts(window, tmp_path / "receipts")
        tenant, policy = window.context.tenant("law").entry, window.policy
        mechanism = window.context.mechanism("law")
        header, digest = window.header, window.header_digest

    def faults(positions: list[int], documents: list[Any]) -> str:
        body = receipt.body.model_copy(update={"positions": positions, "documents": documents})
        return "; ".join(contradictions(replace(receipt, body=body), tenant, policy))

    empty_places = 0
    for path in sorted(folder.glob("*")):
        countersigned = CountersignedReceipt.parse(json.loads(path.read_text()), field=path.name)
        receipt = open_receipt(
            countersigned.receipt, origin=header.origin, header_digest=digest,
            log_key=fresh.service.key.verifier, field=path.name,
        )  # fmt: skip
        if receipt.record.tenant != "law":
            continue
        assert contradictions(receipt, tenant, policy) == []
        shown, openings = receipt.body.positions, receipt.body.documents
        assert shown  # chance apart, the relevant passages
        spare = [p for p in range(16) if p not in shown]
        if len(shown) < mechanism.longest:
            assert "the positions do not open htopk" in faults([*shown, spare[0]], [*openings, openings[0]])
            empty_places += 1
        assert "the positions do not open htopk" in faults(shown[:-1], openings[:-1])
        assert "where K = 4 is the maximum" in faults([*shown, *spare][:5], [openings[0]] * 5)
        for wrong in ([*shown[:-1], 16], [shown[0], shown[0]]):
            assert "are not different positions of the index" in faults(wrong, [openings[0]] * len(wrong))
        hidden = openings[0].model_copy(update={"salt": None})
        assert "null salt" in faults(shown, [hidden, *openings[1:]])
        bare = replace(receipt, record=receipt.record.model_copy(update={"listed_rows": None}))
        assert "the record belongs to another mechanism than the tenant's mechanism" in contradictions(
            bare, tenant, policy
        )
    assert empty_places
