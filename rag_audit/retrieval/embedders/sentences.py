"""The embedder `sentence-transformers`: a local folder that the package of this name loads, by torch.

Sums in torch depend on the machine, on its threads and on a text's neighbours in a batch, so other parties cannot
re-execute this embedder. They can re-execute the same model in ONNX (`--embedder onnx`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rag_audit._internal.canonical import digest_hex
from rag_audit._internal.errors import SetupError
from rag_audit._internal.regular import open_regular
from rag_audit.retrieval.embedders.base import PromptTemplate
from rag_audit.retrieval.embedders.declared import DeclaredEmbedder, Floats
from rag_audit.retrieval.embedders.settings import ENDPOINT, load_settings, with_published

NAME = "sentence-transformers"
MODULES = "modules.json"
_BATCH = 32


class SentenceEmbedder(DeclaredEmbedder):
    """A model of sentence-transformers, with the methods of `Embedder`. No code of the model's folder is run.

    :param place: the model's folder, or settings that name it
    :raises SetupError: the package or the folder is missing, or the model cannot be loaded
    """

    def __init__(self, place: Path | None, *, query_tokens: int = 64, document_tokens: int = 512) -> None:
        settings, folder = load_settings(place, name=NAME, unknown=ENDPOINT | {"pooling"})
        if not (folder / MODULES).is_file():
            raise SetupError("the folder holds no model of sentence-transformers", field=str(folder),
                             expected=MODULES)  # fmt: skip
        try:
            from sentence_transformers import SentenceTransformer
        except ImportError as exc:
            raise SetupError(f"the {NAME} embedder needs the package {exc.name}",
                             hint="pip install 'ragaudit-zk[sentence-transformers]'") from exc  # fmt: skip
        try:
            loaded = SentenceTransformer(
                str(folder), device="cpu", local_files_only=True, trust_remote_code=False
            )
            dimension = loaded.get_sentence_embedding_dimension()
        except Exception as exc:  # torch, safetensors and the tokenizers raise classes of their own
            raise SetupError("the model cannot be loaded", field=str(folder), actual=str(exc)) from exc
        if not isinstance(dimension, int) or dimension < 1:
            raise SetupError("the model does not say its dimension", field=str(folder), actual=dimension)
        loaded.default_prompt_name = None  # prompts are put before texts here
        if settings.max_tokens is not None:
            loaded.max_seq_length = settings.max_tokens
        filled = with_published(settings.model_copy(update={"pooling": "mean"}), folder)
        super().__init__(
            NAME,
            artefacts={"files": _files_digest(folder)},
            dimension=dimension,
            cut=settings.cut,
            template=PromptTemplate(filled.query_prompt or "", filled.document_prompt or ""),
            query_tokens=query_tokens,
            document_tokens=document_tokens,
        )
        self._loaded: Any = loaded
        self._folder = folder

    def _vectors(self, texts: Sequence[str]) -> Floats:
        result = np.asarray(
            self._loaded.encode(
                list(texts), batch_size=_BATCH, convert_to_numpy=True, show_progress_bar=False
            ),
            np.float64,
        )
        if result.shape != (len(texts), self.raw_dimension):
            raise SetupError("the model gives vectors of another shape", field=str(self._folder),
                             expected=(len(texts), self.raw_dimension), actual=result.shape)  # fmt: skip
        return result


def _files_digest(folder: Path) -> str:
    """SHA-256 over the names and digests of all files in a model's folder; hidden ones are a copy's own matter."""
    result = {}
    for path in sorted(folder.rglob("*")):
        inside = path.relative_to(folder)
        if path.is_file() and not any(part.startswith(".") for part in inside.parts):
            with open_regular(path.resolve()) as handle:
                result[inside.as_posix()] = hashlib.file_digest(handle, "sha256").hexdigest()
    return digest_hex(dict(result))
