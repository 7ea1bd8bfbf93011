"""The embedder `wordllama-lexical-768`: the static table of the package `wordllama` (MIT) with lexical components, in
integers throughout.

Weights and tokenizer are read as package data; the package itself is never imported, since its loader
falls back to the network. A query is the sum of its tokens' rows, so claim A1 can be proved (docs/relation.md,
"Vectors"). No proof covers documents; a document's vector weighs how often its tokens occur.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from rag_audit._internal.errors import SetupError
from rag_audit.models.manifest import DEFAULT_TABLE, Quantiser, StaticTable
from rag_audit.relation.scores import MAX_COMPONENT
from rag_audit.retrieval.embedders.base import Vectors
from rag_audit.retrieval.embedders.lexical import COMPONENTS, LexicalTable
from rag_audit.retrieval.embedders.static import Numbers, StaticEmbedder, with_norm

if TYPE_CHECKING:
    from tokenizers import Tokenizer

NAME = "wordllama-lexical-768"
VOCABULARY = DEFAULT_TABLE.vocabulary
SEMANTIC = 256
"""Components of the package's table, which come first."""
DIMENSION = SEMANTIC + COMPONENTS
ENTRY_CLIP = "2.74"
"""Three standard deviations of an entry of the package's table, as the manifest writes it."""
_COUNT_SHIFT = 10
_HALF_COUNT = 4
"""Occurrences of a token in a document at which its row has half of its largest weight."""
_SEMANTIC_NORM = 50_000
"""The norm of a document's semantic part. The lexical part of 100 distinct pieces has about half of it."""

WEIGHTS = Path("weights", "l2_supercat_256.safetensors")
TOKENIZER = Path("tokenizers", "l2_supercat_tokenizer_config.json")
WEIGHTS_SHA256 = "64b47a2dc493cb8e85944076601189739852d7b64e0e1eedcb1937a251cd9fd5"
TOKENIZER_SHA256 = "93248f2a9ec36c7b35f700a033d5f36228aae48db61aee31007fa49062cdeb68"
TABLE_SHA256 = "ecb34567e20d05cbdf85793ba3880539f4966f77ec0555334410f8b7f6e83c52"
"""SHA-256 over the int4 table as int8, row by row."""
TABLE_ROOT = "268f87928452dbe9752b54b865ff5893d97c15f7daae543e9e59899b99a728dc"
"""Root of the tree over the int4 table, which is the public value `table` of claim A1's proofs."""
TREE_SHA256 = "451d158ccd5a550d889055a8fc4f4b5f4ca41ef1836945b18d686240db7a2e02"
"""SHA-256 over all nodes of that tree, leaves first, 32 bytes big-endian each; the last is TABLE_ROOT."""
TABLE_SCAN = "ca78fb424c9695fd4f21be6cb7997bace39de5365e2ee818b8f71c1cf6a6e6d0"
"""SHA-256 over the commitments to the table's columns, to which scan proofs of claim A1 refer."""

ARTEFACTS = {
    "table-int4": TABLE_SHA256,
    "table-root": TABLE_ROOT,
    "table-scan": TABLE_SCAN,
    "tokenizer": TOKENIZER_SHA256,
    "weights": WEIGHTS_SHA256,
}
QUANTISER: Quantiser = {"bits": 4, "entry_clip": ENTRY_CLIP, "scale": "0.108"}
_HINT = "pip install 'ragaudit-zk[provider]'"


def package_data(part: Path, digest: str) -> bytes:
    """A file of the package `wordllama`.

    :raises SetupError: the package or file is missing, or the file's SHA-256 is another one
    """
    spec = find_spec("wordllama")
    if spec is None or not spec.submodule_search_locations:
        raise SetupError("the wordllama-lexical-768 embedder needs the package wordllama", hint=_HINT)
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
def lexical_table() -> LexicalTable:
    """The lexical part of the table.

    :raises SetupError: the package is missing, or its tokenizer is not the pinned one
    """
    data = package_data(TOKENIZER, TOKENIZER_SHA256)
    tokens = json.loads(data)["model"]["vocab"]
    return LexicalTable.of_llama(sorted(tokens, key=tokens.__getitem__))


@cache
def int4_table() -> Vectors:
    """The int4 table, shape (32000, 768): the semantic and the lexical components of each token.

    :raises SetupError: the package is missing, or weights, tokenizer or table are not the pinned ones
    """
    table = np.hstack([_semantic_table(), lexical_table().rows()])
    actual = hashlib.sha256(table.data).hexdigest()
    if actual != TABLE_SHA256:
        raise SetupError("the int4 table is not the pinned one", expected=TABLE_SHA256, actual=actual)
    table.flags.writeable = False
    return table


def _semantic_table() -> Vectors:
    """clip(round(x / 2.74 * 7), -7, 7) of each entry of the weights, in float64; shape (32000, 256)."""
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
    return steps.astype(np.int8)[entries].reshape(tensor["shape"])


@cache
def table_rows() -> bytes:
    """The int4 table as int8, row by row.

    :raises SetupError: as `int4_table`
    """
    return int4_table().tobytes()


@cache
def tokenizer() -> Tokenizer:
    """The package's tokenizer.

    :raises SetupError: a package is missing, or the tokenizer is not the pinned one
    """
    data = package_data(TOKENIZER, TOKENIZER_SHA256)
    try:
        from tokenizers import Tokenizer
    except ImportError as exc:
        raise SetupError(
            "the wordllama-lexical-768 embedder needs the package tokenizers", hint=_HINT
        ) from exc
    result: Tokenizer = Tokenizer.from_str(data.decode())
    return result


TABLE = StaticTable(
    rows=table_rows,
    digest=TABLE_SHA256,
    dimension=DIMENSION,
    constants=DEFAULT_TABLE,
    tree=TREE_SHA256,
    columns=TABLE_SCAN,
)
"""The table for proofs of claim A1."""


class WordLlama(StaticEmbedder):
    """The default embedder.

    A document's vector is the normalised sum of two parts. The semantic part is the sum of the rows of its distinct
    tokens times floor(2^10 n / (n + 4)) for n occurrences, rounded to the norm 50,000; the lexical part is
    `LexicalTable.of_document`.
    """

    name = NAME
    score_window = (420, 1680)
    """0.1 and 0.4 of the largest score, (7 / 0.108)^2. On SQuAD, relevant passages have scores of 620 to 1,820 (5th to
    95th percentile), and a higher upper end costs retrieval quality under noise (docs/embedders.md)."""
    relevance = 601
    """95 of 100 questions of SQuAD reach this raw score with their own passage (`rag-audit lab relevance`)."""
    table = TABLE
    artefacts = ARTEFACTS
    quantiser = QUANTISER
    documents = "saturated-1"
    """the rule above"""

    def __init__(self, *, query_tokens: int = 64, document_tokens: int = 512) -> None:
        super().__init__(query_tokens=query_tokens, document_tokens=document_tokens)
        self._lexical = lexical_table()
        self._tokenizer = tokenizer()

    def _tokens(self, forms: Sequence[str]) -> list[list[int]]:
        return [encoding.ids for encoding in self._tokenizer.encode_batch(forms, add_special_tokens=False)]

    def _document(self, tokens: Sequence[int]) -> Numbers:
        """The sum of a document's semantic and lexical part before it is normalised, shape (768,)."""
        of = np.array(tokens, np.int64)
        distinct, counts = np.unique(of, return_counts=True)
        weights = (counts << _COUNT_SHIFT) // (counts + _HALF_COUNT)
        semantic = weights @ self._rows[distinct, :SEMANTIC].astype(np.int64)
        return np.concatenate([with_norm(semantic, _SEMANTIC_NORM), self._lexical.of_document(of)])
