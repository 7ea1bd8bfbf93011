"""Windows whose scan proofs are for two records each: what each record carries, and which records a fault names.

As in `test_together`, the first record of each tenant is proved eagerly and by itself, the other two share one proof.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rag_audit.attest.window import Window
from rag_audit.errors import ExitCode, MissingTile, PolicyError
from rag_audit.models.window_writer import save_window
from rag_audit.proofs.backends.scan.key import PROTOCOL
from rag_audit.report.verification import verify_window
from tests.window.forge import Forge
from tests.window.outcomes import assert_uncovered_record_fails, complaints, not_passed
from tests.window.simulator import Finished, finished_window
from tests.window.test_batch import FIRST, SECOND, retrieve
from tests.window.test_checks import lied_about_positions

FAIL, UNDECIDED = ExitCode.FAIL, ExitCode.MALFORMED


@pytest.fixture(scope="module")
def paired(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    root = tmp_path_factory.mktemp("paired")
    return finished_window(root, batch=2, system="scan", table=None)


def test_pairs_verify_beside_eager_proofs(paired: Finished) -> None:
    verdict = paired.verify(require={"allow_unsafe_setup": False})
    assert verdict.passed, verdict.deciding
    assert verdict.figures["proved"] == 6 and "proofs=scan setup=transparent" in verdict.line
    lines = [c.actual for c in verdict.checks if c.id == "proof.valid.law"]
    assert lines == ["1 valid proof", "2 valid proofs"]
    forge = Forge(paired)
    carried, named = retrieve(forge, FIRST), retrieve(forge, SECOND)
    assert carried["protocol"] == named["protocol"] == PROTOCOL
    assert "proof" in carried and set(named) == {"system", "protocol", "records", "proof_digest"}
    assert retrieve(forge, ("law-1", 1))["protocol"] == PROTOCOL


def test_they_count_under_the_pin_of_their_protocols(paired: Finished) -> None:
    trust = paired.service.trust(paired.policy)
    other = trust.model_copy(update={"pins": trust.pins.model_copy(update={"scan": "0" * 64})})
    verdict = paired.verify(trust=other)
    assert verdict.exit_code is UNDECIDED
    assert not_passed(verdict) == {
        "proof.key.law",
        "proof.key.medicine",
    }


def test_a_false_record_spoils_its_pair(paired: Finished, tmp_path: Path) -> None:
    forge = Forge(paired)
    lied_about_positions(forge)
    verdict = forge.verify(tmp_path)
    assert verdict.exit_code is FAIL and verdict.figures["proved"] == 4
    assert verdict.deciding is not None and verdict.deciding.actual.startswith("2 invalid")


def test_attacks_that_cannot_be_read_hide_no_false_pair(paired: Finished, tmp_path: Path) -> None:
    """The provider hands in the attacks file, so a broken one must not keep a proof from being verified."""
    attacks = tmp_path / "attacks.json"
    attacks.write_text("{")
    forge = Forge(paired)
    lied_about_positions(forge)
    verdict = forge.verify(tmp_path, attacks=attacks)
    assert verdict.exit_code is FAIL
    assert verdict.deciding is not None and verdict.deciding.id == "proof.valid.law"
    assert any("unreadable" in note for note in verdict.notes)


def test_only_a_missing_tile_of_the_tenant_leaves_its_pairs_open(
    paired: Finished, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pair is about two records, so it is not judged without one of them; another tenant's tile hides nothing."""
    monkeypatch.setattr("rag_audit.models.window_writer.TILED_BYTES", 0)
    monkeypatch.setattr("rag_audit.models.window_writer.TILE_BYTES", 1)
    forge = Forge(paired)
    lied_about_positions(forge)
    file, receipts = forge.seal(tmp_path)
    for slot, result in (("law-1", 1), False), (("medicine-1", 1), True):
        folder = tmp_path / slot[0]
        folder.mkdir()
        save_window(file, folder / "window.json")
        index = json.loads((folder / "window.json").read_bytes())
        seq = forge.record(*slot)["seq"]
        tile = next(t for t in index["proofs"]["tiles"] if seq in t["seqs"])
        (folder / "tiles" / f"{tile['sha256']}.json").unlink()
        trust = paired.service.trust(paired.policy, batch=2)
        if result:
            verdict = verify_window(folder, trust=trust, receipts=[receipts])
            assert verdict.deciding is not None and verdict.deciding.id == "proof.valid.law"
            assert verdict.exit_code is FAIL
        else:
            with pytest.raises(MissingTile):
                verify_window(folder, trust=trust, receipts=[receipts])


def test_a_pair_without_its_proof_is_undecided(paired: Finished, tmp_path: Path) -> None:
    forge = Forge(paired)
    forge.proofs[FIRST]["retrieve"] = retrieve(forge, SECOND)
    verdict = forge.verify(tmp_path)
    assert verdict.exit_code is UNDECIDED and verdict.figures["proved"] == 4
    assert complaints(verdict) == {"proof.valid.law": f"record {forge.record(*FIRST)['seq']}"}


def test_a_record_under_another_pair_s_proof(paired: Finished, tmp_path: Path) -> None:
    assert_uncovered_record_fails(paired, SECOND, tmp_path)


def test_more_records_than_the_argument_takes_are_refused(paired: Finished) -> None:
    with (
        Window.resume(paired.window, key=paired.service.key, clock=paired.service.clock) as window,
        pytest.raises(PolicyError, match=r"2\.\.64"),
    ):
        window.prover.proofs("law", "retrieve", 65)
