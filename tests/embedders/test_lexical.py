"""The lexical components: signs and gains by their published rule, and the weights of a document's words."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from math import floor, isqrt, log

import numpy as np
import pytest

from rag_audit.errors import EncodingError
from rag_audit.retrieval.embedders import NothingToEmbed, lexical, wordllama
from rag_audit.retrieval.embedders.lexical import LexicalTable

pytest.importorskip("wordllama", reason="the embedder's data comes with the extra [provider]")


@pytest.fixture(scope="module")
def embedder() -> wordllama.WordLlama:
    return wordllama.WordLlama()


@pytest.fixture(scope="module")
def table() -> LexicalTable:
    return wordllama.lexical_table()


def token(embedder: wordllama.WordLlama, piece: str) -> int:
    number = embedder._tokenizer.token_to_id(piece)
    assert number is not None
    return int(number)


def cosine(a: np.ndarray, b: np.ndarray) -> float:
    x, y = a.astype(np.float64), b.astype(np.float64)
    return float(x @ y / np.linalg.norm(x) / np.linalg.norm(y))


def test_ranks_of_the_gains_follow_from_the_formula() -> None:
    """`RANKS` are the least ranks of each gain."""
    gains = [min(7, max(1, floor(0.75 * log(1 + rank / 64) + 0.5))) for rank in range(32_000)]
    assert tuple(gains.index(gain) for gain in (2, 3, 4, 5)) == lexical.RANKS
    assert max(gains) == 5


def test_variants_of_a_piece_have_equal_rows(embedder: wordllama.WordLlama, table: LexicalTable) -> None:
    rows = table.rows()
    for first, *others in (["the", "▁the", "The", "▁The", "▁THE"], ["▁court", "court", "▁Court"]):
        for other in others:
            assert (rows[token(embedder, first)] == rows[token(embedder, other)]).all()
    assert (rows[token(embedder, "▁the")] != rows[token(embedder, "▁court")]).any()
    # a byte is no variant of the letter whose code it is
    assert (rows[token(embedder, "<0x61>")] != rows[token(embedder, "a")]).any()


def test_rare_pieces_have_higher_gains(embedder: wordllama.WordLlama, table: LexicalTable) -> None:
    gains = [
        int(table.gains[table.piece_of[token(embedder, p)]])
        for p in ("<0x0A>", "▁the", "▁court", "▁Mitglieder")
    ]
    assert gains == sorted(gains) and gains[0] == gains[1] == 1 and gains[3] > gains[2] > 1


def test_signs_are_the_published_bits(embedder: wordllama.WordLlama, table: LexicalTable) -> None:
    """A literal, so that another order of bits, seed or piece is noticed."""
    signs = table.signs[table.piece_of[token(embedder, "▁court")]]
    assert "".join("+-"[int(s < 0)] for s in signs[:32]) == "-------+--------++-+-+----++----"
    assert set(np.unique(table.signs).tolist()) == {-1, 1}


def test_signs_of_different_pieces_are_nearly_orthogonal(table: LexicalTable) -> None:
    sample = table.signs[:: len(table.signs) // 400].astype(np.int64)
    products = sample @ sample.T / lexical.COMPONENTS
    off = products[~np.eye(len(sample), dtype=bool)]
    assert np.abs(off).max() < 0.3 and abs(off.std() - lexical.COMPONENTS**-0.5) < 0.005


def reference(embedder: wordllama.WordLlama, tokens: list[int]) -> list[int]:
    """A document's vector by the formulas of docs/relation.md, token by token."""
    table, lex = wordllama.int4_table(), wordllama.lexical_table()
    semantic = [0] * wordllama.SEMANTIC
    for t, n in Counter(tokens).items():
        weight = floor(Fraction(1024 * n, n + 4))
        semantic = [x + weight * int(v) for x, v in zip(semantic, table[t], strict=False)]
    norm = isqrt(sum(x * x for x in semantic))
    e = [(1 if x > 0 else -1) * floor(Fraction(50_000 * abs(x), norm) + Fraction(1, 2)) for x in semantic]
    words = [0] * lexical.COMPONENTS
    for piece, n in Counter(int(lex.piece_of[t]) for t in tokens).items():
        saturation = Fraction(6, 5) * (Fraction(3, 5) + Fraction(2, 5) * Fraction(len(tokens), 180))
        weight = floor(256 * n / (n + saturation))
        words = [x + weight * int(s) for x, s in zip(words, lex.signs[piece], strict=True)]
    e += words
    w = isqrt(2**16 * sum(x * x for x in e))
    return [(1 if x > 0 else -1) * min(7, (2 * abs(x) * 16_593 + w) // (2 * w)) for x in e]


@pytest.mark.parametrize(
    "text",
    [
        "The court decided that the contract was void. The Contract had no date.",
        "word " * 600,
        "a",
        "Größe der Heizung, 난방비, ሰላም ለዓለም",
    ],
)
def test_document_is_the_published_formula(embedder: wordllama.WordLlama, text: str) -> None:
    tokens = embedder._tokenizer.encode(text, add_special_tokens=False).ids[: embedder.limits.document]
    assert embedder.embed_documents([text])[0].tolist() == reference(embedder, tokens)


def test_repetition_of_a_word_does_not_take_over_a_document(embedder: wordllama.WordLlama) -> None:
    once, often = embedder.embed_documents(
        ["heating costs of the tenant", "heating costs of the tenant" + " heating" * 20]
    )
    assert cosine(once, often) > 0.6
    tokens = np.array(embedder.tokenize("heating"))
    one, twenty = (embedder._lexical.of_document(np.tile(tokens, n)) for n in (1, 20))
    assert np.abs(twenty).max() < 2 * np.abs(one).max()


def test_common_word_raises_the_score(embedder: wordllama.WordLlama) -> None:
    """Two passages of one subject; only one has the question's rare word."""
    question = embedder.embed_query("who examined Katherine's liver").astype(np.int64)
    with_word, without = embedder.embed_documents(
        ["A surgeon examined Katherine.", "A surgeon examined Elizabeth."]
    ).astype(np.int64)
    assert question @ with_word > 1.2 * (question @ without)


@pytest.mark.parametrize(
    "text", ["a", "?!..,;", "ሰላም ለዓለም", "🙂", "\u0e01", "x" * 1_000_000, "(" * 1_000_000, "一" * 1_000_000]
)
def test_unusual_texts_have_vectors(embedder: wordllama.WordLlama, text: str) -> None:
    for vector in (embedder.embed_query(text), embedder.embed_documents([text])[0]):
        assert vector.shape == (768,) and vector.any() and np.abs(vector).max() <= 7
    assert len(embedder.tokenize(text)) <= 64


def test_texts_in_a_script_outside_the_vocabulary_find_their_like(
    embedder: wordllama.WordLlama,
) -> None:
    """Such texts are bytes; the same bytes give a higher score than others."""
    question = embedder.embed_query("ሰላም ለዓለም").astype(np.int64)
    same, other = embedder.embed_documents(["ሰላም ለዓለም ሁሉ", "ಕನ್ನಡ ಭಾಷೆ ಪಠ್ಯ"]).astype(np.int64)
    assert question @ same > question @ other


@pytest.mark.parametrize("text", ["", "\u00ad", "\u200b\ufeff", "\u3164"])
def test_texts_without_a_visible_character_are_refused(embedder: wordllama.WordLlama, text: str) -> None:
    with pytest.raises(NothingToEmbed):
        embedder.embed_query(text)
    with pytest.raises(NothingToEmbed) as caught:
        embedder.embed_documents(["one", text])
    assert caught.value.field == "documents[1]"


@pytest.mark.parametrize(
    "one, other",
    [
        ("office efficiency flow", "o\ufb03ce e\ufb03ciency \ufb02ow"),
        (
            "난방비는 세입자가 부담한다",
            "\u1102\u1161\u11ab\u1107\u1161\u11bc\u1107\u1175는 세입자가 부담한다",
        ),
        ("heating contract renewal", "heat\u00ading con\u00adtract re\u00adnewal"),
        ("Größe der Heizung", "Gro\u0308ße der Heizung"),
        ("clause one\nclause two", "clause one\r\nclause two"),
        ("ABC 123", "\uff21\uff22\uff23\u3000\uff11\uff12\uff13"),
    ],
)
def test_texts_that_look_equal_have_equal_vectors(
    embedder: wordllama.WordLlama, one: str, other: str
) -> None:
    assert one != other
    assert (embedder.embed_documents([one])[0] == embedder.embed_documents([other])[0]).all()
    assert embedder.tokenize(one) == embedder.tokenize(other)
    assert embedder.cut_documents([other]) == 0


def test_text_that_is_not_unicode_is_refused_by_its_number(embedder: wordllama.WordLlama) -> None:
    with pytest.raises(EncodingError) as caught:
        embedder.embed_documents(["a", "b\udfff"], first=4)
    assert caught.value.field == "documents[5]"
