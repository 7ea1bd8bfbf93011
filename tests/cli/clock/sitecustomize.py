"""A clock that the tests move: the system's, ahead by the seconds in the file that `TESTS_CLOCK_AHEAD` names.

A test that waits for a window to open would have to guess how long a busy machine needs until then. Here nobody
waits: a window is dated far ahead, and when everything is done the clock is put forward. Python imports this module
by its name when it starts, in the commands that the tests run and in every process that those start.
"""

import os
import time
from pathlib import Path

_SYSTEM = time.time_ns
_AHEAD = int(float(Path(os.environ["TESTS_CLOCK_AHEAD"]).read_text()) * 1e9)


def _time_ns() -> int:
    return _SYSTEM() + _AHEAD


time.time_ns = _time_ns
