"""The embedders that compute a BERT encoder in integer arithmetic (docs/minilm-int.md).

`minilm-int` is all-MiniLM-L6-v2 with pinned files, and `bert-int` any encoder of that graph. Machines agree on every
component, so `re-executed` has no exception for rounding.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass
from fractions import Fraction
from typing import Literal, Protocol

import numpy as np

from rag_audit import _native
from rag_audit._internal.errors import EncodingError, SetupError
from rag_audit.models.manifest import ENCODER_ARTEFACT, EmbedderManifest, ProvedEncoder
from rag_audit.relation.native import query_commitment, text_query_commitment
from rag_audit.relation.scores import MAX_DIMENSION
from rag_audit.retrieval.embedders.base import (
    NothingToEmbed,
    PromptTemplate,
    TokenLimits,
    Vectors,
    check_text,
    visible_text,
)
from rag_audit.retrieval.embedders.integer_bert.files import Files
from rag_audit.retrieval.embedders.integer_bert.proved import computed_digest, pins_digest, proved_encoder
from rag_audit.retrieval.embedders.integer_bert.published import (
    PLACES,
    PUBLISHED_MODELS,
    Description,
)
from rag_audit.retrieval.embedders.integer_bert.semantics import (
    MAX_PLACES,
    IntegerModel,
    OutOfRange,
    exp_table,
    gelu_table,
)
from rag_audit.retrieval.embedders.static import Numbers, normalise

_BATCH = 64
"""Texts that are given to the native core in one call."""


@dataclass(frozen=True)
class Rule:
    """How a model's files are used.

    :param pooling: `mean` of all tokens' rows or the first token's row, `cls`
    :param max_tokens: the model's maximum number of tokens
    """

    pooling: Literal["mean", "cls"] = "mean"
    max_tokens: int = PLACES
    query_prompt: str = ""
    document_prompt: str = ""


class Encoder(Protocol):
    """Computes the sums of texts, as the native core's encoder does."""

    def embed(
        self, texts: Sequence[Sequence[int]], first: bool
    ) -> list[tuple[bytes | None, tuple[int, str, int] | None]]:
        """See `_native.IntegerEncoder.embed`."""
        ...


def native_encoder(model: IntegerModel) -> _native.IntegerEncoder:
    """The native core's encoder of a model.

    :raises SetupError: the model is outside the core's bounds
    """
    scales = model.scales
    try:
        return _native.IntegerEncoder(
            astuple(model.shape), astuple(scales), model.weights, exp_table(), gelu_table(scales.z, scales.g)
        )
    except ValueError as exc:
        raise SetupError("the model is outside the integer encoder's bounds", actual=str(exc)) from exc


class IntegerBert:
    """An encoder, with the methods of `Embedder`.

    :param name: the embedder's name in the registry
    :param files: the model
    :raises SetupError: the model is outside the native core's bounds
    """

    provable = True
    """whether there are proofs of the vectors of models with pooling `mean`"""

    def __init__(
        self,
        name: str,
        files: Files,
        rule: Rule,
        *,
        query_tokens: int = 64,
        document_tokens: int | None = None,
    ) -> None:
        self.name = name
        self._files, self._rule = files, rule
        shape = files.model.shape
        model = files.model
        artefacts = {
            "integers": model.digest(),
            "scales": model.scales.digest(),
            "tables": model.tables_digest(),
            "tokenizer": files.tokenizer_digest,
            "weights": files.weights,
        }
        # The package has the digest of a published model's pins. Those of other models are computed once.
        known = PUBLISHED_MODELS[name].artefacts.get(ENCODER_ARTEFACT) if name in PUBLISHED_MODELS else None
        if self.provable and rule.pooling == "mean" and (digest := known or pins_digest(files)) is not None:
            artefacts[ENCODER_ARTEFACT] = digest
        self.template = PromptTemplate(query=rule.query_prompt, document=rule.document_prompt)
        self._description = self._describe(name, artefacts)
        self.dimension = self._description.dimension
        if self.dimension > MAX_DIMENSION:
            raise SetupError("the vectors have more components than an index may have", field="dimension",
                             expected=f"1..{MAX_DIMENSION}", actual=self.dimension)  # fmt: skip
        self._pinned = artefacts.get(ENCODER_ARTEFACT)
        places = min(shape.places, MAX_PLACES)
        maximum = min(rule.max_tokens, places)
        self.limits = TokenLimits(min(query_tokens, places), min(document_tokens or maximum, maximum))
        self.scale = Fraction(self._description.scale)
        self.score_window = self._description.score_window
        self.encoder: Encoder = native_encoder(model)
        """replaced by measurements that keep sums between runs"""

    def check_pins(self) -> None:
        """Compute the pins from the model's files, as a verifier does before it pins their digest.

        :raises SetupError: the user's cache has other pins for these files
        """
        if self._pinned is not None and (actual := computed_digest(self._files)) != self._pinned:
            raise SetupError("the stored pins of the encoder are not those of its files", field="the user's cache",
                             expected=actual, actual=self._pinned,
                             hint="remove the folder `encoders` of the cache, and repeat the command")  # fmt: skip

    @property
    def table(self) -> ProvedEncoder | None:
        return None if self._description.encoder is None else proved_encoder(self._files)

    def _describe(self, name: str, artefacts: dict[str, str]) -> Description:
        return Description(name, artefacts, self._files.model.shape.width, self._rule.pooling, self.template)

    def manifest(self) -> EmbedderManifest:
        return self._description.manifest_of(self.limits.query, self.limits.document)

    def tokenize(self, text: str) -> list[int]:
        return self._tokens(text, self.template.query, self.limits.query, field="query")

    def embed_tokens(self, tokens: Sequence[int]) -> Vectors:
        if not tokens:
            raise NothingToEmbed(
                "the text has no token to embed", field="query", expected="at least one token"
            )
        vocabulary, places = self._files.model.shape.vocabulary, self._files.model.shape.places
        if not 0 <= min(tokens) <= max(tokens) < vocabulary:
            raise EncodingError(
                "a token is outside the vocabulary", field="query", expected=f"0..{vocabulary - 1}"
            )
        if len(tokens) > min(places, MAX_PLACES):
            raise EncodingError("a query has more tokens than the model has places", field="query",
                                expected=min(places, MAX_PLACES), actual=len(tokens))  # fmt: skip
        (vector,) = self._vectors([list(tokens)], ["query"], query=True)
        return vector

    def embed_query(self, text: str) -> Vectors:
        return self.embed_tokens(self.tokenize(text))

    def embed_documents(self, texts: Sequence[str], *, first: int = 0) -> Vectors:
        out = np.zeros((len(texts), self.dimension), np.int8)
        for start in range(0, len(texts), _BATCH):
            part = texts[start : start + _BATCH]
            fields = [f"documents[{first + start + i}]" for i in range(len(part))]
            tokens = [
                self._tokens(text, self.template.document, self.limits.document, field=field)
                for text, field in zip(part, fields, strict=True)
            ]
            out[start : start + len(part)] = self._vectors(tokens, fields, query=False)
        return out

    def cut_documents(self, texts: Sequence[str]) -> int:
        forms = [visible_text(text, field=f"documents[{number}]") for number, text in enumerate(texts)]
        return sum(
            len(self._files.tokenizer.encode(self.template.document + form).ids) > self.limits.document
            for form in forms
        )

    def query_commitment(self, text: str, salt: int, tokens: Sequence[int] | None = None) -> int:
        if self._description.encoder is not None:
            return query_commitment(salt, self.tokenize(text) if tokens is None else tokens)
        return text_query_commitment(salt, check_text(text, field="query"))

    def _tokens(self, text: str, prompt: str, limit: int, *, field: str) -> list[int]:
        """The tokens of a text with its prompt; of a longer text the first ones, and the last one, which ends it."""
        form = visible_text(text, field=field)
        tokenizer = self._files.tokenizer
        if not tokenizer.encode(form, add_special_tokens=False).ids:
            raise NothingToEmbed(
                "the text has no token to embed", field=field, expected="text with at least one word"
            )
        ids: list[int] = tokenizer.encode(prompt + form).ids
        return ids if len(ids) <= limit else [*ids[: limit - 1], ids[-1]]

    def _vectors(self, tokens: Sequence[list[int]], fields: Sequence[str], *, query: bool) -> list[Vectors]:
        """The int4 vectors of texts that have tokens within the vocabulary.

        :raises OutOfRange: a text leaves a range; the error names the first such text
        """
        out = []
        results = self.encoder.embed(tokens, self._rule.pooling == "cls")
        for text, (sums, outside), field in zip(tokens, results, fields, strict=True):
            if outside is not None:
                error = OutOfRange(*outside)
                error.field = field
                raise error
            assert sums is not None
            semantic = np.frombuffer(sums, "<i4").astype(np.int64)
            combined = self.combined(semantic, text, query=query)
            out.append(normalise(combined, self._description.norm_factor, field=field))
        return out

    def combined(self, semantic: Numbers, tokens: Sequence[int], *, query: bool) -> Numbers:
        """The integers that are normalised, shape (dimension,)."""
        return semantic
