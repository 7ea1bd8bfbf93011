"""The format `vsa`: a verification summary (https://slsa.dev/verification_summary/v1) in an in-toto statement.

The statement names the verified files (window.json and its siblings, by digest), the policy (trust.toml), the verifier
and the time, and the result. It claims no SLSA level: `verifiedLevels` has the strength of the protection from each
adversary under names of our own, so that a policy engine does not mistake PASSED for protection. Another field of our
own has the subject of the window's verdict; its name is a URN, as in-toto requires of extensions. Every exit code
except 0 becomes FAILED, since the format has no third word; our field has the outcome.
"""

from __future__ import annotations

from urllib.parse import quote

from rag_audit._internal.canonical import Json
from rag_audit.log.signing import SigningKey
from rag_audit.report.intoto import EXTENSION, VERIFIER, extension, policies, rendered, statement_of
from rag_audit.report.model import Report, ShortReport
from rag_audit.report.protection import weakest
from rag_audit.report.sarif import utc

PREDICATE = "https://slsa.dev/verification_summary/v1"
UNKNOWN = "RAG_AUDIT_PROTECTION_UNKNOWN"
"""The level of a pass without a whole report."""


def render(report: Report | ShortReport, key: SigningKey | None = None) -> str:
    """The statement, or the envelope around it if a key is given."""
    return rendered(statement(report), key)


def statement(report: Report | ShortReport) -> Json:
    """The in-toto statement as a JSON value."""
    inputs = report.filing.inputs
    header = None if report.window is None else report.window.header
    attestations: list[Json] = [
        {"uri": quote(f.name), "digest": {"sha256": f.sha256}}
        for f in inputs
        if f.role in ("previous", "challenge") and f.sha256 is not None
    ]
    if report.filing.receipts.sha256 is not None:
        attestations.append({"uri": "receipts", "digest": {"sha256": report.filing.receipts.sha256}})
    unread: Json = {"uri": "trust.toml"}
    return statement_of(
        report,
        PREDICATE,
        {
            "verifier": {"id": VERIFIER, "version": {"rag-audit": report.filing.version}},
            "timeVerified": utc(report.filing.verified_at),
            "resourceUri": f"urn:rag-audit:window:{header or 'unknown'}",
            "policy": next(iter(policies(report)), unread),
            "inputAttestations": attestations,
            "verificationResult": "PASSED" if report.exit_code == 0 else "FAILED",
            "verifiedLevels": _levels(report),
            EXTENSION: extension(report),
        },
    )


def _levels(report: Report | ShortReport) -> list[Json]:
    """One level for each adversary, of the tenant with the weakest protection from this adversary.

    The format lets each verifier choose names that do not begin with SLSA_, and defines FAILED for a result that did
    not pass.
    """
    if report.exit_code != 0:
        return ["FAILED"]
    levels: list[Json] = [
        f"RAG_AUDIT_{name}_{level}".upper().replace("-", "_")
        for name, level in weakest(report.protections).items()
    ]
    return levels or [UNKNOWN]
