"""The decision box: what a reader can decide, the questions for the provider, and the meaning of a signature."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Literal, TypeAlias

from markupsafe import Markup

from rag_audit.report.html import overview
from rag_audit.report.language import Language
from rag_audit.report.model import Report

QUESTIONS = 3
Decision: TypeAlias = Literal["sign", "conditions", "refuse"]


def supported(report: Report) -> Decision:
    """The decision that the report supports. It follows from the outcome and the strengths, and never replaces the
    reader's judgement."""
    if report.outcome in ("FAIL", "UNDECIDED", "UNPROVEN"):
        return "refuse"
    if report.outcome == "UNMET" or report.weaker or overview.alone(report):
        return "conditions"
    lines = [line for p in report.protections for line in (p.isolation, p.lists, p.absence)]
    weak = any(line.strength not in ("strong", "moderate") for line in lines)
    return "conditions" if weak else "sign"


def because(say: Language, report: Report) -> Markup:
    """Why the report supports this decision."""
    return {
        "refuse": say.text(
            "a check did not pass, or evidence is missing, so this page has no fact to sign for"
        ),
        "conditions": say.text(
            "the statements are true, and at least one limit, strength or independence is missing: write the missing"
            " point into the conditions"
        ),
        "sign": say.text(
            "every check passed, other parties vouch for the window, and every protection that a figure covers is"
            " strong or moderate"
        ),
    }[supported(report)]


def questions(say: Language, report: Report) -> list[Markup]:
    """Three questions for the provider, from this window: failed checks first, then weak protection, then missing
    evidence."""
    return [*islice(dict.fromkeys(_questions(say, report)), QUESTIONS)]


def _questions(say: Language, report: Report) -> Iterator[Markup]:
    wrong = [check.id[:120] for check in report.checks if check.decides and check.outcome != "pass"]
    if wrong:
        yield say.plural(
            "The check %(checks)s did not pass. How do you explain this, and when do you correct it?",
            "%(count)s checks did not pass, among them %(checks)s. How do you explain this, and when do you correct"
            " it?",
            len(wrong),
            checks=say.listed(wrong[:2]),
        )
    if overview.alone(report):
        yield say.text("When will witnesses that you do not operate confirm your ledger, and who are they?")
    for group in overview.groups(report)[: overview.MAX_GROUPS]:
        tenants = overview.names(say, group, 2)
        lists, absence = group.protection.lists, group.protection.absence
        if lists.strength in ("weak", "none") and lists.eps is not None:
            yield say.text(
                "Epsilon %(eps)s protects %(tenants)s weakly. Which smaller value can you keep, and from when on?",
                eps=say.number(lists.eps),
                tenants=tenants,
            )
        if absence.strength in ("weak", "none") and absence.exclusion_factor is not None:
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
    """The question about a weakness of the window."""
    missing = report.counts.records - report.counts.receipts_independent
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
        "quorum": say.text("When will more than half of the witnesses be required?"),
        "receipts": say.plural(
            "Which independent accounts can hand in a receipt for the %(count)s answer that has none?",
            "Which independent accounts can hand in receipts for the %(count)s answers that have none?",
            missing,
        ),
        "chain": say.text("Where are the previous windows, so that we can verify the chain?"),
    }.get(weakness)
