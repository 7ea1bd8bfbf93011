"""A provider's book of enrolment requests: waiting requests, decided requests, and the service's answers to them.

One SQLite file, which a running service and the provider's commands use at the same time. A request is durable before
the service acknowledges it. A decision is one transaction, whatever the number of its requests.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from rag_audit._internal.canonical import Json, parse_json
from rag_audit._internal.closing import Closing
from rag_audit._internal.durable import PRIVATE_MODE
from rag_audit._internal.errors import RagAuditError, SchemaError, StoreError, WindowStateError
from rag_audit.log.signing import SigningKey
from rag_audit.models.enrolling import MAX_REASON, EnrolmentAnswer, EnrolmentOffer, EnrolmentRequest, Standing
from rag_audit.models.records import RosterEntry
from rag_audit.models.roster import signed_by_roster

MAX_PENDING = 32_768
"""Maximum number of requests that wait for a decision, without the requests signed by their account's key on the
roster."""
MAX_SIGNED = 16
"""Maximum waiting requests of one account that its present key on the roster signed. Other parties, and holders of a
replaced key, cannot make such requests, so they cannot exhaust this number."""
RECOUNT = 256
"""Number of requests that the book takes between two counts of the waiting requests."""
_APPLICATION_ID = 0x52_41_45_4E
_VERSION = 1
_SCHEMA = """
CREATE TABLE request (digest TEXT PRIMARY KEY, window TEXT NOT NULL, account TEXT NOT NULL, body BLOB NOT NULL,
  status TEXT NOT NULL, reason TEXT NOT NULL, seq INTEGER, due INTEGER NOT NULL,
  received INTEGER NOT NULL, signed INTEGER NOT NULL) WITHOUT ROWID;
CREATE INDEX standing ON request (status, signed, account);
CREATE INDEX due ON request (window) WHERE due;
"""
_WAIT_S = 10.0
"""Maximum time that another process may lock the file."""


class TooMany(RagAuditError):
    """Too many enrolment requests wait for the provider's decision."""


@dataclass(frozen=True)
class StoredRequest:
    """A request in the book.

    :param seq: the index of the account's entry, once it is enrolled
    :param received: when the request came, in milliseconds since the epoch
    :param signed: whether the key that the account had on the roster, when the request came, signed the request
    """

    request: EnrolmentRequest
    status: Standing
    reason: str
    seq: int | None
    received: int
    signed: bool


class EnrolmentBook(Closing):
    """The book in its file, which is made with mode 0600 if it is missing. Safe to use from several threads.

    :raises StoreError: the file cannot be opened, or is something else
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._room = 0
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch(mode=PRIVATE_MODE)
        except OSError as exc:
            raise StoreError(
                "the book of enrolments cannot be made", field=str(path), actual=exc.strerror
            ) from exc
        self._db = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=_WAIT_S)
        try:
            with self._failing():
                self._db.execute("PRAGMA journal_mode = WAL")
                self._db.execute("PRAGMA synchronous = FULL")
                with self._transaction():
                    self._prepare()
        except BaseException:
            self._db.close()
            raise

    def _prepare(self) -> None:
        result = self._db.execute("PRAGMA application_id").fetchone()[0]
        if result == 0 and self._db.execute("SELECT 1 FROM sqlite_schema").fetchone() is None:
            for statement in _SCHEMA.split(";")[:-1]:
                self._db.execute(statement)
            self._db.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
            self._db.execute(f"PRAGMA user_version = {_VERSION}")
        elif result != _APPLICATION_ID:
            raise StoreError("the file is not a book of enrolments", field=str(self._path))
        elif (version := self._db.execute("PRAGMA user_version").fetchone()[0]) != _VERSION:
            raise StoreError(
                "the book of enrolments has another version", field=str(self._path), expected=_VERSION, actual=version,
                hint="decide its requests with the release that wrote it, and then move the file",
            )  # fmt: skip

    # -- requests --------------------------------------------------------------------------------------------

    def take(
        self, request: EnrolmentRequest, now: int, windows: Sequence[str], *, signed: bool = False
    ) -> StoredRequest:
        """Store a checked request, unless it is already stored, and return its state.

        Any party can send a request under any id, so no number of requests under an id may exclude the owner of the id.
        Requests without a signature by the roster's key share `MAX_PENDING` places. When these are full, the book first
        drops requests for windows that may no longer be named, and then the oldest requests under the id with the most
        requests. Many requests under one id therefore displace only requests under that id. Requests signed by the
        roster's key are counted separately, and no other request displaces them.

        :param windows: the windows that requests may name
        :param signed: whether the account's key on the roster signed the request
        :raises TooMany: `MAX_SIGNED` requests signed by the same key of the account wait; or `MAX_PENDING` others wait,
            each under a different id
        """
        digest = request.digest()
        with self._lock, self._failing(), self._transaction():
            if (known := self._find(digest)) is not None:
                return known
            if signed:
                self._make_room_for_signed(request, windows)
            else:
                self._make_room(windows)
                self._room -= 1
            self._db.execute(
                "INSERT INTO request VALUES (?, ?, ?, ?, 'pending', '', NULL, 0, ?, ?)",
                (digest, request.window, request.account, request.canonical(), now, int(signed)),
            )
        return StoredRequest(request, "pending", "", None, now, signed)

    def _make_room_for_signed(self, request: EnrolmentRequest, windows: Sequence[str]) -> None:
        """Check that the account has a place for one more request that the roster's key signed.

        Requests that an earlier key of the account signed wait without taking a place: that key may be the stolen one.
        """
        waiting = self._signed_by_same(request)
        if len(waiting) >= MAX_SIGNED:
            gone = [digest for digest, window in waiting if window not in windows]
            self._db.executemany("DELETE FROM request WHERE digest = ?", [(digest,) for digest in gone])
            if len(waiting) - len(gone) >= MAX_SIGNED:
                raise TooMany(
                    "too many requests that this account's key signed wait for the provider's decision",
                    field=request.account, expected=f"at most {MAX_SIGNED}",
                    hint="the provider has to decide the waiting requests first",
                )  # fmt: skip

    def _signed_by_same(self, request: EnrolmentRequest) -> list[tuple[str, str]]:
        """Digest and window of the account's requests that wait and that the same key on the roster signed."""
        rows = self._db.execute(
            f"{_SELECT} WHERE status = 'pending' AND signed AND account = ?", (request.account,)
        )
        result = [_kept(row).request for row in rows]
        return [(other.digest(), other.window) for other in result if other.previous == request.previous]

    def _make_room(self, windows: Sequence[str]) -> None:
        """Count the waiting requests at intervals of requests: a count for each request would make their cost grow
        with their number."""
        if self._room <= 0:
            self._recount()
        if self._room <= 0:
            marks = ",".join("?" * len(windows))
            self._db.execute(f"DELETE FROM request WHERE {_OPEN} AND window NOT IN ({marks})", tuple(windows))
            self._recount()
        if self._room <= 0:
            self._displace()
            self._recount()
        if self._room <= 0:
            raise TooMany(
                "too many enrolment requests wait for the provider's decision",
                expected=f"at most {MAX_PENDING}",
            )

    def _recount(self) -> None:
        self._room = min(RECOUNT, MAX_PENDING - self._waiting())

    def _displace(self) -> None:
        """Delete the oldest requests under the id with the most requests, up to half of them; none if each id has
        one."""
        result = self._db.execute(
            f"SELECT account, count(*) FROM request WHERE {_OPEN} GROUP BY account ORDER BY 2 DESC, 1 LIMIT 1"
        ).fetchone()
        if result is not None and result[1] > 1:
            self._db.execute(
                f"DELETE FROM request WHERE digest IN (SELECT digest FROM request WHERE {_OPEN} AND account = ?"
                " ORDER BY received, digest LIMIT ?)",
                (result[0], min(RECOUNT, result[1] // 2)),
            )

    def find(self, digest: str) -> StoredRequest | None:
        """The request with this digest, or None."""
        with self._lock, self._failing():
            return self._find(digest)

    def requests(self, status: Standing | None = "pending", window: str | None = None) -> list[StoredRequest]:
        """The requests of a status and a window, or of all, by account; requests signed by the roster's key come
        first."""
        return self._rows("(?1 IS NULL OR status = ?1) AND (?2 IS NULL OR window = ?2)", status, window)

    def due(self, window: str, maximum: int) -> list[StoredRequest]:
        """Approved requests without an entry in the window that they name, in the order of their arrival. The window
        may be open."""
        return self._rows(
            "due AND window = ?", window, maximum, order="ORDER BY received, account, digest LIMIT ?"
        )

    # -- decisions -------------------------------------------------------------------------------------------

    def decide(self, requests: Iterable[EnrolmentRequest], status: Standing, reason: str = "") -> int:
        """Approve or reject requests that wait, all of them or none.

        :returns: how many did wait
        """
        rows = [(status, reason[:MAX_REASON], int(status == "approved"), r.digest()) for r in requests]
        with self._lock, self._failing(), self._transaction():
            return sum(
                self._db.execute(
                    "UPDATE request SET status = ?, reason = ?, due = ? WHERE digest = ? AND status = 'pending'",
                    row,
                ).rowcount
                for row in rows
            )

    def enrolled(self, entries: Iterable[tuple[EnrolmentRequest, int]]) -> None:
        """Note the entries of approved requests."""
        rows = [(seq, request.digest()) for request, seq in entries]
        with self._lock, self._failing(), self._transaction():
            self._db.executemany(
                "UPDATE request SET status = 'enrolled', reason = '', due = 0, seq = ? WHERE digest = ?", rows
            )

    def put_off(self, requests: Iterable[tuple[EnrolmentRequest, str]]) -> None:
        """Note that approved accounts are not written to the log of their window, and why; they are on the roster."""
        rows = [(reason[:MAX_REASON], request.digest()) for request, reason in requests]
        with self._lock, self._failing(), self._transaction():
            self._db.executemany("UPDATE request SET due = 0, reason = ? WHERE digest = ?", rows)

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._db.close()

    # -- rows ------------------------------------------------------------------------------------------------

    def _find(self, digest: str) -> StoredRequest | None:
        row = self._db.execute(f"{_SELECT} WHERE digest = ?", (digest,)).fetchone()
        return None if row is None else _kept(row)

    def _rows(
        self, where: str, *values: object, order: str = "ORDER BY account, signed DESC, digest"
    ) -> list[StoredRequest]:
        with self._lock, self._failing():
            result = self._db.execute(f"{_SELECT} WHERE {where} {order}", values).fetchall()
        return [_kept(row) for row in result]

    def _waiting(self) -> int:
        return self._one(f"SELECT count(*) FROM request WHERE {_OPEN}")

    def _one(self, statement: str, *values: object) -> int:
        return int(self._db.execute(statement, values).fetchone()[0])

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")

    @contextmanager
    def _failing(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as exc:
            raise StoreError(
                "the book of enrolments cannot be used", field=str(self._path), actual=str(exc)
            ) from exc


_OPEN = "status = 'pending' AND NOT signed"
"""Selects the waiting requests without a signature by the roster's key."""
_SELECT = "SELECT body, status, reason, seq, received, signed FROM request"


def _kept(row: tuple[bytes, str, str, int | None, int, int]) -> StoredRequest:
    body, status, reason, seq, received, signed = row
    request = EnrolmentRequest.parse(parse_json(body, source="book of enrolments"), field="request")
    return StoredRequest(request, cast("Standing", status), reason, seq, received, bool(signed))


class Intake:
    """Computes a service's answers to enrolment requests.

    :param key: the provider's key
    :param windows: the windows that requests may name
    :param open_: the open window, or None
    :param roster: returns the roster line of an account, or None
    """

    def __init__(
        self,
        book: EnrolmentBook,
        key: SigningKey,
        origin: str,
        *,
        windows: Callable[[], Sequence[str]],
        open_: Callable[[], str | None],
        clock: Callable[[], int],
        roster: Callable[[str], RosterEntry | None],
    ) -> None:
        self._roster = roster
        self._book, self._key, self._origin = book, key, origin
        self._windows, self._open, self._clock = windows, open_, clock

    def offer(self) -> EnrolmentOffer:
        """For which windows requests are taken now."""
        return EnrolmentOffer(origin=self._origin, windows=list(self._windows()), open=self._open())

    def answer(self, value: Json) -> EnrolmentAnswer:
        """Store a request, if it is new, and return its state.

        :raises SchemaError: the value is no request, or it is for another provider
        :raises WindowStateError: the request names a window that takes no requests
        :raises SignatureError: the request's key did not sign it
        :raises TooMany: too many requests wait (`EnrolmentBook.take`)
        :raises StoreError: the request cannot be stored
        """
        request = EnrolmentRequest.parse(value, field="request")
        if (known := self._book.find(request.digest())) is None:
            windows = list(self._windows())
            if request.origin == self._origin and request.window not in windows:
                raise WindowStateError("the provider accepts no enrolment for that window", field="request.window",
                                       expected=" or ".join(windows) or "none at the moment", actual=request.window,
                                       hint="choose one of the windows that GET /v1/enrolments lists")  # fmt: skip
            if request.previous == request.key:
                raise SchemaError("the request replaces a key with the same key", field="request.previous")
            request.check(origin=self._origin, window=request.window)
            # `check` has verified the signature of `previous`. The roster tells whether `previous` is the account's
            # key.
            signed = request.previous is not None and signed_by_roster(request, self._roster(request.account))
            known = self._book.take(request, self._clock(), windows, signed=signed)
        return EnrolmentAnswer.sign(request, self._key, known.status, known.reason, known.seq)
