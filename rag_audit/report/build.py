"""From a verdict to its report."""

from __future__ import annotations

import time
from decimal import Decimal
from typing import Any

import rag_audit
from rag_audit._internal.errors import ExitCode, RagAuditError
from rag_audit._internal.words import counted, day, instant, listed
from rag_audit.mechanisms.accounting.values import text
from rag_audit.relation.scores import LARGEST_PRODUCT
from rag_audit.report import model
from rag_audit.report.cause import Cause, cause_of
from rag_audit.report.claims import INSTANTS, SENTENCES, WITNESSED, Passed, Window, claims_of
from rag_audit.report.cumulative import WindowPart, compose
from rag_audit.report.explained import explanations
from rag_audit.report.facts import input_files, receipt_files
from rag_audit.report.measured import LABEL, Measured, Point
from rag_audit.report.model import Chain, Event, Vouching
from rag_audit.report.requirements import requirements_of
from rag_audit.report.steps import next_steps_of
from rag_audit.report.strength import protection_of
from rag_audit.report.verification import ReportedVerdict
from rag_audit.report.weaknesses import retrieval_of, weaknesses_of
from rag_audit.verify.case import Check, Status
from rag_audit.verify.checks.trust import ABSENT
from rag_audit.verify.standing import base_id

_PAST = ("opening-quorum", "beacon", "opens", "first-query", "last-query", "closing", "final-quorum")
"""What has happened by the time that a window is verified."""


def report_of(
    verdict: ReportedVerdict,
    *,
    now: int | None = None,
    command: tuple[str, ...] = (),
    version: str | None = None,
) -> model.Report:
    """The report of a verdict.

    :param now: the time of verification in milliseconds since the epoch; the present by default
    :param command: the words of the command line, with files' names alone
    :param version: the release that verified; this one by default
    """
    facts = verdict.facts
    now = int(time.time() * 1000) if now is None else now
    figures = _figures(verdict)
    checks = {check.id: check for check in reversed(verdict.checks)}
    deciding = [c.id for c in verdict.checks if verdict.decides(c)]
    late = [e for e in facts.events if e.kind in _PAST and e.at is not None and e.at > now]
    verified = Event(kind="verified", at=now, words="this report was made")
    passed = Passed(verdict.checks, verdict.needed)
    requirements = requirements_of(facts.require, checks, facts.vouching, passed, facts.tenants, figures.eps,
                                   established=verdict.established)  # fmt: skip
    weaker = weaknesses_of(
        figures,
        facts.tenants,
        facts.vouching,
        facts.counts,
        (facts.chain.before is not None, facts.chain.given),
    )
    vouching = _witnessed(facts.vouching, passed)
    window = Window(figures, facts.counts, vouching, facts.tenants, facts.chain)
    judged = verdict.established or verdict.status is Status.UNPROVEN
    claims = claims_of(window, passed) if judged else []
    events = [e for e in facts.events if e.kind not in INSTANTS or passed.holds(INSTANTS[e.kind])]
    activity = facts.activity if passed.holds(INSTANTS["first-query"]) else None
    lines = [_check(check, verdict) for check in verdict.checks]
    cause = cause_of(lines)
    notes = list(verdict.notes)
    if late:
        said = f"{late[0].words} at {instant(late[0].at or 0)}, and this report was made at {instant(now)}"
        notes.insert(
            0, f"the window is dated after this report: {said}; a clock is wrong, or this is an example"
        )
    protection = protection_of(
        verdict.outcome,
        figures.standing,
        figures.eps,
        facts.tenants,
        drawn=figures.sampled if figures.mode == "sampled" else None,
        records=facts.counts.records,
        beta=figures.beta,
    )
    return model.Report(
        type="report",
        v=1,
        outcome=verdict.outcome,
        exit_code=int(verdict.exit_code),
        line=verdict.line,
        sentence=_sentence(verdict, figures, deciding, cause),
        decided_by=deciding,
        protection=protection,
        claims=claims,
        window=facts.window,
        tenants=facts.tenants,
        figures=_levels(figures, verdict.established),
        checks=lines,
        requirements=requirements,
        vouching=vouching,
        counts=facts.counts,
        timeline=model.Timeline(events=[*events, verified], activity=activity, future=bool(late)),
        chain=_followed(facts.chain, passed),
        weaker=weaker,
        retrieval=retrieval_of(facts.tenants) if verdict.established else [],
        notes=notes,
        does_not_prove=verdict.does_not_prove,
        next_steps=next_steps_of(lines, verdict.outcome, deciding, [w.id for w in weaker], protection.level),
        attacks=None if verdict.measured is None else _attacks(verdict.measured),
        filing=model.Filing(
            verified_at=now,
            version=rag_audit.__version__ if version is None else version,
            inputs=input_files(facts.inputs),
            receipts=receipt_files(facts.inputs),
            command=list(command),
        ),
    )


NOT_ESTABLISHED = "not established"
"""In the place of a level or of a sentence that rests on checks that did not pass."""


def _levels(figures: model.Figures, established: bool) -> model.Figures:
    """The figures with the levels that proofs reach, which a window that is not established does not have."""
    if established:
        return figures
    names = ("a1", "coalition", "proofs", "setup")
    return figures.model_copy(update=dict.fromkeys(names, NOT_ESTABLISHED))


def _witnessed(vouching: Vouching, passed: Passed) -> Vouching:
    """Who vouches, each witness with what it put its name to as far as the checks show that."""
    held = {part: passed.holds(claim) for part, claim in WITNESSED.items()}
    witnesses = [
        w.model_copy(update={part: getattr(w, part) and held[part] for part in held})
        for w in vouching.witnesses
    ]
    return vouching.model_copy(update={"witnesses": witnesses})


def _followed(chain: Chain, passed: Passed) -> Chain:
    """The windows before and after, as far as the checks show them."""
    before, after = passed.holds(SENTENCES["chain"]), passed.holds(SENTENCES["next"])
    words = chain.words if before else NOT_ESTABLISHED
    return chain.model_copy(
        update={
            "after": chain.after if after else None,
            "words": words,
        }
    )


def _check(check: Check, verdict: ReportedVerdict) -> model.CheckLine:
    base, tenant = base_id(check.id)
    return model.CheckLine(
        id=check.id,
        base=base,
        tenant=tenant,
        outcome=check.status.value,
        decides=verdict.decides(check),
        expected=check.expected,
        found=check.found,
        at=check.at,
        explanation=None if check.status is Status.PASS else _explained(check, base),
    )


def _explained(check: Check, base: str) -> model.Explanation | None:
    """The explanation of a check; of a limit that trust.toml leaves out, that the reader has to set it."""
    found = explanations().get(base)
    if found is None or not check.expected.startswith(ABSENT):
        return found
    name = base.partition(".")[2]
    return found.model_copy(
        update={
            "failed": f"trust.toml sets no {name}, and a limit that is left out counts as not met.",
            "honest_causes": ["trust.toml was written by hand, or for another kind of policy"],
            "ask": f"nobody: set {name} in trust.toml, and verify again",
        }
    )


def _figures(verdict: ReportedVerdict) -> model.Figures:
    f: dict[str, Any] = {**verdict.figures}
    sampled = f.get("mode") == "sampled"
    stands = verdict.established
    cluster = f.get("c") or {}
    membership, eps, realised = f.get("membership") or {}, f.get("eps_audit"), f.get("eps_realised")
    above = eps is not None and realised is not None and Decimal(realised) > Decimal(eps)
    return model.Figures(
        standing="not-established" if not stands else "if-conforming" if sampled else "proved",
        name="eps_if_conforming" if sampled else "eps_audit",
        eps=eps,
        by=f.get("eps_audit_by"),
        delta=f["delta"],
        k_max=f["k_max"],
        n=f["n"],
        eps_one_account=f.get("eps_one_account"),
        eps_all_accounts=f.get("eps_all_accounts"),
        accounts_max=f.get("accounts_max"),
        eps_realised=realised,
        realised_above=above,
        odds_unlisted=f.get("odds_unlisted"),
        odds_unlisted_all_accounts=f.get("odds_unlisted_all_accounts"),
        positions_per_document=f.get("positions_per_document"),
        auc=membership.get("auc_bound"),
        tpr_at_fpr_1pct=membership.get("tpr_at_fpr_1pct"),
        bounds=[
            model.Bound(
                name=b["name"],
                eps=b["eps"],
                counts=b["name"] == f.get("eps_audit_by"),
                reason=None if b["valid"] else b["reason"],
            )
            for b in (f.get("bounds") or {}).get("bounds", [])
        ],
        cumulative=_cumulative(verdict) if stands else None,
        mode="sampled" if sampled else "full",
        beta=f["beta"] if sampled else None,
        eta=f["eta"] if sampled else None,
        challenge=f.get("challenge"),
        sampled=f.get("sampled"),
        a1=f.get("a1", "declared"),
        d1=f.get("d1", "declared"),
        coalition=f.get("coalition", "not-checked"),
        largest_cluster=cluster.get("all"),
        largest_cluster_in_a_tenant=cluster.get("tenant"),
        proofs=f.get("proofs", "none"),
        setup=f.get("setup", "none"),
        abandoned=f.get("abandoned", 0),
        empty=f.get("empty", 0),
        allowed=f.get("allowed", []),
        scores=f["scores"],
        dimension=f["dimension"],
        largest_score=LARGEST_PRODUCT * f["dimension"],
    )


def _cumulative(verdict: ReportedVerdict) -> model.Cumulative | None:
    """The bound for the chain's windows together, of which this verification judges the last alone."""
    policies = verdict.facts.policies
    if not policies:
        return None
    try:
        found = compose([WindowPart("", policy) for policy in policies])
    except RagAuditError:  # windows of other tenants, or two of one name: not over one index
        return None
    return model.Cumulative(
        windows=len(policies),
        condition=_condition(len(policies) - 1),
        eps=text(found.bound.eps),
        delta=text(found.bound.delta),
        odds_unlisted=text(found.odds_unlisted),
        odds_unlisted_all_accounts=text(found.odds_unlisted_all_accounts),
    )


def _condition(others: int) -> str:
    """What a figure for several windows rests on, of which this run did not verify the given number."""
    each = "the other window" if others == 1 else f"each of the other {others:,} windows"
    return f"the figure holds only if {each} verifies, which this run did not check"


def _sentence(verdict: ReportedVerdict, figures: model.Figures, deciding: list[str], cause: Cause) -> str:
    counts, total = verdict.facts.counts, len(verdict.checks)
    window = f"window {verdict.facts.window.window} of {verdict.facts.window.origin}"
    if verdict.passed:
        proved = (
            "each"
            if figures.mode == "full"
            else f"each of the {counted(figures.sampled or 0, 'record')} drawn"
        )
        what = f"{proved} of its {counted(counts.records, 'answer')}" if figures.mode == "full" else proved
        return (
            f"All {total} checks of {window} passed: {what} is proved to be what the committed index gives."
        )
    rest = [f"{len(deciding) - 3} more"] if len(deciding) > 3 else []
    named = listed([*deciding[:3], *rest])
    if verdict.exit_code is ExitCode.FAIL:
        false = f"{counted(len(deciding), 'check')} of {total} failed ({named})"
        if cause is Cause.PIN:
            return (
                f"The {window} does not match what trust.toml pins: {false}. Compare the pins of trust.toml with their"
                " source first."
            )
        if cause is Cause.FILE:
            return (
                f"The file of {window} is not the ledger that the provider signed: {false}. Fetch the file again"
                " first."
            )
        return f"The {window} is false: {false}."
    if verdict.exit_code is ExitCode.MALFORMED:
        return (
            f"The {window} could not be judged: {counted(len(deciding), 'check')} of {total} could not be decided"
            f" ({named}). That is no verdict in its favour."
        )
    if verdict.status is Status.UNPROVEN:
        return (
            f"The {window} is not established: {counted(len(deciding), 'check')} of {total} left open what its figures"
            f" rest on ({named}). Nothing is proven false, and the window has no privacy figure."
        )
    return (
        f"The {window} is sound, and less than trust.toml asks for: {counted(len(deciding), 'requirement')} not met"
        f" ({named})."
    )


def _attacks(measured: Measured) -> model.Attacks:
    run = measured.run
    return model.Attacks(
        label=LABEL,
        answered_by=run.generator,
        members=run.members,
        others=run.others,
        seed=run.seed,
        index=run.index,
        capacity=run.capacity,
        parts=[
            model.AttackPart(
                tenants=list(part.tenants),
                mechanism=part.mechanism,
                rows=[
                    model.AttackRow(
                        attack=row.attack,
                        queries=row.queries,
                        without_noise=None if row.without is None else [f"{x:.4f}" for x in row.without],
                        points=[_point(point) for point in row.points],
                    )
                    for row in part.rows
                ],
            )
            for part in measured.parts
        ],
        left_out=measured.left_out,
        above_certified=measured.above,
    )


def _point(point: Point) -> model.AttackPoint:
    value = point.as_json()
    return model.AttackPoint(**value, above=point.above)


def dated(report: model.Report) -> str:
    """The day of a report."""
    return day(report.filing.verified_at)
