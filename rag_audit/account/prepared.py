"""Questions that an account has written down and not asked yet.

A question gets its number and its signature when the account asks it, since a provider answers the numbers of an
account in their order. A question that is only prepared therefore blocks no other question, and can be dropped at any
time.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from pathlib import Path

from rag_audit._internal.canonical import read_json
from rag_audit._internal.durable import replace_file, sync_directory
from rag_audit._internal.errors import RagAuditError, SizeError, StoreError
from rag_audit.models.models import Hex32, Model
from rag_audit.models.publication import Publication
from rag_audit.retrieval.embedders import Embedder
from rag_audit.retrieval.query import check_question

MAX_FILE_BYTES = 1 << 18
ASIDE = "set-aside"
"""The subfolder of the questions' folder for files with invalid questions."""
MAX_PREPARED = 65_536


class Prepared(Model):
    """One question, which is private to the account."""

    header: Hex32
    query: str


class Questions:
    """The questions that an account has prepared for one window, in files of its own, the oldest first.

    :param directory: the account's folder
    """

    def __init__(self, directory: Path, window: Publication) -> None:
        self._folder = directory / "prepared"
        self._header = window.header_digest()

    def add(self, text: str, embedder: Embedder) -> Path:
        """Write a question down, durably.

        :raises NothingToEmbed: the question is blank, or has no vector
        :raises SizeError: there are `MAX_PREPARED` questions already, or the question is too long to be sent
        :raises EncodingError: the question is not Unicode
        """
        check_question(text)
        embedder.embed_query(text)  # refuse a question without a vector now, not when it is asked
        data = Prepared.parse({"header": self._header, "query": text}, field="question").canonical()
        try:
            self._folder.mkdir(mode=0o700, exist_ok=True)
        except OSError as exc:
            raise StoreError.of_os_error(exc, "cannot be made", field=self._folder) from exc
        names = [path.name for path in self._paths()]
        if len(names) >= MAX_PREPARED:
            raise SizeError("too many questions are prepared", field=str(self._folder),
                            expected=f"at most {MAX_PREPARED}", actual=f"{len(names)}")  # fmt: skip
        number = 1 + (int(names[-1].split("-")[1]) if names else 0)
        path = self._folder / f"{self._header[:16]}-{number:08}-{secrets.token_hex(4)}.json"
        replace_file(path, data, mode=0o600)
        return path

    def __iter__(self) -> Iterator[tuple[Path, str | RagAuditError]]:
        """Each question's file and text. For a file with a question that can never be asked, the reason replaces the
        text.

        Such a file blocks no other file. The caller that gets the reason moves the file to another folder
        (`set_aside`).
        """
        for path in self._paths():
            try:
                kept = Prepared.parse(read_json(path, max_bytes=MAX_FILE_BYTES), field=path.name)
                check_question(kept.query)
            except RagAuditError as exc:
                yield path, exc
                continue
            if kept.header == self._header:
                yield path, kept.query

    def set_aside(self, path: Path) -> Path:
        """Move a file with an invalid question into the folder `ASIDE`. Later calls do not read that folder.

        :returns: the file's new path
        :raises StoreError: the file cannot be moved
        """
        folder = self._folder / ASIDE
        try:
            folder.mkdir(mode=0o700, exist_ok=True)
            moved = path.rename(folder / path.name)
            sync_directory(folder)
        except OSError as exc:
            raise StoreError.of_os_error(exc, "cannot be moved", field=path) from exc
        return moved

    def _paths(self) -> list[Path]:
        numbers = "[0-9]" * 8
        return sorted(self._folder.glob(f"{self._header[:16]}-{numbers}-*.json"))
