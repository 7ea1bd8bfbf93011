"""The text format, for people: the verdict, the deciding checks, figures in words, and the limits of the claims.

The first screen answers ten questions (docs/report.md, "Ten questions"). The table of checks follows with `--details`,
and if a check did not pass. The verdict line begins at the left margin. It is the only such line that quotes a file;
every other quoting line is indented or begins with a label, so no file can imitate a verdict.
"""

from __future__ import annotations

import math
import textwrap

from rag_audit._internal.words import counted, instant
from rag_audit.mechanisms.descriptions import description
from rag_audit.report.claims import chosen
from rag_audit.report.explanations import CAVEAT, Cause, cause_of, causes, decisive
from rag_audit.report.meaning import (
    chain_words,
    counted_words,
    factor,
    nearest_words,
    outside_words,
    privacy_words,
    retrieval_words,
    vouched_words,
    weaker_words,
)
from rag_audit.report.model import AttackPoint, Attacks, CheckLine, Report, ShortReport
from rag_audit.report.policy_text import by_exclusion_factor
from rag_audit.report.protection import by_adversary

WIDTH = 100
_SHORTENED = 140
_LABEL = 11
_COLOURS = {"PASS": "32", "FAIL": "31", "UNDECIDED": "33", "UNPROVEN": "33", "UNMET": "33"}
_SHOWN = 3
"""Checks that are explained in full; the others are in the table, and `rag-audit verifier explain` has each."""


def render(report: Report | ShortReport, *, checks: bool = False, colour: bool = False) -> str:
    """The report as text.

    :param checks: show every check and every figure where the window passed too
    :param colour: for a terminal
    """
    paint = Paint(colour)
    if isinstance(report, ShortReport):
        return _short(report, paint)
    word, _, rest = report.line.partition(" ")
    failed = [c for c in report.checks if c.outcome != "pass"]
    lines = [
        (f"{paint.outcome(word)} {rest}" if rest else paint.outcome(word)) + report.remark,
        *alarm_lines(report.attacks),
        "",
    ]
    lines += wrapped(report.sentence)
    lines += [line for warning in report.warnings for line in wrapped(f"WARNING: {warning}", "  ", "    ")]
    lines.append(f"  Verified {instant(report.filing.verified_at)} by rag-audit {report.filing.version}.")
    if failed:
        lines += ["", *_decided(report, failed, paint)]
    lines += ["", *protection_lines(report, paint, every=checks)]
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
    if report.remark:
        lines += ["", report.remark.strip()]
    return "\n".join(lines) + "\n"


def brief(report: Report | ShortReport) -> str:
    """Returns the report in at most four lines: the outcome with its figure or reason, the checked objects, the meaning
    of the figure, and the next step."""
    if not isinstance(report, ShortReport) and report.outcome == "PASS":
        command = " ".join(report.filing.command) or "rag-audit verify"
        lines = [
            *_summary(report),
            f"next: {command} --format text prints the full report, with the limits of a PASS",
        ]
    else:
        lines = [
            f"{report.line}{report.remark}",
            report.sentence,
            *([] if isinstance(report, ShortReport) else _reason(report)),
            f"next: {next_step(report)}",
        ]
    lines[-1] += report.remark
    return "\n".join(lines) + "\n"


def _summary(report: Report) -> list[str]:
    """Returns three lines about a window that passed: the last one is about lists, or without epsilon about absence."""
    counts = report.counts
    receipts = counted(counts.receipts_agreeing, "receipt agrees", "receipts agree")
    label = (
        "PILOT, whose witnesses depend on the provider, so others learn nothing; "
        if report.vouching.pilot
        else ""
    )
    return [
        f"{shortened_line(report.line)}{report.remark}",
        f"checked: all {len(report.checks)} checks of window {report.window.window} passed; {counts.proved} of"
        f" {counts.records} answers are proved; {receipts} with the log",
        f"meaning: {label}{_meaning(report)}",
    ]


def _reason(report: Report) -> list[str]:
    """The line about the check that decided a window that did not pass."""
    check = decisive(report.checks)
    if check is None:
        return []
    return [f"reason: {check.id}: read {shortened(check.actual)}; expected {shortened(check.expected)}"]


def next_step(report: Report | ShortReport) -> str:
    """The first steps of a reader in one line: for a window that did not pass, also the action about the deciding
    check."""
    first, *others = report.next_steps
    check = None if isinstance(report, ShortReport) else decisive(report.checks)
    if check is None:
        return first
    elsewhere = report.outcome == "FAIL" and cause_of(report.checks) is not Cause.WINDOW
    ask = others[0] if (elsewhere or check.explanation is None) and others else ""
    if not ask and check.explanation is not None:
        ask = check.explanation.ask
    return f"{first}; {ask}" if ask else first


def _meaning(report: Report) -> str:
    figures = report.figures
    if figures.eps is not None and math.isfinite(float(figures.eps)):
        pairs = list(zip(report.protections, report.tenants, strict=True))
        protection, tenant = next((pair for pair in pairs if pair[1].tenant == figures.decisive), pairs[0])
        lists = protection.lists
        who = f"{'any number of' if lists.accounts is None else figures.k_max} colluding accounts"
        condition = "if the provider followed its own rules, " if report.vouching.pilot else ""
        if chosen(report.vouching, report.tenants):
            condition = "if the provider did not choose the randomness, which its own witnesses made, "
        words = condition + description(tenant.mechanism).meaning.format(who, factor(float(figures.eps)))
        return words + ("" if lists.delta == "0" else ", apart from delta")
    own = next((p for p in report.protections if p.lists.eps is None), report.protections[0])
    return f"tenant {own.tenant} has {own.lists.figure}; {own.absence.figure}"


def shortened_line(line: str, *, words: int | None = None) -> str:
    """The verdict line up to the decisive tenant or up to some number of words, with every assumption (`allow=`).

    The assumptions stay, because a reader of the shorter line must not take a pilot's PASS for another PASS.

    :param words: number of words in front of the assumptions; None for all words before `mechanisms=`

    >>> shortened_line("PASS eps_audit=2 delta=0 k_max=4 mechanisms=law:noise empty=0 allow=pilot-witnesses")
    'PASS eps_audit=2 delta=0 k_max=4 allow=pilot-witnesses'
    """
    every = line.split(" ")
    end = next((i for i, word in enumerate(every) if word.startswith("mechanisms=")), len(every))
    end = end if words is None else min(words, end)
    return " ".join([*every[:end], *(word for word in every[end:] if word.startswith("allow="))])


def _short(report: ShortReport, paint: Paint) -> str:
    """The report of a run without a full report."""
    word, _, rest = report.line.partition(" ")
    lines = [f"{paint.outcome(word)} {rest}", "", *wrapped(report.sentence)]
    lines.append(f"  Made {instant(report.filing.verified_at)} by rag-audit {report.filing.version}.")
    if (malformed := report.malformed) is not None:
        pairs = [("object", malformed.object), ("read", malformed.actual), ("expected", malformed.expected)]
        lines += ["", paint.bold("unusable input")]
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


class Paint:
    """ANSI colours, or none."""

    def __init__(self, colour: bool) -> None:
        self.colour = colour

    def bold(self, text: str) -> str:
        return f"\x1b[1m{text}\x1b[0m" if self.colour else text

    def outcome(self, word: str) -> str:
        code = _COLOURS.get(word, "33")  # a PASS that promises less than the others is no plain green
        return f"\x1b[1;{code}m{word}\x1b[0m" if self.colour else word


def _row(label: str, texts: list[str], paint: Paint) -> list[str]:
    """A label with its sentences, each on a line of its own."""
    indent = " " * (_LABEL + 2)
    lines = [line for text in texts for line in wrapped(text, indent)]
    if lines:
        lines[0] = f"{paint.bold(f'{label:{_LABEL}}')}  {lines[0].lstrip()}"
    return lines


def _decided(report: Report, failed: list[CheckLine], paint: Paint) -> list[str]:
    """The deciding checks, with their explanation; then the number of other checks that did not pass."""
    deciding = [c for c in failed if c.decides]
    lines = [paint.bold("deciding checks")]
    explained: set[str] = set()
    for check in deciding[:_SHOWN]:
        place = "" if check.at is None else f", at {check.at}"
        lines.append(f"  {check.outcome} {check.id}{shortened(place, 200)}")
        lines.append(f"    read      {shortened(check.actual, 200)}")
        lines.append(f"    expected  {shortened(check.expected, 200)}")
        if check.explanation is not None and check.base not in explained:
            explained.add(check.base)
            lines += wrapped(check.explanation.failed, "    ")
            lines += wrapped(causes(check.explanation), "    ")
            lines += wrapped(f"Next step: {check.explanation.ask}.", "    ")
            lines.append(f"    More: {check.explanation.section}")
    for check in deciding[_SHOWN:]:
        lines += wrapped(f"{check.outcome} {check.id}: read {shortened(check.actual)}", "  ", "      ")
    if cause_of(report.checks) is Cause.FILE and len(failed) > 1:
        lines += wrapped(CAVEAT)
    if others := len(failed) - len(deciding):
        lines.append(
            f"  {counted(others, 'other check')} did not pass and did not decide the verdict: see below"
        )
    return lines


def protection_lines(report: Report, paint: Paint, *, every: bool) -> list[str]:
    """A row for each adversary with its strength and figure, the tenant with the weakest protection first.

    :param every: show each tenant's line; else `_SHOWN` different lines for each adversary
    """
    lines = []
    for name, sentences in by_adversary(report.protections):
        shown = sentences if every else sentences[:_SHOWN]
        more = len(sentences) - len(shown)
        rest = [f"{more:,} more, which --details prints"] if more else []
        lines += _row(name, [*shown, *rest], paint)
    return lines


def _answers(report: Report, paint: Paint) -> list[str]:
    """The answers to the readers' questions, in their order."""
    lines = []
    for label, texts in (
        ("privacy", privacy_words(report)),
        ("signed by", vouched_words(report)),
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


def _filing(report: Report | ShortReport, paint: Paint) -> list[str]:
    """The data for filing the report and for repeating the verification."""
    filing = report.filing
    lines = [paint.bold("filed under")]
    lines += [f"  {f.role:9}  {f.name}  {f.sha256 or 'no file'}" for f in filing.inputs]
    if filing.receipts.files:
        lines.append(f"  {'receipts':9}  {counted(filing.receipts.files, 'file')}  {filing.receipts.sha256}")
    if filing.command:
        lines.append(f"  repeat     {' '.join(filing.command)}")
    if report.signature is not None:
        lines += ["", paint.bold("signature of the verifier")]
        lines += [f"  {line}".rstrip() for line in report.signature.note]
    return lines


def wrapped(text: str, first: str = "  ", rest: str | None = None) -> list[str]:
    """A sentence in lines of at most `WIDTH` characters; words with hyphens are not split.

    :param first: the prefix of the first line, and also of the others if `rest` is None
    """
    indent = first if rest is None else rest
    return textwrap.wrap(text, WIDTH, initial_indent=first, subsequent_indent=indent, break_on_hyphens=False)


def bullets(items: list[str]) -> list[str]:
    """Items as indented lines with a dash."""
    return [line for item in items for line in wrapped(item, "  - ", "    ")]


def check_lines(checks: list[CheckLine]) -> list[str]:
    """Every check with its actual value, and with the expected value if it did not pass."""
    lines = []
    for check in checks:
        place = "" if check.at is None else f"  at {check.at}"
        lines.append(f"{check.outcome:9}  {check.id:24} {shortened(check.actual)}{place}")
        if check.outcome != "pass":
            lines.append(f"{'':11}{'':24} expected {shortened(check.expected, 160)}")
    return lines


def shortened(text: str, limit: int = _SHORTENED) -> str:
    """A text of one line, cut with two dots where it is longer."""
    return text if len(text) <= limit else text[: limit - 2] + ".."


def figure_lines(report: Report) -> list[str]:
    """Every figure, with its name in a verdict's JSON."""
    f = report.figures
    if f.eps is None or f.standing == "not-established":
        return []
    units = {
        "one committed position" if t.documents is None else "one document of a document table"
        for t in report.tenants
    }
    lines = [f"privacy of the list of selected positions when {' or '.join(sorted(units))} changes"]
    for tenant in report.tenants:
        every = tenant.exclusion_factor_all_accounts
        odds = (
            ""
            if tenant.exclusion_factor is None
            else f"; exclusion_factor {tenant.exclusion_factor}, for all accounts {every}"
        )
        lines.append(f"  {tenant.tenant}: {tenant.words}; eps {tenant.eps}{odds}")
    for words in by_exclusion_factor(
        (
            t.tenant,
            t.exclusion_factor,
            t.exclusion_factor_all_accounts,
            None
            if t.documents is None
            else (
                t.documents.positions_per_document,
                t.persists,
                t.exposure is not None and t.exposure.by_chance is not None,
            ),
        )
        for t in report.tenants
    ):
        lines += wrapped(words)
    for tenant in report.tenants:
        if tenant.positions_listed is not None:
            lines.append(
                f"  {tenant.tenant}: at most {tenant.positions_listed:,} of its positions were listed"
            )
        if tenant.chance_listed is not None:
            lines.append(f"  {tenant.tenant}: random bits list a given position to one of {f.k_max} accounts with"
                         f" probability {tenant.chance_listed}")  # fmt: skip
    if f.bounds:
        lines.append("  epsilon of the noise, for tenants with noise:")
    for bound in f.bounds:
        why = "" if bound.reason is None else f"  not valid: {bound.reason}"
        counts = f"  <- {f.name}" if bound.counts else ""
        lines.append(f"  {bound.name.replace('_', ' '):14} eps {bound.eps}{counts}{why}")
    lines.append(f"  one account    eps {f.eps_one_account}")
    if f.eps_all_accounts is not None:
        lines.append(
            f"  {f'all {f.accounts_max} accounts':14} eps {f.eps_all_accounts}  (no assumption on coalitions)"
        )
    if f.eps_realised is not None:
        lines.append(f"  realised       eps {f.eps_realised}  (the ledger's own counts, odometer-corrected)")
    lines.append(
        f"  scores         {f.scores} of at most {f.largest_score}; a score outside counts as the nearer end"
    )
    if f.auc is not None:
        lines.append(
            f"  membership inference by k_max accounts: AUC at most {f.auc}, TPR at 1 % FPR at most {f.tpr_at_fpr_1pct}"
        )
    c = report.counts
    lines.append(f"  accounts {c.accounts}; with their own keys {c.accounts_holding_their_keys};"
                 f" enrolments void or unused {c.enrolments_void_or_unused}")  # fmt: skip
    if f.abandoned:
        lines.append(f"  windows abandoned since the last complete one: {f.abandoned}")
    if f.empty:
        lines.append(f"  windows without a query since the last complete one: {f.empty}")
    return lines


def requirement_lines(report: Report) -> list[str]:
    """Every requirement of trust.toml with the window's value."""
    lines = []
    for r in report.requirements:
        limit = "absent from trust.toml" if r.limit is None else f"{r.kind.replace('-', ' ')} {r.limit}"
        used = "" if r.used is None else f"  {100 * float(r.used):.0f} % used"
        scope = "" if r.scope is None else f"; {r.scope}"
        lines.append(f"  {r.outcome:9}  {r.name:18} {shortened(r.actual, 40)}  ({limit}){used}{scope}")
    return lines


def alarm_lines(attacks: Attacks | None) -> list[str]:
    """Lower bounds above certified epsilons, printed below the verdict line."""
    if attacks is None or not attacks.above_certified:
        return []
    return [
        "",
        "WARNING: a lower bound on epsilon from the provider's attacks is ABOVE the certified epsilon.",
        "The accounting, the engine or the measurement is wrong. The verdict does not determine which of them.",
        *(f"  {line}" for line in attacks.above_certified),
    ]


def attack_lines(attacks: Attacks) -> list[str]:
    """The results of the provider's attacks with the certified figures."""
    lines = [
        f"attacks: {attacks.label}",
        f"  answered by {attacks.answered_by}; {attacks.members} members, {attacks.others} others, seed {attacks.seed}",
    ]
    if attacks.index is not None:
        lines.append(f"  the reference engine had {attacks.index} documents at {attacks.capacity} positions")
    for part in attacks.parts:
        lines += [
            f"  {', '.join(part.tenants)}: {part.mechanism}",
            "  AUC of members against others with its 95 % interval, and AUC from lists only with its maximum",
            f"  {'attack':12} {'questions':>9}  {'no noise':16}  {'accounts':>8}  {'AUC':16}  {'lists / at most':15}"
            "  eps at least / certified",
        ]
        for row in part.rows:
            first = f"{row.attack:12} {row.queries:9}  {_interval(row.without_noise):16}"
            for point in row.points:
                lines.append(f"  {first}  {_point(point)}".rstrip())
                first = " " * len(first)
    if attacks.left_out:
        lines.append(
            f"  omitted results (other mechanisms, defences, or more accounts or questions than the policy allows):"
            f" {attacks.left_out}"
        )
    if any(
        point.eps_at_least is not None for part in attacks.parts for row in part.rows for point in row.points
    ):
        lines.append("  certified: the epsilon of the queries by this verifier's accountant, for lists only")
    return lines


def _point(p: AttackPoint) -> str:
    lists = f"{_share(p.lists_auc)} / {_share(p.lists_auc_at_most)}"
    eps = ""
    if p.eps_at_least is not None and p.eps_certified is not None:
        eps = f"{float(p.eps_at_least):.3f} / {float(p.eps_certified):.4g}"
    return f"{p.accounts:8}  {_interval(p.auc):16}  {lists:15}  {eps}{'  ABOVE' if p.above else ''}"


def _share(value: str | None) -> str:
    return "-" if value is None else f"{float(value):.3f}"


def _interval(value: list[str] | None) -> str:
    if value is None:
        return "-"
    middle, low, high = map(float, value)
    return f"{middle:.3f} {low:.2f}..{high:.2f}"
