"""The JUnit format: each check is a test case, as a build server's test report shows them.

A false check, a check that leaves the figures unproven, and an unmet limit are failures. An undecided check is an
error. The form follows Jenkins's schema (junit-10.xsd).
"""

from __future__ import annotations

import xml.etree.ElementTree as ET

from rag_audit.report.explanations import causes, evidence
from rag_audit.report.model import CheckLine, Report, ShortReport
from rag_audit.report.protection import ADVERSARIES, line_words
from rag_audit.report.sarif import utc

_ELEMENTS = {"fail": "failure", "unproven": "failure", "unmet": "failure", "undecided": "error"}


def render(report: Report | ShortReport) -> str:
    """The report as JUnit XML."""
    lines = report.lines if isinstance(report, ShortReport) else report.checks
    counts = {name: sum(_ELEMENTS.get(c.outcome) == name for c in lines) for name in ("failure", "error")}
    totals = {
        "tests": str(len(lines)),
        "failures": str(counts["failure"]),
        "errors": str(counts["error"]),
    }
    root = ET.Element("testsuites", {"name": "rag-audit verify", **totals})
    suite = ET.SubElement(
        root,
        "testsuite",
        {
            "name": "verify" if report.window is None else f"{report.window.origin}/{report.window.window}",
            **totals,
            "skipped": "0",
            "timestamp": utc(report.filing.verified_at).removesuffix("Z"),
        },
    )
    properties = ET.SubElement(suite, "properties")
    for name, value in _properties(report):
        ET.SubElement(properties, "property", {"name": name, "value": value})
    for check in lines:
        _case(suite, check)
    out = ET.SubElement(suite, "system-out")
    out.text = "\n".join(
        [
            report.line,
            report.sentence,
            *(f"WARNING: {warning}" for warning in report.warnings),
            *(
                f"{p.tenant}: {line_words(name, line)}"
                for p in report.protections
                for name, line in p.lines.items()
            ),
            *(["This shows:", *(c.words for c in report.claims)] if report.claims else []),
            *report.notes,
            *(["this does not prove:", *report.does_not_prove] if report.does_not_prove else []),
        ]
    )
    ET.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _properties(report: Report | ShortReport) -> list[tuple[str, str]]:
    result = [
        ("verdict", report.line),
        ("outcome", report.outcome),
        *(
            (f"protection.{name}.{p.tenant}", p.lines[name].strength)
            for p in report.protections
            for name in ADVERSARIES
        ),
        ("exit_code", str(report.exit_code)),
        ("decided_by", " ".join(report.decided_by)),
        ("version", report.filing.version),
    ]
    return result + [(f.role, f"{f.name} {f.sha256 or ''}".strip()) for f in report.filing.inputs]


def _case(suite: ET.Element, check: CheckLine) -> None:
    group = check.base.partition(".")[0]
    case = ET.SubElement(suite, "testcase", {"name": check.id, "classname": f"rag_audit.{group}"})
    if check.outcome == "pass":
        return
    message = {"message": evidence(check), "type": check.outcome}
    element = ET.SubElement(case, _ELEMENTS[check.outcome], message)
    lines = [evidence(check)]
    if check.at is not None:
        lines.append(f"Place: {check.at}.")
    if (e := check.explanation) is not None:
        lines += [
            f"The check passes if {e.means}.",
            e.failed,
            causes(e),
            f"Next step: {e.ask}.",
            f"More: {e.section}",
        ]
    element.text = "\n".join(lines)
