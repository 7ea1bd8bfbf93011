"""Request bodies, read within limits of size and time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.requests import ClientDisconnect, Request

from rag_audit.service.limits import Limits


class Unreadable(Exception):
    """A body that is not taken.

    :param status: the HTTP status
    :param detail: why, for people
    """

    def __init__(self, status: int, detail: str) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail


class Left(Exception):
    """The client has left before its request was complete."""


class Bodies:
    """The reader of bodies, which bounds what all of them together hold in memory."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self.held = 0

    @asynccontextmanager
    async def taken(
        self, request: Request, most: int, *, kind: str | None = "application/json"
    ) -> AsyncIterator[bytes]:
        """The body of a request, which counts as held until the block is left: what waits for an answer is in memory
        as much as what is being received.

        :param kind: the content type that its header has to name, or None where any will do
        :raises Unreadable: it is of another type, too large, too slow, or there are too many others
        :raises Left: the client ended the connection
        """
        parts: list[bytes] = []
        held = 0
        try:
            try:
                await self._receive(request, most, parts, kind)
            finally:
                held = sum(map(len, parts))
            body = b"".join(parts)
            parts.clear()
            yield body
        finally:
            self.held -= held

    async def read(self, request: Request, most: int, *, kind: str | None = "application/json") -> bytes:
        """The body of a request, which counts as held while it is received alone (`taken`)."""
        async with self.taken(request, most, kind=kind) as body:
            return body

    async def _receive(self, request: Request, most: int, parts: list[bytes], kind: str | None) -> None:
        """Receive a body, and count as held whatever comes into the list."""
        given = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind not in (None, given):
            raise Unreadable(415, f"the content type is not {kind}")
        # A sender that is cut off may not read why: up to twice the limit is received, and what is too much dropped.
        long, received = Unreadable(413, f"the request is longer than {most} bytes"), 2 * most
        length = request.headers.get("content-length", "")
        if length.isascii() and length.isdigit() and int(length[:18]) > received:
            raise long
        size = 0
        try:
            async with asyncio.timeout(self._limits.body_s):
                async for part in request.stream():
                    size += len(part)
                    if size > received:
                        raise long
                    if size > most:
                        continue
                    parts.append(part)
                    self.held += len(part)
                    if self.held > self._limits.bodies_bytes:
                        raise Unreadable(429, "too many requests are being received")
        except TimeoutError:
            raise Unreadable(
                408, f"the request took longer than {self._limits.body_s:g} s to arrive"
            ) from None
        except ClientDisconnect:
            raise Left from None
        if size > most:
            raise long
