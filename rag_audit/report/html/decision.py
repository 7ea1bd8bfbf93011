"""The decision box: what a reader can decide, the questions for the provider, and the meaning of a signature."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Literal, TypeAlias

from markupsafe import Markup

from rag_audit._internal.words import PLAIN, Say, marked, some_of
from rag_audit.report.explanations import Cause, Own, cause_of, decisive, own_input
from rag_audit.report.html import overview
from rag_audit.report.html.words import clip
from rag_audit.report.language import Language
from rag_audit.report.model import Report

QUESTIONS = 3
MAX_POINTS = 6
"""Maximum missing points that the page names; the list of possible improvements has each of them."""
Decision: TypeAlias = Literal["sign", "conditions", "trial", "repeat", "refuse"]


def supported(report: Report) -> Decision:
    """The decision that the report supports. It follows from the outcome and the strengths, and never replaces the
    reader's judgement."""
    if own_input(report.checks) is not None:
        return "repeat"
    if report.outcome in ("FAIL", "UNDECIDED", "UNPROVEN"):
        return "refuse"
    if report.vouching.pilot:
        return "trial" if report.outcome != "UNMET" else "refuse"
    return "conditions" if points(PLAIN, report) else "sign"


def choices(say: Language, report: Report) -> list[tuple[Decision, Markup]]:
    """The decisions of the box: a reader of a pilot signs at most for a trial."""
    if report.vouching.pilot:
        return [("trial", named(say, "trial")), ("refuse", named(say, "refuse"))]
    return [(name, named(say, name)) for name in ("sign", "conditions", "refuse")]


def named(say: Language, decision: Decision) -> Markup:
    """A decision in words."""
    return {
        "sign": say.text("Sign"),
        "conditions": say.text("Sign with conditions"),
        "trial": say.text("Sign only as a trial"),
        "repeat": say.text("No decision yet: repeat the verification"),
        "refuse": say.text("Refuse"),
    }[decision]


def because(say: Language, report: Report) -> Markup:
    """Why the report supports this decision."""
    match supported(report):
        case "repeat":
            return _unfit(say, report)
        case "refuse" if report.vouching.pilot:
            return say.text(
                "this is a pilot, in which one party plays all roles, and a check or a requirement is not met or not"
                " decided"
            )
        case "refuse":
            return say.text(
                "a check did not pass, or evidence is missing, so this page has no fact to sign for"
            )
        case "trial":
            return say.text(
                "this is a pilot: one party plays all roles, so the report shows that the steps work and nothing else"
            )
        case "conditions":
            missing = points(say, report)
            more = len(missing) - MAX_POINTS
            rest = [say.plural("%(count)s more", "%(count)s more", more)] if more > 0 else []
            return say.plural(
                "the statements are true, and one point is missing, to be written into the conditions: %(points)s",
                "the statements are true, and %(count)s points are missing, to be written into the conditions:"
                " %(points)s",
                len(missing),
                points=say.joined([*missing[:MAX_POINTS], *rest], "; "),
            )
    return say.text(
        "every check passed, other parties vouch for the window, and every protection that a figure covers is strong or"
        " moderate"
    )


def _unfit(say: Language, report: Report) -> Markup:
    """The verifier's own input that does not fit the window."""
    match own_input(report.checks):
        case Own.RECEIPTS:
            return say.text(
                "your own input does not fit this window: a receipt that you supplied belongs to another window or"
                " service, or is damaged. Nothing is established, and nothing speaks against the provider"
            )
        case Own.PREVIOUS:
            return say.text(
                "your own input does not fit this window: an earlier window that you supplied does not precede this"
                " one. Nothing is established, and nothing speaks against the provider"
            )
        case Own.MISSING:
            return say.text(
                "your own input is not complete: an earlier window, on which the figures of this window depend, was not"
                " supplied. Nothing is established, and nothing speaks against the provider"
            )
    if report.outcome == "UNMET":
        return say.text("your own trust file lacks a limit, and an absent limit counts as not met")
    return say.text(
        "your own input does not fit this window: your trust file expects another key, origin or value. Nothing is"
        " established until you have compared the trust file with its source"
    )


def points(say: Say, report: Report) -> list[str]:
    """The missing points of a window with established figures, each in a few words: unmet requirements, rows with weak
    or no protection, and weak evidence."""
    result = [
        say.text("the requirement %(name)s is not met", name=r.name)
        for r in report.requirements
        if r.outcome not in ("pass", "unproven") and report.outcome == "UNMET"
    ]
    for line, words in (
        ("isolation", marked("%(tenants)s: some answers are not proved")),
        ("lists", marked("%(tenants)s: weak or no protection against observers of lists")),
        ("absence", marked("%(tenants)s: weak or no protection against accounts that miss the document")),
    ):
        whose = [p.tenant for p in report.protections if p.lines[line].strength not in ("strong", "moderate")]
        if whose:
            result.append(say.text(words, tenants=some_of(say, [clip(name, 60) for name in whose], 3)))
    if overview.own_verifier(report):
        result.append(say.text("the verifier has the provider's key"))
    missing = report.counts.records - report.counts.receipts_independent
    for weakness in report.weaker:
        result.append(
            {
                "setup": say.text("the proofs depend on the parties that made their keys"),
                "query_embedding": say.text("the vectors of questions are not proved"),
                "document_embedding": say.text("the vectors of documents are not proved"),
                "sampled": say.text("only a draw of the answers is proved"),
                "challenge": say.text("the provider drew the answers to prove"),
                "coalition": say.text("the number of accounts that repeated a question is not proved"),
                "beacon": say.text("witnesses of the provider alone made the beacon"),
                "quorum": say.text("half of the witnesses or fewer are required")
                if report.vouching.dependence.minority
                else say.text("two quorums may have no independent witness in common"),
                "receipts": say.plural(
                    "%(count)s answer has no receipt of an independent account",
                    "%(count)s answers have no receipt of an independent account",
                    missing,
                ),
                "mechanism": say.text("a tenant has no mechanism"),
                "chain": say.text("the previous windows were not supplied"),
                "senders_trust": say.text("the sender of the bundle chose the trust file"),
                "packed_report": say.text("the packed report differs from this verification"),
            }[weakness.id]
        )
    return result


def questions(say: Language, report: Report) -> list[Markup]:
    """Three questions for the provider, from this window: failed checks first, then weak protection, then missing
    evidence."""
    return [*islice(dict.fromkeys(_questions(say, report)), QUESTIONS)]


def _questions(say: Language, report: Report) -> Iterator[Markup]:
    first = decisive(report.checks)
    wrong = [check.id[:120] for check in report.checks if check.decides and check.outcome != "pass"]
    if wrong and cause_of(report.checks) is Cause.FILE:
        yield say.text(
            "If a second copy of the window file from your public folder fails too: how do you explain that it differs"
            " from the ledger that you signed (check %(check)s), and when do you correct it?",
            check=wrong[0] if first is None else first.id[:120],
        )
    elif wrong:
        yield say.plural(
            "The check %(checks)s did not pass. How do you explain this, and when do you correct it?",
            "%(count)s checks did not pass, among them %(checks)s. How do you explain this, and when do you correct"
            " it?",
            len(wrong),
            checks=say.listed(wrong[:2]),
        )
    if report.vouching.pilot:
        yield say.text("When will witnesses that you do not operate confirm your ledger, and who are they?")
    for group in overview.groups(report)[: overview.MAX_GROUPS]:
        tenants = overview.names(say, group, 2)
        lists, absence = group.protection.lists, group.protection.absence
        if lists.eps is not None and float(lists.eps) > 10:
            yield say.text(
                "Epsilon %(eps)s protects %(tenants)s weakly. Which smaller value can you keep, and from when on?",
                eps=say.number(lists.eps),
                tenants=tenants,
            )
        if absence.exclusion_factor is not None and float(absence.exclusion_factor) > 20:
            yield say.text(
                "The factor %(factor)s of %(tenants)s lets a missing result say much. Which smaller value"
                " can you keep?",
                factor=say.number(absence.exclusion_factor),
                tenants=tenants,
            )
        exposure = group.protection.presence.exposure
        if exposure is not None and exposure.exceeds_exact:
            yield say.text(
                "Chance returns more documents of %(tenants)s than exact retrieval would. Why is this necessary?",
                tenants=tenants,
            )
    for weakness in report.weaker:
        if (question := _about(say, report, weakness.id)) is not None:
            yield question
    if any(w.relation is None for w in report.vouching.witnesses):
        yield say.text("Who operates each witness, and which contracts do you have with these operators?")
    for group in overview.groups(report)[:1]:
        exposure = group.protection.presence.exposure
        if exposure is not None:
            yield say.text(
                "%(accounts)s accounts of one tenant can read up to %(limit)s documents. Who can hold so many accounts,"
                " and how do you notice it?",
                accounts=exposure.accounts,
                limit=exposure.limit,
            )
    yield say.text(
        "How can a person find out whether the index contains a record about them, and have it deleted?"
    )
    yield say.text("When do you publish the next window, and who tells us if you do not?")
    yield say.text("Which data does the service log outside of this ledger, and for how long?")


def _about(say: Language, report: Report, weakness: str) -> Markup | None:
    """The question about a weakness of the window. Receipts come from accounts, so `steps` asks for them."""
    return {
        "mechanism": say.text("Which mechanism will protect the tenants whose answers are exact today?"),
        "setup": say.text(
            "Who made the keys of the proofs, and when will you use proofs that need no such keys?"
        ),
        "query_embedding": say.text("Why is the computation of the question vectors not proved?"),
        "document_embedding": say.text(
            "Which evidence can you give that the index represents the documents and nothing else?"
        ),
        "sampled": say.text("Can you prove every answer, and not only the drawn ones?"),
        "challenge": say.text(
            "Why did you draw the answers to prove yourself? The next draw must be the verifier's."
        ),
        "coalition": say.text("How do you notice that one person asks through several accounts?"),
        "beacon": say.text("When will the beacon contain the value of a witness that you do not operate?"),
        "quorum": say.text("When will more than half of the witnesses be required?")
        if report.vouching.dependence.minority
        else say.text("When will every two quorums have a witness in common that you do not operate?"),
        "chain": say.text("Where are the previous windows, so that we can verify the chain?"),
    }.get(weakness)
