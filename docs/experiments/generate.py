"""Write the tables and pictures of docs/experiments.md, and figures.csv, from folders of results.

    python docs/experiments/generate.py [experiment-results/full ..] [--against ANOTHER-SEED]

Of several folders a later one's cells replace an earlier one's. Without a folder, the tables and the summary follow
from figures.csv.

Between `<!-- table NAME [PREFIX ..] -->` and `<!-- end -->` stands the table of an experiment, of the figures whose
names start so, and of the cells whose names start as an @PREFIX; `<!-- summary -->` and `<!-- against -->` have the
ends of both reports.
"""

from __future__ import annotations

import argparse
import csv
import io
import re
import shutil
from collections.abc import Sequence
from pathlib import Path

from rag_audit.lab.experiments import comparison, report
from rag_audit.lab.experiments.model import Column, Figure, Line
from rag_audit.lab.experiments.registry import EXPERIMENTS
from rag_audit.lab.experiments.run import collect
from rag_audit.lab.experiments.store import Store

HERE = Path(__file__).resolve().parent
PAGE = HERE.parent / "experiments.md"
RECORD = HERE / "figures.csv"
PLACE = ("experiment", "cell", "column", "derived", "name", "note")
REALS = ("value", "error", "paper", "paper_error", "theory", "bound")
MARK = re.compile(r"<!-- (table|summary|against)([^>]*) -->\n.*?<!-- end -->", re.DOTALL)


def load(folder: Path) -> list[Line]:
    """All figures of a folder."""
    everything = list(EXPERIMENTS.values())
    results = collect(Store.open(folder), everything)
    return [
        line for e in everything if report.has_what_it_reads(results, e) for line in report.lines(results, e)
    ]


def together(folders: Sequence[Path]) -> list[Line]:
    """The figures of several folders, a later one's cells in place of an earlier one's."""
    by_cell: dict[tuple[str, str, str | None], list[Line]] = {}
    for folder in folders:
        of_folder: dict[tuple[str, str, str | None], list[Line]] = {}
        for line in load(folder):
            of_folder.setdefault((line.experiment, line.cell, line.column), []).append(line)
        by_cell.update(of_folder)
    return [
        line for name in EXPERIMENTS for key, lines in by_cell.items() if key[0] == name for line in lines
    ]


def stored(lines: Sequence[Line]) -> str:
    """Figures as CSV, reals with all digits."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*PLACE, *REALS])
    for line in lines:
        f = line.figure
        reals = [getattr(f, name) for name in REALS]
        place = [
            line.experiment,
            line.cell,
            line.column or "",
            "derived" if line.derived else "",
            f.name,
            f.note,
        ]
        writer.writerow([*place, *("" if real is None else repr(float(real)) for real in reals)])
    return text.getvalue()


def recorded(text: str) -> list[Line]:
    """The inverse of `stored`."""
    result = []
    for row in csv.DictReader(io.StringIO(text)):
        column: Column | None = "paper" if row["column"] == "paper" else "engine" if row["column"] else None
        reals = {name: float(row[name]) for name in REALS if row[name]}
        figure = Figure(row["name"], note=row["note"], **reals)
        result.append(Line(row["experiment"], row["cell"], column, figure, bool(row["derived"])))
    return result


def summary(lines: Sequence[Line]) -> str:
    """The comparison of all figures, as the page has it."""
    return "```\n" + "\n".join(comparison.summarise(lines).text()) + "\n```"


def four(value: float | None) -> str:
    """A real as the tables have it."""
    return "" if value is None else f"{value:.4f}" if abs(value) < 100 else f"{value:.0f}"


def table(lines: Sequence[Line]) -> str:
    """Figures as a table, without the columns that none of them fills."""
    heads = ["column", "cell", "figure", "measured", "paper", "s.e. off", "theory", "s.e. off", "bound"]
    rows = []
    for line in lines:
        f, cell = line.figure, line.cell.removeprefix(f"{line.column}-")
        words = f.name.replace("_", " ") + (f" ({f.note})" if f.note else "")
        apart = ["" if d is None else f"{d:+.1f}" for d in (f.from_paper, f.from_theory)]
        measured = four(f.value) + (f" ± {four(f.error)}" if f.error else "")
        compared = [four(f.paper), apart[0], four(f.theory), apart[1], four(f.bound)]
        rows.append([line.column or "", cell, words, measured, *compared])
    kept = [i for i in range(len(heads)) if any(row[i] for row in rows)]
    lined = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(row[i] for i in kept) + " |" for row in lined)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folders", type=Path, nargs="*")
    parser.add_argument("--against", type=Path, nargs="*", default=[])
    requested = parser.parse_args()
    if requested.folders:
        RECORD.write_text(stored(together(requested.folders)), "utf-8")
    result, other = recorded(RECORD.read_text("utf-8")), together(requested.against)

    def written(match: re.Match[str]) -> str:
        kind, (name, *prefixes) = match[1], (match[2].split() or [""])
        if kind == "summary":
            text = summary(result)
        elif kind == "against" and not other:
            return match[0]
        elif kind == "against":
            both = {line.experiment for line in other}
            rows, spread = report.between([line for line in result if line.experiment in both], other)
            far = [row for row in rows if abs(float(row.rpartition("(")[2].split()[0])) > 3]
            said = f"{len(rows)} figures differ between the runs, by {spread:.2f} standard errors in root mean square;"
            text = "\n".join(["```", said, "further apart than three:", *(far or ["none"]), "```"])
        else:
            figures = tuple(word for word in prefixes if not word.startswith("@")) or ("",)
            cells = tuple(word[1:] for word in prefixes if word.startswith("@")) or ("",)
            text = table([
                line for line in result if line.experiment == name and line.figure.name.startswith(figures)
                and line.cell.removeprefix(f"{line.column}-").startswith(cells)
            ])  # fmt: skip
        return f"<!-- {kind}{match[2]} -->\n{text}\n<!-- end -->"

    PAGE.write_text(MARK.sub(written, PAGE.read_text("utf-8")), "utf-8")
    for folder in requested.folders:
        for picture in sorted(folder.glob("*.svg")):
            shutil.copyfile(picture, HERE / picture.name)


if __name__ == "__main__":
    main()
