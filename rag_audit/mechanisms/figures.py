"""The figures of a policy with a named mechanism for each tenant, computed in one place for verdicts and commands."""

from __future__ import annotations

import math
from collections.abc import Mapping

from rag_audit.mechanisms.accounting.documents import (
    expected_by_flips,
    exposes_more_than_exact,
    exposure_limit,
)
from rag_audit.mechanisms.accounting.figures import (
    NO_BOUND,
    POOLED_LISTING,
    DocumentTableFigures,
    ExposureFigures,
    PolicyFigures,
)
from rag_audit.mechanisms.accounting.values import count, text
from rag_audit.mechanisms.base import Mechanism


def window_figures(
    noise: PolicyFigures | None, tenants: Mapping[str, Mechanism], *, n: int, k: int, accounts_max: int
) -> PolicyFigures:
    """The figures of a policy with a named mechanism for each tenant. Epsilon is the largest of any tenant. It is
    infinite if a tenant's mechanism bounds only the exclusion factor, or has no bound.

    :param noise: the noise's figures (`policy_figures`), None if no tenant has noise
    :param n: queries that an account may make
    """
    all_accounts = noise.get("eps_all_accounts") if noise is not None else None
    by_tenant = {
        name: t.epsilon(k, None if noise is None else noise["eps_audit"]) for name, t in tenants.items()
    }
    one = (t.epsilon(1, None if noise is None else noise["eps_one_account"]) for t in tenants.values())
    everyone = (t.epsilon(t.tenant.accounts_max, all_accounts) for t in tenants.values())
    eps = max(by_tenant.values())
    figures: PolicyFigures = {
        "eps_audit": text(eps),
        "eps_audit_by": NO_BOUND if math.isinf(eps) else POOLED_LISTING,
        "eps_one_account": text(max(one)),
        "eps_all_accounts": text(max(everyone)),
        "accounts_max": count(accounts_max, "accounts_max"),
    }
    if noise is not None:
        by_noise = not math.isinf(eps) and noise["eps_audit"] == figures["eps_audit"]
        figures = {
            **noise,
            **figures,
            "eps_audit_by": noise["eps_audit_by"] if by_noise else figures["eps_audit_by"],
        }
    odds = {
        name: (t.exclusion_factor(n * k), t.exclusion_factor(n * t.tenant.accounts_max))
        for name, t in tenants.items()
    }
    figures["tenants"] = {
        name: {
            "mechanism": tenant.name,
            "eps": text(by_tenant[name]),
            "exclusion_factor": text(odds[name][0]),
            "exclusion_factor_all_accounts": text(odds[name][1]),
            "documents": table_figures(tenant),
            "exposure": exposure_figures(tenant, n=n, k=k),
        }
        for name, tenant in tenants.items()
    }
    if not all(t.uses_delta for t in tenants.values()):
        figures.pop("membership", None)  # of the noise, which is not every tenant's
    coalition, all_of_them = ([pair[i] for pair in odds.values() if pair[i] is not None] for i in (0, 1))
    if coalition and all(t.protects for t in tenants.values()):
        figures["exclusion_factor"] = text(max(o for o in coalition if o is not None))
        figures["exclusion_factor_all_accounts"] = text(max(o for o in all_of_them if o is not None))
    # Epsilon is the largest of any tenant, so it covers one position if a tenant has noise without a document table.
    by_document = not math.isinf(eps) and any(t.table is not None for t in tenants.values())
    sizes = [
        t.positions_per_document
        for name, t in tenants.items()
        if odds[name][0] is not None or (t.noised and (t.table is not None or by_document))
    ]
    if sizes and all(t.protects for t in tenants.values()):
        figures["positions_per_document"] = min(sizes)
    return figures


def table_figures(mechanism: Mechanism) -> DocumentTableFigures | None:
    """The document table of a tenant's mechanism; None if it has none."""
    table = mechanism.table
    if table is None:
        return None
    return {
        "rows": table.rows,
        "positions_per_document": table.positions_per_document,
        "fresh_rows": table.fresh_rows,
    }


def exposure_figures(mechanism: Mechanism, *, n: int, k: int) -> ExposureFigures:
    """The number of a tenant's documents that k accounts can read, for every mechanism.

    :param n: queries that an account may make
    """
    tenant = mechanism.tenant
    accounts = min(k, tenant.accounts_max)
    queries, documents = n * accounts, mechanism.documents_max
    exact = exposure_limit(documents, queries=queries, longest=tenant.top_k)
    flip = mechanism.flip_probability
    drawn = mechanism.chance_queries(queries)
    by_chance = None if flip is None else expected_by_flips(documents, flip, queries=drawn)
    return {
        "accounts": accounts,
        "queries": queries,
        "documents": documents,
        "limit": exposure_limit(documents, queries=queries, longest=mechanism.longest),
        "exact": exact,
        "by_chance": text(by_chance),
        "exceeds_exact": by_chance is not None and exposes_more_than_exact(by_chance, exact),
    }
