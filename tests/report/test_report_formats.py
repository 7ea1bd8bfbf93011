"""Every face is rendered from the same verdicts, and they say the same."""

from __future__ import annotations

import base64
import json
import re
import xml.etree.ElementTree as ET
from dataclasses import dataclass
from typing import Any

import pytest

from rag_audit.log.signing import SigningKey
from rag_audit.report import render_report
from rag_audit.report.explanations import explanations
from rag_audit.report.intoto import EXTENSION, PAYLOAD_TYPE, encoded
from rag_audit.report.model import Report
from tests.report.conftest import OUTCOMES

CODES = {"FAIL": 1, "UNDECIDED": 2, "UNPROVEN": 3, "UNMET": 3}


@dataclass(frozen=True)
class Said:
    """What a face says."""

    line: str
    exit_code: int
    checks: int
    not_passed: dict[str, str]
    deciding: list[str]
    outside: list[str]


def of_json(text: str) -> Said:
    v = json.loads(text)
    return Said(v["line"], v["exit_code"], len(v["checks"]),
                {c["id"]: c["outcome"] for c in v["checks"] if c["outcome"] != "pass"},
                v["decided_by"], v["does_not_prove"])  # fmt: skip


def of_text(text: str) -> Said:
    """Of `--details`, whose table has every check; the exit code is that of the line's first word."""
    line = text.split("\n")[0]
    rows = re.findall(r"^(pass|fail|undecided|unproven|unmet) +([a-z0-9]\S+) ", text, re.MULTILINE)
    shown = re.findall(
        r"^  (?:fail|undecided|unproven|unmet) ([a-z0-9_.A-Z-]+?)(?:, at .*|: read .*)?$",
        text,
        re.MULTILINE,
    )
    table = text[: text.index("requirements of trust.toml")] if "requirements of trust.toml" in text else text
    bullets = re.sub(r"\n    ", " ", text[text.index("\nthis does not prove\n") :])
    return Said(
        line,
        CODES.get(line.split()[0], 0),
        len(rows),
        {name: outcome for outcome, name in rows if outcome != "pass"},
        [name for name in shown if name in table],
        re.findall(r"^  - (.*)$", bullets, re.MULTILINE),
    )


def of_sarif(text: str) -> Said:
    (run,) = json.loads(text)["runs"]
    p = run["properties"]
    (invocation,) = run["invocations"]
    levels = {
        "fail": ("fail", "error"),
        "unproven": ("fail", "error"),
        "unmet": ("fail", "warning"),
        "undecided": ("open", "none"),
    }
    for result in run["results"]:
        assert (result["kind"], result["level"]) == levels[result["properties"]["outcome"]]
        assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == result["ruleId"]
    undecided = [r for r in run["results"] if r["kind"] == "open"]
    errors = [n for n in invocation["toolExecutionNotifications"] if n["level"] == "error"]
    assert len(errors) == len(undecided)
    return Said(p["verdict"], invocation["exitCode"], p["checks"],
                {r["properties"]["id"]: r["properties"]["outcome"] for r in run["results"]},
                p["decidedBy"], p["doesNotProve"])  # fmt: skip


def of_junit(text: str) -> Said:
    root = ET.fromstring(text)
    (suite,) = root
    properties = {p.get("name"): p.get("value") or "" for p in suite.iterfind("properties/property")}
    cases = list(suite.iterfind("testcase"))
    failed = [(str(c.get("name")), c[0]) for c in cases if len(c)]  # two checks may have one id
    kinds = {"fail": "failure", "unproven": "failure", "unmet": "failure", "undecided": "error"}
    assert all(kinds[str(e.get("type"))] == e.tag for _, e in failed)
    for element in (root, suite):
        counted = [sum(e.tag == tag for _, e in failed) for tag in ("failure", "error")]
        assert [element.get(n) for n in ("tests", "failures", "errors")] == [
            str(n) for n in (len(cases), *counted)
        ]
    out = suite.findtext("system-out") or ""
    assert out.split("\n")[0] == properties["verdict"]
    return Said(properties["verdict"], int(properties["exit_code"]), len(cases),
                {name: str(e.get("type")) for name, e in failed},
                properties["decided_by"].split(), out[out.index("this does not prove:") :].split("\n")[1:])  # fmt: skip


@pytest.mark.parametrize("name", OUTCOMES)
def test_faces_agree(name: str, reports: dict[str, Report]) -> None:
    report = reports[name]
    expected = of_json(render_report(report, "json"))
    assert expected.exit_code == CODES.get(name, 0) and expected.line.split()[0] == name
    assert of_text(render_report(report, "text", checks=True)) == expected
    assert of_sarif(render_report(report, "sarif")) == expected
    assert of_junit(render_report(report, "junit")) == expected
    predicate = json.loads(render_report(report, "vsa"))["predicate"]
    own = predicate[EXTENSION]
    assert json.loads(render_report(report, "svr"))["predicate"][EXTENSION] == own
    assert predicate["verificationResult"] == ("PASSED" if name.startswith("PASS") else "FAILED")
    assert (own["verdict"], own["exitCode"], own["outcome"]) == (expected.line, expected.exit_code, name)
    assert (own["decidedBy"], own["doesNotProve"]) == (expected.deciding, expected.outside)
    assert (own["figures"] is None) == (name in ("FAIL", "UNDECIDED", "UNPROVEN"))


@pytest.mark.parametrize("name", OUTCOMES)
def test_a_face_ends_with_a_line_break_and_has_one_face_of_text(
    name: str, reports: dict[str, Report]
) -> None:
    for kind in ("text", "json", "sarif", "junit", "vsa", "svr"):
        text = render_report(reports[name], kind)
        assert text.endswith("\n") and not text.endswith("\n\n"), kind


@pytest.mark.parametrize("name", ["FAIL", "UNDECIDED", "UNPROVEN", "UNMET"])
def test_a_failure_states_its_condition_its_values_and_the_next_step(
    name: str, reports: dict[str, Report]
) -> None:
    report = reports[name]
    (run,) = json.loads(render_report(report, "sarif"))["runs"]
    results = {r["properties"]["id"]: r["message"]["text"] for r in run["results"]}
    cases = ET.fromstring(render_report(report, "junit")).iter("testcase")
    failed = {str(case.get("name")): case[0].text or "" for case in cases if len(case)}
    for check in (c for c in report.checks if c.outcome != "pass"):
        assert check.explanation is not None
        for said in (results[check.id], failed[check.id]):
            assert f"passes if {check.explanation.means}." in said
            assert f"Read by the verifier: {check.actual}. Expected: {check.expected}." in said
            assert f"Next step: {check.explanation.ask}." in said


def test_a_limit_in_the_trust_file_is_not_called_absent(reports: dict[str, Report]) -> None:
    explained = {c.id: c.explanation for c in reports["UNMET"].checks if c.explanation is not None}
    cause = "trust.toml lacks the limit, and no window meets an absent limit"
    assert cause in explanations()["trust.max_epsilon"].honest_causes
    assert cause not in explained["trust.max_epsilon"].honest_causes
    assert (
        explained["trust.max_theta"].failed
        == "trust.toml lacks max_theta, and an absent limit counts as not met."
    )
    assert all(explanation.honest_causes for explanation in explained.values())


def _walk(value: Any) -> list[dict[str, Any]]:
    result = []
    if isinstance(value, dict):
        result.append(value)
        value = list(value.values())
    if isinstance(value, list):
        result += [d for item in value for d in _walk(item)]
    return result


@pytest.mark.parametrize("name", OUTCOMES)
def test_sarif_has_the_standards_form(name: str, reports: dict[str, Report]) -> None:
    """SARIF 2.1.0, sections 3.13 (log), 3.14 (run), 3.27 (result) and 3.58 (notification), in our own words."""
    log = json.loads(render_report(reports[name], "sarif"))
    assert set(log) == {"$schema", "version", "runs"} and log["version"] == "2.1.0"
    (run,) = log["runs"]
    assert set(run) <= {
        "tool",
        "invocations",
        "artifacts",
        "results",
        "automationDetails",
        "columnKind",
        "properties",
    }
    assert run["columnKind"] in ("utf16CodeUnits", "unicodeCodePoints")
    rules = run["tool"]["driver"]["rules"]
    assert len({r["id"] for r in rules}) == len(rules)
    for rule in rules:
        texts = {"shortDescription", "fullDescription", "help"}
        assert set(rule) == {"id", "name", *texts, "defaultConfiguration", "properties"}
        assert all(rule[name]["text"] for name in texts)
    (invocation,) = run["invocations"]
    assert invocation["executionSuccessful"] is True
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", invocation["endTimeUtc"])
    for result in run["results"]:
        assert result["kind"] in ("pass", "open", "informational", "notApplicable", "review", "fail")
        assert result["level"] == "none" or result["kind"] == "fail", "3.27.10"
        assert result["message"]["text"] and all(
            isinstance(v, str) for v in result["partialFingerprints"].values()
        )
        for place in result["locations"]:
            at = place["physicalLocation"]["artifactLocation"]
            assert run["artifacts"][at["index"]]["location"]["uri"] == at["uri"] and re.fullmatch(
                r"[!-~]+", at["uri"]
            )
    for part in _walk(run["artifacts"]):
        assert all(re.fullmatch(r"[0-9a-f]{64}", v) for k, v in part.items() if k == "sha-256")


JUNIT = {
    "testsuites": ({"testsuite"}, {"name", "time", "tests", "failures", "errors"}, set()),
    "testsuite": (
        {"testsuite", "properties", "testcase", "system-out", "system-err"},
        {"name", "tests", "failures", "errors", "skipped", "time", "timestamp", "hostname", "id", "package"},
        {"name", "tests", "failures", "errors"},
    ),
    "properties": ({"property"}, set(), set()),
    "property": (set(), {"name", "value"}, {"name", "value"}),
    "testcase": (
        {"skipped", "error", "failure", "system-out", "system-err"},
        {"name", "time", "classname", "group"},
        {"name"},
    ),
    "failure": (set(), {"type", "message"}, set()),
    "error": (set(), {"type", "message"}, set()),
    "system-out": (set(), set(), set()),
}
"""What Jenkins's junit-10.xsd allows of each element: children, attributes, attributes that are required."""


@pytest.mark.parametrize("name", OUTCOMES)
def test_junit_has_the_schemas_form(name: str, reports: dict[str, Report]) -> None:
    root = ET.fromstring(render_report(reports[name], "junit"))
    assert root.tag == "testsuites"
    for element in root.iter():
        children, attributes, required = JUNIT[element.tag]
        assert {child.tag for child in element} <= children, element.tag
        assert required <= set(element.attrib) <= attributes, element.tag


def test_a_verification_summary_is_signed_over_what_it_says(reports: dict[str, Report]) -> None:
    key = SigningKey.generate("verifier.example.org")
    plain = json.loads(render_report(reports["PASS"], "vsa"))
    assert plain["_type"] == "https://in-toto.io/Statement/v1"
    assert plain["predicateType"] == "https://slsa.dev/verification_summary/v1"
    predicate = plain["predicate"]
    assert {
        "verifier",
        "timeVerified",
        "resourceUri",
        "policy",
        "verificationResult",
        "verifiedLevels",
    } <= set(predicate)
    assert predicate["verifiedLevels"] == [
        "RAG_AUDIT_ISOLATION_STRONG",
        "RAG_AUDIT_LISTS_WEAK",
        "RAG_AUDIT_PRESENCE_NONE",
        "RAG_AUDIT_ABSENCE_NONE",
    ], "no level of SLSA is claimed"
    assert all(re.fullmatch(r"[0-9a-f]{64}", s["digest"]["sha256"]) for s in plain["subject"])
    envelope = json.loads(render_report(reports["PASS"], "vsa", key=key))
    payload = base64.b64decode(envelope["payload"], validate=True)
    assert json.loads(payload) == plain and envelope["payloadType"] == PAYLOAD_TYPE
    (signature,) = envelope["signatures"]
    # DSSE v1, protocol.md: the encoding, written down again.
    message = b"DSSEv1 28 application/vnd.in-toto+json " + str(len(payload)).encode() + b" " + payload
    assert message == encoded(PAYLOAD_TYPE, payload)
    signed = base64.b64decode(signature["sig"], validate=True)
    assert key.verifier.verifies(signed, message) and not key.verifier.verifies(signed, message + b" ")
    assert signature["keyid"] == "+".join(str(key.verifier).split("+")[:2])
