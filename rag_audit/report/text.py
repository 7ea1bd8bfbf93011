"""The text face, for people: the verdict, what decided it, figures in words, and what is outside.

The first screen answers ten questions (docs/report.md, "Ten questions"). The table of checks follows with `--checks`,
and where something did not pass. The verdict line stands at the left margin and is the only line there that quotes a
file; everything else that does is indented or has a label before it, so no file can write a verdict.
"""

from __future__ import annotations

from rag_audit._internal.words import counted, instant
from rag_audit.report.cause import CAVEAT, Cause, cause_of
from rag_audit.report.detail import (
    alarm_lines,
    attack_lines,
    bullets,
    check_lines,
    figure_lines,
    requirement_lines,
    shortened,
    wrapped,
)
from rag_audit.report.meaning import (
    chain_words,
    counted_words,
    nearest_words,
    outside_words,
    privacy_words,
    retrieval_words,
    vouched_words,
    weaker_words,
)
from rag_audit.report.model import CheckLine, Report, ShortReport
from rag_audit.report.strength import protection_words

_LABEL = 11
_COLOURS = {"PASS": "32", "FAIL": "31", "UNDECIDED": "33", "UNPROVEN": "33", "UNMET": "33"}
_SHOWN = 3
"""Checks that are explained in full; the others are in the table, and `rag-audit explain` has each."""


def render(report: Report, *, checks: bool = False, colour: bool = False) -> str:
    """The report as text.

    :param checks: show every check and every figure where the window passed too
    :param colour: for a terminal
    """
    paint = _Paint(colour)
    word, _, rest = report.line.partition(" ")
    failed = [c for c in report.checks if c.outcome != "pass"]
    lines = [
        f"{paint.outcome(word)} {rest}" if rest else paint.outcome(word),
        *alarm_lines(report.attacks),
        "",
    ]
    lines += wrapped(report.sentence)
    lines += wrapped(protection_words(report.protection))
    lines.append(f"  Verified {instant(report.filing.verified_at)} by rag-audit {report.filing.version}.")
    if failed:
        lines += ["", *_decided(report, failed, paint)]
    lines += ["", *_answers(report, paint)]
    lines += ["", *_filing(report, paint)]
    if report.claims:
        lines += ["", paint.bold("this shows"), *bullets([claim.words for claim in report.claims])]
    if report.notes:
        lines += ["", paint.bold("notes"), *bullets(report.notes)]
    if checks or failed:
        lines += ["", paint.bold("checks"), *check_lines(report.checks)]
    if checks:
        lines += ["", paint.bold("requirements of trust.toml"), *requirement_lines(report)]
    if checks and (figures := figure_lines(report)):
        lines += ["", *figures]
    if report.attacks is not None:
        lines += ["", *attack_lines(report.attacks)]
    lines += ["", paint.bold("this does not prove"), *bullets(report.does_not_prove)]
    return "\n".join(lines) + "\n"


def render_short(report: ShortReport, *, colour: bool = False) -> str:
    """The short report of a run that has no whole one, as text."""
    paint = _Paint(colour)
    word, _, rest = report.line.partition(" ")
    lines = [f"{paint.outcome(word)} {rest}", "", *wrapped(report.sentence)]
    lines.append(f"  Made {instant(report.filing.verified_at)} by rag-audit {report.filing.version}.")
    if (found := report.malformed) is not None:
        pairs = [("at", found.object), ("expected", found.expected), ("actual", found.actual)]
        lines += ["", paint.bold("what could not be used")]
        lines += [f"  {label:9} {shortened(text, 200)}" for label, text in pairs if text is not None]
    lines += ["", *_row("now", report.next_steps, paint)]
    lines += ["", *_filing(report, paint)]
    if report.notes:
        lines += ["", paint.bold("notes"), *bullets(report.notes)]
    if report.checks:
        lines += ["", paint.bold("checks"), *check_lines(report.checks)]
    if report.does_not_prove:
        lines += ["", paint.bold("this does not prove"), *bullets(report.does_not_prove)]
    return "\n".join(lines) + "\n"


class _Paint:
    """ANSI colours, or none."""

    def __init__(self, colour: bool) -> None:
        self.colour = colour

    def bold(self, text: str) -> str:
        return f"\x1b[1m{text}\x1b[0m" if self.colour else text

    def outcome(self, word: str) -> str:
        code = _COLOURS.get(word, "33")  # a PASS that promises less than the others is no plain green
        return f"\x1b[1;{code}m{word}\x1b[0m" if self.colour else word


def _row(label: str, texts: list[str], paint: _Paint) -> list[str]:
    """A label with its sentences, each on a line of its own."""
    indent = " " * (_LABEL + 2)
    lines = [line for text in texts for line in wrapped(text, indent)]
    if lines:
        lines[0] = f"{paint.bold(f'{label:{_LABEL}}')}  {lines[0].lstrip()}"
    return lines


def _decided(report: Report, failed: list[CheckLine], paint: _Paint) -> list[str]:
    """What decided the verdict, with its explanation; then how many others did not pass."""
    deciding = [c for c in failed if c.decides]
    lines = [paint.bold("what decided it")]
    for check in deciding[:_SHOWN]:
        place = "" if check.at is None else f", at {check.at}"
        lines.append(f"  {check.outcome} {check.id}{shortened(place, 200)}")
        lines.append(f"    found     {shortened(check.found, 200)}")
        lines.append(f"    expected  {shortened(check.expected, 200)}")
        if check.explanation is not None:
            lines += wrapped(check.explanation.failed, "    ")
            lines += wrapped(f"Honest causes: {'; '.join(check.explanation.honest_causes)}.", "    ")
            lines += wrapped(f"Ask: {check.explanation.ask}.", "    ")
            lines.append(f"    Read: {check.explanation.section}")
    for check in deciding[_SHOWN:]:
        lines.append(f"  {check.outcome} {check.id}: found {shortened(check.found)}")
    if cause_of(report.checks) is Cause.FILE and len(failed) > 1:
        lines += wrapped(CAVEAT)
    if others := len(failed) - len(deciding):
        lines.append(
            f"  {counted(others, 'other check')} did not pass either, and decided nothing: see below"
        )
    return lines


def _answers(report: Report, paint: _Paint) -> list[str]:
    """The answers to the readers' questions, in their order."""
    lines = []
    for label, texts in (
        ("privacy", privacy_words(report)),
        ("vouched by", vouched_words(report)),
        ("counted", counted_words(report)),
        ("limits", nearest_words(report)),
        ("weaker", weaker_words(report)),
        ("retrieval", retrieval_words(report)),
        ("outside", outside_words(report)),
        ("chain", chain_words(report)),
        ("now", report.next_steps),
    ):
        lines += _row(label, texts, paint)
    return lines


def _filing(report: Report | ShortReport, paint: _Paint) -> list[str]:
    """By what the report can be filed and checked again."""
    filing = report.filing
    lines = [paint.bold("filed under")]
    lines += [f"  {f.role:9}  {f.name}  {f.sha256 or 'no file'}" for f in filing.inputs]
    if filing.receipts.files:
        lines.append(f"  {'receipts':9}  {counted(filing.receipts.files, 'file')}  {filing.receipts.sha256}")
    if filing.command:
        lines.append(f"  again      {' '.join(filing.command)}")
    return lines
