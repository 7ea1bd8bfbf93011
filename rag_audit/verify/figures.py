"""What a verdict prints beside its checks: levels, counts and bounds (docs/protocol.md, "Verdict")."""

from __future__ import annotations

from typing import Any, Literal, TypedDict


class Figures(TypedDict, total=False):
    """Each figure is there once a check could tell it; reals are decimal strings.

    :param proofs: the proof systems of the records, joined by "+"
    :param proved: records whose every proof is valid
    :param a1: how far A1 is known: declared, re-executed(i/n), proved(unpinned), proved
    :param d1: likewise of the documents' vectors
    :param coalition: whether the estimate was checked: not-checked, checked
    :param c: the most accounts that a cluster has, in all and in one tenant
    :param abandoned: windows that came to nothing since the last complete one
    :param accounts: of the window, enrolled ones included
    :param accounts_holding_their_keys: those among them whose key is their own
    :param counts: queries of each account
    :param receipts: of accounts that trust.toml names; receipts_other: of others
    :param sampled: records that a challenge drew
    :param challenge: whose draw counted: full, own, published
    :param setup: how the Groth16 keys came about
    :param allowed: what trust.toml or an option let pass by name
    :param scores: the score window lo..hi
    """

    # set by the checks
    proofs: str
    proved: int
    a1: str
    d1: str
    coalition: str
    c: dict[str, int]
    abandoned: int
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
    bounds: dict[str, Any]
    eps_audit: str
    eps_audit_by: str
    eps_one_account: str
    membership: dict[str, str]
    eps_all_accounts: str
    accounts_max: int
    eps_realised: str
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
