"""The SARIF 2.1.0 format (OASIS, 27 March 2020): a verdict for a code scanner's viewer.

Each check that ran is a rule, and each check that did not pass is a result. A false check is an error, and so is a
check that leaves the window's figures unproven. An unmet limit is a warning. An undecided check has the kind `open`,
for which the standard allows no level; it is therefore also a notification of level error, so that every viewer shows
it. An unusable input is an error.

Code hosts demand more than the standard: every rule has a short and a full description, help and a level, and every
result has a file by a relative path and a region in it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from urllib.parse import quote

from rag_audit._internal.canonical import Json
from rag_audit._internal.words import instant
from rag_audit.report.explanations import causes, evidence, explanations
from rag_audit.report.model import CheckLine, Report, ShortReport

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_KINDS = {
    "fail": ("fail", "error"),
    "unproven": ("fail", "error"),
    "unmet": ("fail", "warning"),
    "undecided": ("open", "none"),
}
WINDOW, TRUST = "window.json", "trust.toml"
OWN = ("input.readable", "program.finished")
"""The id of the result for a run without a verdict."""


def render(report: Report | ShortReport, places: Mapping[str, str] | None = None) -> str:
    """The report as a SARIF log."""
    return json.dumps(value(report, places), indent=1, ensure_ascii=False) + "\n"


def value(report: Report | ShortReport, places: Mapping[str, str] | None = None) -> Json:
    """The SARIF log as a JSON value.

    :param places: the relative paths of window and trust file by role; their last names if None
    """
    lines = report.lines if isinstance(report, ShortReport) else report.checks
    failed = [c for c in lines if c.outcome != "pass"]
    bases = list(dict.fromkeys(c.base for c in lines))
    numbers = {base: number for number, base in enumerate(bases)}
    files = {f.role: f for f in report.filing.inputs}
    artifacts: list[Json] = []
    for role, name in (("window", WINDOW), ("trust", TRUST)):
        place = (places or {}).get(role) or (files[role].name if role in files else name)
        artifact: dict[str, Json] = {"location": {"uri": quote(place)}}
        if role in files and (digest := files[role].sha256) is not None:
            artifact["hashes"] = {"sha-256": digest}
        artifacts.append(artifact)
    window = "none" if report.window is None else f"{report.window.origin}/{report.window.window}"
    notifications: list[Json] = [
        {
            "level": "error",
            "message": {"text": f"{c.id} could not be decided. {evidence(c)}"},
            "associatedRule": {"id": c.base, "index": numbers[c.base]},
        }
        for c in failed
        if c.outcome == "undecided"
    ]
    notifications += [{"level": "warning", "message": {"text": warning}} for warning in report.warnings]
    if isinstance(report, Report):
        notifications += [
            {"level": "warning", "message": {"text": f"{w.words}; {w.better}"}}
            for w in report.weaker
            if w.id in ("senders_trust", "packed_report")
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
                        "rules": [_rule(base, lines) for base in bases],
                    }
                },
                "automationDetails": {"id": f"rag-audit/{window}/"},
                "invocations": [
                    {
                        "executionSuccessful": isinstance(report, Report) or report.fault is None,
                        "exitCode": report.exit_code,
                        "exitCodeDescription": report.outcome,
                        "endTimeUtc": utc(report.filing.verified_at),
                        "toolExecutionNotifications": notifications,
                    }
                ],
                "artifacts": artifacts,
                "results": [_result(check, numbers, artifacts, report) for check in failed],
                "columnKind": "unicodeCodePoints",
                "properties": {
                    "verdict": report.line,
                    "outcome": report.outcome,
                    "sentence": report.sentence,
                    "protections": [p.dump() for p in report.protections],
                    "warnings": [*report.warnings],
                    "claims": [c.dump() for c in report.claims],
                    "decidedBy": [*report.decided_by],
                    "checks": len(lines),
                    "passed": len(lines) - len(failed),
                    "doesNotProve": [*report.does_not_prove],
                },
            }
        ],
    }


def utc(milliseconds: int) -> str:
    """An instant as RFC 3339 has it, in whole seconds."""
    return instant(milliseconds - milliseconds % 1000).replace(" UTC", "Z").replace(" ", "T")


def _rule(base: str, lines: Sequence[CheckLine]) -> Json:
    """A rule as code hosts ask for it, also of a check that passed."""
    own = next((c.explanation for c in lines if c.base == base and c.explanation), None)
    e = own or explanations().get(base)
    means = f"the check {base} of rag-audit verify" if e is None else e.means
    failed = "rag-audit verify could not establish this." if e is None else e.failed
    steps = (
        f"More: {base}" if e is None
        else f"{causes(e)} Next step: {e.ask}. More: {e.section}"
    )  # fmt: skip
    return {
        "id": base,
        "name": "".join(part.capitalize() for part in base.split(".")),
        "shortDescription": {"text": means},
        "fullDescription": {"text": failed},
        "help": {"text": steps, "markdown": steps},
        "defaultConfiguration": {"level": "warning" if base.startswith("trust.") else "error"},
        "properties": {"tags": ["rag-audit", base.partition(".")[0]], "precision": "very-high"},
    }


def _result(
    check: CheckLine, numbers: dict[str, int], artifacts: list[Json], report: Report | ShortReport
) -> Json:
    kind, level = ("fail", "error") if check.base in OWN else _KINDS[check.outcome]
    about_trust = check.base.startswith("trust.") or (check.base in OWN and _names_trust(check, report))
    index = int(about_trust)
    artifact = artifacts[index]
    assert isinstance(artifact, dict) and isinstance(artifact["location"], dict)
    where: dict[str, Json] = {
        "physicalLocation": {
            "artifactLocation": {"uri": artifact["location"]["uri"], "index": index},
            # The files have no lines of their own that a check is about; a result without a region is not shown.
            "region": {"startLine": 1, "startColumn": 1},
        }
    }
    if check.at is not None:
        where["logicalLocations"] = [{"fullyQualifiedName": check.at}]
    return {
        "ruleId": check.base,
        "ruleIndex": numbers[check.base],
        "kind": kind,
        "level": level,
        "message": {"text": _message(check)},
        "locations": [where],
        "partialFingerprints": {
            "check/v1": f"{'none' if report.window is None else report.window.header}/{check.id}"
        },
        "properties": {
            "id": check.id,
            "outcome": check.outcome,
            "decides": check.decides,
            "tenant": check.tenant,
        },
    }


def _message(check: CheckLine) -> str:
    """The check with its condition, the values that decided it, and the next step."""
    e = check.explanation
    if e is None:
        return f"{check.id}: {evidence(check)}"
    return f"{check.id} passes if {e.means}. {evidence(check)} {e.failed} Next step: {e.ask}."


def _names_trust(check: CheckLine, report: Report | ShortReport) -> bool:
    """Whether the trust file is the unusable input."""
    at = check.at or ""
    named = {f.role: f.name for f in report.filing.inputs}
    if named.get("window") != named.get("trust") and (trust := named.get("trust")):
        return at.startswith(trust)
    return "trust" in at
