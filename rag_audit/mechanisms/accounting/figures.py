"""The figures that a verdict carries and that `rag-audit policy bounds` prints, computed in one place for both."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, NotRequired, TypedDict

from rag_audit.mechanisms.accounting.bounds import BoundSetJson, audit_bounds, eps_at
from rag_audit.mechanisms.accounting.pmf import Mechanism as NoiseDistribution
from rag_audit.mechanisms.accounting.tradeoff import MembershipJson, membership
from rag_audit.mechanisms.accounting.values import Real, count, text

if TYPE_CHECKING:
    from rag_audit.mechanisms.base import Mechanism

NO_BOUND = "no-bound"
"""`eps_audit_by` where a tenant's answers are bounded over no outcome at all."""
LISTING = "listing"
"""`eps_audit_by` where a listing tenant's closed form is the largest."""
POSITIONS_PER_DOCUMENT = 1
"""The positions that `odds_unlisted` assumes of a document. No policy limits them; a document of s positions has at
least the s-th power of the factor."""


class TenantFigures(TypedDict):
    """What protects one tenant's documents.

    :param eps: epsilon over all outcomes for k_max accounts; inf where the mechanism bounds none
    :param odds_unlisted: the most by which the absence of a document of one position becomes more likely for k_max
        accounts that never received it; null where every position is kept
    :param odds_unlisted_all_accounts: the same for all accounts that the tenant may have
    """

    mechanism: str
    eps: str
    odds_unlisted: str | None
    odds_unlisted_all_accounts: str | None


class PolicyFigures(TypedDict):
    """The figures that follow from a policy alone; reals are decimal strings.

    :param bounds: every bound of the noise, by name; absent without noise
    :param eps_audit: epsilon over all outcomes and tenants; of the best bound, whose name is `eps_audit_by`
    :param eps_all_accounts: epsilon for all `accounts_max` accounts that the largest tenant may have
    :param tenants: the mechanisms by tenant, of a policy that names them
    :param odds_unlisted: the largest of the tenants that sample; absent where none does, or one has no mechanism
    :param odds_unlisted_all_accounts: the same for all accounts that each tenant may have
    :param positions_per_document: the positions of a document that both figures assume
    """

    bounds: NotRequired[BoundSetJson]
    eps_audit: str
    eps_audit_by: str
    eps_one_account: str
    membership: NotRequired[MembershipJson]
    eps_all_accounts: NotRequired[str]
    accounts_max: NotRequired[int]
    tenants: NotRequired[dict[str, TenantFigures]]
    odds_unlisted: NotRequired[str]
    odds_unlisted_all_accounts: NotRequired[str]
    positions_per_document: NotRequired[int]


def policy_figures(
    mechanism: NoiseDistribution,
    *,
    n: int,
    eps_acc: Real,
    delta_acc: Real,
    k: int,
    delta: Real,
    accounts_max: int | None = None,
) -> PolicyFigures:
    """Every figure that follows from a policy alone, by its name in a verdict; reals are decimal strings.

    :param accounts_max: the most accounts that the largest tenant may have; without it their figures are left out
    :raises PolicyError: see `audit_bounds`
    """
    bounds = audit_bounds(mechanism, n=n, eps_acc=eps_acc, delta_acc=delta_acc, k=k, delta=delta)
    figures: PolicyFigures = {
        "bounds": bounds.as_json(),
        "eps_audit": text(bounds.eps_audit),
        "eps_audit_by": bounds.best.name,
        "eps_one_account": text(eps_at(mechanism, n, delta)),
        "membership": membership(mechanism, n * k).as_json(),
    }
    if accounts_max is not None:
        figures["eps_all_accounts"] = text(eps_at(mechanism, n * count(accounts_max, "accounts_max"), delta))
        figures["accounts_max"] = accounts_max
    return figures


def window_figures(
    noise: PolicyFigures | None, tenants: Mapping[str, Mechanism], *, n: int, k: int, accounts_max: int
) -> PolicyFigures:
    """The figures of a policy whose tenants name their mechanisms. Epsilon is the largest of any tenant: infinite where
    one's mechanism bounds only what is not listed, or nothing.

    :param noise: the noise's figures (`policy_figures`), None where no tenant has noise
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
        "eps_audit_by": NO_BOUND if math.isinf(eps) else LISTING,
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
        name: (t.odds_unlisted(n * k), t.odds_unlisted(n * t.tenant.accounts_max))
        for name, t in tenants.items()
    }
    figures["tenants"] = {
        name: {
            "mechanism": tenant.name,
            "eps": text(by_tenant[name]),
            "odds_unlisted": text(odds[name][0]),
            "odds_unlisted_all_accounts": text(odds[name][1]),
        }
        for name, tenant in tenants.items()
    }
    if not all(t.uses_delta for t in tenants.values()):
        figures.pop("membership", None)  # of the noise, which is not every tenant's
    coalition, all_of_them = ([pair[i] for pair in odds.values() if pair[i] is not None] for i in (0, 1))
    if coalition and all(t.protects for t in tenants.values()):
        figures["odds_unlisted"] = text(max(o for o in coalition if o is not None))
        figures["odds_unlisted_all_accounts"] = text(max(o for o in all_of_them if o is not None))
        figures["positions_per_document"] = POSITIONS_PER_DOCUMENT
    return figures
