"""The figures that a verdict carries and that `rag-audit policy bounds` prints, computed in one place for both."""

from __future__ import annotations

from typing import NotRequired, TypedDict

from rag_audit.accounting.bounds import BoundSetJson, audit_bounds, eps_at
from rag_audit.accounting.pmf import Mechanism
from rag_audit.accounting.tradeoff import MembershipJson, membership
from rag_audit.accounting.values import Real, count, text


class PolicyFigures(TypedDict):
    """The figures that follow from a policy alone; reals are decimal strings.

    :param bounds: every bound, by name
    :param eps_audit: epsilon of the best bound, whose name is `eps_audit_by`
    :param eps_all_accounts: epsilon for all `accounts_max` accounts that the largest tenant may have
    """

    bounds: BoundSetJson
    eps_audit: str
    eps_audit_by: str
    eps_one_account: str
    membership: MembershipJson
    eps_all_accounts: NotRequired[str]
    accounts_max: NotRequired[int]


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
