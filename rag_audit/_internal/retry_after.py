"""The header `Retry-After` of a response (RFC 9110, section 10.2.3)."""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime

_DECIMAL = re.compile(r"[0-9]+(\.[0-9]+)?")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_TIME = r"(?P<hour>[0-9]{2}):(?P<minute>[0-9]{2}):(?P<second>[0-9]{2})"
_DATES = (
    re.compile(rf"[A-Z][a-z]{{2}}, (?P<day>[0-9]{{2}}) (?P<month>[A-Z][a-z]{{2}}) (?P<year>[0-9]{{4}}) {_TIME} GMT"),
    re.compile(rf"[A-Z][a-z]+, (?P<day>[0-9]{{2}})-(?P<month>[A-Z][a-z]{{2}})-(?P<year>[0-9]{{2}}) {_TIME} GMT"),
    re.compile(rf"[A-Z][a-z]{{2}} (?P<month>[A-Z][a-z]{{2}}) (?P<day>[0-9 ][0-9]) {_TIME} (?P<year>[0-9]{{4}})"),
)  # fmt: skip
"""The three forms of a date in HTTP (RFC 9110, section 5.6.7); two of them are obsolete. The standard library has no
function that reads all three."""


def retry_after(value: str | None, now: float | None = None) -> float | None:
    """How many seconds a response asks its client to wait before another attempt.

    :param value: the header's value, a number of seconds or a date; some services write fractions of a second
    :param now: the present time in seconds since the epoch, by default this machine's
    :returns: the seconds, 0 for a date that has passed; None without a header, or if its value has neither form
    """
    text = "" if value is None else value.strip()
    if _DECIMAL.fullmatch(text):
        return float(text)
    present = time.time() if now is None else now
    date = _date(text, present)
    return None if date is None else max(0.0, date - present)


def _date(text: str, now: float) -> float | None:
    """A date in one of the three forms, in seconds since the epoch."""
    result = next((match for form in _DATES if (match := form.fullmatch(text))), None)
    if result is None or result["month"] not in _MONTHS:
        return None
    year = int(result["year"])
    try:
        if len(result["year"]) == 2:
            # Section 5.6.7: the last year with these digits that is at most 50 years ahead.
            latest = datetime.fromtimestamp(now, UTC).year + 50
            year = latest - (latest - year) % 100
        second = 59 if result["second"] == "60" else int(result["second"])  # a leap second
        month = _MONTHS.index(result["month"]) + 1
        day, hour, minute = (int(result[name]) for name in ("day", "hour", "minute"))
        return datetime(year, month, day, hour, minute, second, tzinfo=UTC).timestamp()
    except (ValueError, OverflowError):
        return None
