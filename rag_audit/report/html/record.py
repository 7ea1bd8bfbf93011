"""The page's section on the window's record: its dates, its vouching parties, and the requirements of the reader's
trust file."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from rag_audit._internal.words import counted, instant
from rag_audit.report.html import charts, words
from rag_audit.report.html.charts import Axis, Chart, Rule
from rag_audit.report.model import Event, Report, Requirement

MAX_ROWS = 40
"""Maximum rows of a table, because a window file can have any number."""
MAX_PARTS = 12
ROUNDED = "final-quorum"
"""The kind of event with a time rounded down to a second. Other events of that second may precede it."""


@dataclass(frozen=True)
class Activity:
    """How a window's queries spread over its time: a chart, the unit of its time, and the rows of its values."""

    chart: Chart
    unit: str
    rows: list[tuple[str, int]]


def instants(report: Report) -> list[tuple[str, str, str]]:
    """The events with their times, and the time since the previous event."""
    rows = []
    before: int | None = None
    for event in in_order(report.timeline.events)[:MAX_ROWS]:
        after = "" if event.at is None or before is None else _elapsed(event.at - before)
        if event.kind == ROUNDED and event.at is not None and before is not None and event.at <= before:
            after = "in the same second"
        rows.append(
            (words.clip(event.words, 300), "not dated" if event.at is None else instant(event.at), after)
        )
        before = event.at if event.at is not None else before
    return rows


def in_order(events: list[Event]) -> list[Event]:
    """The events in order: dated events by their time, each undated event after its predecessor in the list.
    Witnesses date in seconds. The final cosignature therefore sorts after all ledger dates within its second, since
    the witnesses cosigned the end."""
    last, keyed = 0, []
    for place, event in enumerate(events):
        last = last if event.at is None else event.at + (999 if event.kind == ROUNDED else 0)
        keyed.append((last, place, event))
    return [event for _, _, event in sorted(keyed, key=lambda item: item[:2])]


def activity(report: Report) -> Activity | None:
    """The queries over the window's time, or None if no query has a date."""
    activity = report.timeline.activity
    if activity is None or not activity.counts or activity.end <= activity.start:
        return None
    span, counts = activity.end - activity.start, _parts(activity.counts)
    highest, width = max(counts), span / len(counts)
    unit, name = next(
        (u, n)
        for u, n in (
            (86_400_000, "days"),
            (3_600_000, "hours"),
            (60_000, "minutes"),
            (1000, "seconds"),
            (1, "milliseconds"),
        )
        if span >= 2 * u or u == 1
    )
    whole = charts.from_zero(f"{name} after the beginning", span / unit)
    x = Axis(whole.label, 0, whole.high, whole.ticks)
    y = charts.from_zero("queries", max(highest, 4))
    bars = [(i * width / unit, (i + 1) * width / unit, count) for i, count in enumerate(counts) if count]
    rules = [
        Rule((e.at - activity.start) / unit, e.kind)
        for e in report.timeline.events
        if e.kind in ("opens", "closes") and e.at is not None and activity.start < e.at <= activity.end
    ]
    sentence = (
        f"Queries from {instant(activity.start)} on, in {len(counts)} parts of"
        f" {_elapsed(math.ceil(width))}: at most {counted(highest, 'query', 'queries')} in one of them."
    )
    rows = [
        (f"{charts.number_text(i * width / unit)} to {charts.number_text((i + 1) * width / unit)}", count)
        for i, count in enumerate(counts)
        if count
    ]
    chart = Chart("window", "Queries over the window's time", sentence, x, y, rules=rules, bars=bars)
    return Activity(chart, name, rows[:MAX_ROWS])


def _parts(counts: list[int]) -> list[int]:
    """Counts in few parts, because each part with queries takes a line of the table."""
    width = math.ceil(len(counts) / MAX_PARTS)
    return [sum(counts[i : i + width]) for i in range(0, len(counts), width)]


def limit(r: Requirement) -> str:
    """A requirement's limit."""
    kinds = {"at-most": "at most ", "at-least": "at least ", "level": ""}
    return "absent, and no window meets an absent limit" if r.limit is None else kinds[r.kind] + r.limit


def keys(report: Report) -> Iterator[tuple[str, str, str, str | None]]:
    """The keys that the verdict depends on: role, name, act, fingerprint."""
    v = report.vouching
    signed = "signed the ledger" if report.shows("provider") else "no signature of this key counts"
    if signed != "signed the ledger" and report.outcome in ("FAIL", "UNDECIDED"):
        signed = "this report draws no conclusion from its signatures"
    yield "provider", v.provider.name, signed, v.provider.fingerprint
    for w in v.witnesses[:MAX_ROWS]:
        parts = (
            ("cosigned the header", w.header),
            ("cosigned the end", w.end),
            ("contributed a random value", w.beacon),
        )
        yield (
            "witness",
            w.name,
            ", ".join(act for act, done in parts if done) or "gave no signature",
            w.fingerprint,
        )
    for k in v.verifiers[:MAX_ROWS]:
        yield "verifier", k.name, "may draw the records to prove", k.fingerprint


def _elapsed(milliseconds: int) -> str:
    """A span of time in its largest unit."""
    sign = "-" if milliseconds < 0 else ""
    left = abs(milliseconds)
    for unit, name in ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1000, "s")):
        if left >= unit:
            return f"{sign}{left / unit:.3g} {name}"
    return f"{sign}{left} ms"
