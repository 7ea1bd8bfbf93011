"""`POST /v1/names`: accounts ask for the proof of the names of their documents (docs/http.md, "Names of documents")."""

from __future__ import annotations

import threading
from collections.abc import Callable

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from rag_audit._internal.canonical import parse_json
from rag_audit._internal.errors import RagAuditError, RequestRefused, StoreError
from rag_audit.attest.window import Window
from rag_audit.models.names import MAX_NAMES_REQUEST_BYTES, MAX_POSITIONS, NamesRequest
from rag_audit.service.asgi import NOT_STORED, RETRY_S, Bodies, Left, Unreadable, error, named, unreadable
from rag_audit.service.logs import OUTCOMES, span
from rag_audit.service.queue import WorkQueue
from rag_audit.service.windows import NoWindow, Windows

PLACES = 16
"""Maximum requests that wait for a proof or get one, of all accounts; an account has at most one of them."""
CHECKS = 64
"""Maximum requests whose form and signature wait to be checked, or are checked."""
MEDIA_TYPE = "application/json"
STATUSES = {
    "wrong-window": 409,
    "unknown-account": 403,
    "unknown-tenant": 403,
    "wrong-tenant": 403,
    "bad-signature": 403,
    "not-returned": 403,
    "proof-limit": 403,
    "no-table": 404,
    "no-proof": 501,
}
"""The status of a refusal by its reason."""


class Names:
    """The endpoint. One thread waits for all proofs, so the service makes one proof at a time. Computing a proof uses
    every processor, and answers to questions take longer meanwhile. Error responses are unsigned: an account loses
    nothing by a false refusal, because it can ask a second time.

    :param on_fault: called with an exception that is no named error, after which the service continues
    """

    def __init__(self, windows: Windows, bodies: Bodies, on_fault: Callable[[BaseException], None]) -> None:
        self.queue = WorkQueue("names", threads=1, places=PLACES)
        self._checks = WorkQueue("names-checks", threads=1, places=CHECKS)
        self._windows, self._bodies, self._on_fault = windows, bodies, on_fault
        self._lock = threading.Lock()
        self._accounts: set[str] = set()

    def close(self) -> None:
        """End the threads once their jobs have ended; jobs that wait are dropped."""
        self._checks.close()
        self.queue.close()

    async def endpoint(self, request: Request) -> Response:
        """Answer one request."""
        try:
            async with self._bodies.taken(request, MAX_NAMES_REQUEST_BYTES) as body:
                with span(request, "names"):
                    return await self._answer(request, body)
        except Unreadable as exc:
            return unreadable(exc)
        except Left:
            return Response(status_code=400)

    async def _answer(self, request: Request, body: bytes) -> Response:
        if not self._checks.free():
            return _busy()
        # Only a signed request takes a place, so that only an account itself can occupy the account's place.
        wanted = await self._checks.do(1, self._received, body)
        if isinstance(wanted, NamesRequest):
            if not self.queue.free() or not self._enter(wanted.account):
                return _busy()
            result = await self.queue.do(1, self._proved, wanted)
            if isinstance(result, bytes):
                request.scope[OUTCOMES] = ["names"]
                return Response(result, 200, NOT_STORED, MEDIA_TYPE)
            return result
        return wanted

    def _enter(self, account: str) -> bool:
        """Take the account's place, unless a request of the account has it."""
        with self._lock:
            if account in self._accounts:
                return False
            self._accounts.add(account)
            return True

    # -- in threads ------------------------------------------------------------------------------------------

    def _received(self, body: bytes) -> NamesRequest | Response:
        """The request, if it is well-formed and signed; otherwise the response."""
        try:
            wanted = NamesRequest.parse(
                parse_json(
                    body, source="request", max_bytes=MAX_NAMES_REQUEST_BYTES, max_values=MAX_POSITIONS + 64
                ),
                field="request",
            )
        except RagAuditError as exc:
            return named(400, exc)
        return self._in_window(wanted, lambda window: window.name_proofs.receive(wanted)) or wanted

    def _proved(self, wanted: NamesRequest) -> bytes | Response:
        answers: list[bytes] = []
        try:
            failed = self._in_window(
                wanted, lambda window: answers.append(window.name_proofs.answer(wanted).canonical())
            )
            return failed or answers[0]
        finally:
            with self._lock:
                self._accounts.discard(wanted.account)

    def _in_window(self, wanted: NamesRequest, work: Callable[[Window], None]) -> Response | None:
        """Do work with the window of a request, and return the response of a failure; None without one."""
        try:
            with self._windows.using(wanted.header) as window:
                work(window)
        except NoWindow:
            return error(503, "WindowStateError", "no window is served at the moment", RETRY_S)
        except RequestRefused as exc:
            return JSONResponse({**exc.as_json(), "error": exc.reason}, STATUSES[exc.reason])
        except RagAuditError as exc:
            # The store, the memory or the table fails: the account may ask a second time.
            self._on_fault(exc)
            return named(503, StoreError("the names cannot be proved at the moment"), RETRY_S)
        except Exception as exc:
            self._on_fault(exc)
            return error(500, "InternalError", "a fault of the service")
        return None


def _busy() -> Response:
    return error(429, "Busy", "too many requests wait for a proof", RETRY_S)
