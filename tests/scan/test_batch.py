"""Several records in one scan proof: jobs, what each record carries, and which records a fault is of."""

from __future__ import annotations

import base64
import dataclasses
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from bench.proofs import TENANT
from rag_audit.errors import (
    EncodingError,
    InvalidProof,
    MemoryLimitError,
    PolicyError,
    RagAuditError,
    SchemaError,
    SetupError,
    WitnessError,
)
from rag_audit.models.constants import Constants
from rag_audit.models.manifest import DEFAULT_TABLE
from rag_audit.proofs.backends.scan import memory
from rag_audit.proofs.backends.scan.column import SlotProofJob
from rag_audit.proofs.backends.scan.engine import engine
from rag_audit.proofs.backends.scan.key import PROTOCOL, RECORD, ScanKey, commit_index
from rag_audit.proofs.backends.scan.release import protocols_digest
from rag_audit.proofs.backends.scan.retrieve import (
    FORM,
    RecordInputs,
    RecordsJob,
    RetrieveProofs,
    max_batch,
)
from rag_audit.proofs.backends.scan.system import SYSTEM
from rag_audit.proofs.proving import MAX_BATCH
from rag_audit.proofs.records import Group, verify_records
from rag_audit.proofs.statements.retrieve import Statement
from rag_audit.relation.commitments import noise_key, seed_commitment, topk_commitment, vector_commitment
from rag_audit.relation.draws import draw
from rag_audit.relation.scores import ScoreWindow, dot
from rag_audit.relation.selection import top_k
from tests.scan.test_scan import BLINDING_KEY, CAPACITY, DIMENSION, LISTED, ROWS, int8, int32

S0, S1, BEACON = 11, 22, 33


def key_of(gains: tuple[int, ...], rows: list[list[int]] = ROWS, window: bytes = bytes(32)) -> ScanKey:
    points = commit_index(int8([v for row in rows for v in row]), DIMENSION, CAPACITY, BLINDING_KEY)
    return ScanKey(points, DIMENSION, CAPACITY, window, gains, LISTED, lo=5, hi=90, lattice=64)


def requested(key: ScanKey, slot: int) -> RecordInputs:
    """A record by the reference arithmetic alone."""
    vector = [(slot + 3 * j) % 15 - 7 for j in range(DIMENSION)]
    noise = draw(noise_key(S0, S1, BEACON, slot), CAPACITY, key.gains) if key.gains else [0] * CAPACITY
    scores = [dot(vector, row) for row in ROWS]
    window = ScoreWindow(key.lo, key.hi, key.lattice)
    positions = top_k([window.quantise(s) + z for s, z in zip(scores, noise, strict=True)], LISTED)
    seed = seed_commitment(S0, S1)
    cq, htopk = vector_commitment(7, vector), topk_commitment(8, positions)
    statement = Statement(5, seed, BEACON, slot, key.c_idx, cq, htopk)
    certificate = SlotProofJob(key, seed, BEACON, slot, S0, S1) if key.gains else None
    drawn = int32(noise) if key.gains else b""
    return RecordInputs(
        key, statement, certificate, drawn, int32(scores), int8(vector), 7, 8, positions, BLINDING_KEY
    )


def other_index() -> ScanKey:
    """The key of a tenant with the same documents in another order."""
    return key_of((1, 8), ROWS[::-1])


def job_of(jobs: list[RecordInputs]) -> RecordsJob:
    return RecordsJob(tuple(jobs), tuple(f"record {job.statement.slot}" for job in jobs))


@dataclasses.dataclass(frozen=True)
class Shared(RetrieveProofs):
    """Proofs under a key that a test made."""

    own: ScanKey | None = None

    @property
    def commitment(self) -> str:
        assert self.own is not None
        return self.own.digest.hex()

    def points(self) -> bytes:
        assert self.own is not None
        return self.own.points

    def key(self, points: bytes) -> ScanKey:
        assert self.own is not None
        return dataclasses.replace(self.own, points=points)


def shared(key: ScanKey) -> Shared:
    return Shared(TENANT, MAX_BATCH, key)


class Made:
    """Three records with one proof, and two others with theirs."""

    def __init__(self, key: ScanKey) -> None:
        self.key = key
        groups = [[requested(key, slot) for slot in slots] for slots in ((101, 102, 103), (104, 105))]
        self.values: list[dict[str, Any]] = []
        self.statements: list[Statement] = []
        for jobs in groups:
            proof = pickle.loads(pickle.dumps(job_of(jobs))).run()
            self.values += [dict(shared(key).carried(proof, n)) for n in range(len(jobs))]
            self.statements += [job.statement for job in jobs]

    def refused(
        self, values: list[dict[str, Any]] | None = None, statements: list[Statement] | None = None
    ) -> dict[int, RagAuditError]:
        """What a verifier says of what the records carry, of the statements that stand in its ledger."""
        of = shared(self.key)
        proofs = [of.parse_proof(value, field="proof") for value in values or self.values]
        every = statements or self.statements
        return verify_records(of, self.key, proofs, self.statements[: len(proofs)], every)


@pytest.fixture(scope="module")
def made() -> Made:
    return Made(key_of((1, 8)))


def test_records_of_the_reference_verify_together(made: Made) -> None:
    assert made.refused() == {}
    exact = key_of(())
    jobs = [requested(exact, slot) for slot in (7, 8)]
    proof = job_of(jobs).run()
    assert proof["noise_proof"] == ""
    of = shared(exact)
    carried = [of.parse_proof(of.carried(proof, n), field="proof") for n in range(2)]
    statements = [job.statement for job in jobs]
    assert verify_records(of, exact, carried, statements, statements) == {}


@pytest.mark.parametrize("name", ["native", "reference"])
def test_a_batch_takes_proofs_of_one_record_and_of_several(made: Made, name: str) -> None:
    several = shared(made.key).parse_proof(made.values[0], field="proof").parts or (b"", b"")
    value = job_of([requested(made.key, 107)]).run()
    alone = tuple(base64.b64decode(str(value[part])) for part in ("noise_proof", "proof"))
    single, first, second, third = (
        statement.encode(RECORD) for statement in (requested(made.key, 107).statement, *made.statements[:3])
    )
    items = [([single], *alone), ([first, second, third], *several)]
    for honest in (items, items[::-1]):
        batch = engine(name).records(made.key)
        assert batch.add(honest) == [] and batch.holds()
    # A proof for several is none for the first of them, nor a proof for one any for two.
    batch = engine(name).records(made.key)
    refused = batch.add([*items, ([first], *several), ([single, first], *alone)])
    assert [i for i, _ in refused] == [2, 3] and batch.holds()


def test_the_first_record_carries_the_proof_and_the_others_its_digest(made: Made) -> None:
    first, second = made.values[:2]
    assert first["protocol"] == second["protocol"] == PROTOCOL
    assert first["records"] == second["records"] == [FORM.digest(s).hex() for s in made.statements[:3]]
    assert set(first) == {"system", "protocol", "records", "noise_proof", "proof"}
    assert set(second) == {"system", "protocol", "records", "proof_digest"} and made.values[2] == second


def test_a_false_proof_is_false_for_its_records_alone(made: Made) -> None:
    values = [dict(value) for value in made.values]
    proof = bytearray(base64.b64decode(values[0]["proof"]))
    proof[-1] ^= 1
    values[0]["proof"] = base64.b64encode(proof).decode()
    digest = shared(made.key).parse_proof(values[0], field="proof").digest.hex()
    for value in values[1:3]:
        value["proof_digest"] = digest
    refused = made.refused(values)
    assert list(refused) == [0, 1, 2] and all(isinstance(r, InvalidProof) for r in refused.values())
    values[0]["proof"] = base64.b64encode(proof[:-1]).decode()
    digest = shared(made.key).parse_proof(values[0], field="proof").digest.hex()
    for value in values[1:3]:
        value["proof_digest"] = digest
    refused = made.refused(values)
    assert list(refused) == [0, 1, 2] and all(isinstance(r, EncodingError) for r in refused.values())


def test_a_proof_over_the_index_of_another_record_is_refused(made: Made) -> None:
    statements = [dataclasses.replace(made.statements[0], c_idx=other_index().c_idx), *made.statements[1:]]
    refused = made.refused(statements=statements)
    assert list(refused) == [0, 1, 2]
    assert {reason.message for reason in refused.values()} == {"the index is of another record"}


class Pinned:
    """Pins of this release's protocols."""

    scan = protocols_digest()

    def key(self, circuit: str) -> None:
        return None

    def artefact(self, name: str) -> None:
        return None


def test_the_published_points_are_those_of_the_opening(made: Made) -> None:
    of, digest = shared(made.key), made.key.digest.hex()
    assert of.open_key(of.published_keys(), Pinned()).key == made.key
    with pytest.raises(SetupError, match="no commitment of this digest"):
        of.open_key({}, Pinned())
    others = shared(other_index()).published_keys()
    with pytest.raises(SetupError, match="no commitment of this digest"):
        of.open_key(others, Pinned())
    with pytest.raises(InvalidProof, match="the commitment is not the window header's"):
        of.open_key({digest: next(iter(others.values()))}, Pinned())


def test_a_record_names_the_proof_that_is_for_it(made: Made) -> None:
    values = made.values
    # The proof itself is nowhere.
    lost = made.refused([values[1], *values[1:]])
    assert list(lost) == [0, 1, 2] and "no record carries" in lost[0].message
    assert not isinstance(lost[0], InvalidProof)
    # Another proof is named.
    other = made.refused([*values[:2], values[4], *values[3:]])
    assert list(other) == [2] and isinstance(other[2], InvalidProof)
    # Other records are named than the proof is for.
    said = {**values[1], "records": [*values[1]["records"][:2], FORM.digest(made.statements[4]).hex()]}
    named = made.refused([values[0], said, *values[2:]])
    assert list(named) == [1] and isinstance(named[1], InvalidProof)
    # The proof itself under other names: in another order it is false, and so are those who name it otherwise.
    turned = {**values[0], "records": values[0]["records"][::-1]}
    wrong = made.refused([turned, *values[1:]])
    assert list(wrong) == [0, 1, 2] and all(isinstance(r, InvalidProof) for r in wrong.values())
    # A record that the ledger does not have.
    unknown = made.refused(None, [*made.statements[:1], *made.statements[2:]])
    assert set(unknown) >= {0, 2} and isinstance(unknown[0], SchemaError)


def test_a_proof_under_other_names_spoils_no_other_record(made: Made) -> None:
    """Else one record's false names would refuse another record's proof."""
    values = made.values
    renamed = {**values[0], "records": values[3]["records"]}
    result = made.refused([*values[:3], renamed, values[4]])
    assert list(result) == [3, 4] and isinstance(result[4], SchemaError)


@pytest.mark.parametrize("name", ["native", "reference"])
def test_a_single_record_is_a_batch_of_one(made: Made, name: str) -> None:
    """Its proof proves it, and no record that carries a copy."""
    jobs = [requested(made.key, slot) for slot in (106, 107)]
    of, statements = shared(made.key), [job.statement for job in jobs]
    first, second = (of.parse_proof(job_of([job]).run(), field="proof") for job in jobs)
    renamed = dataclasses.replace(first, records=second.records)

    def refused(*proofs: Group) -> list[int]:
        bad = verify_records(of, made.key, proofs, statements, statements, engine=name)
        assert all(isinstance(reason, InvalidProof) for reason in bad.values())
        return list(bad)

    assert refused(first, second) == []
    assert refused(first, first) == refused(first, renamed) == [1]
    assert refused(second, first) == [0, 1]


@pytest.mark.parametrize(
    "change",
    [
        lambda v: v | {"system": "groth16"},
        lambda v: v | {"protocol": "00" * 32},
        lambda v: v | {"records": []},
        lambda v: v | {"records": v["records"] * 22},
        lambda v: v | {"records": [*v["records"][:2], "zz"]},
        lambda v: v | {"records": 3},
        lambda v: v | {"more": 1},
        lambda v: {k: x for k, x in v.items() if k != "proof"},
        lambda v: v | {"proof": "=="},
        lambda v: v | {"proof": 7},
        lambda v: {**{k: v[k] for k in ("system", "protocol", "records")}, "proof_digest": "0"},
        lambda v: [v],
        lambda v: None,
    ],
)
def test_what_a_file_carries_is_refused_by_name(made: Made, change: Callable[[Any], Any]) -> None:
    with pytest.raises((SchemaError, EncodingError)):
        shared(made.key).parse_proof(change(dict(made.values[0])), field="proof")


def test_records_of_other_tenants_or_windows_are_not_proved_together(made: Made) -> None:
    first = requested(made.key, 101)
    for other in (key_of((1, 8), window=bytes([1] * 32)), key_of((1,)), key_of((1, 8), ROWS[::-1])):
        with pytest.raises(WitnessError, match="another tenant") as caught:
            job_of([first, requested(other, 102)]).run()
        assert caught.value.field == "record 102"
    certified = dataclasses.replace(first, noise_proof=first.noise_proof.run())  # type: ignore[union-attr]
    with pytest.raises(WitnessError, match="with others") as caught:
        job_of([requested(made.key, 102), certified]).run()
    assert caught.value.field == "record 101"


def test_the_record_that_has_no_proof_is_named(made: Made) -> None:
    jobs = [requested(made.key, slot) for slot in (101, 102, 103)]
    jobs[1] = dataclasses.replace(jobs[1], positions=jobs[1].positions[::-1])
    with pytest.raises(WitnessError) as caught:
        job_of(jobs).run()
    assert caught.value.field == "record 102"


def test_as_many_records_are_named_as_fit(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rag_audit._native.scan_prove_noise", lambda *a: pytest.fail("started"))
    jobs = [requested(made.key, slot) for slot in (101, 102, 103, 104, 105)]
    sizes = {n: memory.batch_bytes(CAPACITY, (1, 8), n) for n in range(1, 6)}
    assert sorted(sizes.values()) == list(sizes.values())
    monkeypatch.setattr(memory, "available_bytes", lambda: sizes[5] - 1)
    with pytest.raises(MemoryLimitError, match="proof of 5 records") as caught:
        job_of(jobs).run()
    assert caught.value.hint == "at most 4 fit: --batch 4"
    monkeypatch.setattr(memory, "available_bytes", lambda: 1000)
    with pytest.raises(MemoryLimitError) as caught:
        job_of(jobs).run()
    assert caught.value.hint == "prove the records one by one"


def test_as_many_records_share_a_proof_as_the_argument_takes() -> None:
    assert max_batch(100_000, 3) == max_batch(1, 0) == 64
    assert max_batch(1 << 24, 1) == 8 and max_batch(1 << 24, 6) == 1


def test_secrets_are_not_shown(made: Made) -> None:
    shown = repr(job_of([requested(made.key, 101), requested(made.key, 102)]))
    assert "s0" not in shown and "vector" not in shown and "blinding_key" not in shown
    assert "statement=" in shown


CONSTANTS = Constants(10_000, 256, 5, (1, 8), 101, 810, 128, 64, DEFAULT_TABLE)


@pytest.mark.parametrize("low_memory", [False, True])
@pytest.mark.parametrize(("records", "fitting"), [(1, 1), (2, 2), (5, 8), (16, 16), (64, 64)])
def test_by_default_a_proof_is_for_as_many_records_as_the_free_memory_holds(
    monkeypatch: pytest.MonkeyPatch, records: int, fitting: int, low_memory: bool
) -> None:
    """Places for records are a power of two."""
    needed = memory.batch_bytes(CONSTANTS.capacity, CONSTANTS.gains, records, low_memory=low_memory)
    for processes in (1, 3):
        monkeypatch.setattr(memory, "available_bytes", lambda free=processes * needed: free)
        for wanted, result in ((None, fitting), (1, 1), (7, 7)):
            options = {"low_memory": low_memory, "at_a_time": processes}
            assert SYSTEM.batch("retrieve", CONSTANTS, wanted, **options) == result
    monkeypatch.setattr(memory, "available_bytes", lambda: needed - 1)
    assert SYSTEM.batch("retrieve", CONSTANTS, None, low_memory=low_memory) < max(fitting, 2)


def test_a_system_that_does_not_say_what_is_free_gets_the_largest_batch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(memory, "available_bytes", lambda: None)
    assert SYSTEM.batch("retrieve", CONSTANTS, None) == 64
    assert SYSTEM.batch("embed", CONSTANTS, None) == 1
    assert SYSTEM.batch("retrieve", dataclasses.replace(CONSTANTS, columns=("sample",)), None) == 1
    with pytest.raises(PolicyError, match="no proof is for that many records"):
        SYSTEM.batch("retrieve", CONSTANTS, 65)
