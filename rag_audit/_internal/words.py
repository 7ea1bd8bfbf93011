"""Instants, counts and shares in words, and sentences of a message catalogue, for reports."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Protocol

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


def of_positions(maximum: int) -> str:
    """The positions of a document for which a figure holds: ``of one position``, ``of at most 4 positions``."""
    return "of one position" if maximum == 1 else f"of at most {maximum} positions"


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


class Say(Protocol):
    """A language for sentences of a report. The English sentences are the ids of the message catalogue."""

    def text(self, message: str, **values: object) -> str:
        """A sentence, with `%(name)s` for each value."""

    def plural(self, one: str, many: str, count: int, **values: object) -> str:
        """A sentence that depends on a number, which it contains as `%(count)s`."""

    def listed(self, items: Iterable[object]) -> str:
        """Items as a list in a sentence: ``a``, ``a and b``, ``a, b and c``."""

    def joined(self, items: Iterable[object], separator: str = " ") -> str:
        """Sentences after one another, or parts of a sentence."""

    def number(self, value: str) -> str:
        """An English number, such as ``1,234.5``, with the separators of the language."""

    def quoted(self, text: str | None) -> str:
        """English text that no catalogue contains."""


class _Plain:
    """English text without markup, as text, JSON and other formats have it."""

    def text(self, message: str, **values: object) -> str:
        return message % {name: self._shown(value) for name, value in values.items()}

    def plural(self, one: str, many: str, count: int, **values: object) -> str:
        return self.text(one if count == 1 else many, count=count, **values)

    def listed(self, items: Iterable[object]) -> str:
        return listed([self._shown(item) for item in items])

    def joined(self, items: Iterable[object], separator: str = " ") -> str:
        return separator.join(self._shown(item) for item in items)

    def number(self, value: str) -> str:
        return value

    def quoted(self, text: str | None) -> str:
        return text or ""

    @staticmethod
    def _shown(value: object) -> str:
        return f"{value:,}" if type(value) is int else "" if value is None else str(value)


PLAIN: Say = _Plain()


def some_of(say: Say, names: Iterable[str], maximum: int = 4) -> str:
    """Names as a list in a sentence of a language, the first of them where there are many."""
    every = list(names)
    more = len(every) - maximum
    rest = [say.plural("%(count)s more", "%(count)s more", more)] if more > 0 else []
    return say.listed([*every[:maximum], *rest])
