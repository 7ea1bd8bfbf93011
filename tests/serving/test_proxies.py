"""One rule for the proxy variables of the environment, in every client of the package."""

from __future__ import annotations

import asyncio
import http.server
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rag_audit._internal.http import CERTIFICATE_VARIABLES, Caller, httpx_options, read_object
from rag_audit._internal.proxies import address_of, proxy_of
from rag_audit.account.client.asynchronous import AsyncClient
from rag_audit.account.client.attempts import Patience
from rag_audit.account.client.sync import Client
from rag_audit.account.retrievers.source import Source
from rag_audit.attest import submitting
from rag_audit.errors import RagAuditError, SetupError
from rag_audit.log.signing import SigningKey
from tests.endpoint import serving
from tests.serving.conftest import Served
from tests.window.simulator import QUESTIONS

VARIABLES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")
HOSTILE = {
    "ALL_PROXY": "socks://127.0.0.1:7891/",
    "HTTP_PROXY": "http://[::1",
    "all_proxy": "http://proxy.test:99999",
    "http_proxy": "\udcff",
}
KEY = SigningKey.generate("example.org/rag").verifier
BRIEF = Patience(seconds=5, attempts=1)


@pytest.fixture(autouse=True)
def _no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.fixture
def proxy() -> Iterator[tuple[str, list[tuple[str, str, str | None]]]]:
    """A proxy that answers every request itself, and what it was asked: method, target, authorization."""
    seen: list[tuple[str, str, str | None]] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def _answer(self) -> None:
            seen.append((self.command, self.path, self.headers.get("Proxy-Authorization")))
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            body = json.dumps({"ok": True}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = _answer

        def do_CONNECT(self) -> None:
            seen.append((self.command, self.path, self.headers.get("Proxy-Authorization")))
            self.send_error(403)

        def log_message(self, *args: Any) -> None:
            pass

    with serving(http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)) as server:
        yield f"127.0.0.1:{server.server_port}", seen


def chosen(url: str, environ: dict[str, str]) -> str | None:
    """The proxy by which an address is reached, if it is reached by one."""
    address = address_of(url)
    assert address is not None
    result = proxy_of(address, environ)
    return None if result is None else result.url


@pytest.mark.parametrize(
    ("url", "environ", "expected"),
    [
        ("http://a.test", {}, None),
        ("http://a.test", {"HTTP_PROXY": "p.test:3128"}, "http://p.test:3128"),
        ("http://a.test", {"HTTP_PROXY": "http://u:w%40@p.test"}, "http://u:w%40@p.test:80"),
        ("https://a.test", {"HTTP_PROXY": "p.test:3128"}, None),
        ("https://a.test", {"HTTPS_PROXY": "http://p.test:3128/"}, "http://p.test:3128"),
        ("https://a.test", {"ALL_PROXY": "[::1]:3128"}, "http://[::1]:3128"),
        ("http://a.test", {"http_proxy": "l.test:1", "HTTP_PROXY": "u.test:2"}, "http://l.test:1"),
        ("http://a.test", {"http_proxy": "", "HTTP_PROXY": "u.test:2"}, "http://u.test:2"),
        ("http://a.test", {"HTTP_PROXY": "p.test:1", "REQUEST_METHOD": "GET"}, None),
        *((f"http://{host}:8080", {"ALL_PROXY": "socks://p.test:1"}, None)
          for host in ("localhost", "a.localhost", "127.0.0.1", "127.9.9.9", "[::1]", "0.0.0.0",
                       "[::ffff:127.0.0.1]", "127.1", "0x7f.1", "2130706433")),
        ("http://128.1", {"ALL_PROXY": "p.test:1"}, "http://p.test:1"),
    ],
)  # fmt: skip
def test_the_proxy_of_an_address(url: str, environ: dict[str, str], expected: str | None) -> None:
    assert chosen(url, environ) == expected


@pytest.mark.parametrize(
    ("url", "exempt", "direct"),
    [
        ("http://a.test", "b.test, a.test", True),
        ("http://x.a.test", ".a.test", True),
        ("http://x.a.test", "*.a.test", True),
        ("http://xa.test", "a.test", False),
        ("http://a.test:8", "a.test:8", True),
        ("http://a.test:9", "a.test:8", False),
        ("http://a.test", "*", True),
        ("http://10.1.2.3", "10.0.0.0/8", True),
        ("http://11.1.2.3", "10.0.0.0/8", False),
        ("http://[fd07:b51a::1]", "localhost,fd07:b51a::/32", True),
        ("http://a.test", "fd07:b51a:cc66:f0::/64,/,[:", False),
        ("http://[::ffff:10.0.0.1]", "10.0.0.0/8", True),
        ("http://[::ffff:11.0.0.1]", "10.0.0.0/8", False),
        ("http://10.0.0.1", "::ffff:10.0.0.0/104", True),
        ("http://[::ffff:10.0.0.1]", "::/0", True),
        ("http://10.1", "10.1", True),
        ("http://10.1:8", "10.0.0.1:8", True),
        ("http://[fd00::7]", "[fd00::]/8", True),
        ("http://[fd00::7]", "[fd00::/8]", True),
        ("http://[fd00::7]", "[fe80::]/16", False),
        ("http://[fd00::7]:8", "[fd00::7]:8", True),
        ("http://[fd00::7]:9", "[fd00::7]:8", False),
    ],
)
def test_addresses_that_no_proxy_exempts(url: str, exempt: str, direct: bool) -> None:
    environ = {"ALL_PROXY": "p.test:1", "NO_PROXY": exempt}
    assert chosen(url, environ) == (None if direct else "http://p.test:1")


@pytest.mark.parametrize(("variable", "value"), HOSTILE.items())
def test_a_proxy_that_cannot_be_used_is_named(variable: str, value: str) -> None:
    address = address_of("http://a.test")
    assert address is not None
    with pytest.raises(SetupError) as caught:
        proxy_of(address, {variable: value})
    assert caught.value.field == variable and "NO_PROXY" in str(caught.value.hint)
    with pytest.raises(SetupError) as caught:
        proxy_of(address, {variable: "https://user:pass-word@p.test"})
    assert "pass-word" not in caught.value.diagnostics()


@pytest.mark.parametrize("end", ["#", "?", "/#", "/?", "#f", "?q"])
def test_a_proxy_with_a_query_or_a_fragment_is_refused_even_an_empty_one(end: str) -> None:
    address = address_of("http://a.test")
    assert address is not None
    with pytest.raises(SetupError) as caught:
        proxy_of(address, {"HTTP_PROXY": f"http://user:pass-word@p.test:1{end}"})
    assert caught.value.field == "HTTP_PROXY" and "pass-word" not in caught.value.diagnostics()


@pytest.mark.parametrize(
    "url",
    [
        "",
        "a.test",
        "ftp://a.test",
        "http://",
        "http://[::1",
        "http://a.test:0",
        "http://a.test:99999",
        "http://a.test:x",
        "http://a.test/?q",
        "http://a.test/#f",
        "http://a .test",
        "http://a.test/\n",
        "http://\udcff",
        "http://..",
        f"http://{'a' * 64}.test",
        f"http://{'a.' * 127}test",
    ],
)
def test_what_is_no_address_is_refused_by_every_client(url: str) -> None:
    assert address_of(url) is None
    with pytest.raises(RagAuditError):
        Client(url, KEY)
    with pytest.raises(RagAuditError):
        AsyncClient(url, KEY)
    with pytest.raises(RagAuditError):
        Caller(url, "chat endpoint", "", "")
    with pytest.raises(RagAuditError):
        submitting.Remote(KEY, url)


def test_an_address_is_read_in_ascii() -> None:
    address = address_of("https://bücher.test:8443/ä b/".replace(" ", "%20"))
    assert address is not None
    assert address.url == "https://xn--bcher-kva.test:8443/%C3%A4%20b"


def test_every_client_asks_through_the_proxy(
    proxy: tuple[str, list[tuple[str, str, str | None]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    place, seen = proxy
    monkeypatch.setenv("ALL_PROXY", f"http://me:pa%3Ass@{place}")
    basic = "Basic bWU6cGE6c3M="
    caller = Caller("http://service.test/v1", "chat endpoint", "", "", attempts=1)
    assert caller.post("x", {}, read_object) == {"ok": True}
    assert seen.pop() == ("POST", "http://service.test/v1/x", basic)
    remote = submitting.Remote(KEY, "http://witness.test:81/w")
    assert submitting._ask(remote, "/add", b"body").status == 200
    assert seen.pop() == ("POST", "http://witness.test:81/w/add", basic)
    with Client("http://service.test", KEY, patience=BRIEF) as client, pytest.raises(RagAuditError):
        client.publication()
    assert seen.pop() == ("GET", "http://service.test/public/header.json", basic)

    async def requested() -> None:
        async with AsyncClient("http://service.test", KEY, patience=BRIEF) as client:
            await client.publication()

    with pytest.raises(RagAuditError):
        asyncio.run(requested())
    assert seen.pop() == ("GET", "http://service.test/public/header.json", basic)
    with pytest.raises(RagAuditError):
        Caller("https://service.test/v1", "chat endpoint", "", "", attempts=1).post("x", {}, read_object)
    assert seen.pop() == ("CONNECT", "service.test:443", basic)
    address = address_of("http://qdrant.test:6333")
    assert address is not None and httpx_options(address)["proxy"] == f"http://me:pa%3Ass@{place}"


@pytest.mark.parametrize(("variable", "value"), HOSTILE.items())
def test_every_client_names_a_proxy_that_cannot_be_used(
    variable: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, value)

    async def requested() -> None:
        AsyncClient("http://service.test", KEY)

    for ask in (
        lambda: Client("http://service.test", KEY),
        lambda: asyncio.run(requested()),
        lambda: Caller("http://service.test/v1", "chat endpoint", "", "").post("x", {}, read_object),
        lambda: submitting._ask(submitting.Remote(KEY, "http://witness.test"), "/add", b""),
        lambda: httpx_options(address_of("http://qdrant.test:6333")),  # type: ignore[arg-type]
    ):
        with pytest.raises(SetupError) as caught:
            ask()
        assert caught.value.field == variable


def test_certificates_that_cannot_be_read_are_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SSLKEYLOGFILE", str(tmp_path / "missing" / "keys"))
    with pytest.raises(SetupError) as caught:
        Client("https://service.test", KEY)
    assert "SSLKEYLOGFILE" in str(caught.value.field)
    with pytest.raises(SetupError) as caught:
        Caller("https://service.test/v1", "chat endpoint", "", "").post("x", {}, read_object)
    assert "SSLKEYLOGFILE" in str(caught.value.field)


def test_certificates_are_loaded_once_for_each_environment(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    service, witness = address_of("https://service.test"), address_of("https://witness.test")
    assert service is not None and witness is not None
    for name in CERTIFICATE_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    loaded = httpx_options(service)["verify"]
    assert httpx_options(witness)["verify"] is loaded
    monkeypatch.setenv("SSL_CERT_DIR", str(tmp_path))
    own = httpx_options(service)["verify"]
    assert own is not loaded and not own.get_ca_certs() and loaded.get_ca_certs()


def test_a_service_on_this_machine_is_asked_directly(fresh: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {**HOSTILE, "NO_PROXY": "localhost,fd07:b51a:cc66:f0::/64"}.items():
        monkeypatch.setenv(name, value)
    source = Source(
        fresh.service.url, fresh.parties.accounts["law-1"].directory, str(fresh.parties.key.verifier)
    )
    before = len(fresh.window.records)
    source.ask(QUESTIONS["law"][0])
    asyncio.run(source.ask_async(QUESTIONS["law"][0]))
    assert len(fresh.window.records) == before + 2
