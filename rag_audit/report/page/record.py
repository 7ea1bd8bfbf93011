"""The page's part about the window's record: its time, who vouches for it, and what the reader's trust file asks."""

from __future__ import annotations

import math

from rag_audit._internal.words import counted, instant
from rag_audit.report.model import Event, Report, Requirement
from rag_audit.report.page import charts
from rag_audit.report.page.charts import Axis, Rule
from rag_audit.report.page.markup import Child, Html, clip, join, tag

MOST_ROWS = 40
"""Rows of a table, of which a window file could make any number."""
CLIP = 300
MOST_PARTS = 12
NUMBERED = ("opens", "beacon", "first-query", "last-query", "closing", "closes")
"""The instants that the picture of a window's queries may mark."""
ROUNDED = "final-quorum"
"""The instant that is rounded down to a second in which others may lie before it."""


def timeline(report: Report) -> Html:
    """The window's instants, how its queries spread over it, and how many each account asked."""
    t, c = report.timeline, report.counts
    known = [e for e in t.events if e.at is not None]
    rows: list[list[Child]] = []
    before: int | None = None
    for event in _in_order(t.events)[:MOST_ROWS]:
        after = "" if event.at is None or before is None else _elapsed(event.at - before)
        if event.kind == ROUNDED and event.at is not None and before is not None and event.at <= before:
            after = "in the same second"
        rows.append([clip(event.words, CLIP), "not dated" if event.at is None else instant(event.at), after])
        before = event.at if event.at is not None else before
    late = (
        tag(
            "p",
            "This window is dated after the report. One of two clocks is wrong, or the window is an example.",
            class_="warning",
        )
        if t.future
        else None
    )
    asked = (
        f"{counted(c.records, 'query', 'queries')} of {counted(c.accounts_asking, 'account')}; the window has"
        f" {counted(c.accounts, 'account')}, of which {c.accounts_holding_their_keys:,} hold their own keys."
    )
    return tag(
        "section",
        tag("h2", "The window in time"),
        late,
        tag("p", asked, " The windows before this one: ", clip(report.chain.words, CLIP), "."),
        _activity(report) if known else None,
        charts.table("What happened when", ["", "time", "after the one before"], rows),
        tag("p", "Witnesses cosign in whole seconds, rounded down.", class_="small"),
        _by_account(report),
        id="window",
    )


def _in_order(events: list[Event]) -> list[Event]:
    """The dated ones by their time, each undated one after the one that it stood after. Witnesses date in seconds:
    that of the end comes after all that the ledger dates within it, since they cosigned its end."""
    last, keyed = 0, []
    for place, event in enumerate(events):
        last = last if event.at is None else event.at + (999 if event.kind == ROUNDED else 0)
        keyed.append((last, place, event))
    return [event for _, _, event in sorted(keyed, key=lambda item: item[:2])]


def _activity(report: Report) -> Html | None:
    activity = report.timeline.activity
    if activity is None or not activity.counts or activity.end <= activity.start:
        return None
    span, counts = activity.end - activity.start, _parts(activity.counts)
    most, width = max(counts), span / len(counts)
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
    y = charts.from_zero("queries", max(most, 4))
    bars = [(i * width / unit, (i + 1) * width / unit, count) for i, count in enumerate(counts) if count]
    rules = [
        Rule((e.at - activity.start) / unit, e.kind)
        for e in report.timeline.events
        if e.kind in ("opens", "closes") and e.at is not None and activity.start < e.at <= activity.end
    ]
    sentence = (
        f"Queries from {instant(activity.start)} on, in {len(counts)} parts of"
        f" {_elapsed(math.ceil(width))}: at most {counted(most, 'query', 'queries')} in one of them."
    )
    rows: list[list[Child]] = [
        [f"{charts.number_text(i * width / unit)} to {charts.number_text((i + 1) * width / unit)}", count]
        for i, count in enumerate(counts)
        if count
    ]
    return tag(
        "figure",
        tag(
            "div",
            charts.chart("window", "Queries over the window's time", sentence, x, y, (), (), rules, bars),
            class_="picture",
        ),
        tag(
            "figcaption",
            tag("p", sentence),
            charts.table("Queries by part of the window", [name, "queries"], rows[:MOST_ROWS]),
        ),
    )


def _parts(counts: list[int]) -> list[int]:
    """Counts in few parts, since each that is not empty takes a line of the table."""
    together = math.ceil(len(counts) / MOST_PARTS)
    return [sum(counts[i : i + together]) for i in range(0, len(counts), together)]


def _by_account(report: Report) -> Html | None:
    found = report.counts.queries_by_account
    if not found:
        return None
    rows: list[list[Child]] = [[clip(q.tenant, 128), q.queries, q.accounts] for q in found[:MOST_ROWS]]
    left = len(found) - MOST_ROWS
    return join(
        charts.table("Queries per account", ["tenant", "queries", "accounts that asked so many"], rows),
        tag("p", f"{counted(left, 'further row')} in the report as JSON.", class_="small")
        if left > 0
        else None,
    )


def requirements(report: Report) -> Html:
    """Each requirement of the trust file, and how near the window comes to its limit; who vouches."""
    kinds = {"at-most": "at most ", "at-least": "at least ", "level": ""}

    def row(r: Requirement) -> list[Child]:
        limit = "not said, which no window meets" if r.limit is None else kinds[r.kind] + r.limit
        met = {"pass": "met" if r.scope is None else "met in part", "unproven": "not established"}
        return [
            r.words if r.scope is None else f"{r.words}: {clip(r.scope, CLIP)}",
            clip(limit, CLIP),
            clip(r.found, CLIP),
            _meter(r),
            tag("span", met.get(r.outcome, "not met"), class_=f"tag {r.outcome}"),
        ]

    return tag(
        "section",
        tag("h2", "What the reader asked for"),
        tag(
            "p",
            "The reader's trust file sets these limits, and they decide between PASS and UNMET. The bar is"
            " the share of a limit that the window uses.",
        ),
        charts.table(
            "Requirements of the trust file",
            ["", "limit", "found", "used", ""],
            [row(r) for r in report.requirements[:MOST_ROWS]],
            class_="values wide stack",
        ),
        tag("p", "Allowed as exceptions: " + clip(", ".join(report.figures.allowed), CLIP) + ".")
        if report.figures.allowed
        else None,
        id="requirements",
    )


def _meter(r: Requirement) -> Child:
    if r.used is None:
        return ""
    used = float(r.used)
    share = "over" if used > 1 else "near" if used > 0.9 else "far"
    label = "above 100 %" if math.isinf(used) else f"{100 * used:,.0f} %"
    bar = tag(
        "svg",
        tag("rect", x=0, y=0, width=50, height=8, class_="meter"),
        tag("rect", x=0, y=0, width=50 * min(used, 1.0), height=8, class_=f"meter {share}"),
        viewBox="0 0 50 8",
        class_="bar50",
        aria_hidden="true",
    )
    return tag("span", bar, " ", label, class_="nowrap")


def vouching(report: Report) -> Html:
    """Whose keys the verdict rests on."""
    v = report.vouching

    def print_(fingerprint: str | None) -> Child:
        return tag("code", fingerprint) if fingerprint else "none: the key is malformed"

    signed = "signed the ledger" if report.shows("provider") else "no signature of it counts"
    if signed != "signed the ledger" and report.outcome in ("FAIL", "UNDECIDED"):
        signed = "nothing is concluded from its signatures"
    rows: list[list[Child]] = [
        ["provider", clip(v.provider.name, 128), signed, print_(v.provider.fingerprint)]
    ]
    for w in v.witnesses[:MOST_ROWS]:
        did = [
            what
            for what, done in (
                ("cosigned the opening", w.opening),
                ("cosigned the end", w.end),
                ("gave a random value", w.beacon),
            )
            if done
        ]
        rows.append(["witness", clip(w.name, 128), ", ".join(did) or "signed nothing", print_(w.fingerprint)])
    rows += [
        ["verifier", clip(k.name, 128), "may draw records to be proved", print_(k.fingerprint)]
        for k in v.verifiers[:MOST_ROWS]
    ]
    beacon = (
        ""
        if v.beacon.chain is None
        else f" The public beacon is drand, chain {v.beacon.chain}, round {v.beacon.round}."
    )
    return tag(
        "section",
        tag("h2", "Who vouches for it"),
        tag(
            "p",
            f"The reader's trust file names these keys. {v.quorum} of"
            f" {counted(len(v.witnesses), 'witness', 'witnesses')} have to cosign. It knows"
            f" {counted(v.accounts_named, 'account')} to be independent of the provider.",
            beacon,
        ),
        charts.table(
            "Keys", ["", "name", "what it did", "SHA-256 of the public key"], rows, class_="values wide stack"
        ),
        id="vouching",
    )


def _elapsed(milliseconds: int) -> str:
    """A span of time in its largest unit."""
    sign = "-" if milliseconds < 0 else ""
    left = abs(milliseconds)
    for unit, name in ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1000, "s")):
        if left >= unit:
            return f"{sign}{left / unit:.3g} {name}"
    return f"{sign}{left} ms"
