"""Enrolment requests over HTTP: what is kept, what an account is told, and what nobody should send."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from click.testing import CliRunner, Result

from rag_audit.account.account import Account
from rag_audit.attest.window import Window
from rag_audit.cli import main
from rag_audit.errors import NotSent, RequestRefused, SchemaError, SetupError, SignatureError, StoreError
from rag_audit.log.signing import SigningKey
from rag_audit.models.enrolling import MAX_REQUEST_BYTES, EnrolmentAnswer, EnrolmentRequest
from rag_audit.models.roster import RosterFile, add_to_roster, load_roster
from rag_audit.service import enrolment_book as enrolments
from rag_audit.service import enrolments as endpoint
from rag_audit.service.enrolment_book import EnrolmentBook, Intake
from rag_audit.service.limits import Limits
from rag_audit.service.openapi import openapi
from tests.serving.conftest import Served, serving
from tests.serving.test_client import Both, stub
from tests.window.simulator import ORIGIN, Service

PATH = "/v1/enrolments"


@pytest.fixture
def book(tmp_path: Path) -> Iterator[EnrolmentBook]:
    with EnrolmentBook(tmp_path / "book" / "enrolments.sqlite") as result:
        yield result


@pytest.fixture
def requested(opened: tuple[Service, Window], book: EnrolmentBook, tmp_path: Path) -> Iterator[Served]:
    parties, window = opened
    intake = Intake(book, parties.key, ORIGIN, windows=lambda: ["w-1", "w-2"], open_=lambda: "w-1",
                    clock=parties.clock, roster=RosterFile(tmp_path / "roster.json").line)  # fmt: skip
    with serving(parties, window, intake=intake) as result:
        yield result


@pytest.fixture(params=["sync", "asynchronous"])
def both(request: pytest.FixtureRequest) -> Both:
    return Both(request.param)


def account(folder: Path, name: str = "new", tenant: str = "law") -> Account:
    return Account.create(folder / name, name, tenant)


def request_of(asker: Account, window: str = "w-2", **changes: Any) -> EnrolmentRequest:
    return EnrolmentRequest.sign(asker.roster_entry, asker.keys.newest, window=window,
                                 **{"origin": ORIGIN, "previous": asker.keys.before, **changes})  # fmt: skip


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, [str(a) for a in arguments])


def test_a_request_waits_until_it_is_decided(requested: Served, book: EnrolmentBook, tmp_path: Path) -> None:
    assert requested.get(PATH).value == {"origin": ORIGIN, "windows": ["w-1", "w-2"], "open": "w-1"}
    request = request_of(account(tmp_path))
    first = requested.post(PATH, request.canonical())
    assert (first.status, first.value["status"]) == (202, "pending")
    assert requested.post(PATH, request.canonical()).body == first.body and len(book.requests()) == 1
    EnrolmentAnswer.parse(first.value, field="answer").check(request, requested.parties.key.verifier)
    book.decide([request], "rejected", "who are you?")
    told = requested.post(PATH, request.canonical())
    assert (told.status, told.value["status"], told.value["reason"]) == (200, "rejected", "who are you?")
    for reply in (first, told):
        jsonschema.validate(
            reply.value, {"$ref": "#/components/schemas/EnrolmentAnswer", **openapi(Limits())}
        )


def test_what_is_no_request_has_a_name(requested: Served, book: EnrolmentBook, tmp_path: Path) -> None:
    asker = account(tmp_path)
    good = request_of(asker).dump()
    cases: list[tuple[Any, int, str]] = [
        (b"", 400, "EncodingError"),
        (b"[]", 400, "SchemaError"),
        (b'{"a":1,"a":2}', 400, "EncodingError"),
        ({**good, "more": 1}, 400, "SchemaError"),
        ({**good, "origin": "other"}, 400, "SchemaError"),
        ({**good, "window": "w-3"}, 409, "WindowStateError"),
        ({**good, "account": "other"}, 403, "SignatureError"),
        ({**good, "sig": "0" * 128}, 403, "SignatureError"),
        (request_of(asker, previous=asker.keys.newest).dump(), 400, "SchemaError"),
        (b" " * (MAX_REQUEST_BYTES + 1), 413, "Unreadable"),
    ]
    for body, status, name in cases:
        reply = requested.post(PATH, body if isinstance(body, bytes) else json.dumps(body).encode())
        assert (reply.status, reply.value["error"]) == (status, name), body
    reply = requested.post(PATH, b"{}", {"Content-Type": "text/plain"})
    assert (reply.status, reply.value["error"]) == (415, "Unreadable")
    assert requested.get(PATH, "DELETE").status == 405
    assert book.requests() == [] and requested.faults == []


def test_a_full_book_takes_no_more_and_drops_what_waits_in_vain(
    requested: Served, book: EnrolmentBook, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(enrolments, "MAX_PENDING", 2)
    one, other, third = (account(tmp_path, name) for name in ("one", "other", "third"))
    book.take(request_of(one, "w-0"), 0, ["w-0"])
    assert requested.post(PATH, request_of(other).canonical()).status == 202
    assert requested.post(PATH, request_of(one).canonical()).status == 202
    assert [(k.request.account, k.request.window) for k in book.requests()] == [
        ("one", "w-2"),
        ("other", "w-2"),
    ]
    refused = requested.post(PATH, request_of(third).canonical())
    assert (refused.status, refused.value["error"]) == (429, "TooMany")
    assert refused.headers["retry-after"] == str(endpoint.FULL_RETRY_S)
    again = requested.post(PATH, request_of(other).canonical())  # what waits is answered all the same
    assert again.status == 202


def strangers(folder: Path, name: str, count: int) -> list[Account]:
    """Accounts of several people under one id."""
    return [Account.create(folder / f"stranger-{name}-{n}", name, "law") for n in range(count)]


def test_requests_of_strangers_under_an_id_do_not_keep_its_owner_out(
    requested: Served, book: EnrolmentBook, tmp_path: Path
) -> None:
    """Eight requests under an id used to end in 429 for its owner, who has no other id to ask under."""
    for stranger in strangers(tmp_path, "alice", 9):
        assert requested.post(PATH, request_of(stranger).canonical()).status == 202
    owner = account(tmp_path, "alice")
    assert requested.post(PATH, request_of(owner).canonical()).status == 202
    assert owner.roster_entry.key in {kept.request.key for kept in book.requests()}


def test_a_full_book_displaces_requests_under_the_id_with_the_most(
    requested: Served, book: EnrolmentBook, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever fills the book under one id displaces requests under that id alone."""
    monkeypatch.setattr(enrolments, "MAX_PENDING", 6)
    bob, carol, alice = (account(tmp_path, name) for name in ("bob", "carol", "alice"))
    assert requested.post(PATH, request_of(bob).canonical()).status == 202
    for stranger in strangers(tmp_path, "alice", 12):
        assert requested.post(PATH, request_of(stranger).canonical()).status == 202
    for newcomer in (carol, alice):
        assert requested.post(PATH, request_of(newcomer).canonical()).status == 202
    waiting = book.requests()
    assert len(waiting) <= 6
    assert {a.roster_entry.key for a in (bob, carol, alice)} <= {kept.request.key for kept in waiting}
    # Displaced requests are taken again when they are repeated.
    again = strangers(tmp_path / "later", "alice", 1)[0]
    assert requested.post(PATH, request_of(again).canonical()).value["status"] == "pending"


def rotation(asker: Account, roster: Path) -> EnrolmentRequest:
    """A request for a new key of an account that the roster has, which the old key signs."""
    add_to_roster(roster, asker.roster_entry)
    asker.keys.renew(asker.account)
    return request_of(asker)


def test_a_rotation_that_the_roster_s_key_signed_is_subject_to_no_limit_for_strangers(
    requested: Served, book: EnrolmentBook, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A book without any place left, for the whole service: a stolen key can be replaced all the same."""
    monkeypatch.setattr(enrolments, "MAX_PENDING", 4)
    request = rotation(account(tmp_path, "alice"), tmp_path / "roster.json")
    for number in range(4):
        other = account(tmp_path, f"other-{number}")
        assert requested.post(PATH, request_of(other).canonical()).status == 202
    assert requested.post(PATH, request_of(account(tmp_path, "late")).canonical()).status == 429
    assert requested.post(PATH, request.canonical()).status == 202
    kept = book.find(request.digest())
    assert kept is not None and kept.signed
    # What comes later displaces no request that the roster's key signed.
    monkeypatch.setattr(enrolments, "MAX_PENDING", 0)
    for stranger in strangers(tmp_path, "alice", 3):
        assert requested.post(PATH, request_of(stranger).canonical()).status == 429
    assert [k.request for k in book.requests() if k.signed] == [request]


def test_a_stranger_s_own_old_key_is_not_the_roster_s(
    requested: Served, book: EnrolmentBook, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stranger can sign with an old key of its own, under any id; only the key on the roster lifts the limits."""
    add_to_roster(tmp_path / "roster.json", account(tmp_path, "alice").roster_entry)
    monkeypatch.setattr(enrolments, "MAX_PENDING", 0)
    [stranger] = strangers(tmp_path, "alice", 1)
    stranger.keys.renew(stranger.account)
    request = request_of(stranger)
    assert request.previous is not None
    assert requested.post(PATH, request.canonical()).status == 429
    monkeypatch.setattr(enrolments, "MAX_PENDING", 1)
    assert requested.post(PATH, request.canonical()).status == 202
    kept = book.find(request.digest())
    assert kept is not None and not kept.signed


def test_requests_that_the_roster_s_key_signed_have_a_limit_of_their_own(
    requested: Served, book: EnrolmentBook, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever has an account's key fills that account's places, and those of no other."""
    monkeypatch.setattr(enrolments, "MAX_SIGNED", 2)
    alice, bob = account(tmp_path, "alice"), account(tmp_path, "bob")
    old = alice.keys.newest
    add_to_roster(tmp_path / "roster.json", alice.roster_entry)
    signed = [request_of(new, previous=old) for new in strangers(tmp_path, "alice", 3)]
    replies = [requested.post(PATH, request.canonical()) for request in signed]
    assert [reply.status for reply in replies] == [202, 202, 429] and replies[2].value["error"] == "TooMany"
    assert requested.post(PATH, rotation(bob, tmp_path / "roster.json").canonical()).status == 202
    # A decision makes room.
    book.decide([signed[0]], "rejected")
    assert requested.post(PATH, signed[2].canonical()).status == 202


def test_requests_that_a_replaced_key_signed_take_no_place_of_its_successor(
    requested: Served, book: EnrolmentBook, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever stole an account's old key fills its places until the provider has replaced that key, and no longer."""
    monkeypatch.setattr(enrolments, "MAX_SIGNED", 2)
    roster, alice = tmp_path / "roster.json", account(tmp_path, "alice")
    stolen = alice.keys.newest
    add_to_roster(roster, alice.roster_entry)
    thefts = [request_of(thief, previous=stolen) for thief in strangers(tmp_path, "alice", 3)]
    assert [requested.post(PATH, theft.canonical()).status for theft in thefts] == [202, 202, 429]
    alice.keys.renew("alice")
    own = request_of(alice, previous=None)
    assert requested.post(PATH, own.canonical()).status == 202
    done = run(
        "provider",
        "enrolments",
        "approve",
        tmp_path / "book" / "enrolments.sqlite",
        "--key",
        own.key,
        "--lost",
        "alice",
        "--roster",
        roster,
    )
    assert done.exit_code == 0, done.output
    assert [line.key for line in load_roster(roster)] == [own.key]
    alice.keys.renew("alice")
    rotated = request_of(alice)
    assert rotated.previous == own.key
    assert requested.post(PATH, rotated.canonical()).status == 202
    kept = book.find(rotated.digest())
    assert kept is not None and kept.signed
    # The replaced key has no place left of its own.
    late = requested.post(PATH, thefts[2].canonical())
    assert late.status == 202
    kept = book.find(thefts[2].digest())
    assert kept is not None and not kept.signed


def test_an_unreadable_roster_is_a_503(requested: Served, tmp_path: Path) -> None:
    alice = account(tmp_path, "alice")
    request = rotation(alice, tmp_path / "roster.json")
    (tmp_path / "roster.json").write_text("{")
    reply = requested.post(PATH, request.canonical())
    assert (reply.status, reply.value["error"]) == (503, "StoreError") and len(requested.faults) == 1
    requested.faults.clear()


def test_a_roster_is_read_again_once_it_has_changed(tmp_path: Path) -> None:
    roster, one, two = (
        RosterFile(tmp_path / "roster.json"),
        account(tmp_path, "one"),
        account(tmp_path, "two"),
    )
    assert roster.line("one") is None
    add_to_roster(tmp_path / "roster.json", one.roster_entry)
    assert roster.line("one") == one.roster_entry and roster.line("two") is None
    add_to_roster(tmp_path / "roster.json", two.roster_entry)
    assert roster.line("two") == two.roster_entry


def test_strangers_requests_do_not_stand_in_the_way_of_a_decision(
    book: EnrolmentBook, tmp_path: Path
) -> None:
    """`--account` and `--all` find the request that the roster's key signed; a lost key decides nothing."""
    file, roster = tmp_path / "book" / "enrolments.sqlite", tmp_path / "roster.json"
    alice, bob, carol = (account(tmp_path, name) for name in ("alice", "bob", "carol"))
    for asker in (alice, bob, carol):
        add_to_roster(roster, asker.roster_entry)
    alice.keys.renew("alice")
    carol.keys.renew("carol")
    mine, of_carol = request_of(alice), request_of(carol)
    others = [
        request_of(who)
        for name in ("alice", "bob", "carol")
        for who in strangers(tmp_path, name, 12 if name == "alice" else 1)
    ]
    newcomer = request_of(account(tmp_path, "dora"))
    for number, request in enumerate([mine, of_carol, *others, newcomer]):
        book.take(request, number, ["w-2"], signed=request in (mine, of_carol))
    listed = json.loads(run("provider", "enrolments", "list", file, "--json").stdout)["requests"]
    assert [r["key"] for r in listed if r["signed"]] == [mine.key, of_carol.key] and listed[0][
        "key"
    ] == mine.key
    # A reject names one request, or all of strangers'.
    done = run("provider", "enrolments", "reject", file, "--account", "alice")
    assert (
        done.exit_code == 2
        and "several requests are for one account" in done.stderr
        and "13 requests" in done.stderr
    )
    done = run("provider", "enrolments", "approve", file, "--lost", "alice", "--roster", roster)
    assert done.exit_code == 2 and "several requests are for one account" in done.stderr
    done = run("provider", "enrolments", "approve", file, "--account", "alice", "--roster", roster, "--json")
    assert json.loads(done.stdout) == {"approved": 1, "added": 0, "replaced": 1}, done.output
    done = run("provider", "enrolments", "reject", file, "--newcomers-of", "alice", "--json")
    assert json.loads(done.stdout) == {"rejected": 12}
    # Bob's line is left alone by --all: nothing that waits under his id is signed by his key.
    done = run("provider", "enrolments", "approve", file, "--all", "--roster", roster, "--json")
    assert json.loads(done.stdout) == {"approved": 2, "added": 1, "replaced": 1}, done.output
    keys = {line.account: line.key for line in load_roster(roster)}
    assert keys == {
        "alice": mine.key,
        "bob": bob.roster_entry.key,
        "carol": of_carol.key,
        "dora": newcomer.key,
    }


def test_a_folder_of_requests_is_decided_by_the_roster_s_key_too(tmp_path: Path) -> None:
    roster, folder = tmp_path / "roster.json", tmp_path / "requests"
    folder.mkdir()
    alice, bob = account(tmp_path, "alice"), account(tmp_path, "bob")
    mine = rotation(alice, roster)
    [stranger] = strangers(tmp_path, "alice", 1)
    for name, request in (("a", request_of(stranger)), ("b", mine), ("c", request_of(bob))):
        (folder / f"{name}.json").write_bytes(request.canonical())
    about = ("account", "approve", roster, folder, "--origin", ORIGIN, "--window", "w-2")
    done = run(*about, "--account", "bob", "--json")
    assert json.loads(done.stdout)["added"] == ["bob"], done.output
    done = run(*about, "--lost", "alice")
    assert done.exit_code == 2 and "several requests are for one account" in done.stderr
    done = run(*about, "--account", "alice", "--json")
    assert json.loads(done.stdout)["replaced"] == ["alice"], done.output
    assert {line.account: line.key for line in load_roster(roster)}["alice"] == mine.key


def test_a_book_of_another_version_is_named(tmp_path: Path) -> None:
    path = tmp_path / "book.sqlite"
    EnrolmentBook(path).close()
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA user_version = 0")
    with pytest.raises(StoreError, match="another version"):
        EnrolmentBook(path)


def test_a_book_that_cannot_be_written_is_a_503(
    requested: Served, book: EnrolmentBook, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_: object, **__: object) -> Any:
        raise StoreError("the disk is full", field="/private/path")

    monkeypatch.setattr(book, "take", failing)
    reply = requested.post(PATH, request_of(account(tmp_path)).canonical())
    assert (reply.status, reply.value["error"], reply.headers["retry-after"]) == (503, "StoreError", "1")
    assert b"private" not in reply.body and len(requested.faults) == 1
    requested.faults.clear()


def test_a_busy_queue_asks_for_patience(requested: Served, tmp_path: Path) -> None:
    requested.service.app.enrolments.queue.places = 0
    reply = requested.post(PATH, request_of(account(tmp_path)).canonical())
    assert (reply.status, reply.value["error"], reply.headers["retry-after"]) == (429, "Busy", "1")


def test_a_service_without_a_book_takes_none(served: Served, tmp_path: Path) -> None:
    reply = served.post(PATH, request_of(account(tmp_path)).canonical())
    assert (reply.status, reply.value["error"]) == (404, "NotFound") and served.get(PATH).status == 404


def test_requests_are_counted_and_name_nobody(requested: Served, tmp_path: Path) -> None:
    requested.post(PATH, request_of(account(tmp_path, "somebody")).canonical())
    text = requested.get("/metrics").body.decode()
    assert 'rag_audit_requests_total{outcome="enrolment-pending"} 1.0' in text and "somebody" not in text
    assert 'rag_audit_http_responses_total{route="/v1/enrolments",status="202"} 1.0' in text


def test_the_client_asks_and_asks_again(
    requested: Served,
    both: Both,
    book: EnrolmentBook,
    tmp_path: Path,
) -> None:
    asker, key = account(tmp_path), requested.parties.key.verifier
    first = both.run(requested.service.url, key, lambda client: client.enrol(asker))
    assert (first.status, first.window) == ("pending", "w-2")
    book.decide([kept.request for kept in book.requests()], "approved")
    again = both.run(requested.service.url, key, lambda client: client.enrol(asker))
    assert again.status == "approved" and again.request == first.request
    now = both.run(requested.service.url, key, lambda client: client.enrol(asker, "w-1"))
    assert now.window == "w-1" and now.request != first.request
    with pytest.raises(RequestRefused, match="the provider accepts no enrolment for that window") as refused:
        both.run(requested.service.url, key, lambda client: client.enrol(asker, "w-9"))
    assert refused.value.reason == "WindowStateError"
    with pytest.raises(SignatureError, match="not signed by the provider"):
        both.run(
            requested.service.url, SigningKey.generate(key.name).verifier, lambda client: client.enrol(asker)
        )


def test_the_client_is_patient_and_believes_no_answer_to_another(
    both: Both,
    tmp_path: Path,
) -> None:
    asker, other, provider = account(tmp_path), account(tmp_path, "other"), SigningKey.generate(ORIGIN)
    offer = (200, {}, json.dumps({"origin": ORIGIN, "windows": ["w-2"], "open": None}).encode())
    answers = [EnrolmentAnswer.sign(request_of(who), provider, "approved", "", None).canonical()
               for who in (asker, other)]  # fmt: skip
    busy = (429, {"Retry-After": "0"}, b'{"error":"Busy","message":""}')
    with stub([offer, busy, None, (200, {}, answers[0])]) as (url, bodies):
        assert both.run(url, provider.verifier, lambda client: client.enrol(asker)).status == "approved"
    assert set(bodies) == {request_of(asker).canonical()}
    with (
        stub([offer, (200, {}, answers[1])]) as (url, _),
        pytest.raises(SchemaError, match="another request"),
    ):
        both.run(url, provider.verifier, lambda client: client.enrol(asker))
    with stub([offer, *[busy] * 9]) as (url, _), pytest.raises(SetupError, match="does not answer"):
        both.run(url, provider.verifier, lambda client: client.enrol(asker))
    with (
        stub([offer, (418, {}, b"?")]) as (url, _),
        pytest.raises(SetupError, match="does not belong to a service"),
    ):
        both.run(url, provider.verifier, lambda client: client.enrol(asker))
    none = (200, {}, json.dumps({"origin": ORIGIN, "windows": [], "open": None}).encode())
    with stub([none]) as (url, _), pytest.raises(SchemaError, match="no enrolment requests at the moment"):
        both.run(url, provider.verifier, lambda client: client.enrol(asker))
    with pytest.raises((NotSent, SetupError)):
        both.run("http://127.0.0.1:9", provider.verifier, lambda client: client.enrol(asker))


def test_the_commands_ask_list_approve_and_reject(
    requested: Served, book: EnrolmentBook, tmp_path: Path
) -> None:
    file, roster, key = (
        tmp_path / "book" / "enrolments.sqlite",
        tmp_path / "roster.json",
        tmp_path / "provider.pub",
    )
    key.write_text(str(requested.parties.key.verifier))
    askers = {name: account(tmp_path, name) for name in ("a", "b", "c", "d", "e")}

    def ask(name: str, *more: str) -> Any:
        done = run("account", "request", askers[name].directory, "--url", requested.service.url, "--provider", key,
                   "--json", *more)  # fmt: skip
        assert done.exit_code == 0, done.output
        return json.loads(done.stdout)

    for name in askers:
        assert ask(name) == {"account": name, "window": "w-2", "status": "pending", "reason": "", "seq": None}
    Account.create(tmp_path / "thief", "e", "law")
    assert (
        run(
            "account", "request", tmp_path / "thief", "--url", requested.service.url, "--provider", key
        ).exit_code
        == 0
    )
    listed = json.loads(run("provider", "enrolments", "list", file, "--json").stdout)["requests"]
    assert [r["account"] for r in listed] == ["a", "b", "c", "d", "e", "e"]
    assert "a: law, for w-2, key " in run("provider", "enrolments", "list", file).stdout
    (tmp_path / "names").write_text("a\nb\n")
    done = run(
        "provider", "enrolments", "approve", file, "--from", tmp_path / "names", "--roster", roster, "--json"
    )
    assert json.loads(done.stdout) == {"approved": 2, "added": 2, "replaced": 0}, done.output
    assert [line.account for line in load_roster(roster)] == ["a", "b"] and ask("a")["status"] == "approved"
    done = run(
        "provider", "enrolments", "reject", file, "--account", "c", "--because", "not one of ours", "--json"
    )
    assert json.loads(done.stdout) == {"rejected": 1}
    assert (ask("c")["status"], ask("c")["reason"]) == ("rejected", "not one of ours")
    for wrong, said in ((["--account", "z"], "no such request"), (["--account", "e"], "several requests are for one"),
                        (["--account", "c"], "no such request")):  # fmt: skip
        done = run("provider", "enrolments", "approve", file, "--roster", roster, *wrong)
        assert done.exit_code == 2 and said in done.stderr
    done = run("provider", "enrolments", "approve", file, "--all", "--roster", roster, "--json")
    assert json.loads(done.stdout)["approved"] == 1  # whose is e?
    own = askers["e"].roster_entry.key
    assert (
        json.loads(
            run("provider", "enrolments", "approve", file, "--key", own, "--roster", roster, "--json").stdout
        )["added"]
        == 1
    )
    assert [line.key for line in load_roster(roster) if line.account == "e"] == [own]
    # A key that replaces another, by who has the old one; and by who says that it is lost.
    assert ask("a", "--rotate")["status"] == "pending"
    assert (
        json.loads(
            run(
                "provider", "enrolments", "approve", file, "--account", "a", "--roster", roster, "--json"
            ).stdout
        )["replaced"]
        == 1
    )
    assert "pending" not in run(
        "provider", "enrolments", "list", file, "--status", "all", "--window", "w-2"
    ).stdout.replace("pending", "", 1)
    status = run("account", "status", requested.parties.accounts["law-1"].directory, "--url", requested.service.url,
                 "--provider", key, "--json")  # fmt: skip
    assert json.loads(status.stdout)["n"] == 64
    assert (
        run("provider", "enrolments", "list", roster).exit_code == 2
        and run("provider", "enrolments", "list", tmp_path / "no").exit_code == 2
    )
    foreign = tmp_path / "foreign.sqlite"
    with sqlite3.connect(foreign) as db:
        db.execute("CREATE TABLE x (y)")
    with pytest.raises(StoreError, match="the file is not a book of enrolments"):
        EnrolmentBook(foreign)


def test_decisions_of_another_process_are_seen_and_survive(tmp_path: Path) -> None:
    path = tmp_path / "book.sqlite"
    request = request_of(account(tmp_path))
    with EnrolmentBook(path) as service, EnrolmentBook(path) as provider:
        service.take(request, 7, ["w-2"])
        assert provider.decide([request], "approved") == 1 and provider.decide([request], "rejected") == 0
        assert [k.request for k in service.due("w-2", 10)] == [request] and service.due("w-1", 10) == []
        service.enrolled([(request, 5)])
    with EnrolmentBook(path) as again:
        kept = again.find(request.digest())
        assert kept is not None and (kept.status, kept.seq, kept.received) == ("enrolled", 5, 7)
        assert again.due("w-2", 10) == [] and path.stat().st_mode & 0o777 == 0o600


def test_whoever_asked_first_has_the_place(tmp_path: Path) -> None:
    names = ["b", "a", "d", "c"]  # by arrival, which neither names nor digests have to follow
    with EnrolmentBook(tmp_path / "book.sqlite") as book:
        requests = [request_of(account(tmp_path, name)) for name in names]
        for now, request in enumerate(requests):
            book.take(request, now, ["w-2"])
        book.decide(requests, "approved")
        assert [kept.request.account for kept in book.due("w-2", 3)] == names[:3]
