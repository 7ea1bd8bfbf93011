"""The SARIF 2.1.0 face (OASIS, 27 March 2020): what a code scanner's viewer shows of a verdict.

Each check that ran is a rule, and each that did not pass is a result. A false check is an error, and so is a check that
leaves the window's figures unproven. An unmet limit is a warning. A check that could not be decided is of kind `open`,
which the standard gives no level; so that no viewer is silent about it, it is a notification of level error too.
"""

from __future__ import annotations

import json
from urllib.parse import quote

from rag_audit.encoding.canonical import Json
from rag_audit.verify.report.model import CheckLine, Report
from rag_audit.verify.words import instant

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_KINDS = {
    "fail": ("fail", "error"),
    "unproven": ("fail", "error"),
    "unmet": ("fail", "warning"),
    "undecided": ("open", "none"),
}
WINDOW, TRUST = "window.json", "trust.toml"


def render(report: Report) -> str:
    """The report as a SARIF log."""
    return json.dumps(value(report), indent=1, ensure_ascii=False) + "\n"


def value(report: Report) -> Json:
    """The SARIF log as a JSON value."""
    failed = [c for c in report.checks if c.outcome != "pass"]
    bases = list(dict.fromkeys(c.base for c in report.checks))
    places = {base: number for number, base in enumerate(bases)}
    files = {f.role: f for f in report.filing.inputs}
    artifacts: list[Json] = []
    for role, name in (("window", WINDOW), ("trust", TRUST)):
        artifact: dict[str, Json] = {"location": {"uri": quote(files[role].name if role in files else name)}}
        if role in files and (digest := files[role].sha256) is not None:
            artifact["hashes"] = {"sha-256": digest}
        artifacts.append(artifact)
    notifications: list[Json] = [
        {
            "level": "error",
            "message": {"text": f"{c.id} could not be decided: found {c.found}, expected {c.expected}"},
            "associatedRule": {"id": c.base, "index": places[c.base]},
        }
        for c in failed
        if c.outcome == "undecided"
    ]
    return {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "rag-audit",
                        "version": report.filing.version,
                        "rules": [_rule(base, report) for base in bases],
                    }
                },
                "automationDetails": {"id": f"rag-audit/{report.window.origin}/{report.window.window}/"},
                "invocations": [
                    {
                        "executionSuccessful": True,
                        "exitCode": report.exit_code,
                        "exitCodeDescription": report.outcome,
                        "endTimeUtc": utc(report.filing.verified_at),
                        "toolExecutionNotifications": notifications,
                    }
                ],
                "artifacts": artifacts,
                "results": [_result(check, places, artifacts, report) for check in failed],
                "columnKind": "unicodeCodePoints",
                "properties": {
                    "verdict": report.line,
                    "outcome": report.outcome,
                    "sentence": report.sentence,
                    "decidedBy": [*report.decided_by],
                    "checks": len(report.checks),
                    "passed": len(report.checks) - len(failed),
                    "doesNotProve": [*report.does_not_prove],
                },
            }
        ],
    }


def utc(milliseconds: int) -> str:
    """An instant as RFC 3339 has it, in whole seconds."""
    return instant(milliseconds - milliseconds % 1000).replace(" UTC", "Z").replace(" ", "T")


def _rule(base: str, report: Report) -> Json:
    explanation = next((c.explanation for c in report.checks if c.base == base and c.explanation), None)
    rule: dict[str, Json] = {"id": base, "name": "".join(part.capitalize() for part in base.split("."))}
    if explanation is not None:
        rule["shortDescription"] = {"text": explanation.means}
        rule["fullDescription"] = {"text": explanation.failed}
        causes = "; ".join(explanation.honest_causes)
        rule["help"] = {
            "text": f"Honest causes: {causes}. Ask: {explanation.ask}. Read: {explanation.section}"
        }
    return rule


def _result(check: CheckLine, places: dict[str, int], artifacts: list[Json], report: Report) -> Json:
    kind, level = _KINDS[check.outcome]
    index = int(check.base.startswith("trust."))
    artifact = artifacts[index]
    assert isinstance(artifact, dict) and isinstance(artifact["location"], dict)
    where: dict[str, Json] = {
        "physicalLocation": {"artifactLocation": {"uri": artifact["location"]["uri"], "index": index}}
    }
    if check.at is not None:
        where["logicalLocations"] = [{"fullyQualifiedName": check.at}]
    return {
        "ruleId": check.base,
        "ruleIndex": places[check.base],
        "kind": kind,
        "level": level,
        "message": {"text": f"{check.id}: found {check.found}, expected {check.expected}"},
        "locations": [where],
        "partialFingerprints": {"check/v1": f"{report.window.opening}/{check.id}"},
        "properties": {
            "id": check.id,
            "outcome": check.outcome,
            "decides": check.decides,
            "tenant": check.tenant,
        },
    }
