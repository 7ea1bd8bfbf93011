"""A window as an ASGI application: its routes, its health and its metrics, among them no time that a single query takes
(docs/security.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from prometheus_client import Counter
from prometheus_client.core import GaugeMetricFamily, Metric
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ExceptionHandler, Receive, Scope, Send

from rag_audit.attest.window import Window
from rag_audit.service.asgi import RECEIVED, Application, Bodies, Exchange, disk_full, error, gauge
from rag_audit.service.enrolment_book import Intake
from rag_audit.service.enrolments import Enrolments
from rag_audit.service.limits import Limits
from rag_audit.service.logs import OUTCOMES
from rag_audit.service.names import Names
from rag_audit.service.openapi import openapi
from rag_audit.service.public import Public
from rag_audit.service.queries import Queries
from rag_audit.service.windows import Windows

NAMES = {
    404: ("NotFound", "no resource has this address"),
    405: ("MethodNotAllowed", "the address requires another method"),
}
FIXED = (
    "/v1/query",
    "/v1/queries",
    "/v1/names",
    "/v1/enrolments",
    "/healthz",
    "/readyz",
    "/metrics",
    "/openapi.json",
)
PREFIXES = ("/public/", "/windows/")
STATES = ("none", "committed", "active", "closed", "final")


class WindowApplication(Application):
    """The application of a provider's windows, which collects its own gauges.

    Whoever exchanges the windows may set `cause`, a function that returns why no window answers, or None.

    :param windows: the windows that answer
    :param eager: an iterator with one value for each answer to prove before it leaves, whatever the policy
    :param on_fault: called with an exception that is no named error, after which the service continues
    :param stopping: whether the server has been told to stop
    :param intake: takes enrolment requests, if the provider does
    """

    def __init__(
        self,
        windows: Windows,
        limits: Limits,
        eager: Iterator[int],
        on_fault: Callable[[BaseException], None],
        stopping: Callable[[], bool],
        intake: Intake | None = None,
    ) -> None:
        self._windows, self._stopping = windows, stopping
        self.cause: Callable[[], str | None] = lambda: None
        self.bodies = bodies = Bodies(limits)
        self.queries = Queries(windows, bodies, limits, eager, on_fault)
        self.names = Names(windows, bodies, on_fault)
        self.enrolments = Enrolments(intake, bodies, on_fault)
        self.public = Public(windows, limits)

        async def described(request: Request) -> Response:
            return JSONResponse(openapi(limits))

        routes = [
            Route("/v1/query", self.queries.query, methods=["POST"]),
            Route("/v1/queries", self.queries.queries, methods=["POST"]),
            Route("/v1/names", self.names.endpoint, methods=["POST"]),
            Route("/v1/enrolments", self.enrolments.endpoint, methods=["GET", "POST"]),
            Route("/public/{name:path}", self.public.current),
            Route("/windows/{window}/{name:path}", self.public.named),
            Route("/openapi.json", described),
        ]
        handlers: dict[type[Exception], ExceptionHandler] = {HTTPException: _named, Exception: _fault}
        super().__init__(routes, handlers, "rag_audit_http_responses", on_fault)
        registry = self._registry
        self._outcomes = Counter(
            "rag_audit_requests", "Signed requests by outcome: an answer, or the reason of the refusal.",
            ["outcome"], registry=registry,
        )  # fmt: skip
        self._received = Counter("rag_audit_request_bytes", "Bytes of requests' bodies.", registry=registry)
        self._published = Counter(
            "rag_audit_public_bytes", "Bytes of public files that were sent.", registry=registry
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one HTTP request, with an id, counted and logged."""
        if scope["type"] != "http":
            return
        exchange = Exchange(scope, send)
        try:
            with exchange.guarded(self._on_fault):
                if scope["path"] == "/v1/query" and scope["method"] == "POST":
                    # Nearly every request, which need not find its way through routes and layers.
                    response = await self.queries.query(Request(scope, receive))
                    await response(scope, receive, exchange.send)
                else:
                    await self._routed(scope, receive, exchange.send)
        finally:
            self._note(exchange)

    def _note(self, exchange: Exchange) -> None:
        """Count and log a response. The log omits an answer's size and time, because they depend on its content."""
        path: str = exchange.scope["path"]
        route = path if path in FIXED else next((p for p in PREFIXES if path.startswith(p)), "other")
        outcomes: list[str] = exchange.scope.get(OUTCOMES, [])
        received: int = exchange.scope.get(RECEIVED, 0)
        self._received.inc(received)
        if route in PREFIXES:
            self._published.inc(exchange.sent)
        for outcome in outcomes:
            self._outcomes.labels(outcome).inc()
        more = {"outcome": outcomes if route == "/v1/queries" else outcomes[0]} if outcomes else {}
        exchange.note(self._responses, route, bytes_in=received, **more)

    async def unready(self) -> str | None:
        """Why the newest window does not answer queries now, or None if it does."""
        if self._stopping():
            return "the service is stopping"
        if (reason := unready(self._windows.newest)) is None:
            return None
        cause = self.cause()
        return reason if cause is None else f"{reason}: {cause}"

    def collect(self) -> Iterable[Metric]:
        """The current values of the gauges."""
        places = self.queries.places
        yield gauge("rag_audit_requests_in_service", "Requests that wait or are answered.", places.taken)
        yield gauge("rag_audit_requests_in_service_limit", "Beyond these a request gets 429.", places.maximum)
        yield gauge(
            "rag_audit_bodies_bytes", "Bytes of bodies that are received or wait.", self.bodies.bytes_now
        )
        window = self._windows.newest
        status = GaugeMetricFamily("rag_audit_window_status", "1 for the window's status.", labels=["status"])
        result = "none" if window is None else window.status
        for name in STATES:
            status.add_metric([name], float(name == result))
        yield status
        if window is None:
            return
        state, header = window.state, window.header
        yield gauge("rag_audit_ledger_entries", "Entries of the ledger.", state.tree.size)
        yield gauge(
            "rag_audit_ledger_writable", "0 after a write failed.", float(state.store.failure is None)
        )
        yield gauge(
            "rag_audit_window_opens_timestamp_seconds",
            "Time of the first possible query.",
            header.opens_at / 1000,
        )
        yield gauge(
            "rag_audit_window_closes_timestamp_seconds",
            "Time of the last possible query.",
            header.closes_at / 1000,
        )
        counts = window.noise_pool.counts
        drawn = GaugeMetricFamily(
            "rag_audit_noise_slots", "Slots by the source of their noise.", labels=["how"]
        )
        for how in ("ready", "behind", "cold"):
            drawn.add_metric([how], getattr(counts, how))
        yield drawn

    def close(self) -> None:
        """End the threads once their jobs have ended."""
        self.queries.close()
        self.names.close()
        self.enrolments.queue.close()
        self.public.queue.close()


def unready(window: Window | None) -> str | None:
    """Why a window does not answer queries now, or None if it does."""
    if window is None:
        return "no window is served"
    status = window.status
    if status != "active":
        return f"the window is {status}"
    header, now = window.header, window.state.clock()
    if now < header.opens_at:
        return "the window is not open yet"
    if now > header.closes_at:
        return "the window's time is over"
    if window.state.store.failure is not None:
        return "the ledger could not be written"
    try:
        return "the ledger's disk is full" if disk_full(window.directory) else None
    except OSError:
        return "the window's folder cannot be read"


async def _named(request: Request, exc: Exception) -> Response:
    assert isinstance(exc, HTTPException)
    name, message = NAMES.get(exc.status_code, ("HttpError", "the request cannot be answered"))
    return JSONResponse({"error": name, "message": message}, exc.status_code, dict(exc.headers or {}))


async def _fault(request: Request, exc: Exception) -> Response:
    return error(500, "InternalError", "a fault of the service")
