"""A witness over HTTP: C2SP's `add-checkpoint`, and the extension that its other rules need (docs/witnesses.md)."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from prometheus_client.core import Metric
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from rag_audit._internal.canonical import jcs, parse_json
from rag_audit._internal.errors import RagAuditError, SignatureError, SizeError, StoreError
from rag_audit.log.checkpoint import Checkpoint, open_checkpoint
from rag_audit.log.keys import VerifierKey
from rag_audit.log.note import Note, parse_note, verify_note
from rag_audit.log.submission import (
    ADD_CHECKPOINT,
    MAX_SUBMISSION_BYTES,
    SIZE_TYPE,
    Submission,
    cosignature_lines,
)
from rag_audit.models.records import parse_entry
from rag_audit.models.witnessing import (
    HEADER,
    MAX_REQUEST_BYTES,
    NONCE,
    REVEAL,
    TRAILER,
    HeaderRequest,
    NonceRequest,
    RevealRequest,
    TrailerRequest,
)
from rag_audit.service.asgi import (
    RETRY_S,
    Application,
    Bodies,
    Exchange,
    Left,
    Unreadable,
    disk_full,
    error,
    gauge,
)
from rag_audit.service.limits import Limits
from rag_audit.witness.offers import Offers
from rag_audit.witness.rules import WitnessRefused
from rag_audit.witness.witness import ShownQuery, Witness

MAX_WAITING = 64


@dataclass(frozen=True)
class Provider:
    """A provider; the witness cosigns its windows.

    :param origin: each log with an origin line ``<origin>/<window>`` belongs to this provider
    :param key: the key that signs the provider's logs
    :param witnesses: a quorum of these witnesses, which include this one, must have cosigned before a nonce is revealed
    :param quorum: the number of witnesses in that quorum; 0 if no nonce is ever revealed
    """

    origin: str
    key: VerifierKey
    witnesses: Sequence[VerifierKey] = ()
    quorum: int = 0


class Answered(Exception):
    """A request that ends with another status than 200."""

    def __init__(self, status: int, response: Response) -> None:
        super().__init__(status)
        self.response = response


STATUSES: Mapping[type[RagAuditError], int] = {SignatureError: 403, WitnessRefused: 422, SizeError: 413}
"""The statuses of refusals; any other is 400."""


def _error(status: int, exc: RagAuditError) -> Answered:
    headers = {"Retry-After": str(RETRY_S)} if status == 503 else None
    return Answered(status, JSONResponse(exc.as_json(), status, headers))


def _known(size: int) -> Answered:
    return Answered(409, Response(f"{size}\n", 409, media_type=None, headers={"Content-Type": SIZE_TYPE}))


class WitnessService:
    """Computes a witness's answer to the bytes of a request. It does no network I/O."""

    def __init__(self, witness: Witness, offers: Offers, providers: Sequence[Provider]) -> None:
        self._witness, self._offers = witness, offers
        self._providers = {p.origin: p for p in providers}

    def unready(self) -> str | None:
        """The reason why the witness could cosign no checkpoint at present, or None."""
        folder = self._offers.folder
        try:
            self._witness.last("")  # reads the state, as each decision does
            full = disk_full(folder)
        except (RagAuditError, OSError):
            return "the witness's state cannot be read"
        return "the witness's state cannot be written" if full or not os.access(folder, os.W_OK) else None

    def add_checkpoint(self, body: bytes) -> Response:
        """Cosign a later checkpoint of a window. The witness must have cosigned the window's header."""
        return self._extend(Submission.parse(body), None)

    def trailer(self, body: bytes) -> Response:
        """Cosign a window's end: the checkpoint with the window trailer as its last entry."""
        told = TrailerRequest.parse(parse_json(body, source="request"), field="request")
        path = [bytes.fromhex(h) for h in told.path]
        submission = Submission.parse(told.submission, field="request.submission")
        query = None
        if (shown := told.query) is not None:
            query = ShownQuery(jcs(shown.entry), shown.index, [bytes.fromhex(h) for h in shown.path])
        return self._extend(submission, (jcs(told.trailer), path), query)

    def header(self, body: bytes) -> Response:
        """Cosign a window's opening."""
        told = HeaderRequest.parse(parse_json(body, source="request"), field="request")
        note = parse_note(told.checkpoint, field="request.checkpoint")
        head, provider = self._signed(note)
        known = self._witness.last(head.origin)
        if known is not None and known[0] > 1:
            raise _known(known[0])
        signed = self._witness.cosign_header(note, jcs(told.header), log_key=provider.key)
        return _lines(cosignature_lines(signed, self._witness.vkey))

    def nonce(self, body: bytes) -> Response:
        """A nonce line for a window's opening."""
        note = parse_note(body, field="request")
        requested = NonceRequest.of(note, field="request")
        provider = self._provider(requested.origin)
        verify_note(note, [provider.key], field="request")
        commitment = self._offers.commitment(requested.origin, requested.window)
        key = self._witness.vkey
        line = jcs({"name": key.name, "vkey": str(key), "commitment": commitment}) + b"\n"
        return Response(line, media_type="application/json")

    def reveal(self, body: bytes) -> Response:
        """Reveal the nonce that a window header or an enrolment names, once the quorum has cosigned it."""
        told = RevealRequest.parse(parse_json(body, source="request"), field="request")
        note = parse_note(told.checkpoint, field="request.checkpoint")
        _, provider = self._signed(note)
        if not provider.quorum:
            raise WitnessRefused(
                "this witness has no quorum for this provider, so it reveals no nonce",
                field="provider",
                expected="start the witness with a trust file for this provider",
            )
        parse_entry(told.entry, field="request.entry")
        revealed = self._witness.reveal(
            note,
            jcs(told.entry),
            log_key=provider.key,
            witnesses=provider.witnesses,
            quorum=provider.quorum,
            index=told.index,
            path=[bytes.fromhex(h) for h in told.path],
        )
        return _lines(str(revealed))

    def _extend(
        self,
        told: Submission,
        trailer: tuple[bytes, list[bytes]] | None,
        query: ShownQuery | None = None,
    ) -> Response:
        head, provider = self._signed(told.note)
        if told.old > head.size:
            raise _error(400, WitnessRefused("the old size is above the checkpoint's", field="old",
                                             expected=f"at most {head.size}", actual=told.old))  # fmt: skip
        size, root = self._witness.last(head.origin) or (0, b"")
        if told.old != size:
            raise _known(size)
        if not size:
            # Any log may grow without inspection, but a witness cosigns a window header for its content, so it has to
            # read it.
            raise WitnessRefused(
                "this witness has not cosigned a header of this window",
                field="checkpoint",
                actual=head.origin,
                hint=f"this witness accepts a window header with its record: POST {HEADER}",
            )
        if head.size == size and head.root != root:
            raise _known(size)
        try:
            signed = self._witness.cosign(
                told.note, log_key=provider.key, consistency=told.proof, trailer=trailer, query=query
            )
        except WitnessRefused:
            # Another process may have moved the same witness's state meanwhile.
            if (now := self._witness.last(head.origin)) is not None and now[0] != size:
                raise _known(now[0]) from None
            raise
        return _lines(cosignature_lines(signed, self._witness.vkey))

    def _signed(self, note: Note) -> tuple[Checkpoint, Provider]:
        """A checkpoint that its provider signed."""
        head = Checkpoint.parse(note.text)
        provider = self._provider(head.origin.rpartition("/")[0])
        open_checkpoint(note, origin=head.origin, log_key=provider.key)
        return head, provider

    def _provider(self, origin: str) -> Provider:
        provider = self._providers.get(origin)
        if provider is None:
            raise _error(
                404, WitnessRefused("this witness does not know the log", field="origin", actual=origin)
            )
        return provider


def _lines(text: str) -> Response:
    return Response(text, media_type="text/plain")


class WitnessApplication(Application):
    """The ASGI application of a witness, with its own gauges. The gauges reveal neither the submitters nor the windows
    that the witness knows. One thread decides, since each decision locks the witness's state.

    :param on_fault: called with an exception that is no named error, after which the service continues
    """

    def __init__(
        self, service: WitnessService, limits: Limits, on_fault: Callable[[BaseException], None]
    ) -> None:
        self._bodies = Bodies(limits)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="rag-audit-witness")
        self._waiting = 0
        self._service = service
        calls = ((ADD_CHECKPOINT, service.add_checkpoint, MAX_SUBMISSION_BYTES),
                 (HEADER, service.header, MAX_REQUEST_BYTES), (TRAILER, service.trailer, MAX_REQUEST_BYTES),
                 (REVEAL, service.reveal, MAX_REQUEST_BYTES), (NONCE, service.nonce, 4096))  # fmt: skip
        routes = [
            Route(path, self._endpoint(call, maximum), methods=["POST"]) for path, call, maximum in calls
        ]
        super().__init__(routes, {HTTPException: _named}, "rag_audit_witness_responses", on_fault)
        self._named = {route.path for route in self.routes}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one HTTP request, with an id, counted and logged."""
        if scope["type"] != "http":
            return
        exchange = Exchange(scope, send)
        with exchange.guarded(self._on_fault):
            await self._routed(scope, receive, exchange.send)
        exchange.note(self._responses, scope["path"] if scope["path"] in self._named else "other")

    def collect(self) -> Iterable[Metric]:
        """The current values of the gauges."""
        name, maximum = "rag_audit_witness_requests_in_service", MAX_WAITING
        yield gauge(name, "Requests that wait or are decided.", self._waiting)
        yield gauge(f"{name}_limit", "Beyond these a request gets 503.", maximum)

    async def unready(self) -> str | None:
        """Why a submission would not be decided, or None if it would be."""
        if self._waiting >= MAX_WAITING:
            return "too many requests wait"
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._service.unready)

    def close(self) -> None:
        """End the thread once its job has ended."""
        self._thread.shutdown()

    def _endpoint(
        self, call: Callable[[bytes], Response], maximum: int
    ) -> Callable[[Request], Awaitable[Response]]:
        async def endpoint(request: Request) -> Response:
            try:
                body = await self._bodies.read(request, maximum, kind=None)
            except Unreadable as exc:
                return error(exc.status, "Unreadable", exc.detail)
            except Left:
                return Response(status_code=400)
            if self._waiting >= MAX_WAITING:
                return error(503, "Busy", "too many requests wait", RETRY_S)
            self._waiting += 1
            try:
                return await asyncio.get_running_loop().run_in_executor(
                    self._thread, self._decided, call, body
                )
            finally:
                self._waiting -= 1

        return endpoint

    def _decided(self, call: Callable[[bytes], Response], body: bytes) -> Response:
        try:
            return call(body)
        except Answered as exc:
            return exc.response
        except StoreError as exc:
            self._on_fault(exc)
            return _error(503, StoreError("the witness's state cannot be written")).response
        except RagAuditError as exc:
            status = next((status for kind, status in STATUSES.items() if isinstance(exc, kind)), 400)
            return _error(status, exc).response
        except Exception as exc:
            self._on_fault(exc)
            return error(500, "InternalError", "a fault of the service")


async def _named(request: Request, exc: Exception) -> Response:
    assert isinstance(exc, HTTPException)
    return error(exc.status_code, "HttpError", exc.detail)
