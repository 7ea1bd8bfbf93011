"""The memory that this machine has left."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

GB = 10**9


def available_bytes() -> int | None:
    """The memory that is free in the system and in the control group; None where the system does not report it."""
    free = []
    with suppress(OSError, ValueError, IndexError):
        lines = Path("/proc/meminfo").read_text("ascii").splitlines()
        free += [1024 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable:")]
    group = Path("/sys/fs/cgroup")
    with suppress(OSError, ValueError):  # without a limit the file contains the word max
        free.append(int((group / "memory.max").read_text()) - int((group / "memory.current").read_text()))
    return max(0, min(free)) if free else None
