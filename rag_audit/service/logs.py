"""Structured logs: one JSON object per line, with the request's id and without the content of questions and answers.
OpenTelemetry spans around requests, if its API is installed and a program has configured it.

A span has a start time and an end time, so only the provider may see spans (docs/security.md, "Over HTTP").
"""

from __future__ import annotations

import json
import logging
import random
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

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


@lru_cache(maxsize=4)
def _second(since: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(since))


class JsonLines(logging.Formatter):
    """Log records as JSON objects. The entries of a record's `fields` become members next to its time, level and
    event."""

    def format(self, record: logging.LogRecord) -> str:
        """One line."""
        value: dict[str, Any] = {
            "time": f"{_second(int(record.created))}.{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "event": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info is not None and record.exc_info[0] is not None:
            value["exception"] = record.exc_info[0].__name__  # its message may contain sent data
        return json.dumps(value, ensure_ascii=True)


def log_lines(stream: Any = None) -> logging.Handler:
    """Write the service's log, and its server's warnings, as lines of JSON.

    :param stream: where to; standard error if None
    """
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonLines())
    for name, level in (("rag_audit", logging.INFO), ("uvicorn", logging.WARNING)):
        logger = logging.getLogger(name)
        logger.addHandler(handler)
        logger.setLevel(level)
        logger.propagate = False
    return handler


def remove_handler(handler: logging.Handler) -> None:
    """Undo `log_lines`."""
    for name in ("rag_audit", "uvicorn"):
        logger = logging.getLogger(name)
        logger.removeHandler(handler)
        logger.setLevel(logging.NOTSET)
        logger.propagate = True


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
