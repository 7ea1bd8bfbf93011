"""What a provider is told of its documents before they are committed: those that are cut, and ids that are repeated."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rag_audit.errors import brief
from rag_audit.formats.passage import Passage, repeated_names
from rag_audit.index.embedders import Embedder

_RUN = 4096
"""Documents that are cut at a time."""


_SHOWN = 3
"""Repeated ids that a line names."""


def describe_repeated_ids(documents: Mapping[str, Sequence[Passage]]) -> Iterator[str]:
    """A line for each tenant of whose documents several have the same id in their metadata.

    Such documents are committed and answered as all others, but a program that joins answers takes them for one.

    :param documents: documents by tenant
    """
    for tenant, own in documents.items():
        if found := repeated_names(own):
            named = [f"{brief(name)} on {len(places)} documents, the first of them numbers {places[0]} and {places[1]}"
                     for name, places in list(found.items())[:_SHOWN]]  # fmt: skip
            more = f"; {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
            yield (
                f"{len(found)} ids in the metadata of {tenant} stand on several documents, which programs that join"
                f" answers take for one: {'; '.join(named)}{more}; give each document an id of its own"
            )


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
