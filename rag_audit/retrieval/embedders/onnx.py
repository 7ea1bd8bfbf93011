"""Sentence encoders in ONNX Runtime from a local folder with `model.onnx` and `tokenizer.json`.

Each text runs through the model separately. Padded batches change the last bits of a float, and so its rounding, and a
vector that depends on its batch could not be re-executed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from rag_audit._internal.errors import EncodingError, SetupError
from rag_audit._internal.regular import open_regular
from rag_audit.models.manifest import EmbedderManifest, Quantiser
from rag_audit.relation.native import text_query_commitment
from rag_audit.retrieval.embedders.base import (
    NothingToEmbed,
    PromptTemplate,
    TokenLimits,
    Vectors,
    check_text,
    visible_text,
)
from rag_audit.retrieval.embedders.normal_form import NORMAL_FORM
from rag_audit.retrieval.embedders.quantise import TURN, published_scale, quantise_unit, score_range
from rag_audit.retrieval.embedders.settings import ENDPOINT, load_settings, with_published

if TYPE_CHECKING:
    from tokenizers import Tokenizer


_HINT = "pip install 'ragaudit-zk[onnx]'"


@dataclass(frozen=True)
class SentenceModel:
    """The parameters of a model that its files do not state.

    :param scale: a decimal string; None selects `published_scale` for vectors that are `turned`
    :param dimension: the publisher's dimension, for a policy that is written without the files
    :param cut: number of first components to use, if not all
    """

    name: str
    pooling: Literal["mean", "cls"]
    max_tokens: int
    scale: str | None = "0.15"
    dimension: int = 384
    query_prompt: str = ""
    document_prompt: str = ""
    cut: int | None = None


MODELS = {
    model.name: model
    for model in (
        SentenceModel("all-MiniLM-L6-v2", "mean", 256),
        SentenceModel(
            "bge-small-en-v1.5",
            "cls",
            512,
            query_prompt="Represent this sentence for searching relevant passages: ",
        ),
    )
}


GENERAL = "onnx"
"""The name of an embedder that is any token encoder in a folder."""


def model_of(place: Path | None) -> tuple[SentenceModel, Path]:
    """The parameters of any model in a folder, and the folder. `embedder.toml` takes precedence over the model's own
    files.

    :param place: the folder, or settings that name it
    :raises SetupError: the place does not exist, or a file of the model needs an unsupported feature
    """
    settings, folder = load_settings(place, name=GENERAL, unknown=ENDPOINT)
    filled = with_published(settings, folder)
    assert filled.pooling is not None and filled.max_tokens is not None
    result = SentenceModel(
        GENERAL,
        filled.pooling,
        filled.max_tokens,
        scale=None,
        query_prompt=filled.query_prompt or "",
        document_prompt=filled.document_prompt or "",
        cut=filled.cut,
    )
    return result, folder


class OnnxEmbedder:
    """A sentence encoder, with the methods of `Embedder`.

    :param folder: the folder of `tokenizer.json` and `model.onnx` (which may be in `onnx/`)
    :raises SetupError: a package or file is missing, or the model is not a token encoder
    """

    table = None

    def __init__(
        self,
        model: SentenceModel,
        folder: Path,
        *,
        query_tokens: int = 64,
        document_tokens: int | None = None,
    ) -> None:
        try:
            import onnxruntime
            from tokenizers import Tokenizer
        except ImportError as exc:
            raise SetupError(f"the {model.name} embedder needs the package {exc.name}", hint=_HINT) from exc
        self._model = model
        self.name = model.name
        self.template = PromptTemplate(query=model.query_prompt, document=model.document_prompt)
        self.limits = TokenLimits(query_tokens, min(document_tokens or model.max_tokens, model.max_tokens))
        nested = folder / "onnx" / "model.onnx"
        weights = _read(nested if nested.is_file() else folder / "model.onnx")
        tokenizer = _read(folder / "tokenizer.json")
        self._artefacts = {
            "tokenizer": hashlib.sha256(tokenizer).hexdigest(),
            "weights": hashlib.sha256(weights).hexdigest(),
        }
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1  # the order of a sum must not depend on the machine's cores
        try:
            self._plain = Tokenizer.from_str(tokenizer.decode())
            self._query, self._document = (Tokenizer.from_str(tokenizer.decode()) for _ in range(2))
            self._session = onnxruntime.InferenceSession(
                weights, sess_options=options, providers=["CPUExecutionProvider"]
            )
        except Exception as exc:  # both libraries raise bare Exception subclasses of their own
            raise SetupError("an embedder file cannot be loaded", field=str(folder), actual=str(exc)) from exc
        for each in (self._plain, self._query, self._document):
            each.no_padding()
        self._plain.no_truncation()
        self._query.enable_truncation(self.limits.query)
        self._document.enable_truncation(self.limits.document)
        shape = self._session.get_outputs()[0].shape
        if len(shape) != 3 or not isinstance(shape[2], int):
            raise SetupError(
                "the model is not a token encoder",
                field=str(folder),
                expected="a first output of shape (batch, tokens, dimension)",
                actual=shape,
            )
        self._raw_dimension: int = shape[2]
        if model.cut is not None and model.cut > self._raw_dimension:
            raise SetupError("the vectors have fewer components than are to be used", field="cut",
                             expected=f"1..{self._raw_dimension}", actual=model.cut)  # fmt: skip
        self.dimension: int = model.cut or self._raw_dimension
        self._turn = model.scale is None
        self._scale = model.scale or published_scale(self.dimension)
        self.scale = Fraction(self._scale)
        self.score_window = score_range(self.scale)

    def manifest(self) -> EmbedderManifest:
        quantiser: Quantiser = {"bits": 4, "scale": self._scale}
        if self._turn:
            quantiser["turn"] = TURN
        result: EmbedderManifest = {
            "kind": self.name,
            "artefacts": self._artefacts,
            "dimension": self.dimension,
            "normal_form": NORMAL_FORM,
            "pooling": self._model.pooling,
            "prompt": self.template.digest(),
            "quantiser": quantiser,
            "query_commitment": "text",
            "tokens": {"document": self.limits.document, "query": self.limits.query},
        }
        if self.dimension != self._raw_dimension:
            result["cut_from"] = self._raw_dimension
        return result

    def tokenize(self, text: str) -> list[int]:
        return self._tokens(self._query, self.template.query, text, field="query")

    def embed_tokens(self, tokens: Sequence[int]) -> Vectors:
        return self._embed(tokens, field="query")

    def embed_query(self, text: str) -> Vectors:
        return self.embed_tokens(self.tokenize(text))

    def embed_documents(self, texts: Sequence[str], *, first: int = 0) -> Vectors:
        out = np.zeros((len(texts), self.dimension), np.int8)
        for number, text in enumerate(texts):
            field = f"documents[{first + number}]"
            tokens = self._tokens(self._document, self.template.document, text, field=field)
            out[number] = self._embed(tokens, field=field)
        return out

    def cut_documents(self, texts: Sequence[str]) -> int:
        forms = (visible_text(text, field=f"documents[{number}]") for number, text in enumerate(texts))
        encodings = (self._document.encode(self.template.document + form) for form in forms)
        return sum(bool(encoding.overflowing) for encoding in encodings)

    def query_commitment(self, text: str, salt: int, tokens: Sequence[int] | None = None) -> int:
        return text_query_commitment(salt, check_text(text, field="query"))

    def _tokens(self, tokenizer: Tokenizer, prompt: str, text: str, *, field: str) -> list[int]:
        form = visible_text(text, field=field)
        if not self._plain.encode(form, add_special_tokens=False).ids:
            raise NothingToEmbed(
                "the text has no token to embed", field=field, expected="text with at least one word"
            )
        ids: list[int] = tokenizer.encode(prompt + form).ids
        return ids

    def _embed(self, tokens: Sequence[int], *, field: str) -> Vectors:
        if not tokens:
            raise NothingToEmbed("the text has no token to embed", field=field, expected="at least one token")
        if any(not 0 <= token < self._plain.get_vocab_size() for token in tokens):
            raise EncodingError("a token is outside the vocabulary", field=field)
        ids = np.array([tokens], np.int64)
        offered = {
            "input_ids": ids,
            "attention_mask": np.ones_like(ids),
            "token_type_ids": np.zeros_like(ids),
        }
        wanted = [argument.name for argument in self._session.get_inputs()]
        unknown = [name for name in wanted if name not in offered]
        if unknown:
            raise SetupError(
                "the model asks for inputs that are unknown here", expected=list(offered), actual=unknown
            )
        hidden = self._session.run(None, {name: offered[name] for name in wanted})[0][0]
        pooled = hidden[0] if self._model.pooling == "cls" else hidden.astype(np.float64).mean(axis=0)
        return quantise_unit(pooled, self.scale, self.dimension, turn=self._turn)


def _read(path: Path) -> bytes:
    try:
        with open_regular(path) as handle:
            return handle.read()
    except OSError as exc:
        raise SetupError.of_os_error(
            exc,
            "an embedder file cannot be read",
            field=path,
            hint="put the model's tokenizer.json and model.onnx into one folder and name it",
        ) from exc
