"""`bound.*`: the privacy bounds, recomputed from the policy without other inputs."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from decimal import Decimal

from rag_audit.mechanisms import accounting
from rag_audit.verify.case import Case


def check(case: Case) -> None:
    """Run the group, and store eps_audit and the related figures in `case.figures`.

    >>> from pathlib import Path
    >>> from rag_audit.verify.verifier import open_window
    >>> case = open_window(Path("docs/examples"), trust=Path("docs/examples/trust.toml"))
    >>> check(case)
    >>> case.figures["eps_audit"]
    '12.39'
    """
    policy = case.policy
    with case.guarding("bound.computed"):
        figures = policy.figures(case.table_windows)
        eps = figures["eps_audit"]
        used = any(policy.mechanism(t).uses_delta for t in policy.tenants)
        delta = policy.delta_policy if used else "0"
        result = f"epsilon {eps} at delta {delta} (bound: {figures['eps_audit_by']})"
        # If no epsilon bounds every outcome of a tenant, the policy states so; trust.toml decides.
        finite = Decimal(eps).is_finite() or figures["eps_audit_by"] == accounting.NO_BOUND
        case.report("bound.computed", finite, "a finite epsilon, or a mechanism without one", result)
        case.figures = {**case.figures, **figures}
        counts: dict[str, Counter[str]] = defaultdict(Counter)
        for q in case.queries:
            counts[q.tenant][q.account] += 1
        realised = [_realised(case, tenant, list(requested.values())) for tenant, requested in counts.items()]
        case.figures["eps_realised"] = accounting.text(max(realised, default=0.0))
        case.figures["by_chance"] = {
            t.tenant: accounting.text(chance)
            for t in policy.tenants
            for mechanism in [policy.mechanism(t).over(case.table_windows.get(t.tenant, 1))]
            if (chance := mechanism.list_without_relevance(policy.n * policy.k_max)) is not None
        }
        case.figures["listable"] = {
            t.tenant: min(t.capacity, counts[t.tenant].total() * policy.mechanism(t).longest)
            for t in policy.tenants
        }
        case.figures["exposed"] = {
            t.tenant: min(mechanism.documents_max, counts[t.tenant].total() * mechanism.longest)
            for t in policy.tenants
            for mechanism in [policy.mechanism(t)]
        }


def _realised(case: Case, tenant: str, requested: list[int]) -> float:
    """The epsilon for the accounts that asked: infinite if the tenant's mechanism bounds no epsilon."""
    policy = case.policy
    part = policy.tenant(tenant)
    if part is None:  # `ledger.accounts` fails in this case
        return math.inf
    return policy.mechanism(part).realised(requested, n=policy.n, k=policy.k_max, delta=policy.delta_policy)
