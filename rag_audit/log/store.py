"""The provider's durable ledger in an SQLite file, the default store. `appending` defines the guarantees of a ledger.

SQLite runs with a write-ahead log and ``synchronous=FULL``. A commit is one sequential write and one fsync, where a
rollback journal needs three. The log's frames carry checksums, so the next opening of the file recognises and truncates
a write that a crash interrupted. The ledger acknowledges an append only after that fsync. A ledger has one writer,
which locks a lock file in the same folder; other processes may read the durable entries at the same time
(`read_ledger`).
"""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

from rag_audit._internal.durable import PRIVATE_MODE, sync_directory
from rag_audit._internal.errors import StoreError, VersionError
from rag_audit._internal.lock import lock_file
from rag_audit.log.appending import (
    INSERT,
    MAX_BATCH,
    MAX_ENTRY_BYTES,
    ROWS,
    AppendResult,
    Ledger,
    SlotUsed,
    check_row,
)

__all__ = ["MAX_BATCH", "MAX_ENTRY_BYTES", "AppendResult", "LedgerStore", "SlotUsed", "read_ledger"]

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


class LedgerStore(Ledger):
    """An open ledger file, which is created if it is missing. Safe to use from several threads.

    :raises StoreError: the file is unreadable, altered (the first such entry is named), or open in another process
    :raises VersionError: the file has another format
    """

    _ERRORS = sqlite3.Error
    _REMEDY = "free disk space or raise the file size limit, and then reopen the window"

    def __init__(self, path: Path) -> None:
        super().__init__(str(path))
        self._path = path
        self._handle = self._lock_file()
        try:
            self._db = self._open()
        except BaseException:
            os.close(self._handle)
            raise
        self._start()

    # -- the writer ----------------------------------------------------------------------------------------

    def _run_statement(self, statement: str, parameters: tuple[object, ...]) -> sqlite3.Cursor:
        return self._db.execute(statement, parameters)

    def _begin(self) -> None:
        self._execute("BEGIN IMMEDIATE")

    def _insert_row(self, row: tuple[object, ...]) -> bool:
        try:
            self._execute(INSERT, *row)
        except sqlite3.IntegrityError:
            account, i = row[3:5]
            if not isinstance(account, str) or not isinstance(i, int) or self.slot(account, i) is None:
                raise
            return False
        return True

    def _roll_back(self) -> None:
        if self._db.in_transaction:
            self._db.execute("ROLLBACK")

    def _release(self) -> None:
        self._db.close()
        os.close(self._handle)

    # -- opening and reading -------------------------------------------------------------------------------------

    def _lock_file(self) -> int:
        """Take the ledger's writer lock. A permanent lock by SQLite itself would also exclude readers."""
        try:
            handle = lock_file(self._path.with_name(f"{self._path.name}.lock"), wait=False)
        except StoreError as exc:
            raise StoreError("the ledger cannot be opened", field=str(self._path), actual=exc.actual) from exc
        if handle is None:
            raise StoreError("the ledger cannot be opened", field=str(self._path), actual="a writer has locked it",
                             hint="another process has the window open")  # fmt: skip
        return handle

    def _open(self) -> sqlite3.Connection:
        try:
            # SQLite would make the file with the umask's mode, and does not sync the directory's new name.
            os.close(os.open(self._path, os.O_RDWR | os.O_CREAT, PRIVATE_MODE))
            sync_directory(self._path.parent)
            return sqlite3.connect(self._path, isolation_level=None, check_same_thread=False, timeout=0)
        except (sqlite3.Error, OSError) as exc:
            raise StoreError("the ledger cannot be opened", field=str(self._path), actual=str(exc)) from exc

    def _load(self) -> int:
        self._prepare()
        return self._verify()

    def _prepare(self) -> None:
        """Recover the log, and make the table in a new file."""
        try:
            for setting in ("journal_mode = WAL", "synchronous = FULL", "fullfsync = ON"):
                self._execute(f"PRAGMA {setting}")
            self._execute("BEGIN IMMEDIATE")
            actual = tuple(self._one(f"PRAGMA {name}") for name in ("application_id", "user_version"))
            if actual == ((0,), (0,)) and self._one("SELECT 1 FROM sqlite_schema") is None:
                self._execute(_SCHEMA)
                self._execute(f"PRAGMA application_id = {_APPLICATION_ID}")
                self._execute(f"PRAGMA user_version = {_FORMAT}")
            elif actual != ((_APPLICATION_ID,), (_FORMAT,)):
                raise VersionError(
                    "the file is not a ledger of this format",
                    field=str(self._path),
                    expected=f"application ({_APPLICATION_ID},), version ({_FORMAT},)",
                    actual="application {}, version {}".format(*actual),
                )
            self._execute("COMMIT")
        except sqlite3.Error as exc:
            hint = "another process has the window open" if "locked" in str(exc) else None
            raise StoreError(
                "the ledger cannot be opened", field=str(self._path), actual=str(exc), hint=hint
            ) from exc

    def _verify(self) -> int:
        """Check every row, and return the number of rows."""
        size = 0
        try:
            for row in self._db.execute(ROWS):
                check_row(row, size, str(self._path))
                size += 1
        except (sqlite3.Error, TypeError) as exc:
            raise StoreError(
                "the ledger is damaged", field=f"{self._path}, entry {size}", actual=str(exc)
            ) from exc
        return size


def read_ledger(path: Path) -> list[tuple[bytes, bytes | None]]:
    """Every durable entry of a ledger with its private bytes, in ledger order, also while another process writes it.

    :raises StoreError: there is no ledger, or it cannot be read or was altered
    """
    if not path.exists():
        raise StoreError("the folder contains no ledger", field=str(path))
    result: list[tuple[bytes, bytes | None]] = []
    try:
        db = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, isolation_level=None, timeout=5)
        try:
            # One statement reads one state of the file, however long it takes.
            for row in db.execute(ROWS):
                check_row(row, len(result), str(path))
                result.append((bytes(row[2]), row[5]))
        finally:
            db.close()
    except (sqlite3.Error, TypeError) as exc:
        raise StoreError("the ledger cannot be read", field=str(path), actual=str(exc)) from exc
    return result
