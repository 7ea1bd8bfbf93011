"""The figures that a verdict carries and that `rag-audit policy bounds` prints, computed in one place for both."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NotRequired, TypedDict

from rag_audit.accounting.bounds import BoundSetJson, audit_bounds, eps_at
from rag_audit.accounting.coins import Sampling
from rag_audit.accounting.pmf import Mechanism
from rag_audit.accounting.tradeoff import MembershipJson, membership
from rag_audit.accounting.values import Real, count, text

NO_BOUND = "no-bound"
"""`eps_audit_by` where a tenant's answers are bounded over no outcome at all."""


@dataclass(frozen=True)
class Protected:
    """A tenant's mechanism as the accountant needs it.

    :param mechanism: noise, sampling, listing or none
    :param keep: Pi over 2^40, the probability with which a position is kept; None where every one is
    """

    mechanism: str
    keep: int | None

    @property
    def bounds_every_outcome(self) -> bool:
        """Whether the mechanism has an epsilon over all outcomes."""
        return self.mechanism == "noise"

    @property
    def odds_unlisted(self) -> float | None:
        """See `Sampling.odds_unlisted`; None where every position is kept."""
        return None if self.keep is None else Sampling(self.keep).odds_unlisted


class TenantFigures(TypedDict):
    """What protects one tenant's documents.

    :param eps: epsilon over all outcomes for k_max accounts; inf where the mechanism bounds none
    :param odds_unlisted: the most by which what any coalition sees changes the odds that a document is there which was
        listed to none of its accounts; null where every position is kept
    """

    mechanism: str
    eps: str
    odds_unlisted: str | None


class PolicyFigures(TypedDict):
    """The figures that follow from a policy alone; reals are decimal strings.

    :param bounds: every bound of the noise, by name; absent without noise
    :param eps_audit: epsilon over all outcomes and tenants; of the best bound, whose name is `eps_audit_by`
    :param eps_all_accounts: epsilon for all `accounts_max` accounts that the largest tenant may have
    :param tenants: the mechanisms by tenant, of a policy that names them
    :param odds_unlisted: the largest of the tenants that sample; absent where none does
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


def policy_figures(
    mechanism: Mechanism,
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
    noise: PolicyFigures | None, tenants: Mapping[str, Protected], *, accounts_max: int
) -> PolicyFigures:
    """The figures of a policy whose tenants name their mechanisms. Epsilon is the largest of any tenant: infinite where
    one's mechanism bounds only what is not listed, or nothing.

    :param noise: the noise's figures (`policy_figures`), None where no tenant has noise
    """
    bounded = noise is not None and all(t.bounds_every_outcome for t in tenants.values())
    infinite = text(math.inf)
    figures: PolicyFigures = {
        "eps_audit": infinite,
        "eps_audit_by": NO_BOUND,
        "eps_one_account": infinite,
        "eps_all_accounts": infinite,
        "accounts_max": count(accounts_max, "accounts_max"),
    }
    if noise is not None:
        figures = {**noise} if bounded else {**noise, **figures}
    figures["tenants"] = {
        name: {
            "mechanism": tenant.mechanism,
            "eps": noise["eps_audit"] if noise is not None and tenant.bounds_every_outcome else infinite,
            "odds_unlisted": text(tenant.odds_unlisted),
        }
        for name, tenant in tenants.items()
    }
    odds = [t.odds_unlisted for t in tenants.values() if t.odds_unlisted is not None]
    if odds:
        figures["odds_unlisted"] = text(max(odds))
    return figures
