"""The provider's durable ledger in a PostgreSQL database, for services that several hosts can take over.

Each ledger has its own schema, so it uses the same statements as the SQLite file. The server must give the same
guarantee as the file: a commit returns after the write-ahead log is on the disk (``synchronous_commit``, ``fsync``).
Otherwise opening the ledger fails.

One process writes. It takes an advisory lock on its writing connection, so the lock ends with that connection. Each
transaction of appends also checks that its session still has the lock, and that no other process has opened the ledger
since (`writer.epoch`). A pooler that swaps sessions, or a writer that was wrongly presumed dead, therefore commits no
entry.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import socket
from typing import Any, cast

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from rag_audit._internal.errors import StoreError, VersionError
from rag_audit.log.appending import INSERT, ROWS, Ledger, check_row

_FORMAT = 1
_FETCHED = 256
_SCHEMA = (
    "CREATE SCHEMA {schema}",
    """
CREATE TABLE {schema}.entry (
    idx BIGINT PRIMARY KEY,
    leaf BYTEA NOT NULL,
    body BYTEA NOT NULL,
    account TEXT,
    i BIGINT,
    private BYTEA,
    tag BYTEA NOT NULL,
    UNIQUE (account, i),
    CHECK ((account IS NULL) = (i IS NULL))
)
""",
    "CREATE TABLE {schema}.writer (format INTEGER NOT NULL, epoch BIGINT NOT NULL, who TEXT NOT NULL)",
    f"INSERT INTO {{schema}}.writer (format, epoch, who) VALUES ({_FORMAT}, 0, '')",
)
_FENCE = """
SELECT epoch, EXISTS (
    SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND granted AND pid = pg_backend_pid()
    AND classid = ?::oid AND objid = ?::oid AND objsubid = 1
) FROM writer FOR SHARE
"""
_DEFAULTS = {
    "application_name": "rag-audit",
    "connect_timeout": "10",
    # Both ends notice a vanished host within half a minute. Its lock remains until then.
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "30000",
}
_SETTINGS = (
    "SET tcp_keepalives_idle = 10",
    "SET tcp_keepalives_interval = 5",
    "SET tcp_keepalives_count = 3",
    "SET idle_session_timeout = 0",
)


class PostgresLedger(Ledger):
    """An open ledger in a PostgreSQL database. The constructor creates a missing ledger. Safe to use from several
    threads.

    :param address: an address in libpq's syntax, without a password
    :param name: 32 hexadecimal digits that identify the ledger in its database
    :raises StoreError: the database does not answer, its commits are not durable, a row was altered (the error names
        the first such row), or another process writes the ledger (the error names it)
    :raises VersionError: the ledger has another format
    """

    _ERRORS = psycopg.Error
    _REMEDY = "reopen the window after the database answers"

    def __init__(self, address: str, name: str) -> None:
        super().__init__(place_of(address, name))
        self._schema = _schema_of(name)
        self._key = int.from_bytes(hashlib.sha256(self._schema.encode()).digest()[:8], "big") >> 1
        self._epoch = -1
        self._db = _connect(address, self._place)
        self._start()

    # -- the writer ------------------------------------------------------------------------------------------

    def _run_statement(self, statement: str, parameters: tuple[object, ...]) -> psycopg.Cursor[Any]:
        # The statements are this package's own, and have no other question mark and no percent sign.
        cursor = self._db.execute(cast(Any, statement.replace("?", "%s")), parameters or None)
        if statement == "COMMIT" and cursor.statusmessage != "COMMIT":
            raise psycopg.OperationalError(
                "the transaction was rolled back"
            )  # the server calls that no error
        return cursor

    def _begin(self) -> None:
        self._execute("BEGIN")
        result = self._one(_FENCE, self._key >> 32, self._key & 0xFFFF_FFFF)
        if result != (self._epoch, True):
            raise StoreError("this process is no longer the ledger's writer", field=self._place)

    def _insert_row(self, row: tuple[object, ...]) -> bool:
        # An error would end the whole transaction here, with the appends of others.
        return bool(self._execute(f"{INSERT} ON CONFLICT (account, i) DO NOTHING", *row).rowcount)

    def _roll_back(self) -> None:
        """The connection ends, and with it the lock: another host may take the ledger over."""
        self._db.close()

    def _release(self) -> None:
        # The server notices the end of a connection a little later: a successor need not wait for that.
        with contextlib.suppress(psycopg.Error):
            self._execute("SELECT pg_advisory_unlock(?)", self._key)
        self._db.close()

    # -- opening and reading -------------------------------------------------------------------------------------

    def _load(self) -> int:
        self._prepare()
        return self._verify()

    def _prepare(self) -> None:
        """Become the ledger's writer, and make its tables if it is new."""
        try:
            for setting in _SETTINGS:
                with contextlib.suppress(psycopg.errors.UndefinedObject):  # an older server's
                    self._execute(setting)
            self._execute(f"SET search_path TO {self._schema}")
            self._check_server()
            if self._one("SELECT pg_try_advisory_lock(?)", self._key) != (True,):
                raise StoreError("another process writes this ledger", field=self._place, actual=self._holder(),
                                 hint="stop that process first; its lock ends with its connection")  # fmt: skip
            self._execute("BEGIN")
            if self._one("SELECT to_regnamespace(?)::text", self._schema) == (None,):
                for statement in _SCHEMA:
                    self._execute(statement.format(schema=self._schema))
            who = f"{socket.gethostname()}, process {os.getpid()}"
            actual = self._one("UPDATE writer SET epoch = epoch + 1, who = ? RETURNING epoch, format", who)
            if actual is None or actual[1] != _FORMAT:
                raise VersionError("the ledger has another format", field=self._place, expected=_FORMAT,
                                   actual=actual and actual[1])  # fmt: skip
            self._epoch = actual[0]
            self._execute("COMMIT")
        except psycopg.Error as exc:
            raise StoreError(
                "the ledger cannot be opened", field=self._place, actual=str(exc).strip()
            ) from exc

    def _check_server(self) -> None:
        """Refuse a server that would lose committed data in a crash."""
        if self._one("SHOW synchronous_commit") not in (("on",), ("remote_apply",)):
            self._execute("SET synchronous_commit = on")
        settings = {"synchronous_commit": ("on", "remote_apply"), "fsync": ("on",), "full_page_writes": ("on",),
                    "transaction_read_only": ("off",)}  # fmt: skip
        for setting, wanted in settings.items():
            actual = self._one(f"SHOW {setting}")
            if actual is None or actual[0] not in wanted:
                raise StoreError("the server does not store committed data durably", field=f"{self._place}, {setting}",
                                 expected=wanted[0], actual=actual and actual[0])  # fmt: skip

    def _holder(self) -> str:
        with contextlib.suppress(StoreError):  # it is just making the tables
            if result := self._one("SELECT who FROM writer"):
                return str(result[0])
        return "a process that is opening it"

    def _verify(self) -> int:
        """Check every row, and return the number of rows."""
        size = 0
        try:
            for row in _rows(self._db):
                check_row(row, size, self._place)
                size += 1
        except (psycopg.Error, TypeError) as exc:
            raise StoreError("the ledger is damaged", field=f"{self._place}, entry {size}",
                             actual=str(exc).strip()) from exc  # fmt: skip
        return size


def read_postgres(address: str, name: str) -> list[tuple[bytes, bytes | None]]:
    """Every durable entry of a ledger with its private bytes, in ledger order, also while another process writes it.

    :raises StoreError: there is no ledger, or it cannot be read or was altered
    """
    place = place_of(address, name)
    result: list[tuple[bytes, bytes | None]] = []
    db = _connect(address, place)
    try:
        db.execute(cast(Any, f"SET search_path TO {_schema_of(name)}"))
        db.read_only = True
        for row in _rows(db):
            check_row(row, len(result), place)
            result.append((bytes(row[2]), row[5]))
    except (psycopg.Error, TypeError) as exc:
        raise StoreError("the ledger cannot be read", field=place, actual=str(exc).strip()) from exc
    finally:
        db.close()
    return result


def check_address(address: str) -> str:
    """Check an address, which must contain no password. libpq supplies the password (PGPASSWORD, ~/.pgpass, a service
    file).

    :raises StoreError: libpq cannot read it, or it has a password; neither is shown
    """
    try:
        parts = conninfo_to_dict(address)
    except psycopg.Error as exc:
        raise StoreError("the database's address cannot be read", field="store",
                         expected="postgresql://user@host/database") from exc  # fmt: skip
    if secret := [name for name in parts if "password" in name]:
        raise StoreError("the database's address has a password", field=f"store, {secret[0]}",
                         hint="~/.pgpass or PGPASSWORD supplies the password, and no file of a window contains"
                              " it")  # fmt: skip
    return address


def place_of(address: str, name: str) -> str:
    """How errors name a ledger: host, database and schema."""
    parts = conninfo_to_dict(check_address(address))
    host = parts.get("host") or parts.get("hostaddr") or parts.get("service") or "the default host"
    return f"PostgreSQL on {host}, database {parts.get('dbname') or 'by default'}, schema {_schema_of(name)}"


def _schema_of(name: str) -> str:
    if re.fullmatch(r"[0-9a-f]{32}", name) is None:
        raise StoreError("the ledger's name is malformed", field="ledger", expected="32 hexadecimal digits")
    return f"rag_audit_{name}"


def _connect(address: str, place: str) -> psycopg.Connection[Any]:
    try:
        given = conninfo_to_dict(address)
        return psycopg.connect(make_conninfo(address, **{k: v for k, v in _DEFAULTS.items() if k not in given}),
                               autocommit=True)  # fmt: skip
    except psycopg.Error as exc:
        raise StoreError("the database does not answer", field=place, actual=str(exc).strip(),
                         hint="its password is read from ~/.pgpass or PGPASSWORD") from exc  # fmt: skip


def _rows(db: psycopg.Connection[Any]) -> Any:
    """All rows in the ledger's order, from one state of the table. Only one page of rows is in memory at a time."""
    with db.transaction(), db.cursor(name="ledger") as cursor:
        cursor.itersize = _FETCHED
        cursor.execute(ROWS)
        yield from cursor
