"""From a verdict to its report, and from a run without a whole report to a short one."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import rag_audit
from rag_audit._internal.canonical import read_bytes, sha256
from rag_audit._internal.clock import now_ms
from rag_audit._internal.errors import ExitCode, RagAuditError
from rag_audit._internal.words import PLAIN, counted, instant, listed, marked
from rag_audit.mechanisms import named
from rag_audit.mechanisms.accounting.values import text
from rag_audit.models.trust import MAX_TRUST_BYTES
from rag_audit.models.windowfile import MAX_WINDOW_BYTES, window_file
from rag_audit.relation.scores import LARGEST_PRODUCT
from rag_audit.report import model
from rag_audit.report.claims import INSTANTS, SENTENCES, WITNESSED, Passed, Window, claims_of, condition
from rag_audit.report.cumulative import WindowPart, compose
from rag_audit.report.explanations import OWN_SENTENCES, Cause, cause_of, explanations, own_input
from rag_audit.report.facts import input_files, receipt_files
from rag_audit.report.model import Chain, Event, Vouching
from rag_audit.report.protection import pilot_warnings, protections_of, warnings_of
from rag_audit.report.requirements import requirements_of
from rag_audit.report.steps import next_steps_of
from rag_audit.report.verification import ReportedVerdict
from rag_audit.report.weaknesses import retrieval_of, weaknesses_of
from rag_audit.verify.case import Check, Status
from rag_audit.verify.checks.trust import ABSENT
from rag_audit.verify.inputs import Inputs, printable_name
from rag_audit.verify.standing import base_id
from rag_audit.verify.verdict import decisive

_PAST = ("header-quorum", "beacon", "opens", "first-query", "last-query", "trailer", "final-quorum")
"""The checks of events that precede a verification."""


_LIMITS = {"window": MAX_WINDOW_BYTES, "trust": MAX_TRUST_BYTES}


def report_of(
    verdict: ReportedVerdict,
    *,
    now: int | None = None,
    command: tuple[str, ...] = (),
    version: str | None = None,
) -> model.Report:
    """The report of a verdict.

    :param now: the time of verification in milliseconds since the epoch; the present by default
    :param command: the words of the command line, with only the last part of each file's path
    :param version: the release that verified; this one by default
    """
    facts = verdict.facts
    now = now_ms() if now is None else now
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
    if verdict.bundle is not None:
        weaker.insert(0, verdict.bundle)
    vouching = _witnessed(facts.vouching, passed)
    window = Window(figures, facts.counts, vouching, facts.tenants, facts.chain)
    judged = verdict.established or verdict.status is Status.UNPROVEN
    claims = claims_of(window, passed) if judged else []
    events = [e for e in facts.events if e.kind not in INSTANTS or passed.holds(INSTANTS[e.kind])]
    activity = facts.activity if passed.holds(INSTANTS["first-query"]) else None
    lines = [_check(check, verdict) for check in verdict.checks]
    notes = list(verdict.notes)
    if late:
        said = f"{late[0].words} at {instant(late[0].at or 0)}, and this report was made at {instant(now)}"
        notes.insert(
            0, f"the window is dated after this report: {said}; a clock is wrong, or this is an example"
        )
    pilot = vouching.pilot
    protections = protections_of(figures, facts.counts, facts.tenants, passed, judged=judged,
                                 vouching=vouching)  # fmt: skip
    return model.Report(
        type="report",
        v=1,
        outcome=verdict.outcome,
        exit_code=int(verdict.exit_code),
        line=verdict.line,
        sentence=_sentence(verdict, figures, deciding, lines, vouching),
        decided_by=deciding,
        protections=protections,
        warnings=[*pilot_warnings(vouching), *warnings_of(protections)],
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
        does_not_prove=[*([PILOT_LIMIT] if pilot else []), *verdict.does_not_prove],
        next_steps=next_steps_of(
            lines,
            verdict.outcome,
            deciding,
            [w.id for w in weaker],
            bare=any(not named(t.mechanism).protects for t in facts.tenants),
            pilot=pilot,
        ),
        attacks=verdict.measured,
        filing=model.Filing(
            verified_at=now,
            version=rag_audit.__version__ if version is None else version,
            inputs=input_files(facts.inputs),
            receipts=receipt_files(facts.inputs),
            command=list(command),
        ),
    )


PILOT_LIMIT = marked(
    "in this pilot, that the provider did not choose the randomness, rewrite the ledger, date its commitments back,"
    " leave out a window, or invent accounts"
)
"""The first limit of a pilot."""
ABSENT_LIMIT = "trust.toml lacks the limit, and no window meets an absent limit"
"""The honest cause of an unmet limit that no check reports for a limit in trust.toml."""
NOT_ESTABLISHED = "not established"
"""In the place of a level or of a sentence that rests on checks that did not pass."""


def _levels(figures: model.Figures, established: bool) -> model.Figures:
    """The figures with the levels that proofs reach, which a window that is not established does not have."""
    if established:
        return figures
    names = ("query_embedding", "coalition", "proofs", "setup")
    return figures.model_copy(update=dict.fromkeys(names, NOT_ESTABLISHED))


def _witnessed(vouching: Vouching, passed: Passed) -> Vouching:
    """The vouching parties. Each witness has only the acts that the checks confirm."""
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
    explanation = None if check.status is Status.PASS else _explained(check, base)
    return _line(check, verdict, base=base, tenant=tenant, explanation=explanation)


def _line(
    check: Check,
    verdict: ReportedVerdict,
    *,
    base: str,
    tenant: str | None = None,
    explanation: model.Explanation | None = None,
) -> model.CheckLine:
    return model.CheckLine(
        id=check.id,
        base=base,
        tenant=tenant,
        outcome=check.status.value,
        decides=verdict.decides(check),
        expected=check.expected,
        actual=check.actual,
        at=check.at,
        explanation=explanation,
    )


def _explained(check: Check, base: str) -> model.Explanation | None:
    """The explanation of a check. For a limit that trust.toml omits, it asks the reader to set the limit."""
    explanation = explanations().get(base)
    if explanation is None:
        return None
    if not check.expected.startswith(ABSENT):
        present = [cause for cause in explanation.honest_causes if cause != ABSENT_LIMIT]
        return explanation.model_copy(update={"honest_causes": present})
    name = base.partition(".")[2]
    return explanation.model_copy(
        update={
            "failed": f"trust.toml lacks {name}, and an absent limit counts as not met.",
            "honest_causes": [marked("somebody wrote trust.toml by hand, or for another kind of policy")],
            "ask": f"set {name} in trust.toml, and repeat the verification",
        }
    )


def _figures(verdict: ReportedVerdict) -> model.Figures:
    f: dict[str, Any] = {**verdict.figures}
    sampled = f.get("mode") == "sampled"
    established = verdict.established
    cluster = f.get("c") or {}
    membership, eps, realised = f.get("membership") or {}, f.get("eps_audit"), f.get("eps_realised")
    above = eps is not None and realised is not None and Decimal(realised) > Decimal(eps)
    return model.Figures(
        standing="not-established" if not established else "if-conforming" if sampled else "proved",
        name="eps_if_conforming" if sampled else "eps_audit",
        eps=eps,
        by=f.get("eps_audit_by"),
        decisive=decisive(verdict.figures) if established else None,
        delta=f["delta"],
        k_max=f["k_max"],
        n=f["n"],
        eps_one_account=f.get("eps_one_account"),
        eps_all_accounts=f.get("eps_all_accounts"),
        accounts_max=f.get("accounts_max"),
        eps_realised=realised,
        realised_above=above,
        exclusion_factor=f.get("exclusion_factor"),
        exclusion_factor_all_accounts=f.get("exclusion_factor_all_accounts"),
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
        cumulative=_cumulative(verdict) if established else None,
        mode="sampled" if sampled else "full",
        beta=f["beta"] if sampled else None,
        eta=f["eta"] if sampled else None,
        challenge=f.get("challenge"),
        sampled=f.get("sampled"),
        query_embedding=f.get("query_embedding", "declared"),
        document_embedding=f.get("document_embedding", "declared"),
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
    """The composed bound for the chain's windows, for a document of the size to which this window's figures apply. This
    verification judges only the last of the windows."""
    policies = verdict.facts.policies
    # Windows that carry listed documents have one epsilon together, which `verifier cumulative` computes from their
    # headers; this run has only the policies.
    if not policies or any(p.mechanism(t).carries_listed_rows for p in policies for t in p.tenants):
        return None
    positions = verdict.figures.get("positions_per_document", 1)
    try:
        total = compose([WindowPart("", policy) for policy in policies], positions=positions)
    except RagAuditError:  # windows of other tenants, or two of one name, have no common index
        return None
    return model.Cumulative(
        windows=len(policies),
        condition=condition(PLAIN, len(policies) - 1),
        eps=text(total.bound.eps),
        delta=text(total.bound.delta),
        positions_per_document=total.positions,
        exclusion_factor=text(total.exclusion_factor),
        exclusion_factor_all_accounts=text(total.exclusion_factor_all_accounts),
    )


def _sentence(
    verdict: ReportedVerdict,
    figures: model.Figures,
    deciding: list[str],
    lines: Sequence[model.CheckLine],
    vouching: model.Vouching,
) -> str:
    cause = cause_of(lines)
    counts, total = verdict.facts.counts, len(verdict.checks)
    window = f"window {verdict.facts.window.window} of {verdict.facts.window.origin}"
    if verdict.passed:
        if figures.mode == "full":
            what = "its only answer" if counts.records == 1 else f"each of its {counts.records:,} answers"
        else:
            drawn = figures.sampled or 0
            what = "the only record drawn" if drawn == 1 else f"each of the {drawn:,} records drawn"
        if vouching.pilot:
            alone = vouching.dependence.alone
            operates = "enough witnesses for a quorum" if alone else "witnesses that the quorum needs"
            return (
                f"All {total} checks of {window} passed, in a pilot: the provider operates {operates}. This shows that"
                " the steps work, and shows nothing to a party that does not trust the provider."
            )
        return f"All {total} checks of {window} passed: {what} is proved to follow from the committed index."
    rest = [f"{len(deciding) - 3} more"] if len(deciding) > 3 else []
    named = listed([*deciding[:3], *rest])
    if verdict.exit_code is ExitCode.FAIL:
        false = f"{counted(len(deciding), 'check')} of {total} failed ({named})"
        if cause is Cause.PIN:
            return (
                f"The {window} does not match a value that trust.toml pins: {false}. Compare the pins of"
                " trust.toml with their source first."
            )
        if cause is Cause.FILE:
            return (
                f"The file of {window} is not the ledger that the provider signed: {false}. Fetch the file a second"
                " time first."
            )
        return f"At least one statement of {window} is false: {false}."
    own = own_input(lines)
    if own in OWN_SENTENCES:
        return f"There is no verdict on {window} ({named}). {OWN_SENTENCES[own]}"
    if verdict.exit_code is ExitCode.MALFORMED:
        return (
            f"The {window} could not be judged: {counted(len(deciding), 'check')} of {total} could not be decided"
            f" ({named}). This result does not support the provider."
        )
    if verdict.status is Status.UNPROVEN:
        return (
            f"The {window} is not established: {counted(len(deciding), 'check')} of {total} did not get the"
            f" evidence for its figures ({named}). No check proved a false statement, and the window has no"
            " privacy figure."
        )
    return (
        f"The {window} is sound and does not meet trust.toml: {counted(len(deciding), 'requirement')} not met"
        f" ({named})."
    )


def report_of_error(
    error: RagAuditError, filing: model.Filing, paths: Collection[Path] = ()
) -> model.ShortReport:
    """The report of a run that ended in a named error, and therefore has no verdict.

    :param paths: the files and folders given to the run; the report shows only their last names
    """

    def local(text: str) -> str:
        for path in paths:
            for folder in (path, path.parent) if path.is_dir() else (path.parent,):
                if len(str(folder)) > 1:
                    text = text.replace(f"{folder}/", "").replace(str(folder), "the given folder")
        return text

    expected, actual = error.texts()
    message = local(error.message)
    malformed = model.Malformed(
        error=error.name,
        message=message,
        object=None if error.field is None else local(error.field),
        expected="a file" if error.missing else local(expected or "a value that its format allows"),
        actual=model.NO_FILE if error.missing else local(actual or message),
        next_step=local(error.hint or "correct the named input, and repeat the command"),
    )
    # UNMET would claim that the window is sound, which this run has not established.
    word = "FAIL" if error.exit_code is ExitCode.FAIL else "MALFORMED"
    return _short(
        outcome=word,
        exit_code=int(error.exit_code),
        line=f"{word} {message}",
        sentence="There is no verdict, because an input is unusable. This result does not support the provider.",
        malformed=malformed,
        next_steps=[
            malformed.next_step,
            "rely on no earlier report of this window until a run ends with a verdict",
        ],
        filing=filing,
    )


def report_of_fault(error: BaseException, filing: model.Filing) -> model.ShortReport:
    """The report of a run that ended in a fault of this program before the checks had decided."""
    return _short(
        outcome="INTERNAL",
        exit_code=int(ExitCode.INTERNAL),
        line=f"INTERNAL a fault of this program ({type(error).__name__})",
        sentence="There is no verdict, because rag-audit has a fault. This result contains no statement about the"
        " window.",
        fault=type(error).__name__,
        next_steps=["send the report of the fault that standard error names", "verify with another release"],
        filing=filing,
    )


def report_of_beginning(filing: model.Filing) -> model.ShortReport:
    """The preliminary content of a report's file during the run. It remains if the run is stopped."""
    return _short(
        outcome="UNFINISHED",
        exit_code=int(ExitCode.MALFORMED),
        line="UNFINISHED the run started and did not end",
        sentence="There is no verdict: the run that started at the date below did not end.",
        next_steps=["repeat the command"],
        filing=filing,
    )


def report_without_window(
    verdict: ReportedVerdict, fault: BaseException, filing: model.Filing
) -> model.ShortReport:
    """The report of a verdict, without the parts that a fault of this program prevented."""
    # Any other value in a line of the whole report could contain the fault.
    checks = [_line(check, verdict, base=check.id) for check in verdict.checks]
    return _short(
        outcome=verdict.outcome,
        exit_code=int(verdict.exit_code),
        line=verdict.line,
        sentence="The verdict is valid. rag-audit could not write the full report, because rag-audit has a fault."
        + ("" if verdict.bundle is None else f" Read this too: {verdict.bundle.words}."),
        decided_by=[check.id for check in checks if check.decides],
        checks=checks,
        notes=list(verdict.notes),
        does_not_prove=verdict.does_not_prove,
        fault=type(fault).__name__,
        next_steps=["send the report of the fault that standard error names"],
        filing=filing,
    )


def filing_of(
    inputs: Inputs,
    files: Mapping[str, Path] | None = None,
    command: Sequence[str] = (),
    now: int | None = None,
) -> model.Filing:
    """The time, program version and input files of a report.

    :param inputs: the files that were read
    :param files: the files given to the run, by role; a file that was not read is also named, with its digest if the
        file can be read now
    """
    listed = input_files(inputs)
    for role, path in (files or {}).items():
        if not any(file.role == role for file in listed):
            place = window_file(path) if role == "window" else path
            try:
                digest = sha256(read_bytes(place, max_bytes=_LIMITS[role])).hex()
            except RagAuditError:
                digest = None
            named = {"role": role, "name": printable_name(place), "sha256": digest}
            listed.append(model.InputFile.parse(named, field="inputs"))
    return model.Filing(
        verified_at=now_ms() if now is None else now,
        version=rag_audit.__version__,
        inputs=listed,
        receipts=receipt_files(inputs),
        command=list(command),
    )


def _short(**given: object) -> model.ShortReport:
    empty: dict[str, object] = {
        "decided_by": [],
        "checks": [],
        "notes": [],
        "does_not_prove": [],
        "malformed": None,
        "fault": None,
    }
    return model.ShortReport.parse({"type": "report", "v": 1, **empty, **given}, field="report")
