"""Records of tenants with pooled listing by both verifiers (docs/scan/pooled-listing.md)."""

from __future__ import annotations

import base64
import pickle
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from rag_audit.errors import (
    EncodingError,
    InvalidProof,
    PolicyError,
    RagAuditError,
    SchemaError,
    WitnessError,
)
from rag_audit.mechanisms.base import SAMPLE
from rag_audit.models.constants import Constants
from rag_audit.proofs.backends.groth16.system import SYSTEM as GROTH16
from rag_audit.proofs.backends.scan import memory
from rag_audit.proofs.backends.scan.key import (
    POOLED_LISTING_PROTOCOL,
    PROTOCOL,
    commit_index,
    index_digest,
    points_json,
)
from rag_audit.proofs.backends.scan.listed import listed_digest, no_rows
from rag_audit.proofs.backends.scan.system import SYSTEM
from rag_audit.proofs.interface import FileProof
from rag_audit.proofs.statements.private import PooledListingPrivate, RecordPrivate
from rag_audit.proofs.statements.retrieve import ListedRows, RecordPublic
from rag_audit.proofs.statements.tenant import ColumnCommitment, TableCommitment, TenantPublic
from rag_audit.relation.commitments import noise_key, topk_commitment, vector_commitment
from rag_audit.relation.draws import bernoulli_bits
from rag_audit.relation.scores import ScoreWindow
from rag_audit.retrieval.serving.pooled_listing import PooledRules, answer_in_order
from tests.scan.test_document_table import PINS, S0, S1, SMALL, Window, chain, opened, rows_of

DIMENSION, PLACES, THRESHOLD, CHANCE, KEY = 16, 4, 40, 60 << 30, 5
WINDOW = ScoreWindow(0, 128, 64)
ENGINES = ("native", "reference")
RECORDS = 4


@dataclass(frozen=True)
class Provider:
    """A tenant's records in the order of the ledger, and what its provider knows of them."""

    tenant: TenantPublic
    public: Sequence[RecordPublic]
    private: Sequence[RecordPrivate]
    sets: Sequence[bytes]

    def prove(self, k: int) -> dict[str, Any]:
        return prove(self.public[k], self.private[k])


def secret(k: int) -> bytes:
    return bytes([k + 1]) * 32


def constants(**changes: Any) -> Constants:
    base = Constants(
        SMALL.capacity, DIMENSION, PLACES, (), WINDOW.lo, WINDOW.hi, WINDOW.lattice, 32, None, (SAMPLE,), CHANCE,
        THRESHOLD, True, True, SMALL.rows, SMALL.positions,
    )  # fmt: skip
    return replace(base, **changes)


@cache
def index() -> tuple[Any, bytes]:
    rows = np.random.default_rng(7).integers(-3, 4, (SMALL.capacity, DIMENSION), dtype=np.int8)
    return rows, commit_index(rows.tobytes(), DIMENSION, SMALL.capacity, KEY.to_bytes(32, "big"))


def tenant_of(at: Window) -> TenantPublic:
    accepted = opened(at.public, at.result)
    points = index()[1]
    digest = index_digest(points, DIMENSION, SMALL.capacity).hex()
    public = at.public.tenant
    return TenantPublic(
        public.tenant, public.header, digest, constants(), {}, points, columns={SAMPLE: accepted.commitment}
    )


def listed_at_first() -> bytes:
    """The rows that are listed when the third window of the chain begins."""
    _, second, third = chain(SMALL, pooled=True)
    return second.listed_at_first(third.table)


@cache
def provider() -> Provider:
    """Four records of the third window of a chain, of which chance and relevance list rows."""
    at = chain(SMALL, pooled=True)[2]
    tenant, (rows, _), first = tenant_of(at), index(), listed_at_first()
    rules = PooledRules(THRESHOLD, PLACES, WINDOW)
    kept = np.array([bool(row.sampled) for row in at.table.rows], np.int8)
    rng = np.random.default_rng(11)
    vectors = [rng.integers(-3, 4, DIMENSION, dtype=np.int8) for _ in range(RECORDS)]
    scores = [(rows.astype(np.int32) @ vector.astype(np.int32)).astype(np.int32) for vector in vectors]
    keys = [noise_key(S0, S1, 31, 500 + k) for k in range(RECORDS)]
    chances = [np.array(bernoulli_bits(key, SMALL.rows, CHANCE), np.int8) for key in keys]
    answers = list(
        answer_in_order(
            zip(scores, chances, strict=True),
            rows_of(at.private.table),
            rules,
            listed=np.frombuffer(first, np.int8),
            kept=kept,
        )
    )
    sets = [first, *(one.listed.tobytes() for one in answers)]
    digests = [None, *(SYSTEM.commit_listed(tenant.constants, s, secret(k)) for k, s in enumerate(sets[1:]))]
    public, private = [], []
    for k, one in enumerate(answers):
        positions = [SMALL.capacity if p is None else p for p in one.places]
        after = digests[k + 1]
        assert after is not None
        public.append(
            RecordPublic(
                tenant, at.public.c_seed, 31, 500 + k, 900 + k, 0,
                vector_commitment(70 + k, vectors[k].tolist()), topk_commitment(80 + k, positions),
                listed_rows=ListedRows(digests[k], after),
            )
        )  # fmt: skip
        private.append(
            RecordPrivate(
                S0, S1, KEY, bytes, bytes, scores[k].tobytes, lambda: None, (), vectors[k].tobytes(), 0,
                70 + k, 80 + k, positions,
                pooled_listing=PooledListingPrivate(
                    at.private.table.key, at.private.table.row_of_position, kept.tobytes(),
                    at.result.carried_opening, sets[k], secret(k - 1) if k else None, secret(k),
                ),
            )
        )  # fmt: skip
    return Provider(tenant, public, private, sets)


def prove(public: RecordPublic, private: RecordPrivate) -> dict[str, Any]:
    proofs = SYSTEM.records("retrieve", public.tenant)
    job = proofs.prove({"record": public}, [private])
    return pickle.loads(pickle.dumps(job)).run()  # type: ignore[no-any-return]


@cache
def proved() -> list[dict[str, Any]]:
    """The proofs, which their provider makes from the last record to the first."""
    return [provider().prove(k) for k in reversed(range(RECORDS))][::-1]


def refusals(
    proofs: Mapping[int, Any], public: Sequence[RecordPublic] | None = None, engine: str = "native"
) -> dict[int, RagAuditError]:
    """The records with refused proofs. The verifier's statements chain the records of the ledger."""
    known = provider().public if public is None else public
    tenant = known[0].tenant
    keys = {tenant.c_idx: points_json(index()[1])}
    verifier = SYSTEM.records("retrieve", replace(tenant, points=b"")).open(keys, PINS, engine=engine)
    parts = [FileProof(value, f"proofs.{k}") for k, value in proofs.items()]
    bad = verifier.verify([known[k] for k in proofs], parts, known)
    return {list(proofs)[number]: reason for number, reason in bad.items()}


def reason(
    proofs: Mapping[int, Any], public: Sequence[RecordPublic] | None = None, engine: str = "native"
) -> Any:
    """The reason why the one record with a false proof is refused."""
    ((_, error),) = refusals(proofs, public, engine).items()
    assert isinstance(error, InvalidProof), error
    return error


def with_record(k: int, **changes: Any) -> list[RecordPublic]:
    public = list(provider().public)
    public[k] = replace(public[k], **changes)
    return public


def with_part(proof: dict[str, Any], **parts: Any) -> dict[str, Any]:
    return {**proof, **parts}


@pytest.mark.parametrize("engine", ENGINES)
def test_records_of_a_tenant_are_proved_in_any_order(engine: str) -> None:
    sets = provider().sets
    assert sets[0] != sets[1] and len(set(sets)) >= 3, "records list rows"
    assert any(sets[0]), "the window begins with listed rows"
    assert any(SMALL.capacity in p.positions for p in provider().private), "an answer has an empty place"
    assert refusals(dict(enumerate(proved())), engine=engine) == {}


def test_commitments_hide_the_sets() -> None:
    """The same set under another record's secret has another commitment, and so has no listed row."""
    own, listed = constants(), provider().sets[1]
    commitments = {SYSTEM.commit_listed(own, s, secret(k)) for s in (listed, bytes(16)) for k in (0, 1)}
    assert len(commitments | {listed_digest(64, 16, no_rows(64, 16))}) == 5
    assert SYSTEM.commit_listed(own, listed, secret(0)) == provider().public[0].listed_rows.after  # type: ignore[union-attr]
    for wrong in (listed[:-1], b"\x02" + listed[1:], b""):
        with pytest.raises(EncodingError):
            SYSTEM.commit_listed(own, wrong, secret(0))


# Malicious providers.


def starting_from(k: int, before: int | None) -> dict[str, Any]:
    """A valid proof of record k from another set than that of the record before it: of the record `before`, or of the
    window's beginning."""
    at = provider()
    own, public = at.private[k].pooled_listing, at.public[k]
    assert own is not None and public.listed_rows is not None
    listed = at.sets[0 if before is None else before + 1]
    digest = None if before is None else SYSTEM.commit_listed(constants(), listed, secret(before))
    follows = bytes(a | b for a, b in zip(listed, _new(k), strict=True))
    after = SYSTEM.commit_listed(constants(), follows, secret(k))
    false = replace(public, listed_rows=ListedRows(digest, after))
    positions = _answer(k, follows)
    false = replace(false, htopk=topk_commitment(80 + k, positions))
    pooled = replace(own, listed=listed, before=None if before is None else secret(before))
    private = replace(at.private[k], pooled_listing=pooled, positions=positions)
    proof = prove(false, private)
    # The proof is valid for the ledger that it is about.
    public_of_it = [*at.public[:k], false, *at.public[k + 1 :]]
    assert refusals({k: proof}, public_of_it) == {}
    return {"proof": proof, "public": false}


def _new(k: int) -> bytes:
    """The rows that record k lists by itself."""
    return _fold(k, bytes(SMALL.rows))[0]


def _answer(k: int, listed: bytes) -> list[int]:
    return _fold(k, listed)[1]


def _fold(k: int, listed: bytes) -> tuple[bytes, list[int]]:
    at, window = provider(), chain(SMALL, pooled=True)[2]
    own = at.private[k].pooled_listing
    assert own is not None
    chance = np.array(bernoulli_bits(noise_key(S0, S1, 31, 500 + k), SMALL.rows, CHANCE), np.int8)
    scores = np.frombuffer(at.private[k].scores(), np.int32)
    (result,) = answer_in_order(
        [(scores, chance)],
        rows_of(window.private.table),
        PooledRules(THRESHOLD, PLACES, WINDOW),
        listed=np.frombuffer(listed, np.int8),
        kept=np.frombuffer(own.kept, np.int8),
    )
    return result.listed.tobytes(), [SMALL.capacity if p is None else p for p in result.places]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("k", "before"), [(3, 1), (3, None), (1, None), (3, 0)])
def test_a_skipped_record_a_forked_and_a_cleared_set_are_refused(
    k: int, before: int | None, engine: str
) -> None:
    """The provider publishes the record that follows from the false set, with its valid proof. The verifier takes the
    set before from the ledger."""
    false = starting_from(k, before)
    public = list(provider().public)
    rows = public[k].listed_rows
    assert rows is not None
    claimed = replace(false["public"], listed_rows=replace(false["public"].listed_rows, before=rows.before))
    public[k] = claimed
    # The proof names its record by the other public values, which are equal.
    assert reason({k: false["proof"]}, public, engine).field == "before"
    # The provider puts the true commitment into the file, and keeps the proof.
    moved = with_part(false["proof"], before=proved()[k]["before"])
    assert reason({k: moved}, public, engine).field == "proof"


@pytest.mark.parametrize("engine", ENGINES)
def test_a_window_that_begins_without_the_carried_rows_is_refused(engine: str) -> None:
    """The provider proves its first record from the empty set, as in the first window of a chain, and from the set that
    the window before began with."""
    at, second = provider(), chain(SMALL, pooled=True)[1]
    own, sample = at.private[0].pooled_listing, at.tenant.columns[SAMPLE]
    assert own is not None and isinstance(sample, TableCommitment)
    size = len(own.carried_opening) // 3
    of_second = second.result.commitment
    assert isinstance(of_second, TableCommitment) and second.ended is not None
    for listed, opening, digest in (
        (bytes(16), (1).to_bytes(32, "big"), listed_digest(64, 16, no_rows(64, 16))),
        (second.ended.bits, second.ended.opening, of_second.listed),
    ):
        follows, positions = _fold(0, listed)
        after = SYSTEM.commit_listed(constants(), follows, secret(0))
        tenant = replace(at.tenant, columns={SAMPLE: replace(sample, listed=digest)})
        false = replace(
            at.public[0],
            tenant=tenant,
            htopk=topk_commitment(80, positions),
            listed_rows=ListedRows(None, after),
        )
        private = replace(own, listed=listed, carried_opening=own.carried_opening[: 2 * size] + opening)
        proof = prove(false, replace(at.private[0], pooled_listing=private, positions=positions))
        assert refusals({0: proof}, [false, *at.public[1:]]) == {}
        claimed = replace(false, tenant=at.tenant)
        assert reason({0: proof}, [claimed, *at.public[1:]], engine).field == "before"
        moved = with_part(proof, before=proved()[0]["before"])
        assert reason({0: moved}, [claimed, *at.public[1:]], engine).field == "proof"


@pytest.mark.parametrize("engine", ENGINES)
def test_another_set_after_the_record_is_refused(engine: str) -> None:
    at, proof = provider(), proved()[2]
    rows = at.public[2].listed_rows
    assert rows is not None
    # The ledger has the commitment to another set: of no row, of every row, and the true set under another secret.
    for listed, of in ((bytes(16), secret(2)), (b"\x01" * 16, secret(2)), (at.sets[3], secret(9))):
        digest = SYSTEM.commit_listed(constants(), listed, of)
        public = with_record(2, listed_rows=replace(rows, after=digest))
        assert reason({2: proof}, public, engine).field == "after"
        with pytest.raises(WitnessError) as caught:
            prove(public[2], at.private[2])
        assert caught.value.field == "after"
    # The file has the points of that commitment, too.
    other = proved()[1]["after"]
    rows_of_other = at.public[1].listed_rows
    assert rows_of_other is not None
    public = with_record(2, listed_rows=replace(rows, after=rows_of_other.after))
    assert reason({2: with_part(proof, after=other)}, public, engine).field == "proof"


@pytest.mark.parametrize("engine", ENGINES)
def test_a_text_at_score_0_is_refused(engine: str) -> None:
    """htopk has a position in the place that the answer leaves empty."""
    at = provider()
    k = next(k for k, one in enumerate(at.private) if SMALL.capacity in one.positions)
    positions = list(at.private[k].positions)
    position = next(p for p in range(SMALL.capacity) if p not in positions)
    positions[positions.index(SMALL.capacity)] = position
    public = with_record(k, htopk=topk_commitment(80 + k, positions))
    with pytest.raises(WitnessError, match="the list is not the first positions"):
        prove(public[k], replace(at.private[k], positions=positions))
    false = with_part(proved()[k], records=[record_digest(public[k])])
    assert reason({k: false}, public, engine).field == "proof"


def record_digest(public: RecordPublic) -> str:
    steps: Any = SYSTEM.records("retrieve", public.tenant)
    digest: bytes = steps.steps.digest(steps.steps.statement(public))
    return digest.hex()


CONSTANTS: dict[str, dict[str, Any]] = {
    "chance above the bound": {"flip_probability": CHANCE * 4},
    "a lower threshold": {"threshold": THRESHOLD - 20},
    "another score window": {"hi": WINDOW.hi * 2},
    "more positions of a row": {"positions_per_document": SMALL.positions + 1},
}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", CONSTANTS)
def test_a_proof_under_other_constants_is_refused(name: str, engine: str) -> None:
    """The provider proves under constants that favour it. The verifier takes them from the policy."""
    at = provider()
    other = replace(at.tenant, constants=constants(**CONSTANTS[name]))
    listed, positions = _under(other.constants)
    after = SYSTEM.commit_listed(other.constants, listed, secret(0))
    public = replace(
        at.public[0],
        tenant=other,
        htopk=topk_commitment(80, positions),
        listed_rows=ListedRows(None, after),
    )
    proof = prove(public, replace(at.private[0], positions=positions))
    assert refusals({0: proof}, [public], engine=engine) == {}
    honest = [replace(public, tenant=at.tenant), *at.public[1:]]
    assert reason({0: proof}, honest, engine).field == "proof"


def _under(own: Constants) -> tuple[bytes, list[int]]:
    """The set and the answer of the first record under these constants."""
    private = provider().private[0]
    assert private.pooled_listing is not None and own.flip_probability and own.threshold
    chance = np.array(bernoulli_bits(noise_key(S0, S1, 31, 500), SMALL.rows, own.flip_probability), np.int8)
    (result,) = answer_in_order(
        [(np.frombuffer(private.scores(), np.int32), chance)],
        rows_of(chain(SMALL, pooled=True)[2].private.table),
        PooledRules(own.threshold, PLACES, ScoreWindow(own.lo, own.hi, own.lattice)),
        listed=np.frombuffer(listed_at_first(), np.int8),
        kept=np.frombuffer(private.pooled_listing.kept, np.int8),
    )
    return result.listed.tobytes(), [SMALL.capacity if p is None else p for p in result.places]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_proof_is_of_one_window_table_and_record(engine: str) -> None:
    at, proof = provider(), proved()[0]
    sample = at.tenant.columns[SAMPLE]
    for change in (
        {"header": "44" * 32},
        {"tenant": "medicine"},
        {"columns": {SAMPLE: replace(sample, kept=sample.row[:32])}},  # type: ignore[call-arg]
        {"columns": {SAMPLE: replace(sample, row=sample.points[:32])}},  # type: ignore[call-arg]
        {"columns": {SAMPLE: replace(sample, carried="55" * 32)}},  # type: ignore[call-arg]
    ):
        tenant = replace(at.tenant, **change)  # type: ignore[arg-type]
        public = [replace(record, tenant=tenant) for record in at.public]
        assert reason({0: proof}, public, engine).field == "proof"
    for change in ({"ctx": 1}, {"slot": 1}, {"beacon": 1}, {"c_seed": 1}, {"cq": 1}):
        public = with_record(0, **change)
        renamed = with_part(proof, records=[record_digest(public[0])])
        assert reason({0: renamed}, public, engine).field == "proof"


def test_a_tenant_without_the_columns_of_its_table_is_named() -> None:
    at = provider()
    plain = replace(at.tenant, columns={SAMPLE: ColumnCommitment(at.tenant.columns[SAMPLE].digest)})
    with pytest.raises(SchemaError, match="document table are missing"):
        SYSTEM.records("retrieve", plain).prove({"r": replace(at.public[0], tenant=plain)}, [at.private[0]])
    with pytest.raises(SchemaError, match="listed rows"):
        SYSTEM.records("retrieve", at.tenant).prove(
            {"r": replace(at.public[0], listed_rows=None)}, [at.private[0]]
        )
    with pytest.raises(WitnessError, match="missing"):
        SYSTEM.records("retrieve", at.tenant).prove(
            {"r": at.public[0]}, [replace(at.private[0], pooled_listing=None)]
        )


PRIVATE: dict[str, tuple[dict[str, Any], str]] = {
    "table key": ({"table_key": bytes(32)}, "rows of the positions"),
    "rows": ({"row_of_position": np.full(64, 16, np.int32).tobytes()}, "rows of the positions"),
    "bits": ({"kept": bytes(16)}, "bits of the table"),
    "opening": ({"carried_opening": bytes(64)}, "bits of the table"),
}


@pytest.mark.parametrize("name", PRIVATE)
def test_false_private_inputs_have_no_proof(name: str) -> None:
    change, words = PRIVATE[name]
    private = provider().private[1]
    assert private.pooled_listing is not None
    with pytest.raises(WitnessError) as caught:
        prove(
            provider().public[1], replace(private, pooled_listing=replace(private.pooled_listing, **change))
        )
    assert words in str(caught.value.actual)


def test_a_provider_restores_the_columns_from_its_stored_commitments() -> None:
    at = chain(SMALL, pooled=True)[2]
    sample = opened(at.public, at.result).commitment
    stored = ColumnCommitment(sample.digest, sample.points)
    table = at.public.table
    assert SYSTEM.table_commitment(constants(), stored, table, at.result.carried) == sample
    assert at.result.commitment == sample
    with pytest.raises(WitnessError, match="do not have its digest"):
        SYSTEM.table_commitment(constants(), stored, table, ColumnCommitment(table.digest, b""))


def test_the_protocol_is_named_by_the_constants() -> None:
    names = SYSTEM.circuits(constants())
    assert names["retrieve"] == POOLED_LISTING_PROTOCOL
    assert POOLED_LISTING_PROTOCOL != PROTOCOL
    assert SYSTEM.batch("retrieve", constants(), 8) == 1


def test_groth16_refuses_pooled_listing() -> None:
    column = ColumnCommitment("00" * 32)
    for attempt in (
        lambda: GROTH16.check_constants(constants()),
        lambda: GROTH16.commit_listed(constants(), bytes(16), bytes(32)),
        lambda: GROTH16.open_listed(constants(), bytes(16), bytes(32)),
        lambda: GROTH16.table_commitment(constants(), column, column, column),
    ):
        with pytest.raises(PolicyError):
            attempt()


def test_no_representation_shows_a_secret() -> None:
    at = provider()
    own = at.private[1].pooled_listing
    assert own is not None
    job = SYSTEM.records("retrieve", at.tenant).prove({"r": at.public[1]}, [at.private[1]])
    shown = repr([at.private[1], job])
    for hidden in (own.table_key, own.row_of_position, own.kept, own.listed, own.before, own.after, S0, S1):
        assert repr(hidden) not in shown or hidden in (S0, S1)
    assert "s0" not in shown and "listed=b" not in shown


def test_a_machine_with_too_little_memory_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "available_bytes", lambda: 1 << 20)
    with pytest.raises(RagAuditError, match="needs"):
        provider().prove(0)


def test_sizes_depend_on_public_numbers_only() -> None:
    lengths = {
        tuple(len(base64.b64decode(proof[part])) for part in ("before", "after", "proof"))
        for proof in proved()
    }
    assert len(lengths) == 1
