"""What a source is asked, and what it gives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

Row = Mapping[str, object]
"""A source's row: its values by the name of their column."""


@dataclass(frozen=True)
class Asked:
    """What is asked of a source.

    :param place: a file, ``qdrant://host:port/collection``, ``qdrant:FOLDER/collection``, or ``postgresql://..``
    :param query: the SQL statement whose rows are documents
    :param texts: the file with the texts of a faiss index
    """

    place: str
    query: str | None = None
    texts: Path | None = None
