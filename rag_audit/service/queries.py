"""`POST /v1/query` and `POST /v1/queries`: signed requests in, answers or signed refusals out. A single request is a
batch of one.
"""

from __future__ import annotations

import asyncio
import math
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from starlette.requests import Request
from starlette.responses import Response

from rag_audit._internal.canonical import Json, parse_json
from rag_audit._internal.errors import RagAuditError
from rag_audit.attest.answers import named_in
from rag_audit.attest.query import Query
from rag_audit.attest.window import Window
from rag_audit.models.records import WindowHeader
from rag_audit.models.requests import REFUSALS, Answer, Refusal
from rag_audit.service.asgi import RETRY_S, Bodies, Left, Unreadable, error
from rag_audit.service.limits import Limits
from rag_audit.service.logs import OUTCOMES, span
from rag_audit.service.queue import FairQueue, Places, WorkQueue
from rag_audit.service.windows import Windows

MEDIA_TYPE = "application/json"
ANSWER = "answer"
STATUSES = {
    "malformed": 400,
    "wrong-window": 409,
    "unknown-account": 403,
    "unknown-tenant": 403,
    "wrong-tenant": 403,
    "bad-signature": 403,
    "query-mismatch": 422,
    "empty-query": 422,
    "slot-used": 409,
    "out-of-order": 409,
    "limit": 403,
    "in-flight": 429,
    "not-open": 503,
    "closed": 410,
    "unavailable": 503,
}
"""The status of a refusal by its reason. After 429 and 503 the same request may succeed later, after 410 none will."""
assert set(STATUSES) == set(REFUSALS)

REASONS = {408: "unavailable", 429: "unavailable"}
"""The reasons of refusals that no window gave, by status; the others are `malformed`."""
MAX_RETRY_S = 3600


def retry_after(reason: str, header: WindowHeader, now: int) -> int | None:
    """The seconds after which a refused request may be repeated as it is, or None if that is in vain.

    :param now: milliseconds since the epoch
    """
    if reason == "not-open":
        wait = math.ceil((header.opens_at - now) / 1000)
        return max(RETRY_S, min(wait, MAX_RETRY_S))
    return RETRY_S if reason in ("in-flight", "unavailable") else None


@dataclass(frozen=True)
class Reply:
    """A reply as it is sent.

    :param outcome: `ANSWER`, or the reason of a refusal
    :param data: its canonical JSON, which is written where the reply was made and not in the event loop
    """

    outcome: str
    data: bytes

    @classmethod
    def of(cls, reply: Answer | Refusal) -> Reply:
        """A window's reply."""
        return cls(reply.reason if isinstance(reply, Refusal) else ANSWER, reply.canonical())


@dataclass(eq=False)
class HttpQuery(Query):
    """A query over HTTP. Its window stays in use until the query has ended."""

    window: Window = field(init=False)
    reply: Reply | Exception = field(init=False, repr=False)
    replied: asyncio.Future[Reply] = field(init=False, repr=False)


class Queries:
    """The endpoints that answer queries.

    The service checks a request's form and signature before the request takes a place, so only an account itself can
    occupy the account's places.

    :param eager: an iterator with one value for each answer to prove before it leaves, whatever the policy
    :param on_fault: called with an exception that is no named error, after which the service continues
    """

    def __init__(
        self,
        windows: Windows,
        bodies: Bodies,
        limits: Limits,
        eager: Iterator[int],
        on_fault: Callable[[BaseException], None],
    ) -> None:
        self.places = Places(limits.waiting, limits.of_account)
        self._bodies = bodies
        self._batches = WorkQueue("batches", threads=2, places=limits.reads)
        self._together: FairQueue[HttpQuery] = FairQueue(limits.pass_requests)
        self._alone: FairQueue[HttpQuery] = FairQueue(1)
        self._windows = windows
        self._limits = limits
        self._eager = eager
        self._on_fault = on_fault
        for queue, name, threads in (
            (self._together, "answers", limits.answering),
            (self._alone, "alone", limits.threads),
        ):
            for number in range(threads):
                threading.Thread(
                    target=self._work, args=(queue,), name=f"rag-audit-{name}-{number}", daemon=True
                ).start()

    def close(self) -> None:
        """End the threads once their jobs have ended; queries that wait are dropped."""
        dropped = [*self._together.close(), *self._alone.close()]
        for query in dropped:
            query.reply = ConnectionAbortedError()
        self._deliver(dropped)
        self._batches.close()

    async def query(self, request: Request) -> Response:
        """Answer one request."""
        return await self._answer(request, batch=False)

    async def queries(self, request: Request) -> Response:
        """Answer a list of requests. Each gets the same answer as a single request; requests of one account are
        answered in order."""
        return await self._answer(request, batch=True)

    async def _answer(self, request: Request, *, batch: bool) -> Response:
        maximum = self._limits.batch if batch else 1
        length = maximum * (self._limits.request_bytes + 1) + 2 if batch else self._limits.request_bytes
        try:
            async with self._bodies.taken(request, length) as body:
                if batch and not self._batches.free():
                    return self._busy(request)
                with span(request, "queries" if batch else "query"):
                    return await self._replies(request, body, batch=batch)
        except Unreadable as exc:
            return self._refused(request, exc.status, exc.detail)
        except Left:
            return Response(status_code=400)
        except Exception as exc:
            self._on_fault(exc)
            return error(500, "InternalError", "a fault of the service")

    async def _replies(self, request: Request, body: bytes, *, batch: bool) -> Response:
        if batch:  # a batch of signatures would block the event loop
            values, received = await self._batches.do(1, self._received, body, "batch", self._limits.batch)
        else:
            values, received = self._received(body, "request", 1)
        queries = [query for query in received if isinstance(query, HttpQuery)]
        if None in received or not self.places.free(Counter(query.account for query in queries)):
            for query in queries:
                self._windows.release(query.window)
            return no_window() if None in received else self._busy(request, None if batch else values[0])
        for query in queries:
            self.places.take(query.account)
        await self._wait(queries)
        replies = [one.reply if isinstance(one, HttpQuery) else one for one in received]
        result = [reply for reply in replies if isinstance(reply, Reply)]
        return self._batch_response(request, result) if batch else self._response(request, result[0])

    def _received(
        self, body: bytes, source: str, maximum: int
    ) -> tuple[list[Json], list[HttpQuery | Reply | None]]:
        """The requests in a body, and for each a query to answer, an immediate reply, or None.

        :param source: ``request`` for a single one, ``batch`` for a list
        :param maximum: maximum number of requests
        :raises Unreadable: the body is not JSON, or no list of at most this number of requests
        """
        limits = self._limits
        try:
            value = parse_json(body, source=source, max_bytes=maximum * (limits.request_bytes + 1) + 2,
                               max_values=maximum * limits.request_values + 1)  # fmt: skip
        except RagAuditError as exc:
            raise Unreadable(400, str(exc)) from exc
        if source == "request":
            values = [value]
        elif isinstance(value, list) and 1 <= len(value) <= maximum:
            values = value
        else:
            raise Unreadable(400, f"a batch is a list of 1 to {maximum} requests")
        return values, [self._receive(value) for value in values]

    def _receive(self, value: Json) -> HttpQuery | Reply | None:
        """A request that is well-formed and signed, with its window; the refusal of another; None without a window."""
        window = self._windows.use(value.get("header") if isinstance(value, dict) else None)
        if window is None:
            return None
        received = False
        try:
            query = HttpQuery.parse(value, window.context.embedder)
            window.answers.receive(query)
            query.window, query.eager = window, next(self._eager, None) is not None
            received = True
            return query
        except RagAuditError as exc:
            return Reply.of(window.answers.refusal(exc, value))
        finally:
            if not received:
                self._windows.release(window)

    async def _wait(self, queries: Sequence[HttpQuery]) -> None:
        """Wait until queries, which have their places, have their replies."""
        by_account: defaultdict[str, list[HttpQuery]] = defaultdict(list)
        for query in queries:
            by_account[query.account].append(query)
        ended = await asyncio.gather(*map(self._wait_in_turn, by_account.values()), return_exceptions=True)
        for failure in ended:
            if failure is not None:
                raise failure

    async def _wait_in_turn(self, queries: Sequence[HttpQuery]) -> None:
        """Let the queries of one account be answered one after the other."""
        left = list(queries)
        try:
            while left:
                query = left[0]
                query.replied = asyncio.get_running_loop().create_future()
                batch = query.window.answers.batch and not query.eager
                (self._together if batch else self._alone).put(query.account, query)
                del left[0]
                await query.replied
        finally:
            for query in left:
                self._end(query)

    def _end(self, query: HttpQuery) -> None:
        self.places.give_back(query.account)
        self._windows.release(query.window)

    # -- in threads ------------------------------------------------------------------------------------------

    def _work(self, queue: FairQueue[HttpQuery]) -> None:
        """Answer the queries of a queue until it is closed."""
        while queries := queue.take():
            try:
                self._answer_batch(queries)
            except Exception as exc:
                for query in queries:
                    query.reply = exc
            self._deliver(queries)

    def _answer_batch(self, queries: Sequence[HttpQuery]) -> None:
        """Answer queries in batches, one batch for each window."""
        by_window: defaultdict[int, list[HttpQuery]] = defaultdict(list)
        for query in queries:
            by_window[id(query.window)].append(query)
        for own in by_window.values():
            try:
                outcomes = own[0].window.answers.answer(own)
            except Exception as exc:
                outcomes = [exc for _ in own]
            for query, outcome in zip(own, outcomes, strict=True):
                query.reply = outcome if isinstance(outcome, Exception) else Reply.of(outcome)

    def _deliver(self, queries: Sequence[HttpQuery]) -> None:
        """Deliver replies to the event loops that wait for them, with one wake-up for each loop."""
        by_loop: defaultdict[asyncio.AbstractEventLoop, list[HttpQuery]] = defaultdict(list)
        for query in queries:
            by_loop[query.replied.get_loop()].append(query)
        for loop, own in by_loop.items():
            if not loop.is_closed():
                loop.call_soon_threadsafe(self._settle, own)

    def _settle(self, queries: Sequence[HttpQuery]) -> None:
        for query in queries:
            self._end(query)
            if query.replied.done():  # its caller left
                continue
            if isinstance(query.reply, Exception):
                query.replied.set_exception(query.reply)
            else:
                query.replied.set_result(query.reply)

    # -- responses -------------------------------------------------------------------------------------------

    def _response(self, request: Request, reply: Reply) -> Response:
        request.scope[OUTCOMES] = [reply.outcome]
        if reply.outcome == ANSWER:
            return Response(reply.data, media_type=MEDIA_TYPE)
        window = self._windows.newest
        after = None
        if window is not None:
            after = retry_after(reply.outcome, window.header, window.state.clock())
        return _refusal(reply.data, STATUSES[reply.outcome], after)

    def _batch_response(self, request: Request, replies: Sequence[Reply]) -> Response:
        request.scope[OUTCOMES] = [reply.outcome for reply in replies]
        return Response(b"[" + b",".join(reply.data for reply in replies) + b"]", media_type=MEDIA_TYPE)

    def _busy(self, request: Request, value: Json = None) -> Response:
        """The refusal of a request without a free place. It names its request, so that the account can recognise it."""
        return self._refused(request, 429, "too many requests wait for an answer", value)

    def _refused(self, request: Request, status: int, detail: str, value: Json = None) -> Response:
        window = self._windows.newest
        if window is None:
            return no_window()
        reason = REASONS.get(status, "malformed")
        request.scope[OUTCOMES] = [reason]
        refusal = window.refuse(reason, detail, **named_in(value))
        response = _refusal(refusal.canonical(), status, RETRY_S if reason == "unavailable" else None)
        if status != 400:
            response.headers["Connection"] = "close"  # the service does not read the rest of the body
        return response


def no_window() -> Response:
    """The response while no window is served. No key exists to sign it."""
    return error(503, "WindowStateError", "no window is served at the moment", RETRY_S)


def _refusal(refusal: bytes, status: int, after: int | None) -> Response:
    headers = {} if after is None else {"Retry-After": str(after)}
    return Response(refusal, status, headers, MEDIA_TYPE)
