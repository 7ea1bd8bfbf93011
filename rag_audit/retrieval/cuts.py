"""Notices to a provider about its documents: repeated ids, truncated documents, and documents without a vector."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeVar

from rag_audit._internal.errors import RagAuditError, brief
from rag_audit.models.passage import Passage, repeated_names
from rag_audit.retrieval.embedders import Embedder, NothingToEmbed
from rag_audit.retrieval.embedders.base import DocumentRefused, document_number
from rag_audit.retrieval.inventory import Entry, Inventory, grouped

T = TypeVar("T")
_RUN = 4096
"""Documents that are cut at a time."""
_EMBEDDED = 256
"""Number of documents that are embedded at a time in the search for documents that cannot be embedded."""


_SHOWN = 3
"""Repeated ids that a line names."""


def describe_repeated_ids(documents: Mapping[str, Sequence[Passage]]) -> Iterator[str]:
    """A line for each tenant with several passages that have the same id in their metadata.

    Such passages are committed and returned like all others, but a program that joins answers takes them for one
    passage.

    :param documents: documents by tenant
    """
    for tenant, own in documents.items():
        if result := repeated_names(own):
            named = [f"{brief(name)} on {len(places)} passages, the first of them numbers {places[0]} and {places[1]}"
                     for name, places in list(result.items())[:_SHOWN]]  # fmt: skip
            more = f"; {len(result) - _SHOWN} more" if len(result) > _SHOWN else ""
            yield (
                f"{len(result)} ids in the metadata of {tenant} stand on several passages, and programs that join"
                f" answers show only one of them: {'; '.join(named)}{more}; give each passage an id of its own, and"
                " name its document in another field (--document-column)"
            )


def note_cuts(
    embedder: Embedder, documents: Mapping[str, Sequence[Passage]], inventory: Inventory
) -> list[Entry]:
    """Record the documents that exceed the embedder's limit, and return the new entries.

    :param documents: documents by tenant
    """
    limit, before = embedder.limits.document, len(inventory.cut)
    reason = f"longer than {limit} tokens, found by the first {limit} only, and handed back whole"
    for tenant, own in documents.items():
        for first in range(0, len(own), _RUN):
            for number in _cut(embedder, own, range(first, min(first + _RUN, len(own)))):
                inventory.shorten(own[number].name_in(tenant, number), reason)
    return inventory.cut[before:]


def _cut(embedder: Embedder, own: Sequence[Passage], run: range) -> Iterator[int]:
    """The numbers of the documents in a run that are cut. Runs without any, which are most, take one call."""
    count = embedder.cut_documents([own[number].text for number in run])
    if count == len(run):
        yield from run
    elif count:
        middle = len(run) // 2
        yield from _cut(embedder, own, run[:middle])
        yield from _cut(embedder, own, run[middle:])


def with_embeddable(
    commit: Callable[[Mapping[str, Sequence[Passage]]], T],
    documents: Mapping[str, Sequence[Passage]],
    embedder: Embedder,
    inventory: Inventory,
    *,
    skip: bool,
    say: Callable[[str], None],
) -> T:
    """Commit to documents. If some cannot be embedded and `skip` is set, commit a second time without them.

    :param say: called with a line for people for each reason why documents are omitted
    :raises RagAuditError: an error of `commit`
    """
    try:
        return commit(documents)
    except (NothingToEmbed, DocumentRefused):
        if not skip:
            raise
    before = len(inventory.omitted)
    kept = embeddable(embedder, documents, inventory)
    for line in grouped("omitted", inventory.omitted[before:]):
        say(line)
    return commit(kept)


def embeddable(
    embedder: Embedder, documents: Mapping[str, Sequence[Passage]], inventory: Inventory
) -> dict[str, list[Passage]]:
    """The documents that the embedder gives a vector; the others are noted as omitted.

    Every document is embedded in order to know.

    :param documents: documents by tenant
    :raises EndpointError: the endpoint fails for another reason than a document
    """
    kept: dict[str, list[Passage]] = {}
    for tenant, own in documents.items():
        kept[tenant] = []
        for first in range(0, len(own), _EMBEDDED):
            run = list(enumerate(own[first : first + _EMBEDDED], first))
            while error := _refusal(embedder, [document.text for _, document in run]):
                number, document = run.pop(document_number(error) or 0)
                name = document.name_in(tenant, number)
                inventory.omit(name, error.message, error.actual)
                inventory.discount(tenant, document, name)
            kept[tenant] += [document for _, document in run]
    return kept


def _refusal(embedder: Embedder, texts: Sequence[str]) -> RagAuditError | None:
    """The error that names the first of the texts without a vector."""
    try:
        embedder.embed_documents(texts)
    except (NothingToEmbed, DocumentRefused) as exc:
        if document_number(exc) is None:
            raise
        return exc
    return None
