"""`POST /v1/query` and `POST /v1/queries`: signed requests in, answers or signed refusals out."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from rag_audit._internal.canonical import Json, parse_json
from rag_audit._internal.errors import RagAuditError
from rag_audit.attest.answers import named_in
from rag_audit.models.requests import Answer, Refusal, SignedRequest
from rag_audit.service.bodies import Bodies, Left, Unreadable
from rag_audit.service.desk import Desk, Use, Windows
from rag_audit.service.limits import Limits
from rag_audit.service.line import Line, Places
from rag_audit.service.logs import OUTCOMES, span
from rag_audit.service.statuses import RETRY_S, STATUSES, retry_after

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


@dataclass(frozen=True)
class _Asked:
    """A signed request and the window that answers it, which is in use until it has ended.

    :param eager: whether its answer is proved before it leaves, whatever the policy
    """

    use: Use
    request: SignedRequest
    eager: bool


class Queries:
    """The endpoints that answer.

    A request's form and signature are checked before it takes a place, so that nobody takes one in another's name.

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
        self.places = Places(limits.waiting, limits.of_account)
        self.bodies = Bodies(limits)
        self._batches = Desk("batches", threads=2, places=limits.reads)
        self._line = Line(self._work, name="answers", threads=limits.answering, together=limits.together)
        self._alone = Line(self._work, name="alone", threads=limits.threads, together=1)
        self._windows = windows
        self._limits = limits
        self._eager = eager
        self._on_fault = on_fault

    def close(self) -> None:
        """End the threads once their jobs have ended."""
        self._line.close()
        self._alone.close()
        self._batches.close()

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
        except Exception as exc:
            self._on_fault(exc)
            return JSONResponse({"error": "InternalError", "message": "a fault of the service"}, 500)

    async def _one(self, request: Request, body: bytes) -> Response:
        try:
            value = self._parsed(body, "request", 1)
        except RagAuditError as exc:
            raise Unreadable(400, str(exc)) from exc
        with span(request, "query"):
            found = self._received(value)
            if not isinstance(found, _Asked):
                return self._response(request, found)
            if not self.places.free({found.request.account: 1}):
                found.use.end()
                return self._busy(request, value)
            self._take([found])
            (made,) = await self._answered([found])
        return self._response(request, made)

    async def queries(self, request: Request) -> Response:
        """Answer a list of requests, each as if it had been sent alone; those of one account in their order."""
        limits = self._limits
        return await self._with_body(request, limits.batch * (limits.request_bytes + 1) + 2, self._several)

    async def _several(self, request: Request, body: bytes) -> Response:
        if not self._batches.free():
            return self._busy(request)
        items = await self._batches.do(1, self._items, body)
        asked = [item for item in items if isinstance(item, _Asked)]
        wanted = Counter(item.request.account for item in asked)
        if None in items or not self.places.free(wanted):
            for item in asked:
                item.use.end()
            return self._response(request, None) if None in items else self._busy(request)
        self._take(asked)
        by_account: defaultdict[str, list[_Asked]] = defaultdict(list)
        for item in asked:
            by_account[item.request.account].append(item)
        with span(request, "queries"):
            found = await asyncio.gather(
                *(self._answered(chain) for chain in by_account.values()), return_exceptions=True
            )
        made: dict[int, Made] = {}
        for chain, replies in zip(by_account.values(), found, strict=True):
            if isinstance(replies, BaseException):
                raise replies
            made |= {id(item): reply for item, reply in zip(chain, replies, strict=True)}
        replies = [made[id(item)] if isinstance(item, _Asked) else item for item in items if item is not None]
        request.scope[OUTCOMES] = [reply.outcome for reply in replies]
        return Response(b"[" + b",".join(reply.data for reply in replies) + b"]", media_type=MEDIA_TYPE)

    def _items(self, body: bytes) -> list[_Asked | Made | None]:
        """The requests of a batch, as they are received.

        :raises Unreadable: it is no list, or too long a one
        """
        most = self._limits.batch
        try:
            value = self._parsed(body, "batch", most)
        except RagAuditError as exc:
            raise Unreadable(400, str(exc)) from exc
        if not isinstance(value, list) or not 1 <= len(value) <= most:
            raise Unreadable(400, f"a batch is a list of 1 to {most} requests")
        return [self._received(item) for item in value]

    def _parsed(self, body: bytes, source: str, requests: int) -> Json:
        limits = self._limits
        most = requests * (limits.request_bytes + 1) + 2
        return parse_json(
            body, source=source, max_bytes=most, max_values=requests * limits.request_values + 1
        )

    def _received(self, value: Json) -> _Asked | Made | None:
        """A request that is well-formed and signed, and its window; the refusal of any other; None without a window."""
        opening = value.get("opening") if isinstance(value, dict) else None
        use = self._windows.use(opening if isinstance(opening, str) else None)
        if use is None:
            return None
        found: SignedRequest | Refusal | None = None
        try:
            found = use.window.answers.received(value)
        finally:
            if not isinstance(found, SignedRequest):
                use.end()
        if isinstance(found, Refusal):
            return Made.of(found)
        return _Asked(use, found, next(self._eager, None) is not None)

    def _take(self, asked: Sequence[_Asked]) -> None:
        """Take the places of requests, which have to be free."""
        for one in asked:
            self.places.take(one.request.account)

    def _end(self, asked: _Asked) -> None:
        self.places.give_back(asked.request.account)
        asked.use.end()

    async def _answered(self, chain: Sequence[_Asked]) -> list[Made]:
        """The replies to requests of one account, which have their places, one after the other."""
        left = list(chain)
        try:
            replies = []
            while left:
                asked = left.pop(0)
                line = self._line if asked.use.window.answers.together and not asked.eager else self._alone
                ended = partial(self._end, asked)
                replies.append(await line.wait(asked.request.account, asked, ended))
            return replies
        finally:
            for asked in left:
                self._end(asked)

    # -- in threads ------------------------------------------------------------------------------------------

    def _work(self, items: Sequence[_Asked]) -> Sequence[Made | Exception]:
        """Answer requests together, those of each window."""
        made: dict[int, Made | Exception] = {}
        alike: defaultdict[tuple[int, bool], list[_Asked]] = defaultdict(list)
        for item in items:
            alike[id(item.use.window), item.eager].append(item)
        for asked in alike.values():
            answers = asked[0].use.window.answers
            try:
                found = answers.answer_all([item.request for item in asked], eager=asked[0].eager)
            except Exception as exc:
                found = [exc for _ in asked]
            for item, reply in zip(asked, found, strict=True):
                made[id(item)] = reply if isinstance(reply, Exception) else Made.of(reply)
        return [made[id(item)] for item in items]

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

    def _busy(self, request: Request, value: Json = None) -> Response:
        """The refusal of what finds no place; it names its request, so that the account can tell whose it is."""
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


def no_window() -> Response:
    """The response while no window is served, which nobody can sign."""
    value = {"error": "WindowStateError", "message": "no window is served at the moment"}
    return JSONResponse(value, 503, {"Retry-After": str(RETRY_S)})


def _refusal(refusal: bytes, status: int, after: int | None) -> Response:
    headers = {} if after is None else {"Retry-After": str(after)}
    return Response(refusal, status, headers, MEDIA_TYPE)
