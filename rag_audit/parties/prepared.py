"""Questions that an account has written down and not asked yet.

A question gets its number and its signature when it is asked, since a provider answers the numbers of an account in
their order: what is only prepared therefore blocks nothing, and can be dropped at any time.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from pathlib import Path

from rag_audit.encoding.canonical import read_json
from rag_audit.encoding.durable import replace_file
from rag_audit.errors import SizeError, StoreError
from rag_audit.formats.models import Hex32, Model
from rag_audit.formats.publication import Publication
from rag_audit.index.embedders import Embedder

MAX_QUESTION_BYTES = 1 << 18
MAX_PREPARED = 65_536


class Prepared(Model):
    """One question, which is private to the account."""

    opening: Hex32
    query: str


class Questions:
    """The questions that an account has prepared for one window, in files of its own, the oldest first.

    :param directory: the account's folder
    """

    def __init__(self, directory: Path, window: Publication) -> None:
        self._folder = directory / "prepared"
        self._opening = window.opening_digest()

    def add(self, text: str, embedder: Embedder) -> Path:
        """Write a question down, durably.

        :raises NothingToEmbed: the question is empty
        :raises SizeError: there are `MAX_PREPARED` questions already, or the question is too long to be read back
        """
        embedder.embed_query(text)  # what has no vector is refused here, and not when it is asked
        data = Prepared(opening=self._opening, query=text).canonical()
        if len(data) > MAX_QUESTION_BYTES:
            raise SizeError("the question is too long", field="query",
                            expected=f"at most {MAX_QUESTION_BYTES} bytes of JSON", found=f"{len(data)}")  # fmt: skip
        try:
            self._folder.mkdir(mode=0o700, exist_ok=True)
        except OSError as exc:
            raise StoreError("cannot be made", field=str(self._folder), found=exc.strerror) from exc
        names = [path.name for path in self._paths()]
        if len(names) >= MAX_PREPARED:
            raise SizeError("too many questions are prepared", field=str(self._folder),
                            expected=f"at most {MAX_PREPARED}", found=f"{len(names)}")  # fmt: skip
        number = 1 + (int(names[-1].split("-")[1]) if names else 0)
        path = self._folder / f"{self._opening[:16]}-{number:08}-{secrets.token_hex(4)}.json"
        replace_file(path, data, mode=0o600)
        return path

    def __iter__(self) -> Iterator[tuple[Path, str]]:
        """Each question's file and text.

        :raises EncodingError: a file is not one of these
        """
        for path in self._paths():
            kept = Prepared.parse(read_json(path, max_bytes=MAX_QUESTION_BYTES), field=path.name)
            if kept.opening == self._opening:
                yield path, kept.query

    def _paths(self) -> list[Path]:
        numbers = "[0-9]" * 8
        return sorted(self._folder.glob(f"{self._opening[:16]}-{numbers}-*.json"))
