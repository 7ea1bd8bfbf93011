"""The demo's embedder: `minilm-int` if its files are installed, and the default embedder otherwise."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rag_audit._internal.cache import cache_dir
from rag_audit._internal.errors import SetupError
from rag_audit.cli.demo.stage import Demo, say
from rag_audit.commit.draft import Embedding
from rag_audit.retrieval.embedders import (
    DEFAULT_EMBEDDER,
    INTEGER,
    Embedder,
    get_embedder,
    published_constants,
)
from rag_audit.retrieval.embedders.integer_bert.installed import INSTALL, installed_folder
from rag_audit.retrieval.embedders.integer_bert.published import LEXICAL_MINILM, MINILM
from rag_audit.retrieval.vectors import CachedEmbedder

FOUND = {MINILM: 26, DEFAULT_EMBEDDER: 15, LEXICAL_MINILM: 27}
"""The embedders of the demo, with the number of the second set's 60 questions that find their passage among five
without a mechanism (`python -m bench.demo`, Python 3.11)."""

DOCSTRING_TOKENS = 64
"""Tokens of a docstring that are embedded. A docstring begins with its summary: `minilm-int` finds 47 of the first
sixty questions' passages with 64 tokens, 43 with all 256 and 39 with 32."""


@dataclass(frozen=True)
class Choice:
    """An embedder, and the reason for it.

    :param name: one of `FOUND`
    :param reason: a sentence's second half, for the person who watches
    :param document_tokens: maximum tokens of a text that the vector depends on
    """

    name: str
    reason: str
    document_tokens: int = DOCSTRING_TOKENS

    @property
    def query_tokens(self) -> int:
        """Maximum tokens of a question, because the cost of an embedding proof grows with each token. Encoders have two
        length classes."""
        return 32 if self.name in INTEGER else 24

    @property
    def embedding(self) -> Embedding:
        """The embedder's part of the policy."""
        published = published_constants(self.name)
        tokens = (self.query_tokens, self.document_tokens)
        return Embedding(published.dimension, published.table, tokens)

    @property
    def score_window(self) -> tuple[int, int]:
        """lo and hi of the score window."""
        return published_constants(self.name).score_window

    @property
    def threshold(self) -> int:
        """The minimum raw score of a relevant passage."""
        result = published_constants(self.name).relevance
        assert result is not None  # it was measured for each of `FOUND`
        return result

    def load(self) -> Embedder:
        """The embedder.

        :raises SetupError: a file or a package of it is missing
        """
        return get_embedder(self.name, query_tokens=self.query_tokens, document_tokens=self.document_tokens)

    def lines(self, *, own_texts: bool = False) -> list[str]:
        """The embedder, the reason for it and its quality on the docstrings, for the person who watches."""
        if own_texts:  # the figures are of other texts and questions
            return [f"embedder {self.name}: {self.reason}"]
        others = ", ".join(
            f"{name} finds {found}"
            + ("" if published_constants(name).table else ", without proofs of embeddings")
            for name, found in FOUND.items()
            if name != self.name
        )
        return [
            f"embedder {self.name}: {self.reason}",
            f"measured with the texts of Python 3.11, without a mechanism: it finds the passages of"
            f" {FOUND[self.name]} of the demo's 60 questions among five; {others}",
        ]


def choose(named: str | None, *, own_texts: bool = False) -> Choice:
    """The embedder that a person named, or the one that finds most passages with the installed files and has proofs of
    query embeddings.

    :param named: one of `FOUND`, or None
    :param own_texts: whether the texts are a person's own, which the embedder reads as far as it can
    """
    if named is not None:
        name, reason = named, "--embedder names it"
    elif installed_folder() is not None:
        name, reason = MINILM, "its files are installed; --embedder names another one"
    else:
        name, reason = DEFAULT_EMBEDDER, f"the files of {MINILM} are not installed ({INSTALL})"
    longest = published_constants(name).document_tokens
    return Choice(name, reason, longest if own_texts else DOCSTRING_TOKENS)


def vectors_file(demo: Demo, choice: Choice, docs: Path | None) -> Path | None:
    """The file that caches document vectors, or None for a table, which embeds the texts in seconds.

    Vectors of the standard library's docstrings are in the user's cache, so the next demo is faster. A reader of such a
    file can recognise texts, so the vectors of a person's own texts are in the demo's folder.
    """
    if choice.name not in INTEGER:
        return None
    if docs is None:
        try:
            return cache_dir("demo") / "vectors.sqlite"
        except SetupError:
            pass  # no cache, or one that other users can change
    return demo.provider / "vectors" / "vectors.sqlite"


@contextmanager
def with_vectors(embedder: Embedder, path: Path | None) -> Iterator[Embedder]:
    """The embedder with the cached document vectors, if there is a cache."""
    if path is None:
        yield embedder
        return
    with CachedEmbedder(embedder, path, say=say) as cached:
        yield cached
