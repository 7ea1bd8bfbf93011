"""Charts about privacy: epsilon by coalition, the power of the best test, and the remaining quality of retrieval."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rag_audit._internal.words import counted, some
from rag_audit.mechanisms import accounting
from rag_audit.mechanisms.descriptions.base import Ceiling
from rag_audit.report.html import charts, curves, study, words
from rag_audit.report.html.charts import Axis, Chart, Line, Mark, Rule
from rag_audit.report.html.curves import Protection
from rag_audit.report.model import Report

MAX_CHARTS = 4
"""Maximum mechanisms with separate charts; a window may have one mechanism for each tenant."""


@dataclass(frozen=True)
class Curve:
    """A chart, the lines of its key, and the rows of the table of its values."""

    chart: Chart
    key: list[Line]
    rows: list[list[int | str]]


def heading(protection: Protection) -> str:
    """The mechanism and its tenants."""
    names = some([words.clip(t, 128) for t in protection.tenants])
    return f"{names}: {words.clip(protection.first.words, 200)}"


def epsilon(report: Report, p: Protection, index: int) -> Curve | None:
    """Epsilon by the number of accounts that pool their received documents, or None if there is no epsilon."""
    points = curves.epsilon_curve(report, p)
    if not points:
        return None
    f = report.figures
    names = {1: "one account", p.accounts_max: "all accounts", f.k_max: "k_max"}
    named = [(k, eps, names[k]) for k, eps in points if k in names]
    largest = points[-1][0]
    high = max(eps for _, eps in points)
    if largest > 20:
        x = charts.decades("accounts that pool their received passages", 1, largest)
    else:
        ticks = [(float(k), f"{k}") for k in range(1, largest + 1)]
        x = Axis("accounts that pool their received passages", 0.5, largest + 0.5, ticks)
    y = charts.from_zero("ε", 1.12 * high)  # with room for the last point's label
    at = {k: eps for k, eps, _ in named}
    description = (
        f"Epsilon rises from {accounting.text(points[0][1])} for one account to {accounting.text(high)}"
        f" for all {p.accounts_max:,} that a tenant may have"
        + (f"; for k_max, {f.k_max:,}, it is {accounting.text(at[f.k_max])}." if f.k_max in at else ".")
    )
    marks = [Mark(k, eps, f"{label}: {accounting.text(eps)}") for k, eps, label in named]
    rows: list[list[int | str]] = [
        [k, accounting.text(eps), words.factor(eps), names.get(k, "")] for k, eps in points
    ]
    line = Line("epsilon, by the exact accountant", 1, points)
    title = "Epsilon by the size of a coalition"
    return Curve(Chart(f"epsilon-{index}", title, description, x, y, [line], marks), [], rows)


def rounding(report: Report, p: Protection, several: bool) -> str:
    """How the bounds of the chart of epsilon were made."""
    f = report.figures
    delta = f"at δ = {f.delta}" if p.kind.mechanism.uses_delta else "with δ = 0"
    realised = (
        ""
        if f.eps_realised is None or several
        else f" The ledger's own counts give {f.eps_realised} (realised)."
    )
    return f"The accountant computed the bounds and rounded them up, {delta}.{realised}"


def test(report: Report, p: Protection, index: int) -> Curve | None:
    """The best test's true-positive rate by its false-positive rate, or None if there is no ceiling."""
    tests = curves.tests_of(report, p)
    if not tests:
        return None
    chosen = _chosen(report, p, tests)
    lines = [Line(name, style, test.points) for style, (name, test) in enumerate(chosen, start=1)]
    guess = Line("guessing", 4, [(0, 0), (1, 1)])
    own = next((test for name, test in chosen if "k_max" in name or "number" in name), chosen[0][1])
    whose = (
        "for any number of accounts" if p.kind.any_coalition else f"for {counted(own.accounts, 'account')}"
    )
    ceiling = words.in_hundred(own.at_one_percent)
    sentence = f"A test that wrongly reports 1 in 100 recognises at most {ceiling} documents, {whose}."
    rows: list[list[int | str]] = [
        [name, *(words.at_most(_at(test, rate)) for rate in (0.01, 0.05, 0.1, 0.5))] for name, test in chosen
    ]
    x, y = charts.percent_axis("wrongly reported"), charts.percent_axis("recognised")
    marks = [Mark(0.01, own.at_one_percent, f"at 1 %: {ceiling}")]
    title = "Ceiling on every membership test"
    return Curve(Chart(f"test-{index}", title, sentence, x, y, [guess, *lines], marks), [*lines, guess], rows)


def _chosen(report: Report, p: Protection, tests: list[Ceiling]) -> list[tuple[str, Ceiling]]:
    """The curves to draw, with their names; one curve for equal coalition sizes."""
    if p.kind.any_coalition:
        return [("any number of accounts", tests[0])]
    named = {report.figures.k_max: "k_max", p.accounts_max: "all", 1: ""}
    result = []
    for test in tests:
        label = named.get(test.accounts, "")
        if test.accounts == report.figures.k_max:
            label = "k_max"
        result.append((counted(test.accounts, "account") + (f" ({label})" if label else ""), test))
    return sorted(result, key=lambda item: "k_max" not in item[0])


def _at(test: Ceiling, rate: float) -> float:
    """The ceiling at one of the curve's rates, or on a straight piece of a closed form."""
    if rate == 0.01:
        return test.at_one_percent
    before = max((point for point in test.points if point[0] <= rate), default=(0.0, 0.0))
    after = min((point for point in test.points if point[0] >= rate), default=(1.0, 1.0))
    if after[0] == before[0]:
        return after[1]
    return before[1] + (after[1] - before[1]) * (rate - before[0]) / (after[0] - before[0])


def retrieval(report: Report, p: Protection, index: int) -> Curve | None:
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
    label = (
        f"ε for {counted(report.figures.k_max, 'account')}, at this window's queries"
        if by_epsilon
        else "sampled share"
    )
    x = charts.decades(label, max(min(ends), 1e-3), max(ends)) if by_epsilon else charts.percent_axis(label)
    rules = [] if own is None or own == "inf" else [Rule(float(own), "this window")]
    y, title = charts.percent_axis("actual"), "Questions that find their passage"
    return Curve(Chart(f"retrieval-{index}", title, where(p), x, y, lines, (), rules), lines, [])


def measurements(p: Protection) -> Iterator[tuple[str, list[str]]]:
    """Each measured setting of a mechanism, with the result in each collection."""
    for s in study.settings_of(p.kind):
        result = [s.actual[c.name] for c in study.study().collections]
        yield study.name_of(s), [f"{share} ± {error} %" for share, error in result]


def exact_shares() -> list[str]:
    """The result in each collection without any mechanism."""
    return [f"{c.exact} %" for c in study.study().collections]


def unlike(report: Report, p: Protection) -> str:
    """The differences between this window and the measured windows."""
    return "; ".join(
        f"{what}: {there} in the measurement, {here} in this window"
        for what, there, here in study.differences(report, p)
    )


def where(p: Protection) -> str:
    """The position of the policy's setting among the measured settings, in a sentence."""
    weaker, stronger = study.between(p)
    own = p.kind.settings.own.format(p.kind.setting(p.first))
    if weaker is not None and stronger is not None:
        if weaker is stronger:
            return f"This policy's setting, {own}, was measured: {_spans(weaker)} of questions found their passage."
        return (
            f"This policy's setting, {own}, is between two measured settings. With these two, {_spans(weaker)} and"
            f" {_spans(stronger)} of questions found their passage."
        )
    if weaker is None and stronger is None:
        return "No measured setting is comparable with this policy's setting."
    edge = weaker or stronger
    assert edge is not None
    side = "above" if weaker is not None else "below"
    return (
        f"This policy's setting, {own}, is outside of the measured range, {side} the last setting. With the"
        f" last setting, {_spans(edge)} of questions found their passage."
    )


def _spans(setting: study.Setting) -> str:
    result = sorted(float(share) for share, _ in setting.actual.values())
    return f"{result[0]:g} %" if result[0] == result[-1] else f"{result[0]:g} to {result[-1]:g} %"
