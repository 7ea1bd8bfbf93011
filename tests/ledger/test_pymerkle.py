"""The ledger's two trees against pymerkle's, and pymerkle as a verifier's second opinion."""

from __future__ import annotations

import random
import sys

import pytest
from pymerkle import InmemoryTree

from rag_audit.log.merkle import HashTree, leaf_hash, verify_consistency
from rag_audit.log.second import root_by_pymerkle
from rag_audit.log.tree import MerkleTree
from rag_audit.models.trust import Trust
from rag_audit.models.windowfile import WindowFile
from rag_audit.verify.case import Status
from rag_audit.verify.checks import ledger
from rag_audit.verify.verifier import open_case
from tests.report.conftest import EXAMPLES

SIZES = range(1, 40)


@pytest.fixture(scope="module")
def trees() -> tuple[InmemoryTree, HashTree, MerkleTree]:
    rng = random.Random(9)
    entries = [rng.randbytes(rng.randrange(80)) for _ in SIZES]
    theirs = InmemoryTree(algorithm="sha256")
    for entry in entries:
        theirs.append_entry(entry)
    hashes = [leaf_hash(entry) for entry in entries]
    assert root_by_pymerkle(entries) == theirs.get_root()
    return theirs, HashTree(hashes), MerkleTree(hashes)


@pytest.mark.parametrize("size", SIZES)
def test_roots_and_paths_are_those_of_pymerkle(
    size: int, trees: tuple[InmemoryTree, HashTree, MerkleTree]
) -> None:
    theirs, *ours = trees
    for tree in ours:
        assert tree.root(size) == theirs.get_root(size)
        for index in range(size):
            # Its path begins with the leaf itself, and counts leaves from one.
            assert [tree.leaf(index), *tree.inclusion_path(index, size)] == theirs.prove_inclusion(
                index + 1, size
            ).path
        for earlier in range(1, size):
            # Its proof of consistency has another form, so its roots judge ours.
            assert verify_consistency(
                earlier,
                size,
                tree.consistency_path(earlier, size),
                theirs.get_root(earlier),
                theirs.get_root(size),
            )


def root_check(engine: str) -> Status:
    """What the check of the example's root finds."""
    file, trust = WindowFile.load(EXAMPLES / "window.json"), Trust.load(EXAMPLES / "trust.toml")
    case = open_case(file, trust, [], engine)
    ledger.check(case)
    (status,) = [check.status for check in case.checks if check.id == "ledger.root"]
    return status


def test_a_root_that_pymerkle_does_not_confirm_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger, "root_by_pymerkle", lambda entries: bytes(32))
    assert root_check("reference") is Status.FAIL
    assert root_check("native") is Status.PASS


def test_pymerkle_confirms_the_example_and_is_not_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert root_check("reference") is Status.PASS
    monkeypatch.setitem(sys.modules, "pymerkle", None)
    assert root_by_pymerkle([b"a"]) is None
    assert root_check("reference") is Status.PASS
