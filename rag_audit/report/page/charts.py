"""Charts as inline SVG, each with a title, a description and a table of its values.

Colours are classes of the style sheet, so that light, dark and print have their own. Lines differ in their dashes too,
and are named where they end. A chart is drawn at the width of a phone, since its letters shrink with it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from rag_audit.report.page.markup import Child, Html, join, number, tag

WIDTH, HEIGHT = 380, 250
_LEFT, _RIGHT, _TOP, _BOTTOM = 46, 20, 12, 42
_CHARACTER = 6.6
"""The width of a letter of a label, at most, for keeping labels apart."""


@dataclass(frozen=True)
class Axis:
    """One axis, with the marks that are written beside it.

    :param log: whether equal steps are equal factors
    """

    label: str
    low: float
    high: float
    ticks: Sequence[tuple[float, str]]
    log: bool = False

    def share(self, value: float) -> float:
        """Where a value lies between the ends, 0..1."""
        low, high, x = self.low, self.high, min(max(value, self.low), self.high)
        if self.log:
            low, high, x = math.log(low), math.log(high), math.log(x)
        return (x - low) / (high - low) if high > low else 0.5


@dataclass(frozen=True)
class Line:
    """A line through points, and what it is.

    :param style: 1, 2 or 3: which of the style sheet's lines
    """

    name: str
    style: int
    points: Sequence[tuple[float, float]]
    marked: bool = False
    """whether each point has a mark, as measured ones have"""


@dataclass(frozen=True)
class Mark:
    """A point that the text speaks of, with its label."""

    x: float
    y: float
    label: str
    style: int = 1


@dataclass(frozen=True)
class Rule:
    """A value of the x axis, as a dashed upright line with a label."""

    x: float
    label: str


def chart(
    name: str,
    title: str,
    description: str,
    x: Axis,
    y: Axis,
    lines: Sequence[Line] = (),
    marks: Sequence[Mark] = (),
    rules: Sequence[Rule] = (),
    bars: Sequence[tuple[float, float, float]] = (),
) -> Html:
    """A chart.

    :param name: the beginning of its ids
    :param bars: each from one x to another, with its height
    """
    place = _Place(x, y)
    drawn = [
        tag("title", title, id=f"{name}-title"),
        tag("desc", description, id=f"{name}-desc"),
        *place.axes(),
        *(place.bar(*bar) for bar in bars),
        *(place.rule(rule) for rule in rules),
        *(place.line(line) for line in lines),
        *place.marks(marks),
    ]
    return tag(
        "svg", drawn, viewBox=f"0 0 {WIDTH} {HEIGHT}", role="img", aria_labelledby=f"{name}-title {name}-desc"
    )


def key(lines: Sequence[Line]) -> Html:
    """The lines' names beside a piece of each."""
    return tag("ul", [tag("li", _sample(line), " ", line.name) for line in lines], class_="key")


def table(caption: str, head: Sequence[str], rows: Sequence[Sequence[Child]], class_: str = "values") -> Html:
    """A table whose first column names its rows."""
    return tag(
        "table",
        tag("caption", caption),
        tag("thead", tag("tr", [tag("th", cell, scope="col") for cell in head])),
        tag(
            "tbody",
            [
                tag(
                    "tr",
                    tag("th", row[0], scope="row"),
                    [
                        tag("td", cell, data_label=label)
                        for label, cell in zip(head[1:], row[1:], strict=True)
                    ],
                )
                for row in rows
            ],
        ),
        class_=class_,
    )


def percent_axis(label: str) -> Axis:
    """From none to all, in quarters."""
    return Axis(label, 0, 1, [(v / 4, f"{25 * v} %") for v in range(5)])


def decades(label: str, low: float, high: float) -> Axis:
    """A logarithmic axis over whole powers of ten, which has at most six of them written."""
    first, last = math.floor(math.log10(low) + 1e-9), math.ceil(math.log10(high) - 1e-9)
    last = max(last, first + 1)
    step = math.ceil((last - first) / 5)
    ticks = [(10.0**power, _power(power)) for power in range(first, last + 1, step)]
    return Axis(label, 10.0**first, 10.0**last, ticks, log=True)


def from_zero(label: str, high: float) -> Axis:
    """A linear axis from 0 to a round number not below `high`, with about five marks."""
    if high <= 0:
        high = 1.0
    step = 10.0 ** math.floor(math.log10(high / 4))
    step = next(step * factor for factor in (1, 2, 2.5, 5, 10) if step * factor * 5 >= high * (1 - 1e-12))
    count = math.ceil(high / step - 1e-9)
    return Axis(label, 0, count * step, [(i * step, number_text(i * step)) for i in range(count + 1)])


def number_text(value: float) -> str:
    """A number for people: three digits where it has more, thousands set apart."""
    if math.isinf(value):
        return "unbounded"
    if abs(value) >= 1e9:
        return f"{value:.2e}"
    if abs(value) >= 100 or value == int(value):
        return f"{value:,.0f}"
    return f"{value:.3g}"


def _power(power: int) -> str:
    return f"{10**power:,}" if 0 <= power <= 5 else f"{10.0**power:g}" if power < 0 else f"1e{power}"


def _sample(line: Line) -> Html:
    return tag(
        "svg",
        tag("path", d="M0 6H26", class_=f"line line{line.style}"),
        tag("path", d=_shape(line.style, 13, 6), class_=f"mark mark{line.style}") if line.marked else None,
        viewBox="0 0 26 12",
        class_="sample",
        aria_hidden="true",
    )


def _shape(style: int, x: float, y: float) -> str:
    """A disc, a square or a diamond, so that marks differ without colours too."""
    a, b = number(x), number(y)
    if style == 1:
        return f"M{a} {b}m-3.5 0a3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0 -7 0"
    return f"M{a} {b}m-3 -3h6v6h-6z" if style == 2 else f"M{a} {b}m0 -4.4l4.4 4.4l-4.4 4.4l-4.4 -4.4z"


class _Place:
    """Values as places of the picture."""

    def __init__(self, x: Axis, y: Axis) -> None:
        self.x, self.y = x, y
        self.width, self.height = WIDTH - _LEFT - _RIGHT, HEIGHT - _TOP - _BOTTOM

    def at(self, x: float, y: float) -> tuple[float, float]:
        return _LEFT + self.x.share(x) * self.width, _TOP + (1 - self.y.share(y)) * self.height

    def axes(self) -> list[Html]:
        floor, right = _TOP + self.height, _LEFT + self.width
        drawn = []
        for value, label in self.y.ticks:
            across = self.at(self.x.low, value)[1]
            drawn += [
                tag("path", d=f"M{_LEFT} {number(across)}H{right}", class_="grid"),
                tag("text", label, x=_LEFT - 6, y=across + 4, class_="tick end"),
            ]
        end = -math.inf
        for value, label in self.x.ticks:
            along, half = self.at(value, self.y.low)[0], len(label) * _CHARACTER / 2
            drawn.append(tag("path", d=f"M{number(along)} {floor}v4", class_="axis"))
            middle = min(max(along, half), WIDTH - half)
            if middle - half > end:
                drawn.append(tag("text", label, x=middle, y=floor + 16, class_="tick middle"))
                end = middle + half
        return [
            *drawn,
            tag("path", d=f"M{_LEFT} {floor}H{right}", class_="axis"),
            tag("text", self.x.label, x=_LEFT + self.width / 2, y=HEIGHT - 6, class_="label middle"),
        ]

    def line(self, line: Line) -> Html:
        places = [self.at(*point) for point in line.points]
        path = "M" + "L".join(f"{number(a)} {number(b)}" for a, b in places)
        drawn = [tag("path", d=path, class_=f"line line{line.style}")]
        if line.marked:
            drawn += [
                tag("path", d=_shape(line.style, a, b), class_=f"mark mark{line.style}") for a, b in places
            ]
        return join(drawn)

    def rule(self, rule: Rule) -> Html:
        along = self.at(rule.x, self.y.low)[0]
        left = along > _LEFT + self.width / 2
        return join(
            tag("path", d=f"M{number(along)} {_TOP}V{_TOP + self.height}", class_="rule"),
            tag(
                "text",
                rule.label,
                x=along + (-5 if left else 5),
                y=_TOP + 10,
                class_="note end" if left else "note",
            ),
        )

    def bar(self, start: float, end: float, value: float) -> Html:
        (a, top), (b, _) = self.at(start, value), self.at(end, value)
        return tag(
            "rect", x=a, y=top, width=max(b - a - 0.5, 1), height=_TOP + self.height - top, class_="bar"
        )

    def marks(self, marks: Sequence[Mark]) -> list[Html]:
        """Points, and their labels where the last one leaves room."""
        drawn: list[Html] = []
        taken: list[tuple[float, float, float]] = []
        for mark in marks:
            a, b = self.at(mark.x, mark.y)
            width = len(mark.label) * _CHARACTER
            left = a + 8 + width > WIDTH
            start = max(a - 8 - width, 0) if left else a + 8
            under = not left and b < _TOP + self.height - 24  # where a curve that rises leaves room
            line = b + 16 if under or b < _TOP + 22 else b - 8
            while any(start < e and s < start + width and abs(line - o) < 12 for s, e, o in taken):
                line += 13
            taken.append((start, start + width, line))
            drawn += [
                tag("path", d=_shape(mark.style, a, b), class_=f"mark mark{mark.style}"),
                tag(
                    "text",
                    mark.label,
                    x=start + width if left else start,
                    y=line,
                    class_="note end" if left else "note",
                ),
            ]
        return drawn
