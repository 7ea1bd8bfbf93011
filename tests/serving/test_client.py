"""An account's client over HTTP: what it keeps, when it sends again, and what it believes of a log."""

from __future__ import annotations

import asyncio
import http.server
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from email.utils import formatdate
from pathlib import Path
from typing import Any

import httpx
import pytest
from click.testing import CliRunner, Result

from rag_audit._internal.http import too_large
from rag_audit.account.account import Account, embedder_of
from rag_audit.account.client import AsyncClient, Client, Patience
from rag_audit.account.client.attempts import Attempts, Wait
from rag_audit.account.client.reading import ComparedReceipts, compared, published
from rag_audit.account.prepared import Questions
from rag_audit.attest.window import Window
from rag_audit.cli import main
from rag_audit.errors import (
    EncodingError,
    InvalidProof,
    NotSent,
    RagAuditError,
    RequestRefused,
    SetupError,
    SignatureError,
    SizeError,
)
from rag_audit.log.checkpoint import Checkpoint
from rag_audit.log.merkle import root_of
from rag_audit.log.signing import SigningKey
from rag_audit.models.requests import Answer
from rag_audit.service.server import listen
from rag_audit.service.windows import Windows
from tests.serving.conftest import Served, serving
from tests.window.simulator import Service

QUICK = Patience(seconds=60, attempts=6, pause_s=0.001, longest_s=0.002)


@contextmanager
def stub(replies: list[tuple[int, dict[str, str], bytes] | None]) -> Iterator[tuple[str, list[bytes]]]:
    """A server that gives these responses, one for each request; None ends the connection without one."""
    bodies: list[bytes] = []
    left = iter(replies)

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
            self._next()

        def do_GET(self) -> None:
            self._next()

        def _next(self) -> None:
            reply = next(left)
            if reply is None:
                self.close_connection = True
                return
            status, headers, body = reply
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            return

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}", bodies
        finally:
            server.shutdown()
            thread.join()


class Both:
    """The client with and without asyncio, by the same calls."""

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def run(self, url: str, key: Any, call: Callable[[Any], Any], **options: Any) -> Any:
        if self.kind == "sync":
            with Client(url, key, patience=QUICK, **options) as client:
                return call(client)

        async def work() -> Any:
            async with AsyncClient(url, key, patience=QUICK, **options) as client:
                return await call(client)

        return asyncio.run(work())


@pytest.fixture(params=["sync", "asynchronous"])
def both(request: pytest.FixtureRequest) -> Both:
    return Both(request.param)


def _key(served: Served) -> Any:
    return served.parties.key.verifier


def test_a_question_is_asked_and_its_receipt_kept_and_found_in_the_log(served: Served, both: Both) -> None:
    name = "law-2" if both.kind == "sync" else "medicine-1"
    account, url = served.parties.accounts[name], served.service.url
    answer = both.run(url, _key(served), lambda client: client.ask(account, "What is a contract?"))
    window = served.publication
    kept = account.receipts(window)
    assert kept[-1].query == "What is a contract?" and kept[-1].receipt == answer.receipt
    assert not list(account.directory.glob("pending-*"))
    served.service.app.public._log(served.window)._signed = None  # as after `CHECKPOINT_S`
    keys = tuple(w.vkey for w in served.parties.witnesses.values())
    for _ in range(2):  # and the second time against the checkpoint of the first
        result = both.run(url, _key(served), lambda client: client.compare_receipts(account, window, keys))
        assert result == ComparedReceipts(
            served.window.state.tree.size, checked=len(kept), later=0, cosigned=0
        )


def test_lost_and_refused_requests_are_repeated_as_they_are(served: Served, both: Both) -> None:
    account = served.parties.accounts["law-1"]
    request = served.request("law-1", "Who owns a book's text?")
    answer = served.post("/v1/query", request.canonical())
    busy = served.window.refuse("unavailable", "full", account="law-1", i=request.i, hq=request.hq)
    replies: list[Any] = [
        None,
        (429, {"Retry-After": "0"}, busy.canonical()),
        (502, {}, b"<html>a proxy's own page</html>"),
        (503, {}, b'{"error":"WindowStateError"}'),
        (200, {}, answer.body),
    ]
    with stub(replies) as (url, bodies):
        window = served.publication
        result = both.run(
            url, _key(served), lambda client: client.ask(account, "Who owns a book's text?", window=window)
        )
    assert result.dump() == answer.value
    assert bodies == [request.canonical()] * 5


@pytest.mark.parametrize("after", ["3600", formatdate(4_102_444_800, usegmt=True)])
def test_what_is_refused_for_good_is_not_repeated(served: Served, both: Both, after: str) -> None:
    account = served.parties.accounts["law-1"]
    request = served.request("law-1", "What is bail?")
    refusal = served.window.refuse("not-open", "later", account="law-1", i=request.i, hq=request.hq)
    with (
        stub([(503, {"Retry-After": after}, refusal.canonical())]) as (url, bodies),
        pytest.raises(RequestRefused, match="later") as caught,
    ):
        both.run(url, _key(served), lambda c: c.ask(account, "What is bail?", window=served.publication))
    assert caught.value.reason == "not-open" and len(bodies) == 1
    assert not list(account.directory.glob("pending-*"))


def test_without_an_end_of_refusals_the_account_keeps_its_request(served: Served, both: Both) -> None:
    account, window = served.parties.accounts["law-1"], served.publication
    request = served.request("law-1", "What is a tort?")
    busy = served.window.refuse("unavailable", "full", account="law-1", i=request.i, hq=request.hq)
    with (
        stub([(503, {}, busy.canonical())] * QUICK.attempts) as (url, bodies),
        pytest.raises(RequestRefused, match="full"),
    ):
        both.run(url, _key(served), lambda client: client.ask(account, "What is a tort?", window=window))
    assert len(bodies) == QUICK.attempts
    with stub([None] * QUICK.attempts) as (url, bodies), pytest.raises(SetupError) as caught:
        both.run(url, _key(served), lambda client: client.ask(account, "What is a tort?", window=window))
    assert not isinstance(caught.value, NotSent)
    assert len(bodies) == QUICK.attempts
    assert account.request(window, "What is a tort?") == request
    both.run(served.service.url, _key(served), lambda c: c.ask(account, "What is a tort?", window=window))


def test_what_never_left_blocks_no_other_question(served: Served, both: Both) -> None:
    account, window = served.parties.accounts["law-1"], served.publication
    with listen("127.0.0.1", 0) as taken:
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
    with pytest.raises(NotSent, match="does not answer"):
        both.run(url, _key(served), lambda client: client.ask(account, "First?", window=window))
    both.run(served.service.url, _key(served), lambda c: c.ask(account, "Second?", window=window))
    assert account.receipts(window)[-1].query == "Second?"


def test_another_address_s_answer_is_none(served: Served, both: Both) -> None:
    account, window = served.parties.accounts["law-2"], served.publication
    replies: list[Any] = [(404, {}, b"<html>"), (200, {}, b"<html>"), (302, {"Location": "/x"}, b"")]
    for reply in replies:
        with stub([reply]) as (url, _), pytest.raises(SetupError, match="does not belong to a service"):
            both.run(url, _key(served), lambda client: client.ask(account, "What?", window=window))
    served.accept("law-2", account.request(window, "What?"), served.post(
        "/v1/query", account.request(window, "What?").canonical()))  # fmt: skip


@pytest.mark.parametrize("url", ["", "x", "ftp://x", "http://", "http://x?q", "http://x#f", "http://x:y"])
def test_what_is_no_url_is_said(served: Served, url: str) -> None:
    with pytest.raises(SetupError, match="URL"):
        Client(url, _key(served))


SECRET = "pass-word"


@pytest.mark.parametrize(
    "url", [f"ftp://me:{SECRET}@x", f"me:{SECRET}@x", f"http://me:{SECRET}@x?q", f"http://me:{SECRET}/y@x:z"]
)
def test_no_error_of_an_address_shows_its_password(served: Served, url: str) -> None:
    with pytest.raises(SetupError) as caught:
        Client(url, _key(served))
    assert SECRET not in f"{caught.value} {caught.value.as_json()}" and "***@x" in str(caught.value)


def test_no_error_of_a_service_shows_the_password_of_its_address(served: Served, both: Both) -> None:
    account, window = served.parties.accounts["law-2"], served.publication
    calls: list[tuple[Any, Any]] = [
        (lambda client: client.publication(), (404, {}, b"")),
        (lambda client: client.ask(account, "What is theft?", window=window), (404, {}, b"<html>")),
        (lambda client: client.ask(account, "What is theft?", window=window), None),
    ]
    for call, reply in calls:
        with stub([reply] * QUICK.attempts) as (url, _), pytest.raises(RagAuditError) as caught:
            both.run(url.replace("://", f"://me:{SECRET}@"), _key(served), call)
        assert SECRET not in f"{caught.value} {caught.value.as_json()}"
        assert "//***@127.0.0.1" in str(caught.value.field)
    response = httpx.Response(200, request=httpx.Request("GET", f"http://me:{SECRET}@x/tile"))
    assert str(too_large(response, 9).field) == "http://***@x/tile"
    served.accept("law-2", account.request(window, "What is theft?"), served.post(
        "/v1/query", account.request(window, "What is theft?").canonical()))  # fmt: skip


def test_patience_has_an_end() -> None:
    now = [0.0]
    attempts = Attempts(Patience(seconds=10), "x", clock=lambda: now[0])
    assert isinstance(attempts.reply(503, "2", b""), Wait)
    result = attempts.reply(429, "5", b"")
    assert isinstance(result, Wait) and result.seconds >= 5
    with pytest.raises(SetupError):
        attempts.reply(429, "3600", b"")
    now[0] = 9.99
    with pytest.raises(SetupError):
        attempts.lost("reset", sent=False)


# -- what a log says -------------------------------------------------------------------------------------


def _driven(reading: Any, files: dict[str, bytes]) -> Any:
    """What a reader makes of these files."""
    try:
        path, maximum = next(reading)
        while True:
            data = files[path]
            assert len(data) <= maximum
            path, maximum = reading.send(data)
    except StopIteration as end:
        return end.value


@pytest.fixture
def files(served: Served) -> dict[str, bytes]:
    """The window's files as they stand, with a receipt of law-2 below the checkpoint."""
    client = Client(served.service.url, _key(served), patience=QUICK)
    with client:
        client.ask(served.parties.accounts["law-2"], "What is habeas corpus?")
    served.service.app.public._log(served.window)._signed = None
    size = served.window.state.tree.size
    names = ["/public/header.json", "/windows/w-1/checkpoint", "/windows/w-1/checkpoint-1.txt",
             f"/windows/w-1/tile/0/000.p/{size}"]  # fmt: skip
    return {name: served.get(name).body for name in names}


def _forged(files: dict[str, bytes], served: Served, leaves: list[bytes]) -> dict[str, bytes]:
    """The same with another log, which the provider signed too."""
    head = Checkpoint(served.window.header.log, len(leaves), root_of(leaves))
    return {**files, "/windows/w-1/checkpoint": str(head.sign(served.parties.key)).encode(),
            f"/windows/w-1/tile/0/000.p/{len(leaves)}": b"".join(leaves)}  # fmt: skip


def _leaves(served: Served) -> list[bytes]:
    tree = served.window.state.tree
    return tree.leaves(0, tree.size)


def test_a_log_that_contradicts_a_receipt_is_found_out(served: Served, files: dict[str, bytes]) -> None:
    account, window, key = served.parties.accounts["law-2"], served.publication, _key(served)
    (account.directory / f"checkpoint-{window.header_digest()[:16]}.txt").unlink(missing_ok=True)
    own = account.receipts(window)
    leaves = _leaves(served)
    assert _driven(compared(account, window, key), files).checked == len(own)
    other = [*leaves[:-1], b"\x01" * 32]
    for changed in (other, [*leaves[:2], b"\x01" * 32, *leaves[3:]]):
        (account.directory / f"checkpoint-{window.header_digest()[:16]}.txt").unlink(missing_ok=True)
        with pytest.raises(InvalidProof, match="receipt"):
            _driven(compared(account, window, key), _forged(files, served, changed))


def test_a_log_that_shrinks_or_changes_between_two_looks_is_found_out(
    served: Served, files: dict[str, bytes], tmp_path: Path
) -> None:
    stranger = Account.create(tmp_path / "stranger", "stranger", "law")  # without receipts
    window, key, leaves = served.publication, _key(served), _leaves(served)
    assert _driven(compared(stranger, window, key), files).checked == 0
    for changed in (leaves[:-1], [*leaves[:-1], b"\x01" * 32], [*leaves[:-1], b"\x01" * 32, b"\x02" * 32]):
        with pytest.raises(InvalidProof, match="lost or changed"):
            _driven(compared(stranger, window, key), _forged(files, served, changed))
    longer = _forged(files, served, [*leaves, b"\x02" * 32])
    assert _driven(compared(stranger, window, key), longer).size == len(leaves) + 1


def test_receipts_of_a_longer_log_than_the_checkpoint_wait(
    served: Served, files: dict[str, bytes], tmp_path: Path
) -> None:
    account, window, leaves = served.parties.accounts["law-2"], served.publication, _leaves(served)
    (account.directory / f"checkpoint-{window.header_digest()[:16]}.txt").unlink(missing_ok=True)
    result = _driven(compared(account, window, _key(served)), _forged(files, served, leaves[:-1]))
    assert result.later == 1 and result.checked == len(account.receipts(window)) - 1


def test_tiles_that_are_not_the_checkpoint_s_are_refused(served: Served, files: dict[str, bytes]) -> None:
    account, window, key = served.parties.accounts["law-2"], served.publication, _key(served)
    tile = f"/windows/w-1/tile/0/000.p/{len(_leaves(served))}"
    with pytest.raises(InvalidProof, match="tiles"):
        _driven(compared(account, window, key), {**files, tile: files[tile][32:] + bytes(32)})
    with pytest.raises(EncodingError, match="wrong size"):
        _driven(compared(account, window, key), {**files, tile: files[tile][1:]})
    with pytest.raises(SignatureError):
        _driven(compared(account, window, SigningKey.generate(key.name).verifier), files)
    huge = Checkpoint(window.parsed_header().log, 1 << 40, bytes(32)).sign(served.parties.key)
    with pytest.raises(EncodingError, match="too long"):
        _driven(compared(account, window, key), {**files, "/windows/w-1/checkpoint": str(huge).encode()})


def test_a_publication_is_its_provider_s(served: Served, files: dict[str, bytes]) -> None:
    assert _driven(published(_key(served)), files) == served.publication
    value = json.loads(files["/public/header.json"])
    cheats: list[tuple[dict[str, bytes], type[RagAuditError]]] = []
    value["roster"].pop()
    cheats.append(({**files, "/public/header.json": json.dumps(value).encode()}, InvalidProof))
    value = json.loads(files["/public/header.json"])
    value["header"]["c_seed"] = "0" * 64
    cheats.append(({**files, "/public/header.json": json.dumps(value).encode()}, InvalidProof))
    cheats.append(({**files, "/public/header.json": b"{}"}, RagAuditError))
    cheats.append(
        ({**files, "/windows/w-1/checkpoint-1.txt": files["/windows/w-1/checkpoint"]}, InvalidProof)
    )
    for changed, error in cheats:
        with pytest.raises(error):
            _driven(published(_key(served)), changed)
    with pytest.raises(SignatureError, match="the provider's key that you named did not sign") as caught:
        _driven(published(SigningKey.generate(_key(served).name).verifier), files)
    assert "provider.skey.pub" in str(caught.value.hint)


def test_a_response_without_end_is_cut_off(
    served: Served, both: Both, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rag_audit.account.client.reading.MAX_PUBLICATION_BYTES", 100)
    with stub([(200, {}, b"x" * 1000)]) as (url, _), pytest.raises(SizeError, match="too large"):
        both.run(url, _key(served), lambda client: client.publication())
    with stub([(404, {}, b"")]) as (url, _), pytest.raises(SetupError, match="cannot be fetched"):
        both.run(url, _key(served), lambda client: client.publication())


def test_a_response_that_drips_is_given_up(served: Served) -> None:
    patience = Patience(response_s=0.0)
    transport = httpx.MockTransport(lambda request: httpx.Response(200, stream=httpx.ByteStream(b"x")))
    with (
        Client("http://x", _key(served), patience=patience, transport=transport) as client,
        pytest.raises(SetupError, match="does not end"),
    ):
        client.publication()

    async def read() -> None:
        async with AsyncClient("http://x", _key(served), patience=patience, transport=transport) as client:
            await client.publication()

    with pytest.raises(SetupError, match="does not end"):
        asyncio.run(read())


def test_the_window_is_read_again_after_a_refusal(opened: tuple[Service, Window], parties: Service) -> None:
    following = parties.open(system="scan", window="w-2")
    windows = Windows(opened[1])
    with (
        following,
        serving(*opened, served=windows) as served,
        Client(served.service.url, _key(served), patience=QUICK) as client,
    ):
        assert client.publication().parsed_header().window == "w-1"
        windows.put(following)
        windows.take(opened[1])
        account = parties.accounts["law-1"]
        with pytest.raises(RagAuditError):  # an account of the second window only
            client.ask(account, "What is a contract?")
        assert client._window is None


# -- the command -----------------------------------------------------------------------------------------


def test_query_and_receipts_over_http(served: Served, tmp_path: Path) -> None:
    key = tmp_path / "key.pub"
    key.write_text(str(_key(served)))
    account = served.parties.accounts["medicine-1"].directory
    options = ["--account", str(account), "--url", served.service.url, "--provider", str(key)]

    def run(*words: str) -> Any:
        done = CliRunner().invoke(main, [*words, "--json"])
        assert done.exit_code == 0, done.output
        return json.loads(done.stdout)

    requested = len(served.parties.accounts["medicine-1"].receipts(served.publication))
    assert run("account", "query", "What lowers blood sugar?", *options)["tokens_beyond"] > 0
    assert len(served.parties.accounts["medicine-1"].receipts(served.publication)) == requested + 1
    served.service.app.public._log(served.window)._signed = None
    assert run("account", "receipt", "check", *options)["checked"] >= 1
    (kept,) = (account / "windows").iterdir()
    exported = run(
        "account",
        "receipt",
        "export",
        "--account",
        str(account),
        "--window",
        str(kept),
        "--out",
        str(tmp_path),
    )
    assert exported["receipts"]
    for wrong in (["--socket", "x"], ["--provider-dir", "x"]):
        assert CliRunner().invoke(main, ["account", "query", "x", *options, *wrong]).exit_code == 2
    assert (
        CliRunner()
        .invoke(main, ["account", "query", "x", *options[:2], *options[4:], "--socket", "x"])
        .exit_code
        == 2
    )


def test_questions_that_are_written_down_block_nothing(
    served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    public, account = served.window.directory / "public", served.parties.accounts["medicine-2"]
    (tmp_path / "key.pub").write_text(str(_key(served)))
    given = ["--account", str(account.directory), "--window", str(public)]
    told = [*given, "--url", served.service.url, "--provider", str(tmp_path / "key.pub"), "--json"]

    def run(*words: str) -> Result:
        return CliRunner().invoke(main, ["account", "query", *words])

    before = account.receipts(served.publication)
    for text in ("What is fever?", "What is asthma?", "What is aspirin?"):
        done = run(text, *given, "--later")
        assert done.exit_code == 0 and Path(done.stdout.strip()).stat().st_mode & 0o077 == 0
    assert run("", *given, "--later").exit_code == 2
    assert account.receipts(served.publication) == before
    assert run("What lowers blood sugar?", *told).exit_code == 0  # its number is the next, and not the fourth
    requested = len(account.receipts(served.publication))  # with what another test may have left unanswered

    ask = Account.ask

    def refused(self: Account, window: Any, text: str, *rest: Any, **options: Any) -> Answer:
        if "asthma" in text:
            raise RequestRefused("limit", "the account has used its queries")
        return ask(self, window, text, *rest, **options)

    with monkeypatch.context() as patch:
        patch.setattr(Account, "ask", refused)
        done = run("--prepared", *told)
    assert done.exit_code == 2 and "used its queries" in done.stderr
    assert [a["question"] for a in json.loads(done.stdout)["answers"]] == [
        "What is fever?",
        "What is aspirin?",
    ]
    assert [text for _, text in Questions(account.directory, served.publication)] == ["What is asthma?"]
    assert run("--prepared", *told).exit_code == 0
    assert [k.query for k in account.receipts(served.publication)][requested - 1 :] == [
        "What lowers blood sugar?", "What is fever?", "What is aspirin?", "What is asthma?",
    ]  # fmt: skip
    assert json.loads(run("--prepared", *told).stdout) == {"answers": []}
    for wrong in (["x", "--prepared"], [], ["x", "--later", "--prepared"]):
        assert run(*wrong, *told).exit_code == 2


def test_a_question_that_could_not_be_read_back_is_not_written_down(served: Served, tmp_path: Path) -> None:
    questions, embedder = Questions(tmp_path, served.publication), embedder_of(served.publication)
    questions.add("question", embedder)
    with pytest.raises(SizeError, match="too long"):
        questions.add("question " * 40_000, embedder)
    (tmp_path / "prepared" / f"{served.publication.header_digest()[:16]}-mine-.json").write_text("{}")
    questions.add("another", embedder)
    assert [text for _, text in questions] == ["question", "another"]


def test_many_prepared_questions_stay_in_order(served: Served, tmp_path: Path) -> None:
    questions, embedder = Questions(tmp_path, served.publication), embedder_of(served.publication)
    for number in range(12):
        questions.add(f"question {number}", embedder)
    assert [text for _, text in questions] == [f"question {number}" for number in range(12)]
