"""The page's charts: epsilon by coalition, what a test can tell, and what the mechanism leaves of retrieval."""

from __future__ import annotations

from rag_audit._internal.words import counted
from rag_audit.mechanisms import accounting
from rag_audit.report.model import Report
from rag_audit.report.page import charts, curves, study, words
from rag_audit.report.page.charts import Axis, Line, Mark, Rule
from rag_audit.report.page.curves import Protection, Test
from rag_audit.report.page.markup import Child, Html, clip, join, tag

NOT_ESTABLISHED = (
    "This verification did not establish that the provider kept to its policy. A chart of what the policy promises"
    " would say nothing about this window, so this page has none."
)
MOST_CHARTS = 4
"""Mechanisms with charts of their own; a window may have as many as tenants."""


def privacy(report: Report) -> Html:
    """The three questions about privacy, for each mechanism of the window; a sentence where nothing is established."""
    if report.figures.standing == "not-established":
        heading = tag("h2", "How much a group of accounts can learn")
        return tag("section", heading, tag("p", NOT_ESTABLISHED, class_="warning"), id="epsilon")
    groups = curves.protections(report)
    shown = groups[:MOST_CHARTS]
    several = len(groups) > 1
    return join(
        tag(
            "section",
            tag("h2", "How much a group of accounts can learn"),
            _epsilon_words(report),
            [_epsilon(report, p, several, i) for i, p in enumerate(shown)],
            _rest(groups),
            id="epsilon",
        ),
        tag(
            "section",
            tag("h2", "What a test can tell"),
            _test_words(),
            [_test(report, p, several, i) for i, p in enumerate(shown)],
            id="test",
        ),
        tag(
            "section",
            tag("h2", "What it costs those who ask"),
            _retrieval_words(),
            [_retrieval(report, p, several, i) for i, p in enumerate(shown)],
            id="retrieval",
        ),
    )


def _whose(protection: Protection, several: bool) -> Html | None:
    """The mechanism and its tenants, where there are several."""
    names = words.some([clip(t, 128) for t in protection.tenants])
    return tag("h3", f"{names}: {clip(protection.first.words, 200)}") if several else None


def _rest(groups: list[Protection]) -> Html | None:
    left = groups[MOST_CHARTS:]
    if not left:
        return None
    names = words.some([t for p in left for t in p.tenants], 20)
    return tag(
        "p",
        f"Not drawn: {counted(len(left), 'further mechanism')}, of {names}. The charts are those with the"
        " largest epsilon.",
    )


def _figure(picture: Html, key: Html | None, *beside: Child) -> Html:
    return tag("figure", tag("div", picture, key, class_="picture"), tag("figcaption", beside))


def _epsilon_words(report: Report) -> Html:
    f = report.figures
    return tag(
        "p",
        "Epsilon (ε) bounds how far the choice of passages can move anybody's belief that one particular"
        " document is in the index: it multiplies the odds by at most e to the power ε. 0 tells nothing; 1"
        " takes even odds to at most 74 in 100; from about 10 on, little is promised. It grows with the"
        " accounts that pool what they were handed. The window's figure is the one for"
        f" {words.accounts(f.k_max)}: the policy calls that k_max, and a larger group is outside of it.",
    )


def _epsilon(report: Report, p: Protection, several: bool, index: int) -> Html:
    points = curves.epsilon_curve(report, p)
    if not points:
        return join(_whose(p, several), tag("p", _no_epsilon(p)))
    f = report.figures
    names = {1: "one account", p.accounts_max: "all accounts", f.k_max: "k_max"}
    named = [(k, eps, names[k]) for k, eps in points if k in names]
    most = points[-1][0]
    high = max(eps for _, eps in points)
    if most > 20:
        x = charts.decades("accounts that pool what they were handed", 1, most)
    else:
        ticks = [(float(k), f"{k}") for k in range(1, most + 1)]
        x = Axis("accounts that pool what they were handed", 0.5, most + 0.5, ticks)
    y = charts.from_zero("ε", 1.12 * high)  # with room for the last point's label
    at = {k: eps for k, eps, _ in named}
    description = (
        f"Epsilon rises from {accounting.text(points[0][1])} for one account to {accounting.text(high)}"
        f" for all {p.accounts_max:,} that a tenant may have"
        + (f"; for k_max, {f.k_max:,}, it is {accounting.text(at[f.k_max])}." if f.k_max in at else ".")
    )
    line = Line("epsilon, by the exact accountant", 1, points)
    marks = [Mark(k, eps, f"{label}: {accounting.text(eps)}") for k, eps, label in named]
    rows: list[list[Child]] = [
        [k, accounting.text(eps), f"{words.factor(eps)}", names.get(k, "")] for k, eps in points
    ]
    return join(
        _whose(p, several),
        _figure(
            charts.chart(
                f"epsilon-{index}", "Epsilon by the size of a coalition", description, x, y, [line], marks
            ),
            None,
            tag("p", description),
            charts.table("Values of the chart", ["accounts", "ε", "odds change by at most", ""], rows),
            tag(
                "p",
                "Bounds are the accountant's, rounded up"
                + (f", at δ = {f.delta}" if p.mechanism == "noise" else ", with δ = 0")
                + (
                    f". The ledger's own counts come to {f.eps_realised} (realised)."
                    if f.eps_realised is not None and not several
                    else "."
                ),
                class_="small",
            ),
        ),
    )


def _no_epsilon(p: Protection) -> str:
    if p.mechanism == "none":
        return "There is no epsilon: answers are exact, and nothing hides what is in the index."
    if p.mechanism == "sampling":
        return (
            "There is no epsilon, whatever the number of accounts: answers are exact, from a sample of"
            f" {words.share_text(float(p.first.keep or 0))} of the positions. For accounts that never received a"
            " given document of one position, its absence becomes more likely by a factor of at most"
            f" {p.first.odds_unlisted}; a document that was handed out is known to be there."
        )
    return "There is no epsilon: at this policy the accountant gives no finite bound."


def _test_words() -> Html:
    return tag(
        "p",
        "Suppose somebody tests whether one particular document is in the index, and may wrongly report it"
        " for 1 in 100 indices that lack it (a false positive rate of 1 %). The curve is a ceiling on how"
        " often the best possible test then recognises a document that is there. The straight line is"
        " guessing; the closer the curve is to it, the less anybody can tell.",
    )


def _test(report: Report, p: Protection, several: bool, index: int) -> Html:
    tests = curves.tests_of(report, p)
    if not tests:
        return join(
            _whose(p, several),
            tag(
                "p",
                "There is no ceiling: a test may recognise every document."
                if p.mechanism == "none"
                else "No ceiling could be computed.",
            ),
        )
    chosen = _chosen(report, p, tests)
    lines = [Line(name, style, test.points) for style, (name, test) in enumerate(chosen, start=1)]
    guess = Line("guessing", 4, [(0, 0), (1, 1)])
    own = next((test for name, test in chosen if "k_max" in name or "number" in name), chosen[0][1])
    sentence = (
        f"A test that wrongly reports 1 in 100 recognises at most {words.in_hundred(own.at_one_percent)}"
        " documents"
        + (
            ", for any number of accounts."
            if p.mechanism == "sampling"
            else f", for {words.accounts(own.accounts)}."
        )
    )
    mark = Mark(0.01, own.at_one_percent, f"at 1 %: {words.in_hundred(own.at_one_percent)}")
    rows: list[list[Child]] = [
        [name, *(words.at_most(_at(test, rate)) for rate in (0.01, 0.05, 0.1, 0.5))] for name, test in chosen
    ]
    return join(
        _whose(p, several),
        _figure(
            charts.chart(
                f"test-{index}",
                "Ceiling on every membership test",
                sentence,
                charts.percent_axis("wrongly reported"),
                charts.percent_axis("recognised"),
                [guess, *lines],
                [mark],
            ),
            charts.key([*lines, guess]),
            tag("p", sentence),
            charts.table(
                "Recognised at most, by the share wrongly reported", ["", "1 %", "5 %", "10 %", "50 %"], rows
            ),
            tag("p", _exact(p), class_="small"),
        ),
    )


def _exact(p: Protection) -> str:
    if p.mechanism == "noise":
        return (
            "Computed from the exact distribution of the noise's privacy loss, composed over all queries and"
            " rounded up; it is no Gaussian approximation."
        )
    return "A closed form of the mechanism's coins, exact and rounded up; it is no Gaussian approximation."


def _chosen(report: Report, p: Protection, tests: list[Test]) -> list[tuple[str, Test]]:
    """The curves that are drawn, with their names; those of equal sizes once."""
    if p.mechanism == "sampling":
        return [("any number of accounts", tests[0])]
    named = {report.figures.k_max: "k_max", p.accounts_max: "all", 1: ""}
    found = []
    for test in tests:
        label = named.get(test.accounts, "")
        if test.accounts == report.figures.k_max:
            label = "k_max"
        found.append((words.accounts(test.accounts) + (f" ({label})" if label else ""), test))
    return sorted(found, key=lambda item: "k_max" not in item[0])


def _at(test: Test, rate: float) -> float:
    """The ceiling at one of the curve's rates, or on a straight piece of a closed form."""
    if rate == 0.01:
        return test.at_one_percent
    before = max((point for point in test.points if point[0] <= rate), default=(0.0, 0.0))
    after = min((point for point in test.points if point[0] >= rate), default=(1.0, 1.0))
    if after[0] == before[0]:
        return after[1]
    return before[1] + (after[1] - before[1]) * (rate - before[0]) / (after[0] - before[0])


def _retrieval_words() -> Html:
    measured = study.study()
    return tag(
        "p",
        "Whatever hides documents also hides them from those who should find them. These figures were"
        " measured on public collections, not on this window: the share of questions whose right passage is"
        f" among the first {measured.top_k} (",
        tag("code", measured.source),
        " has the method, the attacks, and the errors).",
    )


def _retrieval(report: Report, p: Protection, several: bool, index: int) -> Html:
    if p.mechanism == "none":
        return join(_whose(p, several), tag("p", "It costs nothing: answers are exact."))
    collections = study.study().collections
    lines = [
        Line(c.name, style, [(q.x, q.found) for q in found], marked=True)
        for style, c in enumerate(collections, start=1)
        if (found := study.points(report, p, c))
    ]
    words_here = _where(p)
    differ = study.differences(report, p)
    unlike = (
        tag(
            "p",
            tag("strong", "Here and there differ. "),
            "So what follows for this window is a guess: ",
            "; ".join(f"{what}: {there} there, {here} here" for what, there, here in differ),
            ".",
        )
        if differ
        else None
    )
    rows: list[list[Child]] = [
        [
            f"{s.keep} kept" if s.keep else f"σ/Δ {s.sigma_over_delta}",
            *(
                tag("span", f"{s.found[c.name][0]} ± {s.found[c.name][1]} %", class_="nowrap")
                for c in collections
            ),
        ]
        for s in study.settings_of(p.mechanism)
    ]
    rows.append(["without any", *(f"{c.exact} %" for c in collections)])
    values = charts.table(
        "Questions that find their passage", ["setting", *(c.name for c in collections)], rows
    )
    note = tag(
        "p",
        "Noise is given as its standard deviation over what one document can move a score (σ/Δ)."
        if p.mechanism == "noise"
        else "A document that is not in the sample is found by nobody.",
        class_="small",
    )
    if not lines:
        return join(_whose(p, several), tag("p", words_here), unlike, values, note)
    by_epsilon = p.mechanism != "sampling"
    ends = [x for line in lines for x, _ in line.points]
    own = p.first.eps if by_epsilon else p.first.keep
    if own is not None and own != "inf":
        ends.append(float(own))
    label = (
        f"ε for {words.accounts(report.figures.k_max)}, at this window's queries"
        if by_epsilon
        else "share kept"
    )
    x = charts.decades(label, max(min(ends), 1e-3), max(ends)) if by_epsilon else charts.percent_axis(label)
    rules = [] if own is None or own == "inf" else [Rule(float(own), "this window")]
    return join(
        _whose(p, several),
        _figure(
            charts.chart(
                f"retrieval-{index}",
                "Questions that find their passage",
                words_here,
                x,
                charts.percent_axis("found"),
                lines,
                (),
                rules,
            ),
            charts.key(lines),
            tag("p", words_here),
            unlike,
            values,
            note,
        ),
    )


def _where(p: Protection) -> str:
    """Where the policy's setting lies among the measured ones, in a sentence."""
    weaker, stronger = study.between(p)
    own = f"σ/Δ = {p.first.sigma_over_delta}" if p.mechanism == "noise" else f"a share kept of {p.first.keep}"
    if weaker is not None and stronger is not None:
        if weaker is stronger:
            return f"This policy's setting, {own}, was measured: {_spans(weaker)} of questions found their passage."
        return (
            f"This policy's setting, {own}, lies between two that were measured, at which {_spans(weaker)} and"
            f" {_spans(stronger)} of questions found their passage."
        )
    if weaker is None and stronger is None:
        return "This policy's setting cannot be placed among the measured ones."
    edge = weaker or stronger
    assert edge is not None
    side = "above" if weaker is not None else "below"
    return (
        f"This policy's setting, {own}, lies outside of what was measured, {side} the last setting, at which"
        f" {_spans(edge)} of questions found their passage."
    )


def _spans(setting: study.Setting) -> str:
    found = sorted(float(share) for share, _ in setting.found.values())
    return f"{found[0]:g} %" if found[0] == found[-1] else f"{found[0]:g} to {found[-1]:g} %"
