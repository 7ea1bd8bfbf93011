"""Charts: the values that `templates/macros.html.j2` draws, in coordinates of the picture.

Colours are classes of the style sheet, so that light, dark and print have their own. Lines differ in their dashes too,
and are named where they end. A chart is drawn at the width of a phone, since its letters shrink with it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_CHARACTER = 6.6
"""Maximum width of a letter of a label, to prevent overlapping labels."""


@dataclass(frozen=True)
class Axis:
    """One axis, with its labelled marks.

    :param log: whether the axis is logarithmic
    """

    label: str
    low: float
    high: float
    ticks: Sequence[tuple[float, str]]
    log: bool = False

    def share(self, value: float) -> float:
        """The relative position of a value between the ends, 0..1."""
        low, high, x = self.low, self.high, min(max(value, self.low), self.high)
        if self.log:
            low, high, x = math.log(low), math.log(high), math.log(x)
        return (x - low) / (high - low) if high > low else 0.5


@dataclass(frozen=True)
class Line:
    """A line through points, with its name.

    :param style: 1, 2 or 3: the line style in the style sheet
    :param marked: whether each point has a mark, as for measured points
    """

    name: str
    style: int
    points: Sequence[tuple[float, float]]
    marked: bool = False


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


@dataclass(frozen=True)
class Chart:
    """A chart.

    :param name: the prefix of its ids
    :param description: the sentence that describes the content of the chart
    :param bars: each bar from one x to another, with its height
    """

    name: str
    title: str
    description: str
    x: Axis
    y: Axis
    lines: Sequence[Line] = ()
    marks: Sequence[Mark] = ()
    rules: Sequence[Rule] = ()
    bars: Sequence[tuple[float, float, float]] = ()
    width, height = 380, 250
    left, right, top, floor = 46, 360, 12, 208
    """the ends of the axes"""

    def across(self) -> Iterator[tuple[float, str]]:
        """The marks of the y axis: place and label."""
        return ((self._at(self.x.low, value)[1], label) for value, label in self.y.ticks)

    def along(self) -> Iterator[tuple[float, float, str | None]]:
        """The marks of the x axis: place, middle of the label, and the label, if the previous label leaves room."""
        end = -math.inf
        for value, label in self.x.ticks:
            place, half = self._at(value, self.y.low)[0], len(label) * _CHARACTER / 2
            middle = min(max(place, half), self.width - half)
            room = middle - half > end
            end = middle + half if room else end
            yield place, middle, label if room else None

    def columns(self) -> Iterator[tuple[float, float, float]]:
        """The bars: left, top and width."""
        for start, end, value in self.bars:
            (a, top), (b, _) = self._at(start, value), self._at(end, value)
            yield a, top, max(b - a - 0.5, 1)

    def uprights(self) -> Iterator[tuple[float, str, float, str]]:
        """The rules: place, label, place of the label, and its class."""
        for rule in self.rules:
            place = self._at(rule.x, self.y.low)[0]
            left = place > (self.left + self.right) / 2
            yield place, rule.label, place + (-5 if left else 5), "note end" if left else "note"

    def curves(self) -> Iterator[tuple[Line, list[tuple[float, float]]]]:
        """The lines, each with the places of its points."""
        return ((line, [self._at(*point) for point in line.points]) for line in self.lines)

    def points(self) -> Iterator[tuple[int, float, float, str, float, float, str]]:
        """The marks: style and place, then label, its place and its class. A label does not overlap the previous
        ones."""
        taken: list[tuple[float, float, float]] = []
        for mark in self.marks:
            a, b = self._at(mark.x, mark.y)
            width = len(mark.label) * _CHARACTER
            left = a + 8 + width > self.width
            start = max(a - 8 - width, 0) if left else a + 8
            under = not left and b < self.floor - 24  # where a curve that rises leaves room
            line = b + 16 if under or b < self.top + 22 else b - 8
            while any(start < e and s < start + width and abs(line - o) < 12 for s, e, o in taken):
                line += 13
            taken.append((start, start + width, line))
            yield (
                mark.style,
                a,
                b,
                mark.label,
                start + width if left else start,
                line,
                "note end" if left else "note",
            )

    def _at(self, x: float, y: float) -> tuple[float, float]:
        """The place of a value."""
        return (
            self.left + self.x.share(x) * (self.right - self.left),
            self.top + (1 - self.y.share(y)) * (self.floor - self.top),
        )


def shape(style: int, x: float, y: float) -> str:
    """A disc, a square or a diamond, so that marks differ without colours too."""
    a, b = number(x), number(y)
    if style == 1:
        return f"M{a} {b}m-3.5 0a3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0 -7 0"
    return f"M{a} {b}m-3 -3h6v6h-6z" if style == 2 else f"M{a} {b}m0 -4.4l4.4 4.4l-4.4 4.4l-4.4 -4.4z"


def number(value: float) -> str:
    """A coordinate or a length with two decimals at most."""
    return f"{value:.2f}".rstrip("0").rstrip(".")


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
    """A number for people: at most three digits after the point, and separated thousands."""
    if math.isinf(value):
        return "unbounded"
    if abs(value) >= 1e9:
        return f"{value:.2e}"
    if abs(value) >= 100 or value == int(value):
        return f"{value:,.0f}"
    return f"{value:.3g}"


def _power(power: int) -> str:
    return f"{10**power:,}" if 0 <= power <= 5 else f"{10.0**power:g}" if power < 0 else f"1e{power}"
