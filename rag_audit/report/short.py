"""Reports of runs that have no whole report: without a verdict, or with one whose report could not be made."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import rag_audit
from rag_audit._internal.canonical import read_bytes, sha256
from rag_audit._internal.errors import ExitCode, RagAuditError
from rag_audit.models.trust import MAX_TRUST_BYTES
from rag_audit.models.windowfile import MAX_WINDOW_BYTES
from rag_audit.report.facts import input_files, receipt_files
from rag_audit.report.model import NO_FILE, CheckLine, Filing, InputFile, Malformed, ShortReport
from rag_audit.report.verification import ReportedVerdict
from rag_audit.verify.inputs import Inputs, printable_name

_LIMITS = {"window": MAX_WINDOW_BYTES, "trust": MAX_TRUST_BYTES}


def report_of_error(error: RagAuditError, filing: Filing, paths: Collection[Path] = ()) -> ShortReport:
    """The report of a run that ended in a named error, and so in no verdict.

    :param paths: the files and folders that the run was given, of which a report has the last names alone
    """

    def local(text: str) -> str:
        for path in paths:
            for folder in (path, path.parent) if path.is_dir() else (path.parent,):
                if len(str(folder)) > 1:
                    text = text.replace(f"{folder}/", "").replace(str(folder), "the given folder")
        return text

    expected, found = error.texts()
    message = local(error.message)
    malformed = Malformed(
        error=error.name,
        message=message,
        object=None if error.field is None else local(error.field),
        expected="a file" if error.missing else local(expected or "a value that its format allows"),
        actual=NO_FILE if error.missing else local(found or message),
        next_step=error.hint or "correct what is named, and run the same command again",
    )
    # UNMET would say that the window is sound, which nobody has found out.
    word = "FAIL" if error.exit_code is ExitCode.FAIL else "MALFORMED"
    return _short(
        outcome=word,
        exit_code=int(error.exit_code),
        line=f"{word} {message}",
        sentence="There is no verdict: an input could not be used. That says nothing in the provider's favour.",
        malformed=malformed,
        next_steps=[
            malformed.next_step,
            "rely on no earlier report of this window until a run has a verdict",
        ],
        filing=filing,
    )


def report_of_fault(error: BaseException, filing: Filing) -> ShortReport:
    """The report of a run that ended in a fault of this program before the checks had decided."""
    return _short(
        outcome="INTERNAL",
        exit_code=int(ExitCode.INTERNAL),
        line=f"INTERNAL a fault of this program ({type(error).__name__})",
        sentence="There is no verdict: rag-audit has a fault, which says nothing about the window.",
        fault=type(error).__name__,
        next_steps=["send the report of the fault that standard error names", "verify with another release"],
        filing=filing,
    )


def report_of_beginning(filing: Filing) -> ShortReport:
    """What stands in a report's file while the run lasts, and stays there if somebody stops the run."""
    return _short(
        outcome="UNFINISHED",
        exit_code=int(ExitCode.MALFORMED),
        line="UNFINISHED the run has begun and did not end",
        sentence="There is no verdict: the run that began at the date below did not end.",
        next_steps=["run the same command again"],
        filing=filing,
    )


def report_without_window(verdict: ReportedVerdict, fault: BaseException, filing: Filing) -> ShortReport:
    """The report of a verdict whose whole report could not be made."""
    checks = [
        CheckLine(
            id=check.id,
            base=check.id,
            tenant=None,
            outcome=check.status.value,
            decides=verdict.decides(check),
            expected=check.expected,
            found=check.found,
            at=check.at,
            explanation=None,
        )
        for check in verdict.checks
    ]
    return _short(
        outcome=verdict.outcome,
        exit_code=int(verdict.exit_code),
        line=verdict.line,
        sentence="The verdict stands. Its whole report could not be made, because rag-audit has a fault.",
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
) -> Filing:
    """When, by what and from which files a report was made.

    :param inputs: the files that were read
    :param files: the files that the run was given, by role; a file that was not read is named too, with its digest if
        the file can be read now
    """
    listed = input_files(inputs)
    for role, path in (files or {}).items():
        if not any(file.role == role for file in listed):
            place = path / "window.json" if role == "window" and path.is_dir() else path
            try:
                digest = sha256(read_bytes(place, max_bytes=_LIMITS[role])).hex()
            except RagAuditError:
                digest = None
            named = {"role": role, "name": printable_name(place), "sha256": digest}
            listed.append(InputFile.parse(named, field="inputs"))
    return Filing(
        verified_at=int(time.time() * 1000) if now is None else now,
        version=rag_audit.__version__,
        inputs=listed,
        receipts=receipt_files(inputs),
        command=list(command),
    )


def _short(**given: object) -> ShortReport:
    empty: dict[str, object] = {
        "decided_by": [],
        "checks": [],
        "notes": [],
        "does_not_prove": [],
        "malformed": None,
        "fault": None,
    }
    return ShortReport.parse({"type": "report", "v": 1, **empty, **given}, field="report")
