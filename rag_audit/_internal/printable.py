"""Escaping of text from a file or another party before it is printed: one line stays one line, without control effect.

A name in a file may contain a line break, a terminal's control sequence or a change of writing direction, and could
then imitate output of this package. All printed text passes through this module.
"""

from __future__ import annotations

import json
import re

_JOINERS = "\u200c\u200d"
"""Zero-width joiners: several scripts and emoji need them inside words, and they move no other text."""
_ASCII = re.compile(r"[ -~]*\Z")


def printable(text: str, *, keep: str = "") -> str:
    """The text on one line of visible characters: any other becomes its escape, ``\\x1b``, ``\\n`` or ``\\u202e``.

    The function escapes control characters (C0, C1), line and paragraph separators, spaces other than the common one,
    bidirectional and other format characters, surrogates, and code points that Unicode has not assigned.

    :param keep: further characters that are not escaped
    """
    if _ASCII.match(text):
        return text
    return "".join(c if c.isprintable() or c in keep else _escape(c) for c in text)


def printable_text(text: str) -> str:
    """A text of several lines, such as a document, escaped like `printable`, but lines, tabs and joiners stay."""
    return printable(text, keep="\n\t" + _JOINERS)


def json_text(value: object) -> str:
    """JSON for programs that is also safe on a terminal: characters that `printable` escapes have JSON's own escapes.

    Values that JSON does not know are written as their text.
    """
    text = json.dumps(value, ensure_ascii=False, default=str)
    if _ASCII.match(text):
        return text
    return "".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in text)


def without_userinfo(address: str) -> str:
    """A URL without the user and password before its host, so that an error may show it. If the text is no URL, or its
    password has an unescaped special character, the function removes all text before the last ``@``.
    """
    before, at, rest = address.rpartition("@")
    if not at:
        return address
    scheme, slashes, _ = before.partition("//")
    return f"{scheme}{slashes}***@{rest}" if slashes else f"***@{rest}"


def is_line(text: str) -> bool:
    """Whether a name can be printed unescaped: it is not empty or blank, and every character is visible."""
    return bool(text.strip()) and text.isprintable()


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")
