"""The log of a service over HTTP: the id of each request, without the content of questions and answers.
OpenTelemetry spans around requests, if its API is installed and a program has configured it.

A span has a start time and an end time, so only the provider may see spans (docs/security.md, "Over HTTP").
"""

from __future__ import annotations

import logging
import random
import re
from collections.abc import Iterator
from contextlib import contextmanager

from starlette.requests import Request

log = logging.getLogger("rag_audit.http")

OUTCOMES = "rag_audit.outcomes"
"""The key in an ASGI scope for the outcomes of an endpoint's requests."""
REQUEST_ID = "rag_audit.request_id"
_IDS = random.Random()  # seeded by the operating system, which is not asked for each: an id is no secret
_WELL_FORMED = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}\Z")


def request_id(given: str | None) -> str:
    """The id of a request: the sender's id if it is well-formed, else a new id."""
    return given if given is not None and _WELL_FORMED.match(given) else f"{_IDS.getrandbits(64):016x}"


try:
    from opentelemetry import propagate, trace
except ModuleNotFoundError:
    TRACES = False
else:
    TRACES = True


@contextmanager
def span(request: Request, name: str) -> Iterator[None]:
    """A span around the block. Its parent is the span in the request's `traceparent` header."""
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
