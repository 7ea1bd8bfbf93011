"""The changes that another window over updated documents would make: added, removed and unchanged documents, by
tenant."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rag_audit._internal.errors import WindowStateError
from rag_audit.models.layout import Layout
from rag_audit.models.passage import Passage
from rag_audit.retrieval.documents import DocumentStore


@dataclass(frozen=True)
class Changes:
    """A tenant's documents compared with a window's documents. Two copies of a document count twice. A document with
    changed metadata counts as removed and added.

    :param added: documents that are not in the window
    :param removed: documents that are only in the window
    :param unchanged: the number of documents in both
    """

    added: Sequence[Passage]
    removed: Sequence[Passage]
    unchanged: int


def changes(directory: Path, documents: Mapping[str, Sequence[Passage]]) -> dict[str, Changes]:
    """Compare documents with the documents of a window, open, closed or prepared.

    :param documents: documents by tenant
    :returns: the changes of every tenant in either, sorted by its id
    :raises WindowStateError: the folder contains no window's texts
    """
    path = Layout(directory).documents
    if not path.exists():
        raise WindowStateError("the folder contains no texts of a window", field=str(directory),
                               hint="name the folder of a window from `rag-audit provider open`")  # fmt: skip
    result = {}
    with DocumentStore(path) as store:
        for tenant in sorted({*documents, *store.tenants()}):
            old, new = Counter(store.passages(tenant).values()), Counter(documents.get(tenant, ()))
            result[tenant] = Changes(
                list((new - old).elements()), list((old - new).elements()), (old & new).total()
            )
    return result
