"""A run's results as a table for people, CSV for programs, and a section for a report page."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence

from rag_audit.lab.attacks.cells import Cell
from rag_audit.lab.attacks.mechanisms import ALL
from rag_audit.lab.attacks.metrics import Figure
from rag_audit.lab.attacks.quality import Form
from rag_audit.lab.attacks.runner import Result, least_distance, refuted

COVERS = (
    "a certified figure covers the lists: it holds for what an answer says of a listed text only if that text counts as"
    " known, as it does in the worlds from which the lower bounds are measured"
)
COPIED = (
    "copied: the average share of a returned passage's five-word sequences that the answer repeats;"
    " verbatim: the share of answers with a run of at least five such words; longest: words of the longest run."
    " Words of the question do not count. No certified figure covers this channel"
)
_COLUMNS = ("auc", "tpr_at_1pct", "accuracy", "adjusted_accuracy", "precision", "recall", "f1", "ks")


def table(results: Sequence[Result]) -> list[str]:
    """A line for each attack in each cell."""
    head = (
        f"{'attack':10} {'cell':34} {'AUC':>18} {'TPR@1%':>7} {'acc':>6} {'adj':>6} {'F1':>6} {'KS':>6}"
        f" {'found':>6} {'eps from lists':>14} {'certified':>10} {'below by':>9}"
    )
    return [head, *(_line(r) for r in results), *_answers(results)]


def _answers(results: Sequence[Result]) -> list[str]:
    """A line for the answers of each attack in each cell: how many have which form, and what they repeat."""
    written = [(r, r.written) for r in results if r.written is not None]
    if not written:
        return []
    head = (
        f"{'attack':10} {'cell':34} {'answers':>8} "
        + " ".join(f"{form:>9}" for form in Form)
        + f" {'copied':>18} {'verbatim':>9} {'longest':>8}"
    )
    lines = ["", head]
    for r, w in written:
        share = "-" if w.copied is None else f"{w.copied[0]:.3f} [{w.copied[1]:.2f}, {w.copied[2]:.2f}]"
        verbatim = "-" if w.verbatim is None else f"{w.verbatim[0]:.3f}"
        lines.append(
            f"{r.attack:10} {r.cell.label:34} {w.count:8} "
            + " ".join(f"{w.forms[form]:9}" for form in Form)
            + f" {share:>18} {verbatim:>9} {w.longest:8}"
        )
    return [*lines, COPIED]


def _line(r: Result) -> str:
    f, b = r.figures, r.bounds
    auc = f"{f['auc'][0]:.3f} [{f['auc'][1]:.2f}, {f['auc'][2]:.2f}]"
    result = "-" if r.retrieval is None else f"{r.retrieval[0]:.3f}"
    eps = ("-", "-", "-") if b is None else (f"{b.lower:.3f}", number(b.certified), number(b.distance))
    return (
        f"{r.attack:10} {r.cell.label:34} {auc:>18} {f['tpr_at_1pct'][0]:7.3f} {f['accuracy'][0]:6.3f}"
        f" {f['adjusted_accuracy'][0]:6.3f} {f['f1'][0]:6.3f} {f['ks'][0]:6.3f} {result:>6}"
        f" {eps[0]:>14} {eps[1]:>10} {eps[2]:>9}"
    )


def number(value: float) -> str:
    """Four significant digits, `inf` for infinity."""
    return "inf" if math.isinf(value) else f"{value:.4g}"


def verdict(results: Sequence[Result]) -> list[str]:
    """The comparison of the lower bounds with the certified ones, in sentences."""
    wrong, near = refuted(results), least_distance(results)
    if wrong:
        return [
            f"{r.attack} in cell {r.cell.label}: the lower bound {r.bounds.lower:.3f} lies above the certified"
            f" {number(r.bounds.certified)} by {-r.bounds.distance:.3f}"
            for r in wrong
            if r.bounds is not None
        ]
    if near is None or near.bounds is None:
        return ["no cell has a certified bound for a comparison"]
    return [
        f"every lower bound is below the certified bound; the nearest is {near.attack} in cell {near.cell.label}:"
        f" {near.bounds.lower:.3f} against {number(near.bounds.certified)}, below by {number(near.bounds.distance)}",
        COVERS,
    ]


def csv_of(results: Sequence[Result]) -> bytes:
    """Every figure with its interval, a line for each attack in each cell."""
    out = io.StringIO()
    names = [f"{c}{end}" for c in (*_COLUMNS, "retrieval") for end in ("", "_low", "_high")]
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(
        ["attack", "mechanism", "defence", "accounts", "queries", "documents", *names, "hidden_members",
         "hidden_others", "lists_auc", "certified_auc", "eps_lower", "eps_gaussian", "eps_certified", "eps_audit",
         "trials", *(f"answers_{form}" for form in Form), "copied", "copied_low", "copied_high", "verbatim",
         "longest_run"]
    )  # fmt: skip
    for r in results:
        b = r.bounds
        figures: list[Figure | None] = [*(r.figures[c] for c in _COLUMNS), r.retrieval]
        values = [f"{x:.6g}" for f in figures for x in (f or (math.nan,) * 3)]
        bounds = [""] * 6 if b is None else [b.lower, b.gaussian, b.certified, b.eps_audit, b.trials]
        writer.writerow(
            [r.attack, r.cell.mechanism, r.cell.defence, r.cell.accounts, r.queries, r.documents, *values,
             *(f"{h:.6g}" for h in r.hidden), "" if b is None else f"{b.auc:.6g}",
             "" if r.ceiling is None else f"{r.ceiling:.6g}", *bounds[:5], *_written(r)]
        )  # fmt: skip
    return out.getvalue().encode()


def _written(r: Result) -> list[object]:
    """The last columns of a line: the forms of the answers, and what they repeat."""
    w = r.written
    if w is None:
        return [""] * (len(Form) + 5)
    copied = [""] * 3 if w.copied is None else [f"{x:.6g}" for x in w.copied]
    return [*(w.forms[form] for form in Form), *copied, "" if w.verbatim is None else f"{w.verbatim[0]:.6g}",
            w.longest]  # fmt: skip


def section(results: Sequence[Result], label: str) -> str:
    """A section in Markdown: for each attack its AUC without noise, with it, and with the coalition, and the ceiling.

    :param label: the name of the answering target, such as the generator's label
    """
    by = {(r.attack, r.cell): r for r in results}
    attacks = list(dict.fromkeys(r.attack for r in results))
    cells = [c for c in dict.fromkeys(r.cell for r in results) if c.defence == "none"]
    lines = [
        "## Results of published attacks",
        "",
        f"Answered by: {label}. AUC of members against others with its 95 % interval, behind the semicolon"
        " that of the same test on the lists alone, and behind the slash its certified ceiling.",
        "",
        "| attack | " + " | ".join(_short(c) for c in cells) + " |",
        "|---|" + "---|" * len(cells),
    ]
    for attack in attacks:
        row = [_auc(by.get((attack, cell))) for cell in cells]
        lines.append(f"| {attack} | " + " | ".join(row) + " |")
    lines += ["", *_forms_of(results)]
    return "\n".join([*lines, "", *(f"{line[0].upper()}{line[1:]}." for line in verdict(results)), ""])


def _forms_of(results: Sequence[Result]) -> list[str]:
    """The table of the answers' forms, and of what they repeat of the passages, for every attack in every cell."""
    written = [(r, r.written) for r in results if r.written is not None]
    if not written:
        return []
    lines = [
        "| attack | cell | answers | " + " | ".join(Form) + " | copied | verbatim | longest |",
        "|---|---|" + "---|" * (len(Form) + 4),
    ]
    for r, w in written:
        copied = "" if w.copied is None else f"{w.copied[0]:.3f} ({w.copied[1]:.2f} to {w.copied[2]:.2f})"
        verbatim = "" if w.verbatim is None else f"{w.verbatim[0]:.3f}"
        row = [
            r.attack,
            r.cell.label,
            w.count,
            *(w.forms[form] for form in Form),
            copied,
            verbatim,
            w.longest,
        ]
        lines.append("| " + " | ".join(map(str, row)) + " |")
    return [*lines, "", f"{COPIED[0].upper()}{COPIED[1:]}."]


def _short(cell: Cell) -> str:
    names = {usual.option: usual.words for attacked in ALL for usual in attacked.usual}
    return f"{names.get(cell.mechanism, cell.mechanism)}, k = {cell.accounts}"


def _auc(r: Result | None) -> str:
    if r is None:
        return ""
    value, low, high = r.figures["auc"]
    lists = "" if r.bounds is None else f"; {r.bounds.auc:.3f}"
    ceiling = "" if r.ceiling is None else f" / {r.ceiling:.3f}"
    return f"{value:.3f} ({low:.2f} to {high:.2f}){lists}{ceiling}"
