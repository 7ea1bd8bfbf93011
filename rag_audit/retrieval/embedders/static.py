"""Embedders whose queries are sums of rows of a public table, in integers throughout. Claim A1 can be proved for them
(docs/relation.md, "Vectors").
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from fractions import Fraction
from math import isqrt

import numpy as np
import numpy.typing as npt

from rag_audit._internal.errors import EncodingError
from rag_audit.models.manifest import EmbedderManifest, Quantiser, StaticTable
from rag_audit.relation.native import query_commitment
from rag_audit.relation.scores import MAX_COMPONENT
from rag_audit.retrieval.embedders.base import (
    NothingToEmbed,
    PromptTemplate,
    TokenLimits,
    Vectors,
    visible_text,
)
from rag_audit.retrieval.embedders.normal_form import NORMAL_FORM

Numbers = npt.NDArray[np.int64]
_ROOT_SHIFT = 16


def normalise(e: Numbers, norm_factor: int, *, field: str) -> Vectors:
    """The int4 vector v_j = sign(e_j) min(7, floor((2 |e_j| A + w) / (2 w))), w = isqrt(2^16 sum e_j^2); shape (d,).

    :param norm_factor: A
    :raises NothingToEmbed: e is zero
    """
    w = isqrt(int(e @ e) << _ROOT_SHIFT)
    if w == 0:
        raise NothingToEmbed(
            "the text has no token to embed", field=field, expected="text with at least one word"
        )
    magnitudes = np.minimum(MAX_COMPONENT, (2 * norm_factor * np.abs(e) + w) // (2 * w))
    vector: Vectors = (np.sign(e) * magnitudes).astype(np.int8)
    return vector


def with_norm(e: Numbers, length: int) -> Numbers:
    """e rounded to a norm of about `length`: sign(e_j) floor((2 length |e_j| + n) / (2 n)), n = max(1, isqrt(sum
    e_j^2)); shape (d,). The vector zero remains zero.
    """
    norm = max(1, isqrt(int(e @ e)))
    rounded: Numbers = np.sign(e) * ((2 * length * np.abs(e) + norm) // (2 * norm))
    return rounded


class StaticEmbedder(ABC):
    """An embedder over a public table, with the methods of `Embedder`.

    A subclass sets the attributes. They need no file of the embedder, so a verifier has them without the embedder's
    packages.
    """

    name: str
    score_window: tuple[int, int]
    table: StaticTable
    artefacts: dict[str, str]
    """the public artefacts by name, as the manifest and a verifier's pins list them"""
    quantiser: Quantiser
    """without the factor of the normalisation, which belongs to the table"""
    documents: str | None = None
    """the name of the rule by which documents are embedded, if it differs from that of queries"""
    relevance: int | None = None
    """minimum raw score of a relevant passage, which `rag-audit lab relevance` measured on public texts; None if it was
    not measured"""
    template = PromptTemplate()

    def __init__(self, *, query_tokens: int = 64, document_tokens: int = 512) -> None:
        self.limits = TokenLimits(query_tokens, document_tokens)
        rows = np.frombuffer(self.table.rows(), np.int8)
        self._rows: Vectors = rows.reshape(self.table.constants.vocabulary, self.dimension)

    @property
    def dimension(self) -> int:
        return self.table.dimension

    @property
    def scale(self) -> Fraction:
        """The quantiser's scale: the component of a unit vector that becomes 7."""
        return Fraction(self.quantiser["scale"])

    @classmethod
    def manifest_of(cls, query_tokens: int, document_tokens: int) -> EmbedderManifest:
        """The embedder's manifest. This release fixes all of its fields except the token limits."""
        manifest: EmbedderManifest = {
            "kind": cls.name,
            "artefacts": dict(cls.artefacts),
            "dimension": cls.table.dimension,
            "normal_form": NORMAL_FORM,
            "prompt": cls.template.digest(),
            "quantiser": {**cls.quantiser, "norm_factor": cls.table.constants.norm_factor},
            "query_commitment": "tokens",
            "tokens": {"document": document_tokens, "query": query_tokens},
            "vocabulary": cls.table.constants.vocabulary,
        }
        if cls.documents is not None:
            manifest["documents"] = cls.documents
        return manifest

    def manifest(self) -> EmbedderManifest:
        return self.manifest_of(self.limits.query, self.limits.document)

    def tokenize(self, text: str) -> list[int]:
        return self._tokens([visible_text(text, field="query")])[0][: self.limits.query]

    def embed_tokens(self, tokens: Sequence[int]) -> Vectors:
        if len(tokens) and not 0 <= min(tokens) <= max(tokens) < self.table.constants.vocabulary:
            raise EncodingError(
                "a token is outside the vocabulary",
                field="query",
                expected=f"0..{self.table.constants.vocabulary - 1}",
            )
        return normalise(self._query(tokens), self.table.constants.norm_factor, field="query")

    def embed_query(self, text: str) -> Vectors:
        return self.embed_tokens(self.tokenize(text))

    def embed_documents(self, texts: Sequence[str], *, first: int = 0) -> Vectors:
        out = np.zeros((len(texts), self.dimension), np.int8)
        for number, tokens in enumerate(self._documents(texts, first), first):
            total = self._document(tokens[: self.limits.document])
            out[number - first] = normalise(
                total, self.table.constants.norm_factor, field=f"documents[{number}]"
            )
        return out

    def cut_documents(self, texts: Sequence[str]) -> int:
        return sum(len(tokens) > self.limits.document for tokens in self._documents(texts))

    def query_commitment(self, text: str, salt: int, tokens: Sequence[int] | None = None) -> int:
        return query_commitment(salt, self.tokenize(text) if tokens is None else tokens)

    def _documents(self, texts: Sequence[str], first: int = 0) -> list[list[int]]:
        """The tokens of each document, uncut."""
        return self._tokens(
            [visible_text(text, field=f"documents[{number}]") for number, text in enumerate(texts, first)]
        )

    def _query(self, tokens: Sequence[int]) -> Numbers:
        """The sum of the rows of a query's tokens, shape (d,)."""
        total: Numbers = self._rows[list(tokens)].sum(axis=0, dtype=np.int64)
        return total

    def _document(self, tokens: Sequence[int]) -> Numbers:
        """The sum that is normalised for a document, shape (d,). Subclasses may change it: no proof covers it."""
        return self._query(tokens)

    @abstractmethod
    def _tokens(self, forms: Sequence[str]) -> list[list[int]]:
        """The tokens of each text, uncut. The texts have the form that `visible_text` returns."""
