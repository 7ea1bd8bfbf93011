"""The format `svr`: a simple verification result in an in-toto statement (https://in-toto.io/attestation/svr/v0.2).

Source: in-toto/attestation, spec/predicates/svr.md, version 0.2. The predicate lists only properties that passed. A
policy engine looks for single names and ignores the others, so the names follow two rules. First, a report has a
property only if every check passed that the property depends on; a window with a false or undecided check has none.
Secondly, no name can be read without the weakness that it has: RAG_AUDIT_PASS is a verdict without an allowed
exception, and RAG_AUDIT_SETUP_UNSAFE or RAG_AUDIT_WITNESSES_PILOT replace the name of the stronger setting.

A requirement that the window does not meet has no property. The field of our own has its name under `notMet`, and the
rest of the report.
"""

from __future__ import annotations

from urllib.parse import quote

from rag_audit._internal.canonical import Json
from rag_audit.log.signing import SigningKey
from rag_audit.report.intoto import EXTENSION, VERIFIER, extension, policies, rendered, statement_of
from rag_audit.report.model import Report, ShortReport
from rag_audit.report.protection import weakest
from rag_audit.report.sarif import utc

PREDICATE = "https://in-toto.io/attestation/svr/v0.2"
PREFIX = "RAG_AUDIT_"
SETUPS = {"transparent": "NO_KEYS", "ceremony": "CEREMONY", "unsafe": "UNSAFE"}
"""The words for the origin of the proofs' keys, by `figures.setup`."""


def render(report: Report | ShortReport, key: SigningKey | None = None) -> str:
    """The statement, or the envelope around it if a key is given."""
    return rendered(statement(report), key)


def statement(report: Report | ShortReport) -> Json:
    """The in-toto statement as a JSON value."""
    return statement_of(
        report,
        PREDICATE,
        {
            # The specification recommends a new identifier for each change of the verifier's rules.
            "verifier": {"id": f"{VERIFIER}:{quote(report.filing.version)}", "policies": policies(report)},
            "timeCreated": utc(report.filing.verified_at),
            "properties": [*properties(report)],
            EXTENSION: extension(report),
        },
    )


def properties(report: Report | ShortReport) -> list[str]:
    """The properties of the window that passed.

    The list is empty for a short report, which has no figures, and for a window with a false or undecided check, whose
    report has no figure, no sentence and no met requirement.
    """
    if isinstance(report, ShortReport):
        return []
    names: list[str] = []
    if report.exit_code == 0:
        # A trust file of the sender's own choice is an exception too (`Report.remark`).
        exceptions = report.figures.allowed or report.remark or report.vouching.pilot
        names.append(report.outcome + ("-with-exceptions" if exceptions else ""))
    if report.figures.standing != "not-established":
        names.append("mechanisms-" + "-and-".join(sorted({t.mechanism for t in report.tenants})))
    names += [
        f"{adversary}-{level}"
        for adversary, level in weakest(report.protections).items()
        if level != "not-established"
    ]
    every, drawn = report.shows("answers"), report.shows("answers-drawn")
    if every or drawn:
        names.append("answers-all-proved" if every else "answers-sampled")
        met = all(r.outcome == "pass" for r in report.requirements if r.name == "setup")
        if met and report.figures.setup in SETUPS:
            names.append(f"setup-{SETUPS[report.figures.setup]}")
    names += _requirements(report)
    return [PREFIX + name.upper().replace("-", "_") for name in names]


def _requirements(report: Report) -> list[str]:
    """The kind of the witnesses if their quorum counts, and each requirement of trust.toml that every tenant meets."""
    names = []
    if any(r.name == "quorum" and r.outcome == "pass" for r in report.requirements):
        vouching = report.vouching
        if vouching.pilot:
            names.append("witnesses-pilot")
        elif vouching.dependence.minority:
            names.append("witnesses-minority")
        elif vouching.forkable or vouching.chosen:
            names.append("witnesses-dependent")
        else:
            names.append("witnesses-independent")
    # A requirement with a scope says nothing about the tenants outside it.
    return names + [f"met-{r.name}" for r in report.requirements if r.outcome == "pass" and r.scope is None]
