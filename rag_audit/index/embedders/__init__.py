"""Embedders from text to int4 vectors. `get_embedder` imports a kind's libraries only when it is asked for."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import cast

from rag_audit.encoding.canonical import Json, digest_hex
from rag_audit.errors import SetupError
from rag_audit.formats.manifest import EmbedderManifest
from rag_audit.index.embedders.base import Embedder, NothingToEmbed, PromptTemplate, TokenLimits, Vectors

__all__ = [
    "DEFAULT_EMBEDDER",
    "Embedder",
    "NothingToEmbed",
    "PromptTemplate",
    "PublishedConstants",
    "TokenLimits",
    "Vectors",
    "get_embedder",
    "manifest_digest",
    "public_artefacts",
    "public_manifest",
    "published_constants",
]

DEFAULT_EMBEDDER = "wordllama-256"
EMBEDDERS = (DEFAULT_EMBEDDER, "all-MiniLM-L6-v2", "bge-small-en-v1.5")


@dataclass(frozen=True)
class PublishedConstants:
    """What a policy takes from an embedder, which no file of it is needed for.

    :param dimension: components of its vectors
    :param scale: of its quantiser, from which the default score window follows
    :param norm_factor: factor of the integer normalisation; None where it has none, and A1 cannot be proved
    """

    dimension: int
    scale: Fraction
    norm_factor: int | None


def published_constants(name: str) -> PublishedConstants:
    """The constants of one of `EMBEDDERS`.

    :raises SetupError: the embedder is unknown
    """
    from rag_audit.index.embedders.onnx import MODELS
    from rag_audit.index.embedders.wordllama import DIMENSION, NAME, NORM_FACTOR, SCALE

    if name == NAME:
        return PublishedConstants(DIMENSION, SCALE, NORM_FACTOR)
    if name not in MODELS:
        raise SetupError("unknown embedder", field="embedder", expected=list(EMBEDDERS), found=name)
    return PublishedConstants(MODELS[name].dimension, Fraction(MODELS[name].scale), None)


def public_artefacts(name: str) -> dict[str, str]:
    """SHA-256 of an embedder's public artefacts, for a verifier to pin; no extra needs to be installed.

    :raises SetupError: the embedder is unknown here; for an ONNX model its publisher has to give the digests
    """
    from rag_audit.index.embedders.wordllama import ARTEFACTS, NAME

    if name != NAME:
        raise SetupError(
            "no artefacts of this embedder are known", field="embedder", expected=NAME, found=name
        )
    return dict(ARTEFACTS)


def public_manifest(name: str) -> dict[str, Json]:
    """An embedder's manifest without its token limits, which the policy sets; no extra needs to be installed.

    :raises SetupError: as `public_artefacts`
    """
    from rag_audit.index.embedders.wordllama import NAME, manifest

    if name != NAME:
        raise SetupError("no manifest of this embedder is known", field="embedder", expected=NAME, found=name)
    return _without_limits(manifest(1, 1))


def manifest_digest(manifest: EmbedderManifest | dict[str, Json]) -> str:
    """The digest by which a verifier pins an embedder: SHA-256 of its manifest without the token limits, 64 hex digits.

    :param manifest: the manifest, with or without the token limits
    """
    return digest_hex(_without_limits(manifest))


def _without_limits(manifest: EmbedderManifest | dict[str, Json]) -> dict[str, Json]:
    return {key: value for key, value in cast("dict[str, Json]", manifest).items() if key != "tokens"}


def get_embedder(
    name: str = DEFAULT_EMBEDDER,
    *,
    folder: Path | str | None = None,
    query_tokens: int | None = None,
    document_tokens: int | None = None,
) -> Embedder:
    """The embedder of that name.

    :param folder: the local folder of an ONNX model (`tokenizer.json`, `model.onnx`)
    :param query_tokens: the limit of tokens of a query, if not the embedder's default
    :param document_tokens: the limit of tokens of a document, if not the embedder's default
    :raises SetupError: the name is unknown, an extra is not installed, or a file is missing or altered
    """
    from rag_audit.index.embedders.onnx import MODELS, OnnxEmbedder
    from rag_audit.index.embedders.wordllama import NAME, WordLlama

    limits: dict[str, int] = {
        key: value
        for key, value in (("query_tokens", query_tokens), ("document_tokens", document_tokens))
        if value is not None
    }
    if name == NAME:
        return WordLlama(**limits)
    if name not in MODELS:
        raise SetupError("unknown embedder", field="embedder", expected=[NAME, *MODELS], found=name)
    if folder is None:
        raise SetupError(f"the {name} embedder needs its files", field="--model", expected="a local folder")
    return OnnxEmbedder(MODELS[name], Path(folder), **limits)
