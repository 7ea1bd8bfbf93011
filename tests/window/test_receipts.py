"""Receipts as verifiers and accounts read them: what they cost, and whose count."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from rag_audit._internal.canonical import read_json
from rag_audit.account.account import check_receipt
from rag_audit.attest.receipts import make_receipt
from rag_audit.errors import ExitCode, InvalidProof, SchemaError
from rag_audit.log.merkle import leaf_hash
from rag_audit.log.signing import SigningKey
from rag_audit.log.tree import MerkleTree
from rag_audit.mechanisms import base
from rag_audit.models import receipts
from rag_audit.models.policy import MAX_LISTED
from rag_audit.models.publication import Publication
from rag_audit.models.records import CountersignedReceipt, DocumentOpening, QueryRecord
from rag_audit.relation.native import Elements
from rag_audit.verify.inputs import MAX_RECEIPT_BYTES
from tests.window.forge import Forge
from tests.window.simulator import Finished

HASHED = base.topk_elements


@pytest.fixture
def only_k_hashed(finished: Finished, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hashing more positions than K ends the test."""

    def watched(salt: int, positions: Sequence[int]) -> Elements:
        assert len(positions) == finished.policy.top_k, "positions were hashed before they were counted"
        return HASHED(salt, positions)

    monkeypatch.setattr(base, "topk_elements", watched)


@pytest.mark.parametrize("count", [0, 1, 90_000])
def test_another_number_of_positions_is_a_contradiction_and_is_not_hashed(
    count: int, finished: Finished, tmp_path: Path, only_k_hashed: None
) -> None:
    """90,000 of them cost half a minute."""
    forge = Forge(finished)
    forge.receipt("law-1", 1).body["positions"] = [0] * count
    verdict = forge.verify(tmp_path)
    assert verdict.exit_code is ExitCode.FAIL and verdict.deciding is not None
    assert verdict.deciding.id == "receipt.consistent"
    assert f"{count} positions and 2 document openings, where K = 2" in verdict.deciding.actual


def test_another_number_of_openings_is_a_contradiction(finished: Finished, tmp_path: Path) -> None:
    forge = Forge(finished)
    forge.receipt("law-1", 1).body["documents"].pop()
    verdict = forge.verify(tmp_path)
    assert verdict.deciding is not None and verdict.deciding.id == "receipt.consistent"
    assert "2 positions and 1 document openings" in verdict.deciding.actual


def test_a_null_salt_of_a_tenant_without_a_sample_fails_the_window(
    finished: Finished, tmp_path: Path
) -> None:
    """Such a tenant opens every digest, so the signed receipt shows that its provider withholds a text."""
    forge = Forge(finished)
    forge.receipt("law-1", 1).body["documents"][1]["salt"] = None
    verdict = forge.verify(tmp_path)
    assert verdict.exit_code is ExitCode.FAIL and verdict.deciding is not None
    assert verdict.deciding.id == "receipt.consistent"
    assert "has a null salt, and its tenant has no sample" in verdict.deciding.actual


def test_an_account_counts_before_it_hashes_too(
    finished: Finished, tmp_path: Path, only_k_hashed: None
) -> None:
    forge = Forge(finished)
    forge.receipt("law-1", 1).body["positions"] = [0] * 1_000
    _, folder = forge.seal(tmp_path)
    path = next(folder.glob("law-1-1-*.json"))
    text = CountersignedReceipt.parse(read_json(path, max_bytes=1 << 20), field="receipt").receipt
    public = Publication.load(finished.window / "public")
    with pytest.raises(InvalidProof, match="contradicts") as caught:
        check_receipt(text, public, finished.service.key.verifier)
    assert "1000 positions" in str(caught.value.actual)


def test_a_receipt_is_checked_under_the_committed_policy_only(finished: Finished) -> None:
    """K comes from it."""
    path = finished.receipts / "law-1-1.json"
    text = CountersignedReceipt.parse(read_json(path, max_bytes=1 << 20), field="receipt").receipt
    public = Publication.load(finished.window / "public")
    check_receipt(text, public, finished.service.key.verifier)
    changed = public.model_copy(update={"policy": {**public.policy, "top_k": 3}})
    with pytest.raises(
        InvalidProof, match="a published document differs from the committed document"
    ) as caught:
        check_receipt(text, changed, finished.service.key.verifier)
    assert caught.value.field == "header.c_policy"


# What A1 rests on where it is re-executed: accounts that the verifier knows.


def without_embedding(finished: Finished) -> Forge:
    """A1 is not proved: one record has no proof of it."""
    forge = Forge(finished)
    forge.proofs["law-1", 2].pop("embed")
    return forge


@pytest.mark.parametrize(
    ("independent", "level"),
    [
        (("law-1", "medicine-1"), "re-executed(4/6)"),
        (("law-2",), "re-executed(1/6)"),
        ((), "declared"),
    ],
    ids=["two accounts", "one account", "nobody"],
)
def test_only_queries_that_somebody_independent_disclosed_are_re_executed(
    independent: tuple[str, ...], level: str, finished: Finished, tmp_path: Path
) -> None:
    """A provider's own accounts ask what suits it, and disclose that."""
    verdict = without_embedding(finished).verify(
        tmp_path, trust=finished.service.trust(finished.policy, independent=independent)
    )
    assert verdict.figures["query_embedding"] == level
    result = {c.id: c for c in verdict.checks}
    assert result["proof.query_embedding"].actual.startswith("6 of 6 records re-executed")
    assert (result["trust.query_embedding"].status.value == "pass") == (level != "declared")


def test_an_account_whose_key_the_provider_holds_vouches_for_nothing(
    finished: Finished, tmp_path: Path
) -> None:
    forge = without_embedding(finished)
    line: Any = next(line for line in forge.value["roster"] if line["account"] == "law-1")
    line["custody"] = "provider"
    verdict = forge.verify(tmp_path)
    assert verdict.figures["query_embedding"] == "re-executed(2/6)"


# tau, with its unit.


@pytest.mark.parametrize(
    ("tau", "unit", "wanted", "met"),
    [
        (500, "positions", "500 positions", True),
        (3_600, "seconds", "3599 seconds", True),
        (3_600, "seconds", "500 positions", False),
        (3_600, "positions", "500 seconds", False),
        (499, "positions", "500 positions", False),
        (0, "positions", "9 seconds", True),
        (0, "seconds", 0, True),
        (3_600, "seconds", 0, False),
    ],
)
def test_tau_is_compared_in_its_own_unit(
    tau: int, unit: str, wanted: int | str, met: bool, finished: Finished
) -> None:
    value = finished.value()
    value["policy"]["estimator"].update(tau=tau, tau_unit=unit)
    verdict = finished.verify(finished.changed(policy=value["policy"]), require={"min_tau": wanted})
    result = next(c for c in verdict.checks if c.id == "trust.min_tau")
    assert (result.status.value == "pass") == met
    assert result.actual == ("whole window" if tau == 0 else f"{tau} {unit}")


def test_receipts_of_the_longest_lists_are_read(finished: Finished) -> None:
    """As many positions as a policy may list, of the largest capacity there is; twice as many do not fit."""
    key = SigningKey.generate("example.org/rag")
    record = QueryRecord.parse(finished.file.entries[2], field="record")
    tree = MerkleTree([leaf_hash(record.canonical())] * (record.seq + 1))
    longest = DocumentOpening(hash="f" * 64, salt="f" * 64, path=["f" * 64] * 24)

    def receipt(count: int) -> CountersignedReceipt:
        text = make_receipt(
            record, salt=bytes(32), positions=[(1 << 24) - 1] * count, documents=[longest] * count, tree=tree,
            origin="example.org/rag", header_digest="0" * 64, key=key,
        )  # fmt: skip
        result = {
            "type": "receipt",
            "v": 1,
            "account": "a",
            "receipt": text,
            "disclosed": None,
            "sig": "0" * 128,
        }
        return CountersignedReceipt.parse(result, field="receipt")

    result = receipt(MAX_LISTED)
    opened = receipts.open_receipt(
        result.receipt,
        origin="example.org/rag",
        header_digest="0" * 64,
        log_key=key.verifier,
        field="receipt",
    )
    assert len(opened.body.positions) == MAX_LISTED
    assert (
        len(result.canonical()) + 6 * 32_768 < MAX_RECEIPT_BYTES
    )  # with the longest question, all of it escaped
    with pytest.raises(SchemaError, match="at most"):
        receipt(2 * MAX_LISTED)
