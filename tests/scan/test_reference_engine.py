"""The second verifier where windows are verified: `verify --engine reference`."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from rag_audit.errors import EncodingError, InvalidProof
from rag_audit.proofs.batch import in_chunks
from rag_audit.proofs.scan.reference import FALSE, Batch
from rag_audit.proofs.scan.verify import refused
from tests.simulate.cases import expected, run

ROOT = Path(__file__).resolve().parents[2]
WINDOWS = ROOT / "vectors/windows"
SCANNED = ("scan", "scan-proof-changed", "noise-certificate-changed", "points-of-another-index")
DECIDED = (
    "tests/scan/test_together.py",
    "tests/scan/test_coalition.py",
    "tests/window/test_together.py",
)


def test_each_record_has_an_outcome_of_its_own() -> None:
    def check(record: str) -> bool:
        if record == "malformed":
            raise EncodingError("it is no proof")
        return record == "true"

    for words in (["true"] * 70, ["true", "false", "malformed", "true", *["true"] * 66, "false"]):
        found = in_chunks(Batch(check), len(words), lambda i, words=words: words[i], refused)
        kinds = {InvalidProof: "false", EncodingError: "malformed"}
        assert {i: kinds[type(reason)] for i, reason in found.items()} == {
            i: word for i, word in enumerate(words) if word != "true"
        }
        assert all(reason.found == FALSE for i, reason in found.items() if words[i] == "false")


@pytest.mark.full
@pytest.mark.parametrize("name", SCANNED)
def test_a_published_window_has_its_verdict(name: str) -> None:
    case = json.loads((WINDOWS / name / "case.json").read_text(encoding="utf-8"))
    case["options"]["engine"] = "reference"
    assert expected(run(case, WINDOWS / name))[0] == case["expect"]


@pytest.mark.full
@pytest.mark.parametrize("module", DECIDED)
def test_lies_are_found_by_the_same_checks_where_it_decides(module: str) -> None:
    """All tests of windows that name no engine, with the second verifier in the native core's place."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.scan.by_reference", module]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=3600, check=False)
    assert done.returncode == 0, done.stdout[-4000:]
