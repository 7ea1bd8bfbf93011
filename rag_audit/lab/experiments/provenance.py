"""Where a figure comes from: the revision, the machine, the versions of what computed it."""

from __future__ import annotations

import os
import platform
import subprocess
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from rag_audit import __version__
from rag_audit._internal.canonical import Json

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
    """The releases of Python, of this package and of what its experiments use, where it is installed."""
    found: dict[str, Json] = {"python": platform.python_version(), "rag-audit": __version__}
    for name in PACKAGES:
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    return found
