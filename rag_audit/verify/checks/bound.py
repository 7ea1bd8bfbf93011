"""`bound.*`: the privacy bounds, recomputed from the policy alone."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from decimal import Decimal

from rag_audit.mechanisms import accounting
from rag_audit.verify.case import Case


def check(case: Case) -> None:
    """Run the group, and store eps_audit and the related figures in `case.figures`."""
    policy = case.policy
    with case.guarding("bound.computed"):
        figures = policy.figures()
        eps = figures["eps_audit"]
        found = f"{figures['eps_audit_by']} {eps} at delta {policy.delta_policy}"
        # A policy that names its mechanisms says itself where no epsilon bounds every outcome; trust.toml decides.
        finite = Decimal(eps).is_finite() or figures["eps_audit_by"] == accounting.NO_BOUND
        case.report("bound.computed", finite, "a finite bound, or tenants without one", found)
        case.figures = {**case.figures, **figures}
        counts: dict[str, Counter[str]] = defaultdict(Counter)
        for q in case.queries:
            counts[q.tenant][q.account] += 1
        realised = [_realised(case, tenant, list(asked.values())) for tenant, asked in counts.items()]
        case.figures["eps_realised"] = accounting.text(max(realised, default=0.0))
        if policy.v > 1:
            case.figures["by_chance"] = {
                t.tenant: accounting.text(chance)
                for t in policy.tenants
                if (chance := policy.protected(t).chance_alone(policy.n * policy.k_max)) is not None
            }
            case.figures["listable"] = {
                t.tenant: min(t.capacity, counts[t.tenant].total() * policy.longest(t))
                for t in policy.tenants
            }


def _realised(case: Case, tenant: str, asked: list[int]) -> float:
    """What the accounts that asked can have learnt: infinite where the tenant's mechanism bounds no epsilon."""
    policy = case.policy
    part = policy.tenant(tenant)  # None for a tenant that the policy lacks, at which `ledger.accounts` fails
    if part is not None and policy.rules(part).listing is not None:
        # The theorem holds on each transcript, for the accounts that asked.
        return policy.protected(part).epsilon(min(len(asked), policy.k_max), None)
    if policy.noise is None or (part is not None and not policy.rules(part).gains):
        return math.inf
        return math.inf
    mechanism = policy.noise.mechanism()
    return accounting.realised(mechanism, asked, policy.delta_policy, n=policy.n, k=policy.k_max).eps
