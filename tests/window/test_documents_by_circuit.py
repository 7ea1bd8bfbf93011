"""Chains of windows whose document tables are proved by the circuit `documents`, and one cheater a check.

The checks of the chain itself are those of every proof system (test_document_tables); the circuit's own cheaters are in
tests/malicious.
"""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rag_audit.attest.columns import SampleStore
from rag_audit.commit import carrying
from rag_audit.commit.stored import delete_secrets
from rag_audit.errors import ExitCode, PolicyError, WitnessError
from rag_audit.mechanisms.base import TableShape
from rag_audit.models.window_writer import save_window
from rag_audit.models.windowfile import WindowFile
from rag_audit.proofs.backends.groth16.documents import DocumentTableJob
from rag_audit.proofs.backends.groth16.instance import SampleInstance
from rag_audit.proofs.statements.private import CommittedTable
from rag_audit.report import render
from rag_audit.report.export import write_snarkjs
from tests.window.outcomes import exit_codes
from tests.window.test_document_tables import (
    FIRST,
    SECOND,
    SHAPE,
    Chain,
    assert_no_proof_of_a_flipped_bit,
    copy_of,
    flipping,
    placing,
    three_windows,
)

FAIL, UNDECIDED, UNMET = ExitCode.FAIL, ExitCode.MALFORMED, ExitCode.UNMET


@pytest.fixture(scope="session")
def circuits(tmp_path_factory: pytest.TempPathFactory) -> Chain:
    return three_windows(tmp_path_factory.mktemp("circuits"), system="groth16")


def file_of(chain: Chain, number: int) -> WindowFile:
    return WindowFile.load(chain.windows[number - 1] / "public")


def sample_entry(file: WindowFile, tenant: str = "law") -> dict[str, Any]:
    return next(
        copy.deepcopy(e)
        for e in file.entries
        if isinstance(e, dict) and e["type"] == "sample" and e["tenant"] == tenant
    )


def test_documents_keep_their_bits_and_every_window_passes(circuits: Chain) -> None:
    one, two, three = (circuits.bits(number) for number in (1, 2, 3))
    assert set(one) == {*"abc"} and set(two) == {*"abcd"} and set(three) == {*"abcde"}
    assert {key: two[key] for key in one} == one and {key: three[key] for key in two} == two
    for number in (1, 2, 3):
        verdict = circuits.verify(number, *range(1, number))
        assert verdict.passed, verdict.deciding
        assert "exclusion_factor=3.3334" in verdict.line and "proofs=groth16" in verdict.line
        assert "positions_per_document=2" in verdict.line
        report = " ".join(render(verdict).split())
        assert "The figure is for a document of at most 2 positions, which all share one bit." in report
    assert exit_codes(circuits.verify(3)) == {"header.tables": UNMET}


def test_exported_public_inputs_are_those_of_the_ledger(circuits: Chain, tmp_path: Path) -> None:
    file = file_of(circuits, 2)
    assert write_snarkjs(file, tmp_path) > 2
    index = json.loads((tmp_path / "index.json").read_text())
    named = [p for p in index["proofs"] if p["statement"] == "sample"]
    assert [p["folder"] for p in named] == ["sample-law", "sample-medicine"]
    public = json.loads((tmp_path / "sample-law" / "public.json").read_text())
    values = dict(zip(named[0]["inputs"], public, strict=True))
    entry = sample_entry(file)
    assert values["c_carried"] == str(int(entry["carried"], 16))
    assert values["c_kept"] == str(int(entry["commitment"], 16))
    assert (values["drawn"], values["most"], values["continued"]) == ("3", "2", "1")
    before = sample_entry(file_of(circuits, 1))
    assert values["c_previous"] == str(int(before["carried"], 16))


def test_a_chain_goes_on_after_the_secrets_are_deleted(circuits: Chain, tmp_path: Path) -> None:
    continued = copy_of(circuits, tmp_path / "copy", 1)
    delete_secrets(continued.windows[0])
    continued.run(SECOND)
    verdict = continued.verify(2, continued.windows[0] / "public")
    assert verdict.passed, verdict.deciding


def test_a_window_that_draws_all_bits_has_a_proof(tmp_path: Path) -> None:
    chain = Chain(tmp_path, shape=replace(SHAPE, fresh_rows=None), system="groth16")
    chain.run(FIRST)
    chain.run(SECOND)
    verdict = chain.verify(2, 1)
    assert "each window draws all bits" in next(c for c in verdict.checks if c.id == "header.tables").actual


def test_more_rows_than_a_circuit_has_are_refused_by_name(tmp_path: Path) -> None:
    chain = Chain(tmp_path, system="groth16")
    with pytest.raises(PolicyError) as caught:
        chain.open(FIRST, capacity=2048, shape=TableShape(256, 2, 3))
    assert caught.value.field is not None and "documents.rows" in caught.value.field
    assert caught.value.expected == "1..128 for a capacity of 2048"
    assert "--system scan" in str(caught.value.hint)


def test_no_text_of_the_job_has_a_secret(circuits: Chain, monkeypatch: pytest.MonkeyPatch) -> None:
    texts: list[str] = []
    honest = DocumentTableJob.run

    def run(job: DocumentTableJob) -> CommittedTable:
        texts.append(repr(job))
        texts.extend(str(job.private[name]) for name in ("s0", "kept_salt", "table_salt"))
        return honest(job)

    monkeypatch.setattr(DocumentTableJob, "run", run)
    folder = circuits.service.root.parent / "secrets"
    Chain(folder, system="groth16").run(FIRST)
    text, *secrets = texts[:4]
    assert not any(secret in text for secret in secrets)


# -- cheaters --------------------------------------------------------------------------------------------------


def test_a_carried_bit_is_flipped(circuits: Chain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    forged = copy_of(circuits, tmp_path / "copy", 1)
    monkeypatch.setattr(carrying, "carried_from", flipping())
    assert_no_proof_of_a_flipped_bit(forged)


def test_more_rows_are_drawn_than_the_policy_says(
    circuits: Chain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A proof for 4 fresh rows, which one key verifies as well as one for 3."""
    forged = copy_of(circuits, tmp_path / "copy", 1)
    with monkeypatch.context() as patch:
        patch.setattr(carrying, "place_documents", placing(replace(SHAPE, fresh_rows=4)))
        patch.setattr(TableShape, "drawn", lambda self, *, first: 10 if first else 4)
        forged.run(SECOND)
    assert exit_codes(forged.verify(2, 1))["proof.sample.law"] is FAIL


def test_a_carried_row_has_another_name(
    circuits: Chain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    forged = copy_of(circuits, tmp_path / "copy", 1)
    honest = carrying.place_documents

    def renamed(*given: Any, **options: Any) -> Any:
        placement = honest(*given, **options)
        rows = list(placement.table.rows)
        number = next(n for n, row in enumerate(rows) if n >= placement.table.drawn and row.key is not None)
        rows[number] = replace(rows[number], salt=bytes(32))
        return replace(placement, table=replace(placement.table, rows=tuple(rows)))

    monkeypatch.setattr(carrying, "place_documents", renamed)
    with forged.open(SECOND) as window, pytest.raises(WitnessError, match="has no valid proof"):
        forged.service.cosign_header(window)


@pytest.mark.parametrize("both", [False, True], ids=["the proof has its own", "the proof names them too"])
def test_the_ledger_names_another_table_than_the_proof_is_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, both: bool
) -> None:
    """The next window would continue bits that no proof is for."""
    forged, other = Chain(tmp_path, system="groth16"), "0" * 63 + "1"
    honest = DocumentTableJob.run

    def run(job: DocumentTableJob) -> CommittedTable:
        result = honest(job)
        return replace(result, proof={**result.proof, "carried": other})

    monkeypatch.setattr(SampleStore, "_carried", lambda self, tenant: other)
    if both:
        monkeypatch.setattr(DocumentTableJob, "run", run)
    forged.run(FIRST)
    verdict = forged.verify(1)
    assert exit_codes(verdict)["proof.sample.law"] is FAIL
    outcome = next(check for check in verdict.checks if check.id == "proof.sample.law")
    assert ("carried = " in outcome.actual) is not both


def another_proof(circuits: Chain, of: int, tenant: str) -> Any:
    """The proof of a tenant's sample in another window or of another tenant, for the table of this one."""
    source = file_of(circuits, of)
    value: Any = source.proofs[str(sample_entry(source, tenant)["seq"])]
    own: Any = file_of(circuits, 2).proofs[str(sample_entry(file_of(circuits, 2))["seq"])]
    return {**value["sample"], "carried": own["sample"]["carried"]}


@pytest.mark.parametrize(
    ("cheat", "outcome"),
    [
        ("the window before", FAIL),
        ("another tenant", FAIL),
        ("no table named", UNDECIDED),
        ("a table that is no field element", UNDECIDED),
        ("a sample by position", UNDECIDED),
    ],
)
def test_another_proof_than_the_window_s(
    circuits: Chain, tmp_path: Path, cheat: str, outcome: ExitCode
) -> None:
    file = file_of(circuits, 2)
    seq = str(sample_entry(file)["seq"])
    proofs: dict[str, Any] = {key: copy.deepcopy(file.proofs[key]) for key in file.proofs}
    own = proofs[seq]["sample"]
    changed = {
        "the window before": lambda: another_proof(circuits, 1, "law"),
        "another tenant": lambda: another_proof(circuits, 2, "medicine"),
        "no table named": lambda: {name: part for name, part in own.items() if name != "carried"},
        "a table that is no field element": lambda: {**own, "carried": "f" * 64},
        "a sample by position": lambda: {**own, "circuit": SampleInstance(16).digest()},
    }
    proofs[seq]["sample"] = changed[cheat]()
    save_window(file.model_copy(update={"proofs": proofs}), tmp_path / "window.json")
    verdict = circuits.verify(2, 1, file=tmp_path / "window.json")
    assert exit_codes(verdict)["proof.sample.law"] is outcome
