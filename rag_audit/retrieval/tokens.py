"""The part of a question beyond the policy's limit of tokens."""

from __future__ import annotations

from pathlib import Path

from rag_audit.models.manifest import check_manifest, re_executable
from rag_audit.models.publication import Publication
from rag_audit.retrieval.embedders import Embedder, get_embedder
from rag_audit.retrieval.embedders.declared import ManifestEmbedder

MAX_TOKENS = 1 << 20
"""A limit of tokens that no question within the limit of a request reaches."""


def tokens_beyond(window: Publication, text: str, embedder: Embedder, model: Path | None = None) -> int:
    """The number of a question's tokens beyond the policy's limit. Every question is truncated at that limit.

    Only the account learns this number. A public mark would reveal information about a question that the ledger hides.
    """
    part = check_manifest(window.embedder)["embedder"]
    if not re_executable(part["kind"]):
        part = part | {"tokens": part["tokens"] | {"query": MAX_TOKENS}}
        return len(ManifestEmbedder(part).tokenize(text)) - len(embedder.tokenize(text))
    whole = get_embedder(part["kind"], folder=model, query_tokens=MAX_TOKENS)
    return len(whole.tokenize(text)) - len(embedder.tokenize(text))
