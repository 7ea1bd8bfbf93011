"""Vectors of texts that measurements keep between runs.

A file of SQLite has one row for each model and token list, under their digests. `bench.minilm` and `bench.frontier` can
share a file. An interrupted run loses at most the texts of one call.
"""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Callable, Sequence
from hashlib import sha256
from pathlib import Path

import numpy as np

from rag_audit.retrieval.embedders import Embedder, get_embedder
from rag_audit.retrieval.embedders.integer_bert.embedder import Encoder, IntegerBert

BATCH = 256
"""Texts that are computed and stored together."""

Tokens = Sequence[int]


class Store:
    """The vectors of one model.

    :param path: the file, which is made if it is missing; None keeps vectors in memory only
    :param model: a text that determines the vectors, for example with the digest of the weights
    """

    def __init__(self, path: Path | None, model: str) -> None:
        self._model = model
        self._file = sqlite3.connect(":memory:" if path is None else path, timeout=60)
        self._file.execute(
            "CREATE TABLE IF NOT EXISTS vectors (model TEXT, tokens BLOB, vector BLOB,"
            " PRIMARY KEY (model, tokens)) WITHOUT ROWID"
        )

    def get(self, tokens: Tokens) -> bytes | None:
        """The stored vector of a token list; None if there is none."""
        row = self._file.execute(
            "SELECT vector FROM vectors WHERE model = ? AND tokens = ?", (self._model, _digest(tokens))
        ).fetchone()
        return None if row is None else row[0]

    def put(self, lists: Sequence[Tokens], vectors: Sequence[bytes | None]) -> None:
        """Store the vectors of token lists, all of them or none; a text without a vector has no row."""
        pairs = zip(lists, vectors, strict=True)
        rows = [(self._model, _digest(tokens), vector) for tokens, vector in pairs if vector is not None]
        with self._file:
            self._file.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?, ?)", rows)

    def fill(
        self,
        lists: Sequence[Tokens],
        compute: Callable[[Sequence[Tokens]], Sequence[bytes | None]],
        words: str,
    ) -> list[bytes | None]:
        """The vectors of token lists. Missing vectors are computed for texts of similar length together.

        :param words: the step's name, for the progress on standard error
        """
        missing = sorted({_digest(t): t for t in lists if self.get(t) is None}.values(), key=len)
        for start in range(0, len(missing), BATCH):
            part = missing[start : start + BATCH]
            self.put(part, compute(part))
            print(f"{words}: {start + len(part)} of {len(missing)} texts", file=sys.stderr)
        return [self.get(tokens) for tokens in lists]


def _digest(tokens: Tokens) -> bytes:
    """SHA-256 over the tokens as uint32, little-endian."""
    return sha256(np.array(tokens, "<u4").tobytes()).digest()


class StoredEncoder:
    """An encoder that computes each text once, except texts outside its ranges."""

    def __init__(self, encoder: Encoder, store: Store) -> None:
        self._encoder, self._store = encoder, store

    def embed(
        self, texts: Sequence[Tokens], first: bool
    ) -> list[tuple[bytes | None, tuple[int, str, int] | None]]:
        """See `_native.IntegerEncoder.embed`."""
        stored = [self._store.get(text) for text in texts]
        missing = [text for text, sums in zip(texts, stored, strict=True) if sums is None]
        computed = self._encoder.embed(missing, first) if missing else []
        if missing:
            self._store.put(missing, [sums for sums, _ in computed])
        rest = iter(computed)
        return [next(rest) if sums is None else (sums, None) for sums in stored]


def integer_store(path: Path | None, artefacts: dict[str, str], pooling: str) -> Store:
    """The sums of an integer encoder.

    :param artefacts: the artefacts of its manifest
    """
    return Store(path, "/".join([pooling, *(artefacts[name] for name in ("integers", "scales", "tables"))]))


def stored_embedder(name: str, folder: Path | None, path: Path | None) -> Embedder:
    """An embedder of the registry; an integer encoder with its sums in a file, if `path` is not None.

    :param folder: the model's folder
    """
    result = get_embedder(name, folder=folder)
    if path is not None and isinstance(result, IntegerBert):
        manifest = result.manifest()
        store = integer_store(path, dict(manifest["artefacts"]), manifest["pooling"])
        result.encoder = StoredEncoder(result.encoder, store)
    return result
