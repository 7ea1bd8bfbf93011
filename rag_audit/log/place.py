"""Where a window's ledger is: in its folder, or in a database that a file of the folder names."""

from __future__ import annotations

import secrets
from pathlib import Path

from rag_audit._internal.canonical import jcs, read_json
from rag_audit._internal.durable import PRIVATE_MODE, replace_file
from rag_audit._internal.errors import SchemaError, StoreError
from rag_audit._internal.extras import needing
from rag_audit.log.appending import Ledger
from rag_audit.log.store import LedgerStore, read_ledger

SQLITE = "sqlite"
"""The store that a window has by default, as `provider open --store` names it."""
MAX_PLACE_BYTES = 1 << 16


def is_address(store: str) -> bool:
    """Whether the name of a store is a PostgreSQL database's address."""
    return store.startswith(("postgresql://", "postgres://"))


def choose(file: Path, store: str) -> None:
    """Record the store of a ledger that does not exist yet. Choosing the same store a second time does not change the
    ledger's name.

    :param file: `Layout.ledger_place`
    :param store: `SQLITE`, or a database's address without a password
    :raises StoreError: `store` is neither `SQLITE` nor a database address
    """
    if store == SQLITE:
        file.unlink(missing_ok=True)
        return
    if not is_address(store):
        raise StoreError("the ledger store is unknown", field="store",
                         expected=f"{SQLITE}, or postgresql://user@host/database")  # fmt: skip
    with needing("psycopg"):
        from rag_audit.log.postgres import check_address
    check_address(store)
    if file.exists() and _read(file)[0] == store:
        return
    replace_file(file, jcs({"v": 1, "store": store, "ledger": secrets.token_hex(16)}), mode=PRIVATE_MODE)


def begun(path: Path, file: Path) -> bool:
    """Whether there can be a ledger: it is in its file, or a database is named for it.

    :param path: `Layout.ledger`
    """
    return file.exists() or path.exists()


def open_ledger(path: Path, file: Path) -> Ledger:
    """Open a window's ledger to write it, and make it if it is missing.

    :raises StoreError: it cannot be opened, was altered, or another process writes it
    :raises VersionError: it has another format
    """
    if not file.exists():
        return LedgerStore(path)
    with needing("psycopg"):
        from rag_audit.log.postgres import PostgresLedger
    return PostgresLedger(*_read(file))


def ledger_rows(path: Path, file: Path) -> list[tuple[bytes, bytes | None]]:
    """Every durable entry with its private bytes, in ledger order, also while another process writes it.

    :raises StoreError: there is no ledger, or it cannot be read or was altered
    """
    if not file.exists():
        return read_ledger(path)
    with needing("psycopg"):
        from rag_audit.log.postgres import read_postgres
    return read_postgres(*_read(file))


def _read(file: Path) -> tuple[str, str]:
    value = read_json(file, max_bytes=MAX_PLACE_BYTES)
    if isinstance(value, dict) and set(value) == {"v", "store", "ledger"} and value["v"] == 1:
        store, name = value["store"], value["ledger"]
        if isinstance(store, str) and isinstance(name, str):
            return store, name
    raise SchemaError("the file does not name the place of a ledger", field=str(file))
