"""Connections with limits of time: uvicorn's own protocol waits for headers and readers without end."""

from __future__ import annotations

import asyncio
import resource
from contextlib import suppress

from uvicorn.protocols.http.h11_impl import H11Protocol

from rag_audit.serving.limits import Limits

RESERVED = 256
"""Files that a process keeps for anything but connections: without one left, a ledger could not be written."""


def allow_connections(limits: Limits) -> None:
    """Let this process open as many files as a service's connections need, as far as its hard limit allows: the usual
    soft one, 1,024, is for programs that can wait for no more. Nothing changes where it is high enough.
    """
    allowed, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 2 * limits.connections + RESERVED
    if most != resource.RLIM_INFINITY:
        wanted = min(wanted, most)
    if allowed != resource.RLIM_INFINITY and allowed < wanted:
        with suppress(OSError, ValueError):  # a system may refuse what its hard limit allows
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, most))


def most_connections(limits: Limits) -> int:
    """The most connections that a service takes: its limit, as far as the process may open twice so many files, since
    a connection may be sent a public file."""
    allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if allowed == resource.RLIM_INFINITY:
        return limits.connections
    return min(limits.connections, max((allowed - RESERVED) // 2, 1))


def protocol(limits: Limits) -> type[asyncio.Protocol]:
    """The protocol of one connection under some limits."""

    most = most_connections(limits)

    class Patient(H11Protocol):
        """A connection that is ended if its request's header does not arrive, or if nobody reads what is sent."""

        _header: asyncio.TimerHandle | None = None
        _reader: asyncio.TimerHandle | None = None

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            if len(self.connections) > most:
                transport.abort()
            else:
                self._wait_for_header()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            if self.cycle is not None and not self.cycle.response_complete:
                _cancel(self._header)
                self._header = None
            else:
                self._wait_for_header()

        def connection_lost(self, exc: Exception | None) -> None:
            _cancel(self._header)
            _cancel(self._reader)
            super().connection_lost(exc)

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
