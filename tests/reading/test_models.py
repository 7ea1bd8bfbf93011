"""What the models share: an integer is an integer, a name is one visible line, a roster line says who holds the key."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from typing import Any, Literal, get_args, get_origin

import pytest

import rag_audit
from rag_audit._internal.extras import EXTRAS
from rag_audit.errors import SchemaError
from rag_audit.models.models import Line, Model, One
from rag_audit.models.records import RosterEntry
from rag_audit.models.trust import Require

LINE = {"account": "a", "tenant": "t", "key": "0" * 64, "custody": "account"}


class _Example(Model):
    one: One
    name: Line


@pytest.mark.parametrize("value", [True, 1.0, "1", 2, None, [1]])
def test_version_1_is_the_integer(value: object) -> None:
    """A literal is compared by ==, for which true and 1.0 are 1."""
    assert _Example.parse({"one": 1, "name": "x"}, field="x").one == 1
    with pytest.raises(SchemaError) as caught:
        _Example.parse({"one": value, "name": "x"}, field="x")
    assert caught.value.field == "x.one"


BAD_NAMES = {
    "two lines": "example.org\nPASS eps_audit=0.1",
    "a carriage return": "example.org\rPASS",
    "a terminal's sequence": "\x1b[2Jexample.org",
    "a C1 control": "example\x9b2J.org",
    "text turned around": "example\u202egro.",
    "an isolate": "example\u2066.org",
    "a line separator": "example\u2028.org",
    "an invisible character": "example\u200b.org",
    "a space that is none": "example\u00a0.org",
    "blank": "   ",
    "empty": "",
    "too long": "x" * 256,
}


@pytest.mark.parametrize("name", BAD_NAMES.values(), ids=BAD_NAMES.keys())
def test_a_name_is_one_line_of_visible_characters(name: str) -> None:
    assert _Example.parse({"one": 1, "name": "Bücherei 図書館/rag"}, field="x").name
    with pytest.raises(SchemaError) as caught:
        _Example.parse({"one": 1, "name": name}, field="x")
    assert caught.value.field == "x.name"
    assert str(caught.value).isprintable()


def models() -> Iterator[type[Model]]:
    for module in pkgutil.walk_packages(rag_audit.__path__, "rag_audit."):
        if not module.name.endswith(("__main__", "_native")) and ".demo" not in module.name:
            try:
                importlib.import_module(module.name)
            except ModuleNotFoundError as exc:  # a framework that only the full suite has
                if (exc.name or "").partition(".")[0] not in EXTRAS:
                    raise
    waiting: list[type[Any]] = [Model]
    while waiting:
        result = waiting.pop()
        waiting += result.__subclasses__()
        if result.__module__.startswith("rag_audit."):
            yield result


def test_no_model_compares_an_integer_with_true() -> None:
    """1 and 0 in a bare literal admit true and false."""
    loose = [
        f"{model.__name__}.{name}"
        for model in models()
        for name, field in model.model_fields.items()
        if get_origin(field.annotation) is Literal
        and {0, 1} & {v for v in get_args(field.annotation) if type(v) is int}
        and not field.metadata
    ]
    assert loose == []


def integers() -> Iterator[tuple[type[Model], str]]:
    for model in models():
        for name, field in model.model_fields.items():
            if field.annotation is int:
                yield model, name


def test_no_integer_field_takes_a_boolean() -> None:
    fields = list(integers())
    assert len(fields) > 30
    for model, name in fields:
        with pytest.raises(Exception) as caught:
            model.model_validate({name: True})
        errors = [e for e in caught.value.errors() if e["loc"][0] == name]  # type: ignore[attr-defined]
        assert errors, f"{model.__name__}.{name} takes true"


@pytest.mark.parametrize("custody", [None, "", "nobody", True])
def test_a_roster_line_says_who_holds_the_key(custody: object) -> None:
    line = {k: v for k, v in LINE.items() if k != "custody"}
    if custody is not None:
        line["custody"] = custody  # type: ignore[assignment]
    with pytest.raises(SchemaError) as caught:
        RosterEntry.parse(line, field="roster[0]")
    assert caught.value.field == "roster[0].custody"
    assert "'account' or 'provider'" in str(caught.value.expected)


def test_min_tau_has_a_unit() -> None:
    for good in (0, "500 positions", "3600 seconds"):
        assert Require.parse({"min_tau": good}, field="require").min_tau == good
    for bad in (5, True, False, 0.0, "0", "500", "500 hours", "0 positions", "٥ seconds", "5 seconds\n", []):
        with pytest.raises(SchemaError) as caught:
            Require.parse({"min_tau": bad}, field="require")
        assert caught.value.field == "require.min_tau" and "positions" in str(caught.value.expected)
