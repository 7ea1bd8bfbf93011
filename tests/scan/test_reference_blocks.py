"""Runs about the integer encoder before the second verifier: wrong proofs, and all that a model determines."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from rag_audit.errors import EncodingError
from rag_audit.proofs.backends.reference import attention, encoder, feed_forward
from rag_audit.proofs.backends.reference.block import Blocks, Dense, Matrix, Norm, of_limbs, widths
from rag_audit.proofs.backends.reference.encoder_embed import EncoderEmbedded, Hashes
from rag_audit.proofs.backends.reference.encoder_input import Embeddings
from rag_audit.proofs.backends.reference.group import G, encode, generator, total
from rag_audit.proofs.backends.reference.session import Session
from rag_audit.proofs.backends.reference.transcript import Reader
from tests.scan.known_answers import (
    ENCODERS,
    KNOWN_ANSWERS,
    WITH_WRONG_PROOFS,
    KnownAnswers,
    of_block,
    published,
    wrong_proofs,
)
from tests.scan.test_reference_equations import Held, read

BLOCKS = ("feed forward", "attention", "encoder")
WRONG = [(run, name) for run in ENCODERS for name in wrong_proofs(run)]
QUICK = [(run, next(iter(wrong_proofs(run)))) for run in ENCODERS]


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


def refused(wrong: KnownAnswers) -> bool:
    """Whether the complete verifier refuses a proof, also by its length: an omitted column claim shortens it."""
    try:
        return not wrong.holds(wrong.proof)
    except EncodingError:
        return True


@pytest.mark.parametrize(
    ("run", "name"),
    [pytest.param(*each, marks=() if each in QUICK else pytest.mark.full) for each in WRONG],
)
def test_a_wrong_proof_is_refused_by_the_claim_of_its_name_alone(run: str, name: str) -> None:
    claim, wrong = wrong_proofs(run)[name]
    assert refused(wrong)
    with omitted(claim) as left_out:
        assert wrong.holds(wrong.proof)
    assert left_out


@pytest.mark.parametrize(
    "run",
    [
        pytest.param(run, marks=() if run == "encoder embed" else pytest.mark.full)
        for run in WITH_WRONG_PROOFS
    ],
)
def test_a_wrong_proof_fails_under_the_challenges_of_its_prover(run: str) -> None:
    """The prover of a wrong proof omits a claim, so a verifier draws other challenges. Under the prover's own
    challenges too, an equation of the complete verifier fails."""
    for name, (claim, wrong) in wrong_proofs(run).items():
        with omitted(claim):
            transcript = Held(wrong.run)
            assert wrong.read(wrong.statement, Reader(transcript, wrong.proof)).holds()
        again = Held(wrong.run, transcript.drawn)
        try:
            session = wrong.read(wrong.statement, Reader(again, wrong.proof))
        except EncodingError:
            continue
        assert any(total(equation) is not None for equation in session.equations), name


def changed(weights: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """Another value for each part of the weights, without the scales and the number of heads."""
    for field in dataclasses.fields(weights):
        value = getattr(weights, field.name)
        match value:
            case Dense(matrix, bias):
                first, *others_ = matrix.points
                more = dataclasses.replace(
                    matrix, points=[[total([(1, first[0]), (1, G(0))]), *first[1:]], *others_]
                )
                yield f"{field.name}: matrix", {field.name: Dense(more, bias)}
                yield f"{field.name}: bias", {field.name: Dense(matrix, [*bias[:-1], bias[-1] + 1])}
            case Norm(gain, bias, scale):
                yield "gain", {field.name: Norm([*gain[:-1], gain[-1] + 1], bias, scale)}
                yield "bias", {field.name: Norm(gain, [bias[0] - 1, *bias[1:]], scale)}
            case [int(), *_] as table:
                k = min(5, len(table) - 1)
                yield field.name, {field.name: [*table[:k], table[k] - 1, *table[k + 1 :]]}


PARTS = {
    "feed forward": 7,
    "attention": 11,
    # All layers of an encoder have the same tables, which are changed in one layer and refused there.
    "encoder": 2 * (6 + 10),
    "encoder output": 1,
    "encoder input": 6,
    "encoder embed": 1 + 6 + 2 * (6 + 10),
    "encoder embed of several": 1 + 6 + 2 * (6 + 10),
}
"""The number of changed values for each run."""


@pytest.mark.parametrize(
    "run", [pytest.param(name, marks=() if PARTS[name] < 20 else pytest.mark.full) for name in ENCODERS]
)
def test_every_value_of_a_model_moves_an_equation(run: str) -> None:
    """Under the challenges of the right model, so the digest in the transcript is not the only use of a value."""
    golden: KnownAnswers = KNOWN_ANSWERS[run]()
    sums, transcript, _ = read(golden)
    parts = []
    for name, statement in others(golden.statement):
        other, _, _ = read(dataclasses.replace(golden, statement=statement), transcript.drawn)
        assert other != sums, name
        parts.append(name)
    assert len(parts) == PARTS[run]


def others(statement: Any) -> Iterator[tuple[str, Any]]:
    """Statements with another model."""
    if hasattr(statement, "weights"):
        for name, part in changed(statement.weights):
            weights = dataclasses.replace(statement.weights, **part)
            yield name, dataclasses.replace(statement, weights=weights)
    if hasattr(statement, "layers"):
        yield from with_other_layers(statement)
    if hasattr(statement, "norm_factor"):
        yield "norm factor", dataclasses.replace(statement, norm_factor=statement.norm_factor + 1)
    if hasattr(statement, "embeddings"):
        for name, embeddings in other_embeddings(statement.embeddings):
            yield name, dataclasses.replace(statement, embeddings=embeddings)


def with_other_layers(statement: Any) -> Iterator[tuple[str, Any]]:
    """Statements with another part of one layer."""
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


def other_embeddings(table: Embeddings) -> Iterator[tuple[str, Embeddings]]:
    """Embeddings with another value of each part, without their sizes."""
    point = [generator(G(5))]
    for name, part in changed(table):
        if name in ("gain", "bias", "unused"):
            yield name, dataclasses.replace(table, **part)
    yield "vocabulary", dataclasses.replace(table, vocabulary=table.vocabulary + 1)
    yield "words", dataclasses.replace(table, words=[point, *table.words[1:]])
    yield "place rows", dataclasses.replace(table, of_places=[point, *table.of_places[1:]])


def square(size: int = 4, bias: int = 1, rows: int = 1) -> Dense:
    columns = Blocks(size).count ** 2
    return Dense(Matrix(size, size, [[None] * rows] * columns), [bias] * size)


def small(block: str) -> Any:
    """Weights of four components."""
    dense = square()
    norm = Norm([1] * 4, [1] * 4, 6)
    if block == "attention":
        return attention.Weights(6, 2, 6, 7, 8, 8, *[dense] * 4, norm, [4096, *[0] * 8191])
    return feed_forward.Weights(6, 6, 6, 6, dense, dense, norm, [0] * 4096)


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


@pytest.mark.parametrize(
    ("block", "change", "field"),
    [
        ("feed forward", {"scale_z": 12}, "scale_z"),
        ("feed forward", {"scale_g": -1}, "scale_g"),
        ("feed forward", {"gelu": [2048] * 4096}, "gelu"),
        ("feed forward", {"gelu": [0] * 4095}, "gelu"),
        ("feed forward", {"first": square(bias=1 << 15)}, "first"),
        ("feed forward", {"first": square(rows=2)}, "first"),
        ("feed forward", {"first": square(5)}, "inner|first"),
        ("feed forward", {"row_bits": 13}, "row_bits"),
        ("attention", {"row_bits": 3}, "queries"),
        ("feed forward", {"norm": Norm([1] * 3, [1] * 4, 6)}, "norm"),
        ("attention", {"heads": 3}, "heads"),
        ("attention", {"heads": 0}, "heads"),
        ("attention", {"scale_q": 12}, "scales"),
        ("attention", {"keys": square(3)}, "keys"),
        ("attention", {"output": square(1)}, "width"),
        ("attention", {"exp": [4095, *[0] * 8191]}, "exp"),
        ("attention", {"exp": [4096, -1, *[0] * 8190]}, "exp"),
        ("attention", {"exp": [4096, *[0] * 8190]}, "exp"),
    ],
)
def test_weights_out_of_range_are_refused_by_name(block: str, change: dict[str, Any], field: str) -> None:
    with pytest.raises(EncodingError) as refusal:
        dataclasses.replace(small(block), **change)
    assert refusal.value.field in field.split("|")


def embeddings(width: int = 4, scale: int = 6) -> Embeddings:
    """Embeddings of 20 words and four places, without commitments."""
    words, of_places = ([[None]] * count for count in (width, Blocks(width).count))
    return Embeddings(20, 4, 6, words, of_places, Norm([1] * width, [1] * width, scale), [0] * width)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"vocabulary": 2}, "vocabulary"),
        ({"vocabulary": (1 << 15) + 1}, "vocabulary"),
        ({"vocabulary": 65}, "words"),
        ({"places": 3}, "places"),
        ({"places": 128}, "places"),
        ({"places": 32}, "of_places"),
        ({"row_bits": 0}, "row_bits"),
        ({"row_bits": 13}, "row_bits"),
        ({"words": [[None]]}, "width"),
        ({"words": [[None]] * 3 + [[None] * 2]}, "words"),
        ({"of_places": [[None]] * 2}, "of_places"),
        ({"norm": Norm([1] * 4, [1] * 4, 12)}, "scale_x"),
        ({"norm": Norm([1] * 4, [1 << 15] * 4, 6)}, "norm"),
        ({"unused": [0] * 3}, "unused"),
        ({"unused": [0, 0, 0, -(1 << 16) - 1]}, "unused"),
    ],
)
def test_embeddings_out_of_range_are_refused_by_name(change: dict[str, Any], field: str) -> None:
    table = embeddings()
    dataclasses.replace(table, unused=[1 << 16, -(1 << 16), 0, 0])
    with pytest.raises(EncodingError) as refusal:
        dataclasses.replace(table, **change)
    assert refusal.value.field == field


@pytest.mark.parametrize(
    ("table", "change", "field"),
    [
        (embeddings(), {"layers": []}, "layers"),
        (embeddings(), {"places": 8}, "places"),
        (embeddings(), {"places": 3}, "places"),
        (embeddings(), {"norm_factor": 0}, "norm_factor"),
        (embeddings(), {"norm_factor": (1 << 20) + 1}, "norm_factor"),
        (embeddings(4, 5), {}, "embeddings"),
        (embeddings(12), {}, "embeddings"),
    ],
)
def test_parts_that_do_not_fit_are_refused_by_name(
    table: Embeddings, change: dict[str, Any], field: str
) -> None:
    parts = {"embeddings": table, "layers": [layer()], "places": 4, "norm_factor": 1} | change
    with pytest.raises(EncodingError) as refusal:
        EncoderEmbedded([Hashes(0, 0, 0)], **parts)
    assert refusal.value.field == field


@pytest.mark.parametrize(("count", "blocks", "variables"), [(1, 1, 0), (12, 3, 2), (384, 3, 7), (5, 5, 0)])
def test_blocks_are_odd(count: int, blocks: int, variables: int) -> None:
    result = Blocks(count)
    assert (result.count, result.variables) == (blocks, variables)


def test_the_top_limb_has_the_remaining_bits() -> None:
    assert [widths(bits) for bits in (1, 12, 13, 49)] == [[1], [12], [12, 1], [12, 12, 12, 12, 1]]
    assert of_limbs([11, 11, 10, 28, 48]) == [12, 11, 10, 4]


def test_the_points_of_matrices_are_the_commitments_to_their_integers() -> None:
    doc = published("feed-forward")["block"]
    weights = of_block(doc)
    weights.feed_forward(doc)
    weights.end()
    for entries, matrix in weights.matrices:
        rows, columns = 1 << Blocks(matrix.inputs).variables, 1 << Blocks(matrix.outputs).variables
        blocks = [
            entries[i : i + rows, j : j + columns].ravel().tolist()
            for i in range(0, matrix.inputs, rows)
            for j in range(0, matrix.outputs, columns)
        ]
        for values, (point,) in zip(blocks[::4], matrix.points[::4], strict=True):
            assert encode(total((v, G(k)) for k, v in enumerate(values))) == encode(point)
