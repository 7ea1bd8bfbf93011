"""The default output of `rag-audit verify`: at most twelve lines, the verdict in the first and in the last one.

A window that passed gets its figure, its signers, its counts and its weaknesses. Any other window gets the reason, the
likely innocent cause and the next step, directly before the last line. Every line but the first and the last begins
with a label or an indent, so no file can imitate a verdict.
"""

from __future__ import annotations

from rag_audit._internal.words import counted, listed
from rag_audit.report.explanations import NO_CAUSE, decisive
from rag_audit.report.meaning import counted_words, vouched_words
from rag_audit.report.model import CheckLine, Report, ShortReport
from rag_audit.report.protection import ADVERSARIES, by_adversary
from rag_audit.report.text import Paint, next_step, shortened, shortened_line

MAX_LINES = 12
_LABEL = 12
_SHOWN = 2
"""Different lines that a row about an adversary shows."""
_SENTENCE = 480
"""Maximum characters of a sentence; `--details` prints the whole sentence."""
_PROTECTION = 2 * _SENTENCE
"""The same for a row about an adversary, which has up to `_SHOWN` sentences."""


def render(report: Report | ShortReport, *, colour: bool = False) -> str:
    """The summary as text.

    :param colour: for a terminal
    """
    paint = Paint(colour)
    word, _, rest = report.line.partition(" ")
    if isinstance(report, ShortReport):
        rows = [("", report.sentence), ("now", report.next_steps[0])]
    else:
        rows = [("", report.sentence)]
        if warnings := _warnings(report):
            rows.append(("WARNING", "; ".join(warnings)))
        rows += _passed(report) if report.outcome.startswith("PASS") else _reasoned(report)
    lines = [f"{paint.outcome(word)} {rest}".rstrip() + report.remark]
    for label, text in rows:
        room = _PROTECTION if label in ADVERSARIES else _SENTENCE
        lines.append(f"{paint.bold(f'{label:{_LABEL}}')}  {shortened(text, room)}")
    lines.append(_last(report, paint))
    return "\n".join(lines) + "\n"


def _warnings(report: Report) -> list[str]:
    """All warnings, for one row: the most urgent first."""
    attacked = report.attacks is not None and report.attacks.above_certified
    return [
        *(["a lower bound of the provider's attacks is ABOVE the certified epsilon"] if attacked else []),
        *(f"{w.words}; {w.better}" for w in report.weaker if w.id in ("senders_trust", "packed_report")),
        *report.warnings,
    ]


def _protection(report: Report) -> list[tuple[str, str]]:
    """A row for each adversary, with the tenants of the weakest protection first."""
    rows = []
    for name, sentences in by_adversary(report.protections):
        more = len(sentences) - _SHOWN
        rest = [f"{more:,} more, which --details prints"] if more > 0 else []
        rows.append((name, " | ".join([*sentences[:_SHOWN], *rest])))
    return rows


def _passed(report: Report) -> list[tuple[str, str]]:
    return [
        *_protection(report),
        ("signed by", vouched_words(report)[0]),
        ("counted", counted_words(report)[0]),
        ("now", report.next_steps[0]),
        ("details", _details(report)),
    ]


def _reasoned(report: Report) -> list[tuple[str, str]]:
    """The lines of a window that did not pass: the reason, the likely innocent cause and the next step are the last."""
    check = decisive(report.checks)
    unmet = report.outcome == "UNMET"
    rows = [*(_protection(report) if unmet else []), ("details", _details(report))]
    if check is None:
        return [*rows, ("next step", next_step(report))]
    more = sum(c.outcome != "pass" for c in report.checks) - 1
    if more and not unmet:
        rows.append(("also", f"{counted(more, 'other check')} did not pass"))
    place = "" if check.at is None else f", at {shortened(check.at)}"
    found = f"read {shortened(check.actual)}; expected {shortened(check.expected)}"
    rows.append(("reason", f"{check.outcome} {check.id}{place}: {found}"))
    if check.explanation is not None:
        if not unmet:  # the requirement and the value say it, and the four lines need the place
            rows.append(("", check.explanation.failed))
        rows.append(("likely cause", _innocent(check, report)))
    return [*rows, ("next step", next_step(report))]


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
    weaker = [f"weaker: {listed([weakness.id for weakness in report.weaker])}"] if report.weaker else []
    return "; ".join(["--details prints every check, figure and limit", *weaker, *words])


def _last(report: Report | ShortReport, paint: Paint) -> str:
    """The verdict once more: of a window with a figure, epsilon, delta, k_max and the assumptions (`allow=`)."""
    line = report.line
    if not isinstance(report, ShortReport) and report.figures.standing != "not-established":
        line = shortened_line(line, words=4 if report.outcome.startswith("PASS") else 5)
    word, _, rest = line.partition(" ")
    return f"{paint.outcome(word)} {rest}".rstrip() + report.remark
