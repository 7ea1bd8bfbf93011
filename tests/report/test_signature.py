"""A verifier's signature on its report: each altered part fails, and a pinned key decides who signed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rag_audit._internal.canonical import parse_json
from rag_audit._internal.errors import SignatureError
from rag_audit.log.note import parse_note, verify_note
from rag_audit.log.signing import SigningKey
from rag_audit.report import render_report
from rag_audit.report.build import filing_of, report_of_beginning
from rag_audit.report.model import Report
from rag_audit.report.signature import check_signature, digest, signed
from rag_audit.verify.inputs import Inputs

KEY = SigningKey.generate("verifier.example.org")
OTHER = SigningKey.generate("verifier.example.org")


def value_of(report: Any) -> dict[str, Any]:
    value = parse_json(render_report(report, "json"), source="report.json")
    assert isinstance(value, dict)
    return value


@pytest.fixture
def passed(reports: dict[str, Report]) -> Report:
    return reports["PASS"]


@pytest.fixture
def value(passed: Report) -> dict[str, Any]:
    return value_of(signed(passed, KEY))


def test_a_signed_report_verifies_with_and_without_a_pinned_key(value: dict[str, Any]) -> None:
    assert check_signature(value, None, field="report.json") == KEY.verifier
    assert check_signature(value, KEY.verifier, field="report.json") == KEY.verifier
    note = parse_note("\n".join(value["signature"]["note"]) + "\n")
    assert verify_note(note, [KEY.verifier])[0].key == KEY.verifier
    kind, header, line, named = note.text.splitlines()
    assert (kind, header, line) == ("rag-audit/report/v1", value["window"]["header"], value["line"])
    assert named == value["signature"]["sha256"] == digest(value)


def test_a_run_without_a_verdict_can_be_signed() -> None:
    value = value_of(signed(report_of_beginning(filing_of(Inputs())), KEY))
    assert check_signature(value, KEY.verifier, field="report.json") == KEY.verifier
    assert value["signature"]["note"][1] == "none"


@pytest.mark.parametrize("name", ["line", "sentence", "figures", "filing", "checks", "notes"])
def test_every_part_of_the_report_is_signed(value: dict[str, Any], name: str) -> None:
    part = value[name]
    changed = (
        part + "." if isinstance(part, str) else part[1:] if isinstance(part, list) else {**part, "v": 1}
    )
    assert changed != part
    with pytest.raises(SignatureError, match="differs from the report that was signed"):
        check_signature({**value, name: changed}, None, field="report.json")


def test_a_signature_by_another_key_of_the_same_name_is_refused(passed: Report) -> None:
    value = value_of(signed(passed, OTHER))
    assert check_signature(value, None, field="report.json") == OTHER.verifier
    with pytest.raises(SignatureError, match="another key signed the report"):
        check_signature(value, KEY.verifier, field="report.json")


def test_a_key_that_did_not_sign_cannot_be_named(value: dict[str, Any], passed: Report) -> None:
    """The note of another key under the pinned key's name, key ID and vkey."""
    note = signed(passed, OTHER).signature
    assert note is not None
    value["signature"]["note"] = note.note
    with pytest.raises(SignatureError, match="no known key signed"):
        check_signature(value, KEY.verifier, field="report.json")


@pytest.mark.parametrize(
    ("part", "text"), [("name", "somebody.example"), ("key_id", "00000000"), ("sha256", "0" * 64)]
)
def test_the_named_signer_is_the_key_that_signed(value: dict[str, Any], part: str, text: str) -> None:
    value["signature"][part] = text
    with pytest.raises(SignatureError, match="names another"):
        check_signature(value, None, field="report.json")


def test_a_report_without_a_signature_passes_only_without_a_pinned_key(passed: Report) -> None:
    value = value_of(passed)
    assert check_signature(value, None, field="report.json") is None
    with pytest.raises(SignatureError, match="has no signature"):
        check_signature(value, KEY.verifier, field="report.json")


@pytest.mark.parametrize("signature", [{}, "x", {"note": ["a"]}, [1]])
def test_an_unreadable_signature_is_a_named_error(value: dict[str, Any], signature: Any) -> None:
    with pytest.raises(SignatureError, match="cannot be read"):
        check_signature({**value, "signature": signature}, None, field="report.json")


@pytest.mark.parametrize("name", ["text", "html"])
def test_formats_for_people_show_the_note(passed: Report, name: str) -> None:
    report = signed(passed, KEY)
    shown = render_report(report, name)
    assert report.signature is not None
    assert report.signature.sha256 in shown and report.signature.note[-1].split(" ")[-1] in shown
    assert json.dumps(report.signature.sha256) not in render_report(passed, name)
