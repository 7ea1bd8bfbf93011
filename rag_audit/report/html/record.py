"""The page's section on the window's record: its dates, its vouching parties, and the requirements of the reader's
trust file."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass

from markupsafe import Markup

from rag_audit._internal.words import instant, marked
from rag_audit.report.html import charts, words
from rag_audit.report.html.charts import Axis, Chart, Rule
from rag_audit.report.language import Language
from rag_audit.report.model import Event, Report, Requirement
from rag_audit.report.requirements import WORDS, pilot_scope, scope_of

MAX_ROWS = 40
"""Maximum rows of a table, because a window file can have any number."""
MAX_PARTS = 12
ROUNDED = "final-quorum"
"""The kind of event with a time rounded down to a second. Other events of that second may precede it."""


@dataclass(frozen=True)
class Activity:
    """How a window's queries spread over its time: a chart, the unit of its time, and the rows of its values."""

    chart: Chart
    unit: Markup
    rows: list[tuple[Markup, int]]


def instants(say: Language, report: Report) -> list[tuple[Markup, Markup, Markup]]:
    """The events with their times, and the time since the previous event."""
    rows = []
    before: int | None = None
    for event in in_order(report.timeline.events)[:MAX_ROWS]:
        after = Markup() if event.at is None or before is None else elapsed(say, event.at - before)
        if event.kind == ROUNDED and event.at is not None and before is not None and event.at <= before:
            after = say.text("in the same second")
        when = say.text("not dated") if event.at is None else say.shown(instant(event.at))
        rows.append((_happened(say, report, event), when, after))
        before = event.at if event.at is not None else before
    return rows


def _happened(say: Language, report: Report, event: Event) -> Markup:
    """An event in words."""
    v = report.vouching
    witnesses = say.plural(
        "%(quorum)s of %(count)s witness",
        "%(quorum)s of %(count)s witnesses",
        len(v.witnesses),
        quorum=v.quorum,
    )
    match event.kind:
        case "header-quorum":
            return say.text("%(witnesses)s had cosigned the commitments", witnesses=witnesses)
        case "final-quorum":
            return say.text("%(witnesses)s had cosigned the end", witnesses=witnesses)
    return {
        "beacon": say.text("the value of the beacon was known"),
        "opens": say.text("the window opens"),
        "first-query": say.text("the first answer was recorded"),
        "last-query": say.text("the last answer was recorded"),
        "trailer": say.text("the provider closed the ledger"),
        "closes": say.text("the provider may answer no query after this time"),
        "delete-after": say.text("the provider deletes the private inputs of proofs"),
        "verified": say.text("this report was made"),
    }.get(event.kind) or say.quoted(words.clip(event.words, 300))


def previous(say: Language, report: Report) -> Markup:
    """The windows before, as far as this verification shows them."""
    chain = report.chain
    if not report.shows("chain"):
        return say.text("The previous windows: not established.")
    if chain.before is None:
        return say.text("The window header names no previous window.")
    if not chain.reached:
        return say.text(
            "The window header names the previous window %(name)s, which was not supplied.",
            name=f"{chain.before.header[:16]}..",
        )
    return say.plural(
        "%(count)s previous window was supplied, and confirms the order.",
        "%(count)s previous windows were supplied, and confirm the order.",
        chain.reached,
    )


def in_order(events: list[Event]) -> list[Event]:
    """The events in order: dated events by their time, each undated event after its predecessor in the list.
    Witnesses date in seconds. The final cosignature therefore sorts after all ledger dates within its second, since
    the witnesses cosigned the end."""
    last, keyed = 0, []
    for place, event in enumerate(events):
        last = last if event.at is None else event.at + (999 if event.kind == ROUNDED else 0)
        keyed.append((last, place, event))
    return [event for _, _, event in sorted(keyed, key=lambda item: item[:2])]


def activity(say: Language, report: Report) -> Activity | None:
    """The queries over the window's time, or None if no query has a date."""
    activity = report.timeline.activity
    if activity is None or not activity.counts or activity.end <= activity.start:
        return None
    span, counts = activity.end - activity.start, _parts(activity.counts)
    highest, width = max(counts), span / len(counts)
    unit, name, axis = next(
        (u, n, a)
        for u, n, a in (
            (86_400_000, say.text("days"), say.text("days after the beginning")),
            (3_600_000, say.text("hours"), say.text("hours after the beginning")),
            (60_000, say.text("minutes"), say.text("minutes after the beginning")),
            (1000, say.text("seconds"), say.text("seconds after the beginning")),
            (1, say.text("milliseconds"), say.text("milliseconds after the beginning")),
        )
        if span >= 2 * u or u == 1
    )
    whole = charts.from_zero(axis, span / unit)
    x = Axis(whole.label, 0, whole.high, whole.ticks)
    y = charts.from_zero(say.text("queries"), max(highest, 4))
    bars = [(i * width / unit, (i + 1) * width / unit, count) for i, count in enumerate(counts) if count]
    names = {"opens": say.text("opens"), "closes": say.text("closes")}
    rules = [
        Rule((e.at - activity.start) / unit, names[e.kind])
        for e in report.timeline.events
        if e.kind in names and e.at is not None and activity.start < e.at <= activity.end
    ]
    sentence = say.plural(
        "Queries from %(start)s on, in %(parts)s parts of %(width)s: at most %(count)s query in one of them.",
        "Queries from %(start)s on, in %(parts)s parts of %(width)s: at most %(count)s queries in one of them.",
        highest,
        start=instant(activity.start),
        parts=len(counts),
        width=elapsed(say, math.ceil(width)),
    )
    rows = [
        (
            say.text(
                "%(start)s to %(end)s",
                start=say.number(charts.number_text(i * width / unit)),
                end=say.number(charts.number_text((i + 1) * width / unit)),
            ),
            count,
        )
        for i, count in enumerate(counts)
        if count
    ]
    title = say.text("Queries over the window's time")
    return Activity(Chart("window", title, sentence, x, y, rules=rules, bars=bars), name, rows[:MAX_ROWS])


def _parts(counts: list[int]) -> list[int]:
    """Counts in few parts, because each part with queries takes a line of the table."""
    width = math.ceil(len(counts) / MAX_PARTS)
    return [sum(counts[i : i + width]) for i in range(0, len(counts), width)]


def requirement(say: Language, report: Report, r: Requirement) -> Markup:
    """A requirement in words, with the tenants that it applies to."""
    name = say.text(WORDS[r.name][1]) if r.name in WORDS else say.quoted(r.words)
    scope = pilot_scope(say, r.name, report.vouching) or scope_of(
        say, r.name, r.actual, report.tenants, report.figures.eps
    )
    if scope is None:
        return name
    return say.text("%(requirement)s: %(scope)s", requirement=name, scope=scope)


def limit(say: Language, r: Requirement) -> Markup:
    """A requirement's limit."""
    if r.limit is None:
        return say.text("absent, and no window meets an absent limit")
    value = _value(say, r.limit)
    match r.kind:
        case "at-most":
            return say.text("at most %(value)s", value=value)
        case "at-least":
            return say.text("at least %(value)s", value=value)
    return value


def actual(say: Language, r: Requirement) -> Markup:
    """A requirement's value in this window."""
    return _value(say, r.actual)


def _value(say: Language, text: str) -> Markup:
    """A value of a requirement: a number, a level, names, or one of the phrases of the checks."""
    text = words.clip(text, 300)
    if re.fullmatch(r"[0-9,.]+", text):
        return say.shown(say.number(text))
    return say.text(text) if text in PHRASES else say.shown(text)


PHRASES = frozenset({
    marked("no noise, no threshold"), marked("a threshold"), marked("the whole window"), marked("whole window"),
    marked("no figure is shown: the figures of this window are not established"),
    marked("keys of one party are allowed"), marked("a ceremony, or no keys needed"),
})  # fmt: skip
"""Values of requirements that are words of this project and no names."""


def met(say: Language, r: Requirement) -> Markup:
    """Whether the window meets a requirement."""
    if r.outcome == "pass":
        return say.text("met") if r.scope is None else say.text("met in part")
    return say.text("not established") if r.outcome == "unproven" else say.text("not met")


def keys(say: Language, report: Report) -> Iterator[tuple[Markup, str, Markup, str | None]]:
    """The keys that the verdict depends on: role, name, act, fingerprint."""
    v = report.vouching
    if report.shows("provider"):
        signed = say.text("signed the ledger")
    elif report.outcome in ("FAIL", "UNDECIDED"):
        signed = say.text("this report draws no conclusion from its signatures")
    else:
        signed = say.text("no signature of this key counts")
    yield say.text("provider"), v.provider.name, signed, v.provider.fingerprint
    for w in v.witnesses[:MAX_ROWS]:
        parts = (
            (say.text("cosigned the header"), w.header),
            (say.text("cosigned the end"), w.end),
            (say.text("contributed a random value"), w.beacon),
        )
        acts = [act for act, done in parts if done]
        did = say.listed(acts) if acts else say.text("gave no signature")
        yield say.text("witness"), w.name, did, w.fingerprint
    for k in v.verifiers[:MAX_ROWS]:
        yield say.text("verifier"), k.name, say.text("may draw the records to prove"), k.fingerprint


def elapsed(say: Language, milliseconds: int) -> Markup:
    """A span of time in its largest unit."""
    sign = "-" if milliseconds < 0 else ""
    left = abs(milliseconds)
    for unit, name in ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1000, "s")):
        if left >= unit:
            return say.shown(say.number(f"{sign}{left / unit:.3g} {name}"))
    return say.shown(f"{sign}{left} ms")
