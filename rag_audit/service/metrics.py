"""Prometheus metrics of the service: counts and states, and no time that a single query takes (docs/security.md)."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from starlette.requests import Request
from starlette.responses import Response

from rag_audit.attest.window import Window
from rag_audit.service.line import Places

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
