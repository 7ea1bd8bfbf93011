"""`rag-audit lab experiment`: the paper's experiments, on its idealised mechanism and on the engine."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from rag_audit.cli.common import PATH, Group, emit, json_option, progress, say
from rag_audit.cli.options import PROCESSES, choice_option, default_option, flag_option, path_option

if TYPE_CHECKING:
    from rag_audit.lab.experiments.model import Experiment, Line, Results

OUT = Path("experiment-results")


@click.group(cls=Group)
def experiment() -> None:
    """Repeat the paper's figures and tables, also with the audited engine."""


@experiment.command("list")
@json_option
def list_(as_json: bool) -> None:
    """Every experiment, with its place in the paper."""
    from rag_audit.lab.experiments.registry import EXPERIMENTS

    value = {
        name: {"place": e.place, "title": e.title, "cells": len(e.cells("full"))}
        for name, e in EXPERIMENTS.items()
    }
    width = max(map(len, EXPERIMENTS))
    emit(value, as_json, [f"{name.ljust(width)}  {e.title} ({e.place})" for name, e in EXPERIMENTS.items()])


@experiment.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME..|all")
@choice_option(
    "--size",
    choices=["test", "full"],
    default="test",
    help="size of the experiments; full is the size of the paper",
)
@default_option("--seed", type=click.IntRange(0, 2**31 - 1), default=1, help="seed of every draw of the run")
@default_option("--out", type=PATH, default=OUT, help="folder of results, of one size and seed")
@default_option("--jobs", type=PROCESSES, default=1, help="processes of this machine")
@click.option("--executor", "address", help="dask://host:port or ray://host:port, as for `provider prove`")
@flag_option("--no-pictures", help="draw no figures, so that matplotlib is not needed")
@json_option
def run(
    names: tuple[str, ...],
    size: str,
    seed: int,
    out: Path,
    jobs: int,
    address: str | None,
    no_pictures: bool,
    as_json: bool,
) -> None:
    """Measure experiments cell by cell, and print them beside the paper's figures.

    Every finished cell is kept: the same command goes on where it was interrupted.
    """
    # Cells run in parallel and their matrices are small: a second BLAS thread would only wait for the first.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from rag_audit.lab.experiments import registry, report
    from rag_audit.lab.experiments.model import Size
    from rag_audit.lab.experiments.recall import have_texts
    from rag_audit.lab.experiments.run import check_needs, collect, measure, with_those_before
    from rag_audit.lab.experiments.store import Store
    from rag_audit.proofs.executors import open_executor

    chosen = with_those_before(registry.choose(names))
    check_needs(chosen, pictures=not no_pictures)
    if not have_texts() and {e.name for e in chosen} & {"recall", "hnsw"}:
        say("without the texts of RAG_AUDIT_DATA, the run omits recall and the real collection of hnsw")
    store = Store.create(out, cast(Size, size), seed)
    if jobs == 1 and address is None:
        measure(store, chosen, progress=progress("cells"))
    else:
        with open_executor(address, workers=jobs) as executor:
            measure(store, chosen, executor, progress=progress("cells"))
    results = collect(store, chosen)
    report.write(store, results, chosen, pictures=not no_pictures)
    _print(chosen, results, as_json)


@experiment.command("report")
@click.argument("folder", type=PATH, default=OUT)
@path_option("--against", help="a second run, to compare figure by figure")
@json_option
def report_(folder: Path, against: Path | None, as_json: bool) -> None:
    """Print the results in a folder without a measurement."""
    from rag_audit.lab.experiments import report
    from rag_audit.lab.experiments.registry import EXPERIMENTS
    from rag_audit.lab.experiments.run import collect
    from rag_audit.lab.experiments.store import Store

    everything = list(EXPERIMENTS.values())
    results = collect(Store.open(folder), everything)
    chosen = [e for e in everything if report.has_what_it_reads(results, e)]
    if against is None:
        _print(chosen, results, as_json)
        return
    others = collect(Store.open(against), everything)
    both = [e for e in chosen if report.has_what_it_reads(others, e)]
    rows, spread = report.between(
        [line for e in both for line in report.lines(results, e)],
        [line for e in both for line in report.lines(others, e)],
    )
    emit(
        {"figures": len(rows), "root_mean_square_se": f"{spread:.3f}", "rows": rows},
        as_json,
        [
            *rows,
            f"{len(rows)} figures differ between the runs, by {spread:.2f} standard errors in root mean square",
        ],
    )


def _print(chosen: Sequence[Experiment], results: Results, as_json: bool) -> None:
    from rag_audit.lab.experiments import comparison, report

    text: list[str] = []
    result: list[Line] = []
    for one in chosen:
        shown = report.lines(results, one)
        result += shown
        text += [f"{one.name}: {one.title} ({one.place})", *report.table(shown), ""]
    summary = comparison.summarise(result)
    emit(summary.as_json(), as_json, [*text, *summary.text()])
