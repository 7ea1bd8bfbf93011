"""`Retry-After`: seconds and the three forms of a date, for every client of this package."""

from __future__ import annotations

import time
from email.utils import formatdate

import pytest

from rag_audit._internal.retry_after import retry_after
from rag_audit.account.client.attempts import Attempts, Patience, Wait
from rag_audit.errors import SetupError

NOW = 784_111_700.0
"""77 s before 08:49:37 on Sunday, 6 November 1994."""


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("0", 0.0),
        ("120", 120.0),
        (" 7 ", 7.0),
        ("2.5", 2.5),
        ("1000000000", 1e9),
        ("Sun, 06 Nov 1994 08:49:37 GMT", 77.0),
        ("Sunday, 06-Nov-94 08:49:37 GMT", 77.0),
        ("Sun Nov  6 08:49:37 1994", 77.0),
        ("Sun Nov 06 08:49:37 1994", 77.0),
        ("Sun, 06 Nov 1994 08:49:60 GMT", 99.0),
        ("Sat, 05 Nov 1994 08:49:37 GMT", 0.0),
        ("Thursday, 06-Nov-69 08:49:37 GMT", 0.0),
        (None, None),
        ("", None),
        ("-1", None),
        ("1e3", None),
        ("\xb2", None),
        ("soon", None),
        ("Sun, 06 Nov 1994 08:49:37 CET", None),
        ("Sun, 06 Nov 1994 08:49:37", None),
        ("Sun, 31 Feb 1994 08:49:37 GMT", None),
        ("Sun, 06 Foo 1994 08:49:37 GMT", None),
        ("Sun, 06 Nov 1994 24:49:37 GMT", None),
        ("Sun, 06 Nov 0000 08:49:37 GMT", None),
    ],
)
def test_seconds_and_dates_are_read(value: str | None, seconds: float | None) -> None:
    assert retry_after(value, NOW) == seconds


def test_a_year_of_two_digits_is_at_most_fifty_years_ahead() -> None:
    later = retry_after("Saturday, 06-Nov-44 08:49:37 GMT", NOW)
    assert later is not None and later > 49 * 365 * 86_400
    assert retry_after("Tuesday, 06-Nov-45 08:49:37 GMT", NOW) == 0.0


def attempts() -> Attempts:
    """Attempts with an hour's patience."""
    return Attempts(
        Patience(seconds=3600.0, pause_s=0.01, longest_s=0.01), "https://rag.example.org", clock=lambda: 0.0
    )


def test_an_account_waits_until_the_date_that_the_service_names() -> None:
    wait = attempts().again(503, formatdate(time.time() + 3000, usegmt=True))
    assert 1000.0 < wait.seconds <= 3000.0
    result = attempts().reply(503, formatdate(time.time() - 30, usegmt=True), b"")
    assert isinstance(result, Wait) and result.seconds <= 0.01


@pytest.mark.parametrize("after", ["3600", "9" * 400, formatdate(4_102_444_800, usegmt=True)])
def test_a_wait_beyond_patience_ends_the_attempts(after: str) -> None:
    with pytest.raises(SetupError, match="does not answer"):
        attempts().again(503, after)
