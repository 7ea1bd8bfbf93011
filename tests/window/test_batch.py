"""Windows whose proofs are for two records each: what is verified, which record a fault names, what the provider makes.

The law tenant's first record is proved eagerly and by itself, the other two share one proof; so do medicine's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import pytest

from rag_audit.attest.window import Window
from rag_audit.errors import ExitCode, PolicyError, WitnessError
from rag_audit.models.windowfile import WindowFile
from rag_audit.proofs.backends.groth16 import system as groth16
from rag_audit.proofs.backends.groth16.instance import RetrieveInstance
from rag_audit.proofs.backends.groth16.job import RecordsJob
from rag_audit.proofs.proving import RecordProofs
from rag_audit.proofs.statements.private import RecordPrivate
from rag_audit.proofs.statements.retrieve import RecordPublic
from rag_audit.proofs.statements.tenant import TenantPublic
from tests.window.forge import Forge
from tests.window.outcomes import assert_uncovered_record_fails, complaints
from tests.window.simulator import QUESTIONS, Finished, Service, finished_window
from tests.window.test_checks import lied_about_positions

ONE = RetrieveInstance(8, 64, 2, (1, 4), 40, 320, 64)
PAIR = replace(ONE, queries=2)
FIRST, SECOND = ("law-2", 1), ("law-1", 2)
"""Slots of the two law records that share a proof, in ledger order."""
FAIL, UNDECIDED = ExitCode.FAIL, ExitCode.MALFORMED
BOTH = ("proof.key.law", "proof.key.medicine")


@pytest.fixture(scope="module")
def paired(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    return finished_window(tmp_path_factory.mktemp("paired"), batch=2, table=None)


def retrieve(forge: Forge, slot: tuple[str, int]) -> dict[str, Any]:
    """The shared proof as this record carries it."""
    result: dict[str, Any] = forge.proofs[slot]["retrieve"]
    return result


def in_both(name: str, change: Callable[[Any], Any]) -> Callable[[Forge], None]:
    """Change one field of the shared proof wherever it is."""

    def apply(forge: Forge) -> None:
        for slot in (FIRST, SECOND):
            result = retrieve(forge, slot)
            changed = change(result[name])
            assert changed != result[name]
            result[name] = changed

    return apply


def test_shared_proofs_verify_beside_eager_ones(paired: Finished) -> None:
    verdict = paired.verify()
    assert verdict.passed, verdict.deciding
    assert verdict.figures["proved"] == 6 and verdict.figures["setup"] == "unsafe"
    forge = Forge(paired)
    assert retrieve(forge, FIRST) == retrieve(forge, SECOND) and len(retrieve(forge, FIRST)["records"]) == 2
    assert len(retrieve(forge, ("law-1", 1))["records"]) == 1
    assert set(paired.file.verification_keys) == {PAIR.digest(), ONE.digest()}
    lines = [(c.id, c.actual) for c in verdict.checks if c.id == "proof.valid.law"]
    assert lines == [("proof.valid.law", "1 valid proof"), ("proof.valid.law", "2 valid proofs")]


def test_another_verifier_agrees(paired: Finished) -> None:
    assert paired.verify(engine="py_ecc").passed


def test_a_bad_query_spoils_the_proof_and_is_named(paired: Finished, tmp_path: Path) -> None:
    """It is the second of the two: the first that is not proved would be another."""
    forge = Forge(paired)
    lied_about_positions(forge)
    verdict = forge.verify(tmp_path)
    assert verdict.exit_code is FAIL and verdict.figures["proved"] == 4
    assert complaints(verdict) == {"proof.valid.law": f"record {forge.record(*SECOND)['seq']}"}
    assert verdict.deciding is not None and verdict.deciding.actual.startswith("2 invalid")


def test_a_record_that_the_proof_does_not_cover(paired: Finished, tmp_path: Path) -> None:
    assert_uncovered_record_fails(paired, SECOND, tmp_path)


def test_the_other_tenants_proof(paired: Finished, tmp_path: Path) -> None:
    forge = Forge(paired)
    forge.proofs[SECOND]["retrieve"] = retrieve(forge, ("medicine-1", 2))
    verdict = forge.verify(tmp_path)
    assert verdict.exit_code is FAIL and verdict.figures["proved"] == 5
    assert complaints(verdict) == {"proof.valid.law": f"record {forge.record(*SECOND)['seq']}"}


def proved_once(finished: Finished) -> dict[str, Any]:
    """The provider's proof of the first record at both places."""
    service = finished.service
    with Window.resume(finished.window, key=service.key, clock=service.clock) as window:
        record = next(r for r in window.records if (r.account, r.i) == FIRST)
        one = window.prover.proofs("law", "retrieve", 1)
        job: Any = window.prover.job(one, [(record, window.prover.private(record))])
        return RecordsJob(PAIR, job.records).run()


def test_one_record_at_both_places_proves_no_other(paired: Finished, tmp_path: Path) -> None:
    result = proved_once(paired)
    named = retrieve(Forge(paired), FIRST)["records"]
    assert len(set(result["records"])) == 1 and result["records"][0] in named
    for number, (records, at, proved) in enumerate([(result["records"], SECOND, 5), (named, FIRST, 4)]):
        forge = Forge(paired)
        for slot in (FIRST, SECOND):
            forge.proofs[slot]["retrieve"] = {**result, "records": records}
        (tmp_path / str(number)).mkdir()
        verdict = forge.verify(tmp_path / str(number))
        assert verdict.exit_code is FAIL and verdict.figures["proved"] == proved
        assert complaints(verdict) == {"proof.valid.law": f"record {forge.record(*at)['seq']}"}


def test_a_record_that_fills_up_is_proved(paired: Finished, tmp_path: Path) -> None:
    forge = Forge(paired)
    forge.proofs[FIRST]["retrieve"] = proved_once(paired)
    assert forge.verify(tmp_path).passed


def test_a_record_that_has_no_proof_is_named_among_others(
    paired: Finished,
) -> None:
    """The provider's private values of the second record are another record's."""
    with Window.resume(paired.window, key=paired.service.key, clock=paired.service.clock) as window:
        by_slot = {(r.account, r.i): r for r in window.records}
        first, second = by_slot[FIRST], by_slot[SECOND]
        private = window.prover.private(second)
        wrong = replace(private, positions=private.positions[::-1])
        with pytest.raises(WitnessError) as caught:
            pair = window.prover.proofs("law", "retrieve", 2)
            window.prover.job(pair, [(first, window.prover.private(first)), (second, wrong)]).run()
    assert caught.value.field == f"record {second.seq}.htopk"


def test_a_proof_for_a_record_that_the_ledger_does_not_have(paired: Finished, tmp_path: Path) -> None:
    """The other values of its pairing check are unknown: neither true nor false."""
    forge = Forge(paired)
    forge.drop_receipts_of("law-2")
    forge.entries.remove(forge.record(*FIRST))
    verdict = forge.verify(tmp_path)
    assert verdict.exit_code is UNDECIDED
    assert complaints(verdict) == {"proof.valid.law": f"record {forge.record(*SECOND)['seq']}"}


def test_a_copy_of_the_proof_is_missing(paired: Finished, tmp_path: Path) -> None:
    """What the others carry is enough to verify it, and not enough for the record that carries nothing."""
    forge = Forge(paired)
    forge.proofs.pop(FIRST)
    verdict = forge.verify(tmp_path)
    assert complaints(verdict) == {"proof.present": f"record {forge.record(*FIRST)['seq']} (retrieve)"}
    assert verdict.exit_code is UNDECIDED and verdict.figures["proved"] == 5


@pytest.mark.parametrize(
    "fault, change, exit_code, actual",
    [
        ("places exchanged", in_both("records", lambda r: r[::-1]), FAIL, {"proof.valid.law"}),
        ("parts of two proofs", lambda f: in_both("a", lambda _: retrieve(f, ("medicine-2", 1))["a"])(f), FAIL,
         {"proof.valid.law"}),
        ("a circuit of other constants",
         in_both("circuit", lambda _: replace(PAIR, gains=(1, 1)).digest()),
         UNDECIDED, {"proof.valid.law"}),
        ("the circuit of one record", in_both("circuit", lambda _: ONE.digest()), UNDECIDED, {"proof.valid.law"}),
        ("a place too many", in_both("records", lambda r: [*r, r[1]]), UNDECIDED, {"proof.key.law"}),
        ("no place", in_both("records", lambda r: []), UNDECIDED, {"proof.key.law"}),
        ("one place", in_both("records", lambda r: r[:1]), UNDECIDED, {"proof.valid.law"}),
        ("more places than any circuit has", in_both("records", lambda r: r * 9), UNDECIDED, {"proof.key.law"}),
        ("no list of records", in_both("records", lambda r: "all"), UNDECIDED, {"proof.valid.law"}),
        ("off-curve point", in_both("a", lambda _: ["00" * 31 + "02"] * 2), UNDECIDED, {"proof.valid.law"}),
        ("another key than the pinned one",
         lambda f: f.value["verification_keys"][PAIR.digest()]["ic"].reverse(), FAIL, set(BOTH)),
        ("no key", lambda f: f.value["verification_keys"].pop(PAIR.digest()), UNDECIDED, set(BOTH)),
    ],
)  # fmt: skip
def test_a_shared_proof_that_is_refused(
    paired: Finished,
    tmp_path: Path,
    fault: str,
    change: Callable[[Forge], Any],
    exit_code: ExitCode,
    actual: set[str],
) -> None:
    forge = Forge(paired)
    change(forge)
    verdict = forge.verify(tmp_path)
    assert verdict.exit_code is exit_code, fault
    assert set(complaints(verdict)) == actual, fault


def test_a_key_for_several_records_needs_a_pin_of_its_own(paired: Finished) -> None:
    verdict = paired.verify(trust=paired.service.trust(paired.policy))
    assert verdict.exit_code is UNDECIDED and set(complaints(verdict)) == set(BOTH)
    assert verdict.figures["proved"] == 2


def test_the_setup_of_that_key_counts(paired: Finished) -> None:
    """The other keys are called a ceremony's here: the one of several records alone is unsafe."""
    trust = paired.service.trust(paired.policy, batch=2, allow_unsafe_setup=False)
    pins = [p.model_copy(update={"setup": "unsafe" if p.circuit == PAIR.digest() else "ceremony"})
            for p in trust.pins.groth16]  # fmt: skip
    trust = trust.model_copy(update={"pins": trust.pins.model_copy(update={"groth16": pins})})
    verdict = paired.verify(trust=trust)
    assert set(complaints(verdict)) == {"trust.setup"} and "unsafe" in verdict.figures["setup"]


# The provider.


class Stopped(Exception):
    """The process ends here."""


@dataclass(frozen=True)
class Canned:
    """Says what it was asked to prove."""

    slots: tuple[int, ...]
    keys: ClassVar[dict[str, str]] = {}

    def run(self) -> dict[str, Any]:
        slots = [str(slot) for slot in self.slots]
        return {"slots": slots, "records": ["00" * 32] * len(slots)}


@dataclass(frozen=True)
class CannedProofs:
    """`RecordProofs` over `Canned`."""

    made: list[tuple[int, ...]]
    key: str

    def prove(self, statement: Mapping[str, RecordPublic], witness: Sequence[RecordPrivate]) -> Canned:
        slots = tuple(record.slot for record in statement.values())
        if len(slots) > 1:
            self.made.append(slots)
        return Canned(slots)

    def carried(self, proof: dict[str, Any], number: int) -> dict[str, Any]:
        return proof

    def published_keys(self) -> dict[str, Any]:
        return {self.key * 32: self.key}


@pytest.fixture
def pairs(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, ...]]:
    """Windows whose jobs prove nothing; the slots of every job for several records."""
    result: list[tuple[int, ...]] = []

    def records(name: str, tenant: TenantPublic, places: int = 1) -> RecordProofs:
        assert places == 1 or (places, name) == (2, "retrieve")
        return CannedProofs(result, f"{places:02}")

    monkeypatch.setattr(groth16.SYSTEM, "records", records)
    return result


def closed(service: Service) -> Window:
    """Law is asked four times, the first eagerly; medicine once."""
    window = service.open()
    for number, account in enumerate(("law-1", "law-2", "law-1", "law-2", "medicine-1")):
        tenant = account.split("-")[0]
        service.ask(window, account, QUESTIONS[tenant][number % 3], eager=number == 0)
    service.finish(window)
    return window


def shapes(window: Window) -> list[tuple[int, int]]:
    """Places of each record's proofs of `retrieve` and `embed`."""
    proofs: Any = WindowFile.load(window.directory / "public").proofs
    return [(len(p["retrieve"]["slots"]), len(p["embed"]["slots"])) for _, p in sorted(proofs.items())]


def test_records_are_grouped_by_tenant_and_the_odd_one_is_proved_alone(
    service: Service, pairs: list[tuple[int, ...]]
) -> None:
    seen: list[tuple[int, int]] = []
    with closed(service) as window:
        assert window.prove(batch=2, progress=lambda *at: seen.append(at)) == 8
        # One eager, two together, the third and the other tenant's alone; embed always alone.
        assert shapes(window) == [(1, 1), (2, 1), (2, 1), (1, 1), (1, 1)] and len(pairs) == 1
        assert seen[0] == (2, 10) and seen[-1] == (10, 10)
        keys = WindowFile.load(window.directory / "public").verification_keys
        assert {"01" * 32, "02" * 32} == set(keys)
        assert window.prove(batch=2) == 0 and len(pairs) == 1


def test_a_stop_between_groups_loses_none(service: Service, pairs: list[tuple[int, ...]]) -> None:
    def stop(done: int, total: int) -> None:
        if pairs and done > 2:
            raise Stopped

    window = closed(service)
    with window, pytest.raises(Stopped):
        window.prove(batch=2, progress=stop)
    result = len(pairs)
    with Window.resume(window.directory, key=service.key, clock=service.clock) as again:
        again.prove(batch=2)
        assert shapes(again) == [(1, 1), (2, 1), (2, 1), (1, 1), (1, 1)] and len(pairs) == result


def test_a_challenged_record_that_another_group_has_already_is_left_alone(
    service: Service, pairs: list[tuple[int, ...]]
) -> None:
    with closed(service) as window:
        first, *others = [r.seq for r in window.records if r.tenant == "law" and r.proof is None]
        window.prove([first, others[0]], batch=2)
        window.prove(batch=2)
        assert len(pairs) == 1


@pytest.mark.parametrize("places", [0, 17])
def test_a_number_of_records_that_no_circuit_fits(service: Service, places: int) -> None:
    with pytest.raises(PolicyError, match="number of queries"):
        service.circuits(service.policy(), batch=places)
