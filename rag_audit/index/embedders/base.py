"""What every embedder offers, and what it tells the verifier (docs/relation.md, "Vectors")."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Protocol

import numpy as np
import numpy.typing as npt

from rag_audit.encoding.canonical import digest_hex
from rag_audit.errors import EncodingError, RagAuditError
from rag_audit.formats.manifest import EmbedderManifest

if TYPE_CHECKING:
    from rag_audit.formats.statements import StaticTable

Vectors = npt.NDArray[np.int8]
"""int4 components in -7..7, held as int8: shape (d,) for one text, (n, d) for n."""


class NothingToEmbed(RagAuditError):
    """The text has no direction: no tokens, or rows that cancel."""


@dataclass(frozen=True)
class TokenLimits:
    """Where texts are cut, in tokens."""

    query: int
    document: int

    def __post_init__(self) -> None:
        if self.query < 1 or self.document < 1:
            raise EncodingError("token limit below 1", field="tokens", found=(self.query, self.document))


@dataclass(frozen=True)
class PromptTemplate:
    """What stands before a query or a document when it is embedded."""

    query: str = ""
    document: str = ""

    def digest(self) -> str:
        """SHA-256 over the template's canonical JSON."""
        return digest_hex({"document": self.document + "{text}", "query": self.query + "{text}"})


class Embedder(Protocol):
    """Text to int4 vectors, with constants that are fixed beforehand and never fitted to a tenant's data."""

    @property
    def name(self) -> str:
        """The registry's name; the manifest's `kind`."""

    @property
    def dimension(self) -> int:
        """Components of a vector."""

    @property
    def scale(self) -> Fraction:
        """The quantiser's global scale; `ScoreWindow.for_scale` derives the default score window from it."""

    @property
    def limits(self) -> TokenLimits:
        """Where texts are cut."""

    @property
    def table(self) -> StaticTable | None:
        """The static table that claim A1 is proved from; None: there is none, and A1 cannot be proved."""

    def manifest(self) -> EmbedderManifest:
        """The embedder's part of C_emb, a JSON value: kind, digests of artefacts, prompt, quantiser, limits.

        The opening adds the schema (tenants, capacities). Two embedders with one manifest give one vector.
        """

    def tokenize(self, text: str) -> list[int]:
        """A query's tokens, prompt included, cut at the query limit."""

    def embed_tokens(self, tokens: Sequence[int]) -> Vectors:
        """The vector of tokens, shape (d,).

        :raises NothingToEmbed: no tokens, or a sum of zero
        :raises EncodingError: a token outside the vocabulary
        """

    def embed_query(self, text: str) -> Vectors:
        """`embed_tokens(tokenize(text))`.

        :raises NothingToEmbed: an empty query
        """

    def embed_documents(self, texts: Sequence[str], *, first: int = 0) -> Vectors:
        """Vectors of documents, cut at the document limit, shape (n, d).

        :param first: the first one's number, for errors
        :raises NothingToEmbed: naming the first document without a direction
        """

    def cut_documents(self, texts: Sequence[str]) -> int:
        """How many of the documents are longer than the document limit, beyond which nothing of them is embedded."""

    def query_commitment(self, text: str, salt: int, tokens: Sequence[int] | None = None) -> int:
        """hq: over the tokens where A1 can be proved from them, over the UTF-8 bytes elsewhere.

        :param tokens: those of the text, where they are known
        """


def check_text(text: str, *, field: str) -> bytes:
    """The text's UTF-8 bytes.

    :raises EncodingError: a lone surrogate, which has no UTF-8 form
    """
    try:
        return text.encode()
    except UnicodeEncodeError as exc:
        raise EncodingError(
            "text is not Unicode", field=field, found=f"lone surrogate at {exc.start}"
        ) from exc
