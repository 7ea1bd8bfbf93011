"""Documents that are longer than the part of them that is embedded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rag_audit.index.embedders import Embedder

_RUN = 4096
"""Documents that are cut at a time."""


def describe_cuts(
    embedder: Embedder, documents: Mapping[str, Sequence[str]], what: str = "documents"
) -> Iterator[str]:
    """A line for each tenant of whose documents some are longer than the embedder's limit.

    :param documents: texts by tenant
    :param what: what the line calls them
    """
    limit = embedder.limits.document
    for tenant, texts in documents.items():
        cut = sum(embedder.cut_documents(texts[first : first + _RUN]) for first in range(0, len(texts), _RUN))
        if cut:
            yield (
                f"{cut} of {len(texts)} {what} of {tenant} are longer than {limit} tokens: they are found by their"
                f" first {limit} only, and handed back whole"
            )
