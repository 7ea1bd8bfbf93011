"""`bound.*`: the privacy bounds, recomputed from the policy alone."""

from __future__ import annotations

from collections import Counter, defaultdict
from decimal import Decimal

from rag_audit import accounting
from rag_audit.verify.case import Case


def check(case: Case) -> None:
    """Run the group, and store eps_audit and the related figures in `case.figures`."""
    policy = case.policy
    with case.guarding("bound.computed"):
        figures = policy.figures()
        eps = figures["eps_audit"]
        found = f"{figures['eps_audit_by']} {eps} at delta {policy.delta_policy}"
        case.report("bound.computed", Decimal(eps).is_finite(), "a finite bound", found)
        case.figures = {**case.figures, **figures}
        counts: dict[str, Counter[str]] = defaultdict(Counter)
        for q in case.queries:
            counts[q.tenant][q.account] += 1
        mechanism = policy.noise.mechanism()
        realised = [
            accounting.realised(mechanism, list(c.values()), policy.delta_policy, n=policy.n, k=policy.k_max)
            for c in counts.values()
        ]
        case.figures["eps_realised"] = accounting.text(max((r.eps for r in realised), default=0.0))
