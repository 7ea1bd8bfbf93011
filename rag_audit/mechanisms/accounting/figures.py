"""The figures that a verdict carries and that `rag-audit provider policy bounds` prints, computed in one place for
both."""

from __future__ import annotations

from typing import NotRequired, TypedDict

from rag_audit.mechanisms.accounting.bounds import BoundSetJson, audit_bounds, eps_at
from rag_audit.mechanisms.accounting.pmf import Mechanism
from rag_audit.mechanisms.accounting.tradeoff import MembershipJson, membership
from rag_audit.mechanisms.accounting.values import Real, count, text

NO_BOUND = "no-bound"
"""`eps_audit_by` where a tenant's answers are bounded over no outcome at all."""
POOLED_LISTING = "pooled-listing"
"""`eps_audit_by` if the closed form of a tenant with pooled listing is the largest."""
POSITIONS_PER_DOCUMENT = 1
"""The positions that `exclusion_factor` assumes of a document. No policy limits them; a document of s positions has at
least the s-th power of the factor."""


class DocumentTableFigures(TypedDict):
    """The document table of a tenant, whose exclusion factors are for documents.

    :param rows: D, the rows of the table
    :param positions_per_document: s, the maximum number of positions of a document
    :param fresh_rows: F, the rows that each window after the first replaces; None if each window draws all bits
    """

    rows: int
    positions_per_document: int
    fresh_rows: int | None


class ExposureFigures(TypedDict):
    """The number of a tenant's documents that k_max accounts can read (docs/accounting.md, "Exposure").

    :param accounts: k, at most the accounts that the tenant may have
    :param queries: k n
    :param documents: the maximum number of documents of the index
    :param limit: min(documents, k n K), where K is the longest answer
    :param exact: the same if answers were the exact first K positions
    :param by_chance: an upper bound on the expected number that random flips return; null without flips
    :param exceeds_exact: whether the expected number exceeds 1.6 times `exact`
    """

    accounts: int
    queries: int
    documents: int
    limit: int
    exact: int
    by_chance: str | None
    exceeds_exact: bool


class TenantFigures(TypedDict):
    """The protection of one tenant's documents.

    :param eps: epsilon over all outcomes for k_max accounts; inf if the mechanism bounds none
    :param exclusion_factor: the maximum factor by which the absence of a document of one position becomes more likely
        for k_max accounts that never received it; null if every position is sampled
    :param exclusion_factor_all_accounts: the same for all accounts that the tenant may have
    :param documents: the document table; None if both factors are for documents of one position
    :param exposure: the documents that accounts can read
    """

    mechanism: str
    eps: str
    exclusion_factor: str | None
    exclusion_factor_all_accounts: str | None
    documents: DocumentTableFigures | None
    exposure: ExposureFigures


class PolicyFigures(TypedDict):
    """The figures that follow from a policy without other inputs; reals are decimal strings.

    :param bounds: every bound of the noise, by name; absent without noise
    :param eps_audit: epsilon over all outcomes and tenants, from the best bound; `eps_audit_by` names that bound
    :param eps_all_accounts: epsilon for all `accounts_max` accounts that the largest tenant may have
    :param tenants: the mechanisms by tenant; absent for constants without tenants
    :param exclusion_factor: the largest factor of the tenants with samples; absent without any, or if one has no
        mechanism
    :param exclusion_factor_all_accounts: the same for all accounts that each tenant may have
    :param positions_per_document: the positions of a document that the exclusion factors assume, and epsilon of noise
        with document tables; absent without either
    """

    bounds: NotRequired[BoundSetJson]
    eps_audit: str
    eps_audit_by: str
    eps_one_account: str
    membership: NotRequired[MembershipJson]
    eps_all_accounts: NotRequired[str]
    accounts_max: NotRequired[int]
    tenants: NotRequired[dict[str, TenantFigures]]
    exclusion_factor: NotRequired[str]
    exclusion_factor_all_accounts: NotRequired[str]
    positions_per_document: NotRequired[int]


def policy_figures(
    mechanism: Mechanism,
    *,
    n: int,
    eps_acc: Real,
    delta_acc: Real,
    k: int,
    delta: Real,
    accounts_max: int | None = None,
    positions: int = 1,
) -> PolicyFigures:
    """Every figure that follows from a policy without other inputs, by its name in a verdict, as decimal strings.

    >>> figures = policy_figures(Mechanism((1, 8, 64), 1024), n=10, eps_acc="4", delta_acc="1e-7", k=2, delta="1e-6")
    >>> figures["eps_audit"]
    '30.259'

    :param accounts_max: maximum number of accounts of the largest tenant; None omits the figures for all accounts
    :param positions: s, the positions of a document: the figures are for s n losses of an account
    :raises PolicyError: see `audit_bounds`
    """
    bounds = audit_bounds(
        mechanism, n=n, eps_acc=eps_acc, delta_acc=delta_acc, k=k, delta=delta, positions=positions
    )
    losses = n * positions
    figures: PolicyFigures = {
        "bounds": bounds.as_json(),
        "eps_audit": text(bounds.eps_audit),
        "eps_audit_by": bounds.best.name,
        "eps_one_account": text(eps_at(mechanism, losses, delta)),
        "membership": membership(mechanism, losses * k).as_json(),
    }
    if accounts_max is not None:
        figures["eps_all_accounts"] = text(
            eps_at(mechanism, losses * count(accounts_max, "accounts_max"), delta)
        )
        figures["accounts_max"] = accounts_max
    return figures
