"""The ASGI application: routes, and what holds for each request whatever its route."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rag_audit.attest.enrolments import Intake
from rag_audit.service.desk import Windows
from rag_audit.service.enrolments import Enrolments
from rag_audit.service.health import Health, Metrics
from rag_audit.service.limits import Limits
from rag_audit.service.logs import OUTCOMES, REQUEST_ID, log, request_id
from rag_audit.service.openapi import openapi
from rag_audit.service.public import Public
from rag_audit.service.queries import Queries

NAMES = {
    404: ("NotFound", "there is nothing at this address"),
    405: ("MethodNotAllowed", "the address takes another method"),
}
FIXED = ("/v1/query", "/v1/queries", "/v1/enrolments", "/healthz", "/readyz", "/metrics", "/openapi.json")
PREFIXES = ("/public/", "/windows/")


class Application:
    """The application as an ASGI server calls it.

    :param windows: the windows that answer
    :param eager: an iterator with one value for each answer to prove before it leaves, whatever the policy
    :param on_fault: called with an exception that is no named error, after which the service continues
    :param stopping: whether the server has been told to stop
    :param intake: what takes enrolment requests, if the provider does
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
        self._on_fault = on_fault
        self.queries = Queries(windows, limits, eager, on_fault)
        self.enrolments = Enrolments(intake, self.queries.bodies, on_fault)
        self.public = Public(windows, limits)
        self.metrics = Metrics(windows.current, self.queries.places, lambda: self.queries.bodies.held)
        health = Health(windows.current, stopping)

        async def described(request: Request) -> Response:
            return JSONResponse(openapi(limits))

        routes = [
            Route("/v1/query", self.queries.query, methods=["POST"]),
            Route("/v1/queries", self.queries.queries, methods=["POST"]),
            Route("/v1/enrolments", self.enrolments.endpoint, methods=["GET", "POST"]),
            Route("/public/{name:path}", self.public.current),
            Route("/windows/{window}/{name:path}", self.public.named),
            Route("/healthz", health.alive),
            Route("/readyz", health.ready),
            Route("/metrics", self.metrics.endpoint),
            Route("/openapi.json", described),
        ]
        app = Starlette(routes=routes, exception_handlers={HTTPException: _named, Exception: _fault})
        app.router.redirect_slashes = False
        self.routes = routes
        self._app: ASGIApp = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one HTTP request, with an id, counted and logged."""
        if scope["type"] != "http":
            return
        given = next((value for name, value in scope["headers"] if name == b"x-request-id"), None)
        named = request_id(None if given is None else given.decode("latin-1"))
        scope[REQUEST_ID] = named
        status, received, sent = 500, 0, 0

        async def counted() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            return message

        async def marked(message: Message) -> None:
            nonlocal status, sent
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", ()), (b"x-request-id", named.encode())]
            sent += len(message.get("body", b""))
            await send(message)

        try:
            if scope["path"] == "/v1/query" and scope["method"] == "POST":
                # Nearly every request, which need not find its way through routes and layers.
                response = await self.queries.query(Request(scope, counted))
                await response(scope, counted, marked)
            else:
                await self._app(scope, counted, marked)
        except OSError:
            log.info("client left", extra={"fields": {"request_id": named}})
        except Exception as exc:
            self._on_fault(exc)
        finally:
            self._note(scope, named, status, received, sent)

    def _note(self, scope: Scope, named: str, status: int, received: int, sent: int) -> None:
        """Count and log a response. What an answer's size or time says of its content is left out."""
        path: str = scope["path"]
        route = path if path in FIXED else next((p for p in PREFIXES if path.startswith(p)), "other")
        outcomes: list[str] = scope.get(OUTCOMES, [])
        self.metrics.responses.labels(route, str(status)).inc()
        self.metrics.received.inc(received)
        if route in PREFIXES:
            self.metrics.published.inc(sent)
        for outcome in outcomes:
            self.metrics.outcomes.labels(outcome).inc()
        fields: dict[str, object] = {"request_id": named, "method": scope["method"], "route": route,
                                     "status": status, "bytes_in": received}  # fmt: skip
        if outcomes:
            fields["outcome"] = outcomes if route == "/v1/queries" else outcomes[0]
        log.info("request", extra={"fields": fields})

    def close(self) -> None:
        """End the threads once their jobs have ended."""
        self.queries.close()
        self.enrolments.desk.close()
        self.public.desk.close()


async def _named(request: Request, exc: Exception) -> Response:
    assert isinstance(exc, HTTPException)
    name, message = NAMES.get(exc.status_code, ("HttpError", "the request cannot be answered"))
    return JSONResponse({"error": name, "message": message}, exc.status_code, dict(exc.headers or {}))


async def _fault(request: Request, exc: Exception) -> Response:
    return JSONResponse({"error": "InternalError", "message": "a fault of the service"}, 500)
