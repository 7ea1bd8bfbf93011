"""The clock of this machine, and its instants in words for people."""

from __future__ import annotations

import time
from datetime import datetime


def now_ms() -> int:
    """Milliseconds since the Unix epoch."""
    return time.time_ns() // 1_000_000


def local_time(milliseconds: int) -> str:
    """An instant in this machine's time zone, for people."""
    return f"{datetime.fromtimestamp(milliseconds / 1000).astimezone():%Y-%m-%d %H:%M:%S %Z}"
