"""The provider's documents, by tenant and position, which leave the store only as answers."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Collection, Mapping
from pathlib import Path

from rag_audit._internal.closing import Closing
from rag_audit._internal.errors import StoreError
from rag_audit.models.passage import Passage

_TABLES = (
    """
CREATE TABLE IF NOT EXISTS documents (
    tenant TEXT NOT NULL,
    position INTEGER NOT NULL CHECK (position >= 0),
    text TEXT NOT NULL,
    PRIMARY KEY (tenant, position)
) STRICT, WITHOUT ROWID
""",
    """
CREATE TABLE IF NOT EXISTS metadata (
    tenant TEXT NOT NULL,
    position INTEGER NOT NULL CHECK (position >= 0),
    value TEXT NOT NULL,
    PRIMARY KEY (tenant, position)
) STRICT, WITHOUT ROWID
""",
)
"""Texts, and of those documents that have any the metadata as canonical JSON."""


class DocumentStore(Closing):
    """Texts and their metadata in one SQLite file that only its owner can read.

    :raises StoreError: the file cannot be opened, is damaged, or cannot be written; every method may raise it
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
            self._connection = sqlite3.connect(path, check_same_thread=False)
            with self._connection:
                for table in _TABLES:
                    self._connection.execute(table)
        except (OSError, sqlite3.Error) as exc:
            raise self._error("the document store cannot be opened", exc) from exc

    def replace(self, tenant: str, documents: Mapping[int, Passage]) -> None:
        """Replace the tenant's documents, all of them or none.

        :param documents: documents by position; a position that is absent is empty
        """
        try:
            with self._connection:
                self._connection.execute("DELETE FROM documents WHERE tenant = ?", (tenant,))
                self._connection.execute("DELETE FROM metadata WHERE tenant = ?", (tenant,))
                self._connection.executemany(
                    "INSERT INTO documents VALUES (?, ?, ?)",
                    ((tenant, position, document.text) for position, document in documents.items()),
                )
                self._connection.executemany(
                    "INSERT INTO metadata VALUES (?, ?, ?)",
                    (
                        (tenant, p, d.metadata.decode())
                        for p, d in documents.items()
                        if d.metadata is not None
                    ),
                )
        except (sqlite3.Error, UnicodeEncodeError) as exc:
            raise self._error("the documents cannot be stored", exc) from exc

    def keep(self, tenants: Collection[str]) -> None:
        """Delete the documents of all tenants but these."""
        for tenant in set(self.tenants()) - set(tenants):
            self.replace(tenant, {})

    def passages(self, tenant: str) -> dict[int, Passage]:
        """All documents of a tenant by position."""
        try:
            rows = self._connection.execute(
                "SELECT position, text, value FROM documents LEFT JOIN metadata USING (tenant, position)"
                " WHERE tenant = ? ORDER BY position",
                (tenant,),
            )
            return {
                position: Passage.stored(text, value, field=f"{self._path.name}, position {position}")
                for position, text, value in rows
            }
        except sqlite3.Error as exc:
            raise self._error("the documents cannot be read", exc) from exc

    def tenants(self) -> list[str]:
        """The tenants that have texts."""
        try:
            return [name for (name,) in self._connection.execute("SELECT DISTINCT tenant FROM documents")]
        except sqlite3.Error as exc:
            raise self._error("the documents cannot be read", exc) from exc

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def _error(self, message: str, cause: Exception) -> StoreError:
        return StoreError(message, field=str(self._path), actual=str(cause))
