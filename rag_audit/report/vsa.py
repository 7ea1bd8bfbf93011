"""The in-toto format: a verification summary (https://slsa.dev/verification_summary/v1), signed if a key is given.

The statement names the verified files (window.json and its siblings, by digest), the policy (trust.toml), the verifier
and the time, and the result. It claims no SLSA level: `verifiedLevels` has the strength of the protection from each
adversary under names of our own, so that a policy engine does not mistake PASSED for protection. Another field of our
own has the subject of the window's verdict; its name is a URN, as in-toto requires of extensions. Every exit code
except 0 becomes FAILED, since the format has no third word; our field has the outcome.

With a key, the statement is the payload of a DSSE envelope, with an Ed25519 signature over DSSE's pre-authentication
encoding. The package in-toto-attestation makes the same statement through protobuf, which a base install should not
need for one JSON object; a test encodes statement and envelope a second time, by the published rules.
"""

from __future__ import annotations

import base64
import json
from urllib.parse import quote

from rag_audit._internal.canonical import Json
from rag_audit.log.signing import SigningKey
from rag_audit.report.model import Report, ShortReport
from rag_audit.report.protection import ADVERSARIES
from rag_audit.report.sarif import utc
from rag_audit.report.strength import ORDER

STATEMENT = "https://in-toto.io/Statement/v1"
PREDICATE = "https://slsa.dev/verification_summary/v1"
PAYLOAD_TYPE = "application/vnd.in-toto+json"
EXTENSION = "urn:rag-audit:verification:1"
VERIFIER = "urn:rag-audit:verifier"
UNKNOWN = "RAG_AUDIT_PROTECTION_UNKNOWN"
"""The level of a pass without a whole report."""


def render(report: Report | ShortReport, key: SigningKey | None = None) -> str:
    """The statement, or the envelope around it if a key is given."""
    result = statement(report)
    if key is None:
        return json.dumps(result, indent=1, ensure_ascii=False) + "\n"
    payload = json.dumps(result, separators=(",", ":"), ensure_ascii=False).encode()
    envelope = {
        "payloadType": PAYLOAD_TYPE,
        "payload": base64.b64encode(payload).decode(),
        "signatures": [
            {
                "keyid": f"{key.name}+{key.verifier.key_id.hex()}",
                "sig": base64.b64encode(key.sign(encoded(PAYLOAD_TYPE, payload))).decode(),
            }
        ],
    }
    return json.dumps(envelope, indent=1) + "\n"


def encoded(payload_type: str, payload: bytes) -> bytes:
    """DSSE's pre-authentication encoding, the bytes that are signed."""
    name = payload_type.encode()
    return b"DSSEv1 %d %s %d %s" % (len(name), name, len(payload), payload)


def statement(report: Report | ShortReport) -> Json:
    """The in-toto statement as a JSON value."""
    inputs = report.filing.inputs
    # A statement needs a subject with a digest; the window header's digest is the window's name in every signature. A
    # run that could not read its window has none. Such a statement matches no subject, so no policy can take it for a
    # pass.
    header = None if report.window is None else report.window.header
    subject: list[Json] = [
        {"name": f.name, "digest": {"sha256": f.sha256}}
        for f in inputs
        if f.role in ("window", "sibling") and f.sha256 is not None
    ] or ([] if header is None else [{"name": "header", "digest": {"sha256": header}}])
    trust = next((f for f in inputs if f.role == "trust"), None)
    policy: dict[str, Json] = {"uri": "trust.toml" if trust is None else quote(trust.name)}
    if trust is not None and trust.sha256 is not None:
        policy["digest"] = {"sha256": trust.sha256}
    attestations: list[Json] = [
        {"uri": quote(f.name), "digest": {"sha256": f.sha256}}
        for f in inputs
        if f.role in ("previous", "challenge") and f.sha256 is not None
    ]
    if report.filing.receipts.sha256 is not None:
        attestations.append({"uri": "receipts", "digest": {"sha256": report.filing.receipts.sha256}})
    return {
        "_type": STATEMENT,
        "subject": subject,
        "predicateType": PREDICATE,
        "predicate": {
            "verifier": {"id": VERIFIER, "version": {"rag-audit": report.filing.version}},
            "timeVerified": utc(report.filing.verified_at),
            "resourceUri": f"urn:rag-audit:window:{header or 'unknown'}",
            "policy": policy,
            "inputAttestations": attestations,
            "verificationResult": "PASSED" if report.exit_code == 0 else "FAILED",
            "verifiedLevels": _levels(report),
            EXTENSION: _extension(report),
        },
    }


def _levels(report: Report | ShortReport) -> list[Json]:
    """One level for each adversary, of the tenant with the weakest protection from this adversary.

    The format lets each verifier choose names that do not begin with SLSA_, and defines FAILED for a result that did
    not pass.
    """
    if report.exit_code != 0:
        return ["FAILED"]
    levels: list[Json] = []
    for name in ADVERSARIES if report.protections else ():
        strengths = [p.lines[name].strength for p in report.protections]
        weakest = min(strengths, key=lambda level: ORDER.index(level) if level in ORDER else -1)
        levels.append(f"RAG_AUDIT_{name}_{weakest}".upper().replace("-", "_"))
    return levels or [UNKNOWN]


def _extension(report: Report | ShortReport) -> Json:
    value: dict[str, Json] = {
        "origin": None,
        "window": None,
        "outcome": report.outcome,
        "exitCode": report.exit_code,
        "verdict": report.line,
        "decidedBy": [*report.decided_by],
        "figures": None,
        "protections": [p.dump() for p in report.protections],
        "warnings": [*report.warnings],
        "claims": [],
        "counts": None,
        "requirements": [],
        "allowed": [],
        "weaker": [],
        "doesNotProve": [*report.does_not_prove],
    }
    if isinstance(report, ShortReport):
        return {**value, "malformed": None if report.malformed is None else report.malformed.dump()}
    stands = report.figures.standing != "not-established"
    return {
        **value,
        "origin": report.window.origin,
        "window": report.window.window,
        "figures": report.figures.dump() if stands else None,
        "claims": [c.dump() for c in report.claims],
        "counts": report.counts.dump(),
        "requirements": [{"name": r.name, "limit": r.limit, "actual": r.actual} for r in report.requirements],
        "allowed": [*report.figures.allowed],
        "weaker": [w.words for w in report.weaker],
    }
