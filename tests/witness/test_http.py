"""A witness over HTTP: what C2SP's tlog-witness says of each answer, and the rules that go beyond it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from rag_audit._internal.canonical import jcs
from rag_audit.log.checkpoint import Checkpoint, open_checkpoint
from rag_audit.log.note import parse_note
from rag_audit.log.signing import SigningKey
from rag_audit.log.submission import (
    ADD_CHECKPOINT,
    MAX_SUBMISSION_BYTES,
    SIZE_TYPE,
    Submission,
    read_cosignature,
)
from rag_audit.models.records import WitnessBeacon, log_origin
from rag_audit.models.witnessing import HEADER, NONCE, REVEAL, TRAILER, NonceRequest
from rag_audit.service.limits import Limits
from rag_audit.service.server import Server, listen
from rag_audit.witness import offers as witness_offers
from rag_audit.witness.http import Provider, WitnessApplication, WitnessService
from rag_audit.witness.offers import Offers
from rag_audit.witness.witness import Witness
from tests.serving.test_headers import exchanged

from .conftest import OPENS, ORIGIN, Ledger, beacon_of, header, query, witness_beacon_of

LOG = log_origin(ORIGIN, "w1")


class Asked:
    """A witness on a port of this machine, and a client of it."""

    def __init__(self, witness: Witness, log_key: SigningKey, server: Server, faults: list[Any]) -> None:
        self.witness, self.key, self.server, self.faults = witness, log_key, server, faults
        self.http = httpx.Client(base_url=server.url)

    def add(self, ledger: Ledger, old: int, proof: list[bytes] | None = None) -> httpx.Response:
        path = ledger.consistency(old) if proof is None and old else proof or []
        return self.post(ADD_CHECKPOINT, str(Submission(old, path, ledger.checkpoint())))

    def open(self, ledger: Ledger) -> httpx.Response:
        entry = json.loads(ledger.entries[0])
        return self.post(HEADER, jcs({"checkpoint": str(ledger.checkpoint(1)), "header": entry}))

    def end(self, ledger: Ledger, old: int = 1) -> httpx.Response:
        """Close a window, and show one of its queries if it has any."""
        enrolled = sum(json.loads(e)["type"] == "enrolment" for e in ledger.entries)
        requested = sum(json.loads(e)["type"] == "query" for e in ledger.entries)
        entry, path = ledger.close("w1", queries=requested, enrolments=enrolled)
        told: dict[str, Any] = {
            "submission": str(Submission(old, ledger.consistency(old), ledger.checkpoint())),
            "trailer": json.loads(entry),
            "path": [h.hex() for h in path],
        }
        if (shown := ledger.shown()) is not None:
            told["query"] = {"entry": json.loads(shown.entry), "index": shown.index,
                             "path": [h.hex() for h in shown.path]}  # fmt: skip
        return self.post(TRAILER, jcs(told))

    def nonce(self, window: str, key: SigningKey | None = None, origin: str = ORIGIN) -> httpx.Response:
        request = NonceRequest(origin=origin, window=window).sign(key or self.key)
        return self.post(NONCE, str(request))

    def post(self, path: str, body: str | bytes) -> httpx.Response:
        return self.http.post(path, content=body)


@pytest.fixture
def requested(make_witness: Callable[[str], Witness], log_key: SigningKey, tmp_path: Path) -> Iterator[Asked]:
    witness, limits, faults = make_witness("w.example"), Limits(), []
    provider = Provider(ORIGIN, log_key.verifier, [witness.vkey], 1)
    service = WitnessService(witness, Offers(tmp_path / "w.example", witness), [provider])
    app = WitnessApplication(service, limits, faults.append)
    with Server(app, listen("127.0.0.1", 0), limits) as server:
        server.start()
        client = Asked(witness, log_key, server, faults)
        yield client
        client.http.close()
    assert faults == []


def test_a_witness_reads_headers_by_the_same_rules(requested: Asked) -> None:
    """Raw requests: a header above the limit, two lengths, a folded line."""
    maximum, host = Limits().header_bytes, b"Host: x\r\n"
    for lines, status in (
        (host + b"X: " + b"x" * maximum, b"431"),
        (host + b"Content-Length: 5\r\nTransfer-Encoding: chunked", b"400"),
        (host + b"X: a\r\n b", b"400"),
    ):
        answer = exchanged(requested.server.url, b"POST /nonce HTTP/1.1\r\n" + lines + b"\r\n\r\n0\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 " + status) and answer.count(b"HTTP/1.1 ") == 1


def started(log_key: SigningKey, **changes: Any) -> Ledger:
    ledger = Ledger(log_key)
    ledger.append(header(**changes))
    return ledger


def test_a_window_is_cosigned_from_its_opening_to_its_end(requested: Asked, log_key: SigningKey) -> None:
    ledger = started(log_key)
    assert requested.open(ledger).status_code == 200
    ledger.add(beacon_of())
    ledger.add(query())
    grown = requested.add(ledger, 1)
    assert grown.status_code == 200
    note = read_cosignature(ledger.checkpoint(), grown.content, requested.witness.vkey, field="w")
    signed = open_checkpoint(note, origin=LOG, log_key=log_key.verifier, witnesses=[requested.witness.vkey])
    assert list(signed.cosignatures) == [requested.witness.vkey]
    assert requested.end(ledger, 3).status_code == 200
    assert requested.witness.last(LOG) == (4, ledger.tree.root())
    ledger.append({"type": "query"})
    late = requested.add(ledger, 4)
    assert late.status_code == 422 and "the window is closed" in late.text


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda shown: None, "the window trailer counts queries, and the submission shows no query record"),
        (lambda shown: {**shown, "index": 1}, "not a query record of the window at this index"),
        (lambda shown: {**shown, "entry": {**shown["entry"], "seq": 3}}, "not a query record of the window"),
        (lambda shown: {**shown, "entry": {**shown["entry"], "window": "w2"}}, "not a query record of the"),
        (lambda shown: {**shown, "entry": {**shown["entry"], "i": 2}}, "not in the checkpointed tree"),
        (lambda shown: {**shown, "path": shown["path"][:-1]}, "not in the checkpointed tree"),
        (lambda shown: {"entry": beacon_of() | {"seq": 1}, "index": 1, "path": []}, "not a query record of"),
    ],
    ids=["none", "another place", "another seq", "another window", "another query", "a cut path", "a beacon"],
)
def test_a_window_is_complete_only_with_a_query_that_is_shown(
    requested: Asked, log_key: SigningKey, change: Callable[[dict[str, Any]], Any], reason: str
) -> None:
    """Over HTTP the witness reads no entries: the closing record alone could count queries that nobody asked."""
    ledger = started(log_key)
    requested.open(ledger)
    ledger.add(beacon_of())
    ledger.add(query())
    shown = {"entry": json.loads(ledger.entries[2]), "index": 2}
    entry, path = ledger.close("w1", queries=1)
    shown["path"] = [h.hex() for h in ledger.tree.inclusion_path(2)]
    told = {"submission": str(Submission(1, ledger.consistency(1), ledger.checkpoint())),
            "trailer": json.loads(entry), "path": [h.hex() for h in path]}  # fmt: skip
    false = change(shown)
    answer = requested.post(TRAILER, jcs({**told, **({} if false is None else {"query": false})}))
    assert answer.status_code == 422 and reason in answer.json()["message"]
    assert requested.witness.last(LOG) == (1, ledger.tree.root(1))
    assert requested.post(TRAILER, jcs({**told, "query": shown})).status_code == 200


def test_an_end_that_was_cosigned_without_its_record_is_closed_by_it(
    requested: Asked, log_key: SigningKey
) -> None:
    """Plain add-checkpoint says nothing of closing records, so the same checkpoint is taken with one afterwards."""
    ledger = started(log_key)
    requested.open(ledger)
    entry, path = ledger.close("w1")
    assert requested.add(ledger, 1).status_code == 200
    told = {"submission": str(Submission(2, [], ledger.checkpoint())), "trailer": json.loads(entry),
            "path": [h.hex() for h in path]}  # fmt: skip
    assert requested.post(TRAILER, jcs(told)).status_code == 200
    ledger.append({"type": "query"})
    assert "the window is closed" in requested.add(ledger, 2).text


def test_an_unknown_origin(requested: Asked, log_key: SigningKey) -> None:
    ledger = Ledger(log_key, log_origin("other.example", "w1"))
    ledger.append(header(origin="other.example"))
    assert requested.add(ledger, 0).status_code == 404
    assert requested.open(ledger).status_code == 404
    # An origin that only starts like the known one is another.
    longer = Ledger(log_key, f"{LOG}/w2")
    longer.append(header())
    assert requested.add(longer, 0).status_code == 404


def test_a_checkpoint_that_the_provider_did_not_sign(requested: Asked) -> None:
    ledger = started(SigningKey.generate(ORIGIN))
    for answer in (requested.add(ledger, 0), requested.open(ledger)):
        assert answer.status_code == 403 and answer.json()["error"] == "SignatureError"
    assert requested.witness.last(LOG) is None


def test_a_wrong_old_size_is_told_the_known_one(requested: Asked, log_key: SigningKey) -> None:
    ledger = started(log_key)
    unknown = requested.add(ledger, 1)
    assert (unknown.status_code, unknown.text) == (409, "0\n")
    requested.open(ledger)
    ledger.append({"type": "beacon"})
    answer = requested.add(ledger, 0)
    assert (answer.status_code, answer.text) == (409, "1\n")
    assert answer.headers["content-type"] == SIZE_TYPE
    assert requested.add(ledger, 3, []).status_code == 400  # above the checkpoint's size


def test_a_proof_that_does_not_hold(requested: Asked, log_key: SigningKey) -> None:
    ledger = started(log_key)
    requested.open(ledger)
    ledger.append({"type": "beacon"})
    for proof in ([bytes(32)], [], [bytes(32), bytes(32)]):
        assert requested.add(ledger, 1, proof).status_code == 422
    assert requested.witness.last(LOG) == (1, ledger.tree.root(1))


def test_a_log_that_forks(requested: Asked, log_key: SigningKey) -> None:
    ledger = started(log_key)
    requested.open(ledger)
    other = started(log_key, closes_at=OPENS + 1)
    fork = requested.open(other)
    assert fork.status_code == 422 and "this witness cosigned another header of this window" in fork.text
    same = requested.add(other, 1, [])
    assert (same.status_code, same.text) == (409, "1\n")
    other.append({"type": "beacon"})
    assert requested.add(other, 1).status_code == 422
    ledger.append({"type": "beacon"})
    assert requested.add(ledger, 1).status_code == 200


def test_an_opening_without_its_record_is_not_cosigned(requested: Asked, log_key: SigningKey) -> None:
    """Otherwise a window could begin without the witness's rules for openings."""
    answer = requested.add(started(log_key), 0)
    assert answer.status_code == 422 and HEADER in answer.json()["hint"]
    assert requested.witness.last(LOG) is None


def test_an_opening_that_breaks_a_rule_is_refused(requested: Asked, log_key: SigningKey) -> None:
    for changes, reason in (({"opens_at": 1}, "in the past"), ({"closes_at": OPENS}, "before it opens")):
        answer = requested.open(started(log_key, **changes))
        assert answer.status_code == 422 and reason in answer.json()["message"]


def test_a_window_that_has_gone_on_is_not_opened_again(requested: Asked, log_key: SigningKey) -> None:
    ledger = started(log_key)
    requested.open(ledger)
    ledger.append({"type": "beacon"})
    requested.add(ledger, 1)
    again = requested.open(ledger)
    assert (again.status_code, again.text) == (409, "2\n")


def test_bodies_that_are_no_requests(requested: Asked, log_key: SigningKey) -> None:
    for body in (b"", b"old 1\n", b"\xff\xfe", b"old 1\n\nnot a note", b"old 0\n\na\n1\nAAAA\n\n"):
        assert requested.post(ADD_CHECKPOINT, body).status_code == 400, body
    long = requested.post(ADD_CHECKPOINT, b"x" * (MAX_SUBMISSION_BYTES + 1))
    assert long.status_code == 413 and "longer than" in long.json()["message"]
    for path in (HEADER, TRAILER, REVEAL):
        for body in (b"", b"[]", b"{}", b'{"a": 1, "a": 2}', b"[" * 5000):
            assert requested.post(path, body).status_code == 400, body
    assert requested.http.get(ADD_CHECKPOINT).status_code == 405
    assert requested.http.get("/").status_code == 404


def test_nonces_are_given_to_the_provider_and_revealed_once(requested: Asked, log_key: SigningKey) -> None:
    line = requested.nonce("w1")
    assert line.status_code == 200 and requested.nonce("w1").content == line.content
    assert requested.nonce("w2").content != line.content
    beacon = WitnessBeacon.parse({"source": "witnesses", "witnesses": [line.json()]}, field="beacon")
    ledger = started(log_key, beacon=beacon.dump())
    note = read_cosignature(
        ledger.checkpoint(), requested.open(ledger).content, requested.witness.vkey, field="w"
    )
    told = {"checkpoint": str(note), "entry": json.loads(ledger.entries[0]), "index": 0, "path": []}
    revealed = requested.post(REVEAL, jcs(told))
    assert revealed.status_code == 200 and parse_note(revealed.content).text.startswith("rag-audit/beacon/v1")
    assert requested.post(REVEAL, jcs(told)).content == revealed.content


def test_an_open_window_s_enrolments_have_a_nonce_of_their_own(requested: Asked, log_key: SigningKey) -> None:
    """The same one until it is revealed, over a root that has every enrolment that names it; none after the end."""
    first = requested.nonce("w1").json()
    ledger = started(
        log_key, beacon=witness_beacon_of([(requested.witness, bytes.fromhex(first["commitment"]))])
    )
    assert requested.open(ledger).status_code == 200
    line = requested.nonce("w1")
    assert line.status_code == 200 and line.json()["commitment"] != first["commitment"]
    assert requested.nonce("w1").content == line.content
    ledger.append({"type": "beacon"})
    beacon = witness_beacon_of([(requested.witness, bytes.fromhex(line.json()["commitment"]))])
    for name in ("one", "other"):
        ledger.append({"type": "enrolment", "v": 1, "seq": len(ledger.entries), "ts": 1, "account": name,
                       "tenant": "law", "key": "11" * 32, "custody": "account", "beacon": beacon})  # fmt: skip
    grown = requested.add(ledger, 1)
    note = read_cosignature(ledger.checkpoint(), grown.content, requested.witness.vkey, field="w")
    revealed = [
        requested.post(REVEAL, jcs({"checkpoint": str(note), "entry": json.loads(ledger.entries[at]), "index": at,
                                "path": [h.hex() for h in ledger.tree.inclusion_path(at)]})) for at in (2, 3)
    ]  # fmt: skip
    assert [r.status_code for r in revealed] == [200, 200] and revealed[0].content == revealed[1].content
    after = requested.nonce("w1")
    assert after.status_code == 200 and after.content != line.content
    assert requested.end(ledger, 4).status_code == 200
    closed = requested.nonce("w1")
    assert closed.status_code == 422 and "the window is closed" in closed.json()["message"]


def test_a_nonce_is_not_revealed_before_the_quorum(requested: Asked, log_key: SigningKey) -> None:
    beacon = witness_beacon_of(
        [(requested.witness, bytes.fromhex(requested.nonce("w1").json()["commitment"]))]
    )
    ledger = started(log_key, beacon=beacon)
    requested.open(ledger)
    told = {
        "checkpoint": str(ledger.checkpoint()),
        "entry": json.loads(ledger.entries[0]),
        "index": 0,
        "path": [],
    }
    answer = requested.post(REVEAL, jcs(told))
    assert answer.status_code == 403 and "too few witnesses" in answer.json()["message"]


def test_a_nonce_is_drawn_for_the_provider_only_and_not_without_end(
    requested: Asked, log_key: SigningKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert requested.nonce("w1", SigningKey.generate(ORIGIN)).status_code == 403
    assert requested.nonce("w1", origin="other.example").status_code == 404
    assert requested.post(NONCE, str(Checkpoint(LOG, 1, bytes(32)).sign(log_key))).status_code == 400
    monkeypatch.setattr(witness_offers, "MAX_OFFERS", 1)
    first = requested.nonce("w1")
    refused = requested.nonce("w2")
    assert refused.status_code == 422 and "too many nonces" in refused.json()["message"]
    ledger = started(
        log_key, beacon=witness_beacon_of([(requested.witness, bytes.fromhex(first.json()["commitment"]))])
    )
    assert requested.open(ledger).status_code == 200
    assert requested.nonce("w2").status_code == 200


def test_health_readiness_and_metrics_name_nobody(
    requested: Asked, log_key: SigningKey, tmp_path: Path
) -> None:
    assert requested.http.get("/healthz").json() == {"alive": True}
    assert requested.http.get("/readyz").json() == {"ready": True}
    ledger = started(log_key)
    requested.open(ledger)
    requested.add(ledger, 3, [])
    requested.http.get("/nothing")
    page = requested.http.get("/metrics")
    lines = page.text.splitlines()
    for route, status in ((HEADER, 200), (ADD_CHECKPOINT, 400), ("other", 404), ("/readyz", 200)):
        assert f'rag_audit_witness_responses_total{{route="{route}",status="{status}"}} 1.0' in lines
    assert "rag_audit_witness_requests_in_service 0.0" in lines
    assert "rag_audit_witness_requests_in_service_limit 64.0" in lines
    assert ORIGIN not in page.text and "w1" not in page.text
    assert requested.http.post("/healthz").status_code == 405
    state = tmp_path / "w.example" / "state.json"
    state.rename(state.with_suffix(".gone"))
    gone = requested.http.get("/readyz")
    assert (gone.status_code, gone.json()["reason"]) == (503, "the witness's state cannot be read")
    state.with_suffix(".gone").rename(state)
    requested.server._served._waiting = 64  # type: ignore[attr-defined]
    assert requested.http.get("/readyz").json()["reason"] == "too many requests wait"
    assert requested.http.get("/healthz").status_code == 200
    requested.server._served._waiting = 0  # type: ignore[attr-defined]


def test_the_state_is_durable_before_the_answer(
    requested: Asked, log_key: SigningKey, tmp_path: Path
) -> None:
    ledger = started(log_key)
    requested.open(ledger)
    assert Witness(tmp_path / "w.example").last(LOG) == (1, ledger.tree.root())
