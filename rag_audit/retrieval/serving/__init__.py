"""A provider's part of each mechanism: one file with the interface of `base` for each, and here their registry."""

from __future__ import annotations

from importlib import import_module

from rag_audit.mechanisms import Mechanism
from rag_audit.retrieval.serving.base import Asked, Columns, Ranking, Serving

__all__ = ["Asked", "Columns", "Ranking", "Serving", "serving"]


def serving(mechanism: Mechanism) -> Serving:
    """A provider's part of a tenant's mechanism: `SERVING` of the file that has the mechanism's name.

    >>> from rag_audit.mechanisms.base import Scores, Tenant
    >>> from rag_audit.mechanisms.none import Exact
    >>> serving(Exact(Tenant(capacity=64, top_k=5), Scores(0, 16384, 16384))).draws
    False
    """
    kind: type[Serving] = import_module(f"{__name__}.{mechanism.name.replace('-', '_')}").SERVING
    return kind(mechanism)
