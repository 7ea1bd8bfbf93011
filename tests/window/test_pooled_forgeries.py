"""Malicious providers of pooled listing that hold every key: each changes one part of a finished window."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

from rag_audit.attest.window import Window
from rag_audit.errors import ExitCode
from rag_audit.mechanisms.base import TableShape
from rag_audit.mechanisms.pooled_listing import PooledListing, PoolRules
from rag_audit.mechanisms.sampling import Sampling
from rag_audit.models.records import QueryRecord
from rag_audit.models.windowfile import WindowFile
from rag_audit.proofs.backends.scan import pooled_listing
from rag_audit.proofs.backends.scan.listed import listed_digest, no_rows
from rag_audit.relation.field import digest_to_field
from rag_audit.verify.checks import ledger, proof
from tests.simulate import pooled
from tests.window.forge import Forge
from tests.window.outcomes import exit_codes
from tests.window.simulator import QUESTIONS, Finished
from tests.window.test_document_tables import FIRST, SHAPE
from tests.window.test_enrolment import draw_beacon, enrol
from tests.window.test_pooled_listing import ACCEPTED, KEEP, PooledChain

FAIL, UNDECIDED = ExitCode.FAIL, ExitCode.MALFORMED
LAW = QUESTIONS["law"]


@pytest.fixture(scope="session")
def answered(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    """One window: a record proved before its answer between others, an account that enrols late, and a record of
    another tenant in the middle of the chain."""
    chain = PooledChain(tmp_path_factory.mktemp("answered"))
    service = chain.service
    with chain.open(FIRST, k_max=3) as window:
        service.ask(window, "law-1", LAW[0])
        service.ask(window, "law-2", LAW[1], eager=True)
        enrolment = enrol(service, window, "law-9")
        service.ask(window, "medicine-1", QUESTIONS["medicine"][0])
        service.ask(window, "law-1", LAW[1])
        draw_beacon(service, window, enrolment, "law-9")
        service.ask(window, "law-9", LAW[2], eager=True)
        service.ask(window, "law-2", LAW[2])
        service.finish(window)
        window.answer_challenge(service.challenge(window))
        receipts = service.receipts(window, chain.service.root / "receipts")
        policy, folder = window.policy, window.directory
    return Finished(service, folder, WindowFile.load(folder / "public"), policy, receipts)


def test_early_proofs_and_a_late_account_are_part_of_one_chain(answered: Finished, tmp_path: Path) -> None:
    verdict = answered.verify(require=ACCEPTED)
    assert verdict.passed, verdict.deciding
    records = [e for e in answered.value()["entries"] if e["type"] == "query"]
    assert sum(e["proof"] is not None for e in records) == 2
    again = Forge(answered).verify(tmp_path, require=ACCEPTED)
    assert again.passed, again.deciding


@pytest.mark.parametrize(
    ("module", "step", "check"),
    [(ledger, "_listed_rows", "ledger.listed_rows"), (proof, "_chains", "proof.chain")],
    ids=["ledger.listed_rows", "proof.chain"],
)
def test_a_verifier_that_leaves_a_check_out_gives_no_pass(
    answered: Finished, monkeypatch: pytest.MonkeyPatch, module: ModuleType, step: str, check: str
) -> None:
    monkeypatch.setattr(module, step, lambda case: None)
    verdict = answered.verify(require=ACCEPTED)
    assert check not in {c.id for c in verdict.checks if c.status.value == "pass"}
    assert not verdict.passed


def no_commitment(forge: Forge) -> None:
    forge.record("law-1", 1)["listed_rows"] = None


def commitment_of_another_mechanism(forge: Forge) -> None:
    forge.record("medicine-1", 1)["listed_rows"] = "11" * 32


def nothing_after_the_first(forge: Forge) -> None:
    forge.record("law-1", 1)["listed_rows"] = listed_digest(16, 10, no_rows(16, 10))


def left_out(forge: Forge) -> None:
    """The only record of the late account is missing between two others."""
    forge.entries.remove(forge.record("law-9", 1))
    del forge.proofs["law-9", 1]
    forge.drop_receipts_of("law-9")


def inserted(forge: Forge) -> None:
    """A copy of a record in a slot of its own."""
    forge.another_query("law-2", 3, ("law-1", 1))


def swapped_proofs(forge: Forge) -> None:
    forge.proofs["law-1", 1], forge.proofs["law-1", 2] = forge.proofs["law-1", 2], forge.proofs["law-1", 1]


def of_policy(**changes: object) -> Callable[[Forge], None]:
    def change(forge: Forge) -> None:
        tenant = next(t for t in forge.policy["tenants"] if t["tenant"] == "law")
        for name, value in changes.items():
            tenant[name] = tenant[name] + value if isinstance(value, int) else value

    return change


def more_positions(forge: Forge) -> None:
    next(t for t in forge.policy["tenants"] if t["tenant"] == "law")["documents"][
        "positions_per_document"
    ] += 1


def fewer_rows(forge: Forge) -> None:
    next(t for t in forge.policy["tenants"] if t["tenant"] == "law")["documents"]["rows"] -= 1


CASES: dict[str, tuple[Callable[[Forge], None], str]] = {
    "a record without a commitment": (no_commitment, "ledger.listed_rows"),
    "the last record without a commitment": (pooled.no_commitment, "ledger.listed_rows"),
    "a commitment of another mechanism": (commitment_of_another_mechanism, "ledger.listed_rows"),
    "swapped commitments": (pooled.commitments_exchanged, "proof.valid.law"),
    "one commitment twice": (pooled.one_set_twice, "proof.valid.law"),
    "nothing listed after a record": (nothing_after_the_first, "proof.valid.law"),
    "reordered records": (pooled.reordered, "proof.valid.law"),
    "a record left out": (left_out, "proof.valid.law"),
    "a record twice": (inserted, "proof.valid.law"),
    "swapped proofs": (swapped_proofs, "proof.valid.law"),
    "an older set before": (pooled.part(("law-1", 2), "before", ("law-1", 1), "after"), "proof.valid.law"),
    "the empty set before": (pooled.part(("law-1", 2), "before", ("law-1", 1), "before"), "proof.valid.law"),
    "another set after": (pooled.part(("law-2", 1), "after", ("law-1", 1), "after"), "proof.valid.law"),
    "another proof": (pooled.part(("law-2", 1), "proof", ("law-1", 1), "proof"), "proof.valid.law"),
    "another chance": (of_policy(flip_probability=1), "proof.sample.law"),
    "another threshold": (of_policy(threshold=1), "proof.sample.law"),
    "another sampled share": (of_policy(keep=1), "proof.sample.law"),
    "longer documents": (more_positions, "proof.sample.law"),
    "fewer rows": (fewer_rows, "proof.sample.law"),
}


@pytest.mark.parametrize(("cheat", "check"), CASES.values(), ids=CASES)
def test_a_changed_part_fails_at_its_own_check(
    answered: Finished, tmp_path: Path, cheat: Callable[[Forge], None], check: str
) -> None:
    forge = Forge(answered)
    cheat(forge)
    for account in ("law-1", "law-2", "law-9", "medicine-1"):
        forge.drop_receipts_of(account)
    verdict = forge.verify(tmp_path, require=ACCEPTED)
    assert verdict.exit_code is FAIL
    assert exit_codes(verdict).get(check) is FAIL, exit_codes(verdict)


def test_a_record_that_names_another_set_than_its_proof_fails(
    answered: Finished, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The provider proves a record truthfully, and its entry says that no row is listed after it, so that a next record
    could start from nothing. The record is the last one: no later record shows the difference."""
    forge = Forge(answered)
    forged = forge.record("law-2", 2)
    forged["listed_rows"] = listed_digest(16, 10, no_rows(16, 10))
    record = QueryRecord.parse(forged, field="record")
    with Window.resume(answered.window, key=answered.service.key, clock=answered.service.clock) as window:
        private = window.prover.private(window.state.by_slot["law-2", 2])
        public = window.prover._public(window.state.by_slot["law-2", 2])
        assert public.listed_rows is not None
        rows = replace(public.listed_rows, after=forged["listed_rows"])
        public = replace(public, ctx=digest_to_field(record.context(window.header_digest)), listed_rows=rows)
        jobs = {
            circuit: window.prover.proofs("law", circuit, 1).prove({"record": public}, [private])
            for circuit in ("retrieve", "embed")
        }
        digests = iter([rows.before, rows.after])
        with monkeypatch.context() as patched:
            patched.setattr(pooled_listing, "listed_digest", lambda *_: next(digests))
            proofs = {circuit: job.run() for circuit, job in jobs.items()}
    forge.proofs["law-2", 2] = {**forge.proofs["law-2", 2], **proofs}
    forge.drop_receipts_of("law-2")
    verdict = forge.verify(tmp_path, require=ACCEPTED)
    assert {c.id for c in verdict.checks if c.status.exit_code is FAIL} == {"proof.valid.law"}


def test_an_unproved_record_of_the_chain_passes_in_no_mode(answered: Finished, tmp_path: Path) -> None:
    """The set after an unproved record may lack relevant documents, or start from nothing, so the chain needs all."""
    forge = Forge(answered)
    del forge.proofs["law-1", 2]
    (tmp_path / "full").mkdir()
    verdict = forge.verify(tmp_path / "full", require=ACCEPTED)
    assert verdict.exit_code is UNDECIDED
    assert exit_codes(verdict).get("proof.present") is UNDECIDED
    sampled = {**ACCEPTED, "mode": "sampled", "beta": "0.5", "eta": "0.5", "challenge": "published"}
    (tmp_path / "sampled").mkdir()
    verdict = forge.verify(tmp_path / "sampled", require=sampled)
    assert verdict.exit_code is UNDECIDED
    (chain,) = [c for c in verdict.checks if c.id == "proof.chain"]
    assert chain.status.exit_code is UNDECIDED and "sampled mode for law" in str(chain.actual)
    assert not verdict.line.startswith("PASS")


@pytest.mark.parametrize(
    ("rows", "positions", "fresh", "capacity", "listed"),
    [
        pytest.param(1, 1, None, 16, 16, id="one row of one position, K = N"),
        pytest.param(
            64, 64, 1, 64, 64, id="as many rows as positions, documents of up to N positions, K = N"
        ),
    ],
)
def test_the_smallest_and_the_widest_table(
    tmp_path: Path, rows: int, positions: int, fresh: int | None, capacity: int, listed: int
) -> None:
    shape = TableShape(rows=rows, positions_per_document=positions, fresh_rows=fresh)
    pooled = PooledListing(keep=KEEP, rules=PoolRules(0, 60, "0.3"), documents=shape)
    chain = PooledChain(tmp_path)
    texts = FIRST if rows > 1 else {"b": FIRST["b"]}
    with chain.open(
        texts,
        top_k=listed,
        capacities={"law": capacity, "medicine": 64},
        mechanisms={"law": pooled, "medicine": Sampling(keep=KEEP, documents=SHAPE)},
    ) as window:
        chain.service.ask(window, "law-1", LAW[0])
        chain.service.ask(window, "law-2", "A tort is a civil wrong that causes someone harm.")
        chain.finish(window)
        receipts = chain.service.receipts(window, tmp_path / "receipts")
        policy, folder = window.policy, window.directory
    finished = Finished(chain.service, folder, WindowFile.load(folder / "public"), policy, receipts)
    verdict = finished.verify(require={**ACCEPTED, "max_K_share": "1"})
    assert verdict.passed, verdict.deciding
