"""The format `svr`: a property appears only if every check passed that it depends on."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from typing import Any

import pytest

from rag_audit.log.signing import SigningKey
from rag_audit.report import render_report
from rag_audit.report.build import report_of
from rag_audit.report.claims import REQUIREMENTS, SENTENCES
from rag_audit.report.intoto import EXTENSION, PAYLOAD_TYPE, encoded
from rag_audit.report.model import Report
from rag_audit.report.svr import SETUPS, properties
from rag_audit.report.verification import ReportedVerdict
from rag_audit.verify.case import Status
from rag_audit.verify.standing import base_id
from rag_audit.verify.verdict import concluded
from tests.report.conftest import NOW, OUTCOMES
from tests.report.test_claims import bases, ways, without

BASES = ("example", "example, sampled", "few", "sampling")
FIRST = ["RAG_AUDIT_MECHANISMS_NOISE", "RAG_AUDIT_ISOLATION_STRONG", "RAG_AUDIT_LISTS_WEAK"]


def predicate(report: Report) -> dict[str, Any]:
    result = json.loads(render_report(report, "svr"))["predicate"]
    assert isinstance(result, dict)
    return result


def with_witnesses(report: Report, *, independent: bool, quorum: int) -> Report:
    """The report as if trust.toml had another quorum, of witnesses of this kind."""
    witnesses = [w.model_copy(update={"independent": independent}) for w in report.vouching.witnesses]
    vouching = report.vouching.model_copy(update={"witnesses": witnesses, "quorum": quorum})
    return report.model_copy(update={"vouching": vouching})


def with_figures(report: Report, **update: object) -> Report:
    return report.model_copy(update={"figures": report.figures.model_copy(update=update)})


@pytest.mark.parametrize("name", OUTCOMES)
def test_the_statement_has_the_form_of_the_specification(name: str, reports: dict[str, Report]) -> None:
    """spec/predicates/svr.md, version 0.2: the required fields, of which `policies` may be empty but never absent."""
    statement = json.loads(render_report(reports[name], "svr"))
    assert statement["_type"] == "https://in-toto.io/Statement/v1" and statement["subject"]
    assert statement["predicateType"] == "https://in-toto.io/attestation/svr/v0.2"
    value = statement["predicate"]
    assert set(value) == {"verifier", "timeCreated", "properties", EXTENSION}
    assert set(value["verifier"]) == {"id", "policies"}
    assert value["verifier"]["id"] == "urn:rag-audit:verifier:0" and value["verifier"]["policies"] == []
    assert value["timeCreated"] == "2027-01-15T10:46:40Z"
    names = value["properties"]
    assert len(set(names)) == len(names)
    assert all(n.startswith("RAG_AUDIT_") and n == n.upper() and "-" not in n for n in names)


@pytest.mark.parametrize("name", ["FAIL", "UNDECIDED"])
def test_a_false_or_undecided_window_has_no_property(name: str, reports: dict[str, Report]) -> None:
    assert predicate(reports[name])["properties"] == []


def test_a_property_of_the_outcome_needs_a_pass(reports: dict[str, Report]) -> None:
    outcomes = {
        name: [p for p in properties(r) if p.startswith("RAG_AUDIT_PASS")] for name, r in reports.items()
    }
    assert outcomes == {
        "PASS": ["RAG_AUDIT_PASS_WITH_EXCEPTIONS"],
        "PASS-SAMPLED": ["RAG_AUDIT_PASS_SAMPLED_WITH_EXCEPTIONS"],
        "PASS-INTEGRITY": ["RAG_AUDIT_PASS_INTEGRITY_WITH_EXCEPTIONS"],
        **{name: [] for name in OUTCOMES if not name.startswith("PASS")},
    }
    assert properties(reports["PASS"])[1:4] == FIRST
    plain = with_figures(reports["PASS"], allowed=[], setup="transparent")
    assert properties(plain)[0] == "RAG_AUDIT_PASS" and "RAG_AUDIT_SETUP_NO_KEYS" in properties(plain)


def test_a_senders_trust_file_is_an_exception(reports: dict[str, Report]) -> None:
    plain = with_figures(reports["PASS"], allowed=[])
    sent = [w.model_copy(update={"id": "senders_trust"}) for w in plain.weaker[:1]]
    assert properties(plain.model_copy(update={"weaker": sent}))[0] == "RAG_AUDIT_PASS_WITH_EXCEPTIONS"


def test_a_requirement_that_is_not_met_has_no_property(reports: dict[str, Report]) -> None:
    report = reports["UNMET"]
    missed = ["max_epsilon", "min_k_max", "max_theta", "min_receipts"]
    value = predicate(report)
    assert value[EXTENSION]["notMet"] == missed and value["properties"][:3] == FIRST
    met = {name.upper() for name in REQUIREMENTS} - {name.upper() for name in missed}
    shown = {p.removeprefix("RAG_AUDIT_MET_") for p in value["properties"] if "_MET_" in p}
    assert shown <= met and {"MAX_DELTA", "QUORUM"} <= shown


def test_a_requirement_of_some_tenants_has_no_property() -> None:
    """`max_epsilon` does not limit the tenant that samples, so the window as a whole does not meet it."""
    report = report_of(bases()["sampling"], now=NOW)
    assert [r.outcome for r in report.requirements if r.name == "max_epsilon" and r.scope] == ["pass"]
    names = properties(report)
    assert "RAG_AUDIT_MET_MAX_EPSILON" not in names and "RAG_AUDIT_MET_MAX_DELTA" in names
    assert "RAG_AUDIT_MECHANISMS_NOISE_AND_SAMPLING" in names and "RAG_AUDIT_LISTS_NONE" in names


def test_every_honest_window_names_the_origin_of_its_keys() -> None:
    """The worked example and all honest windows with records."""
    for base, verdict in bases().items():
        report = report_of(verdict, now=NOW)
        names = [p for p in properties(report) if "_SETUP_" in p]
        word = SETUPS.get(report.figures.setup)
        assert names == [f"RAG_AUDIT_SETUP_{word}"] or not report.counts.records, base


@pytest.mark.parametrize(
    ("setup", "names"),
    [
        ("transparent", ["RAG_AUDIT_SETUP_NO_KEYS"]),
        ("ceremony", ["RAG_AUDIT_SETUP_CEREMONY"]),
        ("unsafe", ["RAG_AUDIT_SETUP_UNSAFE"]),
        ("none", []),
    ],
)
def test_every_origin_of_keys_that_a_verdict_names(
    setup: str, names: list[str], reports: dict[str, Report]
) -> None:
    """The values of `trust.setup`; without any proof, the verdict names none."""
    report = with_figures(reports["PASS"], setup=setup)
    assert [p for p in properties(report) if "_SETUP_" in p] == names


def test_sampled_proofs_are_named(reports: dict[str, Report]) -> None:
    names = {kind: properties(reports[kind]) for kind in ("PASS", "PASS-SAMPLED")}
    assert "RAG_AUDIT_ANSWERS_ALL_PROVED" in names["PASS"]
    assert "RAG_AUDIT_ANSWERS_ALL_PROVED" not in names["PASS-SAMPLED"]
    assert "RAG_AUDIT_ANSWERS_SAMPLED" in names["PASS-SAMPLED"]
    assert all("RAG_AUDIT_SETUP_UNSAFE" in value for value in names.values())


@pytest.mark.parametrize(
    ("independent", "quorum", "kind"), [(True, 2, "INDEPENDENT"), (False, 2, "PILOT"), (True, 1, "MINORITY")]
)
def test_the_kind_of_the_witnesses_is_one_property(
    independent: bool, quorum: int, kind: str, reports: dict[str, Report]
) -> None:
    report = with_witnesses(reports["PASS"], independent=independent, quorum=quorum)
    assert len(report.vouching.witnesses) == 2
    assert [p for p in properties(report) if "_WITNESSES_" in p] == [f"RAG_AUDIT_WITNESSES_{kind}"]


def depends(name: str, report: Report) -> tuple[str, ...]:
    """The checks that a property depends on, from the tables of the sentences and the requirements."""
    name = name.removeprefix("RAG_AUDIT_")
    answers = SENTENCES["answers" if report.shows("answers") else "answers-drawn"].checks
    if name.startswith("MET_"):
        return REQUIREMENTS[{r.upper(): r for r in REQUIREMENTS}[name.removeprefix("MET_")]].checks
    if name.startswith("WITNESSES_"):
        return REQUIREMENTS["quorum"].checks
    if name.startswith("SETUP_"):
        return (*answers, *REQUIREMENTS["setup"].checks)
    if name.startswith(("ISOLATION_", "ANSWERS_")):
        return answers
    assert name.startswith(("PASS", "MECHANISMS_", "LISTS_", "PRESENCE_", "ABSENCE_")), name
    return SENTENCES["privacy"].checks


@pytest.mark.parametrize("base", BASES)
def test_a_property_goes_with_each_of_its_checks(base: str) -> None:
    verdict = bases()[base]
    whole = report_of(verdict, now=NOW)
    names = properties(whole)
    assert names and whole.exit_code == 0
    tried = 0
    for check in sorted({base_id(c.id)[0] for c in verdict.checks}):
        resting = {name for name in names if check in depends(name, whole)}
        for way in ways(verdict, check):
            report = report_of(without(verdict, check, way), now=NOW)
            left = set(properties(report))
            assert not left & resting, (check, way)
            assert report.exit_code == 0 or not [p for p in left if p.startswith("RAG_AUDIT_PASS")], (
                check,
                way,
            )
            assert not left or way not in ("fail", "undecided"), (check, way)
            tried += bool(resting)
    assert tried > 100


def test_a_check_of_one_tenant_removes_the_windows_properties() -> None:
    """The weakest tenant decides: a line that is not established for one tenant has no property."""
    verdict: ReportedVerdict = bases()["example"]
    check = next(c for c in verdict.checks if base_id(c.id)[1] is not None)
    checks = [replace(c, status=Status.UNPROVEN) if c is check else c for c in verdict.checks]
    off = concluded(checks, verdict.figures, verdict.notes, verdict.needed)
    report = report_of(ReportedVerdict(**vars(off), described=verdict.described), now=NOW)
    assert not [p for p in properties(report) if "_LISTS_" in p or "_MECHANISMS_" in p]


def test_a_key_signs_the_statement(reports: dict[str, Report]) -> None:
    key = SigningKey.generate("verifier.example.org")
    plain = json.loads(render_report(reports["PASS"], "svr"))
    envelope = json.loads(render_report(reports["PASS"], "svr", key=key))
    payload = base64.b64decode(envelope["payload"], validate=True)
    assert json.loads(payload) == plain and envelope["payloadType"] == PAYLOAD_TYPE
    (signature,) = envelope["signatures"]
    signed = base64.b64decode(signature["sig"], validate=True)
    assert key.verifier.verifies(signed, encoded(PAYLOAD_TYPE, payload))
    assert not key.verifier.verifies(signed, encoded(PAYLOAD_TYPE, payload + b" "))


def test_a_pilot_that_passes_is_never_a_plain_pass(reports: dict[str, Report]) -> None:
    """The report's own witnesses decide, even if a verdict named no exception."""
    report = with_figures(with_witnesses(reports["PASS"], independent=True, quorum=2), allowed=[])
    assert properties(report)[0] == "RAG_AUDIT_PASS"
    pilot = with_witnesses(report, independent=False, quorum=2)
    assert properties(pilot)[0] == "RAG_AUDIT_PASS_WITH_EXCEPTIONS"
