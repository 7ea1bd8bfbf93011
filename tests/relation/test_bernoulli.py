"""Bernoulli bits and their commitments: known answers, properties, and the native core."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_audit import _native
from rag_audit.errors import EncodingError, PolicyError
from rag_audit.relation import commitments, draws, field, native, noise
from rag_audit.relation.bernoulli import PROBABILITY_RANGE
from rag_audit.relation.draws import bernoulli_bits, uniforms
from rag_audit.relation.vectors import pack_bits, unpack_bits

BODY: dict[str, Any] = json.loads((Path(__file__).resolve().parents[2] / "vectors/v1/coins.json").read_text())
BITS = st.lists(st.booleans(), min_size=1, max_size=600)


def bits(text: str) -> list[bool]:
    return [c == "1" for c in text]


def element(case: dict[str, Any], key: str) -> int:
    return field.from_hex(case[key], field=key)


def test_known_draws_and_coins() -> None:
    for case in BODY["uniforms"]:
        assert uniforms(element(case, "kappa"), case["count"]) == case["result"]
    for case in BODY["coins"]:
        kappa, expected = element(case, "kappa"), bits(case["result"])
        assert bernoulli_bits(kappa, case["count"], case["bound"]) == expected
        native = _native.draw_bernoulli_bits(field.to_bytes(kappa), case["count"], case["bound"])
        assert [bool(b) for b in native] == expected


def test_known_commitments() -> None:
    for case in BODY["pack_bits"]:
        assert [field.to_hex(x) for x in pack_bits(bits(case["bits"]))] == case["result"]
    for case in BODY["sampling_slot"]:
        for result in (commitments.sampling_slot, native.sampling_slot):
            assert result(case["window"], case["tenant"]) == element(case, "result")
    for case in BODY["sampling_key"]:
        parts = (element(case, k) for k in ("s0", "s1", "beacon", "slot"))
        assert commitments.noise_key(*parts) == element(case, "result")
    results = []
    for case in BODY["kept"]:
        assert commitments.sample_commitment(element(case, "salt"), bits(case["bits"])) == element(
            case, "result"
        )
        results.append(case["result"])
    assert len(set(results)) == len(results)


@pytest.mark.parametrize("case", BODY["negative"], ids=lambda c: c["name"])
def test_faults_are_refused(case: dict[str, Any]) -> None:
    if "bound" in case:
        with pytest.raises(PolicyError):
            bernoulli_bits(1, 1, case["bound"])
        with pytest.raises(Exception, match="bound"):
            _native.draw_bernoulli_bits(field.to_bytes(1), 1, case["bound"])
    else:
        with pytest.raises(EncodingError):
            unpack_bits([element({"x": x}, "x") for x in case["elements"]], case["count"])


def test_a_coin_is_a_draw_of_the_noise_read_as_an_integer() -> None:
    table = noise.alias_table()
    for draw, x in zip(uniforms(7, 160), draws.draw(7, 160, [1]), strict=True):
        head, t = draw & 0xFF, draw >> 8
        magnitude = table.magnitude(head & 0x7F, t)
        assert x == (-magnitude if head & 0x80 else magnitude)


def test_the_sampling_slot_is_no_accounts() -> None:
    others = {commitments.slot_id("w-1", "tenant-a", a, 1) for a in ("sampling", "a", "tenant-a")}
    assert commitments.sampling_slot("w-1", "tenant-a") not in others
    with pytest.raises(EncodingError):
        commitments.slot_id("w-1", "tenant-a", "/sampling", 0)


@given(BITS)
def test_packing_has_one_form(values: list[bool]) -> None:
    assert unpack_bits(pack_bits(values), len(values)) == values


def test_what_is_no_bit_is_not_packed() -> None:
    """2 would carry into the next bit: a second opening of the same commitment."""
    with pytest.raises(EncodingError):
        pack_bits([2])  # type: ignore[list-item]
    with pytest.raises(EncodingError):
        commitments.sample_commitment(1, [True, -1])  # type: ignore[list-item]


@given(st.integers(0, 2**200), st.integers(1, PROBABILITY_RANGE - 1))
def test_the_native_core_draws_the_same_coins(kappa: int, bound: int) -> None:
    native = _native.draw_bernoulli_bits(field.to_bytes(kappa), 81, bound)
    assert [bool(b) for b in native] == bernoulli_bits(kappa, 81, bound)
