"""vectors/windows: each case's verdict, and that no check is without a case."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from rag_audit.errors import ExitCode
from tests.simulate import generate
from tests.simulate.cases import FOLDER, expected, run
from tests.simulate.faults import FAULTS

CASES = sorted(path.parent for path in FOLDER.glob("*/case.json"))
PROTOCOL = Path(__file__).resolve().parents[2] / "docs" / "protocol.md"


def value(case: Path) -> dict[str, Any]:
    read: dict[str, Any] = json.loads((case / "case.json").read_text(encoding="utf-8"))
    return read


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_case_ends_as_it_says(case: Path) -> None:
    stated = value(case)
    result, _ = expected(run(stated, case))
    assert result == stated["expect"]


def test_every_fault_of_the_simulator_has_its_folder_and_no_folder_is_of_none() -> None:
    assert {case.name for case in CASES} == {fault.name for fault in FAULTS}


def test_what_a_case_names_is_there_and_nothing_else() -> None:
    """A file that is shared lies in another case's folder; one that nobody names would mislead."""
    named, there = (
        set(),
        {p.resolve() for p in FOLDER.glob("*/**/*") if p.is_file() and p.name != "case.json"},
    )
    for case in CASES:
        stated = value(case)
        for name in [
            stated["window"],
            stated["trust"],
            *stated["receipts"],
            *stated["previous"],
            *stated["challenges"],
        ]:
            named.add((case / name).resolve())
        for name in stated.get("siblings", []):
            named.add((case / name).resolve())
    assert named == there


def checks_of_the_protocol() -> set[str]:
    """The ids of docs/protocol.md, without a tenant's name."""
    section = PROTOCOL.read_text(encoding="utf-8").partition("\n## Checks\n")[2].partition("\n## ")[0]
    cells = re.findall(r"^\| ((?:`[a-z0-9_.<>A-Z]+`(?:, )?)+) \|", section, re.MULTILINE)
    return {name.removesuffix(".<tenant>") for cell in cells for name in re.findall(r"`([^`]+)`", cell)}


def test_every_check_of_the_protocol_decides_a_case() -> None:
    decided = {value(case)["expect"].get("decides") for case in CASES} - {None}
    plain = {re.sub(r"\.(law|medicine)$", "", name) for name in decided}
    missing = checks_of_the_protocol() - plain - set(UNDECIDING) - set(WITHOUT_A_CASE)
    assert missing == set()
    assert {*UNDECIDING, *WITHOUT_A_CASE} & plain == set()
    assert plain <= checks_of_the_protocol()


UNDECIDING = {
    "ledger.consistency": "the tree that ends under a cosigned root is compared with that root first: ledger.root",
    "bound.computed": "a policy without any bound is not well-formed: header.policy",
    "proof.system": "the form of a policy names no other system, and a record's unknown tenant is ledger.accounts",
}
"""Checks that never decide alone, and what decides in their place."""


WITHOUT_A_CASE = {
    "header.empty": "tests/window/test_chain.py: windows in a row whose counts lie",
    "trust.max_exposure": "tests/window/test_checks.py: more documents than the limit",
    "trust.max_fresh_share": "tests/window/test_document_tables.py: more fresh rows than the limit",
    "trust.max_empty": "tests/window/test_checks.py: eight empty windows before this one",
}
"""Checks of which no case is published yet, and the tests that have their cheaters."""


def test_honest_windows_pass_and_nothing_else_does() -> None:
    for case in CASES:
        expect = value(case)["expect"]
        assert (expect["exit_code"] == ExitCode.PASS) == (
            expect["verdict"] in ("PASS", "PASS-SAMPLED", "PASS-INTEGRITY")
        ), case
        assert (expect["exit_code"] == ExitCode.PASS) == value(case)["fault"].startswith("nothing: "), case


@pytest.mark.parametrize("names", [("honest", "a-record-without-proof", "opening-without-quorum")])
def test_cases_are_made_again_byte_for_byte(names: tuple[str, ...], tmp_path: Path) -> None:
    assert generate.compare(tmp_path, names) == []


@pytest.mark.full
def test_all_cases_are_made_again_byte_for_byte(tmp_path: Path) -> None:
    assert generate.compare(tmp_path) == []
