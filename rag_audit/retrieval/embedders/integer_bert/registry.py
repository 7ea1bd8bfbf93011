"""The integer embedders by name."""

from __future__ import annotations

from pathlib import Path

from rag_audit._internal.errors import SetupError
from rag_audit.retrieval.embedders.integer_bert.embedder import IntegerBert, Rule
from rag_audit.retrieval.embedders.integer_bert.files import load_files, load_scales
from rag_audit.retrieval.embedders.integer_bert.installed import model_place
from rag_audit.retrieval.embedders.integer_bert.lexical import LexicalBert
from rag_audit.retrieval.embedders.integer_bert.published import (
    FILE_PINS,
    LEXICAL_MINILM,
    PUBLISHED_MODELS,
    SCALES,
)
from rag_audit.retrieval.embedders.settings import ENDPOINT, load_settings, with_published

GENERAL = "bert-int"
"""The name of an embedder that is any encoder of this graph in a folder."""


def integer_embedder(
    name: str, place: Path | None, *, query_tokens: int = 64, document_tokens: int | None = None
) -> IntegerBert:
    """The embedder of that name with the files of a folder.

    :param place: the folder, or settings that name it; None selects the installed files of all-MiniLM-L6-v2, which
        `bert-int` does not read
    :raises SetupError: the place is missing, or a file is missing, altered or of an unknown model
    """
    if name == GENERAL:
        settings, folder = load_settings(place, name=name, unknown={*ENDPOINT, "cut"})
        filled = with_published(settings, folder)
        assert filled.pooling is not None and filled.max_tokens is not None
        rule = Rule(
            filled.pooling, filled.max_tokens, filled.query_prompt or "", filled.document_prompt or ""
        )
        files = load_files(folder, load_scales(folder, SCALES))
        return IntegerBert(name, files, rule, query_tokens=query_tokens, document_tokens=document_tokens)
    unused = {*ENDPOINT, "cut", "pooling", "max_tokens", "query_prompt", "document_prompt"}
    _, folder = load_settings(model_place(place, name), name=name, unknown=unused)
    files = load_files(folder, SCALES, FILE_PINS)
    kind = LexicalBert if name == LEXICAL_MINILM else IntegerBert
    embedder = kind(name, files, Rule(), query_tokens=query_tokens, document_tokens=document_tokens)
    pinned = PUBLISHED_MODELS[name].artefacts
    for artefact, digest in embedder.manifest()["artefacts"].items():
        if digest != pinned[artefact]:  # the configuration has no pin: its sizes are part of the integers
            raise SetupError("the model is not the published one", field=f"{folder}: {artefact}",
                             expected=pinned[artefact], actual=digest)  # fmt: skip
    return embedder
