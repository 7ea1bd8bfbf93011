"""The embedder `wordllama-256`: the static table of the package `wordllama` (MIT), in integers throughout.

Weights and tokenizer are read as package data; the package itself is never imported, since its loader
falls back to the network. Every step after the table is integer arithmetic, so that claim A1 can be
proved (docs/relation.md, "Vectors").
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from importlib.util import find_spec
from math import isqrt
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from rag_audit._internal.errors import EncodingError, SetupError
from rag_audit.models.constants import NORM_FACTOR as NORM_FACTOR
from rag_audit.models.manifest import EmbedderManifest, StaticTable
from rag_audit.relation.native import query_commitment
from rag_audit.relation.scores import MAX_COMPONENT
from rag_audit.retrieval.embedders.base import (
    NothingToEmbed,
    PromptTemplate,
    TokenLimits,
    Vectors,
    check_text,
)
from rag_audit.retrieval.embedders.quantise import score_range

if TYPE_CHECKING:
    from tokenizers import Tokenizer

NAME = "wordllama-256"
VOCABULARY = 32_000
DIMENSION = 256
SCALE = Fraction(22, 100)
SCORE_WINDOW = score_range(SCALE)
RELEVANCE = 229
"""The relevance threshold: 95 of 100 questions of SQuAD reach this raw score with their own passage (`rag-audit lab
relevance`)."""
ENTRY_CLIP = "2.74"
"""Three standard deviations of a table entry, as the manifest writes it."""
_ROOT_SHIFT = 16

WEIGHTS = Path("weights", "l2_supercat_256.safetensors")
TOKENIZER = Path("tokenizers", "l2_supercat_tokenizer_config.json")
WEIGHTS_SHA256 = "64b47a2dc493cb8e85944076601189739852d7b64e0e1eedcb1937a251cd9fd5"
TOKENIZER_SHA256 = "93248f2a9ec36c7b35f700a033d5f36228aae48db61aee31007fa49062cdeb68"
TABLE_SHA256 = "3dba73a4173b0e2314f9632472eae441939439f1474e3cdf0c9dc434b39fe49e"
"""SHA-256 over the int4 table as int8, row by row."""
TREE_DEPTH = 5
TABLE_ROOT = "107b5999c65207363081abb6f691ee6cbc0dca7df30291dc5f714562c1443e6d"
"""Root of the tree over the int4 table, which is the public value `table` of claim A1's proofs."""
TREE_SHA256 = "ac5fef4e3027b1f566ca77f5dc56f1c1a696f7870618853ba54b9ad9ac41dbc5"
"""SHA-256 over all nodes of that tree, leaves first, 32 bytes big-endian each; the last is TABLE_ROOT."""
TABLE_SCAN = "3e5d5e0231f80726f5dc21360326ae159b592f89f5c25484adc066e4c6927297"
"""SHA-256 over the commitments to the table's columns, to which scan proofs of claim A1 refer."""

ARTEFACTS = {
    "table-int4": TABLE_SHA256,
    "table-root": TABLE_ROOT,
    "table-scan": TABLE_SCAN,
    "tokenizer": TOKENIZER_SHA256,
    "weights": WEIGHTS_SHA256,
}
"""The public artefacts by name, as the manifest and a verifier's pins list them."""


def manifest(query_tokens: int, document_tokens: int) -> EmbedderManifest:
    """The embedder's manifest. This release fixes all of its fields except the token limits."""
    return {
        "kind": NAME,
        "artefacts": dict(ARTEFACTS),
        "dimension": DIMENSION,
        "prompt": PromptTemplate().digest(),
        "quantiser": {
            "bits": 4,
            "entry_clip": ENTRY_CLIP,
            "norm_factor": NORM_FACTOR,
            "scale": "0.22",
        },
        "query_commitment": "tokens",
        "tokens": {"document": document_tokens, "query": query_tokens},
    }


_HINT = "pip install 'ragaudit-zk[provider]'"


def package_data(part: Path, digest: str) -> bytes:
    """A file of the package `wordllama`.

    :raises SetupError: the package or file is missing, or the file's SHA-256 is another one
    """
    spec = find_spec("wordllama")
    if spec is None or not spec.submodule_search_locations:
        raise SetupError("the wordllama-256 embedder needs the package wordllama", hint=_HINT)
    path = Path(spec.submodule_search_locations[0], part)
    try:
        data = path.read_bytes()
    except OSError as exc:
        raise SetupError.of_os_error(exc, "an embedder file cannot be read", field=path, hint=_HINT) from exc
    actual = hashlib.sha256(data).hexdigest()
    if actual != digest:
        raise SetupError(
            "an embedder file is not the pinned one",
            field=str(path),
            expected=digest,
            actual=actual,
            hint=_HINT,
        )
    return data


@cache
def int4_table() -> Vectors:
    """The int4 table, shape (32000, 256): clip(round(x / 2.74 * 7), -7, 7) of each entry, in float64.

    :raises SetupError: the package is missing, or weights or table are not the pinned ones
    """
    data = package_data(WEIGHTS, WEIGHTS_SHA256)
    # safetensors: length of a JSON header, the header, then the tensors; the pin fixes the layout.
    start = 8 + int.from_bytes(data[:8], "little")
    tensor = json.loads(data[8:start])["embedding.weight"]
    low, high = tensor["data_offsets"]
    entries = np.frombuffer(data[start + low : start + high], np.dtype("<u2"))
    # A half has 2^16 values: each is quantised once, and the eight million entries are looked up.
    halves = np.nan_to_num(
        np.arange(1 << 16, dtype=np.uint16).view(np.float16).astype(np.float64), posinf=0, neginf=0
    )
    steps = np.clip(np.rint(halves / float(ENTRY_CLIP) * MAX_COMPONENT), -MAX_COMPONENT, MAX_COMPONENT)
    table = steps.astype(np.int8)[entries].reshape(tensor["shape"])
    actual = hashlib.sha256(table.data).hexdigest()
    if actual != TABLE_SHA256:
        raise SetupError("the int4 table is not the pinned one", expected=TABLE_SHA256, actual=actual)
    table.flags.writeable = False
    return table


@cache
def table_rows() -> bytes:
    """The int4 table as int8, row by row.

    :raises SetupError: as `int4_table`
    """
    return int4_table().tobytes()


TABLE = StaticTable(
    rows=table_rows,
    digest=TABLE_SHA256,
    tokens=VOCABULARY,
    dimension=DIMENSION,
    norm_factor=NORM_FACTOR,
    depth=TREE_DEPTH,
    tree=TREE_SHA256,
    columns=TABLE_SCAN,
)
"""The table for proofs of claim A1."""


@cache
def tokenizer() -> Tokenizer:
    """The package's tokenizer.

    :raises SetupError: a package is missing, or the tokenizer is not the pinned one
    """
    data = package_data(TOKENIZER, TOKENIZER_SHA256)
    try:
        from tokenizers import Tokenizer
    except ImportError as exc:
        raise SetupError("the wordllama-256 embedder needs the package tokenizers", hint=_HINT) from exc
    result: Tokenizer = Tokenizer.from_str(data.decode())
    return result


def normalise(e: np.typing.NDArray[np.int64], norm_factor: int = NORM_FACTOR, *, field: str) -> Vectors:
    """The int4 vector v_j = sign(e_j) min(7, floor((2 |e_j| A + w) / (2 w))), w = isqrt(2^16 sum e_j^2); shape (d,).

    :param norm_factor: A
    :raises NothingToEmbed: e is zero
    """
    w = isqrt(int(e @ e) << _ROOT_SHIFT)
    if w == 0:
        raise NothingToEmbed(
            "the text has no token to embed", field=field, expected="text with at least one word"
        )
    magnitudes = np.minimum(MAX_COMPONENT, (2 * norm_factor * np.abs(e) + w) // (2 * w))
    vector: Vectors = (np.sign(e) * magnitudes).astype(np.int8)
    return vector


def check_tokens(tokens: Sequence[int], *, field: str) -> None:
    """Check that tokens are in the vocabulary.

    :raises EncodingError: one is not
    """
    if len(tokens) and not 0 <= min(tokens) <= max(tokens) < VOCABULARY:
        raise EncodingError("a token is outside the vocabulary", field=field, expected=f"0..{VOCABULARY - 1}")


class WordLlama:
    """The default embedder, with the methods of `Embedder`."""

    name = NAME
    dimension = DIMENSION
    scale = SCALE
    score_window = SCORE_WINDOW
    template = PromptTemplate()
    table = TABLE

    def __init__(self, *, query_tokens: int = 64, document_tokens: int = 512) -> None:
        self.limits = TokenLimits(query_tokens, document_tokens)
        self._table = int4_table()
        self._tokenizer = tokenizer()

    def manifest(self) -> EmbedderManifest:
        return manifest(self.limits.query, self.limits.document)

    def tokenize(self, text: str) -> list[int]:
        check_text(text, field="query")
        ids: list[int] = self._tokenizer.encode(text, add_special_tokens=False).ids
        return ids[: self.limits.query]

    def embed_tokens(self, tokens: Sequence[int]) -> Vectors:
        return self._embed(tokens, field="query")

    def embed_query(self, text: str) -> Vectors:
        return self.embed_tokens(self.tokenize(text))

    def embed_documents(self, texts: Sequence[str], *, first: int = 0) -> Vectors:
        for number, text in enumerate(texts, first):
            check_text(text, field=f"documents[{number}]")
        encodings = self._tokenizer.encode_batch(list(texts), add_special_tokens=False)
        out = np.zeros((len(texts), self.dimension), np.int8)
        for number, encoding in enumerate(encodings):
            field = f"documents[{first + number}]"
            out[number] = self._embed(encoding.ids[: self.limits.document], field=field)
        return out

    def cut_documents(self, texts: Sequence[str]) -> int:
        for number, text in enumerate(texts):
            check_text(text, field=f"documents[{number}]")
        encodings = self._tokenizer.encode_batch(list(texts), add_special_tokens=False)
        return sum(len(encoding.ids) > self.limits.document for encoding in encodings)

    def query_commitment(self, text: str, salt: int, tokens: Sequence[int] | None = None) -> int:
        return query_commitment(salt, self.tokenize(text) if tokens is None else tokens)

    def _embed(self, tokens: Sequence[int], *, field: str) -> Vectors:
        check_tokens(tokens, field=field)
        return normalise(self._table[list(tokens)].sum(axis=0, dtype=np.int64), field=field)
