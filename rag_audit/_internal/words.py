"""Instants, counts and shares in words, for reports."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

_LAST_MS = 253_402_300_799_999
"""the end of the year 9999, after which no date is written"""


def instant(milliseconds: int) -> str:
    """An instant as a date: ``2027-01-15 08:00:10 UTC``, with milliseconds where it has any."""
    if not 0 <= milliseconds <= _LAST_MS:
        return f"{milliseconds} ms after 1970"
    seconds, rest = divmod(milliseconds, 1000)
    date = f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S}"
    return f"{date}.{rest:03} UTC" if rest else f"{date} UTC"


def day(milliseconds: int) -> str:
    """The day of an instant: ``2027-01-15``."""
    return instant(milliseconds)[:10] if 0 <= milliseconds <= _LAST_MS else instant(milliseconds)


def counted(count: int, one: str, many: str | None = None) -> str:
    """A number with its noun: ``1 record``, ``2,000 records``."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def listed(items: list[str] | tuple[str, ...]) -> str:
    """Items as a list in a sentence: ``a``, ``a and b``, ``a, b and c``."""
    return " and ".join([", ".join(items[:-1]), items[-1]] if len(items) > 1 else items)


def some(names: Iterable[str], maximum: int = 4) -> str:
    """Names as a list in a sentence, the first of them where there are many."""
    every = list(names)
    more = [f"{len(every) - maximum:,} more"] if len(every) > maximum else []
    return listed([*every[:maximum], *more])


def marked(message: str) -> str:
    """Names a sentence for the message catalogue of reports at its definition; the translation follows where it is
    printed."""
    return message
