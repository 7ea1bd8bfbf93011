"""numpy in the page: the part of it that the accountant uses, on arrays in the WebAssembly module.

Arrays have one dimension and contain float64, complex numbers as two arrays; integers and truth values are floats.
Slices are views, like numpy's. A function that the accountant does not use is missing, and raises an error.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any, NoReturn

from rag_audit._internal.errors import SetupError
from rag_audit.report.browser.inside.module import call
from rag_audit.report.browser.inside.views import Block, Complex, fold, made, ndarray, of, one, two, whole


class Absent:
    """A name of numpy that is only mentioned: a type in a signature."""

    def __class_getitem__(cls, item: object) -> type[Absent]:
        return cls


def _each(name: str, scalar: Callable[[float], float]) -> Callable[..., Any]:
    """A function of a number, or of each item of an array."""

    def function(x: Any, out: ndarray | None = None) -> Any:
        if not isinstance(x, ndarray):
            return scalar(x)
        if out is None:
            return one(name, x)
        out[:] = one(name, x)
        return out

    return function


_log = _each("log", math.log)
_exp = _each("exp", math.exp)
_abs = _each("abs", abs)
floor = _each("floor", math.floor)
expm1 = _each("expm1", math.expm1)


def log(x: Any, out: ndarray | None = None) -> Any:
    """The natural logarithm."""
    if isinstance(x, Complex):
        return Complex(_log(abs(x)), two("arctan2", x.im, x.re))
    return _log(x, out)


def exp(x: Any) -> Any:
    """The exponential."""
    if isinstance(x, Complex):
        size = _exp(x.re)
        return Complex(size * one("cos", x.im), size * one("sin", x.im))
    return _exp(x)


def abs(x: Any) -> Any:
    """The absolute value."""
    return two("hypot", x.re, x.im) if isinstance(x, Complex) else _abs(x)


def sum(x: ndarray) -> float:
    """The sum, in numpy's order."""
    return fold("sum", x)


def max(x: ndarray, initial: float | None = None) -> float:
    """The largest item."""
    return fold("max", x, initial)


def min(x: ndarray, initial: float | None = None) -> float:
    """The least item."""
    return fold("min", x, initial)


def minimum(x: Any, y: Any) -> ndarray:
    """The lesser of two items."""
    return two("minimum", x, y)


class maximum:
    """The larger of two items, and of all before."""

    def __new__(cls, x: Any, y: Any) -> Any:
        return two("maximum", x, y)

    @staticmethod
    def accumulate(x: ndarray) -> ndarray:
        """The largest item up to each."""
        return made("array_running", "max", x.view)


def cumsum(x: ndarray) -> ndarray:
    """The sum up to each item."""
    return made("array_running", "sum", x.view)


def full(length: int, value: float) -> ndarray:
    """An array of one value."""
    return made("array_full", length, float(value))


def zeros(length: int, dtype: object = None) -> Any:
    """An array of zeros."""
    return Complex(full(length, 0.0), full(length, 0.0)) if dtype is complex128 else full(length, 0.0)


def zeros_like(x: Any) -> Any:
    """As many zeros."""
    return zeros(len(x), complex128 if isinstance(x, Complex) else None)


def ones(length: int) -> ndarray:
    """An array of ones."""
    return full(length, 1.0)


def arange(first: int, end: int | None = None, dtype: object = None) -> ndarray:
    """The integers below `first`, or from it up to `end`."""
    start, stop = (0, first) if end is None else (first, end)
    return made("array_range", start, _largest(0, stop - start))


def _largest(a: int, b: int) -> int:
    return a if a >= b else b


def concatenate(parts: Sequence[ndarray]) -> ndarray:
    """The items of arrays, one array after another."""
    total, at = zeros(math.fsum(map(len, parts)).__int__()), 0
    for part in parts:
        total[at : at + len(part)] = part
        at += len(part)
    joined: ndarray = total
    return joined


def pad(x: ndarray, width: tuple[int, int]) -> ndarray:
    """The items between zeros."""
    before, after = width
    return concatenate([zeros(before), x, zeros(after)])


def roll(x: ndarray, shift: int) -> ndarray:
    """The items, shifted by a number of places to the end, cyclically."""
    cut = -shift % len(x)
    return concatenate([x[cut:], x[:cut]])


def where(mask: ndarray, x: ndarray, y: float) -> ndarray:
    """Items of `x` where the mask is true, and `y` elsewhere."""
    chosen = full(len(mask), y)
    chosen[mask] = x[mask]
    return chosen


def bincount(places: ndarray, weights: ndarray, minlength: int) -> ndarray:
    """The sum of the weights of each place."""
    return made("array_counts", places.view, weights.view, minlength)


def searchsorted(x: ndarray, value: float, side: str) -> int:
    """The insertion index of a value in an ascending array, to the right of equal items."""
    if side != "right":
        _missing(f"searchsorted on the {side}")
    return call("array_search", x.view, float(value)).integer()


def logaddexp(x: float, y: float) -> float:
    """ln(exp(x) + exp(y))."""
    if x == y:
        return x + math.log(2)
    low, high = (x, y) if x < y else (y, x)
    return high + math.log1p(math.exp(low - high))


class fft:
    """Transforms of a power of two of points."""

    @staticmethod
    def rfft(x: ndarray) -> Complex:
        """The first half of a real array's transform."""
        answer = call("array_transform", x.view)
        re, im = Block(answer.integer()), Block(answer.integer())
        return Complex(whole(re), whole(im))

    @staticmethod
    def irfft(x: Complex, size: int) -> ndarray:
        """The real array with this first half of its transform."""
        return made("array_back", x.re.view, x.im.view, size)


def errstate(**_: str) -> nullcontext[None]:
    """A context without effect: this module gives no warnings."""
    return nullcontext()


class complex128(Absent):
    """Complex numbers."""


float64 = float32 = floating = int8 = int32 = int64 = uint8 = uint32 = integer = dtype = generic = bool_ = (
    Absent
)


def asarray(values: Any, dtype: object = None) -> ndarray:
    """The values as an array."""
    return of(values)


def _missing(name: str) -> NoReturn:
    raise SetupError(f"the page has no numpy, and its replacement lacks {name}")


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    return lambda *_, **__: _missing(name)
