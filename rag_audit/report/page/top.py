"""The page's first part: the verdict, what it rests on, what was proved and what was not."""

from __future__ import annotations

from collections.abc import Iterator

from rag_audit._internal.words import counted, day, instant
from rag_audit.report.cause import CAVEAT, SENTENCES, Cause, cause_of
from rag_audit.report.model import CheckLine, Report
from rag_audit.report.page import words
from rag_audit.report.page.curves import protections
from rag_audit.report.page.markup import Html, clip, tag
from rag_audit.report.strength import protection_words

OUTCOMES = {
    "PASS": ("pass", "Every check passed, and everything that the reader's trust file asks for is met."),
    "PASS-SAMPLED": ("pass", "Every check passed, on a random sample of the answers."),
    "PASS-INTEGRITY": (
        "pass",
        "Every check passed. They show that answers are correct, not that documents are private.",
    ),
    "PASS-INTEGRITY-SAMPLED": (
        "pass",
        "Every check passed, on a random sample of the answers. They show that answers are correct, not that"
        " documents are private.",
    ),
    "FAIL": ("fail", SENTENCES[Cause.WINDOW]),
    "UNDECIDED": ("undecided", "The files could not be judged. That is no verdict in the provider's favour."),
    "UNPROVEN": (
        "unproven",
        "Nothing was found to be false, and what the figures of this window rest on was not established. The window"
        " has no privacy figure.",
    ),
    "UNMET": ("unmet", "What was found is true, and it is less than the reader's trust file asks for."),
}
"""By outcome: its colour, and its meaning in a sentence."""
_OPEN = {
    "FAIL": "a check found a false statement.",
    "UNDECIDED": "a check could not be decided.",
    "UNPROVEN": "what it rests on was not established.",
}
"""Why nothing counts as proved, by outcome."""
STANDING = (
    "The window as a whole is not established. Each of these statements rests on checks of its own, which passed."
)  # fmt: skip
MOST_SHOWN, MOST_EXPLAINED = 12, 4
"""Checks that are shown one by one, and those of them that are explained; alike ones of several tenants are once."""
MOST_MECHANISMS = 4
INTRODUCTION = (
    "This service answers questions with passages from documents that others must not see as a whole. The report is"
    " about one period of it, a window. It says how much the answers of that window can reveal about which documents"
    " are there, and what of that was checked from published files and signed receipts, without a look at"
    " the documents. The reader is whoever made this report: the keys that count and the limits that have to be"
    " kept are those of the reader's own trust file."
)
CLIP = 600


def masthead(report: Report) -> Html:
    """Who reports on what, and when."""
    w, filing = report.window, report.filing
    return tag(
        "header",
        tag("p", "Verification report", class_="kicker"),
        tag("h1", "What answers of ", tag("span", clip(w.origin, 120), class_="name"), " can give away"),
        tag(
            "p",
            "Window ",
            tag("strong", clip(w.window, 128)),
            f", {day(w.opens_at)} to {day(w.closes_at)}. Verified on {instant(filing.verified_at // 1000 * 1000)} with"
            f" rag-audit {filing.version}.",
            class_="dateline",
        ),
        tag("p", INTRODUCTION, class_="small"),
        id="masthead",
    )


def verdict(report: Report) -> Html:
    """The verdict in a word, a sentence and three figures."""
    colour, meaning = OUTCOMES[report.outcome]
    if report.outcome == "FAIL":
        meaning = SENTENCES[cause_of(report.checks)]
    established = report.figures.standing != "not-established"
    return tag(
        "section",
        tag("h2", tag("span", "Verdict: ", class_="quiet"), report.outcome),
        tag("p", meaning, class_="lead"),
        tag("p", clip(report.sentence, CLIP)),
        tag("p", clip(protection_words(report.protection), CLIP)),
        tag(
            "p",
            "This page has no privacy figure, since this verification did not establish what such a figure"
            " rests on.",
            class_="warning",
        )
        if not established
        else tag(
            "dl",
            [
                tag("div", tag("dt", name), tag("dd", tag("strong", value), " ", meaning))
                for name, value, meaning in figures(report)
            ],
            class_="figures many" if len(protections(report)) > 1 else "figures",
        ),
        [
            tag(
                "p",
                tag("strong", "Warning: "),
                "a lower bound on epsilon that the provider's own attacks measured lies above the certified"
                " one, so one of the two is wrong: ",
                clip(above, CLIP),
                class_="warning",
            )
            for above in (report.attacks.above_certified if report.attacks else [])[:8]
        ],
        id="verdict",
        class_=f"verdict {colour}",
    )


def figures(report: Report) -> Iterator[tuple[str, str, str]]:
    """The verdict's figures: name, value, and what it means. Mechanisms that differ have a figure each."""
    f = report.figures
    groups = protections(report)
    shown = groups[:MOST_MECHANISMS]
    if f.eps is None:
        yield "Epsilon (ε)", "not computed", "because a check before it could not be decided."
    elif len(groups) == 1 and f.eps != "inf":
        yield _epsilon(report, f"Epsilon (ε) for {_pooled(report)}", f.eps, groups[0].mechanism)
    else:
        for protection in shown:
            eps = protection.first.eps or "inf"
            whose = f"{words.some([clip(t, 60) for t in protection.tenants], 3)}, {protection.mechanism}"
            yield _epsilon(report, f"{whose}: epsilon (ε) for {_pooled(report)}", eps, protection.mechanism)
    if f.eps is not None and any(p.mechanism == "noise" and p.first.eps != "inf" for p in shown):
        chance = f"at most {words.one_in(float(f.delta))}"
        yield "Delta (δ)", chance, "is the probability with which the epsilon of noise may be exceeded."
    if f.odds_unlisted is not None:
        yield (
            f"A document that was not received{_of_tenants(report)}",
            f"factor {f.odds_unlisted}",
            f"is the most by which the absence of a document becomes more likely for {words.accounts(f.k_max)} that"
            f" never received it; for all accounts of a tenant the factor is {f.odds_unlisted_all_accounts}. Both"
            f" figures assume {counted(f.positions_per_document or 1, 'position')} for each document: a document of s"
            " positions has at least the s-th power. The presence of a document that is asked for has no protection.",
        )
    if f.tpr_at_fpr_1pct is not None:
        yield (
            "Recognised by the best test",
            f"at most {words.in_hundred(float(f.tpr_at_fpr_1pct))}",
            "documents that are there, if it may wrongly report 1 in 100 of those that are not.",
        )


def _of_tenants(report: Report) -> str:
    """The tenants whose factor is the window's, where other tenants have a smaller factor or none."""
    whose = [t.tenant for t in report.tenants if t.odds_unlisted == report.figures.odds_unlisted]
    return "" if len(whose) == len(report.tenants) else f" ({words.some([clip(t, 60) for t in whose], 3)})"


def _pooled(report: Report) -> str:
    f = report.figures
    return f"{words.accounts(f.k_max)} with {counted(f.n, 'query', 'queries')} each"


def _epsilon(report: Report, name: str, eps: str, mechanism: str) -> tuple[str, str, str]:
    if eps == "inf":
        bounded = (
            "no epsilon bounds what lists show of it. A ceiling for every test of a document's presence is below."
            if mechanism == "sampling"
            else "nothing bounds what lists show of it."
        )
        return name, "none", f"Whoever is handed a document knows that it is there, and {bounded}"
    value = float(eps)
    return (
        name,
        eps,
        f"This is {words.strength(value)}. Which passages were chosen for them changes the odds that one particular"
        f" document is in the index by a factor of at most {words.factor(value)}: {words.belief(value)}.",
    )


def scope(report: Report) -> Html:
    """What was proved beside what was not."""
    established = report.figures.standing != "not-established"
    return tag(
        "section",
        tag(
            "div",
            tag("h2", "What was proved"),
            tag("p", STANDING, class_="warning") if report.claims and not established else None,
            tag("ul", [tag("li", clip(claim.words, CLIP)) for claim in report.claims])
            if report.claims
            else tag(
                "p",
                "Nothing on this page counts as proved, since "
                + _OPEN.get(report.outcome, "a check did not pass."),
            ),
        ),
        tag(
            "div",
            tag("h2", "What was not proved"),
            tag("ul", [tag("li", line) for line in not_proved(report)]),
            tag(
                "p",
                tag("a", "Everything that is outside of this verification", href="#outside"),
                class_="small",
            ),
        ),
        id="scope",
        class_="columns",
    )


def not_proved(report: Report) -> Iterator[str]:
    """What a reader might take for proved and is not, in plain words; `outside` has all of it."""
    f = report.figures
    kinds: dict[str, list[str]] = {}
    for t in report.tenants:
        kinds.setdefault(t.mechanism, []).append(clip(t.tenant, 128))
    yield "What passages say. Whoever is handed a passage reads it; the figures are about which passages were chosen."
    if "none" in kinds:
        bare = words.some(kinds["none"])
        yield f"Any privacy of {bare}: answers are exact, and the window shows that they are correct."
    coins = [*kinds.get("sampling", []), *kinds.get("listing", [])]
    if coins:
        yield f"Anything about documents of {words.some(coins)} that were handed out: they are known to be there."
    yield "What a language model writes from the passages."
    most = words.accounts(f.k_max)
    yield f"What groups of more than {most} learn that work together, beyond the figure for all accounts."
    if f.mode == "sampled":
        drawn = f"{f.sampled or 0:,} of {report.counts.records:,}"
        yield f"Each single answer: {drawn} were drawn, and a few false ones can escape."
    if f.setup == "unsafe":
        yield "That nobody forged proofs: their keys were made by one party, who could have (a one-party setup)."
    if f.d1 != "proved":
        yield "That the index holds what the documents say: how texts became numbers is the provider's word."
    if f.a1 != "proved":
        yield "That questions were turned into numbers without looking at the index; epsilon rests on it."
    if f.coalition != "checked":
        yield "How many accounts repeated a question almost word for word: that count is the provider's word."
    else:
        yield "How many accounts worked together that asked in other words: the estimate sees repeated questions alone."
    yield "Answers that the provider gave outside of this ledger, and how good its answers are."


def outside(report: Report) -> Html:
    """All that the verdict does not say, as every face of the report has it."""
    return tag(
        "section",
        tag("h2", "Outside of this verification"),
        tag(
            "ul",
            [tag("li", clip(words.sentence(line), CLIP)) for line in report.does_not_prove[:40]],
            class_="small flow",
        ),
        id="outside",
    )


def why(report: Report) -> Html | None:
    """The checks that decided against the window, each with what it means."""
    wrong = sorted((c for c in report.checks if c.outcome != "pass"), key=lambda c: not c.decides)
    if not wrong:
        return None
    rest, explained = len(wrong) - MOST_SHOWN, [*dict.fromkeys(c.base for c in wrong)][:MOST_EXPLAINED]
    first = {base: next(c for c in wrong if c.base == base) for base in explained}
    return tag(
        "section",
        tag("h2", "Why"),
        tag("p", CAVEAT, class_="warning") if cause_of(report.checks) is Cause.FILE else None,
        [_shown(check, explain=first.get(check.base) is check) for check in wrong[:MOST_SHOWN]],
        tag("p", f"{counted(rest, 'further check')} did not pass; the table of checks has them.")
        if rest > 0
        else None,
        id="why",
    )


def _shown(check: CheckLine, *, explain: bool) -> Html:
    e = check.explanation if explain else None
    lines = [("expected", check.expected), ("found", check.found), ("at", check.at)]
    if e is not None:
        lines = [
            ("passing means", e.means),
            ("so now", e.failed),
            *lines,
            ("an honest cause", "; or ".join(e.honest_causes)),
            ("ask", e.ask),
            ("more", e.section),
        ]
    return tag(
        "article",
        tag("h3", tag("code", check.id), " ", tag("span", check.outcome, class_=f"tag {check.outcome}")),
        tag(
            "dl",
            [tag("div", tag("dt", name), tag("dd", clip(text, 300))) for name, text in lines if text],
            class_="pairs",
        ),
    )


def next_steps(report: Report) -> Html:
    """What a reader does now, and what could be stronger."""
    return tag(
        "section",
        tag(
            "div",
            tag("h2", "What to do now"),
            tag("ol", [tag("li", clip(words.sentence(s), CLIP)) for s in report.next_steps[:12]]),
        ),
        tag(
            "div",
            tag("h2", "What is weaker than it could be"),
            tag(
                "ul",
                [
                    tag(
                        "li",
                        clip(words.sentence(w.words), CLIP),
                        " ",
                        tag("em", "Better: "),
                        clip(w.better, CLIP),
                        ".",
                    )
                    for w in report.weaker
                ],
            )
            if report.weaker
            else tag("p", "Nothing that this verifier knows of."),
        ),
        id="now",
        class_="columns",
    )
