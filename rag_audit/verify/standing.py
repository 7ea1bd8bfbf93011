"""The consequence of each check that does not pass: whether it concerns the evidence for a window, or a limit.

One table has every check id (docs/protocol.md, "Checks"). The figures of a window depend on each check of the kind
`EVIDENCE`. If such a check is not met, no check proved the window false, but the figures are not established: the
verdict is UNPROVEN. A check of the kind `LIMIT` compares an established value with a limit or a level of trust.toml. If
the limit is exceeded, the window is sound and the verdict is UNMET.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from rag_audit.mechanisms import COLUMNS


class Kind(StrEnum):
    """The subject of a check."""

    EVIDENCE = "evidence"
    """the figures rest on it; where it is not met they are not established (UNPROVEN)"""
    LIMIT = "limit"
    """a limit or level of trust.toml; where it is exceeded the window is sound (UNMET)"""


@dataclass(frozen=True)
class Rule:
    """How a check counts.

    :param reason: why the check is of its kind
    """

    kind: Kind
    reason: str


def _evidence(reason: str) -> Rule:
    return Rule(Kind.EVIDENCE, reason)


def _limit(reason: str) -> Rule:
    return Rule(Kind.LIMIT, reason)


RULES: Mapping[str, Rule] = {
    "opening.signature": _evidence("without it nobody can say whose commitments the figures are about"),
    "opening.quorum": _evidence(
        "commitments that too few witnesses saw may have been chosen after the questions"
    ),
    "opening.root": _evidence(
        "the witnesses cosigned this root, and what has another root was cosigned by nobody"
    ),
    "opening.published": _evidence(
        "commitments that were made after the window opened may depend on questions"
    ),
    "opening.complete": _evidence("the figures follow from the policy, which has to be the committed one"),
    "opening.indices": _evidence(
        "the bounds count a tenant's accounts, and a shared index has those of two tenants"
    ),
    "opening.policy": _evidence("the figures follow from the policy"),
    "opening.chain": _evidence("a window that was dropped is one more draw of the randomness"),
    "opening.abandoned": _evidence("a wrong count hides draws of the randomness"),
    "opening.empty": _evidence("a wrong count hides draws of the randomness"),
    "opening.beacon": _evidence("the figures assume randomness that the provider could not choose"),
    "ledger.checkpoint": _evidence("without it nobody can say whose ledger the figures are about"),
    "ledger.quorum": _evidence(
        "an end that too few witnesses saw may differ from the end that others were shown"
    ),
    "ledger.size": _evidence("entries that were left out are answers that the figures do not count"),
    "ledger.root": _evidence("entries that the provider did not sign bind nobody"),
    "ledger.consistency": _evidence("a ledger that was rewritten is not the one that the witnesses saw"),
    "ledger.sequence": _evidence("a gap may hide answers that the figures do not count"),
    "ledger.closing": _evidence("a window that is not closed may have more answers than the ledger shows"),
    "ledger.timestamps": _evidence("an answer outside the window's interval is not one of this window"),
    "ledger.clock": _evidence("the order of beacon and answers rests on the times"),
    "ledger.accounts": _evidence("the bounds count the accounts of the roster"),
    "ledger.enrolment": _evidence("the figures assume randomness that the provider could not choose"),
    "ledger.beacons": _evidence("of several beacons the provider could keep the one that it likes"),
    "ledger.kept": _evidence("a sample that is committed to late may depend on questions"),
    "ledger.held": _evidence("the bound assumes that a document is listed to an account once"),
    "ledger.requests": _evidence("the bounds count queries of accounts, which have to be theirs"),
    "ledger.slots": _evidence("the same noise twice is no noise in the difference of two answers"),
    "ledger.limit": _evidence("the bounds count n queries of each account"),
    "proof.challenge": _evidence("without a draw that counts no share of the answers is proved"),
    "proof.present": _evidence("an answer without a proof is the provider's word"),
    "proof.records": _evidence(
        "a proof that belongs to nothing in the window means that the file is another one"
    ),
    "proof.pinned": _evidence("a proof that was exchanged is not the one that its record names"),
    "proof.system": _evidence("a proof that this release cannot verify proves nothing here"),
    "proof.circuit": _evidence("a proof for another circuit proves another statement"),
    "proof.key": _evidence("a proof under a key that nobody pinned may be forged"),
    "proof.valid": _evidence("the figures hold for answers that the mechanism made"),
    "proof.embed.circuit": _evidence("a proof for another circuit proves another statement"),
    "proof.embed.key": _evidence("a proof under a key that nobody pinned may be forged"),
    "proof.embed.valid": _evidence("the policy promises that each vector comes from its question"),
    "proof.kept": _evidence("the figure assumes a sample that nobody chose"),
    "proof.chain": _evidence("each listing record rests on the proof of the one before it"),
    "proof.a1": _evidence("a vector that is not its question's may depend on the index"),
    "receipt.accepted": _evidence("a receipt that cannot be read might contradict the ledger"),
    "receipt.consistent": _evidence("a receipt that contradicts the ledger shows another ledger"),
    "receipt.independent": _limit(
        "receipts support the ledger, and no figure counts them; min_receipts is a limit"
    ),
    "receipt.disclosed": _evidence("a disclosed question that opens nothing leaves its receipt unread"),
    "coalition.parameters": _evidence("an estimate with other parameters answers another question"),
    "coalition.count": _evidence("an estimate that cannot be true says nothing about k_max"),
    "coalition.circuit": _evidence("a proof for another circuit proves another statement"),
    "coalition.key": _evidence("a proof under a key that nobody pinned may be forged"),
    "coalition.certificate": _evidence("the closing record names a proof, which has to hold"),
    "coalition.cap": _evidence("the figures cover k_max accounts that work together, and no more"),
    "bound.computed": _evidence("it computes the figures"),
    "trust.noise_table": _evidence("the figures are computed for the pinned distribution of the noise"),
    "trust.mechanisms": _limit(
        "which mechanisms are enough is the reader's choice; the window has what it says"
    ),
    "trust.max_odds_unlisted": _limit("the factor is established, and above what trust.toml allows"),
    "trust.min_keep": _limit("the share is established, and below what trust.toml asks for"),
    "trust.max_epsilon": _limit("epsilon is established, and above what trust.toml allows"),
    "trust.max_delta": _limit("delta is the policy's, and above what trust.toml allows"),
    "trust.max_theta": _limit("theta is the policy's, and above what trust.toml allows"),
    "trust.max_K_share": _limit("the share is the policy's, and above what trust.toml allows"),
    "trust.max_abandoned": _limit("the count is established, and above what trust.toml allows"),
    "trust.max_empty": _limit("the count is established, and above what trust.toml allows"),
    "trust.max_score_hi": _limit("the score window is the policy's, and above what trust.toml allows"),
    "trust.min_score_width": _limit(
        "the score window is the policy's, and narrower than trust.toml asks for"
    ),
    "trust.min_k_max": _limit("k_max is the policy's, and below what trust.toml asks for"),
    "trust.min_tau": _limit("tau is the policy's, and below what trust.toml asks for"),
    "trust.a1": _limit(
        "the level that was reached is established, and the report states what it leaves open"
    ),
    "trust.d1": _limit(
        "the level that was reached is established, and the report states what it leaves open"
    ),
    "trust.coalition": _limit(
        "the level that was reached is established, and the report states what it leaves open"
    ),
    "trust.challenge": _evidence("eta holds for a draw that the provider could not choose"),
    "trust.setup": _evidence("the party that made a key alone can forge any proof under it"),
    "trust.records": _evidence(
        "without an answer no proof was verified, so nothing shows that the mechanism ran"
    ),
    "trust.embedder": _evidence("a fitted embedder moves every score, and the figures assume the pinned one"),
    "trust.manifest": _evidence("the same files in another use move every score"),
}
"""Each check by its id without a tenant."""

TENANTS = ("proof.embed.circuit", "proof.embed.key", "proof.embed.valid", "proof.circuit", "proof.key", "proof.valid",
           *(f"proof.{name}" for name in COLUMNS))  # fmt: skip
"""Checks with ids that end in a tenant's id."""


def base_id(check: str) -> tuple[str, str | None]:
    """A check's id without its tenant, and the tenant.

    >>> base_id("proof.valid.law"), base_id("ledger.root")
    (('proof.valid', 'law'), ('ledger.root', None))
    """
    for template in TENANTS:
        if check.startswith(f"{template}."):
            return template, check[len(template) + 1 :]
    return check, None


def kind_of(check: str) -> Kind:
    """The kind of a check, named with or without its tenant. An id that the table lacks counts as evidence.

    >>> kind_of("proof.valid.law").value, kind_of("trust.max_delta").value
    ('evidence', 'limit')
    """
    rule = RULES.get(base_id(check)[0])
    return Kind.EVIDENCE if rule is None else rule.kind
