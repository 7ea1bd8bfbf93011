"""The embedder `hashed-words-64`: a table of public random signs, to which words are hashed.

It needs no file and no package, and its proofs are small, so it serves tests, published test windows and trials of an
installation. It finds passages by common words alone (feature hashing: Weinberger et al., "Feature Hashing for Large
Scale Multitask Learning", ICML 2009); services that people use need `wordllama-lexical-768`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from fractions import Fraction
from functools import cache

import numpy as np

from rag_audit.models.manifest import Quantiser, StaticTable, TableConstants
from rag_audit.retrieval.embedders.quantise import score_range
from rag_audit.retrieval.embedders.static import StaticEmbedder

DIMENSION = 64
VOCABULARY = 511
"""The places of a tree of depth 3 without the zero row."""
SIGNS = "rag-audit/hashed-words-1"
"""The seed of the signs: those of a row are the bits of SHAKE-256 over seed, slash and the row's number in decimal, the
first bit first, a 1 for minus."""
NORM_FACTOR = 5120
"""A of the integer normalisation: 7 * 256 / 0.35, for norms in units of 2^-8."""
TABLE_SHA256 = "2b11c7a3b527abe81d403149cff096bf15f005f3fcd1b4b6a232c677852b0de4"
TABLE_ROOT = "05a500a83d573df888708854571791cbe441eb0a37141b9ff54a3a90802d14f6"
TREE_SHA256 = "4ce28cc6b17842546ce8c7719eeeab29f92f4fe11339db43ca3085e9a6a4d9a1"
TABLE_SCAN = "095973f678b584d1acc1a3d6309b2080f0bba46baf7ce1ff84f4fdbc33361ffc"
ARTEFACTS = {"table-int4": TABLE_SHA256, "table-root": TABLE_ROOT, "table-scan": TABLE_SCAN}
QUANTISER: Quantiser = {"bits": 4, "scale": "0.35"}


@cache
def table_rows() -> bytes:
    """The table as int8, row by row: 1 or -1 in each place, shape (511, 64)."""
    streams = (
        hashlib.shake_256(f"{SIGNS}/{row}".encode()).digest(DIMENSION // 8) for row in range(VOCABULARY)
    )
    bits = np.unpackbits(np.asarray(list(b"".join(streams)), np.uint8))
    return (1 - 2 * bits.astype(np.int8)).tobytes()


TABLE = StaticTable(
    rows=table_rows,
    digest=TABLE_SHA256,
    dimension=DIMENSION,
    constants=TableConstants(VOCABULARY, NORM_FACTOR),
    tree=TREE_SHA256,
    columns=TABLE_SCAN,
)
"""The table for proofs of claim A1."""


class HashedWords(StaticEmbedder):
    """The embedder `hashed-words-64`. A word is a run of letters, digits and underscores, in lower case; its token is
    the number in the first eight bytes of its SHA-256, modulo the number of rows.
    """

    name = "hashed-words-64"
    score_window = score_range(Fraction(35, 100))
    table = TABLE
    artefacts = ARTEFACTS
    quantiser = QUANTISER

    def _tokens(self, forms: Sequence[str]) -> list[list[int]]:
        return [[_token(word) for word in re.findall(r"\w+", form.lower())] for form in forms]


def _token(word: str) -> int:
    return int.from_bytes(hashlib.sha256(word.encode()).digest()[:8], "big") % VOCABULARY
