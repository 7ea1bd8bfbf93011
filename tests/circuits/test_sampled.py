"""`retrieve` of tenants that are sampled, or without noise, against the Python reference: an assignment exists for the
reference's positions and no others. And the proofs of such tenants, as the proof system makes and checks them."""

from __future__ import annotations

import pickle
import random
import re
from dataclasses import dataclass, replace
from itertools import permutations
from pathlib import Path
from typing import Any, Literal

import pytest

from rag_audit._internal.canonical import Json, digest_hex
from rag_audit.errors import InvalidProof, PolicyError, SchemaError, SetupError, WitnessError
from rag_audit.models.constants import Constants
from rag_audit.proofs.backends.groth16.circuit import compile_circuit
from rag_audit.proofs.backends.groth16.instance import RetrieveInstance, SampleInstance
from rag_audit.proofs.backends.groth16.job import RecordsJob
from rag_audit.proofs.backends.groth16.keys import VerificationKey, proving_key
from rag_audit.proofs.backends.groth16.policy import SHIPPED
from rag_audit.proofs.backends.groth16.sample import COLUMN
from rag_audit.proofs.backends.groth16.statements import ManySampledStatement, ManyStatement
from rag_audit.proofs.backends.groth16.system import SYSTEM
from rag_audit.proofs.backends.groth16.verifiers import (
    failures,
    parse_records_proof,
    public_inputs,
    verify,
)
from rag_audit.proofs.interface import FileProof
from rag_audit.proofs.statements.column import ColumnPublic
from rag_audit.proofs.statements.private import ColumnPrivate, CommittedColumn, RecordPrivate
from rag_audit.proofs.statements.retrieve import RecordPublic, SampledStatement
from rag_audit.proofs.statements.tenant import ColumnCommitment, TenantPublic
from rag_audit.relation import commitments
from rag_audit.relation.draws import bernoulli_bits
from rag_audit.relation.field import MODULUS, to_hex
from tests.circuits.forger import satisfiable
from tests.circuits.many_case import part, reasons
from tests.circuits.sampled_case import (
    EXACT,
    NOISY,
    SAMPLED,
    SampledCase,
    sampled_case,
    shared_sampled,
)

pytestmark = pytest.mark.circuits

KINDS = [NOISY, SAMPLED, EXACT]
N64 = RetrieveInstance(64, 16, 5, (1,), 20, 160, 64, True)
"""64 positions of short vectors, which compile in seconds."""
LARGE = [i for i in SHIPPED if isinstance(i, RetrieveInstance) and (i.sampled or not i.gains)]


def satisfied(case: SampledCase) -> bool:
    return satisfiable(case.kind, case.job().inputs())


@pytest.mark.parametrize("kind", KINDS, ids=lambda k: k.name)
def test_only_the_reference_s_list_has_an_assignment(kind: RetrieveInstance) -> None:
    rng = random.Random(kind.name)
    for seed in range(4):
        case = sampled_case(kind, seed)
        assert satisfied(case)
        others = [p for p in permutations(range(8), 5) if p != case.positions]
        for positions in rng.sample(others, 4):
            assert not satisfied(replace(case, positions=positions))


@pytest.mark.full
@pytest.mark.parametrize("kind", KINDS, ids=lambda k: k.name)
def test_the_reference_s_list_has_an_assignment_two_hundred_times(kind: RetrieveInstance) -> None:
    for seed in range(200):
        assert satisfied(sampled_case(kind, 1000 + seed, empty=seed % 9))


@pytest.mark.parametrize("kind", [NOISY, SAMPLED], ids=lambda k: k.name)
@pytest.mark.parametrize("bit", [False, True])
def test_all_kept_and_none_kept(kind: RetrieveInstance, bit: bool) -> None:
    case = sampled_case(kind, 7, [bit] * 8)
    assert satisfied(case)
    if not (bit or kind.gains):
        assert case.positions == (0, 1, 2, 3, 4), "nothing scores, so the order is that of positions"


@pytest.mark.parametrize("bit", [pytest.param(False, marks=pytest.mark.full), True])
def test_every_position_listed(bit: bool) -> None:
    """K = N: the whole order is proved."""
    case = sampled_case(replace(SAMPLED, top_k=8), 8, None if bit else [False] * 8)
    assert satisfied(case)
    p = list(case.positions)
    p[6], p[7] = p[7], p[6]
    assert not satisfied(replace(case, positions=p))


def test_a_position_that_is_not_kept_falls_behind() -> None:
    """The best position, taken out of the sample, is no longer listed, and its place goes to the next."""
    case = sampled_case(SAMPLED, 9, [True] * 8)
    best = case.positions[0]
    without = replace(case, kept=[i != best for i in range(8)]).solved()
    assert isinstance(without, SampledCase)
    assert without.positions[0] == case.positions[1]
    assert satisfied(without)
    assert not satisfied(replace(without, positions=case.positions))


@pytest.mark.parametrize("kind", [N64], ids=lambda k: k.name)
def test_agreement_at_64(kind: RetrieveInstance) -> None:
    for seed in range(3):
        assert satisfied(sampled_case(kind, seed, empty=9))


@pytest.mark.full
@pytest.mark.parametrize("kind", LARGE, ids=lambda k: k.name)
def test_agreement_of_shipped_instances(kind: RetrieveInstance) -> None:
    assert satisfied(sampled_case(kind, 1, empty=9))


@pytest.mark.full
def test_constraints_are_the_documented_ones() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "circuits.md").read_text()
    rows = re.findall(
        r"^\| `(Exact|Sampled|SampledNoise)`.* \| ([\d,]+) \| ([\d,]+) \| 2", page, re.MULTILINE
    )
    said = {
        (name, n): int(text.replace(",", ""))
        for name, *both in rows
        for n, text in zip((64, 256), both, strict=True)
    }
    assert len(said) == len(LARGE)
    for kind in LARGE:
        name = "SampledNoise" if kind.gains else "Sampled" if kind.sampled else "Exact"
        assert compile_circuit(kind).constraints == said[name, kind.capacity]


def test_field_elements_at_the_edge() -> None:
    top = MODULUS - 1
    for kind in KINDS:
        names = ("s0", "s1", "beacon", "slot", "index_salt", "salt_c", "salt_k", "ctx", "kept_salt")
        case = replace(sampled_case(kind, 10), **dict.fromkeys(names, top)).solved()
        assert isinstance(case, SampledCase)
        assert satisfied(case)


@pytest.mark.parametrize(
    "change",
    [{"capacity": 12}, {"top_k": 1}, {"top_k": 9}, {"gains": (2,)}, {"lo": 160}, {"lattice": 48}],
)
def test_parameters_that_no_circuit_fits(change: dict[str, Any]) -> None:
    with pytest.raises(PolicyError):
        replace(NOISY, **change)


def test_private_inputs_that_do_not_fit() -> None:
    record = sampled_case(SAMPLED, 11).record()
    for field, change in (
        ("sample", {"sample": None}),
        ("sample", {"sample": (bytes(7), 1)}),
        ("seed", {"s0": 1, "s1": 2}),
    ):
        with pytest.raises(WitnessError) as caught:
            replace(record, **change).private()
        assert caught.value.field == field
    with pytest.raises(WitnessError) as caught:
        replace(sampled_case(NOISY, 11).record(), s1=None).private()
    assert caught.value.field == "seed"


def test_misfit_names_what_does_not_fit() -> None:
    case = sampled_case(NOISY, 12)
    record = case.record()
    assert record.misfit() is None
    assert sampled_case(EXACT, 12).record().misfit() is None
    kept, salt = record.sample or (b"", 0)
    assert replace(record, sample=(kept, salt + 1)).misfit() == ".c_kept"
    assert replace(record, s0=1).misfit() == ".c_seed"
    others = [not bit for bit in case.kept]
    flipped = replace(case, kept=others)
    assert replace(flipped, positions=case.positions).record().misfit() == ".positions"


# -- several records in one proof ----------------------------------------------------------------------------

PAIR = replace(SAMPLED, queries=2)


@pytest.fixture(scope="module")
def pair() -> list[SampledCase]:
    return shared_sampled(SAMPLED, 31, 2)


def test_several_records_share_the_sample(pair: list[SampledCase]) -> None:
    job = RecordsJob(PAIR, tuple(case.record() for case in pair))
    key = VerificationKey.parse(proving_key(PAIR).vk, field="vk")
    assert isinstance(job.statement, ManySampledStatement)
    names, _ = public_inputs(job.statement)
    assert key.inputs == len(names) == 3 + 5 * 2 and names[-1] == "c_kept"
    proof = parse_records_proof(job.run(), PAIR.digest(), 2, field="proof")
    records = [case.record().statement for case in pair]
    assert reasons(key, proof, records, instance=PAIR) == {}
    assert set(reasons(key, proof, records[:1], instance=PAIR)) == {0}
    for name in ("slot", "beacon", "ctx"):
        changed = [records[0], replace(records[1], **{name: getattr(records[1], name) ^ 1})]
        assert isinstance(reasons(key, proof, changed, instance=PAIR)[1], InvalidProof)
    other = [replace(record, c_kept=1) for record in records]  # type: ignore[call-arg]
    assert set(reasons(key, proof, other, instance=PAIR)) == {0, 1}


def test_records_of_several_samples_cannot_share_a_proof(pair: list[SampledCase]) -> None:
    first, second = (case.record().statement for case in pair)
    other = replace(second, c_kept=5)  # type: ignore[call-arg]
    plain = sampled_case(EXACT, 31).record().statement
    for records in ([first, other], [first, replace(plain, c_seed=first.c_seed, c_idx=first.c_idx)]):
        with pytest.raises(SchemaError) as caught:
            ManyStatement.of(records, 2)
        assert caught.value.field == "records[1].c_kept"
    jobs = [case.record() for case in pair]
    kept, salt = jobs[1].sample or (b"", 0)
    apart = replace(jobs[1], sample=(kept, salt + 1))
    with pytest.raises(WitnessError) as caught_job:
        RecordsJob(PAIR, (jobs[0], apart)).inputs()
    assert caught_job.value.field == "records[1].sample"


# -- the proof system ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Pin:
    vk: str
    setup: Literal["unsafe", "ceremony"] = "unsafe"


@dataclass(frozen=True)
class Pinned:
    """A verifier's pins of these keys."""

    keys: dict[str, str]
    scan: str | None = None

    def key(self, circuit: str) -> Pin | None:
        return Pin(self.keys[circuit]) if circuit in self.keys else None

    def artefact(self, name: str) -> str | None:
        return None


CONSTANTS = Constants(64, 16, 5, (1,), 20, 160, 64, 24, None, columns=("sample",))
KEEP = 3 << 38


@pytest.fixture(scope="module")
def case() -> SampledCase:
    """A record of a tenant whose sample is the seed's coins."""
    result = sampled_case(N64, 40)
    kappa = commitments.noise_key(result.s0, result.s1, 77, 78)
    kept = bernoulli_bits(kappa, 64, KEEP)
    solved = replace(result, kept=kept).solved()
    assert isinstance(solved, SampledCase) and 0 < sum(kept) < 64
    return solved


def tenant(case: SampledCase, kept: ColumnCommitment | None = None) -> TenantPublic:
    columns = {} if kept is None else {"sample": kept}
    return TenantPublic("law", "00" * 32, to_hex(case.public()["c_idx"]), CONSTANTS, {}, columns=columns)


@pytest.fixture(scope="module")
def sample_public(case: SampledCase) -> ColumnPublic:
    return ColumnPublic(tenant(case), case.public()["c_seed"], 77, 78, "sample", KEEP)


@pytest.fixture(scope="module")
def column(case: SampledCase, sample_public: ColumnPublic) -> tuple[CommittedColumn, dict[str, str]]:
    job = COLUMN.prove(sample_public, ColumnPrivate(case.s0, case.s1, b"s" * 32))
    keys = job.keys
    return pickle.loads(pickle.dumps(job)).run(), keys


@pytest.fixture(scope="module")
def published(case: SampledCase) -> dict[str, Json]:
    return COLUMN.published_keys(tenant(case)) | SYSTEM.records("retrieve", tenant(case)).published_keys()


def test_circuits_follow_from_the_constants() -> None:
    assert SYSTEM.circuits(CONSTANTS) == {"retrieve": N64.digest(), "sample": SampleInstance(64).digest()}
    plain = replace(CONSTANTS, columns=(), gains=())
    assert SYSTEM.circuits(plain) == {"retrieve": replace(N64, sampled=False, gains=()).digest()}
    silent = replace(CONSTANTS, gains=())
    assert SYSTEM.circuits(silent)["retrieve"] == replace(N64, gains=()).digest()


def test_a_window_s_sample_is_proved_and_opened(
    column: tuple[CommittedColumn, dict[str, str]],
    sample_public: ColumnPublic,
    published: dict[str, Json],
    case: SampledCase,
) -> None:
    result, keys = column
    digest = result.commitment.digest
    salt = int.from_bytes(result.opening, "big")
    assert digest == to_hex(commitments.sample_commitment(salt, case.kept))
    assert repr(result.opening) not in repr(result)
    pins = Pinned(keys)
    opened = COLUMN.open(sample_public, digest, FileProof(result.proof, "proof"), published, pins)
    assert (opened.commitment, opened.setup) == (ColumnCommitment(digest), "unsafe")
    refused = [
        (sample_public, to_hex(5)),
        (replace(sample_public, bound=KEEP + 1), digest),
        (replace(sample_public, slot=79), digest),
        (replace(sample_public, beacon=78), digest),
        (replace(sample_public, c_seed=1), digest),
        (replace(sample_public, tenant=replace(sample_public.tenant, tenant="medicine")), digest),
        (replace(sample_public, tenant=replace(sample_public.tenant, header="11" * 32)), digest),
    ]
    for public, named in refused:
        with pytest.raises(InvalidProof):
            COLUMN.open(public, named, FileProof(result.proof, "proof"), published, pins)
    with pytest.raises(SchemaError):
        COLUMN.open(sample_public, digest, FileProof(None, "proof"), published, pins)
    with pytest.raises(SetupError):
        COLUMN.open(sample_public, digest, FileProof(result.proof, "proof"), published, Pinned({}))
    other = {circuit: digest_hex("another key") for circuit in keys}
    with pytest.raises(InvalidProof):
        COLUMN.open(sample_public, digest, FileProof(result.proof, "proof"), published, Pinned(other))


def test_a_record_of_the_sample_is_proved(
    column: tuple[CommittedColumn, dict[str, str]], published: dict[str, Json], case: SampledCase
) -> None:
    result, _ = column
    case = replace(case, kept_salt=int.from_bytes(result.opening, "big"))
    public = case.public()
    record = RecordPublic(
        tenant(case, result.commitment),
        public["c_seed"],
        case.beacon,
        case.slot,
        case.ctx,
        1,
        public["cq"],
        public["htopk"],
    )
    own = case.record()
    private = RecordPrivate(
        case.s0, case.s1, case.index_salt, lambda: own.rows, bytes, bytes, lambda: None, (), own.vector, 0,
        case.salt_c, case.salt_k, case.positions, sample=(bytes(map(int, case.kept)), result.opening)
    )  # fmt: skip
    steps = SYSTEM.steps("retrieve", record.tenant)
    statement = steps.statement(record)
    assert isinstance(statement, SampledStatement) and statement == own.statement
    job = steps.job({"record": (record, private)})
    assert repr(result.opening) not in repr(job) and str(case.kept_salt) not in repr(job)
    keys = job.keys
    [proof] = steps.parse_proof(job.run(), field="proof").parts or (b"",)
    key = steps.open_key(published, Pinned(keys)).key
    assert failures(key, [proof], [statement]) == {}
    for name in vars(statement):
        changed = replace(statement, **{name: getattr(statement, name) ^ 1})
        assert isinstance(failures(key, [proof], [changed])[0], InvalidProof), name
    with pytest.raises(WitnessError):
        steps.job({"record": (record, replace(private, sample=None))})
    with pytest.raises(SchemaError):
        steps.statement(replace(record, tenant=tenant(case)))


def test_a_proof_without_noise_is_about_one_seed_and_slot() -> None:
    """Nothing in it depends on seed, beacon or slot, and still none of them can be another."""
    case = sampled_case(EXACT, 50)
    key = VerificationKey.parse(proving_key(EXACT).vk, field="vk")
    job, stated = case.job(), case.record().statement
    assert not {"s0", "s1"} & set(job.inputs())
    proof = part(parse_records_proof(job.run(), EXACT.digest(), 1, field="proof"))
    assert verify(key, proof, stated)
    for name in vars(stated):
        changed = replace(stated, **{name: getattr(stated, name) ^ 1})
        assert isinstance(failures(key, [proof], [changed])[0], InvalidProof), name
