"""The provider's durable ledger: an append-only SQLite file with group commit.

One writer thread takes all waiting appends and commits them together, so that the disk is synced once for
all of them. SQLite runs with a write-ahead log and ``synchronous=FULL``: a commit is one sequential write and
one fsync, where a rollback journal needs three, and the log's frames carry checksums, so a write that a crash
tore is recognised and cut back when the file is opened next. An append is acknowledged only after that fsync.
A ledger has one writer, which holds a lock file beside it; others may read what is durable meanwhile (`read_ledger`).

Each row is checked against its own digests when the file is opened. The file alone cannot show that its whole
tail was removed: for that, compare the tree with the last signed checkpoint.
"""

from __future__ import annotations

import hashlib
import os
import queue
import sqlite3
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from rag_audit.encoding.durable import PRIVATE_MODE, sync_directory
from rag_audit.encoding.lock import hold
from rag_audit.errors import EncodingError, SizeError, StoreError, VersionError
from rag_audit.ledger.merkle import leaf_hash

MAX_ENTRY_BYTES = 65_535
MAX_BATCH = 1024
"""The most appends that are committed together."""
_PAGE = 256
_APPLICATION_ID = 0x52_41_4C_47
_FORMAT = 1
_SCHEMA = """
CREATE TABLE entry (
    idx INTEGER PRIMARY KEY,
    leaf BLOB NOT NULL,
    body BLOB NOT NULL,
    account TEXT,
    i INTEGER,
    private BLOB,
    tag BLOB NOT NULL,
    UNIQUE (account, i),
    CHECK ((account IS NULL) = (i IS NULL))
)
"""
_ROWS = "SELECT idx, leaf, body, account, i, private, tag FROM entry ORDER BY idx"
_INSERT = "INSERT INTO entry (idx, leaf, body, account, i, private, tag) VALUES (?, ?, ?, ?, ?, ?, ?)"


class SlotUsed(StoreError):
    """An earlier record holds the slot (account, i), which never serves a second query.

    :param index: the ledger index of that record
    """

    def __init__(self, account: str, i: int, index: int) -> None:
        super().__init__(
            "the slot is used already",
            field=f"account {account}, i {i}",
            found=f"the record at ledger index {index}",
        )
        self.index = index


@dataclass(frozen=True)
class AppendResult:
    """A durable entry: its ledger index and RFC 9162 leaf hash."""

    index: int
    leaf_hash: bytes


@dataclass
class _Append:
    build: Callable[[int], bytes]
    slot: tuple[str, int] | None
    private: bytes | None
    future: Future[AppendResult] = field(default_factory=Future)


class LedgerStore:
    """An open ledger file, which is created if it is missing. Safe to use from several threads.

    :raises StoreError: the file is unreadable, altered (the first such entry is named), or open in another process
    :raises VersionError: the file has another format
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.RLock()
        self._failure: StoreError | None = None
        self._closing = threading.Lock()
        self._closed = False
        self._held = self._hold()
        try:
            self._db = self._open()
            try:
                self._prepare()
                self._size = self._verify()
            except BaseException:
                self._db.close()
                raise
        except BaseException:
            os.close(self._held)
            raise
        self._queue: queue.SimpleQueue[_Append | None] = queue.SimpleQueue()
        self._writer = threading.Thread(target=self._run, name=f"ledger writer {path.name}", daemon=True)
        self._writer.start()

    def append(
        self,
        entry: bytes | Callable[[int], bytes],
        *,
        slot: tuple[str, int] | None = None,
        private: bytes | None = None,
    ) -> Future[AppendResult]:
        """Append an entry; the future resolves once it is on the disk.

        :param entry: at most `MAX_ENTRY_BYTES`, or a function of the ledger index that the writer calls in
            ledger order. It must not wait for another thread that uses this store; its exception becomes
            the future's, and the index goes to the next append
        :param slot: (account, i), which no other record may hold
        :param private: opaque bytes kept beside the entry, in the same transaction, never published
        :returns: a future whose exception is `SlotUsed`, `SizeError`, or `StoreError` if the entry could not
            be made durable; after a `StoreError` the file must be opened again, which tells what it holds
        """
        request = _Append(entry if callable(entry) else lambda _: entry, slot, private)
        with self._closing:
            if self._closed:
                raise StoreError("the ledger is closed", field=str(self._path))
            self._queue.put(request)
        return request.future

    def __len__(self) -> int:
        return self._size

    @property
    def failure(self) -> StoreError | None:
        """Why nothing is appended any more until the file is opened again, or None."""
        return self._failure

    def entry(self, index: int) -> bytes:
        """The entry at a ledger index.

        :raises EncodingError: there is no such entry
        """
        row = self._one("SELECT body FROM entry WHERE idx = ?", index)
        if row is None:
            raise EncodingError(
                "there is no such ledger entry",
                field="index",
                expected=f"below {self._size}",
                found=str(index),
            )
        return bytes(row[0])

    def private(self, index: int) -> bytes | None:
        """The private bytes kept beside an entry, or None if there are none."""
        row = self._one("SELECT private FROM entry WHERE idx = ?", index)
        return None if row is None or row[0] is None else bytes(row[0])

    def slot(self, account: str, i: int) -> int | None:
        """The ledger index of the record that holds a slot, or None if the slot is free."""
        row = self._one("SELECT idx FROM entry WHERE account = ? AND i = ?", account, i)
        return None if row is None else int(row[0])

    def entries(self, start: int = 0) -> Iterator[bytes]:
        """All durable entries from `start` on, in ledger order."""
        while page := self._all("SELECT body FROM entry WHERE idx >= ? ORDER BY idx LIMIT ?", start, _PAGE):
            for (body,) in page:
                yield bytes(body)
            start += len(page)

    def close(self) -> None:
        """Commit the appends that wait, then release the file. Closing twice does nothing."""
        with self._closing:
            if self._closed:
                return
            self._closed = True
            self._queue.put(None)
        self._writer.join()
        self._db.close()
        os.close(self._held)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- the writer ----------------------------------------------------------------------------------------

    def _run(self) -> None:
        open_ = True
        while open_:
            batch: list[_Append] = []
            request = self._queue.get()
            while request is not None:
                batch.append(request)
                if len(batch) == MAX_BATCH:
                    break
                try:
                    request = self._queue.get_nowait()
                except queue.Empty:
                    break
            open_ = request is not None
            self._commit([r for r in batch if r.future.set_running_or_notify_cancel()])

    def _commit(self, batch: list[_Append]) -> None:
        outcomes: list[AppendResult | Exception] = []
        with self._lock:
            try:
                if self._failure is not None:
                    raise self._failure
                self._execute("BEGIN IMMEDIATE")
                size = self._size
                for request in batch:
                    try:
                        outcomes.append(self._insert(request, size))
                        size += 1
                    except sqlite3.Error:
                        raise
                    except Exception as exc:
                        outcomes.append(exc)
                self._execute("COMMIT")
                self._size = size
            except (sqlite3.Error, StoreError) as exc:
                failure = self._fail(exc)
                outcomes = [failure for _ in batch]
        for request, outcome in zip(batch, outcomes, strict=True):
            if isinstance(outcome, AppendResult):
                request.future.set_result(outcome)
            else:
                request.future.set_exception(outcome)

    def _insert(self, request: _Append, index: int) -> AppendResult:
        body = request.build(index)
        if len(body) > MAX_ENTRY_BYTES:
            raise SizeError(
                "ledger entry too large",
                field=f"entry {index}",
                expected=f"at most {MAX_ENTRY_BYTES} bytes",
                found=f"{len(body)} bytes",
            )
        leaf = leaf_hash(body)
        account, i = request.slot or (None, None)
        tag = _tag(index, leaf, account, i, request.private)
        try:
            self._execute(_INSERT, index, leaf, body, account, i, request.private, tag)
        except sqlite3.IntegrityError:
            if account is None or i is None or (used := self.slot(account, i)) is None:
                raise
            raise SlotUsed(account, i, used) from None
        return AppendResult(index, leaf)

    def _fail(self, cause: Exception) -> StoreError:
        """Stop appending, since after a failed write only opening the file again tells what reached the disk."""
        if self._failure is None:
            self._failure = StoreError(
                "the ledger could not be written",
                field=str(self._path),
                found=str(cause),
                hint="free disk space or raise the file size limit, then open the window again",
            )
            self._failure.__cause__ = cause
            if self._db.in_transaction:
                try:
                    self._db.execute("ROLLBACK")
                except sqlite3.Error as exc:
                    self._failure.add_note(f"and not rolled back: {exc}")
        return self._failure

    def _execute(self, statement: str, *parameters: object) -> sqlite3.Cursor:
        verb = statement.split(None, 1)[0]
        self._boundary(f"before {verb}")
        cursor = self._db.execute(statement, parameters)
        self._boundary(f"after {verb}")
        return cursor

    def _boundary(self, point: str) -> None:
        """A hook called around every writing statement, where fault-injection tests end the process."""

    # -- opening and reading -------------------------------------------------------------------------------

    def _hold(self) -> int:
        """Take the lock of the ledger's writer. SQLite's own, held all the time, would keep readers out too."""
        try:
            handle = hold(self._path.with_name(f"{self._path.name}.lock"), wait=False)
        except StoreError as exc:
            raise StoreError("the ledger cannot be opened", field=str(self._path), found=exc.found) from exc
        if handle is None:
            raise StoreError("the ledger cannot be opened", field=str(self._path), found="a writer holds it",
                             hint="another process has the window open")  # fmt: skip
        return handle

    def _open(self) -> sqlite3.Connection:
        try:
            # SQLite would make the file with the umask's mode, and does not sync the directory's new name.
            os.close(os.open(self._path, os.O_RDWR | os.O_CREAT, PRIVATE_MODE))
            sync_directory(self._path.parent)
            return sqlite3.connect(self._path, isolation_level=None, check_same_thread=False, timeout=0)
        except (sqlite3.Error, OSError) as exc:
            raise StoreError("the ledger cannot be opened", field=str(self._path), found=str(exc)) from exc

    def _prepare(self) -> None:
        """Recover the log, and make the table in a new file."""
        try:
            for setting in ("journal_mode = WAL", "synchronous = FULL", "fullfsync = ON"):
                self._execute(f"PRAGMA {setting}")
            self._execute("BEGIN IMMEDIATE")
            found = tuple(self._one(f"PRAGMA {name}") for name in ("application_id", "user_version"))
            if found == ((0,), (0,)) and self._one("SELECT 1 FROM sqlite_schema") is None:
                self._execute(_SCHEMA)
                self._execute(f"PRAGMA application_id = {_APPLICATION_ID}")
                self._execute(f"PRAGMA user_version = {_FORMAT}")
            elif found != ((_APPLICATION_ID,), (_FORMAT,)):
                raise VersionError(
                    "the file is not a ledger of this format",
                    field=str(self._path),
                    expected=f"application ({_APPLICATION_ID},), version ({_FORMAT},)",
                    found="application {}, version {}".format(*found),
                )
            self._execute("COMMIT")
        except sqlite3.Error as exc:
            hint = "another process has the window open" if "locked" in str(exc) else None
            raise StoreError(
                "the ledger cannot be opened", field=str(self._path), found=str(exc), hint=hint
            ) from exc

    def _verify(self) -> int:
        """Check every row, and return the number of rows."""
        size = 0
        try:
            for row in self._db.execute(_ROWS):
                _check_row(row, size, self._path)
                size += 1
        except (sqlite3.Error, TypeError) as exc:
            raise StoreError(
                "the ledger is damaged", field=f"{self._path}, entry {size}", found=str(exc)
            ) from exc
        return size

    # Any: a row has the types of its statement, which sqlite3 does not tell.
    def _one(self, statement: str, *parameters: object) -> tuple[Any, ...] | None:
        rows = self._all(statement, *parameters)
        return rows[0] if rows else None

    def _all(self, statement: str, *parameters: object) -> list[tuple[Any, ...]]:
        with self._lock:
            try:
                return self._db.execute(statement, parameters).fetchall()
            except sqlite3.Error as exc:
                raise StoreError("the ledger cannot be read", field=str(self._path), found=str(exc)) from exc


def read_ledger(path: Path) -> list[tuple[bytes, bytes | None]]:
    """Every durable entry of a ledger with its private bytes, in ledger order, also while another process writes it.

    :raises StoreError: there is no ledger, or it cannot be read or was altered
    """
    if not path.exists():
        raise StoreError("there is no ledger", field=str(path))
    found: list[tuple[bytes, bytes | None]] = []
    try:
        db = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, isolation_level=None, timeout=5)
        try:
            # One statement reads one state of the file, however long it takes.
            for row in db.execute(_ROWS):
                _check_row(row, len(found), path)
                found.append((bytes(row[2]), row[5]))
        finally:
            db.close()
    except (sqlite3.Error, TypeError) as exc:
        raise StoreError("the ledger cannot be read", field=str(path), found=str(exc)) from exc
    return found


def _check_row(row: tuple[Any, ...], index: int, path: Path) -> None:
    """Check that a row has the index and the content that it was written with.

    :raises StoreError: it does not
    """
    idx, leaf, body, account, i, private, tag = row
    if idx != index or leaf != leaf_hash(body) or tag != _tag(idx, leaf, account, i, private):
        raise StoreError("the ledger was altered", field=f"{path}, entry {index}")


def _tag(index: int, leaf: bytes, account: str | None, i: int | None, private: bytes | None) -> bytes:
    """A digest over a row's columns beside the entry itself, which its leaf hash covers."""
    kept = "-" if private is None else hashlib.sha256(private).hexdigest()
    slot = "-" if account is None else f"{i} {account}"
    return hashlib.sha256(f"{index} {leaf.hex()} {kept} {slot}".encode()).digest()
