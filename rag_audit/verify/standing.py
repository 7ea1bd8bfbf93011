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
    """the figures depend on the check; if it is not met, the figures are not established (UNPROVEN)"""
    LIMIT = "limit"
    """a limit or level of trust.toml; if the limit is exceeded, the window is still sound (UNMET)"""


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
    "header.signature": _evidence("the figures are about the commitments that the provider signed"),
    "header.quorum": _evidence("without a quorum, the provider may have made the commitments later"),
    "header.root": _evidence("the cosignatures of the witnesses only cover a window header with this root"),
    "header.published": _evidence("commitments from a time after the window opened may depend on questions"),
    "header.complete": _evidence("the figures follow from the committed policy"),
    "header.indices": _evidence("a shared index has the accounts of two tenants, and the bounds count one"),
    "header.policy": _evidence("the figures follow from the policy"),
    "header.chain": _evidence("an abandoned window is one more draw of the randomness"),
    "header.abandoned": _evidence("a wrong count hides draws of the randomness"),
    "header.empty": _evidence("a wrong count hides draws of the randomness"),
    "header.tables": _evidence("a table that continues another one draws a second bit for a document"),
    "header.beacon": _evidence("the figures assume randomness that the provider could not choose"),
    "ledger.checkpoint": _evidence("the figures are about the ledger that the provider signed"),
    "ledger.quorum": _evidence("without a quorum, the provider may show different ends of the ledger"),
    "ledger.size": _evidence("the figures do not count the answers in missing entries"),
    "ledger.root": _evidence("entries without the provider's signature do not bind the provider"),
    "ledger.consistency": _evidence("a rewritten ledger differs from the ledger that the witnesses saw"),
    "ledger.sequence": _evidence("a gap may hide answers that the figures do not count"),
    "ledger.trailer": _evidence("a window that is not closed may have more answers than the ledger shows"),
    "ledger.timestamps": _evidence("an answer outside the window's interval does not belong to this window"),
    "ledger.clock": _evidence("the order of beacon and answers depends on the times"),
    "ledger.accounts": _evidence("the bounds count the accounts of the roster"),
    "ledger.enrolment": _evidence("the figures assume randomness that the provider could not choose"),
    "ledger.beacons": _evidence("with several beacons, the provider could choose one of them"),
    "ledger.sample": _evidence("a sample with a late commitment may depend on questions"),
    "ledger.listed_rows": _evidence(
        "the bound assumes one growing set of listed documents and at most m queries"
    ),
    "ledger.requests": _evidence("the bounds count the queries that the accounts themselves sent"),
    "ledger.slots": _evidence("if two answers have the same noise, their difference has no noise"),
    "ledger.limit": _evidence("the bounds count n queries of each account"),
    "proof.challenge": _evidence("without a valid draw, no share of the answers is proved"),
    "proof.present": _evidence("the provider's word is the only evidence for an answer without a proof"),
    "proof.records": _evidence("a file with a proof but without its record belongs to another window"),
    "proof.pinned": _evidence("an exchanged proof differs from the proof that its record names"),
    "proof.system": _evidence("this release cannot rely on a proof that it cannot verify"),
    "proof.circuit": _evidence("a proof for another circuit proves another statement"),
    "proof.key": _evidence("a proof under an unpinned key may be forged"),
    "proof.valid": _evidence("the figures are valid for answers of the mechanism"),
    "proof.embed.circuit": _evidence("a proof for another circuit proves another statement"),
    "proof.embed.key": _evidence("a proof under an unpinned key may be forged"),
    "proof.embed.valid": _evidence("the policy promises that each vector comes from its question"),
    "proof.sample": _evidence("the figure assumes that no party chose the sample"),
    "proof.chain": _evidence("each record depends on the proof of the previous record"),
    "proof.query_embedding": _evidence("a vector of another question may depend on the index"),
    "receipt.accepted": _evidence("a receipt that cannot be read might contradict the ledger"),
    "receipt.consistent": _evidence("a receipt that contradicts the ledger shows another ledger"),
    "receipt.independent": _limit("receipts support the ledger, and no figure depends on them"),
    "receipt.disclosed": _evidence("without a valid disclosed question, the receipt cannot be checked"),
    "coalition.parameters": _evidence("an estimate with other parameters is not the policy's estimate"),
    "coalition.count": _evidence("an impossible estimate is no evidence about k_max"),
    "coalition.circuit": _evidence("a proof for another circuit proves another statement"),
    "coalition.key": _evidence("a proof under an unpinned key may be forged"),
    "coalition.proof": _evidence("the window trailer names a proof, and this proof has to be valid"),
    "coalition.cap": _evidence("the figures cover at most k_max cooperating accounts"),
    "bound.computed": _evidence("it computes the figures"),
    "trust.noise_table": _evidence("the figures are computed for the pinned distribution of the noise"),
    "trust.mechanisms": _limit("the verifier chooses the accepted mechanisms"),
    "trust.max_exclusion_factor": _limit("the factor is established, and above what trust.toml allows"),
    "trust.max_exposure": _limit("the number is the policy's, and above what trust.toml allows"),
    "trust.max_fresh_share": _limit("the numbers are the policy's, and above what trust.toml allows"),
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
    "trust.query_embedding": _limit("the reached level is established, and the report states its limits"),
    "trust.document_embedding": _limit("the reached level is established, and the report states its limits"),
    "trust.coalition": _limit("the reached level is established, and the report states its limits"),
    "trust.challenge": _evidence("eta is valid for a draw that the provider could not choose"),
    "trust.setup": _evidence("a single party that made a key can forge any proof under this key"),
    "trust.records": _evidence("a window without an answer has no evidence that the mechanism ran"),
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
