"""Articles 12 and 19 of the EU AI Act, and the published fields of a window that address them.

Source: Regulation (EU) 2024/1689 of 13 June 2024, OJ L, 2024/1689, 12.7.2024. The quotations are parts of sentences of
the English edition. The German page quotes article 12 of the German edition, and puts article 19 in our own words. A
test compares each quotation with the text of the articles.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

from markupsafe import Markup

from rag_audit._internal.words import day, instant
from rag_audit.report.language import Language
from rag_audit.report.model import Report

Met: TypeAlias = Literal["yes", "part", "no", "open", "unless", "biometric"]
MONTHS_6 = 184 * 86_400_000
"""Six months in milliseconds, by the longest half of a year."""


class Clause(NamedTuple):
    """A requirement: its place, its words, the published fields that address it, and whether they meet it."""

    place: str
    quotation: Markup
    fields: Markup
    met: Met


def clauses(say: Language, report: Report) -> list[Clause]:
    """The requirements, in the order of the regulation. A field counts only if the checks establish it."""
    w, c = report.window, report.counts
    logged = report.shows("ledger")
    kinds = {event.kind for event in report.timeline.events}
    pilot = report.vouching.pilot
    times = {"first-query", "last-query"} <= kinds and not pilot
    unlogged = (
        say.text("not established: no independent party confirms the ledger of this pilot")
        if pilot
        else say.text("not established: two quorums may have no independent witness in common")
        if report.vouching.forkable
        else say.text("not established: the checks of the ledger did not pass")
    )
    kept = w.delete_after - w.closes_at
    return [
        Clause(
            "12(1)",
            say.text(
                "“High-risk AI systems shall technically allow for the automatic recording of events (logs) over the"
                " lifetime of the system.”"
            ),
            say.text(
                "the ledger: %(entries)s entries for %(records)s answers of this window, in an order that nobody can"
                " change; other parts of the system are not logged here",
                entries=c.entries,
                records=c.records,
            )
            if logged
            else unlogged,
            "part" if logged else "open",
        ),
        Clause(
            "12(2)(a)",
            say.text(
                "“identifying situations that may result in the high-risk AI system presenting a risk within the"
                " meaning of Article 79(1) or in a substantial modification”"
            ),
            say.text(
                "the digests of policy, index and embedder at the beginning of each window show a modification; the"
                " ledger does not identify other risks"
            )
            if logged
            else unlogged,
            "part" if logged else "open",
        ),
        Clause(
            "12(2)(b)",
            say.text("“facilitating the post-market monitoring referred to in Article 72”"),
            say.text("this report, repeated for each window") if logged else unlogged,
            "part" if logged else "open",
        ),
        Clause(
            "12(2)(c)",
            say.text("“monitoring the operation of high-risk AI systems referred to in Article 26(5)”"),
            say.text("the number of questions of each account, and the estimate of repeated questions")
            if logged
            else unlogged,
            "part" if logged else "open",
        ),
        Clause(
            "12(3)(a)",
            say.text(
                "“recording of the period of each use of the system (start date and time and end date and time of each"
                " use)”"
            ),
            say.text("the time of each question; the ledger has no end of a use")
            if times
            else unlogged
            if pilot
            else say.text("not established: the checks of the times did not pass"),
            "biometric",
        ),
        Clause(
            "12(3)(b)",
            say.text("“the reference database against which input data has been checked by the system”"),
            say.text("the commitment to each tenant's index, at the beginning of the window")
            if logged
            else unlogged,
            "biometric",
        ),
        Clause(
            "12(3)(c)",
            say.text("“the input data for which the search has led to a match”"),
            say.text("only a commitment to each question; the account has the question, and can disclose it"),
            "biometric",
        ),
        Clause(
            "12(3)(d)",
            say.text(
                "“the identification of the natural persons involved in the verification of the results, as referred to"
                " in Article 14(5)”"
            ),
            say.text("no field: the ledger knows accounts, and no natural persons"),
            "biometric",
        ),
        Clause(
            "19(1)",
            say.text(
                "“the logs shall be kept for a period appropriate to the intended purpose of the high-risk AI system,"
                " of at least six months, unless provided otherwise in the applicable Union or national law”"
            ),
            say.text(
                "the ledger is public, and the policy names no end of its publication; the private parts are deleted"
                " after %(day)s, which is less than six months after the window closed on %(end)s",
                day=day(w.delete_after),
                end=instant(w.closes_at),
            )
            if "delete-after" in kinds and kept < MONTHS_6
            else say.text("not established: the checks of the policy did not pass")
            if "delete-after" not in kinds
            else say.text(
                "the ledger is public, and the policy names no end of its publication; the private parts are kept until"
                " %(day)s, at least six months",
                day=day(w.delete_after),
            ),
            "open" if "delete-after" not in kinds else "part" if kept >= MONTHS_6 else "no",
        ),
        Clause(
            "19(2)",
            say.text(
                "“Providers that are financial institutions … shall maintain the logs automatically generated by their"
                " high-risk AI systems as part of the documentation kept under the relevant financial services law.”"
            ),
            say.text(
                "this clause does not apply unless the provider is a financial institution; then the provider has to"
                " show the documentation itself, because the window has no field for it"
            ),
            "unless",
        ),
    ]


def met(say: Language, value: Met) -> Markup:
    """Whether the published fields meet a requirement."""
    return {
        "yes": say.text("addressed"),
        "part": say.text("addressed in part"),
        "no": say.text("not met by this window"),
        "open": say.text("not established"),
        "unless": say.text("does not apply, unless the provider is a financial institution"),
        "biometric": say.text("does not apply, unless the system identifies persons remotely by biometrics"),
    }[value]
