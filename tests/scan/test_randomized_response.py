"""Lists by randomised response against the reference relation: the records of an account, one after another."""

from __future__ import annotations

import array
import base64
import json
from dataclasses import dataclass, replace
from typing import Any

import pytest

from rag_audit import _native
from rag_audit.relation.commitments import list_commitment, noise_key, seed_commitment, vector_commitment
from rag_audit.relation.draws import bernoulli_bits
from rag_audit.relation.field import MODULUS, to_bytes
from rag_audit.relation.scores import dot
from rag_audit.relation.selection import first_winners, winners
from tests.scan.test_vectors import FOLDER

CAPACITY, DIMENSION, MOST, THRESHOLD = 300, 5, 9, 30
S0, S1, BEACON, SAMPLE_SLOT = 11, 22, 33, 44
KEEP, CHANCE = 7 << 37, 1 << 34
BLINDING_KEY = bytes(range(32))
WINDOW = bytes([7]) * 32
ROWS = [[(i * 7 + j * 3 + i * j) % 15 - 7 for j in range(DIMENSION)] for i in range(CAPACITY - 5)]
ROWS += [[0] * DIMENSION] * 5


def packed(values: list[bool]) -> bytes:
    return bytes(values)


def elements(*values: int) -> bytes:
    return b"".join(to_bytes(v) for v in values)


@pytest.fixture(scope="module")
def index() -> _native.ScanIndex:
    rows = array.array("b", [v for row in ROWS for v in row]).tobytes()
    return _native.ScanIndex.commit(rows, DIMENSION, CAPACITY, BLINDING_KEY)


def certified(slot: int, bound: int) -> tuple[list[bool], bytes, bytes]:
    """The coins of a slot with their commitments, which the certificate says are theirs, and the blindings."""
    public = elements(seed_commitment(S0, S1), BEACON, slot)
    proof, rows, blindings = _native.scan_bits_prove(CAPACITY, WINDOW, public, elements(S0, S1), bound, False)
    assert _native.scan_bits_verify(CAPACITY, WINDOW, public, bound, proof) == rows
    return bernoulli_bits(noise_key(S0, S1, BEACON, slot), CAPACITY, bound), rows, blindings


@dataclass(frozen=True)
class Record:
    elements: bytes
    flips: bytes
    held: bytes
    after: bytes
    proof: bytes
    listed: list[bool]

    @property
    def parts(self) -> tuple[bytes, bytes, bytes, bytes, bytes]:
        return self.elements, self.flips, self.held, self.after, self.proof


@dataclass(frozen=True)
class Chain:
    listing: _native.ScanRandomizedResponse
    records: list[Record]


@pytest.fixture(scope="module")
def chain(index: _native.ScanIndex) -> Chain:
    kept, sample_rows, kept_blindings = certified(SAMPLE_SLOT, KEEP)
    listing = _native.ScanRandomizedResponse(WINDOW, sample_rows, THRESHOLD, MOST)
    held, rows, blinding = [False] * CAPACITY, _native.scan_disclosed_empty(CAPACITY), elements(1)
    records = []
    for slot in (101, 102, 103):
        chance, flip_rows, flip_blindings = certified(slot, CHANCE)
        vector = [(slot // 2 + 3 * j) % 15 - 7 for j in range(DIMENSION)]
        scores = [dot(vector, row) for row in ROWS]
        listed = first_winners(winners([s >= THRESHOLD for s in scores], kept, held, chance), MOST)
        htopk = list_commitment(8, listed)
        public = elements(seed_commitment(S0, S1), BEACON, slot, 5, vector_commitment(7, vector), htopk)
        after = [a or b for a, b in zip(held, listed, strict=True)]
        next_blinding = elements(1000 + slot)
        proof, after_rows = _native.scan_list_prove(
            index,
            listing,
            public,
            (flip_rows, packed(chance), flip_blindings),
            (packed(kept), kept_blindings),
            (rows, packed(held), blinding),
            next_blinding,
            array.array("i", scores).tobytes(),
            (array.array("b", vector).tobytes(), elements(7)),
            elements(8),
            BLINDING_KEY,
            False,
        )
        assert after_rows == _native.scan_disclosed_rows(CAPACITY, packed(after), next_blinding)
        records.append(Record(public, flip_rows, rows, after_rows, proof, listed))
        held, rows, blinding = after, after_rows, next_blinding
    return Chain(listing, records)


def batch(index: _native.ScanIndex, chain: Chain, records: list[Record]) -> list[int]:
    """Which of the records are refused."""
    result = _native.ScanListBatch(index, chain.listing)
    malformed = result.add([r.parts for r in records])
    if result.holds():
        return [i for i, _ in malformed]
    return [i for i, _ in result.search([r.parts for r in records])]


def test_the_lists_of_the_reference_verify(index: _native.ScanIndex, chain: Chain) -> None:
    for record in chain.records:
        assert 0 < sum(record.listed) <= MOST
        _native.scan_list_verify(index, chain.listing, *record.parts)
    assert any(sum(record.listed) == MOST for record in chain.records)
    assert batch(index, chain, chain.records) == []


def test_a_chain_starts_with_nothing_held_and_has_no_gap(index: _native.ScanIndex, chain: Chain) -> None:
    first, second, third = chain.records
    assert first.held == _native.scan_disclosed_rows(CAPACITY, bytes(CAPACITY), elements(1))
    for forked in [replace(third, held=second.held), replace(second, held=first.held)]:
        with pytest.raises(ValueError, match="the proof is false"):
            _native.scan_list_verify(index, chain.listing, *forked.parts)
    assert batch(index, chain, [first, second, replace(third, held=first.after)]) == [2]


def test_another_statement_is_refused(index: _native.ScanIndex, chain: Chain) -> None:
    first, second, _ = chain.records
    for k in range(6):
        other = bytearray(first.elements)
        other[32 * k + 31] ^= 1
        with pytest.raises(ValueError, match="the proof is false"):
            _native.scan_list_verify(index, chain.listing, *replace(first, elements=bytes(other)).parts)
    for changed in [
        replace(first, flips=second.flips),
        replace(first, after=second.after),
    ]:
        with pytest.raises(ValueError, match="the proof is false"):
            _native.scan_list_verify(index, chain.listing, *changed.parts)
    _, sample_rows, _ = certified(SAMPLE_SLOT, KEEP)
    for other_listing in [
        _native.ScanRandomizedResponse(bytes(32), sample_rows, THRESHOLD, MOST),
        _native.ScanRandomizedResponse(WINDOW, first.flips, THRESHOLD, MOST),
        _native.ScanRandomizedResponse(WINDOW, sample_rows, THRESHOLD + 1, MOST),
        _native.ScanRandomizedResponse(WINDOW, sample_rows, THRESHOLD, MOST + 1),
    ]:
        with pytest.raises(ValueError, match="the proof is false"):
            _native.scan_list_verify(index, other_listing, *first.parts)


def test_malformed_parts_have_a_name(index: _native.ScanIndex, chain: Chain) -> None:
    first, second, _ = chain.records
    for changed, message in [
        (replace(first, elements=first.elements[:-32]), "record: expected 6 elements"),
        (replace(first, held=b""), "held before: expected 1 commitments, found 0"),
        (replace(first, after=first.after * 2), "held after: expected 1 commitments, found 2"),
        (replace(first, flips=bytes([255]) * 32), "malformed at byte 0"),
        (replace(first, proof=first.proof[:-1]), "malformed at byte"),
        (replace(first, proof=first.proof + bytes(32)), "malformed at byte"),
    ]:
        with pytest.raises(ValueError, match=message):
            _native.scan_list_verify(index, chain.listing, *changed.parts)
    false = replace(second, proof=first.proof)
    assert batch(index, chain, [replace(first, held=b""), false, first]) == [0, 1]
    for threshold, maximum, name in [(0, MOST, "threshold"), (THRESHOLD, CAPACITY + 1, "listed positions")]:
        listing = _native.ScanRandomizedResponse(WINDOW, first.flips, threshold, maximum)
        with pytest.raises(ValueError, match=f"{name}: expected 1 to"):
            _native.scan_list_verify(index, listing, *first.parts)


@pytest.mark.parametrize(
    ("values", "blindings"),
    [(bytes(299), elements(1)), (bytes(300), b""), (bytes(299) + b"\2", elements(1))],
)
def test_held_rows_are_of_bits(values: bytes, blindings: bytes) -> None:
    with pytest.raises(ValueError, match="bits: expected"):
        _native.scan_disclosed_rows(300, values, blindings)
    with pytest.raises(ValueError, match="blindings"):
        _native.scan_disclosed_rows(300, bytes(300), to_bytes(0)[:-1] + MODULUS.to_bytes(32, "big"))


def test_the_published_list_is_accepted() -> None:
    result: dict[str, Any] = json.loads((FOLDER / "proofs.json").read_text("utf-8"))["listing"]

    def data(text: str) -> bytes:
        return base64.b64decode(text, validate=True)

    index = _native.ScanIndex(data(result["index"]), result["dimension"], result["capacity"])
    assert index.digest().hex() == result["index_digest"]
    kept = data(result["kept"]["commitments"])
    listing = _native.ScanRandomizedResponse(
        bytes.fromhex(result["window"]), kept, result["threshold"], result["most"]
    )
    public = b"".join(
        bytes.fromhex(result[name]) for name in ("c_seed", "beacon", "slot", "context", "cq", "htopk")
    )
    rows = [
        data(result["chance"]["commitments"]),
        data(result["held"]["commitments"]),
        data(result["held_after"]),
    ]
    _native.scan_list_verify(index, listing, public, *rows, data(result["proof"]))

    rows_of = [
        result["rows"][i : i + result["dimension"]]
        for i in range(0, len(result["rows"]), result["dimension"])
    ]
    relevant = [dot(result["query"], row) >= result["threshold"] for row in rows_of]
    bits = [[bool(b) for b in result[name]["bits"]] for name in ("kept", "held", "chance")]
    listed = first_winners(winners(relevant, *bits), result["most"])
    assert list_commitment(int(result["list_salt"], 16), listed) == int(result["htopk"], 16)
    assert _native.scan_disclosed_empty(result["capacity"]) == rows[1]
