"""The request to a source, and the source's rows."""

from __future__ import annotations

import re
from collections.abc import Collection, Generator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from rag_audit._internal.errors import RagAuditError
from rag_audit._internal.printable import without_userinfo


@dataclass(frozen=True, slots=True)
class Row:
    """A source's row.

    :param place: its name for errors: the file with the row's line or number, or a point's id
    :param values: its values by the name of their column
    :param error: why the row cannot be read, if the rows after it can; it has no values then
    """

    place: str
    values: Mapping[str, object]
    error: RagAuditError | None = None


Rows: TypeAlias = Generator[Row, None, None]
"""A source's rows. Closing the generator ends its connection, or unlocks its files, at once."""


@dataclass(frozen=True)
class Asked:
    """The parameters of a request to a source.

    :param place: a file, ``qdrant://host:port/collection``, ``qdrant:FOLDER/collection``, or ``postgresql://..``
    :param query: the SQL statement; each row of its result is a document
    :param texts: the file with the texts of a faiss index
    :param without: columns that the source may skip; a source may also return them
    """

    place: str
    query: str | None = None
    texts: Path | None = None
    without: Collection[str] = ()

    @property
    def shown(self) -> str:
        """The place as an error shows it, without a password.

        libpq takes a password before the host and among the parameters.
        """
        if self.place.startswith(("postgres:", "postgresql:")):
            shown = re.sub(r"(?<=[?&])((?:ssl)?password)=[^&]*", r"\1=***", self.place)
            return re.sub(r"(//[^/@:]*):.*@", r"\1:***@", shown)
        return without_userinfo(self.place) if "://" in self.place else self.place
