"""The provider's texts, by tenant and position, which leave the store only as answers."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from rag_audit.errors import StoreError

_SCHEMA = """
CREATE TABLE IF NOT EXISTS documents (
    tenant TEXT NOT NULL,
    position INTEGER NOT NULL CHECK (position >= 0),
    text TEXT NOT NULL,
    PRIMARY KEY (tenant, position)
) STRICT, WITHOUT ROWID
"""


class DocumentStore:
    """Texts in one SQLite file that only its owner can read.

    :raises StoreError: the file cannot be opened, is damaged, or cannot be written; every method may raise it
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
            self._connection = sqlite3.connect(path, check_same_thread=False)
            with self._connection:
                self._connection.execute(_SCHEMA)
        except (OSError, sqlite3.Error) as exc:
            raise self._error("the document store cannot be opened", exc) from exc

    def replace(self, tenant: str, texts: Mapping[int, str]) -> None:
        """Replace the tenant's texts, all of them or none.

        :param texts: texts by position; a position that is absent is empty
        """
        try:
            with self._connection:
                self._connection.execute("DELETE FROM documents WHERE tenant = ?", (tenant,))
                self._connection.executemany(
                    "INSERT INTO documents VALUES (?, ?, ?)",
                    ((tenant, position, text) for position, text in texts.items()),
                )
        except (sqlite3.Error, UnicodeEncodeError) as exc:
            raise self._error("the documents cannot be stored", exc) from exc

    def texts(self, tenant: str) -> dict[int, str]:
        """All texts of a tenant by position."""
        try:
            rows = self._connection.execute(
                "SELECT position, text FROM documents WHERE tenant = ? ORDER BY position", (tenant,)
            )
            return {position: text for position, text in rows}
        except sqlite3.Error as exc:
            raise self._error("the documents cannot be read", exc) from exc

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _error(self, message: str, cause: Exception) -> StoreError:
        return StoreError(message, field=str(self._path), found=str(cause))
