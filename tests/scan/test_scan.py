"""The scan argument against the reference relation, through the interface that a window would use."""

from __future__ import annotations

import array
import base64
import dataclasses
import pickle
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from bench.proofs import failures, job, verify, verify_batch
from rag_audit import _native
from rag_audit.errors import (
    EncodingError,
    InvalidProof,
    MemoryLimitError,
    RagAuditError,
    SchemaError,
    WitnessError,
)
from rag_audit.proofs.backends.scan.column import SlotProofJob
from rag_audit.proofs.backends.scan.key import (
    RECORD,
    ScanKey,
    commit_index,
    index_digest,
    parse_points,
    points_json,
)
from rag_audit.proofs.backends.scan.retrieve import FORM, RecordInputs
from rag_audit.proofs.batch import Lazy
from rag_audit.proofs.statements.private import NoiseProof
from rag_audit.proofs.statements.retrieve import Statement
from rag_audit.relation.commitments import noise_key, seed_commitment, topk_commitment, vector_commitment
from rag_audit.relation.draws import draw
from rag_audit.relation.field import MODULUS
from rag_audit.relation.scores import ScoreWindow, dot
from rag_audit.relation.selection import top_k

CAPACITY, DIMENSION, LISTED = 20, 5, 3
GAINS = (1, 8)
S0, S1, BEACON = 11, 22, 33
BLINDING_KEY = bytes(range(32))
FQ = 21888242871839275222246405745257275088696311157297823662689037894645226208583
ROWS = [[(i * 7 + j * 3) % 15 - 7 for j in range(DIMENSION)] for i in range(17)] + [[0] * DIMENSION] * 3


def int8(values: list[int]) -> bytes:
    return array.array("b", values).tobytes()


def int32(values: list[int]) -> bytes:
    return array.array("i", values).tobytes()


class Made(NamedTuple):
    record: RecordInputs
    proof: dict[str, Any]


@pytest.fixture(scope="module")
def key() -> ScanKey:
    points = commit_index(int8([v for row in ROWS for v in row]), DIMENSION, CAPACITY, BLINDING_KEY)
    return ScanKey(points, DIMENSION, CAPACITY, bytes(32), GAINS, LISTED, lo=5, hi=90, lattice=64)


def prove_drawn(key: ScanKey, slot: int) -> NoiseProof:
    return SlotProofJob(key, seed_commitment(S0, S1), BEACON, slot, S0, S1).run()


def make(key: ScanKey, slot: int) -> Made:
    """A record by the reference arithmetic alone, proved by the native argument."""
    vector = [(slot + 3 * j) % 15 - 7 for j in range(DIMENSION)]
    noise = draw(noise_key(S0, S1, BEACON, slot), CAPACITY, GAINS)
    scores = [dot(vector, row) for row in ROWS]
    window = ScoreWindow(key.lo, key.hi, key.lattice)
    positions = top_k([window.quantise(s) + z for s, z in zip(scores, noise, strict=True)], LISTED)
    statement = Statement(
        ctx=5,
        c_seed=seed_commitment(S0, S1),
        beacon=BEACON,
        slot=slot,
        c_idx=key.c_idx,
        cq=vector_commitment(7, vector),
        htopk=topk_commitment(8, positions),
    )
    record = RecordInputs(
        key,
        statement,
        prove_drawn(key, slot),
        int32(noise),
        int32(scores),
        int8(vector),
        7,
        8,
        positions,
        BLINDING_KEY,
    )
    return Made(record, job(record).run())


@pytest.fixture(scope="module")
def made(key: ScanKey) -> list[Made]:
    return [make(key, slot) for slot in (101, 102, 103)]


def wire(proof: dict[str, Any]) -> Any:
    """The noise proof and the query proof."""
    return FORM.parse(proof, 1, field="proof").parts


def short(proof: tuple[bytes, ...]) -> tuple[bytes, ...]:
    """The query proof without its last byte."""
    return proof[0], proof[1][:-1]


def test_records_of_the_reference_verify(key: ScanKey, made: list[Made]) -> None:
    for m in made:
        verify(key, wire(m.proof), m.record.statement)
    assert verify_batch(key, [wire(m.proof) for m in made], [m.record.statement for m in made]) == []


@pytest.mark.parametrize(
    "change",
    [
        {"lattice": 48},
        {"lattice": 0},
        {"lattice": 1 << 25},
        {"lattice": 1 << 80},
        {"lo": -1},
        {"lo": 90},
        {"hi": 64 * DIMENSION + 1},
        {"hi": 1 << 31},
        {"hi": FQ},
        {"listed": 0},
        {"listed": CAPACITY + 1},
        {"gains": ()},
        {"gains": (1, 9)},
        {"capacity": 1 << 11},
        {"capacity": 0},
        {"capacity": (1 << 24) + 1},
        {"dimension": DIMENSION - 1},
        {"dimension": 0},
        {"dimension": 4097},
    ],
    ids=str,
)
def test_constants_out_of_range_are_refused(key: ScanKey, made: list[Made], change: dict[str, Any]) -> None:
    """By name, for the verifier; a prover runs out of memory first at some sizes."""
    other = dataclasses.replace(key, **change)
    with pytest.raises(EncodingError):
        verify(other, wire(made[0].proof), made[0].record.statement)
    with pytest.raises(RagAuditError) as caught:
        job(dataclasses.replace(made[0].record, key=other)).run()
    assert isinstance(caught.value, EncodingError | WitnessError | MemoryLimitError)


@pytest.mark.parametrize(
    "window",
    [{"lo": 64 * DIMENSION - 1, "hi": 64 * DIMENSION}, {"lo": 10, "hi": 11}, {"lattice": 1 << 24}],
    ids=str,
)
def test_an_extreme_window_proves_the_reference_and_no_more(key: ScanKey, window: dict[str, int]) -> None:
    """No window takes a score out of the table of scores."""
    record = make(dataclasses.replace(key, **window), 104)
    verify(record.record.key, wire(record.proof), record.record.statement)
    others = [p for p in range(CAPACITY) if p not in record.record.positions]
    positions = [others[0], *record.record.positions[1:]]
    statement = dataclasses.replace(record.record.statement, htopk=topk_commitment(8, positions))
    with pytest.raises(WitnessError):
        job(dataclasses.replace(record.record, statement=statement, positions=positions)).run()
    with pytest.raises(InvalidProof):
        verify(record.record.key, wire(record.proof), statement)


@pytest.mark.parametrize("name", [f.name for f in dataclasses.fields(Statement)])
def test_every_public_value_is_bound(key: ScanKey, made: list[Made], name: str) -> None:
    statement = dataclasses.replace(
        made[0].record.statement, **{name: getattr(made[0].record.statement, name) + 1}
    )
    assert verify_batch(key, [wire(made[0].proof)], [statement]) == [0]
    with pytest.raises(InvalidProof):
        verify(key, wire(made[0].proof), statement)


@pytest.mark.parametrize(
    "change",
    [
        {"window": bytes([1]) + bytes(31)},
        {"gains": (1, 7)},
        {"listed": LISTED + 1},
        {"lo": 6},
        {"hi": 91},
        {"lattice": 128},
    ],
    ids=lambda c: next(iter(c)),
)
def test_every_constant_of_the_policy_is_bound(
    key: ScanKey, made: list[Made], change: dict[str, Any]
) -> None:
    other = dataclasses.replace(key, **change)
    assert verify_batch(other, [wire(made[0].proof)], [made[0].record.statement]) == [0]


def test_another_tenants_index_is_refused(key: ScanKey, made: list[Made]) -> None:
    rows = int8([-v for row in ROWS for v in row])
    other = dataclasses.replace(key, points=commit_index(rows, DIMENSION, CAPACITY, BLINDING_KEY))
    moved = dataclasses.replace(made[0].record.statement, c_idx=other.c_idx)
    assert verify_batch(other, [wire(made[0].proof)], [moved]) == [0]
    assert verify_batch(other, [wire(made[0].proof)], [made[0].record.statement]) == [0]


def test_a_batch_names_the_bad_proofs(key: ScanKey, made: list[Made]) -> None:
    proofs = [wire(m.proof) for m in made]
    statements = [m.record.statement for m in made]
    assert verify_batch(key, [proofs[0], proofs[2], proofs[1]], statements) == [1, 2]
    assert verify_batch(key, [proofs[0], short(proofs[1]), (b"", b"")], statements) == [1, 2]
    assert verify_batch(key, proofs, statements, engine="py_ecc") == []  # it has one verifier


def test_one_noise_does_not_serve_two_slots(key: ScanKey, made: list[Made]) -> None:
    swapped = {**made[0].proof, "noise_proof": made[1].proof["noise_proof"]}
    assert verify_batch(key, [wire(swapped)], [made[0].record.statement]) == [0]
    first, second = made[0].record, made[1].record
    with pytest.raises(WitnessError):
        job(dataclasses.replace(first, noise_proof=second.noise_proof, noise=second.noise)).run()


@pytest.mark.parametrize(
    "lie",
    [
        lambda job: {"positions": list(reversed(job.positions))},
        lambda job: {"positions": [*job.positions[:-1], CAPACITY]},
        lambda job: {"positions": [*job.positions, 0]},
        lambda job: {"vector": job.vector[:-1]},
        lambda job: {"scores": job.scores[:-4]},
        lambda job: {"scores": int32([10**6] * CAPACITY)},
        lambda job: {"noise": job.noise[4:]},
        lambda job: {"salt_c": 9},
        lambda job: {"salt_k": 9},
        lambda job: {"blinding_key": b"short"},
    ],
    ids=["order", "beyond", "count", "dimension", "scores", "range", "noise", "salt_c", "salt_k", "key"],
)
def test_the_prover_refuses_a_false_witness(
    made: list[Made], lie: Callable[[RecordInputs], dict[str, Any]]
) -> None:
    with pytest.raises(WitnessError):
        job(dataclasses.replace(made[0].record, **lie(made[0].record))).run()


def test_the_prover_refuses_another_seed(key: ScanKey) -> None:
    with pytest.raises(WitnessError):
        SlotProofJob(key, seed_commitment(S0, S1), BEACON, 5, S0, S1 + 1).run()


def off_the_curve(word: bytes) -> bytes:
    """An x that no point has."""
    x = int.from_bytes(word, "big") & (2**254 - 1)
    while pow(x**3 + 3, (FQ - 1) // 2, FQ) != FQ - 1:
        x = (x + 1) % FQ
    return x.to_bytes(32, "big")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda p: p[:-32], "the proof ends early"),
        (lambda p: p[:-1], "the proof ends early"),
        (lambda p: p + bytes(32), "bytes after the proof's end"),
        (lambda p: off_the_curve(p[:32]) + p[32:], "not the canonical encoding of a point"),
        (lambda p: FQ.to_bytes(32, "big") + p[32:], "not the canonical encoding of a point"),
        (lambda p: p[:-32] + MODULUS.to_bytes(32, "big"), "not a canonical scalar"),
        (lambda p: p[:-32] + bytes([0xFF] * 32), "not a canonical scalar"),
    ],
    ids=["truncated", "one byte short", "extended", "off the curve", "x = p", "scalar = r", "scalar"],
)
@pytest.mark.parametrize("part", ["noise_proof", "proof"])
def test_malformed_proofs_are_named(
    key: ScanKey, made: list[Made], part: str, change: Callable[[bytes], bytes], reason: str
) -> None:
    changed = base64.b64encode(change(base64.b64decode(made[0].proof[part]))).decode()
    with pytest.raises(EncodingError, match=reason):
        verify(key, wire({**made[0].proof, part: changed}), made[0].record.statement)


@pytest.mark.parametrize("capacity", [CAPACITY - 1, CAPACITY + 1, 10 * CAPACITY])
def test_a_proof_of_another_capacity_is_refused(key: ScanKey, made: list[Made], capacity: int) -> None:
    rows = int8([v for row in ROWS[:17] for v in row])
    points = commit_index(rows, DIMENSION, capacity, BLINDING_KEY)
    other = dataclasses.replace(key, points=points, capacity=capacity)
    statement = dataclasses.replace(made[0].record.statement, c_idx=other.c_idx)
    with pytest.raises((EncodingError, InvalidProof)):
        verify(other, wire(made[0].proof), statement)


def test_what_is_no_proof_is_told_from_what_is_false(key: ScanKey, made: list[Made]) -> None:
    (noise_proof, proof), statement = wire(made[0].proof), made[0].record.statement
    other_size = dataclasses.replace(key, capacity=64, points=commit_index(b"", DIMENSION, 64, BLINDING_KEY))
    moved = dataclasses.replace(statement, c_idx=other_size.c_idx)
    off_curve = bytes([0x3F]) + bytes([0xFF]) * 31
    ends = [proof[:-1], proof[:-32], proof + bytes(32), proof[:-32] + bytes([0xFF]) * 32, b"", b"\0\0"]
    no_proofs = [(noise_proof, end) for end in ends]
    no_proofs += [(off_curve + noise_proof[32:], proof), (noise_proof[:5], noise_proof[5:] + proof)]
    for bad, of, about in [
        *((p, key, statement) for p in no_proofs),
        ((noise_proof, proof), other_size, moved),
    ]:
        assert isinstance(failures(of, [bad], [about])[0], EncodingError)
    assert isinstance(failures(key, [wire(made[1].proof)], [statement])[0], InvalidProof)


def test_no_proof_hides_another(key: ScanKey, made: list[Made]) -> None:
    """One that is none at all, one that cannot be read from its file, a false one and a good one, in one batch."""
    proofs = [wire(m.proof) for m in made]
    statement = made[0].record.statement

    def read(i: int) -> tuple[bytes, ...]:
        if i == 1:
            raise SchemaError("the value is not a scan proof", field="proofs.7")
        return (short(proofs[0]), (b"", b""), proofs[1], proofs[0])[i]

    bad = failures(key, Lazy(4, read), [statement] * 4)
    assert {i: type(reason) for i, reason in bad.items()} == {
        0: EncodingError,
        1: SchemaError,
        2: InvalidProof,
    }


class Counted(bytes):
    """Bytes of which it is known how many live, parts of them among them."""

    live = 0
    maximum = 0

    def __init__(self, _: bytes) -> None:
        type(self).live += 1
        type(self).maximum = max(self.maximum, self.live)

    def __getitem__(self, key: Any) -> Any:
        part = super().__getitem__(key)
        return Counted(part) if isinstance(part, bytes) else part

    def __del__(self) -> None:
        type(self).live -= 1


@pytest.mark.parametrize("false", [None, 70])
def test_a_batch_holds_a_chunk_of_proofs(key: ScanKey, made: list[Made], false: int | None) -> None:
    """Neither Python nor the native core keeps more for three chunks than for one, found false or not."""
    good, other = wire(made[0].proof), wire(made[1].proof)
    count = 2 * _native.ScanBatch.CHUNK + 5
    requested = 0

    def proof(i: int) -> tuple[bytes, ...]:
        nonlocal requested
        requested += 1
        return tuple(map(Counted, other if i == false else good))

    Counted.live = Counted.maximum = 0
    bad = failures(key, Lazy(count, proof), Lazy(count, lambda _: made[0].record.statement))
    assert list(bad) == ([] if false is None else [false])
    assert requested == (count if false is None else 2 * count)
    assert (
        Counted.maximum <= 2 * _native.ScanBatch.CHUNK + 3
    )  # certificate and query proof, and one that is being read

    batch = _native.ScanBatch(key.index, key.parameters)
    record = ([made[0].record.statement.encode(RECORD)], *good)
    kept = []
    for _ in range(3):
        assert batch.add([record] * 10) == []
        kept.append(batch.retained())
    assert batch.holds() and kept == [kept[0]] * 3


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"system": "groth16"}, SchemaError),
        ({"protocol": "0" * 64}, SchemaError),
        ({"noise_proof": "***"}, EncodingError),
        ({"proof": 5}, EncodingError),
        ({"more": 1}, SchemaError),
        ({"records": []}, SchemaError),
        ({"records": ["00" * 32] * 2}, SchemaError),
        ({"records": ["00"]}, EncodingError),
    ],
)
def test_proof_files_are_parsed_strictly(
    made: list[Made], change: dict[str, Any], error: type[RagAuditError]
) -> None:
    with pytest.raises(error):
        wire({**made[0].proof, **change})


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"system": "groth16"}, SchemaError),
        ({"more": 1}, SchemaError),
        ({"points": "***"}, EncodingError),
        ({"points": None}, EncodingError),
    ],
)
def test_index_files_are_parsed_strictly(
    key: ScanKey, change: dict[str, Any], error: type[RagAuditError]
) -> None:
    assert parse_points(points_json(key.points), field="key") == key.points
    with pytest.raises(error):
        parse_points({**points_json(key.points), **change}, field="key")
    with pytest.raises(SchemaError):
        parse_points([], field="key")


def test_an_index_of_another_shape_is_refused(key: ScanKey) -> None:
    digest = index_digest(key.points, DIMENSION, CAPACITY)
    assert index_digest(key.points, DIMENSION, CAPACITY - 1) != digest
    for points, capacity in (
        (key.points[32:], CAPACITY),
        (key.points + key.points[:32], CAPACITY),
        (key.points, 2**40),
        (key.points, -1),
        (bytes([0x3F]) + bytes([0xFF]) * 31 + key.points[32:], CAPACITY),
    ):
        with pytest.raises(EncodingError):
            index_digest(points, DIMENSION, capacity)


def test_rows_outside_the_range_are_refused() -> None:
    for rows in (int8([-8] * DIMENSION), int8([0] * (DIMENSION + 1)), int8([0] * DIMENSION * (CAPACITY + 1))):
        with pytest.raises(EncodingError):
            commit_index(rows, DIMENSION, CAPACITY, BLINDING_KEY)


def test_jobs_are_picklable_and_print_no_secret(made: list[Made]) -> None:
    result = pickle.loads(pickle.dumps(job(made[0].record)))
    assert result == job(made[0].record)
    text = repr(result)
    assert all(
        name not in text for name in ("blindings", "scores", "vector", "salt_c", "blinding_key", "positions")
    )
