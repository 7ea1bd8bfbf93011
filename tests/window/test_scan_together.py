"""Windows whose scan proofs are for two records each: what each record carries, and which records a fault names.

As in `test_together`, the first record of each tenant is proved eagerly and by itself, the other two share one proof.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rag_audit.errors import ExitCode, PolicyError
from rag_audit.parties.provider.window import Window
from rag_audit.proofs.scan.key import PROTOCOL, TOGETHER_PROTOCOL
from rag_audit.proofs.scan.release import noise_protocols_digest, record_protocols_digest
from tests.window.forge import Forge
from tests.window.simulator import Finished, finished_window
from tests.window.test_checks import lied_about_positions
from tests.window.test_together import FIRST, SECOND, complaints, retrieve

FAIL, UNDECIDED = ExitCode.FAIL, ExitCode.MALFORMED


@pytest.fixture(scope="module")
def paired(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    root = tmp_path_factory.mktemp("paired")
    return finished_window(root, together=2, system="scan", norm_factor=None)


def test_pairs_verify_beside_eager_proofs(paired: Finished) -> None:
    verdict = paired.verify(require={"allow_unsafe_setup": False})
    assert verdict.passed, verdict.deciding
    assert verdict.figures["proved"] == 6 and "proofs=scan setup=transparent" in verdict.line
    lines = [c.found for c in verdict.checks if c.id == "proof.valid.law"]
    assert lines == ["1 valid", "2 valid"]
    forge = Forge(paired)
    carried, named = retrieve(forge, FIRST), retrieve(forge, SECOND)
    assert carried["protocol"] == named["protocol"] == TOGETHER_PROTOCOL
    assert "proof" in carried and set(named) == {"system", "protocol", "records", "proof_digest"}
    assert retrieve(forge, ("law-1", 1))["protocol"] == PROTOCOL


def test_they_count_under_a_pin_that_knows_them(paired: Finished) -> None:
    trust = paired.service.trust(paired.policy)
    for pin in (noise_protocols_digest(), record_protocols_digest()):
        other = trust.model_copy(update={"pins": trust.pins.model_copy(update={"scan": pin})})
        verdict = paired.verify(trust=other)
        assert verdict.exit_code is UNDECIDED
        assert {c.id for c in verdict.checks if c.status.value != "pass"} == {
            "proof.key.law",
            "proof.key.medicine",
        }


def test_a_false_record_spoils_its_pair(paired: Finished, tmp_path: Path) -> None:
    forge = Forge(paired)
    lied_about_positions(forge)
    verdict = forge.verify(tmp_path)
    assert verdict.exit_code is FAIL and verdict.figures["proved"] == 4
    assert verdict.deciding is not None and verdict.deciding.found.startswith("2 invalid")


def test_a_pair_without_its_proof_is_undecided(paired: Finished, tmp_path: Path) -> None:
    forge = Forge(paired)
    forge.proofs[FIRST]["retrieve"] = retrieve(forge, SECOND)
    verdict = forge.verify(tmp_path)
    assert verdict.exit_code is UNDECIDED and verdict.figures["proved"] == 4
    assert complaints(verdict) == {"proof.valid.law": f"record {forge.record(*FIRST)['seq']}"}


def test_a_record_under_another_pair_s_proof(paired: Finished, tmp_path: Path) -> None:
    forge = Forge(paired)
    made = forge.another_query("law-2", 2, SECOND)
    verdict = forge.verify(tmp_path)
    assert verdict.exit_code is FAIL and verdict.figures["proved"] == 6
    assert complaints(verdict) == {"proof.valid.law": f"record {made['seq']}"}


def test_more_records_than_the_argument_takes_are_refused(paired: Finished) -> None:
    with Window.resume(paired.window, key=paired.service.key, clock=paired.service.clock) as window:
        shared: Any = window.prover._shared
        with pytest.raises(PolicyError, match=r"2\.\.64"):
            shared("law", "retrieve", 65)
        assert shared("law", "embed", 2) is None
