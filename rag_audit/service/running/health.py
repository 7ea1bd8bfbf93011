"""The metrics of a run, and the cause if it answers no query (docs/deploy/alerts.yml)."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterable

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    Metric,
    SummaryMetricFamily,
)
from prometheus_client.registry import Collector

from rag_audit.service.asgi import gauge
from rag_audit.service.running.observed import KINDS, kind_of
from rag_audit.service.running.supervisor import Supervisor

ALL_KINDS = sorted({*KINDS.values(), "window"})


class RunHealth(Collector):
    """The metrics of a run. They name witnesses and kinds of acts, and neither accounts nor documents."""

    def __init__(self, run: Supervisor) -> None:
        self._run = run

    def cause(self) -> str | None:
        """Why no window answers queries, or None if the run knows no cause."""
        return self._run.cause()

    def collect(self) -> Iterable[Metric]:
        """The current values."""
        run, observed, state = self._run, self._run.observed, self._run.directory.state
        now = run.now()
        yield _by("action", CounterMetricFamily(
            "rag_audit_run_failures", "Failed attempts by kind of act.", labels=["action"]),
            {kind: observed.failures[kind] for kind in ALL_KINDS})  # fmt: skip
        yield _by("action", CounterMetricFamily(
            "rag_audit_run_retries", "Attempts after a failed one, by kind of act.", labels=["action"]),
            {kind: observed.retries[kind] for kind in ALL_KINDS})  # fmt: skip
        pending = Counter(kind_of(failure.action) for failure in state.failures)
        yield _by("action", GaugeMetricFamily(
            "rag_audit_run_pending_failures", "Acts that failed at their last attempt, by kind.", labels=["action"]),
            {kind: pending[kind] for kind in ALL_KINDS})  # fmt: skip
        yield gauge("rag_audit_run_permanent_failure", "1 if no further window can be made with this configuration.",
                    float(run.permanent is not None))  # fmt: skip
        yield gauge("rag_audit_run_step_timestamp_seconds", "Time of the run's last look for its next act.",
                    observed.stepped_at / 1000)  # fmt: skip
        abandoned = CounterMetricFamily(
            "rag_audit_windows_abandoned", "Abandoned windows of the run's folder."
        )
        abandoned.add_metric([], run.abandoned)
        yield abandoned
        yield gauge("rag_audit_proofs_waiting", "Records of ended windows without the proofs that the run makes.",
                    run.proofs_waiting())  # fmt: skip
        yield gauge("rag_audit_challenges_waiting", "Challenges of verifiers without their proofs.",
                    run.challenges_waiting())  # fmt: skip
        opened = run.served.newest
        if opened is not None:
            yield gauge("rag_audit_window_age_seconds", "Seconds since the newest window opened; negative before.",
                        (now - opened.header.opens_at) / 1000)  # fmt: skip
        try:
            disk = shutil.disk_usage(run.directory.folder)
        except OSError:
            disk = (
                None  # the disk does not answer: the metric is absent, and readyz names the window's folder
            )
        if disk is not None:
            yield gauge("rag_audit_disk_free_bytes", "Free bytes of the disk of the run's folder.", disk.free)
            yield gauge("rag_audit_disk_size_bytes", "Bytes of the disk of the run's folder.", disk.total)
        yield from self._witnesses(now)

    def _witnesses(self, now: int) -> Iterable[Metric]:
        observed = self._run.observed
        names = [remote.key.name for remote in self._run.remotes]
        requests = SummaryMetricFamily("rag_audit_witness_request_seconds",
                                       "Duration of successful requests to a witness.", labels=["witness"])  # fmt: skip
        for name in names:
            requests.add_metric([name], observed.requests[name], observed.seconds.get(name, 0.0))
        yield requests
        yield _by("witness", CounterMetricFamily(
            "rag_audit_witness_failures", "Failed requests to a witness.", labels=["witness"]),
            {name: observed.refused[name] for name in names})  # fmt: skip
        down = {name: max(0, now - since) / 1000 for name, since in dict(observed.down_since).items()}
        yield _by("witness", GaugeMetricFamily(
            "rag_audit_witness_down_seconds", "Seconds since a witness stopped to answer; 0 if it answers.",
            labels=["witness"]), {name: down.get(name, 0.0) for name in names})  # fmt: skip


def _by(
    label: str, family: GaugeMetricFamily | CounterMetricFamily, values: dict[str, float] | dict[str, int]
) -> Metric:
    """A metric with a value for each value of its label."""
    for name, value in values.items():
        family.add_metric([name], value)
    return family
