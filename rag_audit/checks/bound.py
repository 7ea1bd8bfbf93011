"""`bound.*`: the privacy bounds, recomputed from the policy alone."""

from __future__ import annotations

from collections import Counter, defaultdict
from decimal import Decimal

from rag_audit import accounting
from rag_audit.checks.case import Case


def check(case: Case) -> None:
    """Run the group; leaves eps_audit and its companions in `case.figures`."""
    policy = case.policy
    with case.guarding("bound.computed"):
        mechanism = policy.noise.mechanism()
        delta = float(Decimal(policy.delta_policy))
        bounds = accounting.audit_bounds(
            mechanism,
            n=policy.n,
            eps_acc=policy.eps_acc,
            delta_acc=policy.delta_acc,
            k=policy.k_max,
            delta=policy.delta_policy,
        )
        best = bounds.best
        case.report(
            "bound.computed", best.valid, "a finite bound", f"{best.name} {best.eps} at delta {delta}"
        )
        largest = max(t.accounts_max for t in policy.tenants)
        case.figures["bounds"] = bounds.as_json()
        case.figures["eps_audit"] = best.eps
        case.figures["eps_audit_by"] = best.name
        case.figures["eps_one_account"] = accounting.eps_at(mechanism, policy.n, delta)
        case.figures["eps_all_accounts"] = accounting.eps_at(mechanism, policy.n * largest, delta)
        case.figures["accounts_max"] = largest
        case.figures["membership"] = accounting.membership(mechanism, policy.n * policy.k_max).as_json()
        counts: dict[str, Counter[str]] = defaultdict(Counter)
        for q in case.queries:
            counts[q.tenant][q.account] += 1
        realised = [
            accounting.realised(mechanism, list(c.values()), policy.delta_policy, n=policy.n, k=policy.k_max)
            for c in counts.values()
        ]
        case.figures["eps_realised"] = max((r.eps for r in realised), default=0.0)
