"""Embedders from text to int4 vectors. `get_embedder` imports a kind's libraries only when it is asked for."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rag_audit._internal.canonical import Json
from rag_audit._internal.errors import SetupError
from rag_audit.models.manifest import (
    DECLARED,
    ENCODER_ARTEFACT,
    EmbedderManifest,
    EncoderConstants,
    ProvableConstants,
    without_limits,
)
from rag_audit.retrieval.embedders.base import Embedder, NothingToEmbed, PromptTemplate, TokenLimits, Vectors

if TYPE_CHECKING:
    from rag_audit.retrieval.embedders.static import StaticEmbedder

__all__ = [
    "DEFAULT_EMBEDDER",
    "Embedder",
    "NothingToEmbed",
    "PromptTemplate",
    "PublishedConstants",
    "TokenLimits",
    "Vectors",
    "check_pins",
    "get_embedder",
    "owner_of_score_window",
    "public_artefacts",
    "public_manifest",
    "published_constants",
]

DEFAULT_EMBEDDER = "wordllama-lexical-768"
OF_A_PLACE = ("bert-int", "onnx", *DECLARED)
"""Embedders without fixed files: a folder or an address defines the model."""
STATIC = (DEFAULT_EMBEDDER, "hashed-words-64")
"""Tables of integer rows, which this release publishes."""
INTEGER = ("minilm-int", "minilm-int-lexical-768", "bert-int")
"""Encoders in integer arithmetic."""
EMBEDDERS = (
    *STATIC,
    "minilm-int",
    "minilm-int-lexical-768",
    "all-MiniLM-L6-v2",
    "bge-small-en-v1.5",
    *OF_A_PLACE,
)
FIXED = tuple(name for name in EMBEDDERS if name not in OF_A_PLACE)
"""Embedders with fixed files, which determine their published constants."""
FORMER_SCORE_WINDOWS = {(101, 810): "the default embedder of an earlier version"}
"""Score windows of embedders that this release does not have."""
DOCUMENT_TOKENS = 512
"""The maximum tokens of a document in a policy, if the embedder reads as many."""


@dataclass(frozen=True)
class PublishedConstants:
    """The values that a policy takes from an embedder. They need no file of the embedder.

    :param dimension: components of its vectors
    :param score_window: lo and hi of the default score window
    :param table: the constants of its table or encoder; None if it has neither, and A1 cannot be proved
    :param relevance: minimum raw score of a relevant passage, which `rag-audit lab relevance` measured on public texts;
        None if it was not measured
    :param max_tokens: the maximum tokens of a document that the model reads; None without a maximum
    """

    dimension: int
    score_window: tuple[int, int]
    table: ProvableConstants | None
    relevance: int | None = None
    max_tokens: int | None = None

    @property
    def document_tokens(self) -> int:
        """The maximum tokens of a document in a policy that names no other limit."""
        return min(DOCUMENT_TOKENS, self.max_tokens or DOCUMENT_TOKENS)


def _static(name: str) -> type[StaticEmbedder] | None:
    """The class of a static embedder, or None for another kind. Only the named embedder's module is loaded."""
    if name == DEFAULT_EMBEDDER:
        from rag_audit.retrieval.embedders.wordllama import WordLlama

        return WordLlama
    if name == "hashed-words-64":
        from rag_audit.retrieval.embedders.hashed_words import HashedWords

        return HashedWords
    return None


def published_constants(name: str, model: Path | None = None) -> PublishedConstants:
    """The constants of one of `EMBEDDERS`.

    :param model: the place of an embedder that a folder or address defines
    :raises SetupError: the embedder is unknown, or its place is missing
    """
    if name in OF_A_PLACE:
        result = get_embedder(name, folder=model)
        manifest = result.manifest()
        provable = "quantiser" in manifest and ENCODER_ARTEFACT in manifest["artefacts"]
        encoder = EncoderConstants(manifest["quantiser"]["norm_factor"]) if provable else None
        return PublishedConstants(
            result.dimension, result.score_window, encoder, max_tokens=result.limits.document
        )
    if name in INTEGER:
        from rag_audit.retrieval.embedders.integer_bert.published import PLACES, PUBLISHED_MODELS

        integer = PUBLISHED_MODELS[name]
        return PublishedConstants(
            integer.dimension, integer.score_window, integer.encoder, integer.relevance, PLACES
        )
    static = _static(name)
    if static is not None:
        table = static.table
        return PublishedConstants(table.dimension, static.score_window, table.constants, static.relevance)
    from rag_audit.retrieval.embedders.onnx import MODELS
    from rag_audit.retrieval.embedders.quantise import published_scale, score_range

    if name not in MODELS:
        raise SetupError("unknown embedder", field="embedder", expected=list(EMBEDDERS), actual=name)
    known = MODELS[name]
    scale = Fraction(known.scale or published_scale(known.dimension))
    return PublishedConstants(known.dimension, score_range(scale), None, max_tokens=known.max_tokens)


def relevance_of(embedder: Embedder) -> int | None:
    """The embedder's minimum raw score of a relevant passage; None if it was not measured."""
    return published_constants(embedder.name).relevance if embedder.name in FIXED else None


def check_pins(embedder: Embedder) -> None:
    """Compute the pins of an integer encoder from its files; other embedders have none.

    :raises SetupError: as `IntegerBert.check_pins`
    """
    check = getattr(embedder, "check_pins", None)
    if check is not None:
        check()


def owner_of_score_window(lo: int, hi: int) -> str | None:
    """The first of this release's own embedders with that default score window, or a former embedder; None if no
    embedder has it.
    """
    current = next((name for name in FIXED if published_constants(name).score_window == (lo, hi)), None)
    return current or FORMER_SCORE_WINDOWS.get((lo, hi))


def public_artefacts(name: str) -> dict[str, str]:
    """SHA-256 of an embedder's public artefacts, for a verifier to pin; no extra needs to be installed.

    :raises SetupError: the embedder is unknown to this release; the publisher of an ONNX model has to give the digests
    """
    return dict(public_manifest_of(name)["artefacts"])


def public_manifest(name: str) -> dict[str, Json]:
    """An embedder's manifest without its token limits, which the policy sets; no extra needs to be installed.

    :raises SetupError: as `public_artefacts`
    """
    return without_limits(public_manifest_of(name))


def public_manifest_of(name: str) -> EmbedderManifest:
    """An embedder's manifest with token limits of 1.

    :raises SetupError: as `public_artefacts`
    """
    if name in INTEGER and name not in OF_A_PLACE:
        from rag_audit.retrieval.embedders.integer_bert.published import PUBLISHED_MODELS

        return PUBLISHED_MODELS[name].manifest_of(1, 1)
    return _known(name).manifest_of(1, 1)


def _known(name: str) -> type[StaticEmbedder]:
    """The class of a static embedder.

    :raises SetupError: no artefacts of the embedder are known
    """
    static = _static(name)
    if static is None:
        raise SetupError(
            "no artefacts of this embedder are known",
            field="embedder",
            expected=DEFAULT_EMBEDDER,
            actual=name,
        )
    return static


def get_embedder(
    name: str = DEFAULT_EMBEDDER,
    *,
    folder: Path | str | None = None,
    query_tokens: int | None = None,
    document_tokens: int | None = None,
) -> Embedder:
    """The embedder of that name.

    :param folder: the local folder of a model (of ONNX: `tokenizer.json`, `model.onnx`), or an `embedder.toml`
    :param query_tokens: the limit of tokens of a query, if not the embedder's default
    :param document_tokens: the limit of tokens of a document, if not the embedder's default
    :raises SetupError: the name is unknown, an extra is not installed, or a file is missing or altered
    """
    limits: dict[str, Any] = {
        key: value
        for key, value in (("query_tokens", query_tokens), ("document_tokens", document_tokens))
        if value is not None
    }
    static = _static(name)
    if static is not None:
        return static(**limits)
    place = None if folder is None else Path(folder)
    if name in INTEGER:
        from rag_audit.retrieval.embedders.integer_bert.registry import integer_embedder

        return integer_embedder(name, place, **limits)
    from rag_audit.retrieval.embedders.onnx import GENERAL, MODELS, OnnxEmbedder, model_of

    if name == GENERAL:
        model, files = model_of(place)
        return OnnxEmbedder(model, files, **limits)
    if name == "sentence-transformers":
        from rag_audit.retrieval.embedders.sentences import SentenceEmbedder

        return SentenceEmbedder(place, **limits)
    if name == "openai":
        from rag_audit.retrieval.embedders.endpoint import EndpointEmbedder

        return EndpointEmbedder(place, **limits)
    if name not in MODELS:
        raise SetupError("unknown embedder", field="embedder", expected=list(EMBEDDERS), actual=name)
    if place is None:
        raise SetupError(f"the {name} embedder needs its files", field="--model", expected="a local folder")
    return OnnxEmbedder(MODELS[name], place, **limits)
