"""The checks that a verification of a window has to run, by their ids.

A check that is absent from this list may be absent from a verdict: the window or the trust file holds nothing that the
check is about. A check of this list that did not run leaves open what rests on it, as a check that was not met does.
"""

from __future__ import annotations

from rag_audit.verify.case import Case
from rag_audit.verify.standing import RULES

_EACH_TENANT = ("proof.circuit", "proof.key", "proof.valid")
_CONDITIONAL = frozenset({
    "ledger.enrolment", "ledger.kept", "ledger.held",
    "proof.challenge", "proof.system", *_EACH_TENANT,
    "proof.embed.circuit", "proof.embed.key", "proof.embed.valid", "proof.kept", "proof.chain", "proof.a1",
    "receipt.disclosed",
    "coalition.parameters", "coalition.count", "coalition.circuit", "coalition.key", "coalition.certificate",
    "coalition.cap",
    "trust.mechanisms", "trust.max_epsilon", "trust.max_odds_unlisted", "trust.min_keep", "trust.challenge",
    "trust.manifest",
})  # fmt: skip
"""Checks that some windows lack."""


def needed_checks(case: Case) -> frozenset[str]:
    """The ids of the checks that have to run on this window, those of tenants with the tenant's name."""
    policy, trust = case.policy, case.trust
    asked = {q.tenant for q in case.queries}
    asking = {q.account for q in case.queries}
    required = case.required or frozenset()
    proved = {q.tenant for q in case.queries if q.seq in required}
    sampled = [t.tenant for t in policy.tenants if policy.rules(t).sampled]
    listing = {t.tenant for t in policy.tenants if policy.rules(t).listing is not None}
    found = {check for check in RULES if check not in _CONDITIONAL}
    found |= {f"{check}.{tenant}" for check in _EACH_TENANT for tenant in proved}
    found |= {
        f"{check.replace('proof.', 'proof.embed.')}.{t.tenant}"
        for check in _EACH_TENANT
        for t in policy.tenants
        if t.tenant in proved and "embed" in t.circuits
    }
    found |= {f"proof.kept.{tenant}" for tenant in sampled}
    declared = case.closing is not None and case.closing.coalition is not None
    conditions = {
        "ledger.enrolment": any(e.account in asking for e in case.enrolments),
        "ledger.kept": bool(sampled),
        "ledger.held": bool(listing),
        "proof.challenge": trust.require.mode == "sampled",
        "trust.challenge": trust.require.mode == "sampled",
        "proof.chain": bool(listing & asked),
        "proof.a1": str(case.figures.get("a1", "")).startswith("re-executed"),
        "trust.manifest": trust.pins.manifest is not None,
        "trust.mechanisms": policy.v > 1,
        "trust.max_epsilon": policy.v == 1 or case.max_epsilon_asked,
        "trust.min_keep": any(policy.rules(t).keep is not None for t in policy.tenants),
        **dict.fromkeys(("coalition.parameters", "coalition.count", "coalition.cap"), declared),
        **dict.fromkeys(
            ("coalition.circuit", "coalition.key", "coalition.certificate"),
            policy.estimator.certificate is not None and bool(case.queries),
        ),
    }
    return frozenset(found | {check for check, applies in conditions.items() if applies})
