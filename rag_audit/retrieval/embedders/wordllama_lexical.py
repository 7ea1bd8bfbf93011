"""The embedder `wordllama-lexical-768`: the int4 table of `wordllama` with lexical components, in integers throughout.

A query is the sum of its tokens' rows, so claim A1 can be proved (docs/relation.md, "Vectors"). The provider embeds
documents, which no proof covers; a document's vector weighs how often its tokens occur.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from math import isqrt

import numpy as np

from rag_audit._internal.errors import SetupError
from rag_audit.models.manifest import EmbedderManifest, StaticTable
from rag_audit.relation.native import query_commitment
from rag_audit.retrieval.embedders import wordllama
from rag_audit.retrieval.embedders.base import PromptTemplate, TokenLimits, Vectors, visible_text
from rag_audit.retrieval.embedders.lexical import COMPONENTS, LexicalTable, Numbers
from rag_audit.retrieval.embedders.normal_form import NORMAL_FORM

NAME = "wordllama-lexical-768"
SEMANTIC = 256
"""Components of the table of `wordllama`, which come first."""
DIMENSION = SEMANTIC + COMPONENTS
SCALE = Fraction(108, 1000)
NORM_FACTOR = 16_593
"""A = 7 * 256 / 0.108, for norms in units of 2^-8."""
SCORE_WINDOW = (420, 1680)
"""0.1 and 0.4 of the largest score, (7 / 0.108)^2. On SQuAD, relevant passages have scores of 620 to 1,820 (from the
5th to the 95th percentile), and a higher upper end costs retrieval quality under noise (docs/embedders.md)."""
RELEVANCE = 601
"""The relevance threshold: 95 of 100 questions of SQuAD reach this raw score with their own passage (`rag-audit lab
relevance`)."""
DOCUMENTS = "saturated-1"
"""The name of `WordLlamaLexical.embed_documents`, as the manifest writes it."""
_COUNT_SHIFT = 10
_HALF_COUNT = 4
"""Occurrences of a token in a document at which its row has half of its largest weight."""
_SEMANTIC_NORM = 50_000
"""The norm of a document's semantic part. The lexical part of 100 distinct pieces has about half of it."""

TABLE_SHA256 = "ecb34567e20d05cbdf85793ba3880539f4966f77ec0555334410f8b7f6e83c52"
"""SHA-256 over the int4 table as int8, row by row."""
TREE_DEPTH = 5
TABLE_ROOT = "268f87928452dbe9752b54b865ff5893d97c15f7daae543e9e59899b99a728dc"
"""Root of the tree over the int4 table, which is the public value `table` of claim A1's proofs."""
TREE_SHA256 = "451d158ccd5a550d889055a8fc4f4b5f4ca41ef1836945b18d686240db7a2e02"
"""SHA-256 over all nodes of that tree, leaves first, 32 bytes big-endian each; the last is TABLE_ROOT."""
TABLE_SCAN = "ca78fb424c9695fd4f21be6cb7997bace39de5365e2ee818b8f71c1cf6a6e6d0"
"""SHA-256 over the commitments to the table's columns, to which scan proofs of claim A1 refer."""

ARTEFACTS = {
    "table-int4": TABLE_SHA256,
    "table-root": TABLE_ROOT,
    "table-scan": TABLE_SCAN,
    "tokenizer": wordllama.TOKENIZER_SHA256,
    "weights": wordllama.WEIGHTS_SHA256,
}
"""The public artefacts by name, as the manifest and a verifier's pins list them."""


def manifest(query_tokens: int, document_tokens: int) -> EmbedderManifest:
    """The embedder's manifest. This release fixes all of its fields except the token limits."""
    return {
        "kind": NAME,
        "artefacts": dict(ARTEFACTS),
        "dimension": DIMENSION,
        "documents": DOCUMENTS,
        "normal_form": NORMAL_FORM,
        "prompt": PromptTemplate().digest(),
        "quantiser": {
            "bits": 4,
            "entry_clip": wordllama.ENTRY_CLIP,
            "norm_factor": NORM_FACTOR,
            "scale": "0.108",
        },
        "query_commitment": "tokens",
        "tokens": {"document": document_tokens, "query": query_tokens},
    }


@cache
def lexical_table() -> LexicalTable:
    """The lexical part of the table.

    :raises SetupError: the package is missing, or its tokenizer is not the pinned one
    """
    data = wordllama.package_data(wordllama.TOKENIZER, wordllama.TOKENIZER_SHA256)
    tokens = json.loads(data)["model"]["vocab"]
    return LexicalTable(sorted(tokens, key=tokens.__getitem__))


@cache
def int4_table() -> Vectors:
    """The int4 table, shape (32000, 768): the semantic and the lexical components of each token.

    :raises SetupError: the package is missing, or weights, tokenizer or table are not the pinned ones
    """
    table = np.hstack([wordllama.int4_table(), lexical_table().rows()])
    actual = hashlib.sha256(table.data).hexdigest()
    if actual != TABLE_SHA256:
        raise SetupError("the int4 table is not the pinned one", expected=TABLE_SHA256, actual=actual)
    table.flags.writeable = False
    return table


@cache
def table_rows() -> bytes:
    """The int4 table as int8, row by row.

    :raises SetupError: as `int4_table`
    """
    return int4_table().tobytes()


TABLE = StaticTable(
    rows=table_rows,
    digest=TABLE_SHA256,
    tokens=wordllama.VOCABULARY,
    dimension=DIMENSION,
    norm_factor=NORM_FACTOR,
    depth=TREE_DEPTH,
    tree=TREE_SHA256,
    columns=TABLE_SCAN,
)
"""The table for proofs of claim A1."""


class WordLlamaLexical:
    """The default embedder, with the methods of `Embedder`.

    A document's vector is the `normalise`d sum of two parts. The semantic part is the sum of the rows of its distinct
    tokens times floor(2^10 n / (n + 4)) for n occurrences, rounded to the norm 50,000; the lexical part is
    `LexicalTable.of_document`.
    """

    name = NAME
    dimension = DIMENSION
    scale = SCALE
    score_window = SCORE_WINDOW
    template = PromptTemplate()
    table = TABLE

    def __init__(self, *, query_tokens: int = 64, document_tokens: int = 512) -> None:
        self.limits = TokenLimits(query_tokens, document_tokens)
        self._table = int4_table()
        self._lexical = lexical_table()
        self._tokenizer = wordllama.tokenizer()

    def manifest(self) -> EmbedderManifest:
        return manifest(self.limits.query, self.limits.document)

    def tokenize(self, text: str) -> list[int]:
        form = visible_text(text, field="query")
        ids: list[int] = self._tokenizer.encode(form, add_special_tokens=False).ids
        return ids[: self.limits.query]

    def embed_tokens(self, tokens: Sequence[int]) -> Vectors:
        wordllama.check_tokens(tokens, field="query")
        total = self._table[list(tokens)].sum(axis=0, dtype=np.int64)
        return wordllama.normalise(total, NORM_FACTOR, field="query")

    def embed_query(self, text: str) -> Vectors:
        return self.embed_tokens(self.tokenize(text))

    def embed_documents(self, texts: Sequence[str], *, first: int = 0) -> Vectors:
        out = np.zeros((len(texts), self.dimension), np.int8)
        for number, tokens in enumerate(self._tokens(texts, first)):
            total = self._document(np.array(tokens[: self.limits.document], np.int64))
            out[number] = wordllama.normalise(total, NORM_FACTOR, field=f"documents[{first + number}]")
        return out

    def cut_documents(self, texts: Sequence[str]) -> int:
        return sum(len(tokens) > self.limits.document for tokens in self._tokens(texts))

    def query_commitment(self, text: str, salt: int, tokens: Sequence[int] | None = None) -> int:
        return query_commitment(salt, self.tokenize(text) if tokens is None else tokens)

    def _tokens(self, texts: Sequence[str], first: int = 0) -> list[list[int]]:
        """The tokens of each document, uncut."""
        forms = [visible_text(text, field=f"documents[{number}]") for number, text in enumerate(texts, first)]
        return [encoding.ids for encoding in self._tokenizer.encode_batch(forms, add_special_tokens=False)]

    def _document(self, tokens: Numbers) -> Numbers:
        """The sum of a document's semantic and lexical part before it is normalised, shape (768,)."""
        distinct, counts = np.unique(tokens, return_counts=True)
        weights = (counts << _COUNT_SHIFT) // (counts + _HALF_COUNT)
        semantic = weights @ self._table[distinct, :SEMANTIC].astype(np.int64)
        norm = max(1, isqrt(int(semantic @ semantic)))  # rows that cancel have the norm 0
        magnitudes = (2 * _SEMANTIC_NORM * np.abs(semantic) + norm) // (2 * norm)
        return np.concatenate([np.sign(semantic) * magnitudes, self._lexical.of_document(tokens)])
