"""The result of a measurement, and a report of several: one JSON file, and the tables derived from it.

A measurement's figures have the names and the nesting of its script's output. Costs have the format of
`bench.common.by_figure` and become the columns of one table. This module does not measure.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FORMAT = "rag-audit-bench/1"
COST = ("seconds", "cpu_seconds", "peak_bytes", "bytes")
"""Figures with the same steps as their parts: they form the rows and columns of one table."""


class ReportError(Exception):
    """A file is not a report, or not a measurement's output."""


@dataclass(frozen=True)
class Result:
    """One measurement.

    :param name: its name in reports, the same in every run
    :param command: the command that repeats it; two results compare if their commands are equal
    :param machine: the machine it ran on (`bench.common.machine`); `load` is the average at its end
    :param figures: numbers, texts and lists by name, nested
    :param load_before: the one-minute load at its beginning, if known
    """

    name: str
    machine: Mapping[str, Any]
    threads: int
    figures: Mapping[str, Any]
    command: str = ""
    load_before: float | None = None

    def flat(self) -> dict[str, Any]:
        """Return the figures under names joined by dots."""
        return dict(flat("", self.figures))

    def as_json(self) -> dict[str, Any]:
        """Return the result in the format of a report."""
        return {
            "name": self.name,
            "command": self.command,
            "load_before": self.load_before,
            "machine": dict(self.machine),
            "threads": self.threads,
            "figures": dict(self.figures),
        }

    def output(self) -> dict[str, Any]:
        """Return the result in the format of its script's output with --json."""
        return {"machine": dict(self.machine), "threads": self.threads, **self.figures}

    @classmethod
    def of_output(
        cls, value: Any, *, name: str, command: str = "", load_before: float | None = None
    ) -> Result:
        """Parse the output of a script.

        :raises ReportError: it has no machine or threads
        """
        if (
            not isinstance(value, dict)
            or not isinstance(value.get("machine"), dict)
            or "threads" not in value
        ):
            raise ReportError(f"{name}: not a measurement's output, which has machine and threads")
        figures = {key: part for key, part in value.items() if key not in ("machine", "threads")}
        return cls(name, value["machine"], value["threads"], figures, command, load_before)


@dataclass
class Report:
    """Several measurements of one run.

    :param created: the time at which the run ended, UTC, as ISO 8601
    :param missing: the reason for each absent measurement, by name
    """

    created: str
    results: list[Result] = field(default_factory=list)
    missing: dict[str, str] = field(default_factory=dict)

    def by_name(self) -> dict[str, Result]:
        return {result.name: result for result in self.results}

    def dumps(self) -> str:
        """Return the JSON file."""
        value = {
            "format": FORMAT,
            "created": self.created,
            "results": [result.as_json() for result in self.results],
            "missing": self.missing,
        }
        return json.dumps(value, indent=1) + "\n"

    @classmethod
    def load(cls, path: Path) -> Report:
        """Read a report, or the output of one script as a report of one measurement.

        :raises ReportError: the file cannot be read, or has neither format
        """
        try:
            value = json.loads(path.read_text("utf-8"))
        except OSError as exc:
            raise ReportError(f"{path}: cannot be read: {exc.strerror}") from exc
        except ValueError as exc:
            raise ReportError(f"{path}: not JSON: {exc}") from exc
        if isinstance(value, dict) and "format" not in value:
            return cls("", [Result.of_output(value, name=path.stem)])
        if not isinstance(value, dict) or value.get("format") != FORMAT:
            result = value.get("format") if isinstance(value, dict) else type(value).__name__
            raise ReportError(f"{path}: not a report: expected format {FORMAT}, found {result}")
        try:
            return cls(
                value["created"], [Result(**part) for part in value["results"]], dict(value["missing"])
            )
        except (KeyError, TypeError, ValueError) as exc:
            raise ReportError(f"{path}: a part of the report is missing or unknown: {exc}") from exc

    def markdown(self) -> str:
        """Format the tables: machine and lanes once for each machine, command and load at each measurement."""
        lines = ["# Measurements", "", f"Made {self.created}.", ""]
        machines = {_where(result.machine, result.threads) for result in self.results}
        lines += [f"- {where}" for where in sorted(machines)]
        for result in self.results:
            lines += ["", f"## {result.name}", ""]
            if len(machines) > 1:
                lines += [f"On {_where(result.machine, result.threads)}", ""]
            before = "" if result.load_before is None else f"{result.load_before:g} before, "
            lines += [f"`{result.command}`; load {before}{result.machine.get('load')} after", ""]
            lines += _tables(result.figures)
        if self.missing:
            lines += ["", "## Not measured", "", *(f"- {name}: {why}" for name, why in self.missing.items())]
        return "\n".join(lines) + "\n"


def flat(prefix: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Yield a value's figures with names joined by dots; lists of objects by number."""
    children: Any = None
    if isinstance(value, Mapping):
        children = value.items()
    elif isinstance(value, list) and any(isinstance(item, Mapping) for item in value):
        children = enumerate(value)
    if children is None:
        yield prefix, value
        return
    for name, item in children:
        yield from flat(f"{prefix}.{name}" if prefix else str(name), item)


def shown(value: Any) -> str:
    """Format a figure with its significant digits."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        text = ", ".join(map(shown, value)) if isinstance(value, list) else str(value)
        return text.replace("|", "\\|")
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:,.0f}" if abs(value) >= 10_000 else f"{value:.4g}"


def table(head: list[str], rows: list[list[str]]) -> list[str]:
    """Format a Markdown table."""
    return [f"| {' | '.join(row)} |" for row in [head, ["---"] * len(head), *rows]]


def _where(machine: Mapping[str, Any], threads: int) -> str:
    known = {"cpu", "cores", "memory_gib", "system", "python", "revision", "load"}
    threaded = f"{threads} thread" + "s" * (threads != 1)
    more = "".join(f", {name} {value}" for name, value in machine.items() if name not in known)
    return (
        f"{machine.get('cpu')}, {machine.get('cores')} cores, {machine.get('memory_gib')} GiB, "
        f"{machine.get('system')}, Python {machine.get('python')}, "
        f"revision {machine.get('revision')}, {threaded}{more}"
    )


def _tables(figures: Mapping[str, Any], prefix: str = "") -> list[str]:
    """Format a table of the other figures, one of the steps' costs, then the tables of nested objects."""
    costs = {name: figures[name] for name in COST if _by_step(figures.get(name))}
    steps = list(dict.fromkeys(step for cost in costs.values() for step in cost))
    inner = {
        name: value for name, value in figures.items() if name not in costs
        and isinstance(value, Mapping) and any(isinstance(part, Mapping) for part in value.values())
    }  # fmt: skip
    others = [pair for name, value in figures.items() if name not in costs and name not in inner
              for pair in flat(prefix + name, value)]  # fmt: skip
    lines: list[str] = []
    if others:
        lines += [*table(["figure", "value"], [[name, shown(value)] for name, value in others]), ""]
    if costs:
        rows = [
            [prefix + step, *(shown(cost[step]) if step in cost else "" for cost in costs.values())]
            for step in steps
        ]
        lines += [*table(["step", *costs], rows), ""]
    for name, value in inner.items():
        lines += _tables(value, f"{prefix}{name}.")
    return lines


def _by_step(value: Any) -> bool:
    return isinstance(value, Mapping) and all(isinstance(part, (int, float)) for part in value.values())
