"""The figures that a verdict prints beside its checks: levels, counts and bounds (docs/protocol.md, "Verdict")."""

from __future__ import annotations

from typing import Literal, TypedDict

from rag_audit.mechanisms.accounting.bounds import BoundSetJson
from rag_audit.mechanisms.accounting.figures import TenantFigures
from rag_audit.mechanisms.accounting.tradeoff import MembershipJson


class Figures(TypedDict, total=False):
    """The figures of a verdict, each present once a check could compute it; reals are decimal strings.

    :param proofs: the proof systems of the records, joined by "+"
    :param proved: records whose every proof is valid
    :param a1: how A1 is established: declared, re-executed(i/n), proved(unpinned), proved
    :param d1: the same for the documents' vectors
    :param coalition: whether the estimate was checked: not-checked, checked
    :param c: the most accounts that a cluster has; `c_tenant` is the most that one has in one tenant
    :param abandoned: windows that came to nothing since the last complete one
    :param empty: windows that ended without a query since the last complete one
    :param accounts: accounts of the window, enrolled ones included
    :param accounts_holding_their_keys: those among them that hold their own key
    :param counts: queries of each account
    :param receipts: receipts of accounts that trust.toml names; `receipts_other` are those of others
    :param sampled: records that a challenge drew
    :param challenge: which draw counted: full, own, published
    :param setup: the kind of setup of the Groth16 keys
    :param allowed: names of the exceptions that trust.toml or an option allowed
    :param scores: the score windows lo..hi, joined by "+"
    :param tenants: what protects each tenant's documents, of a policy that names mechanisms
    :param odds_unlisted: the largest factor of the tenants that sample, for k_max accounts
    :param odds_unlisted_all_accounts: the largest factor for all accounts that a tenant may have
    :param positions_per_document: the positions of a document that both factors assume
    :param by_chance: of listing tenants, how likely a given position is listed to one of k_max accounts by chance alone
    :param listable: how many of each tenant's positions may have been listed
    """

    # set by the checks
    proofs: str
    proved: int
    a1: str
    d1: str
    coalition: str
    c: dict[str, int]
    abandoned: int
    empty: int
    enrolments: int
    enrolments_void_or_unused: int
    accounts: int
    accounts_holding_their_keys: int
    counts: dict[str, int]
    receipts: int
    receipts_other: int
    mode: str
    sampled: int
    challenge: Literal["full", "own", "published"]
    setup: str
    records: int
    # the accountant's (`accounting.figures.policy_figures`), and what the ledger's own counts come to
    bounds: BoundSetJson
    eps_audit: str
    eps_audit_by: str
    eps_one_account: str
    membership: MembershipJson
    eps_all_accounts: str
    accounts_max: int
    eps_realised: str
    tenants: dict[str, TenantFigures]
    odds_unlisted: str
    odds_unlisted_all_accounts: str
    positions_per_document: int
    listable: dict[str, int]
    by_chance: dict[str, str]
    # the policy's and the verifier's own
    allowed: list[str]
    delta: str
    k_max: int
    n: int
    scores: str
    lattice: int
    dimension: int
    beta: str | None
    eta: str | None
    window: str
    origin: str
