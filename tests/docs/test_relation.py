"""Formulas that docs/relation.md, docs/protocol.md and docs/circuits.md state, against the code."""

from __future__ import annotations

import hashlib
import json
from fractions import Fraction
from pathlib import Path

from rag_audit.estimate.statement import coalition_statement
from rag_audit.log.checkpoint import Checkpoint
from rag_audit.models.records import CoalitionEstimate, QueryRecord
from rag_audit.proofs.backends.groth16.coalition import Places
from rag_audit.proofs.backends.scan import key as scan
from rag_audit.proofs.statements.coalition import CoalitionStatement
from rag_audit.relation.noise import BINS, alias_table, magnitude_masses
from rag_audit.relation.poseidon import hash_elements, hash_list
from rag_audit.relation.tags import TAG_NOISE, TAG_VECTOR
from rag_audit.relation.vectors import pack_nibbles

VECTORS = Path(__file__).resolve().parents[2] / "vectors" / "v1"


def record(seq: int, account: str, tenant: str) -> QueryRecord:
    return QueryRecord(type="query", v=1, window="w", seq=seq, account=account, tenant=tenant, i=1, ts=seq, hq="0" * 64,
                       cq="0" * 64, htopk="0" * 64, hans="0" * 64, listed_rows=None, sig="0" * 128, proof=None)  # fmt: skip


def test_c_idx_of_a_scan_tenant() -> None:
    points = scan.commit_index(bytes(8 * 16), 16, 8, bytes(range(32)))
    head = (8).to_bytes(8, "big") + (16).to_bytes(8, "big")
    assert scan.index_digest(points, 16, 8) == hashlib.sha256(head + points).digest()


def test_probabilities_of_magnitudes() -> None:
    table = alias_table()
    parts = [Fraction(0)] * BINS
    for j in range(BINS):
        parts[j] += Fraction(table.thresholds[j], 1 << 39)
        parts[table.aliases[j]] += Fraction((1 << 32) - table.thresholds[j], 1 << 39)
    masses = magnitude_masses()
    # A draw of magnitude 0 is 0 under either sign: P(0) is all of its parts, P(j) and P(-j) have half of theirs.
    assert parts == [Fraction(m, 1 << 39) for m in masses] and sum(parts) == 1


def test_the_vectors_beacon_is_a_field_element_already() -> None:
    for case in json.loads((VECTORS / "commitments.json").read_text())["noise_key"]:
        s0, s1, beacon, slot, kappa = (int(case[k], 16) for k in ("s0", "s1", "beacon", "slot", "result"))
        assert beacon < 1 << 248 and kappa == hash_elements(TAG_NOISE, s0, s1, beacon, slot)


def test_accounts_and_tenants_of_a_coalition_statement_are_sorted_by_id() -> None:
    requested = [("zoe", "t-b"), ("adam", "t-c"), ("mia", "t-a"), ("adam", "t-c")]
    records = [record(seq, *who) for seq, who in enumerate(requested, 2)]
    declared = CoalitionEstimate(
        c=1, c_tenant=1, theta=[4, 5], tau=0, tau_unit="positions", coalition_proof=None
    )
    result = coalition_statement(
        records,
        declared,
        header_digest="0" * 64,
        head=Checkpoint("o", 6, bytes(32)),
        dimension=16,
        capacity=4,
    )
    assert result.account == (2, 0, 1, 0)
    assert result.tenant == (2, 0, 1)  # of adam, mia and zoe


def test_unused_places_of_a_certificate_hold_the_zero_vector_under_salt_0() -> None:
    statement = CoalitionStatement(ctx=1, cq=(5, 6), account=(1, 0), tenant=(0, 0), first=(0, 0), theta=(4, 5), c=1,
                                   c_tenant=1, dimension=16, capacity=4)  # fmt: skip
    empty = hash_list(TAG_VECTOR, [0, *pack_nibbles([0] * 16)])
    assert Places.of(statement).cq() == [6, 5, empty, empty]
