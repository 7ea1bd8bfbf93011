"""Canonical JSON: what the fast writer gives is what the library for RFC 8785 gives."""

from __future__ import annotations

from typing import Any

import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from rag_audit._internal import canonical
from rag_audit._internal.canonical import MAX_DEPTH, MAX_SAFE_INTEGER, jcs, parse_json
from rag_audit.errors import EncodingError

texts = st.text(st.characters(exclude_categories=("Cs",)), max_size=12)
scalars = st.none() | st.booleans() | st.integers(-MAX_SAFE_INTEGER, MAX_SAFE_INTEGER) | texts
values = st.recursive(scalars, lambda v: st.lists(v, max_size=4) | st.dictionaries(texts, v, max_size=4))


@given(values)
def test_any_value(value: Any) -> None:
    assert jcs(value) == rfc8785.dumps(value)


def test_every_character_below_the_surrogates_and_some_above() -> None:
    text = "".join(map(chr, [*range(0xD800), 0xE000, 0xFFFF, 0x10000, 0x10FFFF]))
    assert jcs([text, {"key": text}]) == rfc8785.dumps([text, {"key": text}])


def test_keys_beyond_ascii_are_sorted_by_utf16_units() -> None:
    # U+10000 is D800 DC00 in UTF-16, before U+FFFF; by code points it comes after.
    value = {"\uffff": 1, "\U00010000": 2, "a": 3}
    assert jcs(value) == '{"a":3,"\U00010000":2,"\uffff":1}'.encode()


@pytest.mark.parametrize("depth", [0, 1, MAX_DEPTH])
def test_nesting_up_to_the_limit(depth: int) -> None:
    value: Any = 7
    for _ in range(depth):
        value = [value]
    assert jcs(value) == b"[" * depth + b"7" + b"]" * depth


def deep(depth: int) -> Any:
    return [deep(depth - 1)] if depth else 7


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (0.5, "not a JSON value"),
        ({"a": [1.0]}, "not a JSON value"),
        ({"a": {1: 2}}, "keys must be strings"),
        ([MAX_SAFE_INTEGER + 1], "too large"),
        ([-MAX_SAFE_INTEGER - 1], "too large"),
        (["\ud800"], "surrogate"),
        ({"\udfff": 1}, "surrogate"),
        ([b"bytes"], "not a JSON value"),
        (deep(MAX_DEPTH + 1), "too deeply"),
    ],
)
def test_what_has_no_canonical_form_is_refused(value: Any, message: str) -> None:
    with pytest.raises(EncodingError, match=message):
        jcs(value)


def test_a_windows_entries_take_the_fast_way(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(value: Any) -> bytes:
        raise AssertionError("the slow way")

    monkeypatch.setattr(rfc8785, "dumps", refuse)
    assert jcs({"type": "query", "text": "é\n", "list": [1, None, True]}) == (
        '{"list":[1,null,true],"text":"é\\n","type":"query"}'.encode()
    )
    assert canonical.parse_json('{"a": "é"}', source="text") == {"a": "é"}


def test_reals_are_taken_as_their_text_where_a_format_has_them() -> None:
    assert parse_json("[1, 0.5, -1e-7]", source="file", reals=True) == [1, "0.5", "-1e-7"]
    for text in ("0.5", "NaN"):
        with pytest.raises(EncodingError):
            parse_json(f"[{text}]", source="file", reals=text == "NaN")
