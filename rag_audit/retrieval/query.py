"""One question with the values that its account's salt and the embedder give for it, each computed once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path

import numpy as np

from rag_audit._internal.canonical import jcs
from rag_audit._internal.errors import RagAuditError, SetupError, SizeError
from rag_audit.models.manifest import EmbedderManifest, StaticTable
from rag_audit.models.question import MAX_QUESTION, MAX_QUESTION_BYTES, RequestSalts
from rag_audit.relation.field import to_hex
from rag_audit.relation.native import Elements, hash_lists, query_elements
from rag_audit.relation.native_secrets import vector_commitment, vector_elements
from rag_audit.retrieval.embedders import get_embedder
from rag_audit.retrieval.embedders.base import Embedder, NothingToEmbed, Vectors, check_text
from rag_audit.retrieval.embedders.normal_form import visible_form


def is_blank(text: str) -> bool:
    """Whether a question has no visible character: it is empty, or has only spaces, line ends, control characters and
    characters without a form of their own, such as zero-width ones."""
    return not any(c.isprintable() and not c.isspace() for c in visible_form(text))


def check_question(text: str) -> None:
    """Check a question before it gets a number and a signature: a signed request uses one of the account's queries.

    :raises NothingToEmbed: the question is blank (`is_blank`)
    :raises EncodingError: the question is not Unicode
    :raises SizeError: the question is too long to be sent
    """
    if is_blank(text):
        raise NothingToEmbed(
            "the question is blank",
            field="query",
            expected="at least one visible character",
            hint="no request was sent, and the account used no query",
        )
    check_text(text, field="query")
    if len(text) > MAX_QUESTION:
        raise SizeError("the question is too long", field="query",
                        expected=f"at most {MAX_QUESTION:,} characters", actual=f"{len(text):,}")  # fmt: skip
    if (size := len(jcs(text))) > MAX_QUESTION_BYTES:
        raise SizeError("the question is too long", field="query",
                        expected=f"at most {MAX_QUESTION_BYTES:,} bytes of JSON", actual=f"{size:,}")  # fmt: skip


@dataclass(frozen=True)
class OpenedQuery:
    """A question during its processing, from request to record to proof. It is secret, and `repr` omits it.

    :param salt: the account's 32-byte salt
    :param known: the retained vector, int8 little-endian, for an embedder that might now return another vector
    """

    text: str = field(repr=False)
    salt: bytes = field(repr=False)
    embedder: Embedder = field(repr=False)
    known: bytes | None = field(default=None, repr=False)

    @cached_property
    def salts(self) -> RequestSalts:
        """The salts of hq, cq, htopk and hans."""
        return RequestSalts.derive(self.salt)

    @cached_property
    def tokens(self) -> Sequence[int]:
        """The question's tokens, cut at the embedder's limit.

        :raises EncodingError: the question is not Unicode
        """
        return self.embedder.tokenize(self.text)

    @cached_property
    def vector(self) -> Vectors:
        """The question's vector, int8 in -7..7, shape (d,).

        :raises NothingToEmbed: the question is empty
        """
        if self.known is not None:
            return np.frombuffer(self.known, np.int8)
        return self.embedder.embed_tokens(self.tokens)

    @cached_property
    def hq(self) -> str:
        """hq, the commitment to tokens or text, 64 hexadecimal digits.

        :raises NothingToEmbed: the question is empty
        """
        return to_hex(self.embedder.query_commitment(self.text, self.salts.query, self.tokens))

    @cached_property
    def cq(self) -> str:
        """cq, the commitment to the vector, 64 hexadecimal digits."""
        return to_hex(vector_commitment(self.salts.vector, self.vector.tolist()))

    def _elements(self) -> tuple[Elements, Elements]:
        """The tags and elements that hq and cq hash, with a static table."""
        vector = vector_elements(self.salts.vector, self.vector.tolist())
        return query_elements(self.salts.query, self.tokens), vector


def reembedding(
    manifest: EmbedderManifest, *, folder: Path | None = None
) -> Callable[[str, bytes], OpenedQuery]:
    """A function that re-embeds disclosed questions with a manifest's embedder, from text and salt.

    :param folder: the folder of the embedder's files, if it has any
    :raises SetupError: a file or an extra is missing, or this release's embedder has another manifest
    """
    limits = manifest["tokens"]
    embedder = get_embedder(
        manifest["kind"], folder=folder, query_tokens=limits["query"], document_tokens=limits["document"]
    )
    if embedder.manifest() != manifest:
        raise SetupError("this release's embedder has another manifest")
    return partial(OpenedQuery, embedder=embedder)


def commit_all(queries: Sequence[OpenedQuery]) -> None:
    """Compute hq and cq of several questions in parallel; one question takes as long as several. The function skips
    questions without commitments; a later access to their commitments raises the error. It also skips questions if no
    static table embeds them.
    """
    lists: list[Elements] = []
    committed: list[OpenedQuery] = []
    for query in queries:
        if not isinstance(query.embedder.table, StaticTable):
            continue
        with suppress(RagAuditError):
            lists += query._elements()
            committed.append(query)
    hashes = iter(hash_lists(lists))
    for query in committed:
        vars(query).update(
            hq=to_hex(next(hashes)), cq=to_hex(next(hashes))
        )  # as `cached_property` keeps them
