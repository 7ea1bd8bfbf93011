"""The common part of this package's HTTP services, for providers and witnesses: bodies that are read within limits of
size and time; an id, a count and a log line for each request; and responses about the service itself.
"""

from __future__ import annotations

import asyncio
import os
from abc import abstractmethod
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ExceptionHandler, Message, Scope, Send

from rag_audit._internal.errors import RagAuditError
from rag_audit.service.limits import Limits
from rag_audit.service.logs import REQUEST_ID, log, request_id

RETRY_S = 1
"""Seconds after which a request may be repeated that was refused for want of time, disk or a free place."""
MIN_FREE_BYTES = 16 << 20
"""Free space on a state's disk below which a service is not ready."""
NOT_STORED = {"Cache-Control": "no-store"}
RECEIVED = "rag_audit.received"
"""The key in an ASGI scope for the number of received body bytes."""


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
    """The reader of bodies. It limits the total memory of all bodies."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self.bytes_now = 0

    @asynccontextmanager
    async def taken(
        self, request: Request, maximum: int, *, kind: str | None = "application/json"
    ) -> AsyncIterator[bytes]:
        """The body of a request. It counts against the memory limit until the block ends, because a request that waits
        for an answer occupies memory like a request that is being received.

        :param kind: the content type that the header has to name, or None to accept any
        :raises Unreadable: the body has another type, is too large or too slow, or there are too many other bodies
        :raises Left: the client ended the connection
        """
        parts: list[bytes] = []
        size = 0
        try:
            try:
                await self._receive(request, maximum, parts, kind)
            finally:
                size = sum(map(len, parts))
            body = b"".join(parts)
            parts.clear()
            yield body
        finally:
            self.bytes_now -= size

    async def read(self, request: Request, maximum: int, *, kind: str | None = "application/json") -> bytes:
        """The body of a request. It counts against the memory limit only while it is received (`taken`)."""
        async with self.taken(request, maximum, kind=kind) as body:
            return body

    async def _receive(self, request: Request, maximum: int, parts: list[bytes], kind: str | None) -> None:
        """Receive a body, and count every part that enters the list against the memory limit."""
        given = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind not in (None, given):
            raise Unreadable(415, f"the content type is not {kind}")
        # A sender that is cut off may not read the reason, so up to twice the limit is received and the excess dropped.
        long, received = Unreadable(413, f"the request is longer than {maximum} bytes"), 2 * maximum
        length = request.headers.get("content-length", "")
        if length.isascii() and length.isdigit() and int(length[:18]) > received:
            raise long
        size = 0
        try:
            async with asyncio.timeout(self._limits.body_s):
                async for part in request.stream():
                    size += len(part)
                    request.scope[RECEIVED] = size
                    if size > received:
                        raise long
                    if size > maximum:
                        continue
                    parts.append(part)
                    self.bytes_now += len(part)
                    if self.bytes_now > self._limits.bodies_bytes:
                        raise Unreadable(429, "too many requests are being received")
        except TimeoutError:
            raise Unreadable(
                408, f"the request took longer than {self._limits.body_s:g} s to arrive"
            ) from None
        except ClientDisconnect:
            raise Left from None
        if size > maximum:
            raise long


class Exchange:
    """One HTTP request and its response, which have an id in common.

    :param send: takes the messages of the response
    """

    def __init__(self, scope: Scope, send: Send) -> None:
        given = next((value for name, value in scope["headers"] if name == b"x-request-id"), None)
        self.id = scope[REQUEST_ID] = request_id(None if given is None else given.decode("latin-1"))
        self.scope = scope
        self.status, self.sent = 500, 0
        self._send = send

    async def send(self, message: Message) -> None:
        """Send a message of the response, with the id in its header."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            message["headers"] = [*message.get("headers", ()), (b"x-request-id", self.id.encode())]
        self.sent += len(message.get("body", b""))
        await self._send(message)

    @contextmanager
    def guarded(self, on_fault: Callable[[BaseException], None]) -> Iterator[None]:
        """Prevent an exception in a response from ending the service.

        :param on_fault: called with an exception that is no named error
        """
        try:
            yield
        except (OSError, ClientDisconnect):
            log.info("client left", extra={"fields": {"request_id": self.id}})
        except Exception as exc:
            on_fault(exc)

    def note(self, responses: Counter, route: str, **more: object) -> None:
        """Count and log the response.

        :param responses: by route and status
        :param route: the label of the request's path in the counter
        :param more: further fields of the log line
        """
        responses.labels(route, str(self.status)).inc()
        log.info("request", extra={"fields": {"request_id": self.id, "method": self.scope["method"],
                                              "route": route, "status": self.status, **more}})  # fmt: skip


class Application(Collector):
    """A service's routes, with its health, its readiness and its metrics, among them the gauges that it collects.

    :param routes: the service's own
    :param handlers: the responses to exceptions
    :param responses: the name of the metric that counts responses
    :param on_fault: called with an exception that is no named error, after which the service continues
    """

    def __init__(
        self,
        routes: Sequence[Route],
        handlers: dict[type[Exception], ExceptionHandler],
        responses: str,
        on_fault: Callable[[BaseException], None],
    ) -> None:
        self.routes = [
            *routes,
            Route("/healthz", self._alive),
            Route("/readyz", self._ready),
            Route("/metrics", self._metrics),
        ]
        self._routed = Starlette(routes=self.routes, exception_handlers=handlers)
        self._routed.router.redirect_slashes = False
        self._on_fault = on_fault
        self._registry = CollectorRegistry()
        self._responses = Counter(responses, "HTTP responses by route and status.", ["route", "status"],
                                  registry=self._registry)  # fmt: skip
        self._registry.register(self)

    @abstractmethod
    async def unready(self) -> str | None:
        """Why the service does not do its work now, or None if it does."""

    def add(self, collector: Collector) -> None:
        """Add the metrics of another part of the process."""
        self._registry.register(collector)

    def metrics(self) -> bytes:
        """The metrics in the text format of Prometheus."""
        return generate_latest(self._registry)

    async def _alive(self, request: Request) -> Response:
        """`GET /healthz`: 200 as long as the process runs."""
        return JSONResponse({"alive": True}, headers=NOT_STORED)

    async def _ready(self, request: Request) -> Response:
        """`GET /readyz`: 200 if the service does its work, else 503 with the reason."""
        reason = await self.unready()
        value = {"ready": True} if reason is None else {"ready": False, "reason": reason}
        return JSONResponse(value, 200 if reason is None else 503, NOT_STORED)

    async def _metrics(self, request: Request) -> Response:
        """`GET /metrics`."""
        return Response(self.metrics(), headers={"Content-Type": CONTENT_TYPE_LATEST})


def gauge(name: str, text: str, value: float) -> GaugeMetricFamily:
    """A gauge with its current value."""
    return GaugeMetricFamily(name, text, value=value)


def disk_full(folder: Path) -> bool:
    """Whether the disk of a folder has too little room for a service to be ready.

    :raises OSError: the folder cannot be read
    """
    disk = os.statvfs(folder)
    return disk.f_bavail * disk.f_frsize < MIN_FREE_BYTES


def unreadable(exc: Unreadable) -> Response:
    """The response to a body that is not taken."""
    response = error(exc.status, "Unreadable", exc.detail, RETRY_S if exc.status in (408, 429) else None)
    response.headers["Connection"] = "close"  # the service does not read the rest of the body
    return response


def named(status: int, exc: RagAuditError, after: int | None = None) -> Response:
    """A response with a named error.

    :param after: seconds after which the request may be repeated
    """
    return JSONResponse(exc.as_json(), status, {} if after is None else {"Retry-After": str(after)})


def error(status: int, name: str, message: str, after: int | None = None) -> Response:
    """A response that names an error.

    :param after: seconds after which the request may be repeated
    """
    headers = {} if after is None else {"Retry-After": str(after)}
    return JSONResponse({"error": name, "message": message}, status, headers)
