"""A folder of results: one file for each finished cell, written completely or not at all, so that a run can be resumed.

`run.json` names the folder's revision, size and seed. Results of another are refused, not mixed.
"""

from __future__ import annotations

import logging
import os
import platform
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import cast

from rag_audit import __version__
from rag_audit._internal.canonical import Json, digest_hex, jcs, read_json
from rag_audit._internal.durable import replace_file
from rag_audit._internal.errors import RagAuditError, SchemaError, StoreError
from rag_audit.lab.experiments.model import Cell, Figure, Size

PACKAGES = ("numpy", "faiss-cpu", "matplotlib", "wordllama")


def revision() -> str:
    """The commit of a checkout, ``+`` appended if tracked files differ from it; else the package's version."""
    root = Path(__file__).resolve().parents[3]
    if not (root / ".git").exists():
        return __version__
    commit, changed = _git(root, "rev-parse", "HEAD"), _git(root, "status", "--porcelain", "-uno")
    return __version__ if commit is None else commit[:12] + ("+" if changed else "")


def _git(root: Path, *words: str) -> str | None:
    with suppress(OSError, subprocess.SubprocessError):
        done = subprocess.run(
            ["git", "-C", str(root), *words], capture_output=True, text=True, check=True, timeout=30
        )
        return done.stdout.strip()
    return None


def machine() -> dict[str, Json]:
    """The processor, its cores that may be used, the system, and the load at this moment."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return {
        "cpu": _cpu(),
        "cores": cores,
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "load": f"{os.getloadavg()[0]:.1f}",
    }


def _cpu() -> str:
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text("utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def versions() -> dict[str, Json]:
    """The releases of Python, of this package and of its experiments' packages, if they are installed."""
    result: dict[str, Json] = {"python": platform.python_version(), "rag-audit": __version__}
    for name in PACKAGES:
        with suppress(PackageNotFoundError):
            result[name] = version(name)
    return result


log = logging.getLogger(__name__)

FORMAT = "rag-audit/experiments/v1"
CELL_FORMAT = "rag-audit/experiment-cell/v1"
MAX_FILE_BYTES = 1 << 24
RUN_FILE = "run.json"


class CorruptedCell(RagAuditError):
    """A cell's file is unusable; the cell has to be measured once more."""


@dataclass(frozen=True)
class Store:
    """A folder of results of one revision, size and seed."""

    folder: Path
    revision: str
    size: Size
    seed: int

    @classmethod
    def create(cls, folder: Path, size: Size, seed: int) -> Store:
        """The folder for a run, which may contain results of the same revision, size and seed.

        :raises StoreError: the folder contains results of another revision, size or seed, or other files, or it cannot
            be written
        """
        ours = cls(folder, revision(), size, seed)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            occupied = any(folder.iterdir())
        except OSError as exc:
            raise StoreError("cannot be made", field=str(folder), actual=exc.strerror or str(exc)) from exc
        if (folder / RUN_FILE).exists():
            theirs = cls.open(folder)
            for name in ("revision", "size", "seed"):
                expected, actual = getattr(ours, name), getattr(theirs, name)
                if expected != actual:
                    raise StoreError(
                        f"the folder has results of another {name}, which are not mixed with new ones",
                        field=f"{folder / RUN_FILE}: {name}", expected=expected, actual=actual,
                        hint="give another folder by --out, or remove this one",
                    )  # fmt: skip
        elif occupied:
            raise StoreError(
                "the folder has files and no run.json, so it is no folder of results", field=str(folder),
                expected="a new or empty folder, or one of results", hint="give another folder by --out",
            )  # fmt: skip
        else:
            replace_file(folder / RUN_FILE, _text(ours.header()))
        return ours

    @classmethod
    def open(cls, folder: Path) -> Store:
        """The folder of an earlier run.

        :raises RagAuditError: there is no such folder, or its run.json cannot be used
        """
        path = folder / RUN_FILE
        if not path.is_file():
            raise StoreError("no folder of results", field=str(folder), expected=f"a {RUN_FILE}",
                             hint="rag-audit lab experiment run NAME --out FOLDER")  # fmt: skip
        value = read_json(path, max_bytes=MAX_FILE_BYTES)
        if not isinstance(value, dict) or value.get("format") != FORMAT:
            raise SchemaError("not the description of a run", field=str(path), expected=FORMAT)
        result, size, seed = value.get("revision"), value.get("size"), value.get("seed")
        if not (isinstance(result, str) and size in ("test", "full") and type(seed) is int and seed >= 0):
            raise SchemaError("revision, size or seed is not well-formed", field=str(path))
        return cls(folder, result, cast(Size, size), seed)

    def header(self) -> dict[str, Json]:
        """The fields about the run in every file of results."""
        return {
            "format": FORMAT,
            "revision": self.revision,
            "size": self.size,
            "seed": self.seed,
            "machine": machine(),
            "versions": versions(),
        }

    def path(self, experiment: str, cell: Cell) -> Path:
        """The file of a cell."""
        return self.folder / experiment / f"{cell.key}.json"

    def write(self, experiment: str, cell: Cell, outcome: dict[str, Json]) -> None:
        """Write a finished cell.

        :param outcome: the result of `run.CellJob`
        """
        path = self.path(experiment, cell)
        path.parent.mkdir(parents=True, exist_ok=True)
        content = {**self._named(experiment, cell), **outcome}
        replace_file(path, _text({**content, "digest": digest_hex(content)}))

    def read(self, experiment: str, cell: Cell) -> list[Figure] | None:
        """A finished cell's figures, or None if the cell is not finished.

        :raises CorruptedCell: the file was cut or altered, or belongs to another run
        """
        path = self.path(experiment, cell)
        if not path.exists():
            return None
        try:
            value = read_json(path, max_bytes=MAX_FILE_BYTES)
            if not isinstance(value, dict):
                raise SchemaError("not a cell's result", field=str(path))
            digest = value.pop("digest", None)
            if digest != digest_hex(value):
                raise SchemaError("the content differs from the written content", field=str(path))
            for name, expected in self._named(experiment, cell).items():
                if value.get(name) != expected:
                    raise SchemaError("the result is another cell's or run's", field=f"{path}: {name}",
                                      expected=expected, actual=value.get(name))  # fmt: skip
            figures = value.get("figures")
            if not isinstance(figures, list):
                raise SchemaError("no figures", field=str(path))
            return [Figure.parse(f, field=f"{path}: figures[{i}]") for i, f in enumerate(figures)]
        except RagAuditError as exc:
            raise CorruptedCell(
                "a cell's result cannot be used",
                field=str(path),
                actual=exc.message,
                hint="the run measures that cell a second time",
            ) from exc

    def seconds(self, experiment: str, cells: Sequence[Cell]) -> float:
        """Total seconds of the finished cells."""
        total = 0.0
        for cell in cells:
            path = self.path(experiment, cell)
            value = read_json(path, max_bytes=MAX_FILE_BYTES) if path.exists() else None
            total += float(str(value.get("seconds", 0))) if isinstance(value, dict) else 0.0
        return total

    def _named(self, experiment: str, cell: Cell) -> dict[str, Json]:
        parameters: dict[str, Json] = {
            name: repr(value) if isinstance(value, float) else value
            for name, value in cell.parameters.items()
        }
        return {
            "format": CELL_FORMAT,
            "experiment": experiment,
            "cell": cell.key,
            "column": cell.column,
            "parameters": parameters,
            "revision": self.revision,
            "size": self.size,
            "seed": self.seed,
        }


def _text(value: Json) -> bytes:
    return jcs(value) + b"\n"
