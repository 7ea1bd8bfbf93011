"""The part that every durable ledger shares: an append-only database table with group commit.

One writer thread collects all waiting appends and commits them in one transaction, so that one disk sync serves all of
them. The ledger acknowledges an append only after that commit is durable. Each row contains digests of its own content,
and opening the ledger checks these digests. The table cannot show that its whole tail was removed; to detect that,
compare the tree with the last signed checkpoint.

`store` implements the table in an SQLite file, `postgres` in a PostgreSQL database.
"""

from __future__ import annotations

import hashlib
import queue
import threading
from abc import abstractmethod
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, ClassVar

from rag_audit._internal.closing import Closing
from rag_audit._internal.errors import EncodingError, SizeError, StoreError
from rag_audit.log.merkle import leaf_hash

MAX_ENTRY_BYTES = 65_535
MAX_BATCH = 1024
"""Maximum number of appends in one commit."""
_PAGE = 256
ROWS = "SELECT idx, leaf, body, account, i, private, tag FROM entry ORDER BY idx"
INSERT = "INSERT INTO entry (idx, leaf, body, account, i, private, tag) VALUES (?, ?, ?, ?, ?, ?, ?)"


class SlotUsed(StoreError):
    """An earlier record uses the slot (account, i). A slot never serves a second query.

    :param index: the ledger index of that record
    """

    def __init__(self, account: str, i: int, index: int) -> None:
        super().__init__(
            "the slot is already used",
            field=f"account {account}, i {i}",
            actual=f"the record at ledger index {index}",
        )
        self.index = index


@dataclass(frozen=True)
class AppendResult:
    """A durable entry: its ledger index and RFC 9162 leaf hash."""

    index: int
    leaf_hash: bytes


@dataclass
class Append:
    """An append that waits for the writer."""

    build: Callable[[int], bytes]
    slot: tuple[str, int] | None
    private: bytes | None
    future: Future[AppendResult] = field(default_factory=Future)


class Ledger(Closing):
    """An open ledger with one writer. Safe to use from several threads.

    A subclass for one database defines how statements run. Its constructor connects to the database and calls `_start`.
    """

    _ERRORS: ClassVar[type[Exception]]
    """The exceptions that the database driver raises."""
    _REMEDY: ClassVar[str]
    """The remedy that the error gives to the operator after a failed write."""

    def __init__(self, place: str) -> None:
        self._place = place
        self._lock = threading.RLock()
        self._failure: StoreError | None = None
        self._closing = threading.Lock()
        self._closed = False
        self._size = 0
        self._queue: queue.SimpleQueue[Append | None] = queue.SimpleQueue()

    def _start(self) -> None:
        try:
            self._size = self._load()
        except BaseException:
            self._release()
            raise
        self._writer = threading.Thread(target=self._run, name=f"ledger writer {self._place}", daemon=True)
        self._writer.start()

    def append(
        self,
        entry: bytes | Callable[[int], bytes],
        *,
        slot: tuple[str, int] | None = None,
        private: bytes | None = None,
    ) -> Future[AppendResult]:
        """Append an entry; the future resolves once it is durable.

        :param entry: at most `MAX_ENTRY_BYTES`, or a function of the ledger index that the writer calls in
            ledger order. It must not wait for another thread that uses this store; its exception becomes
            the future's, and the index goes to the next append
        :param slot: (account, i); only one record may use it
        :param private: opaque bytes that the same transaction stores with the entry; they are never published
        :returns: a future; its exception is `SlotUsed`, `SizeError`, or `StoreError` if the entry could not be made
            durable. After a `StoreError` the ledger must be reopened to learn which entries are durable
        """
        request = Append(entry if callable(entry) else lambda _: entry, slot, private)
        with self._closing:
            if self._closed:
                raise StoreError("the ledger is closed", field=self._place)
            self._queue.put(request)
        return request.future

    def __len__(self) -> int:
        return self._size

    @property
    def failure(self) -> StoreError | None:
        """The error that stopped all appends until the ledger is reopened, or None."""
        return self._failure

    def entry(self, index: int) -> bytes:
        """The entry at a ledger index.

        :raises EncodingError: there is no such entry
        """
        row = self._one("SELECT body FROM entry WHERE idx = ?", index)
        if row is None:
            raise EncodingError(
                "the ledger has no such entry",
                field="index",
                expected=f"below {self._size}",
                actual=str(index),
            )
        return bytes(row[0])

    def private(self, index: int) -> bytes | None:
        """The private bytes stored with an entry, or None if the entry has none."""
        row = self._one("SELECT private FROM entry WHERE idx = ?", index)
        return None if row is None or row[0] is None else bytes(row[0])

    def slot(self, account: str, i: int) -> int | None:
        """The ledger index of the record in a slot, or None if the slot is free."""
        row = self._one("SELECT idx FROM entry WHERE account = ? AND i = ?", account, i)
        return None if row is None else int(row[0])

    def entries(self, start: int = 0) -> Iterator[bytes]:
        """All durable entries from `start` on, in ledger order."""
        while page := self._all("SELECT body FROM entry WHERE idx >= ? ORDER BY idx LIMIT ?", start, _PAGE):
            for (body,) in page:
                yield bytes(body)
            start += len(page)

    def close(self) -> None:
        """Commit the waiting appends, then release the ledger. A second call has no effect."""
        with self._closing:
            if self._closed:
                return
            self._closed = True
            self._queue.put(None)
        self._writer.join()
        self._release()

    # -- operations that each database implements -----------------------------------------------------------------

    @abstractmethod
    def _run_statement(self, statement: str, parameters: tuple[object, ...]) -> Any:
        """Execute a statement with question marks as parameters, and return its cursor."""

    @abstractmethod
    def _begin(self) -> None:
        """Begin a transaction that only the ledger's one writer can commit."""

    @abstractmethod
    def _insert_row(self, row: tuple[object, ...]) -> bool:
        """Insert a row (`INSERT`). The value is False if its slot is used; the transaction then goes on without it."""

    @abstractmethod
    def _roll_back(self) -> None:
        """End a transaction that failed, if one is open."""

    @abstractmethod
    def _load(self) -> int:
        """Become the ledger's writer, make its tables if it is new, check every row, and return the number of rows."""

    @abstractmethod
    def _release(self) -> None:
        """Release the locks and connections of this process."""

    # -- the writer ------------------------------------------------------------------------------------------

    def _run(self) -> None:
        open_ = True
        while open_:
            batch: list[Append] = []
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

    def _commit(self, batch: list[Append]) -> None:
        outcomes: list[AppendResult | Exception] = []
        with self._lock:
            try:
                if self._failure is not None:
                    raise self._failure
                self._begin()
                size = self._size
                for request in batch:
                    try:
                        outcomes.append(self._insert(request, size))
                        size += 1
                    except self._ERRORS:
                        raise
                    except Exception as exc:
                        outcomes.append(exc)
                self._execute("COMMIT")
                self._size = size
            except (self._ERRORS, StoreError) as exc:
                failure = self._fail(exc)
                outcomes = [failure for _ in batch]
        for request, outcome in zip(batch, outcomes, strict=True):
            if isinstance(outcome, AppendResult):
                request.future.set_result(outcome)
            else:
                request.future.set_exception(outcome)

    def _insert(self, request: Append, index: int) -> AppendResult:
        body = request.build(index)
        if len(body) > MAX_ENTRY_BYTES:
            raise SizeError(
                "ledger entry too large",
                field=f"entry {index}",
                expected=f"at most {MAX_ENTRY_BYTES} bytes",
                actual=f"{len(body)} bytes",
            )
        leaf = leaf_hash(body)
        account, i = request.slot or (None, None)
        row = (index, leaf, body, account, i, request.private)
        if not self._insert_row((*row, tag(index, leaf, account, i, request.private))):
            assert account is not None and i is not None
            used = self.slot(account, i)
            assert used is not None
            raise SlotUsed(account, i, used)
        return AppendResult(index, leaf)

    def _fail(self, cause: Exception) -> StoreError:
        """Stop appending: after a failed write, only reopening the ledger shows which entries became durable."""
        if self._failure is None:
            self._failure = StoreError(
                "the ledger could not be written",
                field=self._place,
                actual=str(cause).strip(),
                hint=self._REMEDY,
            )
            self._failure.__cause__ = cause
            try:
                self._roll_back()
            except self._ERRORS as exc:
                self._failure.add_note(f"and not rolled back: {exc}")
        return self._failure

    def _execute(self, statement: str, *parameters: object) -> Any:
        verb = statement.split(None, 1)[0]
        self._boundary(f"before {verb}")
        cursor = self._run_statement(statement, parameters)
        self._boundary(f"after {verb}")
        return cursor

    def _boundary(self, point: str) -> None:
        """A hook called around every writing statement. Fault-injection tests end the process in it."""

    # Any: a row has the types of its statement, which a database does not tell.
    def _one(self, statement: str, *parameters: object) -> tuple[Any, ...] | None:
        rows = self._all(statement, *parameters)
        return rows[0] if rows else None

    def _all(self, statement: str, *parameters: object) -> list[tuple[Any, ...]]:
        with self._lock:
            try:
                result: list[tuple[Any, ...]] = self._run_statement(statement, parameters).fetchall()
            except self._ERRORS as exc:
                raise StoreError(
                    "the ledger cannot be read", field=self._place, actual=str(exc).strip()
                ) from exc
            return result


def check_row(row: tuple[Any, ...], index: int, place: str) -> None:
    """Check that a row has the index and the content that it was written with.

    :raises StoreError: index or content differ
    """
    idx, leaf, body, account, i, private, result = row
    if idx != index or leaf != leaf_hash(body) or result != tag(idx, leaf, account, i, private):
        raise StoreError("the ledger was altered", field=f"{place}, entry {index}")


def tag(index: int, leaf: bytes, account: str | None, i: int | None, private: bytes | None) -> bytes:
    """A digest over all columns of a row except the entry, which its leaf hash covers."""
    kept = "-" if private is None else hashlib.sha256(private).hexdigest()
    slot = "-" if account is None else f"{i} {account}"
    return hashlib.sha256(f"{index} {leaf.hex()} {kept} {slot}".encode()).digest()
