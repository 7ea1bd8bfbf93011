"""A provider's side of a witness over HTTP: what it sends, and witnesses that are down, confused or lying."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest

from rag_audit.attest import submitting
from rag_audit.attest.submitting import (
    MAX_ANSWER_BYTES,
    Remote,
    WitnessDown,
    WitnessSaidNo,
    fetch_nonce,
    patiently_asked,
)
from rag_audit.errors import RagAuditError, SetupError, SignatureError, SizeError
from rag_audit.log.keys import ALG_COSIGNATURE
from rag_audit.log.merkle import verify_consistency
from rag_audit.log.note import cosign_note
from rag_audit.log.signing import SigningKey
from rag_audit.log.submission import SIZE_TYPE, Submission, cosignature_lines
from tests.clock import set_clock

from .conftest import ORIGIN, Ledger, header

WITNESS = SigningKey("w.example", ALG_COSIGNATURE, bytes(range(1, 33)))


@dataclass
class Stub:
    """A server that gives the answers that a test laid out, and keeps what it was asked."""

    answers: list[tuple[int, str, bytes]] = field(default_factory=list)
    requested: list[tuple[str, bytes]] = field(default_factory=list)
    url: str = ""

    def remote(self) -> Remote:
        return Remote(WITNESS.verifier, self.url, plain=True, patience_s=5)


@pytest.fixture
def stub() -> Iterator[Stub]:
    result = Stub()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            result.requested.append((self.path, self.rfile.read(int(self.headers["Content-Length"]))))
            status, kind, body = result.answers.pop(0)
            self.send_response(status)
            self.send_header("Content-Type", kind)
            if 300 <= status < 400:
                self.send_header("Location", result.url + "/elsewhere")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    result.url = f"http://127.0.0.1:{server.server_port}"
    thread = Thread(target=lambda: server.serve_forever(0.02))
    thread.start()
    yield result
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def ledger(log_key: SigningKey) -> Ledger:
    result = Ledger(log_key)
    result.append(header())
    for number in range(6):
        result.append({"type": "query", "n": number})
    return result


def follow(stub: Stub, ledger: Ledger) -> bytes:
    requested = submitting.Submitting(Path("unused"), ledger.key.verifier, [])
    return requested._follow(stub.remote(), ledger.checkpoint(), ledger.tree, 1)


def size(value: int) -> tuple[int, str, bytes]:
    return 409, SIZE_TYPE, b"%d\n" % value


def test_a_conflict_is_followed_with_the_proof_from_the_witness_s_size(stub: Stub, ledger: Ledger) -> None:
    lines = cosignature_lines(cosign_note(ledger.checkpoint(), WITNESS, 7), WITNESS.verifier).encode()
    stub.answers = [size(5), size(0), (200, "text/plain", lines)]
    assert follow(stub, ledger) == lines
    told = [Submission.parse(body) for path, body in stub.requested if path == "/add-checkpoint"]
    assert [t.old for t in told] == [1, 5, 0] and told[2].proof == ()
    for each in told[:2]:
        assert verify_consistency(each.old, 7, each.proof, ledger.tree.root(each.old), ledger.tree.root())


def test_a_witness_that_knows_a_longer_log_saw_a_fork(stub: Stub, ledger: Ledger) -> None:
    for answer in (size(8), size(1)):  # more than there is; the size that was sent, so another root
        stub.answers = [answer]
        with pytest.raises(WitnessSaidNo, match="another history"):
            follow(stub, ledger)


def test_a_witness_whose_size_never_settles_is_given_up_for_now(stub: Stub, ledger: Ledger) -> None:
    stub.answers = [size(n) for n in (2, 3, 2, 3)]
    with pytest.raises(WitnessDown, match="changes with every request"):
        follow(stub, ledger)


def test_refusals_are_told_with_what_the_witness_said(stub: Stub, ledger: Ledger) -> None:
    stub.answers = [(422, "application/json", b'{"error":"WitnessRefused","message":"the window is closed"}')]
    with pytest.raises(WitnessSaidNo) as refused:
        follow(stub, ledger)
    assert "422 the window is closed" in str(refused.value.actual)
    stub.answers = [(404, "text/plain", b"\x1b[2J unknown")]
    with pytest.raises(WitnessSaidNo) as refused:
        follow(stub, ledger)
    assert "\x1b" not in str(refused.value)


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_witness_that_cannot_answer_now_is_asked_again(stub: Stub, ledger: Ledger, status: int) -> None:
    stub.answers = [(status, "text/plain", b"later")]
    with pytest.raises(WitnessDown, match="cannot answer now"):
        follow(stub, ledger)


def test_a_redirection_is_not_followed(stub: Stub, ledger: Ledger) -> None:
    stub.answers = [(307, "text/plain", b"")]
    with pytest.raises(WitnessSaidNo):
        follow(stub, ledger)
    assert len(stub.requested) == 1


def test_an_answer_without_end_is_cut(stub: Stub, ledger: Ledger) -> None:
    stub.answers = [(200, "text/plain", b"x" * (MAX_ANSWER_BYTES + 1))]
    with pytest.raises(SizeError):
        follow(stub, ledger)


def test_a_nonce_of_another_key_is_refused(stub: Stub, log_key: SigningKey) -> None:
    other = SigningKey("w.example", ALG_COSIGNATURE, bytes(range(3, 35))).verifier
    line = f'{{"commitment":"{"00" * 32}","name":"w.example","vkey":"{other}"}}'
    stub.answers = [(200, "application/json", line.encode()), (200, "application/json", b"[]")]
    with pytest.raises(WitnessSaidNo, match="another key"):
        fetch_nonce(stub.remote(), ORIGIN, "w1", log_key)
    with pytest.raises(RagAuditError, match="not well-formed"):
        fetch_nonce(stub.remote(), ORIGIN, "w1", log_key)


def test_a_witness_that_is_down_is_named_and_waited_for(
    monkeypatch: pytest.MonkeyPatch, ledger: Ledger
) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound and not listening: nobody answers
        down = Stub(url=f"http://127.0.0.1:{taken.getsockname()[1]}")
        now, pauses, said = [0.0], [], []

        def act() -> Path | None:
            follow(down, ledger)
            return None

        def sleep(seconds: float) -> None:
            pauses.append(seconds)
            now[0] += seconds

        set_clock(monkeypatch, submitting, monotonic=lambda: now[0], sleep=sleep)
        with pytest.raises(WitnessDown, match="cannot be reached"):
            patiently_asked(act, 10, said.append)
    assert pauses == [1, 2, 4] and len(said) == 3 and "next request follows in 4 s" in said[2]


@pytest.mark.parametrize("url", ["ftp://w.example", "w.example", "https://", "https://w.example/?a=b"])
def test_an_address_that_is_no_url(url: str) -> None:
    with pytest.raises(SetupError, match="the value is not the URL of a witness"):
        Remote(WITNESS.verifier, url)


def test_a_wrong_cosignature_leaves_no_note(
    stub: Stub, ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    del ledger.entries[1:]
    (tmp_path / "checkpoint-1.txt").write_text(str(ledger.checkpoint()))
    requested = submitting.Submitting(tmp_path, ledger.key.verifier, [WITNESS.verifier])
    monkeypatch.setattr(requested, "_header", lambda: ledger.entries[0])
    longer = Ledger(ledger.key, entries=[*ledger.entries, b"{}"])
    wrong: Callable[[Ledger], bytes] = lambda of: cosignature_lines(  # noqa: E731
        cosign_note(of.checkpoint(), WITNESS, 7), WITNESS.verifier
    ).encode()
    stub.answers = [(200, "text/plain", wrong(longer)), (200, "text/plain", wrong(ledger))]
    with pytest.raises(SignatureError):
        requested.cosign(stub.remote())
    assert not (tmp_path / "notes").exists()
    assert requested.cosign(stub.remote()) == tmp_path / "notes" / "cosign-1-w.example.txt"
    assert requested.cosign(stub.remote()) is None and len(stub.requested) == 2
