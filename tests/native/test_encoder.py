"""A1 for the integer encoder through the native core, against the reference relation: a small model with random weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass, replace
from hashlib import sha256

import numpy as np
import pytest

from rag_audit import _native
from rag_audit.relation.commitments import query_commitment, vector_commitment
from rag_audit.retrieval.embedders.integer_bert.files import load_files
from rag_audit.retrieval.embedders.integer_bert.reference import Reference
from rag_audit.retrieval.embedders.integer_bert.semantics import IntegerModel, exp_table, gelu_table
from rag_audit.retrieval.embedders.static import normalise
from tests.embedders import small_bert

PLACES, NORM_FACTOR = 16, 3000
SALTS = (1234, 5678)
FIRST = 2
"""`[CLS]`."""
TOKENS = [2, 5, 10, 11, 12, 3]


def element(value: int) -> bytes:
    return value.to_bytes(32, "big")


def core(
    model: IntegerModel, pins: bytes | None = None, *, weights: bytes | None = None, first: int = FIRST
) -> _native.EncoderModel:
    """:param weights: integers that replace the model's"""
    scales, integers = model.scales, model.weights if weights is None else weights
    tables = (exp_table(), gelu_table(scales.z, scales.g))
    return _native.EncoderModel(astuple(model.shape), astuple(scales), integers, *tables, first, pins)


@dataclass(frozen=True)
class Made:
    """A model with its proof of one text."""

    integers: IntegerModel
    model: _native.EncoderModel
    pins: _native.EncoderPins
    statement: bytes
    proof: bytes


def statement(integers: IntegerModel, tokens: Sequence[int], context: int = 77) -> bytes:
    """Context, hq and cq, of the reference's vector."""
    sums = np.array(Reference(integers).embed(tokens), np.int64)
    vector = normalise(sums, NORM_FACTOR, field="query").tolist()
    hq, cq = query_commitment(SALTS[0], tokens), vector_commitment(SALTS[1], vector)
    return b"".join(map(element, (context, hq, cq)))


def prove(model: _native.EncoderModel, public: bytes, tokens: Sequence[int], places: int = PLACES) -> bytes:
    packed = np.array(tokens, "<u4").tobytes()
    return model.prove((places, NORM_FACTOR), public, packed, b"".join(map(element, SALTS)))


def prove_all(
    model: _native.EncoderModel, public: Sequence[bytes], texts: Sequence[Sequence[int]], places: int = PLACES
) -> bytes:
    """One proof for all texts, each with the same salts."""
    packed = [np.array(tokens, "<u4").tobytes() for tokens in texts]
    salts = [b"".join(map(element, SALTS))] * len(texts)
    return model.prove_all((places, NORM_FACTOR), public, packed, salts)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    folder = small_bert.write(tmp_path_factory.mktemp("small"))
    integers = load_files(folder, small_bert.SCALES).model
    model, public = core(integers), statement(integers, TOKENS)
    return Made(integers, model, _native.EncoderPins(model.pins()), public, prove(model, public, TOKENS))


def test_the_reference_s_vector_is_proved(made: Made) -> None:
    made.pins.verify((PLACES, NORM_FACTOR), made.statement, made.proof)
    assert made.pins.digest() == made.model.digest() == sha256(made.model.pins()).digest()
    one = [2]
    public = statement(made.integers, one)
    proof = prove(made.model, public, one)
    made.pins.verify((PLACES, NORM_FACTOR), public, proof)
    assert len(proof) == len(made.proof), "the length says nothing of the tokens"


def test_every_public_value_is_bound(made: Made) -> None:
    for part in range(3):
        changed = bytearray(made.statement)
        changed[32 * part + 31] ^= 1
        with pytest.raises(ValueError, match="false"):
            made.pins.verify((PLACES, NORM_FACTOR), bytes(changed), made.proof)
    for parameters in ((PLACES, NORM_FACTOR + 1), (8, NORM_FACTOR)):
        with pytest.raises(ValueError, match=r"false|malformed"):
            made.pins.verify(parameters, made.statement, made.proof)
    for places in (32, 12, 0):
        with pytest.raises(ValueError, match="places"):
            made.pins.verify((places, NORM_FACTOR), made.statement, made.proof)
    for bad in (made.proof[:-1], made.proof + b"\0", b"", made.proof[:-1] + bytes([made.proof[-1] ^ 1])):
        with pytest.raises(ValueError, match=r"malformed|false"):
            made.pins.verify((PLACES, NORM_FACTOR), made.statement, bad)


def test_a_false_statement_has_no_proof(made: Made) -> None:
    with pytest.raises(ValueError, match="does not have the statement's hash"):
        prove(made.model, made.statement, [2, 5, 3])
    other = made.statement[:32] + element(query_commitment(SALTS[0], [2, 5, 3])) + made.statement[64:]
    with pytest.raises(ValueError, match="do not satisfy"):
        prove(made.model, other, TOKENS)


def test_a_text_that_leaves_a_range_has_its_own_error(made: Made) -> None:
    integers = np.frombuffer(made.integers.weights, "<i2").copy()
    start = (made.integers.shape.vocabulary + made.integers.shape.places) * made.integers.shape.width
    integers[start : start + made.integers.shape.width] = 32767  # the gain of the embeddings
    model = core(replace(made.integers, weights=integers.tobytes()))
    with pytest.raises(_native.EncoderOutOfRange, match="outside -2048 to 2047"):
        prove(model, made.statement, TOKENS)
    for tokens in ([], [20], [2] * (PLACES + 1)):
        with pytest.raises(ValueError, match="tokens") as refused:
            prove(made.model, made.statement, tokens)
        assert not isinstance(refused.value, _native.EncoderOutOfRange)


def test_several_queries_share_a_proof(made: Made) -> None:
    texts = [TOKENS, [2, 7, 3]]
    public = [statement(made.integers, tokens, 70 + k) for k, tokens in enumerate(texts)]
    parameters, proof = (PLACES, NORM_FACTOR), prove_all(made.model, public, texts)
    made.pins.verify_all(parameters, public, proof)
    assert len(proof) < 2 * len(made.proof)
    for others in (public[::-1], public[:1], [public[0], made.statement]):
        with pytest.raises(ValueError, match=r"false|malformed"):
            made.pins.verify_all(parameters, others, proof)
    with pytest.raises(ValueError, match="queries together"):
        made.pins.verify_all(parameters, [*public, public[0]], proof)
    with pytest.raises(ValueError, match="query 1: "):
        prove_all(made.model, public, [TOKENS, TOKENS])
    with pytest.raises(ValueError, match="salts: expected 2 lists, found 1"):
        made.model.prove_all(parameters, public, [b"", b""], [b""])

    items = [(public, proof), ([made.statement], made.proof), (public[::-1], proof), (public, proof[:-1])]
    refused = made.pins.verify_many(parameters, items)
    assert [number for number, _ in refused] == [2, 3]
    assert made.pins.verify_many(parameters, items[:2]) == []


def test_stored_pins_replace_the_commitments(made: Made) -> None:
    stored = core(made.integers, made.model.pins())
    assert stored.pins() == made.model.pins()
    made.pins.verify((PLACES, NORM_FACTOR), made.statement, prove(stored, made.statement, TOKENS))
    other = replace(made.integers, weights=made.integers.weights[:-2] + b"\1\0")
    with pytest.raises(ValueError, match="another model"):
        core(other, made.model.pins())


def test_pins_of_another_model_refuse_the_proof(made: Made) -> None:
    other = replace(made.integers, weights=made.integers.weights[:-2] + b"\1\0")
    model = core(other)
    assert model.digest() != made.model.digest()
    with pytest.raises(ValueError, match="false"):
        _native.EncoderPins(model.pins()).verify((PLACES, NORM_FACTOR), made.statement, made.proof)


def test_pins_have_one_encoding(made: Made) -> None:
    pins = made.model.pins()
    for bad in (pins[:-1], pins + b"\0", b"", b"x" + pins[1:], pins[:28] + b"\xff" * 52 + pins[80:]):
        with pytest.raises(ValueError, match=r"expected .* found|malformed"):
            _native.EncoderPins(bad)
    point = bytearray(pins)
    point[80:112] = b"\xff" * 32
    with pytest.raises(ValueError, match="malformed"):
        _native.EncoderPins(bytes(point))


def test_bad_models_are_refused(made: Made) -> None:
    weights = made.integers.weights
    for bad in (weights[:-2], weights + b"\0\0", weights[:-1]):
        with pytest.raises(ValueError, match="weights"):
            core(made.integers, weights=bad)
    with pytest.raises(ValueError, match="first token"):
        core(made.integers, first=20)
