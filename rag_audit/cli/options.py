"""What several commands' options are written in."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import click

from rag_audit.errors import PolicyError


def parsed(read: Callable[[str, str], Any]) -> Callable[[click.Context, click.Parameter, Any], Any]:
    """An option's callback that reads its text, or each of its texts, and refuses by this package's errors."""

    def callback(ctx: click.Context, param: click.Parameter, value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(read(item, param.opts[0]) for item in value)
        return None if value is None else read(value, param.opts[0])

    return callback


@parsed
def duration(text: str, option: str) -> int:
    """Milliseconds of 30s, 15m, 12h or 7d."""
    match = re.fullmatch(r"([0-9]{1,6})([smhd])", text)
    if match is None:
        raise PolicyError("not a duration", field=option, expected="30s, 15m, 12h or 7d", found=text)
    return int(match[1]) * {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}[match[2]]
