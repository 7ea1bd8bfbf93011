"""From a policy to privacy bounds and back (docs/accounting.md)."""

from rag_audit.accounting.bounds import (
    ADJACENCY,
    UNIT,
    Bound,
    BoundSet,
    audit_bounds,
    cumulative,
    eps_at,
)
from rag_audit.accounting.pmf import Mechanism

__all__ = [
    "ADJACENCY",
    "UNIT",
    "Bound",
    "BoundSet",
    "Mechanism",
    "audit_bounds",
    "cumulative",
    "eps_at",
]
