"""Proofs of A1: over a small table whatever a cheater may try, over the pinned one a question of the demo."""

from __future__ import annotations

import json
import pickle
import random
from concurrent.futures import ProcessPoolExecutor
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest

from rag_audit.errors import EncodingError, SchemaError, WitnessError
from rag_audit.proofs.backends.groth16.embed import EmbedJob, EmbedTable, table_tree
from rag_audit.proofs.backends.groth16.instance import EmbedInstance
from rag_audit.proofs.backends.groth16.keys import VerificationKey, proving_key
from rag_audit.proofs.backends.groth16.verifiers import ENGINES, parse_records_proof, verify, verify_batch
from rag_audit.proofs.statements.embed import EmbedStatement
from rag_audit.proofs.statements.retrieve import Statement
from rag_audit.relation.commitments import query_commitment, vector_commitment
from rag_audit.relation.field import from_hex
from rag_audit.relation.table import TableTree
from rag_audit.retrieval.embedders import wordllama
from tests.circuits.many_case import part
from tests.circuits.retrieve_case import TINY as RETRIEVE
from tests.embedded import embed_statement

pytestmark = pytest.mark.circuits

TINY = EmbedInstance(tokens=4, dimension=256, depth=2, zero_row=60)
SALT_Q, SALT_C = 7**80, 11**70
TOKENS = [3, 50, 3]


def rows(seed: int) -> list[list[int]]:
    rng = random.Random(seed)
    return [[rng.randint(-7, 7) for _ in range(TINY.dimension)] for _ in range(56)]


def embed_table(seed: int) -> EmbedTable:
    return EmbedTable.build(np.array(rows(seed), np.int8).tobytes(), TINY.dimension, TINY.depth)


@pytest.fixture(scope="module")
def table() -> EmbedTable:
    return embed_table(1)


def statement(table: EmbedTable, tokens: list[int], *, ctx: int = 33) -> EmbedStatement:
    entries = np.frombuffer(table.rows, np.int8).reshape(-1, table.dimension)
    return embed_statement(entries, tokens, ctx=ctx, table=table.root, salts=(SALT_Q, SALT_C))


def job(table: EmbedTable, tokens: list[int], public: EmbedStatement | None = None) -> EmbedJob:
    public = public or statement(table, tokens)
    return EmbedJob.of(TINY, public, table, tokens, salt_q=SALT_Q, salt_c=SALT_C)


@pytest.fixture(scope="module")
def key() -> VerificationKey:
    return VerificationKey.parse(proving_key(TINY).vk, field="vk")


@pytest.fixture(scope="module")
def honest(table: EmbedTable) -> bytes:
    with ProcessPoolExecutor(1) as pool:
        proof = pool.submit(pickle.loads(pickle.dumps(job(table, TOKENS))).run).result()
    return part(parse_records_proof(proof, TINY.digest(), 1, field="proof"))


def test_table_agrees_with_the_reference(table: EmbedTable) -> None:
    tree = TableTree(rows(1), TINY.depth)
    assert table.root == tree.root
    for place in (0, 9, 55, 56, 63):
        expected = [x for eight in tree.path(place) for x in eight]
        assert table.path(place) == b"".join(x.to_bytes(32, "big") for x in expected)
    assert table.row(55) == np.array(rows(1)[55], np.int8).tobytes()
    assert table.row(56) == bytes(TINY.dimension)


@pytest.mark.parametrize("engine", ENGINES)
def test_proof_verifies_and_no_public_value_can_be_changed(
    table: EmbedTable, key: VerificationKey, honest: bytes, engine: str
) -> None:
    """hq of another query, cq of another vector, another table's root, another record."""
    good = statement(table, TOKENS)
    other = replace(statement(embed_table(2), [4]), ctx=34)
    assert verify(key, honest, good, engine=engine)
    for name in [f.name for f in fields(EmbedStatement)]:
        swapped = replace(good, **{name: getattr(other, name)})
        assert not verify(key, honest, swapped, engine=engine), name


def test_batch_names_the_bad_ones(table: EmbedTable, key: VerificationKey, honest: bytes) -> None:
    good = statement(table, TOKENS)
    assert verify_batch(key, [honest] * 3, [good, replace(good, ctx=34), good]) == [1]


def test_statement_of_the_other_circuit_is_refused(key: VerificationKey, honest: bytes) -> None:
    with pytest.raises(EncodingError):
        verify(key, honest, Statement(*range(1, 8)))


def test_proof_of_the_other_circuit_is_refused(table: EmbedTable) -> None:
    with pytest.raises(SchemaError, match="another circuit"):
        part(parse_records_proof(job(table, TOKENS).run(), RETRIEVE.digest(), 1, field="proof"))


def test_job_does_not_show_its_secrets(table: EmbedTable) -> None:
    result = job(table, TOKENS)
    text = repr(result)
    for secret in (SALT_Q, SALT_C, TOKENS, tuple(TOKENS), result.rows, result.paths):
        assert str(secret) not in text
    assert f"hq={result.statement.hq}" in text


@pytest.mark.parametrize("name, of", [("hq", [3, 50, 4]), ("cq", [4]), ("hq", [3, 3, 50])])
def test_commitment_to_something_else_cannot_be_proved(table: EmbedTable, name: str, of: list[int]) -> None:
    """Another query's tokens, another query's vector, the same tokens in another order."""
    public = replace(statement(table, TOKENS), **{name: getattr(statement(table, of), name)})
    with pytest.raises(WitnessError, match="private inputs do not satisfy"):
        job(table, TOKENS, public).run()


@pytest.mark.parametrize("name", ["salt_q", "salt_c"])
def test_other_salt_cannot_be_proved(table: EmbedTable, name: str) -> None:
    with pytest.raises(WitnessError, match="private inputs do not satisfy"):
        replace(job(table, TOKENS), **{name: 5}).run()


def test_row_of_another_token_cannot_be_proved(table: EmbedTable) -> None:
    """The row is in the table and its path is true, but it is not the token's."""
    opened = job(table, [4, 50, 3])
    public = replace(opened.statement, hq=query_commitment(SALT_Q, TOKENS))
    with pytest.raises(WitnessError, match="private inputs do not satisfy"):
        replace(opened, statement=public, tokens=tuple(TOKENS)).run()


def test_table_of_the_provider_s_own_is_not_the_pinned_one(table: EmbedTable, key: VerificationKey) -> None:
    """The proof is good for the table that it names. A verifier names the pinned one."""
    own = embed_table(2)
    proof = part(parse_records_proof(job(own, TOKENS).run(), TINY.digest(), 1, field="proof"))
    assert verify(key, proof, statement(own, TOKENS))
    assert not verify(key, proof, replace(statement(own, TOKENS), table=table.root))
    with pytest.raises(WitnessError, match="private inputs do not satisfy"):
        job(own, TOKENS, replace(statement(own, TOKENS), table=table.root)).run()


@pytest.mark.parametrize("token", [-1, 56, 64])
def test_token_outside_the_table_is_refused_by_name(table: EmbedTable, token: int) -> None:
    with pytest.raises(WitnessError, match="a token is outside the table") as caught:
        job(table, [3, token], statement(table, TOKENS))
    assert caught.value.field == "tokens[1]"


def test_token_outside_the_tree_cannot_be_proved(table: EmbedTable) -> None:
    """64 has the digits of 0 in the tree; its row would be row 0."""
    opened = job(table, [3, 0])
    public = replace(opened.statement, hq=query_commitment(SALT_Q, [3, 64]))
    with pytest.raises(WitnessError, match="private inputs do not satisfy"):
        replace(opened, statement=public, tokens=(3, 64)).run()


@pytest.mark.parametrize("tokens", [[], [1] * 5])
def test_number_of_tokens_that_the_circuit_has_no_room_for(table: EmbedTable, tokens: list[int]) -> None:
    with pytest.raises(WitnessError) as caught:
        job(table, tokens, statement(table, TOKENS))
    assert caught.value.field == "tokens"


@pytest.mark.parametrize(
    "change, field", [({"depth": 1, "zero_row": 7}, "depth"), ({"dimension": 255}, "dimension"),
                      ({"zero_row": 55}, "zero_row")]
)  # fmt: skip
def test_table_that_does_not_fit_the_circuit(table: EmbedTable, change: dict[str, int], field: str) -> None:
    with pytest.raises(WitnessError) as caught:
        EmbedJob.of(
            replace(TINY, **change), statement(table, TOKENS), table, TOKENS, salt_q=SALT_Q, salt_c=SALT_C
        )
    assert caught.value.field == field


def test_rows_that_fit_no_tree() -> None:
    with pytest.raises(EncodingError, match="does not fit its tree"):
        EmbedTable.build(bytes(8 * 256), 256, 1)


@pytest.mark.parametrize("limit", [2, *(pytest.param(n, marks=pytest.mark.full) for n in (24, 64))])
def test_question_of_the_demo_under_the_pinned_table(limit: int) -> None:
    """Tree of 32,768 leaves: what a provider would prove of a record, and its three cheats. In the place of 2 and 64 a
    text that is cut there."""
    pytest.importorskip("wordllama", reason="the embedder's data comes with the extra [provider]")
    instance = EmbedInstance(tokens=limit)
    embedder = wordllama.WordLlama(query_tokens=limit)
    path = Path(wordllama.__file__).parents[2] / "cli" / "demo" / "questions.json"
    questions = [case["question"] for case in json.loads(path.read_text())]
    first = " ".join(questions) if limit == 64 else questions[0]
    second = next(q for q in questions if embedder.tokenize(q) != embedder.tokenize(first))

    def public(text: str) -> EmbedStatement:
        vector = [int(v) for v in embedder.embed_query(text)]
        return EmbedStatement(
            ctx=1,
            table=from_hex(wordllama.TABLE_ROOT, field="table"),
            hq=embedder.query_commitment(text, SALT_Q),
            cq=vector_commitment(SALT_C, vector),
        )

    good, other = public(first), public(second)
    table, tokens = table_tree(wordllama.TABLE), embedder.tokenize(first)
    assert (len(tokens) == limit) == (limit != 24)
    result = EmbedJob.of(instance, good, table, tokens, salt_q=SALT_Q, salt_c=SALT_C)
    proof = part(parse_records_proof(result.run(), instance.digest(), 1, field="proof"))
    pinned = VerificationKey.parse(proving_key(instance).vk, field="vk")
    for engine in ("native", "py_ecc"):
        assert verify(pinned, proof, good, engine=engine)
    for swap in ({"hq": other.hq}, {"cq": other.cq}, {"table": good.table + 1}):
        assert not verify(pinned, proof, replace(good, **swap))
        with pytest.raises(WitnessError, match="private inputs do not satisfy"):
            replace(result, statement=replace(good, **swap)).run()
