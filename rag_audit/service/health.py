"""`/healthz`, `/readyz` and `/metrics`: whether the process answers at all, whether it answers queries, and counts and
states for Prometheus, among them no time that a single query takes (docs/security.md).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from rag_audit.attest.window import Window
from rag_audit.service.line import Places

LEAST_FREE_BYTES = 16 << 20
"""Free space on the ledger's disk below which the service is not ready."""


def unready(window: Window | None, *, stopping: bool) -> str | None:
    """Why queries are not answered now, or None if they are."""
    if stopping:
        return "the service is stopping"
    if window is None:
        return "no window is served"
    status = window.status
    if status != "active":
        return f"the window is {status}"
    opening, now = window.opening, window.state.clock()
    if now < opening.opens_at:
        return "the window is not open yet"
    if now > opening.closes_at:
        return "the window's time is over"
    if window.state.store.failure is not None:
        return "the ledger could not be written"
    try:
        disk = os.statvfs(window.directory)
    except OSError:
        return "the window's folder cannot be read"
    if disk.f_bavail * disk.f_frsize < LEAST_FREE_BYTES:
        return "the ledger's disk is full"
    return None


class Health:
    """The endpoints for whoever starts, watches and stops the process."""

    def __init__(self, window: Callable[[], Window | None], stopping: Callable[[], bool]) -> None:
        self._window = window
        self._stopping = stopping

    async def alive(self, request: Request) -> Response:
        """`GET /healthz`: 200 as long as the process runs."""
        return JSONResponse({"alive": True}, headers={"Cache-Control": "no-store"})

    async def ready(self, request: Request) -> Response:
        """`GET /readyz`: 200 if queries are answered, else 503 with the reason."""
        reason = unready(self._window(), stopping=self._stopping())
        value = {"ready": True} if reason is None else {"ready": False, "reason": reason}
        return JSONResponse(value, 200 if reason is None else 503, {"Cache-Control": "no-store"})


STATES = ("none", "committed", "active", "closed", "final")


class Metrics:
    """The service's counters, and gauges that are read when they are asked for.

    :param window: the window that is served, or None
    :param places: where requests wait
    :param held: bytes of the bodies that are being received or wait for their answer
    """

    def __init__(self, window: Callable[[], Window | None], places: Places, held: Callable[[], int]) -> None:
        self._registry = CollectorRegistry()
        self.outcomes = Counter(
            "rag_audit_requests", "Signed requests by what became of them: answer, or the reason of the refusal.",
            ["outcome"], registry=self._registry,
        )  # fmt: skip
        self.responses = Counter(
            "rag_audit_http_responses", "HTTP responses by route and status.", ["route", "status"],
            registry=self._registry,
        )  # fmt: skip
        self.received = Counter(
            "rag_audit_request_bytes", "Bytes of requests' bodies.", registry=self._registry
        )
        self.published = Counter(
            "rag_audit_public_bytes", "Bytes of public files that were sent.", registry=self._registry
        )
        self._registry.register(_Gauges(window, places, held))

    async def endpoint(self, request: Request) -> Response:
        """`GET /metrics`."""
        return Response(generate_latest(self._registry), headers={"Content-Type": CONTENT_TYPE_LATEST})


class _Gauges(Collector):
    def __init__(self, window: Callable[[], Window | None], places: Places, held: Callable[[], int]) -> None:
        self._window = window
        self._places = places
        self._held = held

    def collect(self) -> Iterable[Metric]:
        """The gauges as they stand."""
        places = self._places
        yield _gauge("rag_audit_requests_in_service", "Requests that wait or are answered.", places.taken)
        yield _gauge("rag_audit_requests_in_service_limit", "Beyond these a request gets 429.", places.most)
        yield _gauge("rag_audit_bodies_bytes", "Bytes of bodies that are received or wait.", self._held())
        window = self._window()
        status = GaugeMetricFamily("rag_audit_window_status", "1 for the window's status.", labels=["status"])
        found = "none" if window is None else window.status
        for name in STATES:
            status.add_metric([name], float(name == found))
        yield status
        if window is None:
            return
        state, opening = window.state, window.opening
        yield _gauge("rag_audit_ledger_entries", "Entries of the ledger.", state.tree.size)
        yield _gauge(
            "rag_audit_ledger_writable", "0 after a write failed.", float(state.store.failure is None)
        )
        yield _gauge(
            "rag_audit_window_opens_timestamp_seconds", "When queries begin.", opening.opens_at / 1000
        )
        yield _gauge("rag_audit_window_closes_timestamp_seconds", "When they end.", opening.closes_at / 1000)
        counts = window.noise_pool.counts
        drawn = GaugeMetricFamily(
            "rag_audit_noise_slots", "Slots by how their noise was there.", labels=["how"]
        )
        for how in ("ready", "behind", "cold"):
            drawn.add_metric([how], getattr(counts, how))
        yield drawn


def _gauge(name: str, text: str, value: float) -> Metric:
    return GaugeMetricFamily(name, text, value=value)
