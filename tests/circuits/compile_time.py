"""The compiler's computations before a circuit exists: functions, and a template's variables and asserts. The module reads
them from the sources and runs them with circom's arithmetic of residues modulo r. A test can therefore show for the
shipped text, and not for a copy of its formulas, that this arithmetic equals the arithmetic of integers."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Any

from rag_audit._internal.node import circuits_dir
from rag_audit.relation.field import MODULUS

HALF = MODULUS // 2
_BITS = MODULUS.bit_length()


class Refused(Exception):
    """A false assert, with its text."""


class Residue:
    """A value at compile time: an element of 0..r - 1, which comparisons take as one of -r/2..r/2."""

    __slots__ = ("value",)

    def __init__(self, value: int) -> None:
        self.value = value % MODULUS

    def __int__(self) -> int:
        """The value with its sign."""
        return self.value if self.value <= HALF else self.value - MODULUS

    def __index__(self) -> int:
        return self.value

    def __bool__(self) -> bool:
        return self.value != 0

    def __add__(self, other: Residue) -> Residue:
        return Residue(self.value + other.value)

    def __sub__(self, other: Residue) -> Residue:
        return Residue(self.value - other.value)

    def __neg__(self) -> Residue:
        return Residue(-self.value)

    def __mul__(self, other: Residue) -> Residue:
        return Residue(self.value * other.value)

    def __floordiv__(self, other: Residue) -> Residue:
        if other.value == 0:
            raise Refused("division by zero")
        return Residue(self.value // other.value)

    def __mod__(self, other: Residue) -> Residue:
        if other.value == 0:
            raise Refused("division by zero")
        return Residue(self.value % other.value)

    def __lshift__(self, other: Residue) -> Residue:
        places = int(other)
        if places < 0:
            return Residue(self.value >> min(-places, _BITS))
        return Residue((self.value << min(places, _BITS)) & ((1 << _BITS) - 1))

    def __rshift__(self, other: Residue) -> Residue:
        return self << -other

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Residue) and self.value == other.value

    __hash__ = None  # type: ignore[assignment]

    def __lt__(self, other: Residue) -> bool:
        return int(self) < int(other)

    def __le__(self, other: Residue) -> bool:
        return int(self) <= int(other)

    def __gt__(self, other: Residue) -> bool:
        return int(self) > int(other)

    def __ge__(self, other: Residue) -> bool:
        return int(self) >= int(other)


def bit_length(x: Residue) -> Residue:
    """utils/bits.circom's, which counts up to here in a loop; a test compares the two. A negative number has none."""
    return Residue(max(0, int(x)).bit_length())


def _need(holds: object, text: str) -> None:
    if not holds:
        raise Refused(text)


def _closing(text: str, opened: int) -> int:
    depth = 0
    for place in range(opened, len(text)):
        depth += (text[place] in "([") - (text[place] in ")]")
        if depth == 0:
            return place
    raise AssertionError(f"no closing bracket: {text}")


def _parts(text: str, separator: str) -> list[str]:
    """Split at the separator, outside brackets."""
    result, depth, start = [], 0, 0
    for place, sign in enumerate(text):
        depth += (sign in "([") - (sign in ")]")
        if sign == separator and depth == 0:
            result.append(text[start:place])
            start = place + 1
    return [*result, text[start:]]


def _expression(text: str) -> str:
    """A circom expression as one of Python over `Residue`s."""
    condition, *rest = _parts(text, "?")
    if rest:
        yes, no = _parts("?".join(rest), ":")
        return f"(({_expression(yes)}) if ({_expression(condition)}) else ({_expression(no)}))"
    out, place = "", 0
    while place < len(text):
        if text[place] in "([":
            end = _closing(text, place)
            inner = ", ".join(_expression(part) for part in _parts(text[place + 1 : end], ","))
            out += text[place] + inner + text[end]
            place = end + 1
        elif number := re.match(r"\d+", text[place:]):
            out += f"_n({number[0]})"
            place += number.end()
        elif word := re.match(r"\w+", text[place:]):
            out += word[0]
            place += word.end()
        else:
            out += text[place]
            place += 1
    return out.replace("&&", " and ").replace("||", " or ").replace("\\", "//")


def _statements(lines: list[str]) -> list[str]:
    """Circom statements, one a line, as Python."""
    out: list[str] = []
    loops: list[str] = []  # what each open block ends with
    depth = 0

    def put(text: str) -> None:
        out.append("    " * depth + text)

    for line in lines:
        if line == "}":
            increment = loops.pop()
            if increment:
                put(increment)
            depth -= 1
        elif head := re.fullmatch(r"(if|while) \((.*)\) \{", line):
            put(f"{head[1]} {_expression(head[2])}:")
            depth += 1
            loops.append("")
        elif head := re.fullmatch(r"for \(var (\w+) = (.*); (.*); \w+\+\+\) \{", line):
            put(f"{head[1]} = {_expression(head[2])}")
            put(f"while {_expression(head[3])}:")
            depth += 1
            loops.append(f"{head[1]} = {head[1]} + _n(1)")
        elif result := re.fullmatch(r"assert\((.*)\);", line):
            put(f"_need({_expression(result[1])}, {line!r})")
        elif result := re.fullmatch(r"return (.*);", line):
            put(f"return {_expression(result[1])}")
        elif result := re.fullmatch(r"(\w+)\+\+;", line):
            put(f"{result[1]} = {result[1]} + _n(1)")
        elif result := re.fullmatch(r"(\w+) \+= (.*);", line):
            put(f"{result[1]} = {result[1]} + {_expression(result[2])}")
        elif result := re.fullmatch(r"(?:var )?(\w+) = (.*);", line):
            put(f"{result[1]} = {_expression(result[2])}")
        else:
            raise AssertionError(f"not understood: {line}")
    return out


def _shipped() -> str:
    files = [*sorted((circuits_dir() / "lib").glob("*.circom")), circuits_dir() / "utils" / "bits.circom"]
    text = "\n".join(f.read_text() for f in files if f.name != "dgs1_table.circom")
    return re.sub(r"\s*//.*", "", text)


_texts: list[str] = []
"""The texts to read; the last one counts: the shipped sources, and their versions by `without`."""
_BODY = r"^(function|template) (\w+)\((.*)\) \{\n((?:.*\n)*?)\}"
_ASSERT = re.compile(r"^ *assert\((.*)\);$", re.MULTILINE)


def _text() -> str:
    if not _texts:
        _texts.append(_shipped())
    return _texts[-1]


def bounds() -> set[tuple[str, str]]:
    """Every part of every assert of the sources, with its function or template."""
    return {
        (body[2], part.strip())
        for body in re.finditer(_BODY, _text(), re.MULTILINE)
        for result in _ASSERT.finditer(body[4])
        for part in result[1].split("&&")
    }


@contextmanager
def without(name: str, bound: str) -> Iterator[None]:
    """The sources with one part of an assert taken out."""
    body = next(b for b in re.finditer(_BODY, _text(), re.MULTILINE) if b[2] == name)

    def shorter(actual: re.Match[str]) -> str:
        parts = [p.strip() for p in actual[1].split("&&") if p.strip() != bound]
        return f"assert({' && '.join(parts)});" if parts else ""

    changed = _ASSERT.sub(shorter, body[0])
    assert changed != body[0], f"{name} does not assert {bound}"
    _texts.append(_text().replace(body[0], changed))
    caches = (function, template, _names, _slot_arguments)
    try:
        for kept in caches:
            kept.cache_clear()
        yield
    finally:
        _texts.pop()
        for kept in caches:
            kept.cache_clear()


def _body(kind: str, name: str) -> tuple[list[str], list[str]]:
    """Parameters, and the lines of the body."""
    result = (b for b in re.finditer(_BODY, _text(), re.MULTILINE) if (b[1], b[2]) == (kind, name))
    body = next(result, None)
    assert body is not None, f"no {kind} {name}"
    lines = [line.strip() for line in body[4].splitlines()]
    return [p.strip() for p in body[3].split(",")], [line for line in lines if line]


@cache
def _names() -> dict[str, Any]:
    return {
        "_n": _constant,
        "_need": _need,
        "bit_length": bit_length,
        **{
            name: function(name)
            for name in (
                "quotient_groups",
                "quotient_reach",
                "quotient_offset",
                "slot_bits",
                "row_bits",
                "count_bits",
                "slot_elements",
            )
        },
    }


@cache
def _constant(value: int) -> Residue:
    return Residue(value)


@cache
def function(name: str) -> Callable[..., Residue]:
    """A function of the sources. It looks up the functions that it calls when it runs."""
    parameters, lines = _body("function", name)
    source = "\n    ".join([f"def {name}({', '.join(parameters)}):", *_statements(lines)])
    scope: dict[str, Any] = {"_n": _constant, "_need": _need, "bit_length": bit_length}
    if name == "bit_length":
        scope.pop(name)
    for other in re.findall(r"\b(\w+)\(", "\n".join(lines)):
        if other not in ("assert", "if", "while", name) and other not in scope:
            scope[other] = function(other)
    exec(source, scope)
    result: Callable[..., Residue] = scope[name]
    return result


@cache
def template(name: str) -> Callable[..., dict[str, Any]]:
    """Run a template's computations and asserts on its parameters before its first signal, and return its variables."""
    parameters, lines = _body("template", name)
    until = next(i for i, line in enumerate(lines) if line.startswith("signal "))
    body = [*_statements(lines[:until]), "return dict(locals())"]
    source = "\n    ".join([f"def made({', '.join(parameters)}):", *body])
    scope = dict(_names())
    exec(source, scope)
    result: Callable[..., dict[str, Any]] = scope["made"]
    return result


@cache
def _slot_arguments(name: str) -> list[Any]:
    _, lines = _body("template", name)
    result = [line for line in lines if "= SlotEquality(" in line]
    assert result, f"{name} has no slots"
    codes = []
    for line in result:
        opened = line.index("SlotEquality(") + len("SlotEquality")
        inner = line[opened + 1 : _closing(line, opened)]
        codes.append([compile(_expression(part.strip()), name, "eval") for part in _parts(inner, ",")])
    return codes


def slots(name: str, variables: Mapping[str, Any], **more: int) -> list[list[Residue]]:
    """The arguments of each SlotEquality of a template. The function also runs the asserts of SlotEquality.

    :param variables: `template`'s
    :param more: values of variables that are set further down
    :raises Refused: by an assert of SlotEquality
    """
    values = {**variables, **{k: Residue(v) for k, v in more.items()}}
    result = [[eval(code, _names(), values) for code in codes] for codes in _slot_arguments(name)]
    for arguments in result:
        template("SlotEquality")(*arguments)
    return result
