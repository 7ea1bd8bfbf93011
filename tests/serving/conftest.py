"""A window over HTTP on loopback, and the few lines that speak HTTP to it."""

from __future__ import annotations

import http.client
import json
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from rag_audit.attest.window import Window
from rag_audit.models.publication import Publication
from rag_audit.models.records import request_message
from rag_audit.models.requests import Refusal, SignedRequest
from rag_audit.retrieval.query import OpenedQuery
from rag_audit.service.server import HttpService, http_service
from tests.window.simulator import Service

JSON = {"Content-Type": "application/json"}


@dataclass
class Reply:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def value(self) -> Any:
        return json.loads(self.body)


@dataclass
class Served:
    """A service that runs in a thread, with the parties of its window."""

    parties: Service
    window: Window
    service: HttpService
    faults: list[BaseException] = field(default_factory=list)

    def connect(self) -> http.client.HTTPConnection:
        host, port = self.service.url.removeprefix("http://").split(":")
        return http.client.HTTPConnection(host, int(port), timeout=60)

    def get(self, path: str, method: str = "GET", **headers: str) -> Reply:
        return self.send(method, path, None, {k.replace("_", "-"): v for k, v in headers.items()})

    def post(self, path: str, body: bytes, headers: dict[str, str] = JSON) -> Reply:
        return self.send("POST", path, body, headers)

    def send(self, method: str, path: str, body: Any, headers: dict[str, str]) -> Reply:
        connection = self.connect()
        try:
            connection.request(method, path, body, headers)
            response = connection.getresponse()
            return Reply(response.status, {k.lower(): v for k, v in response.getheaders()}, response.read())
        finally:
            connection.close()

    @property
    def publication(self) -> Publication:
        return Publication.load(self.window.directory / "public")

    def request(self, account: str, text: str) -> SignedRequest:
        return self.parties.accounts[account].request(self.publication, text)

    def signed(self, name: str, text: str, i: int) -> SignedRequest:
        """A signed request that its account does not keep."""
        account, header = self.parties.accounts[name], self.window.header
        query = OpenedQuery(text, secrets.token_bytes(32), self.window.context.embedder)
        named = (header.origin, self.window.header_digest, account.tenant, name, i, query.hq)
        origin, digest, tenant, *_ = named
        return SignedRequest(
            type="request", v=1, origin=origin, header=digest, tenant=tenant, account=name, i=i, hq=query.hq,
            sig=account.sign(request_message(*named)).hex(), query=text, salt=query.salt.hex(),
        )  # fmt: skip

    def accept(self, account: str, request: SignedRequest, reply: Reply) -> Any:
        key = self.parties.key.verifier
        return self.parties.accounts[account].accept(self.publication, request, reply.value, key)

    def refusal(self, reply: Reply) -> Refusal:
        """A refusal that the provider signed for this window."""
        refusal = Refusal.parse(reply.value, field="reply")
        assert refusal.header == self.window.header_digest
        assert self.parties.key.verifier.verifies(bytes.fromhex(refusal.sig), refusal.message())
        return refusal


@contextmanager
def serving(parties: Service, window: Window, **options: Any) -> Iterator[Served]:
    faults: list[BaseException] = []
    options = {"served": window, **options}
    with http_service(address=("127.0.0.1", 0), on_fault=faults.append, **options) as service:
        service.start()
        yield Served(parties, window, service, faults)


@pytest.fixture(scope="session")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Service, Window]]:
    """A window that is open for longer than the tests need; its accounts have many queries."""
    parties = Service(tmp_path_factory.mktemp("serving"))
    with parties.open(system="scan", n=64, eps_acc="400") as window:
        yield parties, window


@pytest.fixture(scope="session")
def served(opened: tuple[Service, Window]) -> Iterator[Served]:
    """A service that tests share. Who counts what it did, or stops it, has one of their own (`fresh`)."""
    with serving(*opened) as result:
        yield result


@pytest.fixture
def fresh(opened: tuple[Service, Window]) -> Iterator[Served]:
    with serving(*opened) as result:
        yield result


@pytest.fixture
def parties(tmp_path: Path) -> Service:
    return Service(tmp_path)
