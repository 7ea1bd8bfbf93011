"""Signed requests over HTTP: answers, refusals with their statuses, batches, and what nobody should send."""

from __future__ import annotations

import json
import sqlite3
import threading
import time
from typing import Any

import pytest

from rag_audit import _native
from rag_audit.attest.query import Query
from rag_audit.attest.window import Window
from rag_audit.errors import RequestRefused
from rag_audit.models.question import MAX_REQUEST_BYTES
from rag_audit.models.requests import REFUSALS, Answer, Refusal
from rag_audit.service.limits import Limits
from rag_audit.service.queries import STATUSES
from rag_audit.service.windows import Windows
from tests.serving.conftest import JSON, Served, serving
from tests.window.simulator import Service


def test_an_answer_is_accepted_and_a_repeated_request_gets_it_again(served: Served) -> None:
    request = served.request("law-1", "What is a contract?")
    first = served.post("/v1/query", request.canonical())
    again = served.post("/v1/query", request.canonical(), {"Content-Type": "application/json; charset=utf-8"})
    assert first.status == again.status == 200
    assert first.value["documents"] == again.value["documents"]
    assert served.accept("law-1", request, again).dump() == again.value


def test_every_reason_has_a_status() -> None:
    assert list(STATUSES) == list(REFUSALS)
    assert set(STATUSES.values()) <= {400, 403, 409, 410, 422, 429, 503}


CHANGES: list[tuple[dict[str, Any], str, int]] = [
    ({"i": 0}, "malformed", 400),
    ({"more": 1}, "malformed", 400),
    ({"header": "0" * 64}, "wrong-window", 409),
    ({"account": "nobody"}, "unknown-account", 403),
    ({"tenant": "nobody"}, "unknown-tenant", 403),
    ({"tenant": "law"}, "wrong-tenant", 403),
    ({"sig": "0" * 128}, "bad-signature", 403),
    ({"query": "Another question?"}, "query-mismatch", 422),
]


@pytest.mark.parametrize(("change", "reason", "status"), CHANGES)
def test_a_refusal_is_signed_and_has_its_reason_s_status(
    served: Served, change: dict[str, Any], reason: str, status: int
) -> None:
    request = {**served.request("medicine-2", "What helps against fever?").dump(), **change}
    reply = served.post("/v1/query", json.dumps(request).encode())
    refusal = served.refusal(reply)
    assert (reply.status, refusal.reason) == (status, reason)
    assert (refusal.account, refusal.i, refusal.hq) == (request["account"], request["i"], request["hq"])


def test_a_used_slot_and_one_out_of_order_are_conflicts(served: Served) -> None:
    account = served.parties.accounts["medicine-1"]
    request = served.request("medicine-1", "What lowers blood sugar?")
    served.accept("medicine-1", request, served.post("/v1/query", request.canonical()))
    for i, reason in ((1, "slot-used"), (9, "out-of-order")):
        signed = _signed(account, {**request.dump(), "i": i, "salt": "1" * 64})
        reply = served.post("/v1/query", signed)
        assert (reply.status, served.refusal(reply).reason) == (409, reason)
    reply = served.post("/v1/query", _signed(account, {**request.dump(), "i": 65}))
    assert (reply.status, served.refusal(reply).reason) == (403, "limit")


def _signed(account: Any, value: dict[str, Any]) -> bytes:
    """A request with its hq and signature made anew."""
    from rag_audit.models.records import request_message
    from rag_audit.retrieval.embedders import get_embedder
    from rag_audit.retrieval.query import OpenedQuery
    from tests.window.simulator import EMBEDDER, QUERY_TOKENS

    opened = OpenedQuery(
        value["query"], bytes.fromhex(value["salt"]), get_embedder(EMBEDDER, query_tokens=QUERY_TOKENS)
    )
    named = {name: value[name] for name in ("origin", "header", "tenant", "account", "i")}
    sig = account.keys.newest.sign(request_message(**named, hq=opened.hq)).hex()
    return json.dumps({**value, "hq": opened.hq, "sig": sig}).encode()


BAD_BODIES: list[tuple[bytes, dict[str, str], int, str]] = [
    (b"{}", {"Content-Type": "text/plain"}, 415, "content type"),
    (b"{}", {}, 415, "content type"),
    (b"{", JSON, 400, "request"),
    (b"\xff", JSON, 400, "request"),
    (b'{"a":1,"a":1}', JSON, 400, "duplicate"),
    (b"", JSON, 400, "request"),
    (b"[" * 1000, JSON, 400, "request"),
    (b'"' + b"x" * MAX_REQUEST_BYTES + b'"', JSON, 413, str(MAX_REQUEST_BYTES)),
    (b"{}", {**JSON, "Content-Length": "9" * 17}, 413, str(MAX_REQUEST_BYTES)),
]


@pytest.mark.parametrize(("body", "headers", "status", "said"), BAD_BODIES)
def test_what_is_no_request_gets_a_signed_refusal(
    served: Served, body: bytes, headers: dict[str, str], status: int, said: str
) -> None:
    reply = served.post("/v1/query", body, headers)
    refusal = served.refusal(reply)
    assert (reply.status, refusal.reason) == (status, "malformed")
    assert said in refusal.detail


def test_a_body_without_a_length_is_cut_off_at_the_limit(served: Served) -> None:
    parts = iter([b'"' + b"x" * MAX_REQUEST_BYTES, b'"'])
    reply = served.send("POST", "/v1/query", parts, JSON)
    assert (reply.status, served.refusal(reply).reason) == (413, "malformed")


def test_a_window_outside_its_time_says_when_to_come_back(
    opened: tuple[Service, Window], served: Served
) -> None:
    clock, header = served.parties.clock, served.window.header
    request, now = served.request("law-2", "Who owns a book's text?"), clock.now
    try:
        clock.now = header.opens_at - 90_500
        early = served.post("/v1/query", request.canonical())
        assert (early.status, early.headers["retry-after"]) == (503, "91")
        assert served.refusal(early).reason == "not-open"
        assert served.get("/readyz").value == {"ready": False, "reason": "the window is not open yet"}
        clock.now = header.closes_at + 1
        late = served.post("/v1/query", request.canonical())
        assert (late.status, served.refusal(late).reason) == (410, "closed")
        assert "retry-after" not in late.headers
        assert served.get("/readyz").status == 503
    finally:
        clock.now = now
    with pytest.raises(RequestRefused, match="ended"):
        served.accept("law-2", request, late)


def test_without_a_window_nothing_is_signed(opened: tuple[Service, Window]) -> None:
    with serving(*opened, served=Windows()) as served:
        for path, body in (("/v1/query", b"{}"), ("/v1/query", b"{"), ("/v1/queries", b"[{}]")):
            reply = served.post(path, body)
            assert (reply.status, reply.value["error"]) == (503, "WindowStateError")
            assert reply.headers["retry-after"] == "1"
        assert served.get("/readyz").value["reason"] == "no window is served"
        assert served.get("/public/header.json").status == 503
        assert served.get("/metrics").status == 200


# -- batches ---------------------------------------------------------------------------------------------


def test_a_batch_is_answered_in_order_and_a_bad_item_alone_is_refused(served: Served) -> None:
    law = served.request("law-1", "How do I get out of jail before my trial?")
    medicine = served.request("medicine-1", "Do antibiotics cure the flu?")
    items = [law.dump(), {"account": "nobody"}, 7, medicine.dump(), law.dump()]
    reply = served.post("/v1/queries", json.dumps(items).encode())
    first, second, third, fourth, fifth = reply.value
    assert reply.status == 200
    assert first["documents"] == fifth["documents"], "the same request twice is answered alike"
    assert [second["reason"], third["reason"]] == ["malformed", "malformed"]
    assert (second["account"], third["account"]) == ("nobody", "")
    key, publication = served.parties.key.verifier, served.publication
    served.parties.accounts["law-1"].accept(publication, law, first, key)
    served.parties.accounts["medicine-1"].accept(publication, medicine, fourth, key)


@pytest.mark.parametrize("body", [b"{}", b"[]", b"[", b"[" + b",".join([b"1"] * 65) + b"]"])
def test_what_is_no_batch_is_refused_as_a_whole(served: Served, body: bytes) -> None:
    reply = served.post("/v1/queries", body)
    assert (reply.status, served.refusal(reply).reason) == (400, "malformed")


def test_a_body_of_many_small_values_is_refused_before_they_are_made(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[bytes] = []
    plain_json = _native.plain_json
    monkeypatch.setattr(_native, "plain_json", lambda data: read.append(data) or plain_json(data))
    for path, maximum in (("/v1/query", 65), ("/v1/queries", 64 * 64 + 1)):
        reply = served.post(path, b"[" + b"[]," * maximum + b"[]]")
        assert (reply.status, served.refusal(reply).reason) == (400, "malformed")
        assert f"at most {maximum}" in served.refusal(reply).detail
    assert read == []
    commas = served.signed("medicine-2", "a, b, " * 500, 64)
    reply = served.post("/v1/query", commas.canonical())
    assert served.refusal(reply).reason == "out-of-order", "a text may have any number"


# -- a service under pressure ----------------------------------------------------------------------------


class Held:
    """A window that answers once it is let go."""

    def __init__(self, window: Window, monkeypatch: pytest.MonkeyPatch) -> None:
        self.entered, self.go = threading.Semaphore(0), threading.Event()
        self.requested: list[list[str]] = []
        answer = window.answers.answer

        def slow(queries: Any) -> Any:
            self.requested.append([query.account for query in queries])
            self.entered.release()
            assert self.go.wait(60)
            return answer(queries)

        monkeypatch.setattr(window.answers, "answer", slow)


def _in_thread(call: Any) -> tuple[threading.Thread, list[Any]]:
    result: list[Any] = []
    thread = threading.Thread(target=lambda: result.append(call()))
    thread.start()
    return thread, result


def test_beyond_its_places_a_service_asks_to_come_back(
    opened: tuple[Service, Window], monkeypatch: pytest.MonkeyPatch
) -> None:
    held = Held(opened[1], monkeypatch)
    with serving(*opened, limits=Limits(waiting=1)) as served:
        request = served.request("law-1", "What is a contract?")
        thread, result = _in_thread(lambda: served.post("/v1/query", request.canonical()))
        assert held.entered.acquire(timeout=60)
        for path, body in (
            ("/v1/query", request.canonical()),
            ("/v1/queries", b"[" + request.canonical() + b"]"),
        ):
            reply = served.post(path, body)
            assert (reply.status, reply.headers["retry-after"]) == (429, "1")
            assert served.refusal(reply).reason == "unavailable"
            if path == "/v1/query":  # it names its request, so the account knows to repeat it
                with pytest.raises(RequestRefused, match="too many requests"):
                    served.accept("law-1", request, reply)
                assert served.request("law-1", "What is a contract?") == request
        held.go.set()
        thread.join()
        assert result[0].status == 200
        served.accept("law-1", request, result[0])


def test_what_waits_for_an_answer_counts_among_the_bodies(
    opened: tuple[Service, Window], monkeypatch: pytest.MonkeyPatch
) -> None:
    held = Held(opened[1], monkeypatch)
    with serving(*opened, limits=Limits(bodies_bytes=2000)) as served:
        bodies = served.service.app.bodies
        batch = b"[" + served.signed("law-1", "What is a contract?", 64).canonical() + b"]"
        thread, result = _in_thread(lambda: served.post("/v1/queries", batch))
        assert held.entered.acquire(timeout=60)
        assert bodies.bytes_now == len(batch)
        reply = served.post("/v1/query", b"{" + b" " * 1998 + b"}")
        assert (reply.status, served.refusal(reply).reason) == (429, "unavailable")
        held.go.set()
        thread.join()
        assert (result[0].status, bodies.bytes_now) == (200, 0)


def test_a_flood_of_one_account_keeps_no_other_out(
    opened: tuple[Service, Window], monkeypatch: pytest.MonkeyPatch
) -> None:
    held = Held(opened[1], monkeypatch)
    limits = Limits(waiting=8, of_account=6, answering=1, batch=2)
    with serving(*opened, limits=limits) as served:
        places, text = served.service.app.queries.places, "What is a contract?"

        def flood(i: int) -> Any:
            return _in_thread(lambda: served.post("/v1/query", served.signed("law-1", text, i).canonical()))

        # In another's name, nobody takes a place: these are not signed by the account that they name.
        forged = {**served.signed("law-2", text, 60).dump(), "sig": "0" * 128}
        assert served.post("/v1/query", json.dumps(forged).encode()).status == 403
        first = flood(60)
        assert held.entered.acquire(timeout=60)  # one answer is under way, the others wait
        others = [flood(60) for _ in range(5)]
        while places.taken < 6:
            time.sleep(0.01)
        beyond = served.post("/v1/query", served.signed("law-1", text, 60).canonical())
        assert (beyond.status, served.refusal(beyond).reason) == (429, "unavailable")
        request = served.request("medicine-1", "Do antibiotics cure the flu?")
        mine, result = _in_thread(lambda: served.post("/v1/query", request.canonical()))
        while places.taken < 7:
            time.sleep(0.01)
        held.go.set()
        for thread, _ in [first, (mine, result), *others]:
            thread.join()
        # Whoever came last is answered with the second of the flood, not after all of it.
        assert held.requested[:2] == [["law-1"], ["law-1", "medicine-1"]]
        served.accept("medicine-1", request, result[0])
        assert places.taken == 0


def test_what_one_request_fails_with_is_nobody_else_s(
    opened: tuple[Service, Window], monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(*opened) as served:
        window, law = served.window, served.request("law-1", "What is a will?")
        medicine = served.request("medicine-1", "What is a fever?")
        draft = window.answers._draft

        def broken(query: Query) -> None:
            if query.account == "law-1":
                raise ZeroDivisionError
            draft(query)

        mismatch = served.signed("law-2", "What?", 64).model_copy(update={"query": "Who?"})
        before = window.state.tree.size
        with monkeypatch.context() as patch:
            patch.setattr(window.answers, "_draft", broken)
            result = window.answers.answer(
                [Query.parse(r.dump(), window.context.embedder) for r in (law, mismatch, medicine)]
            )
        assert [type(one) for one in result] == [ZeroDivisionError, Refusal, Answer]
        assert isinstance(result[1], Refusal) and result[1].reason == "query-mismatch"
        assert window.state.tree.size == before + 1, "only what was answered is recorded"
        for account, request in (("law-1", law), ("medicine-1", medicine)):
            served.accept(account, request, served.post("/v1/query", request.canonical()))


def test_two_requests_of_one_account_at_a_time_are_one_too_many(
    opened: tuple[Service, Window], monkeypatch: pytest.MonkeyPatch
) -> None:
    entered, go = threading.Event(), threading.Event()
    begin = opened[1].state.begin

    def slow(*args: Any, **options: Any) -> Any:
        entered.set()
        assert go.wait(60)
        return begin(*args, **options)

    monkeypatch.setattr(opened[1].state, "begin", slow)
    with serving(*opened) as served:
        request = served.request("law-1", "Who owns a book's text?")
        thread, result = _in_thread(lambda: served.post("/v1/query", request.canonical()))
        assert entered.wait(60)
        reply = served.post("/v1/query", request.canonical())
        assert (reply.status, served.refusal(reply).reason) == (429, "in-flight")
        assert reply.headers["retry-after"] == "1"
        go.set()
        thread.join()
        served.accept("law-1", request, result[0])


def test_answers_under_way_leave_before_a_stopped_service_ends(
    opened: tuple[Service, Window], monkeypatch: pytest.MonkeyPatch
) -> None:
    held = Held(opened[1], monkeypatch)
    with serving(*opened) as served:
        request = served.request("law-1", "What is bail?")
        thread, result = _in_thread(lambda: served.post("/v1/query", request.canonical()))
        assert held.entered.acquire(timeout=60)
        stopping, _ = _in_thread(served.service.stop)
        held.go.set()
        thread.join()
        stopping.join()
        served.accept("law-1", request, result[0])
        with pytest.raises(ConnectionRefusedError):
            served.get("/healthz")


def test_a_fault_in_one_answer_leaves_the_service_up(
    opened: tuple[Service, Window], monkeypatch: pytest.MonkeyPatch
) -> None:
    request_text = "What is a tort?"

    def fault(queries: Any) -> Any:
        raise ZeroDivisionError("a secret")

    with serving(*opened) as served:
        request = served.request("law-1", request_text)
        with monkeypatch.context() as patch:
            patch.setattr(served.window.answers, "answer", fault)
            for path, body in (
                ("/v1/query", request.canonical()),
                ("/v1/queries", b"[" + request.canonical() + b"]"),
            ):
                reply = served.post(path, body)
                assert (reply.status, reply.value["error"]) == (500, "InternalError")
                assert b"secret" not in reply.body
        assert [type(fault) for fault in served.faults] == [ZeroDivisionError] * 2
        served.accept("law-1", request, served.post("/v1/query", request.canonical()))


def test_a_full_disk_answers_nothing_and_uses_no_slot(
    parties: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    window = parties.open(system="scan")
    store = window.state.store
    with window, serving(parties, window) as served:
        request = served.request("law-1", "What is a contract?")
        execute = store._execute

        def full(statement: str, *parameters: object) -> Any:
            if statement.startswith("INSERT"):
                raise sqlite3.OperationalError("database or disk is full")
            return execute(statement, *parameters)

        monkeypatch.setattr(store, "_execute", full)
        reply = served.post("/v1/query", request.canonical())
        monkeypatch.undo()
        assert (reply.status, served.refusal(reply).reason) == (503, "unavailable")
        assert reply.headers["retry-after"] == "1"
        assert served.get("/readyz").value["reason"] == "the ledger could not be written"
        assert b"rag_audit_ledger_writable 0.0" in served.get("/metrics").body
        with pytest.raises(RequestRefused, match="could not be written"):
            served.accept("law-1", request, reply)
        assert window.records == []
    with (
        Window.resume(window.directory, key=parties.key, clock=parties.clock) as again,
        serving(parties, again) as served,
    ):
        reply = served.post("/v1/query", request.canonical())
        assert Answer.parse(reply.value, field="reply")
        served.accept("law-1", request, reply)
        assert [(r.account, r.i) for r in again.records] == [("law-1", 1)]
