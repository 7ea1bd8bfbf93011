"""What a measurement found, and a report of several: one JSON file, and the tables that are made of it.

A measurement's figures keep the names and the nesting that its script gave them; costs stand as
`bench.common.by_figure` writes them, so they become the columns of one table. Nothing here measures.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FORMAT = "rag-audit-bench/1"
COST = ("seconds", "cpu_seconds", "peak_bytes", "bytes")
"""Figures whose parts are the same steps: rows and columns of one table."""


class ReportError(Exception):
    """A file is not a report, or not a measurement's output."""


@dataclass(frozen=True)
class Result:
    """One measurement.

    :param name: what it is called in reports, which two runs have in common
    :param command: what makes it again; two results compare if it is the same
    :param machine: where it was made (`bench.common.machine`); `load` is the average when it ended
    :param figures: numbers, texts and lists by name, nested
    :param load_before: the one-minute load when it began, where that is known
    """

    name: str
    machine: Mapping[str, Any]
    threads: int
    figures: Mapping[str, Any]
    command: str = ""
    load_before: float | None = None

    def flat(self) -> dict[str, Any]:
        """The figures under names joined by dots."""
        return dict(flat("", self.figures))

    def as_json(self) -> dict[str, Any]:
        """As it stands in a report."""
        return {
            "name": self.name,
            "command": self.command,
            "load_before": self.load_before,
            "machine": dict(self.machine),
            "threads": self.threads,
            "figures": dict(self.figures),
        }

    def output(self) -> dict[str, Any]:
        """As its script prints it with --json."""
        return {"machine": dict(self.machine), "threads": self.threads, **self.figures}

    @classmethod
    def of_output(
        cls, value: Any, *, name: str, command: str = "", load_before: float | None = None
    ) -> Result:
        """A script's output read back.

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

    :param made: when it ended, UTC, as ISO 8601
    :param missing: why a measurement is not here, by name
    """

    made: str
    results: list[Result] = field(default_factory=list)
    missing: dict[str, str] = field(default_factory=dict)

    def by_name(self) -> dict[str, Result]:
        return {result.name: result for result in self.results}

    def dumps(self) -> str:
        """The JSON file."""
        value = {
            "format": FORMAT,
            "made": self.made,
            "results": [result.as_json() for result in self.results],
            "missing": self.missing,
        }
        return json.dumps(value, indent=1) + "\n"

    @classmethod
    def load(cls, path: Path) -> Report:
        """Read a report, or the output of one script as a report of one.

        :raises ReportError: the file cannot be read, or is neither
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
            found = value.get("format") if isinstance(value, dict) else type(value).__name__
            raise ReportError(f"{path}: not a report: expected format {FORMAT}, found {found}")
        try:
            return cls(value["made"], [Result(**part) for part in value["results"]], dict(value["missing"]))
        except (KeyError, TypeError, ValueError) as exc:
            raise ReportError(f"{path}: a part of the report is missing or unknown: {exc}") from exc

    def markdown(self) -> str:
        """The report as tables: machine and lanes once for each machine, command and load at each measurement."""
        lines = ["# Measurements", "", f"Made {self.made}.", ""]
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
    """A value's figures with names joined by dots; lists of objects by number."""
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
    """A figure with as many digits as are worth reading."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        text = ", ".join(map(shown, value)) if isinstance(value, list) else str(value)
        return text.replace("|", "\\|")
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:,.0f}" if abs(value) >= 10_000 else f"{value:.4g}"


def table(head: list[str], rows: list[list[str]]) -> list[str]:
    """A Markdown table."""
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
    """A table of the steps whose costs stand here, one of the other figures, then those of objects inside."""
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
