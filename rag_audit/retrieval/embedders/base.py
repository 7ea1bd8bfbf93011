"""The interface of every embedder, and its description for the verifier (docs/relation.md, "Vectors")."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
import numpy.typing as npt

from rag_audit._internal.canonical import digest_hex
from rag_audit._internal.errors import EncodingError, EndpointError, RagAuditError
from rag_audit.models.manifest import EmbedderManifest
from rag_audit.retrieval.embedders.normal_form import visible_form

if TYPE_CHECKING:
    from rag_audit.models.manifest import Provable

Vectors = npt.NDArray[np.int8]
"""int4 components in -7..7, stored as int8: shape (d,) for one text, (n, d) for n."""


class NothingToEmbed(RagAuditError):
    """A text has no direction, since it has no tokens or its tokens' rows cancel."""


class DocumentRefused(EndpointError):
    """An endpoint refuses one text, or gives it no finite vector, while it answers others."""


def document_number(error: RagAuditError) -> int | None:
    """The number of the document that an embedder's error names, or None if it names none."""
    match = re.fullmatch(r"documents\[([0-9]+)\]", error.field or "")
    return None if match is None else int(match[1])


@dataclass(frozen=True)
class TokenLimits:
    """The numbers of tokens at which texts are truncated."""

    query: int
    document: int

    def __post_init__(self) -> None:
        if self.query < 1 or self.document < 1:
            raise EncodingError(
                "a token limit is below 1", field="tokens", actual=(self.query, self.document)
            )


@dataclass(frozen=True)
class PromptTemplate:
    """The prefixes of a query and of a document when it is embedded."""

    query: str = ""
    document: str = ""

    def digest(self) -> str:
        """SHA-256 over the template's canonical JSON."""
        return digest_hex({"document": self.document + "{text}", "query": self.query + "{text}"})


class Embedder(Protocol):
    """A map from text to int4 vectors, with constants that are fixed in advance and never fitted to a tenant's data."""

    @property
    def name(self) -> str:
        """The embedder's name in the registry, and the manifest's `kind`."""

    @property
    def dimension(self) -> int:
        """Components of a vector."""

    @property
    def score_window(self) -> tuple[int, int]:
        """The default score window lo..hi in raw units, chosen on public texts."""

    @property
    def limits(self) -> TokenLimits:
        """The numbers of tokens at which texts are truncated."""

    @property
    def table(self) -> Provable | None:
        """The static table or the integer encoder for proofs of claim A1, or None if A1 cannot be proved."""

    def manifest(self) -> EmbedderManifest:
        """The embedder's part of C_emb as a JSON value: kind, digests of artefacts, prompt, quantiser, limits.

        The window header adds the schema (tenants, capacities). Embedders with equal manifests give equal vectors.
        """

    def tokenize(self, text: str) -> list[int]:
        """A query's tokens, prompt included, cut at the query limit."""

    def embed_tokens(self, tokens: Sequence[int]) -> Vectors:
        """The vector of tokens, shape (d,).

        :raises NothingToEmbed: there are no tokens, or their rows sum to zero
        :raises EncodingError: a token is outside the vocabulary
        """

    def embed_query(self, text: str) -> Vectors:
        """The vector of a query, `embed_tokens(tokenize(text))`.

        :raises NothingToEmbed: the query is empty
        """

    def embed_documents(self, texts: Sequence[str], *, first: int = 0) -> Vectors:
        """Vectors of documents, cut at the document limit, shape (n, d).

        :param first: number of the first document, for errors
        :raises NothingToEmbed: a document has no direction; the first such one is named
        """

    def cut_documents(self, texts: Sequence[str]) -> int:
        """The number of documents that are longer than the document limit, beyond which their text is not embedded."""

    def query_commitment(self, text: str, salt: int, tokens: Sequence[int] | None = None) -> int:
        """hq, the commitment to a query: to its tokens where A1 can be proved from them, else to its UTF-8 bytes.

        :param tokens: the tokens of the text, if they are known
        """


def check_text(text: str, *, field: str) -> bytes:
    """The text's UTF-8 bytes.

    :raises EncodingError: the text has a lone surrogate, which has no UTF-8 form
    """
    try:
        return text.encode()
    except UnicodeEncodeError as exc:
        raise EncodingError(
            "the text is not Unicode", field=field, actual=f"lone surrogate at {exc.start}"
        ) from exc


def visible_text(text: str, *, field: str) -> str:
    """The text in the form that is embedded (`visible_form`).

    :raises EncodingError: as `check_text`
    """
    check_text(text, field=field)
    return visible_form(text)
