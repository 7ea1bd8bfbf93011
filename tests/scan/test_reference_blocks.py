"""Blocks of the integer encoder before the second verifier: wrong proofs, and all that a block's weights determine."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from rag_audit.errors import EncodingError
from rag_audit.proofs.backends.reference import attention, encoder, feed_forward
from rag_audit.proofs.backends.reference.block import Blocks, Dense, Norm, of_limbs, widths
from rag_audit.proofs.backends.reference.group import total
from rag_audit.proofs.backends.reference.session import Session
from rag_audit.proofs.backends.reference.transcript import Reader
from rag_audit.relation.field import MODULUS
from tests.scan.known_answers import BLOCKS, KNOWN_ANSWERS, KnownAnswers, wrong_proofs
from tests.scan.test_reference_equations import Held, read

WRONG = [(block, name) for block in BLOCKS for name in wrong_proofs(block)]
QUICK = {name for block in BLOCKS for name in list(wrong_proofs(block))[:1]}


@contextmanager
def omitted(claim: str) -> Iterator[list[str]]:
    """While it lasts, sessions omit the claims of this name; the list has the name of each omitted claim."""
    own = {kind: getattr(Session, kind) for kind in ("constraint", "product", "claim")}
    left_out: list[str] = []

    def unless(kind: str, name: str, session: Session, *about: Any) -> None:
        if name == claim:
            left_out.append(name)
        else:
            own[kind](session, *about)

    def constraint(session: Session, name: str, *about: Any) -> None:
        unless("constraint", f"constraint: {name}", session, name, *about)

    def product(session: Session, name: str, *about: Any) -> None:
        unless("product", f"product: {name}", session, name, *about)

    def of_columns(session: Session, *about: Any) -> None:
        unless("claim", f"column claim: {session.reader.transcript.label}", session, *about)

    for kind, other in (("constraint", constraint), ("product", product), ("claim", of_columns)):
        setattr(Session, kind, other)
    try:
        yield left_out
    finally:
        for kind, method in own.items():
            setattr(Session, kind, method)


@pytest.mark.parametrize(
    ("block", "name"),
    [pytest.param(*each, marks=() if each[1] in QUICK else pytest.mark.full) for each in WRONG],
)
def test_a_wrong_proof_is_refused_by_the_claim_of_its_name_alone(block: str, name: str) -> None:
    claim, wrong = wrong_proofs(block)[name]
    assert not wrong.holds(wrong.proof)
    with omitted(claim) as left_out:
        assert wrong.holds(wrong.proof)
    assert left_out


@pytest.mark.full
@pytest.mark.parametrize("block", BLOCKS)
def test_a_wrong_proof_fails_under_the_challenges_of_its_prover(block: str) -> None:
    """The prover of a wrong proof omits a claim, so a verifier draws other challenges. Under the prover's own
    challenges too, an equation of the complete verifier fails."""
    for name, (claim, wrong) in wrong_proofs(block).items():
        with omitted(claim):
            transcript = Held(wrong.run)
            assert wrong.read(wrong.statement, Reader(transcript, wrong.proof)).holds()
        again = Held(wrong.run, transcript.drawn)
        session = wrong.read(wrong.statement, Reader(again, wrong.proof))
        assert any(total(equation) is not None for equation in session.equations), name


def changed(weights: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """Another value for each part of the weights, without the scales and the number of heads."""
    for field in dataclasses.fields(weights):
        value = getattr(weights, field.name)
        match value:
            case Dense(matrix, bias):
                more = [[matrix[0][0] + 1, *matrix[0][1:]], *matrix[1:]]
                yield f"{field.name}: matrix", {field.name: Dense(more, bias)}
                yield f"{field.name}: bias", {field.name: Dense(matrix, [*bias[:-1], bias[-1] + 1])}
            case Norm(gain, bias, scale):
                yield "gain", {field.name: Norm([*gain[:-1], gain[-1] + 1], bias, scale)}
                yield "bias", {field.name: Norm(gain, [bias[0] - 1, *bias[1:]], scale)}
            case [*table]:
                yield field.name, {field.name: [*table[:5], table[5] - 1, *table[6:]]}


@pytest.mark.parametrize(
    "block", [pytest.param(name, marks=pytest.mark.full if name == "encoder" else ()) for name in BLOCKS]
)
def test_every_weight_moves_an_equation(block: str) -> None:
    """Under the challenges of the right weights, so the digest in the transcript is not the only use of a weight."""
    golden: KnownAnswers = KNOWN_ANSWERS[block]()
    sums, transcript, _ = read(golden)
    parts = []
    for name, statement in others(golden.statement):
        other, _, _ = read(dataclasses.replace(golden, statement=statement), transcript.drawn)
        assert other != sums, name
        parts.append(name)
    # All layers of an encoder have the same tables, which are changed in one layer and refused there.
    assert len(parts) == {"feed forward": 7, "attention": 11, "encoder": 2 * (6 + 10)}[block]


def others(statement: Any) -> Iterator[tuple[str, Any]]:
    """Statements with other weights."""
    if not isinstance(statement, encoder.Encoder):
        for name, part in changed(statement.weights):
            weights = dataclasses.replace(statement.weights, **part)
            yield name, dataclasses.replace(statement, weights=weights)
        return
    for n, layer in enumerate(statement.layers):
        for block in ("attention", "feed_forward"):
            for name, part in changed(getattr(layer, block)):
                weights = dataclasses.replace(getattr(layer, block), **part)
                layers = list(statement.layers)
                layers[n] = dataclasses.replace(layer, **{block: weights})
                try:
                    yield f"{n} {block} {name}", dataclasses.replace(statement, layers=layers)
                except EncodingError:
                    assert name in ("exp", "gelu")


def small(block: str) -> Any:
    """Weights of four components."""
    dense = Dense([[1] * 4] * 4, [1] * 4)
    norm = Norm([1] * 4, [1] * 4, 6)
    if block == "attention":
        return attention.Weights(2, 6, 7, 8, 8, *[dense] * 4, norm, [4096, *[0] * 8191])
    return feed_forward.Weights(6, 6, 6, dense, dense, norm, [0] * 4096)


def layer() -> encoder.Layer:
    return encoder.Layer(small("attention"), small("feed forward"))


@pytest.mark.parametrize(
    ("layers", "field"),
    [
        ([], "layers"),
        ([layer()] * 25, "layers"),
        (
            [
                encoder.Layer(small("attention"), dataclasses.replace(small("feed forward"), scale_z=7)),
                layer(),
            ],
            "layer",
        ),
    ],
)
def test_layers_that_differ_are_refused_by_name(layers: list[encoder.Layer], field: str) -> None:
    places = [[None]]
    with pytest.raises(EncodingError) as refusal:
        encoder.Encoder(0, layers, 4, None, places, places)
    assert refusal.value.field == field


def square(value: int, size: int = 4) -> Dense:
    return Dense([[value] * size] * size, [0] * size)


@pytest.mark.parametrize(
    ("block", "change", "field"),
    [
        ("feed forward", {"scale_z": 12}, "scale_z"),
        ("feed forward", {"scale_g": -1}, "scale_g"),
        ("feed forward", {"gelu": [2048] * 4096}, "gelu"),
        ("feed forward", {"gelu": [0] * 4095}, "gelu"),
        ("feed forward", {"first": square(1 << 15)}, "first"),
        ("feed forward", {"first": square(0, 5)}, "inner|first"),
        ("feed forward", {"norm": Norm([1] * 3, [1] * 4, 6)}, "norm"),
        ("attention", {"heads": 3}, "heads"),
        ("attention", {"heads": 0}, "heads"),
        ("attention", {"scale_q": 12}, "scales"),
        ("attention", {"keys": square(0, 3)}, "keys"),
        ("attention", {"output": square(0, 1)}, "width"),
        ("attention", {"exp": [4095, *[0] * 8191]}, "exp"),
        ("attention", {"exp": [4096, -1, *[0] * 8190]}, "exp"),
        ("attention", {"exp": [4096, *[0] * 8190]}, "exp"),
    ],
)
def test_weights_out_of_range_are_refused_by_name(block: str, change: dict[str, Any], field: str) -> None:
    with pytest.raises(EncodingError) as refusal:
        dataclasses.replace(small(block), **change)
    assert refusal.value.field in field.split("|")


def test_sums_of_dense_layers_end_at_2_to_the_31() -> None:
    def fits(inputs: int, bias: int, scale: int, residual: int | None = None) -> bool:
        return Dense([[-(1 << 15)]] * inputs, [bias]).fits(inputs, 1, scale, residual)

    assert fits(31, (1 << 15) - 1, 10) and fits(31, -(1 << 15), 10)
    assert not fits(32, 0, 0) and not fits(31, -(1 << 15), 11)
    assert fits(31, -(1 << 15), 10, 13) and fits(31, 0, 0, 14) and not fits(31, 0, 0, 15)


@pytest.mark.parametrize(("count", "blocks", "variables"), [(1, 1, 0), (12, 3, 2), (384, 3, 7), (5, 5, 0)])
def test_blocks_are_odd(count: int, blocks: int, variables: int) -> None:
    result = Blocks(count)
    assert (result.count, result.variables) == (blocks, variables)


def test_the_top_limb_has_the_remaining_bits() -> None:
    assert [widths(bits) for bits in (1, 12, 13, 49)] == [[1], [12], [12, 1], [12, 12, 12, 12, 1]]
    assert of_limbs([11, 11, 10, 28, 48]) == [12, 11, 10, 4]


def test_products_with_a_matrix_have_an_element_for_each_input() -> None:
    layer = Dense([[1, 2], [3, 4], [-5, 6]], [0, 0])
    assert layer.times([10, 1]) == [12, 34, MODULUS - 44]
