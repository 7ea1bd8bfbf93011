"""A provider's own cache of document vectors, so that the next window does not embed unchanged texts a second time.

The cache stores only vectors, which are a function of embedder and text. Positions, salts and blindings belong to one
window and are drawn for it, whether or not its vectors come from the cache. The file is as private as the texts: a
reader of the file can test whether a guessed text is in it.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
import stat
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np

from rag_audit._internal.canonical import Json, digest_hex
from rag_audit._internal.closing import Closing
from rag_audit._internal.durable import PRIVATE_MODE
from rag_audit._internal.errors import EndpointError, RagAuditError, SetupError
from rag_audit.models.manifest import EmbedderManifest
from rag_audit.models.passage import Passage
from rag_audit.retrieval.embedders.base import Embedder, TokenLimits, Vectors, document_number

if TYPE_CHECKING:
    from rag_audit.models.manifest import Provable

MAX_VECTORS = 1 << 21
"""Maximum number of vectors in a cache. Beyond it, the cache drops an eighth, the least recently used ones."""
_APPLICATION_ID = 0x52_41_56_43
_SCHEMA = (
    "CREATE TABLE vector (key BLOB PRIMARY KEY, used INTEGER NOT NULL, digest BLOB NOT NULL,"
    " components BLOB NOT NULL) WITHOUT ROWID"
)
_ASKED = 512
"""Keys in one statement."""
_RUN = 256
"""Number of texts that are embedded before their vectors are stored. An interruption, or a failing endpoint, loses
at most the vectors of this number of texts."""
_SPARE = 8
"""A full cache is emptied by this part at once: that is a pass over the whole file, too much for every few texts."""
_WAIT_S = 5.0
"""Maximum time that another process may lock the file."""


class CachedEmbedder(Closing):
    """An embedder that looks up document vectors in a file, and stores new ones there.

    The file is SQLite. Each entry has a digest of key and components. If an entry does not match its digest, the object
    reports it, embeds the text a second time and replaces the entry. If a file is no cache, or cannot be read or
    written, the object reports it, leaves the file unchanged, and embeds all texts.

    :param path: the cache, which is created with mode 0600 if it is missing
    :param say: called with a line for people when the cache, or a part of it, is not used
    :param maximum: the maximum number of stored vectors
    :raises SetupError: users other than its owner can access the file, or replace it in its folder
    """

    def __init__(
        self, embedder: Embedder, path: Path, *, say: Callable[[str], None], maximum: int = MAX_VECTORS
    ) -> None:
        self._embedder = embedder
        self._path, self._say, self._most = path, say, maximum
        self._prefix = bytes.fromhex(digest_hex(cast("dict[str, Json]", embedder.manifest())))
        self._lock = threading.Lock()
        self.reused = self.embedded = 0
        _check_private(path)
        self._db: sqlite3.Connection | None = None
        self._generation = self._count = 0
        try:
            self._db = self._open()
        except sqlite3.Error as exc:
            self._give_up(exc)

    def embed_documents(self, texts: Sequence[str], *, first: int = 0) -> Vectors:
        """As `Embedder.embed_documents`; only texts that are missing from the cache are embedded."""
        with self._lock:
            keys = [self._key(text) for text in texts]
            known = self._read(keys)
            missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in known}
            for part in _runs(missing):
                try:
                    result = self._embedder.embed_documents([missing[key] for key in part])
                except EndpointError as exc:  # the earlier vectors are stored
                    if (number := document_number(exc)) is not None:
                        exc.field = f"documents[{first + keys.index(part[number])}]"
                    raise
                except RagAuditError:
                    # Once more with all of them, so that the error names the document by its own number.
                    return self._embedder.embed_documents(texts, first=first)
                known |= (fresh := dict(zip(part, result, strict=True)))
                self._write(fresh)
            self.reused += len(texts) - len(missing)
            self.embedded += len(missing)
            return np.stack([known[key] for key in keys]) if keys else self._embedder.embed_documents([])

    def unknown(self, texts: Sequence[str]) -> list[str]:
        """The texts without a vector in the cache."""
        with self._lock:
            keys = [self._key(text) for text in texts]
            known: set[bytes] = set()
            try:
                known.update(key for key, _, _ in self._rows(keys))
            except sqlite3.Error as exc:
                self._give_up(exc)
            return [text for key, text in zip(keys, texts, strict=True) if key not in known]

    def unknown_of(self, documents: Mapping[str, Sequence[Passage]]) -> dict[str, list[Passage]]:
        """The documents of each tenant without a vector in the cache."""
        new = {tenant: set(self.unknown([d.text for d in own])) for tenant, own in documents.items()}
        return {tenant: [d for d in own if d.text in new[tenant]] for tenant, own in documents.items()}

    def close(self) -> None:
        """Close the file. Vectors of later calls are not stored."""
        with self._lock:
            if self._db is not None:
                self._db.close()
                self._db = None

    # -- the rest of an embedder -----------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """As `Embedder.name`."""
        return self._embedder.name

    @property
    def dimension(self) -> int:
        """As `Embedder.dimension`."""
        return self._embedder.dimension

    @property
    def score_window(self) -> tuple[int, int]:
        """As `Embedder.score_window`."""
        return self._embedder.score_window

    @property
    def limits(self) -> TokenLimits:
        """As `Embedder.limits`."""
        return self._embedder.limits

    @property
    def table(self) -> Provable | None:
        """As `Embedder.table`."""
        return self._embedder.table

    def manifest(self) -> EmbedderManifest:
        """As `Embedder.manifest`."""
        return self._embedder.manifest()

    def tokenize(self, text: str) -> list[int]:
        """As `Embedder.tokenize`."""
        return self._embedder.tokenize(text)

    def embed_tokens(self, tokens: Sequence[int]) -> Vectors:
        """As `Embedder.embed_tokens`."""
        return self._embedder.embed_tokens(tokens)

    def embed_query(self, text: str) -> Vectors:
        """As `Embedder.embed_query`."""
        return self._embedder.embed_query(text)

    def cut_documents(self, texts: Sequence[str]) -> int:
        """As `Embedder.cut_documents`."""
        return self._embedder.cut_documents(texts)

    def query_commitment(self, text: str, salt: int, tokens: Sequence[int] | None = None) -> int:
        """As `Embedder.query_commitment`."""
        return self._embedder.query_commitment(text, salt, tokens)

    # -- the file --------------------------------------------------------------------------------------------

    def _key(self, text: str) -> bytes:
        """SHA-256 over the digest of the embedder's manifest, limits included, followed by the digest of the text."""
        over_text = hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
        return hashlib.sha256(self._prefix + over_text).digest()

    def _open(self) -> sqlite3.Connection:
        os.close(os.open(self._path, os.O_RDWR | os.O_CREAT, PRIVATE_MODE))
        db = sqlite3.connect(self._path, isolation_level=None, check_same_thread=False, timeout=_WAIT_S)
        try:
            db.execute("PRAGMA synchronous = NORMAL")
            db.execute("PRAGMA cache_size = -65536")  # keys are digests: inserts go anywhere in the tree
            db.execute("BEGIN IMMEDIATE")
            result = db.execute("PRAGMA application_id").fetchone()[0]
            if result == 0 and db.execute("SELECT 1 FROM sqlite_schema").fetchone() is None:
                db.execute(_SCHEMA)
                db.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
            elif result != _APPLICATION_ID:
                raise sqlite3.DatabaseError("the file belongs to another program")
            last, self._count = db.execute("SELECT max(used), count(*) FROM vector").fetchone()
            self._generation = (last or 0) + 1
            db.execute("COMMIT")
        except BaseException:
            db.close()
            raise
        return db

    def _read(self, keys: Sequence[bytes]) -> dict[bytes, Vectors]:
        result: dict[bytes, Vectors] = {}
        damaged = 0
        try:
            for key, digest, components in self._rows(keys):
                if _digest(key, components) != digest or len(components) != self.dimension:
                    damaged += 1
                    continue
                result[key] = np.frombuffer(components, np.int8)
            if self._db is not None:
                self._db.execute("BEGIN IMMEDIATE")
                self._db.executemany(
                    "UPDATE vector SET used = ? WHERE key = ?", ((self._generation, key) for key in result)
                )
                self._db.execute("COMMIT")
        except (sqlite3.Error, TypeError) as exc:
            self._give_up(exc)
            return {}
        if damaged:
            self._say(
                f"{damaged} vectors in the cache {self._path} are damaged, and were embedded a second time"
            )
        return result

    def _rows(self, keys: Sequence[bytes]) -> Iterator[tuple[bytes, bytes, bytes]]:
        for at in range(0, len(keys) if self._db is not None else 0, _ASKED):
            part = keys[at : at + _ASKED]
            marks = ",".join("?" * len(part))
            assert self._db is not None
            yield from self._db.execute(
                f"SELECT key, digest, components FROM vector WHERE key IN ({marks})", part
            )

    def _write(self, vectors: Mapping[bytes, Vectors]) -> None:
        if self._db is None:
            return
        rows = [(key, self._generation, _digest(key, v.tobytes()), v.tobytes()) for key, v in vectors.items()]
        try:
            self._db.execute("BEGIN IMMEDIATE")
            self._db.executemany("INSERT OR REPLACE INTO vector VALUES (?, ?, ?, ?)", rows)
            self._count += len(rows)
            if self._count > self._most:
                self._db.execute("DELETE FROM vector WHERE key IN (SELECT key FROM vector ORDER BY used LIMIT "
                                 "max(0, (SELECT count(*) FROM vector) - ?))",
                                 (self._most - self._most // _SPARE,))  # fmt: skip
                self._count = self._db.execute("SELECT count(*) FROM vector").fetchone()[0]
            self._db.execute("COMMIT")
        except sqlite3.Error as exc:
            self._give_up(exc)

    def _give_up(self, cause: Exception) -> None:
        """Stop using the file from here on, and report it."""
        if self._db is not None:
            self._db.close()
            self._db = None
        self._say(f"the vector cache {self._path} is not used: {cause}; every text is embedded. Without the file"
                  " a new one is begun")  # fmt: skip


def _runs(keys: Iterable[bytes]) -> Iterator[tuple[bytes, ...]]:
    left = iter(keys)
    while part := tuple(islice(left, _RUN)):
        yield part


def _digest(key: bytes, components: bytes) -> bytes:
    return hashlib.sha256(b"rag-audit/vector\0" + key + components).digest()


def _check_private(path: Path) -> None:
    """Make the file's folder if it is missing, and refuse a file that others can access or replace."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        above = path.parent.stat()
        actual = path.lstat() if path.exists() or path.is_symlink() else None
    except OSError as exc:
        raise SetupError("cannot be read", field=str(path), actual=exc.strerror or str(exc)) from exc
    if above.st_mode & 0o022 and not above.st_mode & stat.S_ISVTX:
        raise SetupError("other users can write to the folder of the vector cache", field=str(path.parent),
                         expected="mode 0700", actual=f"mode {stat.S_IMODE(above.st_mode):04o}",
                         hint=f"chmod 700 {path.parent}")  # fmt: skip
    if actual is None:
        return
    if not stat.S_ISREG(actual.st_mode) or actual.st_uid != os.geteuid() or actual.st_mode & 0o077:
        raise SetupError("other users can access the vector cache", field=str(path),
                         expected="a file of your own with mode 0600", actual=f"mode {stat.filemode(actual.st_mode)}",
                         hint=f"chmod 600 {path}; a reader of this file can recognise texts in it")  # fmt: skip
