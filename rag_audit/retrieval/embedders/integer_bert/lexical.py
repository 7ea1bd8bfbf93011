"""The integer encoder with lexical components (docs/minilm-int.md, "Lexical components")."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from rag_audit._internal.errors import SetupError
from rag_audit.retrieval.embedders.integer_bert.embedder import IntegerBert
from rag_audit.retrieval.embedders.integer_bert.files import Files
from rag_audit.retrieval.embedders.integer_bert.published import (
    DOCUMENT_RULE,
    LEXICAL_COMPONENTS,
    LEXICAL_RELEVANCE,
    SCORE_WINDOW,
    Description,
)
from rag_audit.retrieval.embedders.lexical import LexicalTable
from rag_audit.retrieval.embedders.static import Numbers, with_norm

SEMANTIC_NORM, LEXICAL_NORM = 50_000, 20_000
"""The norms of a document's two parts."""


def lexical_table(files: Files) -> LexicalTable:
    """The lexical part of each token of a model's tokenizer.

    :raises SetupError: the vocabulary is not BERT's in lower case
    """
    tokens = files.tokenizer.get_vocab()
    try:
        return LexicalTable.of_bert(sorted(tokens, key=tokens.__getitem__), LEXICAL_COMPONENTS)
    except ValueError as exc:
        raise SetupError("the vocabulary has no order of frequency", field="tokenizer.json",
                         expected="the vocabulary of BERT in lower case") from exc  # fmt: skip


class LexicalBert(IntegerBert):
    """An encoder whose vectors have 384 lexical components after the encoder's components.

    A query's integers are the encoder's sums and 2^x times the sum of its tokens' lexical rows, where x is the scale of
    the encoder's results. A document's integers are the encoder's sums, rounded to the norm 50,000, and
    `LexicalTable.of_document` of its tokens without the first and the last one, rounded to the norm 20,000.
    """

    provable = False

    def __init__(self, name: str, files: Files, *args: Any, **limits: Any) -> None:
        self._lexical = lexical_table(files)
        self._rows = self._lexical.rows()
        super().__init__(name, files, *args, **limits)

    def _describe(self, name: str, artefacts: dict[str, str]) -> Description:
        lexical = {"lexical": hashlib.sha256(self._rows.tobytes()).hexdigest()}
        dimension = self._files.model.shape.width + LEXICAL_COMPONENTS
        return Description(
            name,
            artefacts | lexical,
            dimension,
            self._rule.pooling,
            self.template,
            documents=DOCUMENT_RULE,
            window=SCORE_WINDOW,
            relevance=LEXICAL_RELEVANCE,
        )

    def combined(self, semantic: Numbers, tokens: Sequence[int], *, query: bool) -> Numbers:
        of = np.array(tokens, np.int64)
        if query:
            lexical = self._rows[of].sum(axis=0, dtype=np.int64) << self._files.model.scales.x
            return np.concatenate([semantic, lexical])
        lexical = self._lexical.of_document(of[1:-1])
        return np.concatenate([with_norm(semantic, SEMANTIC_NORM), with_norm(lexical, LEXICAL_NORM)])
