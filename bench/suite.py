"""Every measurement in one command: `python -m bench.suite [--full] [--only NAME ..] [--tiny] [--out FOLDER]`.

After each measurement the command writes `bench.json`, one report of all measurements, and `bench.md`, its tables. An
interrupted run therefore leaves the results so far. The command renames an earlier report to `before.json`, for
`python -m bench.compare`. If a measurement fails, the report gives its name and the reason, and the run continues and
ends with exit code 1. The report also names each measurement that lacks its data; this is not a failure.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import subprocess
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from bench.model import Report, ReportError, Result

ROOT = Path(__file__).resolve().parents[1]
NO_DATA = 2
"""The exit code of a measurement that finds no collections."""


@dataclass(frozen=True)
class Measurement:
    """A script with its options.

    :param tiny: the smallest options, for a test of the way from script to report; the figures have no meaning
    :param full: left out of a short run: it takes many minutes, several GB, or both
    """

    name: str
    options: str = ""
    tiny: str | None = None
    full: bool = False

    @property
    def module(self) -> str:
        return "bench." + self.name.partition("-")[0]

    def command(self, *, tiny: bool = False) -> str:
        """Return the command line."""
        return f"python -m {self.module} {(self.tiny or '') if tiny else self.options}".rstrip()


def _scan(documents: int, gains: str, *, full: bool = False) -> Measurement:
    options = f"--documents {documents} --gains {gains} --mechanisms"
    tiny = "--documents 100 --dimension 16 --gains 1,8 --batch 2"
    return Measurement(f"scan-{documents}-{gains}", options, tiny, full)


def _batch_proving(documents: int, count: int) -> Measurement:
    tiny = "--documents 100 --dimension 16 --count 2 --groups 1"
    return Measurement(f"batch_proving-{documents}-{count}", f"--documents {documents} --count {count}", tiny)


MEASUREMENTS = (
    Measurement("core", "", "--documents 500"),
    Measurement("engine", "", "--documents 500"),
    *(_scan(documents, gains) for documents in (1000, 10_000, 30_000, 100_000) for gains in ("1", "1,8,64")),
    Measurement("batch"),
    *(_batch_proving(documents, count) for documents in (10_000, 30_000, 100_000) for count in (4, 16)),
    Measurement("batch_proving-low", "--documents 30000 --count 4 --low-memory"),
    Measurement("embed", "", "--batch 2"),
    Measurement("coalition", "", "--records 20 --accounts 10"),
    Measurement("verify", "", "--records 12"),
    Measurement("service", "--gains 1,8,64", "--documents 32 --queries 2"),
    *(Measurement(f"whole-{n}", f"--documents {n} --alone 3") for n in (10_000, 30_000, 100_000)),
    Measurement("cluster", "--documents 30000 --records 8"),
    Measurement("accounts", "", "--accounts 20 --roster 50 --queries 4"),
    Measurement("window", "--records 1000", "--records 20"),
    Measurement("ledger", "", "--records 32 --appenders 1 4"),
    Measurement("accounting", "", "--policies 1"),
    Measurement("groth16"),
    *(_scan(1_000_000, gains, full=True) for gains in ("1", "1,8,64")),
    Measurement(
        "whole-1000000",
        "--documents 1000000 --distinct 100000 --alone 2 --batch 4 --low-memory",
        full=True,
    ),
    Measurement("verify-100000", "--records 100000", full=True),
    Measurement("window-10000", "--records 10000", full=True),
    Measurement("beside", full=True),
    Measurement("assignment", full=True),
    Measurement("http", full=True),
    Measurement("client", full=True),
    Measurement("recall", full=True),
    Measurement("explore", full=True),
    Measurement("estimate", full=True),
    Measurement("quantisation", full=True),
    Measurement("frontier", full=True),
)


def run(measurement: Measurement, *, tiny: bool) -> Result | str:
    """Return a measurement's result, or the reason for its absence."""
    command = measurement.command(tiny=tiny)
    load = round(os.getloadavg()[0], 1)
    words = [sys.executable, *shlex.split(command)[1:], "--json"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        lines = done.stderr.strip().splitlines() or ["no reason given"]
        return f"{'no data' if done.returncode == NO_DATA else 'failed'}: {lines[-1][:300]}"
    try:
        return Result.of_output(
            json.loads(done.stdout), name=measurement.name, command=command, load_before=load
        )
    except (ValueError, ReportError) as exc:
        return f"failed: {exc}"


def write(report: Report, folder: Path) -> None:
    """Write the current report."""
    for name, text in (("bench.json", report.dumps()), ("bench.md", report.markdown())):
        part = folder / f".{name}"
        part.write_text(text, "utf-8")
        part.replace(folder / name)


def measure_all(chosen: list[Measurement], folder: Path, *, tiny: bool) -> Report:
    """Run the measurements one after another."""
    folder.mkdir(parents=True, exist_ok=True)
    if (folder / "bench.json").exists():
        (folder / "bench.json").replace(folder / "before.json")
    report = Report(_now())
    for measurement in chosen:
        print(f"bench: {measurement.command(tiny=tiny)}", file=sys.stderr, flush=True)
        result = run(measurement, tiny=tiny)
        if isinstance(result, str):
            print(f"bench: {measurement.name}: {result}", file=sys.stderr, flush=True)
            report.missing[measurement.name] = result
        else:
            report.results.append(result)
        report.created = _now()
        write(report, folder)
    return report


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def main() -> int:
    """Measure, and print the report's path."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--full", action="store_true", help="those that take many minutes or several GB too")
    options.add_argument("--tiny", action="store_true", help="at sizes that measure nothing")
    options.add_argument(
        "--only", nargs="+", metavar="NAME", help="these alone: " + ", ".join(m.name for m in MEASUREMENTS)
    )
    options.add_argument("--out", type=Path, default=Path("bench/results"))
    args = options.parse_args()
    known = {m.name: m for m in MEASUREMENTS}
    if unknown := [name for name in args.only or () if name not in known]:
        options.error(f"no measurement is called {', '.join(unknown)}")
    chosen = [m for m in MEASUREMENTS if (m.name in args.only if args.only else args.full or not m.full)]
    if args.tiny:
        chosen = [m for m in chosen if m.tiny is not None]
    report = measure_all(chosen, args.out, tiny=args.tiny)
    print(args.out / "bench.md")
    return int(any(reason.startswith("failed") for reason in report.missing.values()))


if __name__ == "__main__":
    sys.exit(main())
