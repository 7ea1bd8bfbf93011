"""Charts about privacy: epsilon by coalition, the power of the best test, and the remaining quality of retrieval."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from markupsafe import Markup

from rag_audit._internal.words import some_of
from rag_audit.mechanisms import accounting
from rag_audit.mechanisms.accounting.values import round_up
from rag_audit.mechanisms.descriptions.base import Ceiling
from rag_audit.report.html import charts, curves, study, words
from rag_audit.report.html.charts import Axis, Chart, Line, Mark, Rule
from rag_audit.report.html.curves import Protection
from rag_audit.report.language import Language
from rag_audit.report.model import Report

MAX_CHARTS = 4
"""Maximum mechanisms with separate charts; a window may have one mechanism for each tenant."""


@dataclass(frozen=True)
class Curve:
    """A chart, the lines of its key, and the rows of the table of its values."""

    chart: Chart
    key: list[Line]
    rows: list[list[int | str]]


def heading(say: Language, protection: Protection) -> Markup:
    """The mechanism and its tenants."""
    names = some_of(say, [words.clip(t, 128) for t in protection.tenants])
    return say.text("%(tenants)s: %(words)s", tenants=names, words=say.text(protection.kind.words))


def epsilon(say: Language, report: Report, p: Protection, index: int) -> Curve | None:
    """Epsilon by the number of accounts that pool their received documents, or None if there is no epsilon."""
    points = curves.epsilon_curve(report, p)
    if not points:
        return None
    f = report.figures
    names = {1: say.text("one account"), p.accounts_max: say.text("all accounts"), f.k_max: say.text("k_max")}
    named = [(k, eps, names[k]) for k, eps in points if k in names]
    largest = points[-1][0]
    high = max(eps for _, eps in points)
    axis = say.text("accounts that pool their received passages")
    if largest > 20:
        x = charts.decades(axis, 1, largest)
    else:
        ticks = [(float(k), f"{k}") for k in range(1, largest + 1)]
        x = Axis(axis, 0.5, largest + 0.5, ticks)
    y = charts.from_zero("ε", 1.12 * high)  # with room for the last point's label

    def shown(eps: float) -> str:
        return say.number(accounting.text(eps))

    if p.kind.any_coalition:
        description = say.text("Epsilon is %(eps)s for any number of accounts.", eps=shown(high))
    else:
        description = say.text(
            "Epsilon rises from %(one)s for one account to %(all)s for all %(accounts)s that a tenant may have.",
            one=shown(points[0][1]),
            all=shown(high),
            accounts=p.accounts_max,
        )
        at = {k: eps for k, eps, _ in named}
        if f.k_max in at:
            own = say.text(
                "For k_max, %(accounts)s, it is %(eps)s.", accounts=f.k_max, eps=shown(at[f.k_max])
            )
            description = say.joined([description, own])
    marks = [
        Mark(k, eps, say.text("%(name)s: %(value)s", name=name, value=shown(eps))) for k, eps, name in named
    ]
    rows: list[list[int | str]] = [
        [k, shown(eps), words.factor(eps, say), names.get(k, Markup())] for k, eps in points
    ]
    line = Line("epsilon", 1, points)
    title = say.text("Epsilon by the size of a coalition")
    return Curve(Chart(f"epsilon-{index}", title, description, x, y, [line], marks), [], rows)


def rounding(say: Language, report: Report, p: Protection, several: bool) -> Markup:
    """How the bounds of the chart of epsilon were made."""
    f = report.figures
    parts = [
        say.text(
            "The accountant computed the bounds and rounded them up, at δ = %(delta)s.",
            delta=say.number(f.delta) if p.kind.mechanism.uses_delta else "0",
        )
    ]
    if f.eps_realised is not None and not several:
        parts.append(
            say.text(
                "The ledger's own counts give %(eps)s (realised).",
                eps=say.text("none") if f.eps_realised == "inf" else say.number(f.eps_realised),
            )
        )
    return say.joined(parts)


def test(say: Language, report: Report, p: Protection, index: int) -> Curve | None:
    """The best test's true-positive rate by its false-positive rate, or None if there is no ceiling."""
    tests = curves.tests_of(report, p)
    if not tests:
        return None
    chosen = _chosen(say, report, p, tests)
    lines = [Line(name, style, test.points) for style, (name, test) in enumerate(chosen, start=1)]
    guess = Line(say.text("guessing"), 4, [(0, 0), (1, 1)])
    own = next((test for _, test in chosen if test.accounts == report.figures.k_max), chosen[0][1])
    ceiling = words.in_hundred(own.at_one_percent, say)
    sentence = say.text(
        "A test that wrongly reports 1 in 100 recognises at most %(ceiling)s documents, for %(who)s.",
        ceiling=ceiling,
        who=say.text("any number of accounts")
        if p.kind.any_coalition
        else say.plural("%(count)s account", "%(count)s accounts", own.accounts),
    )
    rows: list[list[int | str]] = [
        [name, *(words.at_most(_at(test, rate), say) for rate in (0.01, 0.05, 0.1, 0.5))]
        for name, test in chosen
    ]
    x = charts.percent_axis(say.text("wrongly reported"))
    y = charts.percent_axis(say.text("recognised"))
    marks = [Mark(0.01, own.at_one_percent, say.text("at 1 %%: %(ceiling)s", ceiling=ceiling))]
    title = say.text("Ceiling on every membership test")
    return Curve(Chart(f"test-{index}", title, sentence, x, y, [guess, *lines], marks), [*lines, guess], rows)


def _chosen(
    say: Language, report: Report, p: Protection, tests: list[Ceiling]
) -> list[tuple[Markup, Ceiling]]:
    """The curves to draw, with their names; one curve for equal coalition sizes."""
    if p.kind.any_coalition:
        return [(say.text("any number of accounts"), tests[0])]
    result = []
    for test in tests:
        size = say.plural("%(count)s account", "%(count)s accounts", test.accounts)
        if test.accounts == report.figures.k_max:
            size = say.text("%(accounts)s (k_max)", accounts=size)
        elif test.accounts == p.accounts_max:
            size = say.text("%(accounts)s (all)", accounts=size)
        result.append((size, test))
    return sorted(result, key=lambda item: item[1].accounts != report.figures.k_max)


def _at(test: Ceiling, rate: float) -> float:
    """The ceiling at one of the curve's rates, or on a straight piece of a closed form; rounded up as at 1 %."""
    if rate == 0.01:
        return test.at_one_percent
    before = max((point for point in test.points if point[0] <= rate), default=(0.0, 0.0))
    after = min((point for point in test.points if point[0] >= rate), default=(1.0, 1.0))
    if after[0] == before[0]:
        return after[1]
    exact = before[1] + (after[1] - before[1]) * (rate - before[0]) / (after[0] - before[0])
    return min(1.0, round_up(exact))


def retrieval(say: Language, report: Report, p: Protection, index: int) -> Curve | None:
    """The share of questions that find their passage, or None if no measurement can be placed in this window."""
    lines = [
        Line(c.name, style, [(q.x, q.actual) for q in result], marked=True)
        for style, c in enumerate(study.study().collections, start=1)
        if (result := study.points(report, p, c))
    ]
    if not lines:
        return None
    by_epsilon = p.kind.mechanism.limit == "max_epsilon"
    ends = [x for line in lines for x, _ in line.points]
    own = p.first.eps if by_epsilon else p.first.keep
    if own is not None and own != "inf":
        ends.append(float(own))
    if by_epsilon:
        who = say.plural("%(count)s account", "%(count)s accounts", report.figures.k_max)
        label = say.text("ε for %(who)s, at this window's queries", who=who)
        x = charts.decades(label, max(min(ends), 1e-3), max(ends))
    else:
        x = charts.percent_axis(say.text("sampled share"))
    rules = [] if own is None or own == "inf" else [Rule(float(own), say.text("this window"))]
    y, title = charts.percent_axis(say.text("actual")), say.text("Questions that find their passage")
    return Curve(Chart(f"retrieval-{index}", title, where(say, p), x, y, lines, (), rules), lines, [])


def measurements(say: Language, p: Protection) -> Iterator[tuple[Markup, list[str]]]:
    """Each measured setting of a mechanism, with the result in each collection."""
    for s in study.settings_of(p.kind):
        result = [s.actual[c.name] for c in study.study().collections]
        name = _setting(say, p, p.kind.settings.short, p.kind.setting(s))
        yield name, [say.number(f"{share} ± {error} %") for share, error in result]


def _setting(say: Language, p: Protection, form: str, value: str | None) -> Markup:
    """A setting in one of the forms of `SettingWords`."""
    return say.text(form).format(say.number(value or ""))


def exact_shares(say: Language) -> list[str]:
    """The result in each collection without any mechanism."""
    return [say.number(f"{c.exact} %") for c in study.study().collections]


def unlike(say: Language, report: Report, p: Protection) -> Markup:
    """The differences between this window and the measured windows."""
    return say.joined(
        (
            say.text(
                "%(what)s: %(there)s in the measurement, %(here)s in this window",
                what=say.text(what),
                there=say.number(there),
                here=say.number(here),
            )
            for what, there, here in study.differences(report, p)
        ),
        "; ",
    )


def where(say: Language, p: Protection) -> Markup:
    """The position of the policy's setting among the measured settings, in a sentence."""
    weaker, stronger = study.between(p)
    own = _setting(say, p, p.kind.settings.own, p.kind.setting(p.first))
    if weaker is None and stronger is None:
        return say.text("No measured setting is comparable with this policy's setting.")
    if weaker is not None and stronger is not None:
        if weaker is stronger:
            return say.text(
                "This policy's setting, %(own)s, was measured: %(found)s of questions found their passage.",
                own=own,
                found=_spans(say, weaker),
            )
        return say.text(
            "This policy's setting, %(own)s, is between two measured settings. With these two, %(weaker)s and"
            " %(stronger)s of questions found their passage.",
            own=own,
            weaker=_spans(say, weaker),
            stronger=_spans(say, stronger),
        )
    edge = weaker or stronger
    assert edge is not None
    if weaker is not None:
        return say.text(
            "This policy's setting, %(own)s, is above the measured range. With the last setting, %(found)s of questions"
            " found their passage.",
            own=own,
            found=_spans(say, edge),
        )
    return say.text(
        "This policy's setting, %(own)s, is below the measured range. With the first setting, %(found)s of questions"
        " found their passage.",
        own=own,
        found=_spans(say, edge),
    )


def _spans(say: Language, setting: study.Setting) -> Markup:
    result = sorted(float(share) for share, _ in setting.actual.values())
    low, high = (say.number(f"{share:g}") for share in (result[0], result[-1]))
    if low == high:
        return say.text("%(share)s %%", share=low)
    return say.text("%(low)s to %(high)s %%", low=low, high=high)
