"""A language model in this process, and llama.cpp as its implementation."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from rag_audit._internal.extras import needing
from rag_audit.lab.attacks.interface import AttackError, Floats
from rag_audit.lab.attacks.language.file import ModelFile

Scores: TypeAlias = npt.NDArray[np.float32]
MAX_CONTEXT = 8192
"""The most tokens that a run reserves memory for, also if the model allows more."""
BATCH = 512
"""Tokens of one forward pass."""


class LanguageModel(Protocol):
    """A model as a function from tokens to scores of the next token."""

    @property
    def label(self) -> str:
        """Its name in a report, with the digest of its file."""

    @property
    def template(self) -> str:
        """Its chat template."""

    @property
    def context(self) -> int:
        """The most tokens of a prompt and its answer together."""

    @property
    def marks(self) -> tuple[str, str]:
        """The texts of the tokens that begin and end a text."""

    def tokens(self, text: str, *, special: bool = False) -> list[int]:
        """The tokens of a text.

        :param special: whether control tokens that are written in the text become such tokens
        """

    def piece(self, token: int) -> bytes:
        """A token's part of a text, in UTF-8; empty for control tokens."""

    def ends(self, token: int) -> bool:
        """Whether an answer ends with this token."""

    def scores(self, tokens: Sequence[int], last: int) -> Scores:
        """Unnormalised log-probabilities of the next token after each of the last tokens, shape (last, vocabulary)."""


def log_probabilities(scores: Scores) -> Floats:
    """Scores of the next token as ln p, same shape (.., vocabulary)."""
    shifted = scores.astype(np.float64) - scores.max(axis=-1, keepdims=True)
    result: Floats = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    return result


def within(model: LanguageModel, count: int, what: str) -> None:
    """Check that tokens fit into the model's context.

    :raises AttackError: they do not
    """
    if count > model.context:
        raise AttackError(f"{what} is longer than the model's context", field="--generator",
                          expected=f"at most {model.context} tokens", actual=f"{count} tokens",
                          hint="lower --top-k, or attack shorter documents; finished answers are stored")  # fmt: skip


class LlamaModel:
    """A GGUF model that llama.cpp runs on the processor.

    Two calls with a common beginning compute it once, so ten questions about the same passages read them once.

    :param threads: processor threads; one for each idle processor if None, since the threads wait for each other in a
        loop, and on a busy machine two threads took five times as long as one
    :raises SetupError: llama-cpp-python is not installed
    :raises AttackError: llama.cpp does not load the file
    """

    def __init__(self, file: ModelFile, threads: int | None = None) -> None:
        with needing("llama_cpp"):
            import llama_cpp
        self._library: Any = llama_cpp
        self.file = file
        self.label, self.template = file.label, file.template
        self.context = min(file.context, MAX_CONTEXT)
        count = threads or max(1, round(len(os.sched_getaffinity(0)) - os.getloadavg()[0]))
        try:
            self._llama: Any = llama_cpp.Llama(str(file.path), n_ctx=self.context, n_batch=BATCH, n_threads=count,
                                               n_threads_batch=count, verbose=False)  # fmt: skip
        except (ValueError, RuntimeError, OSError) as exc:
            raise AttackError("llama.cpp does not load the model", field=str(file.path), actual=str(exc)[:120],
                              hint="obtain the file again, or choose another model")  from exc  # fmt: skip
        self._vocabulary = int(self._llama.n_vocab())
        self.marks = (self._mark(self._llama.token_bos()), self._mark(self._llama.token_eos()))
        self._past: list[int] = []

    def _mark(self, token: int) -> str:
        """A control token as a text; empty if the vocabulary has none."""
        return (
            str(self._llama.detokenize([token], special=True).decode("utf-8", "replace"))
            if token >= 0
            else ""
        )

    def tokens(self, text: str, *, special: bool = False) -> list[int]:
        """The tokens of a text, without a token for its beginning."""
        return list(self._llama.tokenize(text.encode(), add_bos=False, special=special))

    def piece(self, token: int) -> bytes:
        """A token's bytes, with the space that it may begin with."""
        buffer = ctypes.create_string_buffer(64)
        vocabulary = self._library.llama_model_get_vocab(self._llama.model)
        count = self._library.llama_token_to_piece(vocabulary, token, buffer, 64, 0, False)
        return bytes(buffer.raw[: max(0, count)])

    def ends(self, token: int) -> bool:
        """Whether the model's vocabulary marks the token as the end of an answer."""
        vocabulary = self._library.llama_model_get_vocab(self._llama.model)
        return bool(self._library.llama_vocab_is_eog(vocabulary, token))

    def scores(self, tokens: Sequence[int], last: int) -> Scores:
        """Scores after each of the last tokens; tokens that the last call had at the same places are not read again."""
        known = 0
        for mine, other in zip(self._past, tokens[: len(tokens) - last], strict=False):
            if mine != other:
                break
            known += 1
        lib, context = self._library, self._llama.ctx
        if not lib.llama_memory_seq_rm(lib.llama_get_memory(context), 0, known, -1):
            lib.llama_memory_clear(lib.llama_get_memory(context), True)
            known = 0
        self._past = []
        result = np.empty((last, self._vocabulary), np.float32)
        wanted, row = len(tokens) - last, 0
        batch = lib.llama_batch_init(BATCH, 0, 1)
        try:
            for start in range(known, len(tokens), BATCH):
                part = tokens[start : start + BATCH]
                batch.n_tokens = len(part)
                for place, token in enumerate(part):
                    batch.token[place], batch.pos[place] = token, start + place
                    batch.n_seq_id[place], batch.seq_id[place][0] = 1, 0
                    batch.logits[place] = start + place >= wanted
                if lib.llama_decode(context, batch):
                    raise AttackError("llama.cpp cannot read the prompt", field="--generator",
                                      actual=f"{len(tokens)} tokens", hint="lower --top-k")  # fmt: skip
                for place in range(max(0, wanted - start), len(part)):
                    pointer = lib.llama_get_logits_ith(context, place)
                    result[row] = np.ctypeslib.as_array(pointer, shape=(self._vocabulary,))
                    row += 1
        finally:
            lib.llama_batch_free(batch)
        self._past = list(tokens)
        return result


def open_model(path: Path, digest: str | None = None) -> LlamaModel:
    """The model of a file, for the options `--generator gguf:PATH` and `--proxy gguf:PATH`.

    :raises SetupError: the file is missing, or llama-cpp-python is not installed
    :raises AttackError: the file is not usable (`ModelFile.read`)
    """
    return LlamaModel(ModelFile.read(path, digest))
