"""The functions that all measurements share: command line options, a description of the machine, and the output."""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import subprocess
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from bench.model import Result, flat
from rag_audit import _native

GIB = 2**30
T = TypeVar("T")


class Cost(NamedTuple):
    """The cost of one step: wall-clock time, processor time of all threads, and the process's peak size meanwhile."""

    seconds: float
    cpu_seconds: float
    peak_bytes: int


def measured(work: Callable[[], T]) -> tuple[Cost, T]:
    """Run a step; return its cost and result. Where the peak cannot be reset (not Linux), it is the peak so far."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
    before, start = _cpu_seconds(), time.perf_counter()
    result = work()
    return Cost(time.perf_counter() - start, _cpu_seconds() - before, _peak_bytes()), result


def by_figure(costs: Mapping[str, Cost]) -> dict[str, dict[str, float]]:
    """Format costs of steps for the output of every measurement: seconds, cpu_seconds and peak_bytes, each by step."""
    return {figure: {step: getattr(cost, figure) for step, cost in costs.items()} for figure in Cost._fields}


def _cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def resident_bytes() -> int:
    """Return the process's current memory; where the system does not report it (not Linux), the peak so far."""
    return _status("VmRSS:")


def _peak_bytes() -> int:
    return _status("VmHWM:")


def _status(name: str) -> int:
    with suppress(OSError):
        for line in Path("/proc/self/status").read_text("utf-8").splitlines():
            if line.startswith(name):
                return 1024 * int(line.split()[1])
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def parser(description: str | None) -> argparse.ArgumentParser:
    """Make a parser with --json; each script adds its own options."""
    result = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    result.add_argument("--json", action="store_true", help="print one JSON object")
    return result


def parsed(
    options: argparse.ArgumentParser, *, help: str = "threads of the native pool"
) -> argparse.Namespace:
    """Parse the options, including --threads, and set the number of threads."""
    options.add_argument("--threads", type=int, default=_native.threads(), help=help)
    args = options.parse_args()
    _native.set_threads(args.threads)
    return args


def machine() -> dict[str, Any]:
    """Describe the machine, lanes and revision of a measurement; `load` is the current one-minute average."""
    lanes, products = _native.lanes()
    return {
        "cpu": _cpu(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / GIB, 1),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "lanes": f"{lanes} residues at a time, scores by {'AVX2' if products else 'portable code'}",
        "python": platform.python_version(),
        "revision": _revision(),
        "load": round(os.getloadavg()[0], 1),
    }


def emit(figures: Mapping[str, Any], *, as_json: bool) -> None:
    """Print the figures with machine and threads: one JSON object, or a line each with nested names joined by dots.

    These names have the same meaning in every measurement: documents, gains, seconds, cpu_seconds, bytes, peak_bytes,
    threads.
    """
    result = Result("", machine(), _native.threads(), figures)
    if as_json:
        print(json.dumps(result.output(), indent=2))
        return
    lines = list(flat("", result.output()))
    width = max(len(name) for name, _ in lines)
    for name, value in lines:
        print(f"{name:{width}}  {f'{value:.6g}' if isinstance(value, float) else value}")


def _cpu() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text("utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def _revision() -> str:
    command = ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty", "--abbrev=12"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return "unknown"
    return done.stdout.strip() if done.returncode == 0 else "unknown"
