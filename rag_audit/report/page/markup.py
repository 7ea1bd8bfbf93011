"""Markup in which text cannot become markup: every child and every attribute is escaped unless this module made it.

A report quotes files of others. Whatever they hold stays text here: names of elements and attributes are this package's
own, children are escaped unless they are `Html`, and only `tag`, `join` and `raw` make that.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable
from typing import TypeAlias

from rag_audit._internal.printable import printable

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9:-]*\Z")
_VOID = frozenset({"br", "hr", "input", "meta"})


class Html(str):
    """Markup that is complete and escaped."""


Child: TypeAlias = "str | int | Iterable[Child] | None"
Attribute: TypeAlias = str | int | float | bool | None


def tag(name: str, /, *children: Child, **attributes: Attribute) -> Html:
    """An element.

    :param children: text, which is escaped; markup; numbers; None, which is nothing; or several of them
    :param attributes: ``class_`` is class and ``stroke_width`` stroke-width; True has no value, None and False leave
        the attribute out
    """
    opened = f"<{_checked(name)}{''.join(_attribute(k, v) for k, v in attributes.items())}>"
    return Html(opened if name in _VOID else f"{opened}{join(*children)}</{name}>")


def join(*children: Child) -> Html:
    """Children one after another."""
    return Html("".join(map(_child, children)))


def raw(markup: str) -> Html:
    """Markup of this package's own files, as it stands."""
    return Html(markup)


def name(text: str) -> Html:
    """A name with points in it, which a narrow column may break after each."""
    return tag("code", [part for piece in re.split(r"(?<=\.)", text) for part in (piece, raw("<wbr>"))][:-1])


def clip(text: str, limit: int) -> str:
    """The text, or its beginning with a sentence that says how long it is."""
    return (
        text
        if len(text) <= limit
        else f"{text[:limit].rstrip()} [{len(text):,} characters; see the report in JSON]"
    )


def number(value: float) -> str:
    """A coordinate or a length with two decimals at most."""
    return f"{value:.2f}".rstrip("0").rstrip(".")


def _child(child: Child) -> str:
    if child is None:
        return ""
    if isinstance(child, Html):
        return child
    if isinstance(child, str):
        return html.escape(printable(child))
    if isinstance(child, int):
        return f"{child:,}"
    return "".join(map(_child, child))


def _attribute(name: str, value: Attribute) -> str:
    if value is None or value is False:
        return ""
    name = _checked(name.rstrip("_").replace("_", "-"))
    if value is True:
        return f" {name}"
    text = number(value) if isinstance(value, int | float) else html.escape(printable(value))
    return f' {name}="{text}"'


def _checked(name: str) -> str:
    if not _NAME.match(name):
        raise ValueError(f"not the name of an element or attribute: {name!r}")
    return name
