"""Evaluates a folder of results: JSON, CSV and a picture of each experiment, and a table with the paper's figures."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence

from rag_audit._internal.canonical import Json, jcs
from rag_audit._internal.durable import replace_file
from rag_audit.lab.experiments.model import Cell, Experiment, Figure, Line, Results, Row
from rag_audit.lab.experiments.plots import save
from rag_audit.lab.experiments.store import Store


def lines(results: Results, experiment: Experiment) -> list[Line]:
    """An experiment's figures: first the figures of its cells, then the derived ones."""
    of_cells = [
        Line(experiment.name, cell.key, cell.column, figure)
        for cell, figures in results[experiment.name]
        for figure in figures
    ]
    rows: Sequence[Row] = experiment.derive(results) if has_what_it_reads(results, experiment) else ()
    return of_cells + [Line(experiment.name, row.cell, row.column, row.figure, derived=True) for row in rows]


def has_what_it_reads(results: Results, experiment: Experiment) -> bool:
    """Whether the results for the experiment's own figures exist."""
    return all(results.get(name) for name in (experiment.after or (experiment.name,)))


def write(store: Store, results: Results, chosen: Sequence[Experiment], *, pictures: bool) -> None:
    """Write NAME.json, NAME.csv and NAME.svg of each experiment into the folder."""
    for experiment in chosen:
        result = lines(results, experiment)
        cells = [cell for cell, _ in results[experiment.name]]
        value: dict[str, Json] = {
            **store.header(),
            "experiment": experiment.name,
            "place": experiment.place,
            "title": experiment.title,
            "seconds": f"{store.seconds(experiment.name, cells):.1f}",
            "cells": [_cell_json(cell, figures) for cell, figures in results[experiment.name]],
            "derived": [{"name": line.cell, "figure": line.figure.as_json()} for line in result
                        if line.cell not in {cell.key for cell in cells}],
        }  # fmt: skip
        replace_file(store.folder / f"{experiment.name}.json", jcs(value) + b"\n")
        replace_file(store.folder / f"{experiment.name}.csv", csv_of(result))
        if pictures and experiment.draw is not None and result and has_what_it_reads(results, experiment):
            save(experiment.draw, results, store.folder / f"{experiment.name}.svg")


def _cell_json(cell: Cell, figures: Sequence[Figure]) -> Json:
    parameters: dict[str, Json] = {
        k: repr(v) if isinstance(v, float) else v for k, v in cell.parameters.items()
    }
    return {
        "cell": cell.key,
        "column": cell.column,
        "parameters": parameters,
        "figures": [figure.as_json() for figure in figures],
    }


COLUMNS = ("experiment", "cell", "column", "figure", "value", "error", "paper", "from_paper_se", "theory",
           "from_theory_se", "bound", "room", "note")  # fmt: skip


def csv_of(actual: Sequence[Line]) -> bytes:
    """The figures as CSV, one a row."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for line in actual:
        f = line.figure
        reals = (f.value, f.error, f.paper, f.from_paper, f.theory, f.from_theory, f.bound, f.room)
        writer.writerow(
            [line.experiment, line.cell, line.column or "", f.name, *(short(r) for r in reals), f.note]
        )
    return text.getvalue().encode()


def short(value: float | None) -> str:
    """A real in at most six significant digits, or an empty text."""
    return "" if value is None else f"{value:.6g}"


def table(actual: Sequence[Line]) -> list[str]:
    """The figures in columns for people."""
    rows = [
        ("cell", "figure", "measured", "s.e.", "paper", "s.e. off", "theory", "s.e. off", "bound", "room")
    ]
    for line in actual:
        f = line.figure
        rows.append((
            _label(line), f.name, _four(f.value), _four(f.error or None), _four(f.paper), _two(f.from_paper),
            _four(f.theory), _two(f.from_theory), _four(f.bound), _four(f.room),
        ))  # fmt: skip
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return [
        _padded(row, widths) + (f"  {note}" if note else "")
        for row, note in zip(rows, _notes(actual), strict=True)
    ]


def _label(line: Line) -> str:
    """The cell, with the column where its name does not have it."""
    return (
        line.cell
        if line.column is None or line.cell.startswith(line.column)
        else f"{line.column}: {line.cell}"
    )


def _padded(row: Sequence[str], widths: Sequence[int]) -> str:
    first = [word.ljust(width) for word, width in zip(row[:2], widths[:2], strict=True)]
    rest = [word.rjust(width) for word, width in zip(row[2:], widths[2:], strict=True)]
    return "  ".join([*first, *rest]).rstrip()


def _notes(actual: Sequence[Line]) -> Iterator[str]:
    yield ""
    yield from (line.figure.note for line in actual)


def _four(value: float | None) -> str:
    return "" if value is None else f"{value:.4f}" if abs(value) < 1000 else f"{value:.0f}"


def _two(value: float | None) -> str:
    return "" if value is None else f"{value:+.2f}"


def between(first: Sequence[Line], second: Sequence[Line]) -> tuple[list[str], float]:
    """Two runs figure by figure, and the root mean square of their distances in standard errors, about 1 for runs that
    differ only in their seeds. Figures that are the same in both, such as rates of 1, are omitted.
    """
    other = {(line.experiment, line.cell, line.column, line.figure.name): line.figure for line in second}
    rows, squares = [], []
    for line in first:
        f, g = line.figure, other.get((line.experiment, line.cell, line.column, line.figure.name))
        total = 0.0 if g is None else (f.error**2 + g.error**2) ** 0.5
        if g is not None and total > 0 and f.value != g.value:
            distance = (f.value - g.value) / total
            squares.append(distance * distance)
            rows.append(f"{line.place}: {_four(f.value)} and {_four(g.value)} ({distance:+.2f} s.e.)")
    return rows, (sum(squares) / len(squares)) ** 0.5 if squares else 0.0
