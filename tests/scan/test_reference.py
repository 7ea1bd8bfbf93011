"""The second verifier of the scan argument against published bytes; each run's tests stand in a file of their own."""

from __future__ import annotations

import base64
import dataclasses
import random
from typing import Any

import pytest
from py_ecc.optimized_bn128 import FQ, Z1, add, multiply, normalize

from rag_audit.errors import EncodingError
from rag_audit.proofs.reference import noise
from rag_audit.proofs.reference.extensions import Functional, below, dot, eq_table, numbers
from rag_audit.proofs.reference.group import G, decode, encode, generator, total
from rag_audit.proofs.reference.transcript import Transcript
from rag_audit.proofs.reference.words import Seed
from rag_audit.relation.field import MODULUS
from tests.scan.golden import Labels, counts, published, traces, words_by_label


@pytest.fixture(scope="module")
def answer() -> dict[str, Any]:
    return published("proofs")["answer"]  # type: ignore[no-any-return]


def slot(answer: dict[str, Any]) -> noise.Slot:
    seed = Seed(*(int(answer[name], 16) for name in ("c_seed", "beacon", "slot")))
    return noise.Slot(bytes.fromhex(answer["window"]), seed, answer["capacity"], answer["gains"])


def accepted(slot: noise.Slot, proof: bytes) -> bool:
    return noise.verify(slot, proof)[0]


def test_generators_are_the_published_ones() -> None:
    known = published("generators")
    for family in "GQ":
        for i, point in enumerate(known[f"{family}_first"]):
            assert encode(generator(f"{family}/{i}")).hex() == point
    for name in "HU":
        assert encode(generator(f"{name}/0")).hex() == known[name]


def test_sums_are_those_of_py_ecc() -> None:
    rng = random.Random(1)
    points = [generator(G(i)) for i in range(4)]
    terms = [(rng.randrange(MODULUS), points[i % 3]) for i in range(5)]
    terms += [(1, points[3]), (-1, points[3]), (7, None), (0, points[1])]
    result = Z1
    for k, point in terms:
        if point is not None:
            result = add(result, multiply((FQ(point[0]), FQ(point[1]), FQ(1)), k % MODULUS))
    assert total(terms) == tuple(int(c) for c in normalize(result))
    assert total([(2, G(0)), (-1, G(0)), (-1, G(0))]) is None


def test_points_have_one_encoding() -> None:
    assert encode(decode(encode(None))) == encode(None)
    for bad in (b"\xc0" + bytes(31), b"\x40" + bytes(30) + b"\x01", b"\x3f" + b"\xff" * 31):
        with pytest.raises(EncodingError):
            decode(bad)


@pytest.mark.parametrize("m", [0, 1, 5, 8])
def test_extensions_are_the_sums_that_they_stand_for(m: int) -> None:
    rng = random.Random(m)
    a, p = ([rng.randrange(MODULUS) for _ in range(n)] for n in (3, 5))
    weights, at = eq_table(a), eq_table(p)
    assert below(a, m) == sum(weights[:m]) % MODULUS
    assert numbers(a, m) == dot(weights[:m], range(m))
    for coefficients in ((1,), (3, 5, 7), (1, 2, 3, 4, 5)):
        stride = len(coefficients)
        expected = sum(
            weights[i] * c * at[stride * i + o]
            for i in range(m)
            for o, c in enumerate(coefficients)
            if stride * i + o < len(at)
        )
        assert Functional(tuple(a), coefficients, m).at(p) == expected % MODULUS


def test_a_certificate_is_accepted_through_every_published_state(answer: dict[str, Any]) -> None:
    certificate, heard = answer["certificate"], Labels()
    transcript = Transcript("noise certificate", heard)
    held, _ = noise.verify(slot(answer), base64.b64decode(certificate["proof"]), transcript)
    assert held
    assert heard.states == base64.b64decode(certificate["states"])
    assert transcript.state.hex() == certificate["last_state"]


@pytest.mark.parametrize("change", [lambda p: p[:-32], lambda p: p + bytes(32)])
def test_a_certificate_has_one_length(answer: dict[str, Any], change: Any) -> None:
    with pytest.raises(EncodingError):
        accepted(slot(answer), change(base64.b64decode(answer["certificate"]["proof"])))


@pytest.mark.full
def test_no_other_public_value_has_the_certificate(answer: dict[str, Any]) -> None:
    asked, proof = slot(answer), base64.b64decode(answer["certificate"]["proof"])
    others = [dataclasses.replace(asked, context=bytes(32)), dataclasses.replace(asked, gains=[1, 7])]
    others.append(dataclasses.replace(asked, capacity=11))
    others += [
        dataclasses.replace(asked, seed=dataclasses.replace(asked.seed, **{name: 9}))
        for name in ("commitment", "beacon", "slot")
    ]
    assert not any(accepted(other, proof) for other in others)


@pytest.mark.full
def test_a_certificate_with_a_changed_word_of_any_label_is_refused(answer: dict[str, Any]) -> None:
    asked, proof = slot(answer), base64.b64decode(answer["certificate"]["proof"])
    for changed in words_by_label(lambda t: noise.verify(asked, proof, t), "noise certificate", proof):
        assert not accepted(asked, changed)


@pytest.mark.parametrize(
    ("sizes", "capacity", "gains"),
    [
        ("3 positions, gains 1", 3, [1]),
        ("1,000 positions, gains 1, 8", 1000, [1, 8]),
        ("300,000 positions, gains 1, 8, 64", 300_000, [1, 8, 64]),
    ],
)
def test_messages_and_claims_are_those_of_the_published_traces(
    sizes: str, capacity: int, gains: list[int]
) -> None:
    asked = noise.Slot(bytes(32), Seed(0, 0, 0), capacity, gains)
    made = counts("noise certificate", lambda reader: noise.read(asked, reader)[0])
    assert sorted(made) == sorted(traces("trace", "noise certificate")[sizes])
