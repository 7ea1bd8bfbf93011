"""Texts that look the same have one form; texts that look different keep their difference."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_audit.retrieval.embedders.normal_form import visible_form


@pytest.mark.parametrize(
    "written, form",
    [
        ("o\ufb03ce e\ufb03ciency \ufb02ow", "office efficiency flow"),
        ("\ufb06op \ufb13 \u0133s", "stop \u0574\u0576 ijs"),
        ("heat\u00ading con\u00adtract", "heating contract"),
        ("zero\u200bwidth\u2060 \ufeffmarks\u200e", "zerowidth marks"),
        ("Gro\u0308\u00dfe", "Gr\u00f6\u00dfe"),
        ("e\u200d\u0301", "\u00e9"),
        ("\uff21\uff22\uff23\uff11\u3000\uff76\uff9e", "ABC1 \u30ac"),
        ("\ufeb3\ufefc\ufee1", "\u0633\u0644\u0627\u0645"),
        ("a\u00a0b\u202fc\u2003d", "a b c d"),
        ("non\u2011breaking", "non\u2010breaking"),
        ("one\r\ntwo\rthree\u2028four\u2029five\x0bsix\x0cseven\x85eight", "one\ntwo\nthree\nfour\nfive\nsix\nseven\neight"),
        ("\u00ad\u200b\ufeff", ""),
    ],
)  # fmt: skip
def test_encodings_of_one_appearance_have_one_form(written: str, form: str) -> None:
    assert visible_form(written) == form


@pytest.mark.parametrize("decomposed", ["난방비는 세입자가 부담한다", "Größe der Heizung", "ガス"])
def test_decomposed_letters_are_composed(decomposed: str) -> None:
    apart = unicodedata.normalize("NFD", decomposed)
    assert apart != decomposed
    assert visible_form(apart) == visible_form(decomposed) == decomposed


@pytest.mark.parametrize("text", ["x\u00b2", "\u2460", "\u00bd", "\u210c", "\u2122", "\u2026", "\u2126", "\u00e6\u0153", "a\n\nb\tc"])  # fmt: skip
def test_what_looks_different_stays(text: str) -> None:
    """Superscripts, circled digits, fractions and letters of their own; U+2126 has the canonical form U+03A9."""
    assert visible_form(text) == unicodedata.normalize("NFC", text)


@given(st.text(st.characters(codec="utf-8")))
def test_the_form_of_a_form_is_itself(text: str) -> None:
    form = visible_form(text)
    assert visible_form(form) == form
    assert visible_form(unicodedata.normalize("NFD", text)) == form
    assert not {"\xad", "\r", "\u200b", "\ufb01"} & set(form)


@given(st.text(st.sampled_from("ab\u0301\u00ad\u200d\ufb01\ufe70\uff76\uff9e\uffa0\r\n\u2028\u1100\u1161")))
def test_the_form_of_a_form_is_itself_next_to_marks(text: str) -> None:
    assert visible_form(visible_form(text)) == visible_form(text)
