"""The accountant: from a policy to privacy bounds, and from a target to a policy (docs/accounting.md)."""

from rag_audit.mechanisms.accounting.bounds import (
    ADJACENCY,
    UNIT,
    Bound,
    BoundSet,
    audit_bounds,
    eps_at,
    gaussian_epsilon,
)
from rag_audit.mechanisms.accounting.figures import (
    NO_BOUND,
    POOLED_LISTING,
    POSITIONS_PER_DOCUMENT,
    policy_figures,
)
from rag_audit.mechanisms.accounting.methods import METHODS, required_sigma_over_delta
from rag_audit.mechanisms.accounting.odometer import Realised, ladder, realised
from rag_audit.mechanisms.accounting.pmf import Mechanism
from rag_audit.mechanisms.accounting.tradeoff import Membership, membership, roc_bound, tpr_bound
from rag_audit.mechanisms.accounting.values import text
from rag_audit.mechanisms.accounting.wellformed import check_policy

__all__ = [
    "ADJACENCY",
    "METHODS",
    "NO_BOUND",
    "POOLED_LISTING",
    "POSITIONS_PER_DOCUMENT",
    "UNIT",
    "Bound",
    "BoundSet",
    "Mechanism",
    "Membership",
    "Realised",
    "audit_bounds",
    "check_policy",
    "eps_at",
    "gaussian_epsilon",
    "ladder",
    "membership",
    "policy_figures",
    "realised",
    "required_sigma_over_delta",
    "roc_bound",
    "text",
    "tpr_bound",
]
