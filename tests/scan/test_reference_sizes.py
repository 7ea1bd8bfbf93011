"""The second verifier accepts what the prover makes where a size steps: one position, one component, one listed, packed
elements that are just full or just not, rows that are, draws that fill their blocks."""

from __future__ import annotations

import array
import base64
import hashlib
from collections.abc import Sequence

import pytest

from bench.proofs import job
from rag_audit.proofs.backends.reference import drawn, query
from rag_audit.proofs.backends.reference.drawn import Noise, Seed
from rag_audit.proofs.backends.reference.group import decode
from rag_audit.proofs.backends.reference.index import Index
from rag_audit.proofs.backends.reference.transcript import Reader, Transcript
from rag_audit.proofs.backends.scan.column import SlotProofJob
from rag_audit.proofs.backends.scan.key import ScanKey, commit_index
from rag_audit.proofs.backends.scan.retrieve import RecordInputs
from rag_audit.proofs.statements.retrieve import Statement
from rag_audit.relation.commitments import noise_key, seed_commitment, topk_commitment, vector_commitment
from rag_audit.relation.draws import draw
from rag_audit.relation.field import to_bytes
from rag_audit.relation.scores import ScoreWindow, dot
from rag_audit.relation.selection import top_k

S0, S1, BEACON, SLOT = 11, 22, 33, 44
BLINDING_KEY = bytes(range(32))
CASES = [
    (1, 1, 1, (1,)),
    (2, 62, 2, (1, 8)),
    (80, 63, 1, (1,)),
    (81, 64, 17, (1,)),
    (1_024, 14 * 63, 13, (1, 2, 3, 4, 5, 6)),
    (1_025, 15 * 63, 14, ()),
]


def packed(kind: str, values: Sequence[int]) -> bytes:
    return array.array(kind, values).tobytes()


@pytest.mark.full
@pytest.mark.parametrize("case", CASES, ids=str)
def test_proofs_are_accepted_where_a_size_steps(case: tuple[int, int, int, tuple[int, ...]]) -> None:
    capacity, dimension, listed, gains = case
    rows = [[(i * 7 + j * 3) % 15 - 7 for j in range(dimension)] for i in range(capacity)]
    points = commit_index(packed("b", [v for row in rows for v in row]), dimension, capacity, BLINDING_KEY)
    key = ScanKey(points, dimension, capacity, bytes(32), gains, listed, lo=0, hi=64 * dimension, lattice=64)
    vector = [(3 * j) % 15 - 7 for j in range(dimension)]
    noise_values = draw(noise_key(S0, S1, BEACON, SLOT), capacity, gains) if gains else [0] * capacity
    scores = [dot(vector, row) for row in rows]
    window = ScoreWindow(key.lo, key.hi, key.lattice)
    positions = top_k([window.quantise(s) + z for s, z in zip(scores, noise_values, strict=True)], listed)
    cq, htopk = vector_commitment(7, vector), topk_commitment(8, positions)
    seed = seed_commitment(S0, S1)
    statement = Statement(ctx=5, c_seed=seed, beacon=BEACON, slot=SLOT, c_idx=key.c_idx, cq=cq, htopk=htopk)
    certificate = SlotProofJob(key, seed, BEACON, SLOT, S0, S1).run() if gains else None
    record = RecordInputs(
        key, statement, certificate, packed("i", noise_values) if gains else b"", packed("i", scores),
        packed("b", vector), 7, 8, positions, BLINDING_KEY,
    )  # fmt: skip
    result = job(record).run()

    context = hashlib.sha256(
        b"rag-audit/scan/v1/records" + key.window + (1).to_bytes(8, "big")
        + b"".join(map(to_bytes, (seed, BEACON, SLOT, statement.ctx)))
        + hashlib.sha256(certificate.proof if certificate else b"").digest()
    ).digest()  # fmt: skip
    of_noise = []
    if certificate:
        slots = Noise(key.window, [Seed(seed, BEACON, SLOT)], capacity, gains)
        session, (column,) = drawn.read(slots, Reader(Transcript(slots.RUN), certificate.proof))
        assert session.holds()
        at = range(0, len(certificate.commitments), 32)
        assert column.rows == [decode(certificate.commitments[i : i + 32]) for i in at]
        of_noise = [column.rows]
    index = Index.decode(points, dimension, capacity)
    requested = query.Asked(context, index, gains, window, listed, of_noise, None, [(cq, htopk)])
    proof = base64.b64decode(str(result["proof"]))
    assert query.read(requested, Reader(Transcript(query.RUN), proof)).holds()
