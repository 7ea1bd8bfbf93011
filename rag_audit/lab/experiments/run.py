"""Measuring cells: an executor runs the remaining cells of a grid, and each finished cell is stored at once."""

from __future__ import annotations

import importlib.util
import logging
import os
import resource
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass

from rag_audit._internal.canonical import Json
from rag_audit._internal.extras import missing
from rag_audit.lab.experiments.model import Cell, Experiment, Figure, Results, generator
from rag_audit.lab.experiments.registry import EXPERIMENTS
from rag_audit.lab.experiments.store import CorruptedCell, Store
from rag_audit.proofs.executors import run_jobs

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class CellJob:
    """The measurement of one cell, as any `concurrent.futures.Executor` can run it."""

    experiment: str
    cell: Cell
    seed: int

    def run(self) -> dict[str, Json]:
        """Measure, and return the figures with the time that they took, the load, and the process's largest size."""
        start, worked = time.perf_counter(), time.process_time()
        rng = generator(self.seed, self.experiment, self.cell.key)
        figures = EXPERIMENTS[self.experiment].run(self.cell, rng)
        return {
            "figures": [figure.as_json() for figure in figures],
            "seconds": f"{time.perf_counter() - start:.2f}",
            "cpu_seconds": f"{time.process_time() - worked:.2f}",
            "load": f"{os.getloadavg()[0]:.1f}",
            "peak_kib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss,
        }


def with_those_before(chosen: Sequence[Experiment]) -> list[Experiment]:
    """The chosen experiments. Each follows the experiments that it reads results from."""
    result: dict[str, Experiment] = {}
    for experiment in chosen:
        for name in (*experiment.after, experiment.name):
            result.setdefault(name, EXPERIMENTS[name])
    return list(result.values())


def check_needs(chosen: Sequence[Experiment], *, pictures: bool) -> None:
    """Refuse to start if a missing package would interrupt the run.

    :raises SetupError: a package is missing; the hint names the installing command
    """
    for name in dict.fromkeys(
        ["scipy", *(n for e in chosen for n in e.needs), *(["matplotlib"] if pictures else [])]
    ):
        if importlib.util.find_spec(name) is None:
            raise missing(name, ", or leave the pictures out (--no-pictures)" if name == "matplotlib" else "")


def measure(
    store: Store,
    chosen: Sequence[Experiment],
    executor: Executor | None = None,
    *,
    progress: Callable[[int, int], None] | None = None,
) -> None:
    """Measure every cell that has no result yet.

    :raises RagAuditError: a cell could not be measured, or the executor lost it twice; finished cells are stored
    """
    left = [(e.name, cell) for e in chosen for cell in e.cells(store.size) if not _finished(store, e, cell)]
    done, total = 0, sum(len(e.cells(store.size)) for e in chosen)
    done = total - len(left)

    def jobs() -> Iterator[tuple[tuple[str, Cell], CellJob]]:
        for name, cell in left:
            yield (name, cell), CellJob(name, cell, store.seed)

    if progress is not None:
        progress(done, total)
    for (name, cell), outcome in run_jobs(jobs(), executor):
        store.write(name, cell, outcome)
        done += 1
        if progress is not None:
            progress(done, total)


def _finished(store: Store, experiment: Experiment, cell: Cell) -> bool:
    try:
        return store.read(experiment.name, cell) is not None
    except CorruptedCell as exc:
        log.warning("%s", exc)
        return False


def collect(store: Store, chosen: Sequence[Experiment]) -> Results:
    """The results that a folder has, of the cells of these experiments that are finished.

    :raises CorruptedCell: a result cannot be used
    """
    result: dict[str, list[tuple[Cell, list[Figure]]]] = {}
    for experiment in chosen:
        figures = ((cell, store.read(experiment.name, cell)) for cell in experiment.cells(store.size))
        result[experiment.name] = [(cell, f) for cell, f in figures if f is not None]
    return result
