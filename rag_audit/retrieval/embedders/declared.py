"""Embedders that other parties cannot re-execute with the same result: their common treatment of a text, and an
embedder that is known only by its manifest."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from rag_audit._internal.errors import EncodingError, SetupError
from rag_audit.models.manifest import EmbedderManifest
from rag_audit.relation.native import text_query_commitment
from rag_audit.relation.scores import MAX_DIMENSION
from rag_audit.retrieval.embedders.base import (
    DocumentRefused,
    NothingToEmbed,
    PromptTemplate,
    TokenLimits,
    Vectors,
    check_text,
    document_number,
    visible_text,
)
from rag_audit.retrieval.embedders.normal_form import NORMAL_FORM
from rag_audit.retrieval.embedders.quantise import TURN, published_scale, quantise_unit, score_range

CHARACTERS = 8
"""Characters that count as one token: the tokens of such an embedder are not known here."""
_WIDTH = 4

Floats = npt.NDArray[np.float64]


class DeclaredEmbedder(ABC):
    """The common part of such embedders, with the methods of `Embedder`. Subclasses compute real vectors of texts
    (`_vectors`).

    :param dimension: components of the model's own vectors
    :param cut: number of components to use, if not all
    :raises SetupError: the model has fewer components than `cut`
    """

    table = None

    def __init__(
        self,
        name: str,
        *,
        artefacts: dict[str, str],
        dimension: int,
        cut: int | None = None,
        template: PromptTemplate | None = None,
        query_tokens: int = 64,
        document_tokens: int = 512,
        model: str | None = None,
    ) -> None:
        if cut is not None and cut > dimension:
            raise SetupError("the vectors have fewer components than are to be used", field="cut",
                             expected=f"1..{dimension}", actual=cut)  # fmt: skip
        if (cut or dimension) > MAX_DIMENSION:
            raise SetupError("the vectors have more components than an index may have", field="dimension",
                             expected=f"1..{MAX_DIMENSION}", actual=dimension,
                             hint="cut = .. uses the first ones of a model that was trained for it")  # fmt: skip
        self.name = name
        self.raw_dimension = dimension
        self.dimension = cut or dimension
        self._scale = published_scale(self.dimension)
        self.scale = Fraction(self._scale)
        self.score_window = score_range(self.scale)
        self.template = template or PromptTemplate()
        self.limits = TokenLimits(query_tokens, document_tokens)
        self._artefacts, self._model = artefacts, model

    @abstractmethod
    def _vectors(self, texts: Sequence[str]) -> Floats:
        """The model's vectors of texts, prompts included, shape (n, raw_dimension).

        :raises DocumentRefused: an endpoint refuses a text, which the error's field names: ``documents[2]``
        """

    def manifest(self) -> EmbedderManifest:
        result: EmbedderManifest = {
            "kind": self.name,
            "artefacts": self._artefacts,
            "dimension": self.dimension,
            "normal_form": NORMAL_FORM,
            "prompt": self.template.digest(),
            "quantiser": {"bits": 4, "scale": self._scale, "turn": TURN},
            "query_commitment": "text",
            "tokens": {"document": self.limits.document, "query": self.limits.query},
        }
        if self._model is not None:
            result["model"] = self._model
        if self.dimension != self.raw_dimension:
            result["cut_from"] = self.raw_dimension
        return result

    def tokenize(self, text: str) -> list[int]:
        """The text's visible form, cut at the query limit, by eight characters an integer."""
        return _packed(_form(text, field="query"))[: self.limits.query]

    def embed_tokens(self, tokens: Sequence[int]) -> Vectors:
        if not tokens:
            raise NothingToEmbed(
                "the text has no token to embed", field="query", expected="at least one token"
            )
        text = self.template.query + _unpacked(tokens)
        try:
            vector = self._vectors([text])[0]
        except DocumentRefused as exc:
            exc.field = "query"
            raise
        return self._quantised(vector, field="query")

    def embed_query(self, text: str) -> Vectors:
        return self.embed_tokens(self.tokenize(text))

    def embed_documents(self, texts: Sequence[str], *, first: int = 0) -> Vectors:
        forms = [_form(text, field=f"documents[{number}]") for number, text in enumerate(texts, first)]
        out = np.zeros((len(texts), self.dimension), np.int8)
        if forms:
            maximum = CHARACTERS * self.limits.document
            try:
                vectors = self._vectors([self.template.document + form[:maximum] for form in forms])
            except DocumentRefused as exc:
                exc.field = f"documents[{first + (document_number(exc) or 0)}]"
                raise
            for number, vector in enumerate(vectors):
                out[number] = self._quantised(vector, field=f"documents[{first + number}]")
        return out

    def cut_documents(self, texts: Sequence[str]) -> int:
        forms = (visible_text(text, field=f"documents[{number}]") for number, text in enumerate(texts))
        return sum(len(form) > CHARACTERS * self.limits.document for form in forms)

    def query_commitment(self, text: str, salt: int, tokens: Sequence[int] | None = None) -> int:
        return text_query_commitment(salt, check_text(text, field="query"))

    def _quantised(self, vector: npt.NDArray[np.floating[Any]], *, field: str) -> Vectors:
        try:
            return quantise_unit(vector, self.scale, self.dimension, turn=True)
        except NothingToEmbed as exc:
            exc.field = field
            raise


class ManifestEmbedder(DeclaredEmbedder):
    """Provides the form of the commitment to an account's question. It cannot embed texts.

    :param manifest: the manifest of an embedder that only declares its vectors
    :raises SetupError: the manifest names no dimension
    """

    def __init__(self, manifest: EmbedderManifest) -> None:
        tokens, dimension = manifest["tokens"], manifest.get("dimension")
        if dimension is None:
            raise SetupError(
                "the embedder's manifest names no dimension", field="embedder.embedder.dimension"
            )
        super().__init__(
            manifest["kind"], artefacts=dict(manifest["artefacts"]), dimension=dimension,
            query_tokens=tokens["query"], document_tokens=tokens["document"],
        )  # fmt: skip
        self._committed = manifest

    def manifest(self) -> EmbedderManifest:
        return self._committed

    def _vectors(self, texts: Sequence[str]) -> Floats:
        raise SetupError(f"texts are embedded by the {self.name} embedder", field="--model",
                         expected="its settings or files")  # fmt: skip


def _form(text: str, *, field: str) -> str:
    form = visible_text(text, field=field)
    if not form.strip():
        raise NothingToEmbed(
            "the text has no token to embed", field=field, expected="text with at least one word"
        )
    return form


def _packed(text: str) -> list[int]:
    """A text as integers of up to eight characters each, a leading 1 before them."""
    parts = (text[at : at + CHARACTERS] for at in range(0, len(text), CHARACTERS))
    return [int.from_bytes(b"\x01" + part.encode("utf-32-be")) for part in parts]


def _unpacked(tokens: Sequence[int]) -> str:
    try:
        parts = [token.to_bytes(1 + _WIDTH * CHARACTERS).lstrip(b"\0") for token in tokens]
        if any(not part.startswith(b"\x01") for part in parts):
            raise ValueError
        return "".join(part[1:].decode("utf-32-be") for part in parts)
    except (ValueError, OverflowError) as exc:
        raise EncodingError("a token is not a part of a text", field="query") from exc
