"""`POST /v1/enrolments`: accounts ask for their line on a roster. `GET` returns the windows that take requests."""

from __future__ import annotations

from collections.abc import Callable

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from rag_audit._internal.canonical import parse_json
from rag_audit._internal.errors import RagAuditError, SignatureError, StoreError, WindowStateError
from rag_audit.models.enrolling import MAX_REQUEST_BYTES, EnrolmentAnswer
from rag_audit.service.asgi import NOT_STORED, RETRY_S, Bodies, Left, Unreadable, error, named, unreadable
from rag_audit.service.enrolment_book import Intake, TooMany
from rag_audit.service.logs import OUTCOMES
from rag_audit.service.queue import WorkQueue

PLACES, THREADS = 128, 2
FULL_RETRY_S = 600
"""Seconds after which an account asks a second time, if its provider had not decided about the other requests."""
MEDIA_TYPE = "application/json"
PENDING = 202


class Enrolments:
    """The endpoint. Its error responses have the same form as those of all other addresses. They are unsigned, because
    no loss depends on their authenticity.

    :param intake: computes the answers; None if the provider takes no requests here
    :param on_fault: called with an exception that is no named error, after which the service continues
    """

    def __init__(
        self, intake: Intake | None, bodies: Bodies, on_fault: Callable[[BaseException], None]
    ) -> None:
        self.queue = WorkQueue("enrolments", threads=THREADS, places=PLACES)
        self._intake, self._bodies, self._on_fault = intake, bodies, on_fault

    async def endpoint(self, request: Request) -> Response:
        """Answer one request."""
        if self._intake is None:
            return error(404, "NotFound", "this service takes no enrolment requests")
        if request.method != "POST":
            return JSONResponse(self._intake.offer().dump(), headers=NOT_STORED)
        try:
            async with self._bodies.taken(request, MAX_REQUEST_BYTES) as body:
                if not self.queue.free():
                    return error(429, "Busy", "too many requests wait for an answer", RETRY_S)
                result = await self.queue.do(1, self._answer, self._intake, body)
        except Unreadable as exc:
            return unreadable(exc)
        except Left:
            return Response(status_code=400)
        if isinstance(result, EnrolmentAnswer):
            request.scope[OUTCOMES] = [f"enrolment-{result.status}"]
            status = PENDING if result.status == "pending" else 200
            return Response(result.canonical(), status, NOT_STORED, MEDIA_TYPE)
        return result

    def _answer(self, intake: Intake, body: bytes) -> EnrolmentAnswer | Response:
        try:
            return intake.answer(parse_json(body, source="request", max_bytes=MAX_REQUEST_BYTES))
        except TooMany as exc:
            return named(429, exc, FULL_RETRY_S)
        except WindowStateError as exc:
            return named(409, exc)
        except SignatureError as exc:
            return named(403, exc)
        except StoreError as exc:
            self._on_fault(exc)
            return named(503, StoreError("the request cannot be stored at the moment"), RETRY_S)
        except RagAuditError as exc:
            return named(400, exc)
        except Exception as exc:
            self._on_fault(exc)
            return error(500, "InternalError", "a fault of the service")
