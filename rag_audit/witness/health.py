"""A witness's `/healthz`, `/readyz` and `/metrics`: whether it runs, and whether it would cosign."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from rag_audit._internal.errors import RagAuditError
from rag_audit.service.health import LEAST_FREE_BYTES

HEALTH = ("/healthz", "/readyz", "/metrics")


class WitnessMetrics:
    """Counts and states of a witness. Who submits, and which windows it knows, is not among them.

    :param waiting: requests that wait or are decided
    :param most: beyond these a request gets 503
    """

    def __init__(self, waiting: Callable[[], int], most: int) -> None:
        self._registry = CollectorRegistry()
        self.responses = Counter(
            "rag_audit_witness_responses", "HTTP responses by route and status.", ["route", "status"],
            registry=self._registry,
        )  # fmt: skip
        self._registry.register(_Gauges(waiting, most))

    def page(self) -> tuple[bytes, str]:
        """`GET /metrics`: the text and its content type."""
        return generate_latest(self._registry), CONTENT_TYPE_LATEST


class _Gauges(Collector):
    def __init__(self, waiting: Callable[[], int], most: int) -> None:
        self._waiting, self._most = waiting, most

    def collect(self) -> Iterable[Metric]:
        """The gauges as they stand."""
        yield GaugeMetricFamily(
            "rag_audit_witness_requests_in_service",
            "Requests that wait or are decided.",
            value=self._waiting(),
        )
        yield GaugeMetricFamily(
            "rag_audit_witness_requests_in_service_limit",
            "Beyond these a request gets 503.",
            value=self._most,
        )


def unready(read: Callable[[], object], folder: Path) -> str | None:
    """Why a witness would not cosign now, or None.

    :param read: reads the witness's state, as each decision does
    """
    try:
        read()
        disk = os.statvfs(folder)
    except (RagAuditError, OSError):
        return "the witness's state cannot be read"
    if not os.access(folder, os.W_OK) or disk.f_bavail * disk.f_frsize < LEAST_FREE_BYTES:
        return "the witness's state cannot be written"
    return None
