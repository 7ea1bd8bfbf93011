"""Requests: what a provider refuses, with a signed reason, and what it repeats."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rag_audit.account.account import Account
from rag_audit.attest.window import Window
from rag_audit.cli.open import previous_window
from rag_audit.errors import (
    InvalidProof,
    NotSent,
    OtherWindow,
    RagAuditError,
    RequestRefused,
    SignatureError,
    WindowStateError,
)
from rag_audit.log.signing import SigningKey
from rag_audit.models.publication import Publication
from rag_audit.models.question import RequestSalts
from rag_audit.models.records import request_message
from rag_audit.models.requests import REFUSALS, Answer, Refusal, SignedRequest
from rag_audit.relation.field import to_hex
from rag_audit.retrieval.embedders import NothingToEmbed, get_embedder
from tests.window.simulator import CAPACITY, EMBEDDER, QUERY_TOKENS, QUESTIONS, TEXTS, Service

QUESTION, OTHER = QUESTIONS["law"][:2]


@pytest.fixture
def window(service: Service) -> Any:
    with service.open() as window:
        yield window


def signed(
    service: Service,
    window: Window,
    text: str = QUESTION,
    *,
    account: str = "law-1",
    key: SigningKey | None = None,
    **changes: Any,
) -> dict[str, Any]:
    """A request with fields of our choice, signed for them."""
    salt = bytes(range(32))
    values = {
        "type": "request", "v": 1, "origin": window.header.origin, "header": window.header_digest,
        "tenant": account.split("-")[0], "account": account, "i": 1, "query": text, "salt": salt.hex(),
    }  # fmt: skip
    values["hq"] = to_hex(
        get_embedder(EMBEDDER, query_tokens=QUERY_TOKENS).query_commitment(
            text, RequestSalts.derive(salt).query
        )
    )
    values |= changes
    message = request_message(*(values[k] for k in ("origin", "header", "tenant", "account", "i", "hq")))
    signer = key or (
        service.accounts[account].keys.newest if account in service.accounts else SigningKey.generate("x")
    )
    return {**values, "sig": signer.sign(message).hex()}


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "signed by another key": ({"key": SigningKey.generate("x")}, "bad-signature"),
    "account of another tenant": ({"tenant": "medicine"}, "wrong-tenant"),
    "unknown tenant": ({"tenant": "tax"}, "unknown-tenant"),
    "unknown account": ({"account": "law-9"}, "unknown-account"),
    "another window": ({"header": "00" * 32}, "wrong-window"),
    "another origin": ({"origin": "example.org/other"}, "wrong-window"),
    "hq of another query": ({"hq": "00" * 31 + "01"}, "query-mismatch"),
    "salt of another query": ({"salt": "11" * 32}, "query-mismatch"),
    "empty query": ({"text": ""}, "empty-query"),
    "blank query": ({"text": " \n\u200b"}, "empty-query"),
    "i beyond the next": ({"i": 2}, "out-of-order"),
    "i beyond n": ({"i": 4}, "limit"),
    "i is 0": ({"i": 0}, "malformed"),
    "i is true": ({"i": True}, "malformed"),
    "i is text": ({"i": "1"}, "malformed"),
    "hq >= r": ({"hq": "f" * 64}, "malformed"),
    "query too long": ({"text": "why? " * 10_000}, "malformed"),
    "an unknown field": ({"x": 1}, "malformed"),
    "unknown version": ({"v": 2}, "malformed"),
}


@pytest.mark.parametrize(("changes", "reason"), BAD.values(), ids=BAD.keys())
def test_a_request_that_is_refused(
    changes: dict[str, Any], reason: str, service: Service, window: Window
) -> None:
    request = signed(service, window, **changes) if "text" not in changes else signed(
        service, window, changes["text"]
    )  # fmt: skip
    before = window.checkpoint()
    refusal = window.handle(request)
    assert isinstance(refusal, Refusal)
    assert refusal.reason == reason and reason in REFUSALS
    assert service.key.verifier.verifies(bytes.fromhex(refusal.sig), refusal.message())
    assert window.checkpoint() == before and window.records == []


@pytest.mark.parametrize("value", [None, 7, "hello", [], {}, {"account": 5, "i": -1}, {"i": 2**60}])
def test_what_is_no_request_is_refused(value: Any, service: Service, window: Window) -> None:
    refusal = window.handle(value)
    assert isinstance(refusal, Refusal) and refusal.reason == "malformed"
    assert service.key.verifier.verifies(bytes.fromhex(refusal.sig), refusal.message())


def test_whitespace_is_an_empty_query_on_both_sides(service: Service, window: Window) -> None:
    publication = Publication.load(window.directory / "public")
    with pytest.raises(NothingToEmbed):
        service.accounts["law-1"].request(publication, "")


def test_the_identical_request_gets_the_identical_answer(service: Service, window: Window) -> None:
    request = signed(service, window)
    first = window.handle(request)
    service.ask(window, "medicine-1", QUESTIONS["medicine"][0])
    again = window.handle(request)
    assert isinstance(first, Answer) and isinstance(again, Answer)
    assert first.documents == again.documents
    assert len(window.records) == 2
    extra = [a.receipt.split("\n")[1] for a in (first, again)]
    assert extra[0] == extra[1]


def test_the_identical_request_is_answered_after_a_restart(service: Service, window: Window) -> None:
    request = signed(service, window)
    first = window.handle(request)
    window.shut()
    with Window.resume(window.directory, key=service.key, clock=service.clock) as again:
        repeated = again.handle(request)
        assert isinstance(first, Answer) and isinstance(repeated, Answer)
        assert repeated.documents == first.documents


def test_another_request_under_a_recorded_i_is_refused_without_computation(
    service: Service, window: Window, monkeypatch: pytest.MonkeyPatch
) -> None:
    window.handle(signed(service, window))

    def never(*_: Any, **__: Any) -> Any:
        raise AssertionError("computed for a used slot")

    monkeypatch.setattr("rag_audit.attest.query.select_positions", never)
    refusal = window.handle(signed(service, window, OTHER))
    assert isinstance(refusal, Refusal) and refusal.reason == "slot-used"
    assert len(window.records) == 1


def test_a_new_salt_under_a_recorded_i_is_another_request(service: Service, window: Window) -> None:
    window.handle(signed(service, window))
    salt = bytes(32)
    hq = to_hex(
        get_embedder(EMBEDDER, query_tokens=QUERY_TOKENS).query_commitment(
            QUESTION, RequestSalts.derive(salt).query
        )
    )
    refusal = window.handle(signed(service, window, salt=salt.hex(), hq=hq))
    assert isinstance(refusal, Refusal) and refusal.reason == "slot-used"


def test_after_n_queries_no_more(service: Service, window: Window) -> None:
    for text in QUESTIONS["law"]:
        service.ask(window, "law-1", text)
    with pytest.raises(RequestRefused) as caught:
        service.ask(window, "law-1", "And a fourth question?")
    assert caught.value.reason == "limit"
    assert len(window.records) == 3


def test_before_the_beacon_before_the_opening_and_after_the_end(service: Service) -> None:
    with service.commit() as window:
        request = signed(service, window)
        assert window.handle(request).reason == "not-open"  # type: ignore[union-attr]
        service.cosign_header(window)
        assert window.status == "active"
        assert window.handle(request).reason == "not-open"  # type: ignore[union-attr]
        service.clock.now = window.header.closes_at + 1
        assert window.handle(request).reason == "closed"  # type: ignore[union-attr]
        service.clock.now = window.header.closes_at
        assert isinstance(window.handle(request), Answer)
        window.close()
        assert window.handle(signed(service, window, account="law-2")).reason == "closed"  # type: ignore[union-attr]
        # What is recorded is still handed out: the answer may have been lost on its way.
        assert isinstance(window.handle(request), Answer)


def test_a_second_query_of_an_account_waits_for_its_first(
    service: Service, window: Window, monkeypatch: pytest.MonkeyPatch
) -> None:
    from rag_audit.attest import query as attest

    entered, leave = threading.Event(), threading.Event()
    honest = attest.select_positions

    def slow(query: Any, **options: Any) -> Any:
        if not entered.is_set():  # the first one: law-1's
            entered.set()
            assert leave.wait(20)
        return honest(query, **options)

    monkeypatch.setattr(attest, "select_positions", slow)
    answers: list[Any] = []
    first = threading.Thread(target=lambda: answers.append(window.handle(signed(service, window))))
    first.start()
    assert entered.wait(20)
    refusal = window.handle(signed(service, window, OTHER))
    other = window.handle(signed(service, window, account="law-2"))
    leave.set()
    first.join()
    assert isinstance(refusal, Refusal) and refusal.reason == "in-flight"
    assert isinstance(other, Answer) and isinstance(answers[0], Answer)


def test_accounts_ask_at_the_same_time(service: Service, window: Window) -> None:
    names = list(service.accounts)
    answers: dict[str, Any] = {}

    def run(name: str) -> None:
        answers[name] = [window.handle(signed(service, window, account=name, i=i)) for i in (1, 2, 3)]

    threads = [threading.Thread(target=run, args=(name,)) for name in names]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert all(isinstance(a, Answer) for result in answers.values() for a in result)
    assert [r.seq for r in window.records] == list(range(2, 2 + 3 * len(names)))


def test_refusals_do_not_depend_on_scores_or_noise(
    service: Service, window: Window, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the index and the noise out of reach, every refusal comes out just the same."""
    requests = [signed(service, window, **c) for c, _ in BAD.values() if "text" not in c]
    reasons = [window.handle(r).reason for r in requests]  # type: ignore[union-attr]

    def never(*_: Any, **__: Any) -> Any:
        raise AssertionError("a refusal looked at scores or noise")

    for name in ("query.select_positions", "context.slot_key", "query.document_openings"):
        monkeypatch.setattr(f"rag_audit.attest.{name}", never)
    assert [window.handle(r).reason for r in requests] == reasons  # type: ignore[union-attr]


def test_an_answer_does_not_leave_before_its_record_is_durable(
    service: Service, window: Window, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A store that cannot write: no answer, no record, and the account repeats its request."""
    monkeypatch.setattr(
        type(window.state.store),
        "_execute",
        lambda self, *_: (_ for _ in ()).throw(__import__("sqlite3").OperationalError("full")),
    )
    with pytest.raises(RequestRefused) as caught:
        service.ask(window, "law-1", QUESTION)
    assert caught.value.reason == "unavailable" and window.records == []
    monkeypatch.undo()
    window.shut()
    with Window.resume(window.directory, key=service.key, clock=service.clock) as again:
        assert again.records == []
        service.ask(again, "law-1", QUESTION)
        assert len(again.records) == 1


# The account's side.


@pytest.fixture
def requested(service: Service, window: Window) -> tuple[Account, Publication, SignedRequest, dict[str, Any]]:
    account = service.accounts["law-1"]
    publication = Publication.load(window.directory / "public")
    request = account.request(publication, QUESTION)
    reply = json.loads(window.handle(json.loads(request.canonical())).canonical())
    return account, publication, request, reply


def test_a_pending_request_is_repeated_and_not_replaced(service: Service, window: Window) -> None:
    account = service.accounts["law-1"]
    publication = Publication.load(window.directory / "public")
    request = account.request(publication, QUESTION)
    assert Account(account.directory).request(publication, QUESTION) == request
    with pytest.raises(RequestRefused) as caught:
        account.request(publication, OTHER)
    assert caught.value.reason == "in-flight"


def test_a_question_that_never_left_blocks_no_other(service: Service, window: Window) -> None:
    account, key = service.accounts["law-1"], service.key.verifier
    publication = Publication.load(window.directory / "public")

    def nowhere(_: SignedRequest) -> Any:
        raise NotSent("nobody is there")

    with pytest.raises(NotSent):
        account.ask(publication, QUESTION, key, nowhere)
    assert service.ask(window, "law-1", OTHER).receipt
    (kept,) = account._receipts(publication.header_digest())
    assert (kept.i, kept.query) == (1, OTHER)


def test_a_question_without_an_answer_is_repeated_before_another(service: Service, window: Window) -> None:
    account, key = service.accounts["law-1"], service.key.verifier
    publication = Publication.load(window.directory / "public")
    lost = account.request(publication, QUESTION)
    window.handle(json.loads(lost.canonical()))  # recorded, and its answer lost

    def nowhere(_: SignedRequest) -> Any:
        raise NotSent("nobody is there")

    with pytest.raises(NotSent):
        account.ask(publication, OTHER, key, nowhere)
    assert account.request(publication, QUESTION) == lost  # which had left, and is not forgotten
    assert service.ask(window, "law-1", OTHER).receipt
    kept = account._receipts(publication.header_digest())
    assert [(k.i, k.query) for k in kept] == [(1, QUESTION), (2, OTHER)]
    assert len(window.records) == 2


def test_a_refused_question_blocks_no_other(service: Service, window: Window) -> None:
    account = service.accounts["law-1"]
    publication = Publication.load(window.directory / "public")
    service.clock.now = window.header.opens_at - 1
    account.request(publication, QUESTION)
    service.clock.now = window.header.opens_at
    request = account.request(publication, QUESTION)
    broken = request.model_copy(update={"i": 2})
    account._save_private(account._pending_path(request.header), broken.canonical())
    assert service.ask(window, "law-1", OTHER).receipt
    assert [k.query for k in account._receipts(publication.header_digest())] == [OTHER]


REPLIES: dict[str, tuple[Callable[[dict[str, Any]], Any], type[RagAuditError]]] = {
    "no receipt": (lambda r: r.pop("receipt"), RagAuditError),
    "a receipt of nothing": (lambda r: r.update(receipt="hello"), RagAuditError),
    "a receipt with another index": (
        lambda r: r.update(receipt=r["receipt"].replace("index 2", "index 1")),
        InvalidProof,
    ),
    "an edited receipt": (
        lambda r: r.update(receipt=r["receipt"].replace("extra ", "extra AAAA", 1)),
        RagAuditError,
    ),
    "a reply of unknown type": (lambda r: r.update(type="apology"), RagAuditError),
}


@pytest.mark.parametrize(("change", "error"), REPLIES.values(), ids=REPLIES.keys())
def test_an_account_does_not_accept(
    change: Callable[[dict[str, Any]], Any],
    error: type[RagAuditError],
    service: Service,
    requested: tuple[Account, Publication, SignedRequest, dict[str, Any]],
) -> None:
    account, publication, request, reply = requested
    change(reply)
    with pytest.raises(error):
        account.accept(publication, request, reply, service.key.verifier)
    assert account._receipts(publication.header_digest()) == []
    assert account.request(publication, QUESTION) == request


def test_an_account_knows_its_provider(
    requested: tuple[Account, Publication, SignedRequest, dict[str, Any]],
) -> None:
    account, publication, request, reply = requested
    with pytest.raises(SignatureError):
        account.accept(publication, request, reply, SigningKey.generate("example.org/rag").verifier)


def test_documents_that_are_not_the_committed_ones_are_not_accepted(service: Service) -> None:
    """The receipt opens digests of the true texts; the text handed back is another one."""
    full = {t: [f"{t} has rule number {n}." for n in range(CAPACITY)] for t in TEXTS}
    with service.open(documents=full) as window:
        account, publication = service.accounts["law-1"], Publication.load(window.directory / "public")
        request = account.request(publication, QUESTION)
        reply = json.loads(window.handle(json.loads(request.canonical())).canonical())
        one, other = reply["documents"]
        for documents in (
            [{**one, "text": "Something else entirely."}, other],
            [{**one, "text": other["text"]}, other],
            [other, one],
            [one],
            [one, one],
            [],
        ):
            with pytest.raises(InvalidProof):
                account.accept(publication, request, {**reply, "documents": documents}, service.key.verifier)
        account.accept(publication, request, reply, service.key.verifier)


def test_another_accounts_receipt_is_not_accepted(service: Service, window: Window) -> None:
    publication = Publication.load(window.directory / "public")
    requests = {n: service.accounts[n].request(publication, QUESTION) for n in ("law-1", "law-2")}
    replies = {
        n: json.loads(window.handle(json.loads(r.canonical())).canonical()) for n, r in requests.items()
    }
    with pytest.raises(InvalidProof, match="another request"):
        service.accounts["law-1"].accept(
            publication, requests["law-1"], replies["law-2"], service.key.verifier
        )


def test_a_refusal_must_be_signed(service: Service, window: Window) -> None:
    account, publication = service.accounts["law-1"], Publication.load(window.directory / "public")
    request = account.request(publication, QUESTION)
    window.close()
    reply = json.loads(window.handle(json.loads(request.canonical())).canonical())
    assert reply["reason"] == "closed"
    for change in ({"reason": "limit"}, {"i": 2}, {"sig": "00" * 64}, {"account": "law-2"}):
        with pytest.raises(SignatureError):
            account.accept(publication, request, {**reply, **change}, service.key.verifier)
        assert account.request(publication, QUESTION) == request
    with pytest.raises(RequestRefused):
        account.accept(publication, request, reply, service.key.verifier)
    assert account.request(publication, OTHER).i == 1


def test_a_request_that_comes_late_is_told_so_and_kept(service: Service) -> None:
    """Its window is gone, and so is its key: the account's line in the window that is served has another."""
    with service.open() as window:
        account, late = service.accounts["law-1"], Publication.load(window.directory / "public")
        request = account.request(late, QUESTION)
        service.finish(window, abandoned=True)
        before = previous_window(window.directory / "public", "w-2")
    account.keys.renew("law-1")
    dates = {"opens_at": service.clock() + 10_000, "closes_at": service.clock() + 3_600_000}
    with service.open("second", previous=before, window="w-2", **dates) as window:
        reply = json.loads(window.handle(json.loads(request.canonical())).canonical())
        with pytest.raises(
            OtherWindow,
            match="the provider now serves another window, and its refusal does not show whether the request was answered",
        ) as told:
            account.accept(late, request, reply, service.key.verifier)
        assert "under the key that its roster has" in str(told.value.hint)
        assert account.request(late, QUESTION) == request
        forged = {**reply, "header": "11" * 32}
        with pytest.raises(SignatureError):
            account.accept(late, request, forged, service.key.verifier)
        service.ask(window, "law-1", QUESTION)


def test_a_refusal_that_says_nothing_of_the_request_does_not_free_it(
    service: Service, window: Window, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`in-flight`: the first copy of the request may yet be recorded, so it must not be replaced."""
    account, publication = service.accounts["law-1"], Publication.load(window.directory / "public")
    request = account.request(publication, QUESTION)
    with window.state.query_of("law-1"):
        reply = json.loads(window.handle(json.loads(request.canonical())).canonical())
    assert reply["reason"] == "in-flight"
    with pytest.raises(RequestRefused):
        account.accept(publication, request, reply, service.key.verifier)
    assert account.request(publication, QUESTION) == request


def test_a_window_that_is_not_open_does_not_close(service: Service) -> None:
    with service.commit() as window, pytest.raises(WindowStateError):
        window.close()


def test_folders_are_private(service: Service, window: Window, tmp_path: Path) -> None:
    assert window.directory.stat().st_mode & 0o077 == 0
    for name in ("secrets.json", "ledger.sqlite", "documents.sqlite"):
        assert (window.directory / name).stat().st_mode & 0o077 == 0
    for account in service.accounts.values():
        assert account.directory.stat().st_mode & 0o077 == 0


def test_an_account_numbers_its_next_query_by_its_last_receipt(service: Service, tmp_path: Path) -> None:
    """One file is read, however many there are; a file that is missing or of another window has all of them read."""
    window = service.open()
    service.ask(window, "law-1", QUESTIONS["law"][0])
    service.ask(window, "law-1", QUESTIONS["law"][1])
    window.shut()
    digest, folder = window.header_digest, service.accounts["law-1"].directory

    def answered(named: str) -> int:
        return Account(folder)._answered(named)

    first, second = (folder / "receipts" / f"{digest[:16]}-{i}.json" for i in (1, 2))
    assert answered(digest) == 2
    kept, known = first.read_bytes(), Account(folder)
    first.write_bytes(b"not read")
    assert answered(digest) == known._answered(digest) == 2
    assert answered("0" * 64) == 0
    first.unlink()
    assert answered(digest) == 1  # as many as there are receipts
    other = digest[:16] + "0" * 48
    assert answered(other) == 0
    first.write_bytes(kept)
    third = json.loads(second.read_bytes()) | {"i": 3}
    (folder / "receipts" / f"{digest[:16]}-3.json").write_text(json.dumps(third))
    assert known._answered(digest) == 3  # another process asked
