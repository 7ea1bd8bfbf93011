"""Phase C, estimate: find accounts that repeat a question almost word for word (the paper's Section 5.4,
docs/estimator.md).

The estimate is a gate on the declared cap k_max; no bound of `accounting` rests on it.
"""

from __future__ import annotations

from rag_audit.estimate.certificate import coalition_private, coalition_statement
from rag_audit.estimate.clusters import Asked, Estimate, Join, estimate, estimate_window

__all__ = [
    "Asked",
    "Estimate",
    "Join",
    "coalition_private",
    "coalition_statement",
    "estimate",
    "estimate_window",
]
