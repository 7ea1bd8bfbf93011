"""Proofs for the campaign of the native core that no vector holds as bytes: coins, pooled listing, several records in
one."""

from __future__ import annotations

import array
import base64
import hashlib
from collections.abc import Callable
from functools import cache
from typing import Any

from rag_audit import _native
from rag_audit.log.signing import SigningKey
from rag_audit.models.drand import DEFAULT_CHAIN, QUICKNET
from rag_audit.proofs.backends.scan.key import RECORD, ScanKey
from rag_audit.proofs.backends.scan.retrieve import retrieve_key, retrieve_statement
from rag_audit.relation.commitments import (
    noise_key,
    seed_commitment,
    topk_commitment,
    vector_commitment,
)
from rag_audit.relation.draws import draw
from rag_audit.relation.field import to_bytes
from rag_audit.relation.scores import ScoreWindow, dot
from rag_audit.relation.selection import top_k
from tests.scan import test_pooled_listing
from tests.witness.test_drand import DEFAULT_0, DEFAULT_1, QUICKNET_1000

CAPACITY, DIMENSION, LISTED = 12, 3, 2
S0, S1, BEACON = 11, 22, 33
KEEP = 7 << 37
KEY = bytes(range(32))
CONTEXT = bytes([7]) * 32
ROWS = [[(i * 7 + j * 3 + i * j) % 15 - 7 for j in range(DIMENSION)] for i in range(CAPACITY)]


def elements(*values: int) -> bytes:
    return b"".join(map(to_bytes, values))


def int8(values: list[int]) -> bytes:
    return array.array("b", values).tobytes()


def int32(values: list[int]) -> bytes:
    return array.array("i", values).tobytes()


@cache
def index() -> _native.ScanIndex:
    return _native.ScanIndex.commit(int8([v for row in ROWS for v in row]), DIMENSION, CAPACITY, KEY)


@cache
def coin(slot: int, bound: int) -> tuple[bytes, bytes, bytes, bytes]:
    """A slot's public elements, and the certificate of its coins with rows and blindings."""
    public = elements(seed_commitment(S0, S1), BEACON, slot)
    return public, *_native.scan_bits_prove(CAPACITY, CONTEXT, public, elements(S0, S1), bound, False)


@cache
def pooled() -> tuple[ScanKey, tuple[bytes, bytes, bytes, bytes]]:
    """The key of a tenant with pooled listing, and a record with its proof, as `ScanPooledBatch` takes them."""
    known, value = test_pooled_listing.provider(), test_pooled_listing.proved()[1]
    before, after, proof = (base64.b64decode(value[name]) for name in ("before", "after", "proof"))
    record = retrieve_statement(known.public[1]).encode(RECORD)
    return retrieve_key(known.tenant), (record, before, after, proof)


@cache
def batch() -> tuple[_native.ScanParameters, list[bytes], bytes, bytes]:
    """Two records, with one noise proof and one query proof for both."""
    window = ScoreWindow(1, 40, 32)
    parameters = _native.ScanParameters(CONTEXT, [1, 8], LISTED, window.lo, window.hi, window.lattice)
    parts: list[Any] = []
    for slot in (101, 102):
        vector = [slot % 7, -2, 5]
        scores = [dot(vector, row) for row in ROWS]
        noise = draw(noise_key(S0, S1, BEACON, slot), CAPACITY, (1, 8))
        positions = top_k([window.quantise(u) + z for u, z in zip(scores, noise, strict=True)], LISTED)
        committed = vector_commitment(7, vector), topk_commitment(8, positions)
        record = elements(seed_commitment(S0, S1), BEACON, slot, 5, *committed)
        salted = (int8(vector), elements(7)), (int32(positions), elements(8))
        parts.append((record, int32(noise), int32(scores), *salted))
    records = [part[0] for part in parts]
    slots, seeds = [record[:96] for record in records], [elements(S0, S1)] * 2
    certificate = _native.scan_prove_noise(index(), parameters, slots, seeds, False)
    proof = _native.scan_prove(index(), parameters, parts, certificate, KEY, False)
    return parameters, records, certificate[0], proof


@cache
def signatures() -> list[tuple[Callable[..., bool], tuple[bytes, bytes, bytes]]]:
    """Key, message and signature of published drand rounds, and of a note's key, with who checks them."""
    chained, own = (
        bytes.fromhex(DEFAULT_0) + (1).to_bytes(8, "big"),
        SigningKey("w.example", 4, bytes(range(32))),
    )
    quick = hashlib.sha256((1000).to_bytes(8, "big")).digest()
    return [
        (_native.bls_signed_in_g1, (QUICKNET.public_key, quick, bytes.fromhex(QUICKNET_1000))),
        (
            _native.bls_signed_in_g2,
            (DEFAULT_CHAIN.public_key, hashlib.sha256(chained).digest(), bytes.fromhex(DEFAULT_1)),
        ),
        (_native.ed25519_verifies, (own.verifier.public, b"message", own.sign(b"message"))),
    ]
