"""hashed-words-64: the pinned table, tokens by their hash, and vectors that any party computes without a file."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest

from rag_audit.errors import EncodingError
from rag_audit.models.manifest import PUBLISHED
from rag_audit.proofs.backends.groth16.embed import table_tree
from rag_audit.proofs.backends.scan.embed import table_columns
from rag_audit.proofs.backends.scan.key import EmbedArgument, EmbedKey
from rag_audit.relation import field
from rag_audit.relation.table import TableTree, tree_depth
from rag_audit.retrieval.embedders import (
    NothingToEmbed,
    get_embedder,
    hashed_words,
    public_artefacts,
    public_manifest,
)
from rag_audit.retrieval.embedders.static import normalise

NAME = "hashed-words-64"


def rows() -> list[list[int]]:
    """The table by its description."""
    table = []
    for number in range(511):
        stream = hashlib.shake_256(f"rag-audit/hashed-words-1/{number}".encode()).digest(8)
        table.append([1 - 2 * int(bit) for byte in stream for bit in f"{byte:08b}"])
    return table


def token(word: str) -> int:
    return int(hashlib.sha256(word.encode()).hexdigest()[:16], 16) % 511


def test_the_table_is_the_published_one() -> None:
    data = hashed_words.table_rows()
    assert np.frombuffer(data, np.int8).reshape(511, 64).tolist() == rows()
    assert hashlib.sha256(data).hexdigest() == public_artefacts(NAME)["table-int4"]


def test_commitments_are_the_published_ones() -> None:
    built = TableTree(rows(), tree_depth(511))
    assert field.to_hex(built.root) == public_artefacts(NAME)["table-root"]
    assert table_tree(hashed_words.TABLE).root == built.root
    key = EmbedKey(EmbedArgument(1, 64, 511, 5120), table_columns(hashed_words.TABLE))
    assert key.digest.hex() == public_artefacts(NAME)["table-scan"]


def test_a_query_is_the_sum_of_its_words_rows() -> None:
    embedder = get_embedder(NAME)
    text = "Bail: money, MONEY!"
    tokens = [token("bail"), token("money"), token("money")]
    assert embedder.tokenize(text) == tokens
    total = np.array(rows())[tokens].sum(axis=0)
    expected = normalise(total, 5120, field="query").tolist()
    assert embedder.embed_query(text).tolist() == expected
    assert embedder.embed_documents([text])[0].tolist() == expected


def test_a_passage_with_the_question_s_words_has_the_highest_score() -> None:
    embedder = get_embedder(NAME)
    passages = [
        "Aspirin relieves pain.",
        "Bail is money that is paid until the trial.",
        "A tort is a civil wrong.",
    ]
    scores = embedder.embed_documents(passages).astype(int) @ embedder.embed_query(
        "What is bail money?"
    ).astype(int)
    assert scores.argmax() == 1


def test_limits_and_texts_without_words() -> None:
    embedder = get_embedder(NAME, query_tokens=2, document_tokens=3)
    assert len(embedder.tokenize("one two three")) == 2
    assert embedder.cut_documents(["one two three", "one two three four"]) == 1
    with pytest.raises(NothingToEmbed) as caught:
        embedder.embed_documents(["word", "?!"], first=4)
    assert caught.value.field == "documents[5]"
    with pytest.raises(EncodingError, match="outside the vocabulary"):
        embedder.embed_tokens([511])


def test_no_verifier_accepts_it_without_a_pin() -> None:
    """It serves tests and trials, so a proof under its table counts as unpinned unless trust.toml names the manifest."""
    assert NAME not in PUBLISHED
    assert public_manifest(NAME)["vocabulary"] == 511
