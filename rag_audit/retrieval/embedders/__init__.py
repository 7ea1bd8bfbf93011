"""Embedders from text to int4 vectors. `get_embedder` imports a kind's libraries only when it is asked for."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from rag_audit._internal.canonical import Json
from rag_audit._internal.errors import SetupError
from rag_audit.models.constants import NORM_FACTOR
from rag_audit.models.manifest import DECLARED, without_limits
from rag_audit.retrieval.embedders.base import Embedder, NothingToEmbed, PromptTemplate, TokenLimits, Vectors

__all__ = [
    "DEFAULT_EMBEDDER",
    "Embedder",
    "NothingToEmbed",
    "PromptTemplate",
    "PublishedConstants",
    "TokenLimits",
    "Vectors",
    "get_embedder",
    "public_artefacts",
    "public_manifest",
    "published_constants",
]

DEFAULT_EMBEDDER = "wordllama-256"
OF_A_PLACE = ("onnx", *DECLARED)
"""Embedders without fixed files: a folder or an address defines the model."""
EMBEDDERS = (DEFAULT_EMBEDDER, "all-MiniLM-L6-v2", "bge-small-en-v1.5", *OF_A_PLACE)


@dataclass(frozen=True)
class PublishedConstants:
    """The values that a policy takes from an embedder. They need no file of the embedder.

    :param dimension: components of its vectors
    :param scale: the quantiser's scale, which determines the default score window
    :param norm_factor: factor of the integer normalisation; None if the embedder has none, and A1 cannot be proved
    """

    dimension: int
    scale: Fraction
    norm_factor: int | None


def published_constants(name: str, model: Path | None = None) -> PublishedConstants:
    """The constants of one of `EMBEDDERS`.

    :param model: the place of an embedder that a folder or address defines
    :raises SetupError: the embedder is unknown, or its place is missing
    """
    if name in OF_A_PLACE:
        result = get_embedder(name, folder=model)
        return PublishedConstants(result.dimension, result.scale, None)
    from rag_audit.retrieval.embedders.onnx import MODELS
    from rag_audit.retrieval.embedders.quantise import published_scale
    from rag_audit.retrieval.embedders.wordllama import DIMENSION, NAME, SCALE

    if name == NAME:
        return PublishedConstants(DIMENSION, SCALE, NORM_FACTOR)
    if name not in MODELS:
        raise SetupError("unknown embedder", field="embedder", expected=list(EMBEDDERS), actual=name)
    known = MODELS[name]
    return PublishedConstants(
        known.dimension, Fraction(known.scale or published_scale(known.dimension)), None
    )


def public_artefacts(name: str) -> dict[str, str]:
    """SHA-256 of an embedder's public artefacts, for a verifier to pin; no extra needs to be installed.

    :raises SetupError: the embedder is unknown to this release; the publisher of an ONNX model has to give the digests
    """
    from rag_audit.retrieval.embedders.wordllama import ARTEFACTS, NAME

    if name != NAME:
        raise SetupError(
            "no artefacts of this embedder are known", field="embedder", expected=NAME, actual=name
        )
    return dict(ARTEFACTS)


def public_manifest(name: str) -> dict[str, Json]:
    """An embedder's manifest without its token limits, which the policy sets; no extra needs to be installed.

    :raises SetupError: as `public_artefacts`
    """
    from rag_audit.retrieval.embedders.wordllama import NAME, manifest

    if name != NAME:
        raise SetupError(
            "no manifest of this embedder is known", field="embedder", expected=NAME, actual=name
        )
    return without_limits(manifest(1, 1))


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
    from rag_audit.retrieval.embedders.wordllama import NAME, WordLlama

    limits: dict[str, Any] = {
        key: value
        for key, value in (("query_tokens", query_tokens), ("document_tokens", document_tokens))
        if value is not None
    }
    if name == NAME:
        return WordLlama(**limits)
    from rag_audit.retrieval.embedders.onnx import GENERAL, MODELS, OnnxEmbedder, model_of

    place = None if folder is None else Path(folder)
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
