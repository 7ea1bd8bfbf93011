"""Scan proofs of claim A1 against the reference relation: a small table, and the pinned one."""

from __future__ import annotations

import base64
import json
import pickle
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench.proofs import verify, verify_batch
from rag_audit.errors import (
    EncodingError,
    InvalidProof,
    PolicyError,
    RagAuditError,
    SchemaError,
    WitnessError,
)
from rag_audit.models.manifest import DEFAULT_TABLE
from rag_audit.proofs.backends.scan.embed import EmbedJob, table_columns
from rag_audit.proofs.backends.scan.key import EmbedArgument, EmbedKey
from rag_audit.proofs.backends.scan.query_vector import embed_form
from rag_audit.proofs.statements.embed import EmbedStatement
from rag_audit.relation.commitments import query_commitment, vector_commitment
from rag_audit.retrieval.embedders import wordllama
from rag_audit.retrieval.embedders.static import normalise
from tests.embedded import embed_statement

SMALL = EmbedArgument(tokens=20, dimension=30, vocabulary=50)
SALT_Q, SALT_C = 1234, 5678
TOKENS = (
    [3, 49, 3, 0],
    [7],
    list(range(20)),
    list(range(30, 46)),
)


def rows(seed: int = 1) -> bytes:
    rng = random.Random(seed)
    return bytes(rng.randint(-7, 7) & 255 for _ in range(SMALL.vocabulary * SMALL.dimension))


def other_rows() -> bytes:
    return rows(2)


@pytest.fixture(scope="module")
def key() -> EmbedKey:
    return EmbedKey.commit(rows(), SMALL)


def statement(key: EmbedKey, tokens: list[int], *, ctx: int = 33) -> EmbedStatement:
    entries = np.frombuffer(rows(), np.int8).reshape(-1, SMALL.dimension)
    return embed_statement(entries, tokens, ctx=ctx, table=key.root, salts=(SALT_Q, SALT_C))


def job(key: EmbedKey, tokens: list[int]) -> EmbedJob:
    return EmbedJob(key, statement(key, tokens), rows, tokens, SALT_Q, SALT_C)


@pytest.fixture(scope="module")
def made(key: EmbedKey) -> list[dict[str, Any]]:
    return [job(key, tokens).run() for tokens in TOKENS]


def wire_of(value: Any, argument: EmbedArgument = SMALL) -> Any:
    """The one part of a proof."""
    return embed_form(argument).parse(value, 1, field="proof").parts


@pytest.fixture(scope="module")
def proofs(made: list[dict[str, Any]]) -> list[tuple[bytes, ...]]:
    return [wire_of(proof) for proof in made]


def test_embeddings_of_the_reference_verify(key: EmbedKey, proofs: list[tuple[bytes, ...]]) -> None:
    statements = [statement(key, tokens) for tokens in TOKENS]
    for proof, public in zip(proofs, statements, strict=True):
        verify(key, proof, public)
    assert verify_batch(key, proofs, statements) == []
    assert verify_batch(key, [], []) == []
    assert len({len(proof) for (proof,) in proofs}) == 1, "the length says nothing of the tokens"


@pytest.mark.parametrize("name", ["ctx", "table", "hq", "cq"])
def test_every_public_value_is_bound(key: EmbedKey, proofs: list[tuple[bytes, ...]], name: str) -> None:
    public = statement(key, TOKENS[0])
    changed = replace(public, **{name: getattr(public, name) + 1})
    assert verify_batch(key, proofs[:1], [changed]) == [0]
    with pytest.raises(InvalidProof):
        verify(key, proofs[0], changed)


def test_proof_of_another_record_is_named(key: EmbedKey, proofs: list[tuple[bytes, ...]]) -> None:
    statements = [statement(key, tokens) for tokens in TOKENS]
    swapped = [proofs[0], proofs[2], proofs[1], proofs[3]]
    assert verify_batch(key, swapped, statements) == [1, 2]
    elsewhere = [statement(key, TOKENS[0], ctx=34), *statements[1:]]
    assert verify_batch(key, proofs, elsewhere) == [0]
    assert verify_batch(key, [(proofs[0][0][:-1],), (b"",), *proofs[2:]], statements) == [0, 1]


def test_table_of_the_provider_s_own_is_refused(key: EmbedKey) -> None:
    """It proves what its own table makes of the tokens: under the pinned commitment that is nothing."""
    own = EmbedKey.commit(other_rows(), SMALL)
    entries = np.frombuffer(other_rows(), np.int8).reshape(-1, SMALL.dimension)
    vector = normalise(entries[[4, 5]].sum(axis=0, dtype=np.int64), DEFAULT_TABLE.norm_factor, field="query")
    public = EmbedStatement(
        ctx=1,
        table=own.root,
        hq=query_commitment(SALT_Q, [4, 5]),
        cq=vector_commitment(SALT_C, [int(v) for v in vector]),
    )
    proof = EmbedJob(own, public, other_rows, [4, 5], SALT_Q, SALT_C).run()
    wire = wire_of(proof)
    assert verify_batch(own, [wire], [public]) == []
    assert verify_batch(key, [wire], [public]) == [0]
    assert verify_batch(key, [wire], [replace(public, table=key.root)]) == [0]
    assert own.digest != key.digest


@pytest.mark.parametrize(
    "lie",
    [
        {"tokens": [3, 3, 49, 0]},
        {"tokens": [3, 49, 3]},
        {"tokens": []},
        {"tokens": [50]},
        {"tokens": [-1]},
        {"tokens": [1] * 21},
        {"salt_q": 1},
        {"salt_c": 1},
        {"rows": lambda: rows()[:-1]},
        {"rows": lambda: bytes([8]) + rows()[1:]},
    ],
    ids=["order", "fewer", "none", "vocabulary", "negative", "limit", "salt_q", "salt_c", "shape", "range"],
)
def test_the_prover_refuses_a_false_witness(key: EmbedKey, lie: dict[str, Any]) -> None:
    with pytest.raises(WitnessError):
        replace(job(key, TOKENS[0]), **lie).run()


def test_the_prover_refuses_another_table_s_statement(key: EmbedKey) -> None:
    right = job(key, TOKENS[0])
    with pytest.raises(WitnessError, match="another table"):
        replace(right, statement=replace(right.statement, table=5)).run()


@pytest.mark.parametrize(
    "change",
    [{"tokens": 21}, {"norm_factor": 8146}, {"vocabulary": 51}, {"dimension": 29}],
    ids=lambda c: next(iter(c)),
)
def test_every_parameter_is_bound(
    key: EmbedKey, proofs: list[tuple[bytes, ...]], change: dict[str, int]
) -> None:
    argument = replace(SMALL, **change)
    assert argument.digest() != SMALL.digest()
    other = EmbedKey(argument, key.points)
    try:
        moved = replace(statement(key, TOKENS[0]), table=other.root)
    except EncodingError:
        assert "dimension" in change, "other points for another number of columns"
    else:
        assert verify_batch(other, proofs[:1], [moved]) == [0]


@pytest.mark.parametrize(
    "change",
    [{"tokens": 0}, {"tokens": 209}, {"dimension": 0}, {"vocabulary": 32_769}, {"norm_factor": 1 << 21}],
)
def test_parameters_out_of_range_are_refused(change: dict[str, int]) -> None:
    with pytest.raises(PolicyError):
        replace(SMALL, **change)


@pytest.mark.parametrize(
    "bad",
    [rows()[:-1], rows()[: -SMALL.dimension], b"", bytes([8]) + rows()[1:]],
    ids=["cut", "row", "none", "8"],
)
def test_tables_of_another_shape_are_refused(bad: bytes) -> None:
    with pytest.raises(EncodingError):
        EmbedKey.commit(bad, SMALL)


def test_a_point_off_the_curve_is_refused(key: EmbedKey) -> None:
    points = bytes([0x3F]) + bytes([0xFF]) * 31 + key.points[32:]
    with pytest.raises(EncodingError):
        EmbedKey(SMALL, points).table  # noqa: B018


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (lambda p: {**p, "system": "groth16"}, SchemaError),
        (lambda p: {**p, "protocol": "0" * 64}, SchemaError),
        (lambda p: {**p, "proof": "***"}, EncodingError),
        (lambda p: {**p, "proof": 5}, EncodingError),
        (lambda p: {**p, "more": 1}, SchemaError),
        (lambda p: {**p, "records": p["records"] * 2}, SchemaError),
        (lambda p: {k: x for k, x in p.items() if k != "records"}, SchemaError),
        (lambda p: [p], SchemaError),
    ],
)
def test_proof_files_are_parsed_strictly(
    made: list[dict[str, Any]], change: Callable[[Any], Any], error: type[RagAuditError]
) -> None:
    with pytest.raises(error):
        wire_of(change(made[0]))


def test_mutated_proofs_are_refused(key: EmbedKey, proofs: list[tuple[bytes, ...]]) -> None:
    (proof,), public = proofs[0], statement(key, TOKENS[0])
    bad = [proof[:n] for n in (0, 31, 100, len(proof) - 32)] + [proof + bytes(32)]
    for at in range(0, len(proof), 1_511):
        bad.append(proof[:at] + bytes([proof[at] ^ 1]) + proof[at + 1 :])
    assert verify_batch(key, [(part,) for part in bad], [public] * len(bad)) == list(range(len(bad)))


def test_jobs_are_picklable_and_print_no_secret(key: EmbedKey) -> None:
    right = job(key, TOKENS[0])
    right.key.table  # noqa: B018 -- the native object stays here
    stored = pickle.dumps(right)
    assert pickle.loads(stored) == right
    assert rows() not in stored, "the table does not travel with every job"
    assert all(name not in repr(right) for name in ("tokens=[", "salt_q", "salt_c"))


def test_questions_under_the_pinned_table() -> None:
    """What a provider would prove of its records: short questions, and a text that is cut at the limit."""
    pytest.importorskip("wordllama", reason="the embedder's data comes with the extra [provider]")
    embedder = wordllama.WordLlama()
    key = EmbedKey(EmbedArgument(embedder.limits.query), table_columns(wordllama.TABLE))
    assert key.digest.hex() == wordllama.TABLE_SCAN
    path = Path(wordllama.__file__).parents[2] / "cli" / "demo" / "questions.json"
    questions = [case["question"] for case in json.loads(path.read_text())]
    texts = [questions[0], questions[1], " ".join(questions)]

    def public(text: str) -> EmbedStatement:
        vector = [int(v) for v in embedder.embed_query(text)]
        hq = embedder.query_commitment(text, SALT_Q)
        return EmbedStatement(ctx=1, table=key.root, hq=hq, cq=vector_commitment(SALT_C, vector))

    statements = [public(text) for text in texts]
    assert len(embedder.tokenize(texts[2])) == embedder.limits.query
    proofs = [
        wire_of(
            EmbedJob(key, s, wordllama.table_rows, embedder.tokenize(t), SALT_Q, SALT_C).run(), key.argument
        )
        for t, s in zip(texts, statements, strict=True)
    ]
    assert verify_batch(key, proofs, statements) == []
    assert verify_batch(key, [proofs[1], *proofs[1:]], statements) == [0]
    mixed = replace(statements[0], cq=statements[1].cq)
    assert verify_batch(key, proofs[:1], [mixed]) == [0]
    assert len(base64.b64encode(proofs[0][0])) < 40_000
