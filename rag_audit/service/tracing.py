"""OpenTelemetry's spans around requests, where its API is installed and a program has set it up; else nothing.

A span has a beginning and an end, so it is for the provider's own eyes (docs/security.md, "Over HTTP").
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from starlette.requests import Request

from rag_audit.service.logs import REQUEST_ID

try:
    from opentelemetry import propagate, trace
except ModuleNotFoundError:
    TRACES = False
else:
    TRACES = True


@contextmanager
def span(request: Request, name: str) -> Iterator[None]:
    """A span around the block, as a child of the one that the request's `traceparent` header names."""
    if not TRACES:
        yield
        return
    with trace.get_tracer("rag_audit").start_as_current_span(
        f"rag_audit.{name}",
        context=propagate.extract(dict(request.headers)),
        kind=trace.SpanKind.SERVER,
        attributes={"rag_audit.request_id": str(request.scope.get(REQUEST_ID, ""))},
        record_exception=False,
    ):
        yield
