"""The checks of a window's verdict that its policy and its parties decide before it opens, against a verifier's trust
file.

A provider runs these checks before entry 0, since the window cannot be changed after it. They are the checks of the
verdict, with the same ids. For levels that proofs still have to reach, the module assumes success if the policy has
the necessary parts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rag_audit.log.keys import VerifierKey
from rag_audit.models.chain import Unanswered
from rag_audit.models.manifest import ENCODER_ARTEFACT, EmbedderManifest
from rag_audit.models.policy import Policy
from rag_audit.models.records import BeaconSource, DrandBeacon, RosterEntry
from rag_audit.models.trust import Trust
from rag_audit.proofs.backends import proof_system
from rag_audit.verify.case import Check, Findings, Status
from rag_audit.verify.checks import trust as requirements
from rag_audit.verify.checks.proof import known_manifest


@dataclass(frozen=True)
class Parties:
    """The inputs of `open` other than the policy.

    :param key: the provider's public key
    :param witnesses: the witnesses that the window waits for
    :param embedder: the embedder's manifest
    :param before: the counts of windows since the last complete one, as the window header will state them
    """

    origin: str
    key: VerifierKey
    witnesses: Sequence[VerifierKey]
    beacon: BeaconSource
    roster: Sequence[RosterEntry]
    embedder: EmbedderManifest
    before: Unanswered


def policy_checks(
    policy: Policy, trust: Trust, parties: Parties | None = None, embedder: EmbedderManifest | None = None
) -> list[Check]:
    """The checks of a window's verdict that are decided before it opens.

    :param parties: the other inputs of the window header; without them the function checks only the policy
    :param embedder: the embedder's manifest, if not that of `parties`; without both, a pin of any artefact of a proof
        system counts for the level of A1, because a policy does not name its embedder
    """
    embedder = embedder if parties is None else parties.embedder
    findings = Findings(trust=trust, policy=policy)
    findings.figures = {**findings.figures, **policy.figures()}
    before = Unanswered() if parties is None else parties.before
    findings.figures["abandoned"], findings.figures["empty"] = before.abandoned, before.empty
    findings.figures["query_embedding"] = _query_embedding(policy, trust, embedder)
    findings.figures["coalition"] = "not-checked" if policy.estimator.coalition_proof is None else "checked"
    requirements.check_policy(findings)
    requirements.check_setup(findings, _setups(findings))
    _receipts(findings, parties)
    if parties is not None:
        _parties(findings, parties)
    if embedder is not None:
        requirements.check_embedder(findings, embedder)
    return findings.checks


def _query_embedding(policy: Policy, trust: Trust, embedder: EmbedderManifest | None) -> str:
    """The level of A1 that the policy's proofs give, or that re-execution gives where queries are disclosed."""
    if any("embed" not in t.circuits for t in policy.tenants):
        return "re-executed"
    tables = [proof_system(t.system).ARTEFACTS for t in policy.tenants]
    if embedder is not None:
        names = {name for own in tables for name in own if name in embedder["artefacts"]}
        pinned = all(trust.pins.artefact(name) == embedder["artefacts"][name] for name in names)
        if pinned and known_manifest(embedder, trust):
            return "proved"
        return "re-executed" if ENCODER_ARTEFACT in names else "proved(unpinned)"
    return "proved" if all(any(map(trust.pins.artefact, own)) for own in tables) else "proved(unpinned)"


def _setups(findings: Findings) -> set[str]:
    """The setups that the window's proofs will rest on. A key or protocol that is not pinned is undecided."""
    coalition_proof, pins = findings.policy.estimator.coalition_proof, findings.trust.pins
    kinds: set[str] = set()
    parts = [(f"proof.key.{t.tenant}", t.system, [*t.circuits.values()]) for t in findings.policy.tenants]
    if coalition_proof is not None:
        parts.append(("coalition.key", coalition_proof.system, [coalition_proof.circuit]))
    for check, system, circuits in parts:
        with findings.guarding(check):
            setups = proof_system(system).check_pins(circuits, pins)
            kinds |= {setup or "transparent" for setup in setups}
    return kinds


def _receipts(findings: Findings, parties: Parties | None) -> None:
    """Check that enough receipts of independent accounts can come about at all."""
    minimum = findings.trust.require.min_receipts
    pilot = findings.trust.pilot
    keys = {a.id: a.key for a in findings.trust.account if a.independent or pilot}
    named = [*keys]
    if parties is not None:
        named = [
            line.account
            for line in parties.roster
            if (line.custody, line.key) == ("account", keys.get(line.account))
        ]
    maximum = len(named) * findings.policy.n
    wanted = "min_receipts (absent)" if minimum is None else minimum
    findings.require("receipt.independent", minimum is not None and maximum >= minimum,
                  f"at least {wanted} from accounts in trust.toml",
                  f"at most {maximum}: {', '.join(named[:8]) or 'no such account'}")  # fmt: skip


def _parties(findings: Findings, parties: Parties) -> None:
    """Check that provider, witnesses and beacon match trust.toml."""
    trust = findings.trust
    expected = (trust.provider.origin, trust.provider.vkey)
    findings.report("header.signature", (parties.origin, str(parties.key)) == expected, " ".join(expected),
                 f"{parties.origin} {parties.key}")  # fmt: skip
    known = {w.vkey: w.name for w in trust.witness}
    counted = [known[str(key)] for key in parties.witnesses if str(key) in known]
    findings.require("header.quorum", len(counted) >= trust.quorum, f"{trust.quorum} of {', '.join(known.values())}",
                  ", ".join(counted) or "none of them")  # fmt: skip
    if isinstance(parties.beacon, DrandBeacon):
        pinned = None if trust.beacon.drand is None else trust.beacon.drand.chain
        status = Status.UNDECIDED if pinned is None else Status.FAIL
        findings.record("header.beacon", Status.PASS if pinned == parties.beacon.chain else status,
                     f"drand chain {pinned}" if pinned else "witnesses' nonces: no drand chain is pinned",
                     f"drand chain {parties.beacon.chain}")  # fmt: skip
        return
    keys = {w.name: w.vkey for w in trust.witness}
    requested = {keys[name] for name in trust.beacon.witnesses}
    given = {w.vkey for w in parties.beacon.witnesses}
    findings.report(
        "header.beacon",
        requested == given,
        f"nonces of {', '.join(trust.beacon.witnesses) or 'no witness'}",
        f"nonces of {', '.join(known.get(w.vkey, w.name) for w in parties.beacon.witnesses)}",
    )
