"""The expected form of a document, in words. Only this module converts pydantic's errors into this package's own.

A message is for the person who has the document. It names the place in the document and the format's requirement there.
For an unknown field it names the nearest known fields. It contains no text of a library and no class name.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from rag_audit._internal.errors import brief

_TYPES = {
    "int": "an integer",
    "string": "a text",
    "bool": "true or false",
    "float": "a number",
    "list": "a list",
    "tuple": "a list",
    "dict": "an object",
    "mapping": "an object",
    "model": "an object",
    "model_attributes": "an object",
}
_PATTERNS = {
    r"^[0-9a-f]{64}$": "64 lowercase hexadecimal digits",
    r"^[0-9a-f]{128}$": "128 lowercase hexadecimal digits",
    r"^([0-9a-f]{96}|[0-9a-f]{192})$": "96 or 192 lowercase hexadecimal digits",
    r"^[0-9]{1,12}(\.[0-9]{1,30})?(e-?[0-9]{1,3})?$": 'a decimal number as a text, such as "0.5" or "1e-5"',
    r"^[A-Za-z0-9][A-Za-z0-9._@:-]{0,127}$": "at most 128 letters, digits and ._@:-, the first a letter or digit",
}  # fmt: skip
_BOUNDS = {
    "greater_than_equal": ("at least", "ge"),
    "greater_than": ("above", "gt"),
    "less_than_equal": ("at most", "le"),
    "less_than": ("below", "lt"),
    "too_short": ("at least", "min_length"),
    "too_long": ("at most", "max_length"),
    "string_too_short": ("at least", "min_length"),
    "string_too_long": ("at most", "max_length"),
}
_NAMES = {
    "AttackRun": "attacks file",
    "Config": "configuration",
    "Require": "requirement",
    "TiledParts": "window file",
    "Trust": "trust file",
}
"""Documents with a class name that differs from their usual name."""
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_MOST_NAMED = 12


@dataclass(frozen=True)
class Complaint:
    """The first fault of a document.

    :param place: steps from the document's name, such as ``.require.mode`` or ``[3].seq``
    :param actual: None where the field is missing
    """

    place: str
    expected: str
    actual: str | None
    hint: str | None = None


def words_of(model: type[BaseModel]) -> str:
    """A model's name in words: ``QueryRecord`` is "query record"."""
    if model.__name__ in _NAMES:
        return _NAMES[model.__name__]
    return _CAMEL.sub(" ", model.__name__.lstrip("_")).lower()


def complaint(model: type[BaseModel], value: object, error: ValidationError) -> Complaint:
    """The first fault that pydantic found, in words."""
    first = min(error.errors(include_url=False), key=lambda e: not _reached(value, e))
    steps = list(_steps(value, first))
    place = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps)
    kind = first["type"]
    if kind == "missing":
        return Complaint(place, _present(model, first["loc"]), None)
    if kind == "extra_forbidden":
        return _unknown(model, value, first, place)
    return Complaint(place, _expected(kind, first), brief(first.get("input")))


def _reached(value: object, error: ErrorDetails) -> bool:
    """Whether an error concerns a part that is present in the document.

    For a union pydantic reports every branch. A branch with only missing fields is rarely the intended one.
    """
    return error["type"] != "missing" or len(error["loc"]) < 2 or _parent(value, error["loc"]) is not None


def _parent(value: object, loc: tuple[int | str, ...]) -> object:
    inside: object = value
    for step in loc[:-1]:
        inside = _inside(inside, step)
    return inside


def _inside(value: object, step: int | str) -> object:
    if isinstance(value, Mapping):
        return value.get(step)
    if isinstance(value, list | tuple) and isinstance(step, int) and 0 <= step < len(value):
        return value[step]
    return None


def _steps(value: object, error: ErrorDetails) -> Iterator[int | str]:
    """The steps of a place that the document has. pydantic's others name branches of unions, by their classes."""
    inside: object = value
    last = len(error["loc"]) - 1
    for number, step in enumerate(error["loc"]):
        here = (isinstance(inside, Mapping) and step in inside) or (
            isinstance(inside, list | tuple) and isinstance(step, int) and step < len(inside)
        )
        if here:
            inside = _inside(inside, step)
            yield step
        elif number == last and error["type"] == "missing":
            yield step


def _expected(kind: str, error: ErrorDetails) -> str:
    context = error.get("ctx") or {}
    if kind == "value_error":
        # The validators of this package state their own expectation.
        return str(context.get("error", "a value of the format"))
    if kind in _BOUNDS:
        words, key = _BOUNDS[kind]
        unit = " characters" if kind.startswith("string_") else " items" if kind.startswith("too_") else ""
        return f"{words} {context.get(key)}{unit}"
    if kind == "string_pattern_mismatch":
        pattern = str(context.get("pattern"))
        return _PATTERNS.get(pattern, f"a text of the form {pattern}")
    if kind in ("literal_error", "enum"):
        return str(context.get("expected"))
    if kind == "union_tag_invalid":
        return f"one of {context.get('expected_tags')}"
    if kind == "union_tag_not_found":
        return f"an object with the field {str(context.get('discriminator')).strip(chr(39))}"
    if kind == "none_required":
        return "null"
    if kind == "finite_number":
        return "a finite number"
    return _TYPES.get(
        re.sub(r"_(type|from_float|parsing|parsing_size|unicode)\Z", "", kind), "a value of the format"
    )


def _present(model: type[BaseModel], loc: tuple[int | str, ...]) -> str:
    """The expectation for a missing field, with its choices where they are a few words."""
    choices: tuple[object, ...] = ()
    for owner in _owners(model, loc):
        field = owner.model_fields.get(str(loc[-1]))
        if field is not None and all(isinstance(c, str | int) for c in get_args(field.annotation)):
            choices = get_args(field.annotation)
    return "the field to be present" + (f": {' or '.join(map(repr, choices))}" if choices else "")


def _unknown(model: type[BaseModel], value: object, error: ErrorDetails, place: str) -> Complaint:
    """An unknown field, with the known names that come nearest."""
    name = str(error["loc"][-1])
    known = sorted({field for owner in _owners(model, error["loc"]) for field in owner.model_fields})
    near = difflib.get_close_matches(name, known, n=3, cutoff=0.6)
    parent = _parent(value, error["loc"])
    if not near and isinstance(parent, Mapping):
        known = [field for field in known if field not in parent]
    shown = ", ".join(near or known[:_MOST_NAMED]) + (
        ", and others" if not near and len(known) > _MOST_NAMED else ""
    )
    hint = f"did you mean {' or '.join(near)}?" if near else None
    expected = f"a field of this format: {shown}" if shown else "no further field"
    return Complaint(place, expected, f"the unknown field {name}", hint)


def _owners(model: type[BaseModel], loc: tuple[int | str, ...]) -> list[type[BaseModel]]:
    """The models that can own the field in the last step of a place."""
    owners: list[type[BaseModel]] = [model]
    for step in loc[:-1]:
        if isinstance(step, str):
            inner = [
                m
                for o in owners
                if (f := o.model_fields.get(step)) is not None
                for m in _models(f.annotation)
            ]
            owners = inner or owners
    return owners


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in get_args(annotation):
        yield from _models(part)
