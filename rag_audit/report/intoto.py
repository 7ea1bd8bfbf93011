"""In-toto statements about a verification, which the formats `vsa` and `svr` share (https://in-toto.io/Statement/v1).

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

STATEMENT = "https://in-toto.io/Statement/v1"
PAYLOAD_TYPE = "application/vnd.in-toto+json"
VERIFIER = "urn:rag-audit:verifier"
EXTENSION = "urn:rag-audit:verification:1"
"""The field of our own in each predicate. Its name is a URN, as in-toto requires of extensions."""


def statement_of(report: Report | ShortReport, predicate_type: str, predicate: Json) -> Json:
    """The statement: the verified files by digest, and a predicate about them."""
    # A statement needs a subject with a digest; the window header's digest is the window's name in every signature. A
    # run that could not read its window has none. Such a statement matches no subject, so no policy can take it for a
    # pass.
    header = None if report.window is None else report.window.header
    subject: list[Json] = [
        {"name": f.name, "digest": {"sha256": f.sha256}}
        for f in report.filing.inputs
        if f.role in ("window", "sibling") and f.sha256 is not None
    ] or ([] if header is None else [{"name": "header", "digest": {"sha256": header}}])
    return {"_type": STATEMENT, "subject": subject, "predicateType": predicate_type, "predicate": predicate}


def extension(report: Report | ShortReport) -> Json:
    """The content of the report, under a name of our own: the outcome, the figures, the sentences, the requirements and
    the statements that are not proved."""
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
        "notMet": [r.name for r in report.requirements if r.outcome != "pass"],
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


def policies(report: Report | ShortReport) -> list[Json]:
    """The trust file that decided the verdict, as a ResourceDescriptor of in-toto; empty if no file was read."""
    return [
        {"uri": quote(f.name)} | ({} if f.sha256 is None else {"digest": {"sha256": f.sha256}})
        for f in report.filing.inputs
        if f.role == "trust"
    ]


def rendered(statement: Json, key: SigningKey | None) -> str:
    """The statement as text, or the envelope around it if a key is given."""
    if key is None:
        return json.dumps(statement, indent=1, ensure_ascii=False) + "\n"
    payload = json.dumps(statement, separators=(",", ":"), ensure_ascii=False).encode()
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
