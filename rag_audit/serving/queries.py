"""`POST /v1/query` and `POST /v1/queries`: signed requests in, answers or signed refusals out."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from rag_audit.encoding.canonical import Json, parse_json
from rag_audit.errors import RagAuditError
from rag_audit.formats.requests import Answer, Refusal
from rag_audit.parties.provider.answers import named_in
from rag_audit.serving.bodies import Bodies, Left, Unreadable
from rag_audit.serving.desk import Desk, Windows
from rag_audit.serving.limits import Limits
from rag_audit.serving.logs import OUTCOMES
from rag_audit.serving.statuses import RETRY_S, STATUSES, retry_after
from rag_audit.serving.tracing import span

MEDIA_TYPE = "application/json"
ANSWER = "answer"
REASONS = {408: "unavailable", 429: "unavailable"}
"""The reasons of refusals that no window gave, by status; the others are `malformed`."""


@dataclass(frozen=True)
class Made:
    """A reply as it is sent.

    :param outcome: `ANSWER`, or the reason of a refusal
    :param data: its canonical JSON, which is written where the reply was made and not in the event loop
    """

    outcome: str
    data: bytes

    @classmethod
    def of(cls, reply: Answer | Refusal) -> Made:
        """A window's reply."""
        return cls(reply.reason if isinstance(reply, Refusal) else ANSWER, reply.canonical())


class Queries:
    """The endpoints that answer.

    :param eager: an iterator with one value for each answer to prove before it leaves, whatever the policy
    :param on_fault: called with an exception that is no named error, after which the service continues
    """

    def __init__(
        self,
        windows: Windows,
        limits: Limits,
        eager: Iterator[int],
        on_fault: Callable[[BaseException], None],
    ) -> None:
        self.desk = Desk("answers", threads=limits.threads, places=limits.waiting)
        self.bodies = Bodies(limits)
        self._windows = windows
        self._limits = limits
        self._eager = eager
        self._on_fault = on_fault

    async def query(self, request: Request) -> Response:
        """Answer one request."""
        return await self._with_body(request, self._limits.request_bytes, self._one)

    async def _with_body(
        self, request: Request, most: int, answer: Callable[[Request, bytes], Awaitable[Response]]
    ) -> Response:
        """What a request's body is answered with, or why there is none."""
        try:
            async with self.bodies.taken(request, most) as body:
                return await answer(request, body)
        except Unreadable as exc:
            return self._refused(request, exc.status, exc.detail)
        except Left:
            return Response(status_code=400)

    async def _one(self, request: Request, body: bytes) -> Response:
        if not self.desk.free():
            return self._busy(request, body)
        try:
            with span(request, "query"):
                reply = await self.desk.do(1, self._answer, body)
        except Exception as exc:
            return self._fault(exc)
        return self._response(request, reply)

    async def queries(self, request: Request) -> Response:
        """Answer a list of requests, each as if it had been sent alone; those of one account in their order."""
        limits = self._limits
        return await self._with_body(request, limits.batch * (limits.request_bytes + 1) + 2, self._several)

    async def _several(self, request: Request, body: bytes) -> Response:
        items = await self.desk.do(1, self._items, body) if self.desk.free() else []
        if not items or not self.desk.free(len(items)):
            return self._busy(request, b"")
        by_account: defaultdict[str, list[int]] = defaultdict(list)
        for place, item in enumerate(items):
            by_account[str(item.get("account")) if isinstance(item, dict) else f"/{place}"].append(place)
        replies: list[bytes] = [b""] * len(items)
        outcomes: list[str] = []

        async def answer(places: list[int]) -> None:
            made = await self.desk.do(len(places), self._answer_all, [items[place] for place in places])
            for place, reply in zip(places, made, strict=True):
                if reply is None:
                    raise _NoWindow
                outcomes.append(reply.outcome)
                replies[place] = reply.data

        try:
            with span(request, "queries"):
                found = await asyncio.gather(
                    *(answer(places) for places in by_account.values()), return_exceptions=True
                )
            for fault in found:
                if isinstance(fault, BaseException):
                    raise fault
        except _NoWindow:
            return self._response(request, None)
        except Exception as exc:
            return self._fault(exc)
        request.scope[OUTCOMES] = outcomes
        return Response(b"[" + b",".join(replies) + b"]", media_type=MEDIA_TYPE)

    def _items(self, body: bytes) -> list[Json]:
        """The requests of a batch.

        :raises Unreadable: it is no list, or too long a one
        """
        most = self._limits.batch
        try:
            value = parse_json(body, source="batch")
        except RagAuditError as exc:
            raise Unreadable(400, str(exc)) from exc
        if not isinstance(value, list) or not 1 <= len(value) <= most:
            raise Unreadable(400, f"a batch is a list of 1 to {most} requests")
        return value

    # -- in threads ------------------------------------------------------------------------------------------

    def _answer(self, body: bytes) -> Made | None:
        try:
            value = parse_json(body, source="request", max_bytes=self._limits.request_bytes)
        except RagAuditError as exc:
            with self._windows.using() as window:
                return None if window is None else Made.of(window.refuse("malformed", str(exc)))
        return self._handle(value)

    def _answer_all(self, values: list[Json]) -> list[Made | None]:
        return [self._handle(value) for value in values]

    def _handle(self, value: Json) -> Made | None:
        opening = value.get("opening") if isinstance(value, dict) else None
        with self._windows.using(opening if isinstance(opening, str) else None) as window:
            if window is None:
                return None
            return Made.of(window.handle(value, eager=next(self._eager, None) is not None))

    # -- responses -------------------------------------------------------------------------------------------

    def _response(self, request: Request, reply: Made | None) -> Response:
        if reply is None:
            return no_window()
        request.scope[OUTCOMES] = [reply.outcome]
        if reply.outcome == ANSWER:
            return Response(reply.data, media_type=MEDIA_TYPE)
        window = self._windows.current()
        after = None
        if window is not None:
            after = retry_after(reply.outcome, window.opening, window.state.clock())
        return _refusal(reply.data, STATUSES[reply.outcome], after)

    def _busy(self, request: Request, body: bytes) -> Response:
        """The refusal of what finds no place; it names its request, so that the account can tell whose it is."""
        try:
            value = parse_json(body, source="request")
        except RagAuditError:
            value = None
        return self._refused(request, 429, "too many requests wait for an answer", value)

    def _refused(self, request: Request, status: int, detail: str, value: Json = None) -> Response:
        window = self._windows.current()
        if window is None:
            return no_window()
        reason = REASONS.get(status, "malformed")
        request.scope[OUTCOMES] = [reason]
        refusal = window.refuse(reason, detail, **named_in(value))
        response = _refusal(refusal.canonical(), status, RETRY_S if reason == "unavailable" else None)
        if status != 400:
            response.headers["Connection"] = "close"  # what is left of the body is not read
        return response

    def _fault(self, exc: Exception) -> Response:
        self._on_fault(exc)
        return JSONResponse({"error": "InternalError", "message": "a fault of the service"}, 500)


class _NoWindow(Exception):
    """There was no window to answer with."""


def no_window() -> Response:
    """The response while no window is served, which nobody can sign."""
    value = {"error": "WindowStateError", "message": "no window is served at the moment"}
    return JSONResponse(value, 503, {"Retry-After": str(RETRY_S)})


def _refusal(refusal: bytes, status: int, after: int | None) -> Response:
    headers = {} if after is None else {"Retry-After": str(after)}
    return Response(refusal, status, headers, MEDIA_TYPE)
