"""The documents that an account of a tenant with randomized response received, in one file. The service lists a
document to an account only once.

The file is append-only, and each line is durable before the account accepts the answer. The reader drops an unfinished
line after a crash; the account then repeats the request and gets the identical answer.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from rag_audit._internal.canonical import jcs, parse_json, read_bytes
from rag_audit._internal.durable import sync_directory
from rag_audit._internal.errors import EncodingError, SchemaError, SizeError, StoreError
from rag_audit.account.relevance import raw_score
from rag_audit.models.models import Hex32, Model
from rag_audit.models.requests import AnsweredDocument
from rag_audit.retrieval.embedders import Embedder, NothingToEmbed
from rag_audit.retrieval.query import check_question

MAX_DISCLOSED_BYTES = 1 << 30


class _Header(Model):
    """The first line. It names the window, because positions have no meaning in another window."""

    header: Hex32


class DisclosedDocuments:
    """The documents that one account received in one window.

    :param path: the account's own file for the window, made with the first document
    :param header: digest of the window header
    """

    def __init__(self, path: Path, header: str) -> None:
        self._path = path
        self._header = header
        self._documents: dict[int, AnsweredDocument] | None = None

    @property
    def documents(self) -> Mapping[int, AnsweredDocument]:
        """The documents by position, in the order of their arrival.

        :raises SchemaError: the file is of another window
        :raises EncodingError: the file is not a file of received documents
        """
        if self._documents is None:
            self._documents = self._read()
        return self._documents

    def add(self, documents: Iterable[AnsweredDocument]) -> None:
        """Append documents durably. The method skips documents that are already in the file.

        :raises StoreError: the documents cannot be written
        :raises SizeError: the file would exceed the size limit of its reader; it remains unchanged
        """
        known = dict(self.documents)
        fresh = {d.position: d for d in documents if d.position not in known}
        lines = b"".join(document.canonical() + b"\n" for document in fresh.values())
        if not lines:
            return
        try:
            descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
            try:
                end = _whole(self._path)
                if end == 0:
                    lines = jcs(_Header(header=self._header).dump()) + b"\n" + lines
                if end + len(lines) > MAX_DISCLOSED_BYTES:
                    raise SizeError("the file of received documents would exceed its limit",
                                    field=str(self._path), expected=f"at most {MAX_DISCLOSED_BYTES} bytes",
                                    actual=f"{end + len(lines)}",
                                    hint="send the remaining questions with another account, or in the next"
                                         " window")  # fmt: skip
                os.ftruncate(descriptor, end)
                os.lseek(descriptor, end, os.SEEK_SET)
                with os.fdopen(os.dup(descriptor), "wb") as file:
                    file.write(lines)
                os.fsync(descriptor)
                if end == 0:
                    sync_directory(self._path.parent)
            finally:
                os.close(descriptor)
        except OSError as exc:
            raise StoreError.of_os_error(exc, "the file cannot be written", field=self._path) from exc
        self._documents = known | fresh

    def best(self, question: str, embedder: Embedder, maximum: int) -> list[AnsweredDocument]:
        """The best documents for a question, by exact score, then by smaller position.

        A tenant with randomized response returns a document to an account once, and in no order of relevance; the
        account ranks its received documents itself.

        :param embedder: the window's embedder (`account.embedder_of`)
        :param maximum: the maximum number of documents
        :raises NothingToEmbed: the question is blank
        :raises SizeError: the question is too long
        """
        check_question(question)
        held = [document for document in self.documents.values() if document.text]
        if not held:
            return []
        query = embedder.embed_query(question)

        def place(document: AnsweredDocument) -> tuple[bool, int, int]:
            try:
                score = raw_score(query, embedder.embed_documents([document.text])[0])
            except NothingToEmbed:  # a provider may hand out whatever it committed to
                return True, 0, document.position
            return False, -score, document.position

        return sorted(held, key=place)[:maximum]

    def _read(self) -> dict[int, AnsweredDocument]:
        if not self._path.exists():
            return {}
        data = read_bytes(self._path, max_bytes=MAX_DISCLOSED_BYTES)
        lines = data[: data.rfind(b"\n") + 1].splitlines()
        if not lines:
            return {}
        name = self._path.name
        header = _Header.parse(parse_json(lines[0], source=name), field=f"{name}, line 1")
        if header.header != self._header:
            raise SchemaError("the file contains documents of another window", field=name, expected=self._header,
                              actual=header.header)  # fmt: skip
        result: dict[int, AnsweredDocument] = {}
        for number, raw in enumerate(lines[1:], 2):
            line = AnsweredDocument.parse(parse_json(raw, source=name), field=f"{name}, line {number}")
            if line.position in result:
                raise EncodingError(
                    "the file contains a position twice", field=f"{name}, line {number}", actual=line.position
                )
            result[line.position] = line
        return result


def _whole(path: Path) -> int:
    """The bytes of the file's whole lines."""
    data = read_bytes(path, max_bytes=MAX_DISCLOSED_BYTES)
    return data.rfind(b"\n") + 1
