"""Connections with limits of time and size, and strict rules for headers.

uvicorn's own protocol waits for headers and readers without end. h11 bounds a header only while a part of it is
missing, joins folded lines, and reads a body by `Transfer-Encoding` where `Content-Length` contradicts it; a proxy that
reads the other field then takes a part of the body for the next request (RFC 9112, section 11.2).
"""

from __future__ import annotations

import asyncio
import json
import re
import resource
from contextlib import suppress
from http import HTTPStatus
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from rag_audit.service.limits import Limits

RESERVED = 256
"""Files that a process reserves for purposes other than connections: without a free one, a ledger could not be
written."""


def allow_connections(limits: Limits) -> None:
    """Raise this process's limit of open files to the number that a service's connections need, up to the hard limit.
    The usual soft limit, 1,024, protects older programs. If the limit is high enough, the function changes nothing.
    """
    allowed, maximum = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 2 * limits.connections + RESERVED
    if maximum != resource.RLIM_INFINITY:
        wanted = min(wanted, maximum)
    if allowed != resource.RLIM_INFINITY and allowed < wanted:
        with suppress(OSError, ValueError):  # a system may refuse a value within its hard limit
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, maximum))


def most_connections(limits: Limits) -> int:
    """The maximum number of connections of a service: its limit, reduced if the process may not open twice this
    number of files, since a connection may also be sent a public file."""
    allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if allowed == resource.RLIM_INFINITY:
        return limits.connections
    return min(limits.connections, max((allowed - RESERVED) // 2, 1))


_END = re.compile(rb"\n\r?\n")
"""The end of a header section, as h11 finds it."""
_FOLDED = re.compile(rb"\n[ \t]")
_HTTP_1_0 = re.compile(rb"[^\n]* HTTP/1\.0\r?\n")


class Refused(h11.RemoteProtocolError):
    """A request that is refused for its header, with words for the client."""


def checked_header(data: bytes, maximum: int) -> None:
    """Check the received part of the header section.

    :param data: received bytes that are not parsed yet
    :param maximum: bytes of request line, fields and the empty line
    :raises Refused: the section is too large (RFC 9110, section 5.4), a line is folded (RFC 9112, section 5.2), or
        `Transfer-Encoding` occurs with `Content-Length` or in HTTP/1.0 (RFC 9112, sections 6.1 and 6.3)
    """
    end = _END.search(data)
    size = len(data) if end is None else end.end()
    if size > maximum:
        raise Refused(f"the header is longer than {maximum} bytes", error_status_hint=431)
    if end is None:
        return
    header = data[:size]
    if _FOLDED.search(header):
        raise Refused("a line of the header is folded")
    names = {line.partition(b":")[0].strip().lower() for line in header.split(b"\n")[1:]}
    if b"transfer-encoding" in names and b"content-length" in names:
        raise Refused("the header has both Content-Length and Transfer-Encoding")
    if b"transfer-encoding" in names and _HTTP_1_0.match(header):
        raise Refused("the header has Transfer-Encoding in HTTP/1.0")


class StrictConnection(h11.Connection):
    """The server's side of a connection that takes no request with a header as `checked_header` refuses it.

    :param header_bytes: the largest header section, and the largest trailer section
    """

    def __init__(self, header_bytes: int) -> None:
        super().__init__(h11.SERVER, header_bytes)
        self._most = header_bytes
        self.refused: h11.RemoteProtocolError | None = None
        """the reason why the service reads no further request from this connection"""

    def next_event(self) -> Any:
        """Like h11's `next_event`. The method also notes a refused request.

        :raises h11.RemoteProtocolError: a request is refused
        """
        try:
            if self.their_state is h11.IDLE:
                checked_header(self.trailing_data[0], self._most)
            event = super().next_event()
            if isinstance(event, h11.EndOfMessage):
                trailers = sum(len(name) + len(value) + 4 for name, value in event.headers)
                if trailers > self._most:
                    raise Refused(f"the trailers are longer than {self._most} bytes", error_status_hint=431)
        except h11.RemoteProtocolError as exc:
            self.refused = exc
            raise
        return event


def protocol(limits: Limits) -> type[asyncio.Protocol]:
    """The protocol of one connection under some limits."""

    maximum = most_connections(limits)

    class Patient(H11Protocol):
        """A connection that ends in three cases: a request's header does not arrive, the client does not read the
        response, or a request is malformed, because the start of the next request is then unknown.
        """

        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **options)
            self.conn: StrictConnection = StrictConnection(limits.header_bytes)

        _header: asyncio.TimerHandle | None = None
        _reader: asyncio.TimerHandle | None = None

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            if len(self.connections) > maximum:
                transport.abort()
            else:
                self._wait_for_header()

        def data_received(self, data: bytes) -> None:
            if self.conn.refused is not None:
                return
            super().data_received(data)
            if self.conn.refused is not None:
                return
            if self.cycle is not None and not self.cycle.response_complete:
                _cancel(self._header)
                self._header = None
            else:
                self._wait_for_header()

        def connection_lost(self, exc: Exception | None) -> None:
            _cancel(self._header)
            _cancel(self._reader)
            super().connection_lost(exc)

        def send_400_response(self, msg: str) -> None:
            """Say why a request is refused, and end the connection once the client has read this (RFC 9112, 9.6)."""
            refused = self.conn.refused
            _cancel(self._header)
            self._header = self.loop.call_later(limits.header_s, self.transport.abort)
            if self.cycle is not None and not self.cycle.response_complete:
                self.cycle.disconnected = True
                self.cycle.message_event.set()
            if self.conn.our_state not in (h11.IDLE, h11.SEND_RESPONSE):
                self.transport.abort()  # a response is under way, which cannot be completed
                return
            status = HTTPStatus(400 if refused is None else refused.error_status_hint)
            words = str(refused) if isinstance(refused, Refused) else "the request is not valid HTTP/1.1"
            body = json.dumps({"error": "Unreadable", "message": words}).encode()
            headers = [("content-type", "application/json"), ("content-length", str(len(body))),
                       ("connection", "close")]  # fmt: skip
            for event in (
                h11.Response(status_code=status, headers=headers, reason=status.phrase.encode()),
                h11.Data(data=body),
                h11.EndOfMessage(),
            ):
                self.transport.write(self.conn.send(event) or b"")
            # Closing now would discard the client's remaining data, and the resulting reset could destroy the response.
            self.flow.resume_reading()
            self.transport.write_eof()

        def pause_writing(self) -> None:
            super().pause_writing()
            if self._reader is None:
                self._reader = self.loop.call_later(limits.send_s, self.transport.abort)

        def resume_writing(self) -> None:
            _cancel(self._reader)
            self._reader = None
            super().resume_writing()

        def timeout_keep_alive_handler(self) -> None:
            super().timeout_keep_alive_handler()
            if self.transport.get_write_buffer_size():
                self.transport.abort()  # closing would wait for a reader

        def _wait_for_header(self) -> None:
            if self._header is None:
                self._header = self.loop.call_later(limits.header_s, self.transport.abort)

    return Patient


def _cancel(timer: asyncio.TimerHandle | None) -> None:
    if timer is not None:
        timer.cancel()
