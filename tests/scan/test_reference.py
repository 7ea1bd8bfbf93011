"""The second verifier of the scan argument against published bytes; each run's tests stand in a file of their own."""

from __future__ import annotations

import base64
import dataclasses
import random
from typing import Any

import pytest
from py_ecc.optimized_bn128 import FQ, Z1, add, multiply, normalize

from rag_audit.errors import EncodingError, RagAuditError
from rag_audit.proofs.backends.reference import attention, encoder, encoder_input, feed_forward
from rag_audit.proofs.backends.reference.drawn import Seed
from rag_audit.proofs.backends.reference.encoder_embed import Hashes
from rag_audit.proofs.backends.reference.extensions import Functional, below, dot, eq_table, numbers
from rag_audit.proofs.backends.reference.group import G, P, decode, encode, generator, total
from rag_audit.proofs.backends.reference.index import Index
from rag_audit.proofs.backends.reference.pooled_listing import Requested
from rag_audit.proofs.backends.reference.transcript import Reader, Transcript
from rag_audit.relation.field import MODULUS
from rag_audit.relation.scores import ScoreWindow
from tests.scan.known_answers import KNOWN_ANSWERS, Labels, published, words_by_label

FULL = pytest.mark.full
RUNS = [pytest.param(name, marks=() if name == "query" else FULL) for name in KNOWN_ANSWERS]


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
    one, beyond = (1).to_bytes(32, "big"), (P + 1).to_bytes(32, "big")
    assert decode(one) in ((1, 2), (1, P - 2)) and decode(b"\x80" + one[1:]) != decode(one)
    off_the_curve = bytes(31) + b"\x04"
    for bad in (b"\xc0" + bytes(31), b"\x40" + bytes(30) + b"\x01", beyond, off_the_curve):
        with pytest.raises(EncodingError):
            decode(bad)


def test_scalars_have_one_encoding() -> None:
    def read(value: int) -> int:
        return Reader(Transcript("a run"), value.to_bytes(32, "big")).scalar("a scalar")

    assert read(MODULUS - 1) == MODULUS - 1
    with pytest.raises(EncodingError):
        read(MODULUS)


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


@pytest.mark.parametrize("name", RUNS)
def test_a_published_proof_is_accepted_through_every_published_state(name: str) -> None:
    golden, heard = KNOWN_ANSWERS[name](), Labels()
    transcript = Transcript(golden.run, heard)
    session = golden.read(golden.statement, Reader(transcript, golden.proof))
    assert session.holds()
    # Before a run over pairs, its file has the states in which the run over records is read.
    assert heard.states == base64.b64decode(golden.part["states"])[-len(heard.states) :]
    assert transcript.state.hex() == golden.part["last_state"]


@pytest.mark.parametrize("change", [lambda p: p[:-32], lambda p: p[:100], lambda p: p + bytes(32)])
def test_a_proof_has_one_length(change: Any) -> None:
    golden = KNOWN_ANSWERS["coins"]()
    with pytest.raises(EncodingError):
        golden.holds(change(golden.proof))


def other(value: Any) -> Any:
    """Another value of the same kind: of a list its first element changes, of an index its digest."""
    if isinstance(value, bytes):
        return bytes([value[0] ^ 1]) + value[1:]
    if isinstance(value, int):
        return value + 1
    if isinstance(value, tuple) and len(value) == 2 and (value[1] ** 2 - value[0] ** 3 - 3) % P == 0:
        return generator(G(5))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        name = {
            Index: "digest",
            Seed: "beacon",
            ScoreWindow: "lo",
            Requested: "htopk",
            feed_forward.Weights: "gelu",
            attention.Weights: "scale_v",
            encoder.Layer: "attention",
            encoder_input.Embeddings: "unused",
            Hashes: "hq",
        }[type(value)]
        return dataclasses.replace(value, **{name: other(getattr(value, name))})
    return type(value)([other(value[0]), *value[1:]])


@FULL
@pytest.mark.parametrize("name", KNOWN_ANSWERS)
def test_no_other_public_value_has_the_proof(name: str) -> None:
    golden = KNOWN_ANSWERS[name]()
    for field in dataclasses.fields(golden.statement):
        value = getattr(golden.statement, field.name)
        if value is None or isinstance(value, bool):
            continue
        try:
            held = golden.holds(
                golden.proof, dataclasses.replace(golden.statement, **{field.name: other(value)})
            )
        except RagAuditError:
            continue  # it is no value that a statement may have, or its proofs have another length
        assert not held, field.name


@FULL
@pytest.mark.parametrize("name", KNOWN_ANSWERS)
def test_a_proof_with_a_changed_word_of_any_label_is_refused(name: str) -> None:
    golden = KNOWN_ANSWERS[name]()
    for label, changed in words_by_label(golden):
        assert not golden.holds(changed), label


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("noise", {"capacity": (1 << 24) + 1}),
        ("noise", {"gains": [2]}),
        ("noise", {"gains": [1, 9]}),
        ("noise", {"seeds": []}),
        ("query", {"listed": 13}),
        ("query", {"noise": []}),
        ("query", {"commitments": []}),
        ("query", {"kept": []}),
        ("coins", {"bound": 1 << 40}),
        ("document table", {"rows": 0}),
        ("document table", {"rows": 21}),
        ("document table", {"most": 0}),
        ("document table", {"fresh": 10}),
        ("document table", {"before": None}),
        ("document table", {"before": []}),
        ("document table", {"row": []}),
        ("document table", {"bound": 0}),
        ("pooled document table", {"fresh": 10}),
        ("pooled document table", {"before": []}),
        ("pooled listing", {"rows": 33}),
        ("pooled listing", {"most": 0}),
        ("pooled listing", {"bound": 0}),
        ("pooled listing", {"threshold": 0}),
        ("pooled listing", {"listed": 33}),
        ("pooled listing", {"row": []}),
        ("pooled listing", {"kept": []}),
        ("pooled listing", {"before": []}),
        ("pooled listing", {"records": []}),
        ("pooled listing", {"records": [Requested(Seed(1, 2, 3), 4, 5, [])]}),
        ("embed", {"tokens": 209}),
        ("embed", {"norm_factor": 0}),
        ("feed forward", {"places": 48}),
        ("feed forward", {"places": 128}),
        ("feed forward", {"inputs": []}),
        ("feed forward", {"outputs": []}),
        ("encoder", {"layers": []}),
        ("encoder", {"places": 48}),
        ("encoder", {"outputs": []}),
        ("encoder output", {"places": 24}),
        ("encoder output", {"width": 1}),
        ("encoder output", {"norm_factor": 0}),
        ("encoder output", {"inputs": []}),
        ("encoder input", {"places": 24}),
        ("encoder input", {"places": 128}),
        ("encoder input", {"outputs": []}),
        ("encoder embed", {"places": 8}),
        ("encoder embed", {"layers": []}),
        ("encoder embed", {"norm_factor": (1 << 20) + 1}),
        ("encoder embed", {"queries": []}),
        ("encoder embed", {"queries": [Hashes(0, 0, 0)] * 3}),
        ("encoder embed of several", {"queries": [Hashes(0, 0, 0)] * 32}),
        ("attention", {"places": 0}),
        ("attention", {"places": 24}),
        ("attention", {"inputs": []}),
        ("attention", {"outputs": []}),
        ("coalition records", {"theta": (5, 5)}),
        ("coalition records", {"first": [0, 2, 0, 0]}),
        ("coalition records", {"largest": (4, 1)}),
    ],
)
def test_public_values_out_of_range_are_refused(name: str, change: dict[str, Any]) -> None:
    statement = KNOWN_ANSWERS[name]().statement
    with pytest.raises(EncodingError, match="out of range"):
        dataclasses.replace(statement, **change)
