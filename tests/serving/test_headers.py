"""Requests as bytes on a socket: the limit of the header, and headers that two readers understand in two ways."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable

import h11
import pytest

from rag_audit.attest.window import Window
from rag_audit.service.connections import StrictConnection
from rag_audit.service.limits import Limits
from tests.serving.conftest import Served, serving
from tests.window.simulator import Service

MOST = Limits().header_bytes


def exchanged(url: str, sent: bytes) -> bytes:
    """All that a server answers to bytes before it ends the connection, which it must do by itself."""
    host, port = url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=60) as connection:
        connection.sendall(sent)
        received = b""
        while part := connection.recv(1 << 16):
            received += part
    return received


def header(size: int, *, last: bytes = b"Connection: close\r\n") -> bytes:
    """A request for /healthz whose header section has that many bytes, in fields of at most 1,000."""
    result = b"GET /healthz HTTP/1.1\r\nHost: x\r\n" + last
    while (left := size - len(result) - 2) > 0:
        value = min(left, 1000) if left - 1000 > 10 or left <= 1000 else left - 500
        result += b"X: " + b"x" * (value - 5) + b"\r\n"
    assert len(result) + 2 == size
    return result + b"\r\n"


def refused(answer: bytes, status: int) -> str:
    """The words of the only answer, which ends its connection."""
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(f"HTTP/1.1 {status} ".encode()), answer
    assert b"connection: close" in head.lower() and answer.count(b"HTTP/1.1 ") == 1
    value = json.loads(body)
    assert value["error"] == "Unreadable"
    return str(value["message"])


def test_a_header_of_the_largest_size_is_taken_and_of_one_byte_more_is_not(served: Served) -> None:
    """The whole header arrives at once, where h11 by itself looks at the size of incomplete ones only."""
    assert exchanged(served.service.url, header(MOST)).startswith(b"HTTP/1.1 200 ")
    answer = exchanged(served.service.url, header(MOST + 1, last=b""))
    assert refused(answer, 431) == f"the header is longer than {MOST} bytes"


@pytest.mark.parametrize("line", [True, False])
def test_a_large_header_is_refused_wherever_it_is_large(served: Served, line: bool) -> None:
    name = b"x" * 60_000
    target, field = (b"/" + name, b"") if line else (b"/healthz", b"X: " + name + b"\r\n")
    answer = exchanged(served.service.url, b"GET " + target + b" HTTP/1.1\r\nHost: x\r\n" + field + b"\r\n")
    refused(answer, 431)


def test_the_second_request_of_a_connection_is_held_to_the_limit_too(served: Served) -> None:
    first = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
    answer = exchanged(served.service.url, first + header(MOST + 1, last=b""))
    assert answer.startswith(b"HTTP/1.1 200 ") and answer.count(b"HTTP/1.1 ") == 2
    refused(answer[answer.rindex(b"HTTP/1.1 ") :], 431)


def test_the_limit_is_a_setting(opened: tuple[Service, Window]) -> None:
    with serving(*opened, limits=Limits(header_bytes=200)) as small:
        assert exchanged(small.service.url, header(200)).startswith(b"HTTP/1.1 200 ")
        refused(exchanged(small.service.url, header(201, last=b"")), 431)


SMUGGLED = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
CHUNKED = b"0\r\n\r\n"


@pytest.mark.parametrize(
    "fields",
    [
        b"Content-Length: %d\r\nTransfer-Encoding: chunked\r\n",
        b"Transfer-Encoding: chunked\r\nContent-Length: %d\r\n",
        b"content-LENGTH: %d\r\ntransfer-ENCODING: chunked\r\n",
    ],
)
def test_two_lengths_end_the_connection(served: Served, fields: bytes) -> None:
    """By one field the body ends before the second request, by the other it has that request in it (RFC 9112, 6.3)."""
    body = CHUNKED + SMUGGLED
    head = b"POST /v1/query HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
    answer = exchanged(served.service.url, head + fields % len(body) + b"\r\n" + body)
    assert refused(answer, 400) == "the header has both Content-Length and Transfer-Encoding"
    assert b"alive" not in answer


def test_a_transfer_coding_in_http_1_0_ends_the_connection(served: Served) -> None:
    head = b"POST /v1/query HTTP/1.0\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    assert "HTTP/1.0" in refused(exchanged(served.service.url, head + CHUNKED + SMUGGLED), 400)


@pytest.mark.parametrize("fold", [b"\r\n ", b"\r\n\t", b"\n "])
@pytest.mark.parametrize("field", [b"X-Note: a%sb", b"Transfer-Encoding:%schunked", b"Host:%s x"])
def test_a_folded_line_is_refused(served: Served, fold: bytes, field: bytes) -> None:
    """A reader that joins lines sees a field that another one does not (RFC 9112, section 5.2)."""
    lines = b"Host: x\r\n" if not field.startswith(b"Host") else b""
    answer = exchanged(served.service.url, b"GET /healthz HTTP/1.1\r\n" + lines + field % fold + b"\r\n\r\n")
    assert refused(answer, 400) == "a line of the header is folded"


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"GET /healthz HTTP/1.1\r\nHost: x\r\nno field\r\n\r\n", 400),
        (b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n", 400),
        (b"POST /v1/query HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n\r\n", 501),
        (b"POST /v1/query HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabc", 400),
    ],
)
def test_what_is_no_request_gets_an_answer_and_ends_the_connection(
    served: Served, sent: bytes, status: int
) -> None:
    assert refused(exchanged(served.service.url, sent), status) == "the request is not valid HTTP/1.1"
    assert served.get("/healthz").status == 200 and served.faults == []


def test_a_body_that_is_malformed_ends_the_connection(served: Served) -> None:
    """The application waits for the body, and must not answer too."""
    head = b"POST /v1/query HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    assert refused(exchanged(served.service.url, head + b"2\r\n{}\r\nno chunk\r\n"), 400)
    assert served.get("/healthz").status == 200 and served.faults == []


def test_trailers_are_held_to_the_limit_of_the_header() -> None:
    connection = StrictConnection(1000)
    connection.receive_data(b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n")
    assert isinstance(connection.next_event(), h11.Request)
    connection.receive_data(b"X: " + b"x" * 2000 + b"\r\n\r\n")
    with pytest.raises(h11.RemoteProtocolError, match="trailers") as caught:
        connection.next_event()
    assert caught.value.error_status_hint == 431


def arriving(data: bytes) -> Callable[[StrictConnection], None]:
    def arrive(connection: StrictConnection) -> None:
        for at in range(len(data)):
            connection.receive_data(data[at : at + 1])
            connection.next_event()

    return arrive


def test_a_header_that_arrives_byte_by_byte_is_judged_alike() -> None:
    """A header is refused as soon as it is too large, and a folded one once it is complete."""
    connection = StrictConnection(100)
    with pytest.raises(h11.RemoteProtocolError) as caught:
        arriving(b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"x" * 100)(connection)
    assert caught.value.error_status_hint == 431 and len(connection.trailing_data[0]) == 101
    with pytest.raises(h11.RemoteProtocolError, match="folded"):
        arriving(b"GET / HTTP/1.1\r\nHost: x\r\nX: a\r\n b\r\n\r\n")(StrictConnection(100))
