"""Clients that send slowly, read slowly, leave early or come in great numbers."""

from __future__ import annotations

import resource
import socket
import threading
import time
from typing import Any

import pytest

from rag_audit.attest.window import Window
from rag_audit.models.requests import Answer, AnsweredDocument
from rag_audit.service.connections import allow_connections, most_connections
from rag_audit.service.limits import Limits
from tests.serving.conftest import Reply, Served, serving
from tests.window.simulator import Service

HEAD = b"POST /v1/query HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"


def _connected(served: Served) -> socket.socket:
    connection = served.connect()
    connection.connect()
    return connection.sock


def _rest(connection: socket.socket) -> bytes:
    """What arrives until the connection ends, which it must."""
    received = b""
    try:
        while part := connection.recv(1 << 16):
            received += part
    except ConnectionResetError:
        pass
    return received


@pytest.mark.parametrize("sent", [b"", b"GET /healthz HT", HEAD])
def test_a_header_that_does_not_arrive_ends_its_connection(
    opened: tuple[Service, Window], sent: bytes
) -> None:
    with serving(*opened, limits=Limits(header_s=0.1)) as served, _connected(served) as connection:
        connection.sendall(sent)
        assert _rest(connection) == b""
        assert served.get("/healthz").status == 200


def test_a_body_that_does_not_arrive_is_refused_by_name(opened: tuple[Service, Window]) -> None:
    with serving(*opened, limits=Limits(body_s=0.1)) as served, _connected(served) as connection:
        connection.sendall(HEAD + b"Content-Length: 100\r\n\r\n{")
        head, _, body = _rest(connection).partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 408 ")
        assert served.refusal(Reply(408, {}, body)).reason == "unavailable"


def test_bodies_together_are_bounded(opened: tuple[Service, Window]) -> None:
    with serving(*opened, limits=Limits(bodies_bytes=10)) as served:
        reply = served.post("/v1/query", b"{" + b" " * 20 + b"}")
        assert (reply.status, served.refusal(reply).reason) == (429, "unavailable")
        assert served.service.app.bodies.bytes_now == 0


def test_an_endless_header_ends_its_connection(served: Served) -> None:
    with _connected(served) as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nX: " + b"x" * 100_000)
        assert _rest(connection).startswith(b"HTTP/1.1 431 ")
    assert served.get("/healthz").status == 200


def test_who_reads_nothing_is_left(opened: tuple[Service, Window], monkeypatch: pytest.MonkeyPatch) -> None:
    text = "x" * (32 << 20)  # more than the connection's buffers hold
    answer = Answer(
        type="answer",
        v=1,
        documents=[AnsweredDocument(position=0, text=text, metadata={}, name=None)],
        receipt="receipt",
    )

    handled = threading.Event()

    def large(queries: Any) -> list[Answer]:
        handled.set()
        return [answer for _ in queries]

    monkeypatch.setattr(opened[1].answers, "answer", large)
    with serving(*opened, limits=Limits(send_s=0.1)) as served, _connected(served) as connection:
        body = served.signed("law-1", "What is a contract?", 1).canonical()
        connection.sendall(HEAD + f"Content-Length: {len(body)}\r\n\r\n".encode() + body)
        state = served.service._server.server_state
        while state.connections or not handled.is_set():
            time.sleep(0.01)  # it is the service that ends this wait
        assert len(_rest(connection)) < len(text)


def test_a_client_that_leaves_in_the_middle_disturbs_nobody(served: Served) -> None:
    with _connected(served) as connection:
        connection.sendall(HEAD + b"Content-Length: 100\r\n\r\n{")
    assert served.get("/healthz").status == 200
    assert served.faults == []


@pytest.mark.parametrize(("files", "maximum"), [(1024, 384), (100, 1), (1 << 20, 4096), (-1, 4096)])
def test_connections_and_what_they_are_sent_leave_files_for_the_ledger(
    monkeypatch: pytest.MonkeyPatch, files: int, maximum: int
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (files, files))
    assert most_connections(Limits()) == maximum


@pytest.mark.parametrize(
    ("soft", "hard", "set_to"),
    [
        (1024, 1 << 19, 8448),
        (1024, 4096, 4096),
        (1024, -1, 8448),
        (1024, 1024, None),
        (1 << 16, -1, None),
        (-1, -1, None),
    ],
)
def test_the_soft_limit_of_files_is_raised_as_far_as_connections_need(
    monkeypatch: pytest.MonkeyPatch, soft: int, hard: int, set_to: int | None
) -> None:
    result: list[Any] = []
    monkeypatch.setattr(resource, "getrlimit", lambda _: (soft, hard))
    monkeypatch.setattr(resource, "setrlimit", lambda _, limits: result.append(limits))
    allow_connections(Limits())
    assert result == ([] if set_to is None else [(set_to, hard)])


def test_more_connections_than_the_limit_are_ended(opened: tuple[Service, Window]) -> None:
    with serving(*opened, limits=Limits(connections=1)) as served, _connected(served) as first:
        first.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        assert first.recv(100).startswith(b"HTTP/1.1 200 ")
        with _connected(served) as second:
            assert _rest(second) == b""
        first.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        assert b"alive" in first.recv(1000) + first.recv(1000)
