"""Coin certificates, and query proofs of sampled tenants with and without noise, through the native core."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import numpy as np
import pytest

from rag_audit import _native
from rag_audit.proofs.backends.scan.key import commit_index
from rag_audit.relation.commitments import noise_key, seed_commitment, topk_commitment, vector_commitment
from rag_audit.relation.draws import bernoulli_bits
from rag_audit.relation.field import to_bytes
from tests.scan.test_vectors import FOLDER, data, element

N, DIMENSION, LISTED = 90, 8, 4
WINDOW, CONTEXT, KEY = bytes([4] * 32), bytes([5] * 32), bytes(32)
SCORES = (10, 90, 64)
BOUND = 1 << 39
SEED = to_bytes(1) + to_bytes(2)


def slot(number: int) -> bytes:
    return b"".join(map(to_bytes, (seed_commitment(1, 2), 3, number)))


def kappa(number: int) -> bytes:
    return to_bytes(noise_key(1, 2, 3, number))


@pytest.fixture(scope="module")
def certificate() -> tuple[bytes, bytes, bytes]:
    return _native.scan_bits_prove(N, CONTEXT, slot(7), SEED, BOUND, False)


def test_a_coin_certificate_is_about_the_relations_coins(certificate: tuple[bytes, bytes, bytes]) -> None:
    proof, rows, blindings = certificate
    assert len(rows) == len(blindings) == 32
    assert _native.scan_bits_verify(N, CONTEXT, slot(7), BOUND, proof) == rows
    low = _native.scan_bits_prove(N, CONTEXT, slot(7), SEED, BOUND, True)
    assert len(low[0]) == len(proof) and low[1] != rows, "blindings are fresh"
    for arguments in (
        (N + 1, CONTEXT, slot(7), BOUND),
        (N, WINDOW, slot(7), BOUND),
        (N, CONTEXT, slot(8), BOUND),
        (N, CONTEXT, slot(7), BOUND + 1),
    ):
        with pytest.raises(ValueError, match=r"equations do not hold|malformed"):
            _native.scan_bits_verify(*arguments, proof)


@pytest.mark.parametrize("bound", [0, 1 << 40, (1 << 64) - 1])
def test_a_bound_is_a_probability(bound: int) -> None:
    with pytest.raises(ValueError, match="bound"):
        _native.scan_bits_prove(N, CONTEXT, slot(7), SEED, bound, False)
    with pytest.raises(ValueError, match="bound"):
        _native.scan_bits_verify(N, CONTEXT, slot(7), bound, b"")


def test_the_published_coins_are_accepted() -> None:
    result = json.loads((FOLDER / "proofs.json").read_text("utf-8"))["coins"]
    elements = b"".join(bytes.fromhex(result[name]) for name in ("c_seed", "beacon", "slot"))
    _native.scan_bits_verify(
        result["capacity"], bytes.fromhex(result["context"]), elements, result["bound"], data(result["proof"])
    )
    s0, s1 = map(element, result["seed"])
    key = noise_key(s0, s1, element(result["beacon"]), element(result["slot"]))
    assert bernoulli_bits(key, result["capacity"], result["bound"]) == result["coins"]


class Record(NamedTuple):
    parameters: _native.ScanParameters
    elements: bytes
    certificate: bytes
    proof: bytes

    @property
    def proved(self) -> tuple[list[bytes], bytes, bytes]:
        return [self.elements], self.certificate, self.proof


class Tenant(NamedTuple):
    index: _native.ScanIndex
    rows: Any
    kept: tuple[bytes, bytes, bytes] | None
    gains: tuple[int, ...]

    def parameters(self) -> _native.ScanParameters:
        rows = self.kept[1] if self.kept else None
        return _native.ScanParameters(WINDOW, list(self.gains), LISTED, *SCORES, rows)

    def record(self, number: int) -> Record:
        """A record whose list is the relation's first of the kept."""
        parameters, vector = self.parameters(), np.roll(np.arange(-3, 5, dtype=np.int8), number)
        scores = self.rows.astype(np.int32) @ vector.astype(np.int32)
        bits = bernoulli_bits(noise_key(1, 2, 3, 7), N, BOUND) if self.kept else [True] * N
        certificate, noise = None, b""
        drawn = bytes(4 * N)
        if self.gains:
            certificate = _native.scan_prove_noise(self.index, parameters, [slot(number)], [SEED], False)
            noise = drawn = _native.draw_noise(kappa(number), N, list(self.gains))
        scored = (scores * np.array(bits, dtype=np.int32)).astype(np.int32)
        positions = _native.noised_top_k(scored.tobytes(), *SCORES, drawn, LISTED)
        cq, htopk = vector_commitment(5, vector.tolist()), topk_commitment(6, positions)
        elements = slot(number) + b"".join(map(to_bytes, (77, cq, htopk)))
        requested = (
            elements,
            noise,
            scores.tobytes(),
            (vector.tobytes(), to_bytes(5)),
            (np.array(positions, dtype=np.int32).tobytes(), to_bytes(6)),
        )
        proof = _native.scan_prove(
            self.index,
            parameters,
            [requested],
            certificate,
            KEY,
            False,
            (bytes(bits), self.kept[2]) if self.kept else None,
        )
        return Record(parameters, elements, certificate[0] if certificate else b"", proof)


@pytest.fixture(scope="module", params=["exact", "sampled", "both"])
def tenant(request: pytest.FixtureRequest, certificate: tuple[bytes, bytes, bytes]) -> Tenant:
    rows = np.random.default_rng(5).integers(-7, 8, (N, DIMENSION), dtype=np.int8)
    index = _native.ScanIndex(commit_index(rows.tobytes(), DIMENSION, N, KEY), DIMENSION, N)
    kept = None if request.param == "exact" else certificate
    return Tenant(index, rows, kept, (1, 8) if request.param == "both" else ())


def test_records_verify_alone_and_in_batches(tenant: Tenant) -> None:
    records = [tenant.record(number) for number in (1, 2)]
    parameters = records[0].parameters
    for record in records:
        _native.scan_verify(tenant.index, parameters, *record.proved)
    batch = _native.ScanBatch(tenant.index, parameters)
    items = [record.proved for record in records]
    assert batch.add(items) == [] and batch.holds() and batch.search(items) == []
    crossed = [items[0], (items[1][0], items[1][1], items[0][2])]
    assert [number for number, _ in batch.search(crossed)] == [1]


def test_a_certificate_is_there_exactly_if_there_is_noise(tenant: Tenant) -> None:
    record = tenant.record(1)
    other = b"" if tenant.gains else bytes(64)
    with pytest.raises(ValueError, match="malformed"):
        _native.scan_verify(tenant.index, record.parameters, [record.elements], other, record.proof)
    batch = _native.ScanBatch(tenant.index, record.parameters)
    assert [number for number, _ in batch.add([([record.elements], other, record.proof)])] == [0]


def test_a_proof_is_of_its_tenants_kept_positions(tenant: Tenant, certificate: Any) -> None:
    record = tenant.record(1)
    _, rows, _ = _native.scan_bits_prove(N, CONTEXT, slot(8), SEED, BOUND, False)
    others = [rows, None] if tenant.kept else [rows, certificate[1]]
    for kept in others:
        parameters = _native.ScanParameters(WINDOW, list(tenant.gains), LISTED, *SCORES, kept)
        with pytest.raises(ValueError, match=r"equations do not hold|malformed"):
            _native.scan_verify(tenant.index, parameters, *record.proved)
    for kept in (rows + rows, b""):
        parameters = _native.ScanParameters(WINDOW, list(tenant.gains), LISTED, *SCORES, kept)
        with pytest.raises(ValueError, match="kept"):
            _native.scan_verify(tenant.index, parameters, *record.proved)
    with pytest.raises(ValueError, match="malformed"):
        _native.ScanParameters(WINDOW, list(tenant.gains), LISTED, *SCORES, rows[1:])
