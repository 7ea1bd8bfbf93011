"""Arrays in the WebAssembly module, and views of them, with the operators of numpy's."""

from __future__ import annotations

import array
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeAlias

from rag_audit.report.browser.inside.module import Field, StoredValue, call

Number: TypeAlias = "float | int"


class Block(StoredValue):
    """The memory of an array."""

    kind = "array"

    def __init__(self, number: int) -> None:
        self.number = number


def _operator(name: str) -> Callable[[ndarray, Any], Any]:
    """An operator with an array as left operand and any right operand."""
    return lambda left, right: two(name, left, right)


def _reflected(name: str) -> Callable[[ndarray, Any], Any]:
    """The same with the array on its right."""
    return lambda right, left: two(name, left, right)


class ndarray:
    """A view of every `step`-th item of a block."""

    ndim = 1

    def __init__(self, block: Block, start: int, step: int, length: int) -> None:
        self._block, self._start, self._step, self._length = block, start, step, length

    @property
    def view(self) -> tuple[int, int, int, int]:
        """The module's reference to this view."""
        return self._block.number, self._start, self._step, self._length

    @property
    def shape(self) -> tuple[int]:
        """The number of items, in a tuple."""
        return (self._length,)

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[float]:
        return iter(self.tolist())

    def tolist(self) -> list[float]:
        """The items."""
        return array.array("d", call("array_bytes", self.view).bytes()).tolist()

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, slice):
            start, stop, step = key.indices(self._length)
            length = len(range(start, stop, step))
            return ndarray(self._block, self._start + start * self._step, step * self._step, length)
        if isinstance(key, ndarray):
            return made("array_chosen", self.view, key.view)
        return self._item(key).tolist()[0]

    def _item(self, key: int) -> ndarray:
        place = key + self._length if key < 0 else key
        if not 0 <= place < self._length:
            raise IndexError(f"index {key} is out of bounds for {self._length} items")
        return ndarray(self._block, self._start + place * self._step, 1, 1)

    def __setitem__(self, key: Any, value: Any) -> None:
        if isinstance(key, ndarray):
            call("array_put", self.view, key.view, _operand(value))
            return
        target = self[key] if isinstance(key, slice) else self._item(key)
        if not (isinstance(value, ndarray) and value.view == target.view):
            call("array_set", target.view, _operand(value))

    def setflags(self, *, write: bool) -> None:
        """Ignore the flags. numpy outside the page detects writes to a constant array."""

    def copy(self) -> ndarray:
        """The items in memory of their own."""
        return one("copy", self)

    def astype(self, kind: object) -> ndarray:
        """The items, which are integers already where integers are asked for."""
        return self.copy()

    def min(self) -> float:
        """The least item."""
        return fold("min", self)

    def max(self) -> float:
        """The largest item."""
        return fold("max", self)

    def sum(self) -> float:
        """The sum."""
        return fold("sum", self)

    def reshape(self, rows: int, columns: int) -> _Rows:
        """The items as rows of that many."""
        return _Rows(self, columns)

    def _in_place(self, name: str, other: Any) -> ndarray:
        result = two(name, self, other)  # referenced until it is copied
        call("array_set", self.view, _operand(result))
        return self

    def __neg__(self) -> ndarray:
        return one("negative", self)

    def __iadd__(self, other: Any) -> ndarray:
        return self._in_place("add", other)

    __add__, __radd__ = _operator("add"), _reflected("add")
    __sub__, __rsub__ = _operator("subtract"), _reflected("subtract")
    __mul__, __rmul__ = _operator("multiply"), _reflected("multiply")
    __truediv__, __rtruediv__ = _operator("divide"), _reflected("divide")
    __pow__ = _operator("power")
    __gt__, __ge__ = _operator("greater"), _operator("greater_equal")
    __lt__, __le__ = _operator("less"), _operator("less_equal")


class _Rows(NamedTuple):
    """A two-dimensional array. The accountant only sums its rows."""

    items: ndarray
    columns: int

    def sum(self, axis: int) -> ndarray:
        """The sum of all rows."""
        total: ndarray = self.items[: self.columns].copy()
        for start in range(self.columns, len(self.items), self.columns):
            total += self.items[start : start + self.columns]
        return total


class Complex:
    """An array of complex numbers."""

    def __init__(self, re: ndarray, im: ndarray) -> None:
        self.re, self.im = re, im

    def __len__(self) -> int:
        return len(self.re)

    def __add__(self, other: Number) -> Complex:
        return Complex(self.re + other, self.im)

    def __iadd__(self, other: Complex) -> Complex:  # type: ignore[misc]  # numpy's, of two arrays
        self.re += other.re
        self.im += other.im
        return self

    def __rmul__(self, factor: Number) -> Complex:
        return Complex(factor * self.re, factor * self.im)

    def __getitem__(self, mask: ndarray) -> Complex:
        return Complex(self.re[mask], self.im[mask])

    def __setitem__(self, mask: ndarray, value: Complex) -> None:
        self.re[mask], self.im[mask] = value.re, value.im


def made(name: str, *arguments: Field) -> ndarray:
    """The array that a function of the module makes."""
    answer = call(name, *arguments)
    block = Block(answer.integer())
    return whole(block)


def whole(block: Block) -> ndarray:
    """All of a block."""
    return ndarray(block, 0, 1, call("array_length", block.number).integer())


def _operand(value: Any) -> Field:
    return (1, *value.view) if isinstance(value, ndarray) else (0, float(value))


def one(name: str, x: ndarray) -> ndarray:
    """A function of each item."""
    return made("array_one", name, x.view)


def two(name: str, x: Any, y: Any) -> ndarray:
    """A function of two items, or of an item and a number."""
    return made("array_two", name, _operand(x), _operand(y))


def fold(name: str, x: ndarray, initial: float | None = None) -> float:
    """A function of all items."""
    return call("array_fold", name, [] if initial is None else [float(initial)], x.view).float()


def of(values: Any) -> ndarray:
    """An array of these values."""
    if isinstance(values, ndarray):
        return values
    return made("array_floats", array.array("d", map(float, values)).tobytes())
