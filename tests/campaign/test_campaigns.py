"""The campaigns: a few cases each time, all of them in the full suite, and that they find what is put back."""

from __future__ import annotations

import importlib.util
import itertools
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rag_audit.errors import SchemaError
from rag_audit.report.verification import ReportedVerdict
from tests.campaign import checks, generated, native, verdicts

ROOT = Path(__file__).resolve().parents[2]
SEED = os.environ.get("RAG_AUDIT_CAMPAIGN_SEED", "1")
"""Another seed is another campaign."""
CASES = 100_000
BUDGET_S = 3_000
"""After so many seconds no further case begins, and the test says how many there were."""
NATIVE_CASES = 20_000
FUZZED_S = 60
PARSERS = (
    "canonical",
    "notes",
    "keys",
    "proofs",
    "receipts",
    "trust",
    "toml",
    "windows",
    "entries",
    "policies",
    "messages",
    "groth16",
    "bundles",
    "base64",
)


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> verdicts.Campaign:
    return verdicts.Campaign(tmp_path_factory.mktemp("verdicts"))


def test_some_mutated_windows_end_in_verdicts(campaign: verdicts.Campaign) -> None:
    ended = {campaign.case(f"default/{number}") for number in range(40)}
    assert {"PASS", "FAIL", "MALFORMED", "error"} <= ended


@pytest.mark.full
def test_many_mutated_windows_end_in_verdicts() -> None:
    ended, broken = verdicts.run(CASES, SEED, budget=BUDGET_S)
    print(f"seed {SEED}: {sum(ended.values())} cases: {dict(ended)}")
    assert broken == []
    assert sum(ended.values()) > 1000


def cases_until_broken(campaign: verdicts.Campaign, kind: str, maximum: int = 400) -> str:
    for number in range(maximum):
        try:
            campaign.case(f"{kind}/{number}")
        except verdicts.Broken as exc:
            return str(exc)
    return "nothing found"


def test_a_pass_of_another_window_is_found(
    campaign: verdicts.Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every check passes, whatever it finds."""
    monkeypatch.setattr(verdicts, "KINDS", ("window",))
    monkeypatch.setattr(ReportedVerdict, "passed", True)
    assert "passes with" in cases_until_broken(campaign, "passes")


def test_an_error_without_a_name_is_found(
    campaign: verdicts.Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fault(value: Any, *, field: str) -> Any:
        from rag_audit.models import records

        return records._ENTRY_TYPES[value["type"]].parse(value, field=field)

    monkeypatch.setattr(verdicts, "KINDS", ("window",))
    monkeypatch.setattr("rag_audit.verify.verifier.parse_entry", fault)
    assert "Error" in cases_until_broken(campaign, "errors", 4000)


@pytest.mark.parametrize(
    "place", ["build._figures", "text.render", "sarif.value", "junit._case", "vsa.statement"]
)
@pytest.mark.parametrize("fault", [ZeroDivisionError, SchemaError("x")], ids=["unnamed", "named"])
def test_a_report_that_cannot_be_made_is_found(
    place: str, fault: Any, campaign: verdicts.Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise fault

    monkeypatch.setattr(verdicts, "KINDS", ("window",))
    monkeypatch.setattr(f"rag_audit.report.{place}", broken)
    assert (
        type(fault).__name__ in (result := cases_until_broken(campaign, "reports", 40))
        or "ZeroDivision" in result
    )


def test_a_case_that_does_not_end_is_found(
    campaign: verdicts.Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    def endless(files: Any) -> ReportedVerdict:
        until = time.process_time() + 60
        while time.process_time() < until:
            try:
                sum(range(1000))
            except Exception:  # as a check's guard would
                continue
        raise AssertionError

    monkeypatch.setattr(verdicts, "LIMIT", 0.2)
    monkeypatch.setattr(campaign, "verify", endless)
    assert "took more than" in cases_until_broken(campaign, "late")


def test_some_files_through_the_native_core() -> None:
    done = subprocess.run([sys.executable, "-m", "tests.campaign.native", "--cases", "4"], cwd=ROOT,
                          capture_output=True, text=True, check=False)  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("refused") == 18


@pytest.mark.full
def test_many_files_through_the_native_core() -> None:
    command = [sys.executable, "-m", "tests.campaign.native", "--cases", str(NATIVE_CASES), "--seed", SEED]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    print(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_changed_proof_that_holds_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    campaign = native.Campaign(tmp_path)
    monkeypatch.setattr("rag_audit._native.groth16_verify_batch", lambda *_: [])
    with pytest.raises(native.Broken, match="a changed proof holds"):
        for number in range(20):
            campaign.case(f"1/groth16_proof/{number}")


@pytest.mark.full
@pytest.mark.parametrize(
    ("target", "place", "instead"),
    [
        (
            "scan_coins",
            "rag_audit._native.scan_bits_verify",
            lambda *_: generated.coin(44, generated.KEEP)[2],
        ),
        ("scan_documents", "rag_audit._native.scan_documents_verify", lambda *_: []),
        ("scan_pooled_documents", "rag_audit._native.scan_documents_verify", lambda *_: []),
        ("scan_pooled", "rag_audit._native.ScanPooledBatch", lambda *_: Gullible()),
        ("scan_together", "rag_audit._native.ScanBatch", lambda *_: Gullible()),
        (
            "signatures",
            "tests.campaign.generated.signatures",
            lambda: [(lambda *_: True, (b"k", b"m", b"s"))],
        ),
    ],
)
def test_what_nobody_checks_is_found(
    target: str, place: str, instead: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    campaign = native.Campaign(tmp_path)
    generated.pooled(), generated.batch()
    monkeypatch.setattr(place, instead)
    with pytest.raises(native.Broken, match="holds"):
        for number in range(20):
            campaign.case(f"1/{target}/{number}")


class Gullible:
    """A batch to which everything is a proof."""

    def add(self, records: list[Any]) -> list[Any]:
        return []

    def holds(self) -> bool:
        return True


@pytest.mark.full
@pytest.mark.parametrize("parser", PARSERS)
def test_a_parser_is_fuzzed_by_coverage(parser: str, tmp_path: Path) -> None:
    if importlib.util.find_spec("atheris") is None:
        pytest.skip("atheris is not installed (requirements/fuzz.txt)")
    command = [sys.executable, "-m", "tests.campaign.parsers", parser, f"-max_total_time={FUZZED_S}", "-max_len=4096",
               "-timeout=10", f"-artifact_prefix={tmp_path}/"]  # fmt: skip
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, errors="replace", check=False)
    result = "\n".join(line for line in done.stderr.splitlines() if not line.startswith("#"))
    assert done.returncode == 0, f"{result}\n{[p.read_bytes() for p in tmp_path.iterdir()]}"
    assert "Done" in done.stderr


def test_the_verifiers_checks_are_found() -> None:
    result = checks.all_checks(ROOT / "native")
    files = {str(check.path.relative_to(checks.SOURCES)) for check in result}
    assert len(result) >= 150 and {"query.rs", "drawn.rs", "lookup.rs", "poseidon.rs", "verifier.rs"} <= files
    kinds = ("constrain(", "constrain_product(", "claim(", "equations.", "return Err(", "check_", ".ok_or(",
             ".holds::<", ".verify::<", "== G1Projective::ZERO")  # fmt: skip
    assert [kind for kind in kinds if not any(kind in check.text for check in result)] == []
    for check in result:
        text = (ROOT / "native" / check.path).read_text()
        assert text[check.start : check.end] == check.text
        assert check.put.count(checks.OUT) == 1 and check.text in check.put
    for check, following in itertools.pairwise(result):
        assert check.path != following.path or check.end <= following.start


def test_published_proofs_are_asked_where_no_lie_passes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A check that a lie fails by is not left to the published proofs; one that none fails by is."""
    program = tmp_path / "tests"
    names = [
        "test_vectors::traces",
        "noise::tests::false_values",
        "a_published_list_verifies",
        "errors::errors_are",
    ]
    listed = "".join(f"{name}: test\n" for name in names)
    program.write_text(f"#!/bin/sh\n[ $# = 2 ] || printf '{listed}'\n")
    program.chmod(0o700)
    tests = (str(program), str(tmp_path))
    assert checks.names_of(tests, set(), published=False) == ["noise::tests::false_values"]
    assert set(checks.names_of(tests, set(), published=True)) == set(names) - {"noise::tests::false_values"}
    assert set(checks.names_of(tests, set())) == set(names)

    held = {"1": "noise::tests::false_values", "2": "test_vectors::traces"}
    monkeypatch.setattr(checks, "programs", lambda native, package: [tests])
    monkeypatch.setattr(checks, "reached", lambda program, name: {1, 2, 3})
    monkeypatch.setattr(
        checks,
        "failing",
        lambda program, name, env: name if held.get(env["RAG_AUDIT_DROPPED"]) == name else None,
    )
    check = checks.Check(checks.SOURCES / "noise.rs", 0, 1, 1, "", "")
    left = checks.taken_out(tmp_path, dict.fromkeys([1, 2, 3], check), ["scan"], published=False)
    assert set(left) == {2, 3}
    assert set(checks.taken_out(tmp_path, left, ["scan"], published=True)) == {3}


@pytest.mark.full
def test_checks_that_are_taken_out_are_missed() -> None:
    """A sample; `python -m tests.campaign.checks --all` takes out each."""
    command = [sys.executable, "-m", "tests.campaign.checks", "--checks", "12", "--seed", SEED]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "12 checks taken out, 0 of them" in done.stdout, done.stdout + done.stderr
