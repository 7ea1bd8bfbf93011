"""Write the measured tables of docs/attacks.md.

    python docs/attacks/generate.py attacks/attacks.json [tables.md ..]

`attacks.json` is of `rag-audit lab attack run all`, each `tables.md` what `rag-audit lab attack tables` printed, of
some of the collections. With `--language-model`, each further file is an attacks.json of a run against a language
model, or of the run with the extractive baseline on the same documents. What stands between `<!-- run -->`,
`<!-- tables -->` or `<!-- language model -->`, and `<!-- end -->` is replaced. The comparison of the run's figures with
their bounds, at `<!-- bounds -->`, and the comparison of the papers' figures with those of the tables, at `<!-- papers
-->`, follow from the page, so `python docs/attacks/generate.py` without a file writes them again.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import NormalDist

from rag_audit.lab.attacks.generators.extractive import LABEL
from rag_audit.lab.attacks.tables import MASKS_1, SHADOW_1
from rag_audit.lab.experiments.comparison import NEAR, Bounded, Distances
from rag_audit.lab.experiments.model import Figure, Line
from rag_audit.lab.experiments.statistics import auc_error
from rag_audit.models.attacks import AttackCell, AttackResult, AttackRun

PAGE = Path(__file__).resolve().parents[1] / "attacks.md"
TRIALS = 500
"""Trials of each world in the run, the default of `rag-audit lab attack run`."""
WEAK, STRONG = "noise:1,1,1,1:128", "noise:1,8,64:32"
PLAIN = [
    ("no defence", "none", "none", 1),
    ("Mirabel", "none", "mirabel", 1),
    ("prompt", "none", "prompt", 1),
    ("paraphrase", "none", "paraphrase", 1),
    ("sampling", "sampling:0.7", "none", 1),
    ("sampling, k = 4", "sampling:0.7", "none", 4),
]
CERTIFIED = [
    ("weak noise", WEAK, "none", 1),
    ("weak, k = 4", WEAK, "none", 4),
    ("weak + Mirabel", WEAK, "mirabel", 1),
    ("strong noise", STRONG, "none", 1),
    ("strong, k = 4", STRONG, "none", 4),
]


def of_run(run: AttackRun) -> str:
    """AUCs with and without a certificate, and the lower bounds with the certified ones."""
    result = {(r.attack, _key(r.cell)): r for r in run.results}
    names = list(dict.fromkeys(r.attack for r in run.results))
    parts = []
    for columns in (PLAIN, CERTIFIED):
        rows = [
            [f"`{a}`", str(result[a, columns[0][1:]].queries), *(_auc(result[a, c[1:]]) for c in columns)]
            for a in names
        ]
        parts.append(_table(["attack", "queries", *(c[0] for c in columns)], rows))
    rows = [[f"`{a}`", *(_bound(result[a, c[1:]]) for c in CERTIFIED)] for a in names]
    parts.append("Lower bounds on epsilon from lists, 500 trials of each world, with the certified epsilon of the"
                 " same queries; in brackets\nthe test's AUC on lists and its certified ceiling:")  # fmt: skip
    parts.append(_table(["attack", *(c[0] for c in CERTIFIED)], rows))
    return "\n\n".join(parts)


def _key(cell: AttackCell) -> tuple[str, str, int]:
    return cell.mechanism, cell.defence, cell.accounts


def _auc(result: AttackResult) -> str:
    return f"{result.figures.auc[0]:.2f}"


def _bound(result: AttackResult) -> str:
    b = result.bounds
    if b is None or result.ceiling is None:
        return ""
    return f"{b.lower:.2f} < {b.certified:.4g} ({b.auc:.2f} / {result.ceiling:.2f})"


PAPERS = {
    "masks, GPT-4o-mini": {c: {a: f[1] for a, f in rows.items()} for c, rows in MASKS_1.items()},
    "shadow services, Llama 3": {c: {a: f[0] for a, f in rows.items()} for c, rows in SHADOW_1.items()},
}
"""AUCs of the papers' first tables, by corpus and attack."""


def beside(runs: Sequence[AttackRun]) -> str:
    """AUC and accuracy of each attack with a language model and with the extractive baseline, and the papers' AUCs."""
    rows = []
    for data in dict.fromkeys(run.data for run in runs):
        here = {_baseline(run): {r.attack: r for r in _plain(run)} for run in runs if run.data == data}
        for attack, model in here.get(False, {}).items():
            base = here.get(True, {}).get(attack)
            papers = [paper.get(data, {}).get(attack) for paper in PAPERS.values()]
            rows.append([
                data, f"`{attack}`", str(model.documents),
                *(_interval(r.figures.auc if r else None) for r in (model, base)),
                *("-" if p is None else f"{p:.2f}" for p in papers),
                *(_interval(r.figures.accuracy if r else None) for r in (model, base)),
                "-" if model.retrieval is None else f"{model.retrieval[0]:.2f}",
            ])  # fmt: skip
    heads = ["corpus", "attack", "documents", "AUC, language model", "AUC, extractive baseline",
             *(f"AUC, paper on {name}" for name in PAPERS), "accuracy, language model",
             "accuracy, extractive baseline", "retrieval recall"]  # fmt: skip
    return _table(heads, rows)


def answers(runs: Sequence[AttackRun]) -> str:
    """The form of the answers without a mechanism, and what they repeat of the passages, with and without the guard.
    Attacks that read the same answers share a row, which has the name of the first.
    """
    rows = []
    for run in runs:
        read: set[tuple[str, str]] = set()
        for r in run.results:
            if r.written is None or r.cell.mechanism != "none":
                continue
            same = (r.cell.defence, r.written.model_dump_json())
            if same in read:
                continue
            read.add(same)
            w, f = r.written, r.written.forms
            counts = (f.followed, f.declined, f.ignored, f.repeated, f.empty)
            rows.append([
                run.data, "extractive baseline" if _baseline(run) else "language model", f"`{r.attack}`",
                "guarded" if r.cell.defence == "prompt" else "plain", *map(str, (sum(counts), *counts)),
                "-" if w.copied is None else f"{w.copied[0]:.3f} ({w.copied[1]:.3f} to {w.copied[2]:.3f})",
                "-" if w.verbatim is None else f"{w.verbatim[0]:.2f}", str(w.longest),
            ])  # fmt: skip
    heads = ["corpus", "generator", "attack", "prompt", "answers", "followed", "declined", "ignored", "repeated",
             "empty", "copied", "verbatim", "longest run"]  # fmt: skip
    return _table(heads, rows)


def under(runs: Sequence[AttackRun]) -> str:
    """The attacks on mechanisms: AUCs of a language model and of the baseline, the lower bounds on epsilon with the
    certified ones, and the smallest distances from the certified bounds.
    """
    rows, compared, trials = [], list[Compared](), 0
    for run in runs:
        for r in run.results:
            if r.cell.mechanism == "none" or r.bounds is None:
                continue
            generator, b = "extractive baseline" if _baseline(run) else "language model", r.bounds
            trials, ceiling = b.trials, 1.0 if r.ceiling is None else r.ceiling
            rows.append([
                run.data, generator, f"`{r.cell.mechanism}`", str(r.cell.accounts), f"`{r.attack}`", str(r.documents),
                _interval(r.figures.auc), f"{b.lower:.2f}", f"{b.certified:.4g}", f"{b.auc:.2f}", f"{ceiling:.4f}",
            ])  # fmt: skip
            place = f"{run.data}, {generator}, {r.cell.mechanism}, {r.cell.accounts}, {r.attack}"
            compared.append(Compared(place, b.lower, b.certified, b.auc, ceiling))
    heads = ["corpus", "generator", "mechanism", "accounts", "attack", "documents", "AUC", "lower bound on epsilon",
             "certified epsilon", "AUC of lists", "its certified ceiling"]  # fmt: skip
    return f"{_table(heads, rows)}\n\n{bounds(compared, trials)}" if rows else "No mechanism was attacked."


def _plain(run: AttackRun) -> list[AttackResult]:
    """The results without a mechanism and a defence."""
    return [r for r in run.results if _key(r.cell) == ("none", "none", 1)]


def _baseline(run: AttackRun) -> bool:
    return run.generator.startswith(LABEL)


def _interval(figure: Sequence[float] | None) -> str:
    return "-" if figure is None else f"{figure[0]:.2f} ({figure[1]:.2f} to {figure[2]:.2f})"


@dataclass(frozen=True)
class Compared:
    """An attack's figures on lists as the page prints them, each with its certified bound."""

    place: str
    lower: float
    certified: float
    auc: float
    ceiling: float


_PRINTED = re.compile(r"([\d.]+) < ([\d.]+) \(([\d.]+) / ([\d.]+)\)")


def of_page(page: str) -> list[Compared]:
    """The entries of the page's table of lower bounds."""
    result = []
    for line in page.splitlines():
        name, *cells = [cell.strip() for cell in line.strip("| ").split("|")]
        for (column, *_), cell in zip(CERTIFIED, cells, strict=False):
            if match := _PRINTED.fullmatch(cell):
                result.append(Compared(f"{name.strip('`')}, {column}", *map(float, match.groups())))
    return result


def bounds(compared: Sequence[Compared], trials: int = TRIALS) -> str:
    """The comparison of lower bounds on epsilon, and of AUCs in standard errors, with their certified bounds.

    :param trials: worlds of each kind
    """
    above = [c.place for c in compared if c.lower >= c.certified]
    positive = [c for c in compared if c.lower > 0]
    near = min(positive, key=lambda c: c.certified - c.lower, default=None)
    lines = [
        Line(
            "attacks",
            c.place,
            None,
            Figure("auc", c.auc, auc_error(min(c.auc, 0.995), trials), bound=c.ceiling),
        )
        for c in compared
    ]
    return "\n".join([
        "```",
        f"lower bounds on epsilon: {len(compared)}, of which {len(above)} are above the certified epsilon and"
        f" {len(compared) - len(positive)} are 0;",
        *([] if near is None else [f"  the nearest of the others is {near.lower:g}, which is"
                                   f" {near.certified - near.lower:.3g} below ({near.place})"]),
        *Bounded.of("AUC", lines).text(),
        "```",
    ])  # fmt: skip


_PAIR = re.compile(r"([\d.]+) ± ([\d.]+) \(([\d.]+)\)")
_HALF_WIDTH = NormalDist().inv_cdf(0.975)
"""Half the width of a 95 % interval, in standard errors."""


def papers(page: str) -> str:
    """The distances of the papers' figures from those of the page's tables, one unit at a time, each figure once.

    The papers print no errors, so a distance has only the standard error of our figure. A figure without spread in its
    bootstrap samples has no distance.
    """
    part = re.search(r"<!-- tables -->\n(.*?)<!-- end -->", page, re.DOTALL)
    found: dict[tuple[str, ...], tuple[str, float, float, float]] = {}
    for title, (heads, _, *rows) in _titled(part[1] if part else ""):
        paper = title.strip("*").partition(",")[0]
        columns = [name.strip() for name in heads.strip("| ").split("|")]
        for row in rows:
            cells = [cell.strip() for cell in row.strip("| ").split("|")]
            names = [cell for cell in cells if "±" not in cell and not cell.startswith("-")]
            for column, cell in zip(columns, cells, strict=True):
                if match := _PAIR.fullmatch(cell):
                    figure = _figure(title, column)
                    value, half, theirs = map(float, match.groups())
                    found.setdefault((paper, *names, figure), (figure, value, half / _HALF_WIDTH, theirs))
    lines = ["```"]
    for unit in dict.fromkeys(figure.partition(",")[0] for figure, *_ in found.values()):
        mine = [f[1:] for f in found.values() if f[0].partition(",")[0] == unit]
        spread = [(value - theirs) / error for value, error, theirs in mine if error > 0]
        far = [(_line(unit), distance) for distance in spread if abs(distance) > NEAR]
        lines.append(Distances(len(spread), far).text(unit))
        if len(mine) > len(spread):
            lines.append(f"  and {len(mine) - len(spread)} figures without a standard error")
    return "\n".join([*lines, "```"])


def _figure(title: str, column: str) -> str:
    """The name of a table's figure, which two tables of one paper may share."""
    if title.strip("*").endswith(": AUC"):
        return "AUC" if column == "no defence" else f"AUC, {column}"
    return f"KS, {column}" if title.strip("*").endswith(": KS") else column


def _line(unit: str) -> Line:
    return Line("papers", unit, None, Figure(unit, 0.0, 0.0))


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def joined(texts: Sequence[str]) -> str:
    """The tables of several runs over different collections as one: each table's rows one after another."""
    tables: dict[str, list[str]] = {}
    for text in texts:
        for title, lines in _titled(text):
            tables.setdefault(title, lines[:2]).extend(lines[2:])
    return "\n\n".join("\n".join([title, "", *lines]) for title, lines in tables.items())


def _titled(text: str) -> Iterator[tuple[str, list[str]]]:
    title, lines = "", list[str]()
    for line in [*text.splitlines(), "**"]:
        if line.startswith("**"):
            if lines:
                yield title, lines
            title, lines = line, []
        elif line.startswith("|"):
            lines.append(line)


def main() -> None:
    """Rewrite the page."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("run", type=Path, nargs="?")
    parser.add_argument("tables", type=Path, nargs="*")
    parser.add_argument("--language-model", type=Path, nargs="+", default=[])
    chosen = parser.parse_args()
    page = PAGE.read_text()
    if chosen.run:
        page = _replaced(page, "run", of_run(AttackRun.load(chosen.run)))
    if chosen.tables:
        page = _replaced(page, "tables", joined([path.read_text() for path in chosen.tables]))
    if chosen.language_model:
        runs = [AttackRun.load(path) for path in chosen.language_model]
        page = _replaced(page, "language model", f"{beside(runs)}\n\n{answers(runs)}\n\n{under(runs)}")
    page = _replaced(page, "bounds", bounds(of_page(page)))
    PAGE.write_text(_replaced(page, "papers", papers(page)))


def _replaced(page: str, name: str, text: str) -> str:
    mark = re.compile(rf"(<!-- {name} -->\n).*?(<!-- end -->)", re.DOTALL)
    page, count = mark.subn(lambda m: f"{m[1]}{text}\n{m[2]}", page)
    if count != 1:
        raise SystemExit(f"{PAGE} has no place for {name}")
    return page


if __name__ == "__main__":
    main()
