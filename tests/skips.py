"""The skips that CONTRIBUTING.md lists: any other skip fails its test (tests/conftest.py)."""

from __future__ import annotations

import re
from fnmatch import fnmatch
from functools import cache
from pathlib import Path
from typing import NamedTuple

CONTRIBUTING = Path(__file__).resolve().parents[1] / "CONTRIBUTING.md"
ROW = re.compile(r"\| `(?P<file>[^`]+)` \| `(?P<reason>[^|]+)` \| (?P<remedy>[^|]+) \|")


class Skip(NamedTuple):
    """A listed skip.

    :param file: the path of the test's file, as a pattern of `fnmatch`
    :param reason: what the reason that pytest prints starts with
    :param remedy: what lets the test run
    """

    file: str
    reason: str
    remedy: str


def parse(text: str) -> list[Skip]:
    """The rows of the table under the heading "Skipped tests".

    :raises ValueError: there is no such heading, or a row of the table has another form
    """
    _, heading, section = text.partition("\n### Skipped tests\n")
    if not heading:
        raise ValueError("CONTRIBUTING.md has no heading '### Skipped tests'")
    section = re.split(r"\n#+ ", section)[0]
    rows = [line for line in section.splitlines() if line.startswith("|")][2:]
    result = [ROW.fullmatch(row) for row in rows]
    if None in result or not result:
        raise ValueError(
            f"not a row of the table of skipped tests: {rows[result.index(None)] if rows else section}"
        )
    return [Skip(*row.groups()) for row in result if row is not None]


@cache
def listed() -> list[Skip]:
    """The skips that CONTRIBUTING.md lists."""
    return parse(CONTRIBUTING.read_text())


def is_listed(file: str, reason: str) -> bool:
    """Whether a test of this file may be skipped for this reason.

    :param file: the path of the test's file, relative to `tests/`
    """
    return any(fnmatch(f"tests/{file}", skip.file) and reason.startswith(skip.reason) for skip in listed())
