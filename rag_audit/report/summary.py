"""The default output of `rag-audit verify`: at most twelve lines, the verdict in the first and in the last one.

A window that passed gets its figure, its signers, its counts and its weaknesses. Any other window gets the reason, the
likely innocent cause and the next step, directly before the last line. Every line but the first and the last begins
with a label or an indent, so no file can imitate a verdict.
"""

from __future__ import annotations

from rag_audit._internal.words import counted, listed
from rag_audit.report.explanations import NO_CAUSE, Cause, cause_of, decisive
from rag_audit.report.meaning import counted_words, privacy_words, vouched_words
from rag_audit.report.model import CheckLine, Report, ShortReport
from rag_audit.report.strength import protection_words
from rag_audit.report.text import Paint, shortened

MAX_LINES = 12
_LABEL = 12
_SENTENCE = 400
"""Maximum characters of a sentence; `--details` prints the whole sentence."""


def render(report: Report | ShortReport, *, colour: bool = False) -> str:
    """The summary as text.

    :param colour: for a terminal
    """
    paint = Paint(colour)
    word, _, rest = report.line.partition(" ")
    if isinstance(report, ShortReport):
        rows = [("", report.sentence), ("now", report.next_steps[0])]
    else:
        rows = [("", report.sentence), ("", protection_words(report.protection))]
        rows += [
            ("WARNING", f"{w.words}; {w.better}")
            for w in report.weaker
            if w.id in ("senders_trust", "packed_report")
        ]
        if report.attacks is not None and report.attacks.above_certified:
            rows.append(("WARNING", "a lower bound of the provider's attacks is ABOVE the certified epsilon"))
        rows += _passed(report) if report.outcome.startswith("PASS") else _reasoned(report)
    lines = [f"{paint.outcome(word)} {rest}".rstrip() + report.remark]
    lines += [f"{paint.bold(f'{label:{_LABEL}}')}  {shortened(text, _SENTENCE)}" for label, text in rows]
    lines.append(_last(report, paint))
    return "\n".join(lines) + "\n"


def _passed(report: Report) -> list[tuple[str, str]]:
    privacy = privacy_words(report)[:2]
    rows = [
        *zip(("privacy", ""), privacy, strict=False),
        ("signed by", vouched_words(report)[0]),
        ("counted", counted_words(report)[0]),
    ]
    if report.weaker:
        rows.append(("weaker", listed([weakness.id for weakness in report.weaker])))
    return [*rows, ("now", report.next_steps[0]), ("details", _details(report))]


def _reasoned(report: Report) -> list[tuple[str, str]]:
    """The lines of a window that did not pass: the reason, the likely innocent cause and the next step are the last."""
    check = decisive(report.checks)
    rows = [("details", _details(report))]
    first, *others = report.next_steps
    if check is None:
        return [*rows, ("next step", first)]
    if more := sum(c.outcome != "pass" for c in report.checks) - 1:
        rows.append(("also", f"{counted(more, 'other check')} did not pass"))
    place = "" if check.at is None else f", at {shortened(check.at)}"
    found = f"read {shortened(check.actual)}; expected {shortened(check.expected)}"
    rows.append(("reason", f"{check.outcome} {check.id}{place}: {found}"))
    if check.explanation is not None:
        rows.append(("", check.explanation.failed))
        rows.append(("likely cause", _innocent(check, report)))
    elsewhere = report.outcome == "FAIL" and cause_of(report.checks) is not Cause.WINDOW
    ask = others[0] if (elsewhere or check.explanation is None) and others else ""
    if not ask and check.explanation is not None:
        ask = check.explanation.ask
    return [*rows, ("next step", f"{first}; {ask}" if ask else first)]


def _innocent(check: CheckLine, report: Report) -> str:
    """The first honest cause of a check that did not pass."""
    causes = [] if check.explanation is None else check.explanation.honest_causes
    if not causes or causes[0].startswith(NO_CAUSE):
        return causes[0] if causes else NO_CAUSE
    return f"if nobody cheated: {causes[0]}" if report.outcome == "FAIL" else causes[0]


def _details(report: Report) -> str:
    """Where to read more, and the verified files by the beginning of their digests, with the verifier's signature."""
    words = [
        f"{file.name} {(file.sha256 or 'no file')[:16]}"
        for file in report.filing.inputs
        if file.role in ("trust", "window")
    ]
    if report.signature is not None:
        words.append(f"report signed with {report.signature.name}+{report.signature.key_id}")
    return "; ".join(["--details prints every check, figure and limit", *words])


def _last(report: Report | ShortReport, paint: Paint) -> str:
    """The verdict once more: of a window with a figure, without the fields that follow epsilon, delta and k_max."""
    word, _, rest = report.line.partition(" ")
    if not isinstance(report, ShortReport) and report.figures.standing != "not-established":
        rest = " ".join(rest.split(" ")[: 3 if report.outcome.startswith("PASS") else 4])
    return f"{paint.outcome(word)} {rest}".rstrip() + report.remark
