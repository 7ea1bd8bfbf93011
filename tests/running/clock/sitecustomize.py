"""As `tests/cli/clock`, for a process that runs while the clock is put forward: the file is read at each look."""

import os
import time
from pathlib import Path

_SYSTEM, _FILE = time.time_ns, Path(os.environ["TESTS_CLOCK_AHEAD"])
_read = [0, 0]


def _time_ns() -> int:
    changed = _FILE.stat().st_mtime_ns
    if changed != _read[0]:
        _read[:] = changed, int(float(_FILE.read_text() or 0) * 1e9)
    return _SYSTEM() + _read[1]


time.time_ns = _time_ns
