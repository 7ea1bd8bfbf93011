"""What proofs of the scan argument leave in the memory of their process: nothing of what they were made from."""

from __future__ import annotations

import pickle
import random
import struct
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pytest

from bench.proofs import job
from rag_audit.models.manifest import DEFAULT_TABLE
from rag_audit.proofs.backends.scan.column import SlotProofJob
from rag_audit.proofs.backends.scan.key import ScanKey, commit_index
from rag_audit.proofs.backends.scan.retrieve import RecordInputs
from rag_audit.proofs.statements.retrieve import Statement
from rag_audit.relation import draws
from rag_audit.relation.commitments import (
    noise_key,
    query_commitment,
    seed_commitment,
    topk_commitment,
    vector_commitment,
)
from rag_audit.relation.field import MODULUS, to_bytes
from rag_audit.relation.scores import ScoreWindow, dot
from rag_audit.relation.selection import top_k
from rag_audit.retrieval.embedders.static import normalise
from tests.scan.left import Child, bits, column, counted, element, left_behind

pytestmark = [
    pytest.mark.full,
    pytest.mark.skipif(sys.platform != "linux", reason="reads another process's memory under /proc"),
]

CAPACITY, DIMENSION, LISTED, GAINS = 600, 64, 24, (1, 8)
S0, S1, BEACON, SLOT = 3**150, 5**100, 7, 9
KEEP = 1 << 39
LO, HI, LATTICE = 20, 160, 64
WINDOW, CONTEXT = bytes([4] * 32), bytes([5] * 32)


def elements(*values: int) -> bytes:
    return b"".join(map(to_bytes, values))


def packed(values: Sequence[int], width: str) -> bytes:
    return struct.pack(f"<{len(values)}{width}", *values)


def slot_bytes(slot: int) -> bytes:
    return elements(seed_commitment(S0, S1), BEACON, slot)


def secrets_of_seed(slot: int) -> dict[str, bytes]:
    key = noise_key(S0, S1, BEACON, slot)
    return element("s0", S0) | element("s1", S1) | element("kappa", key)


def secret_noise(slot: int) -> dict[str, bytes]:
    """What only native code has of the noise and of the draws that it is made of; int32 noise is handed on to
    Python."""
    kappa = noise_key(S0, S1, BEACON, slot)
    z = draws.draw(kappa, CAPACITY, GAINS)
    x = draws.draw(kappa, CAPACITY * len(GAINS), (1,))
    return column("noise", z) | column("draws", x, "b")


def secret_coins(slot: int) -> dict[str, bytes]:
    kappa = noise_key(S0, S1, BEACON, slot)
    drawn = draws.uniforms(kappa, CAPACITY)
    own = [int(d < KEEP) for d in drawn]
    parts = {"heads": [d & 255 for d in drawn], "low limbs": [d >> 8 & 0xFFFF for d in drawn]}
    parts["high limbs"] = [d >> 24 for d in drawn]
    result = bits("coins", own)
    for name, values in parts.items():
        result |= column(name, values, "I")
    return result


def blindings(name: str, data: bytes) -> dict[str, bytes]:
    values = [int.from_bytes(data[i : i + 32], "big") for i in range(0, len(data), 32)]
    return {key: form for i, x in enumerate(values) for key, form in element(f"{name} {i}", x).items()}


CERTIFICATE = f"""
index = _native.ScanIndex.commit(bytes({CAPACITY * 16}), 16, {CAPACITY}, bytes(32))
parameters = _native.ScanParameters(bytes(32), {list(GAINS)}, 5, 20, 160, 64)
_, _, [blindings] = _native.scan_prove_noise(index, parameters, [take()], [take()], False)
give(keep(blindings))
"""

COINS = f"""
_, _, blindings = _native.scan_bits_prove({CAPACITY}, {CONTEXT!r}, take(), take(), {KEEP}, False)
give(keep(blindings))
"""


@pytest.mark.parametrize(
    ("work", "secrets"), [(CERTIFICATE, secret_noise), (COINS, secret_coins)], ids=["noise", "coins"]
)
def test_a_certificate_leaves_neither_seed_nor_draws_in_memory(
    work: str, secrets: Callable[[int], dict[str, bytes]]
) -> None:
    with Child(work) as child:
        child.hand(slot_bytes(SLOT), elements(S0, S1))
        result = child.get()
        child.wait()
        assert counted(child.pid, secrets_of_seed(SLOT) | secrets(SLOT) | blindings("blinding", result)) == {}


@dataclass(frozen=True)
class Asked:
    """A record with everything that its proof is made from."""

    slot: int
    rows: list[list[int]]
    vector: list[int]
    scores: list[int]
    noise: list[int]
    kept: list[int]
    positions: list[int]
    salts: tuple[int, int]
    key: bytes

    @classmethod
    def of(cls, slot: int, *, sampled: bool) -> Asked:
        rows_rng, own = random.Random(1), random.Random(slot)
        rows = [[rows_rng.randint(-7, 7) for _ in range(DIMENSION)] for _ in range(CAPACITY)]
        vector = [own.randint(-7, 7) for _ in range(DIMENSION)]
        scores = [dot(vector, row) for row in rows]
        kappa = noise_key(S0, S1, BEACON, slot)
        z = draws.draw(kappa, CAPACITY, GAINS)
        kept = [1] * CAPACITY
        if sampled:
            kept = [int(c) for c in draws.bernoulli_bits(noise_key(S0, S1, BEACON, 1), CAPACITY, KEEP)]
        window = ScoreWindow(LO, HI, LATTICE)
        y = [k * window.quantise(s) + n for s, n, k in zip(scores, z, kept, strict=True)]
        salts = (own.randrange(MODULUS), own.randrange(MODULUS))
        return cls(slot, rows, vector, scores, z, kept, top_k(y, LISTED), salts, rows_rng.randbytes(32))

    @property
    def public(self) -> bytes:
        cq, htopk = (
            vector_commitment(self.salts[0], self.vector),
            topk_commitment(self.salts[1], self.positions),
        )
        return slot_bytes(self.slot) + elements(5, cq, htopk)

    @property
    def handed(self) -> list[bytes]:
        """Public values, scores, query, its salt, positions, their salt."""
        return [
            self.public,
            packed(self.scores, "i"),
            packed(self.vector, "b"),
            elements(self.salts[0]),
            packed(self.positions, "i"),
            elements(self.salts[1]),
        ]

    @property
    def secrets(self) -> dict[str, bytes]:
        window = ScoreWindow(LO, HI, LATTICE)
        return (
            column("query", self.vector, "b")
            | column("scores", self.scores)
            | column("scores on the lattice", [window.quantise(s) for s in self.scores])
            | column("positions", self.positions)
            | element("salt of the query", self.salts[0])
            | element("salt of the list", self.salts[1])
            | secret_noise(self.slot)
        )

    @property
    def of_the_index(self) -> dict[str, bytes]:
        """Rows as they are handed over, components as they are committed, and the blindings' key."""
        result = {"key of the index": self.key}
        for j in (0, DIMENSION - 1):
            result |= column(f"component {j}", [row[j] for row in self.rows], "b")
        for i in (0, CAPACITY - 1):
            result |= column(f"row {i}", self.rows[i], "b")
        return result

    @property
    def entries(self) -> bytes:
        return packed([v for row in self.rows for v in row], "b")


INDEX = f"""
key = take()
index = _native.ScanIndex.commit(take(), {DIMENSION}, {CAPACITY}, key)
"""

QUERY = (
    INDEX
    + f"""
slot, seed = take(), take()
_, rows, openings = _native.scan_bits_prove({CAPACITY}, {CONTEXT!r}, slot, seed, {KEEP}, False)
parameters = _native.ScanParameters({WINDOW!r}, {list(GAINS)}, {LISTED}, {LO}, {HI}, {LATTICE}, rows)
certificate = _native.scan_prove_noise(index, parameters, [take()], [seed], False)
public, scores, vector, salt_c, positions, salt_k, noise, kept = (take() for _ in range(8))
asked = (public, noise, scores, (vector, salt_c), (positions, salt_k))
_native.scan_prove(index, parameters, [asked], certificate, key, False, (kept, openings))
give(keep(openings) + keep(certificate[2][0]))
del certificate
"""
)


def test_a_query_proof_leaves_neither_query_nor_scores_nor_index_in_memory() -> None:
    requested = Asked.of(SLOT, sampled=True)
    with Child(QUERY) as child:
        child.hand(requested.key, requested.entries, slot_bytes(1), elements(S0, S1), slot_bytes(SLOT))
        child.hand(*requested.handed, packed(requested.noise, "i"), bytes(requested.kept))
        result = child.get()
        child.wait()
        secrets = requested.secrets | requested.of_the_index | secrets_of_seed(SLOT) | secret_coins(1)
        assert counted(child.pid, secrets | blindings("blinding", result)) == {}


TOGETHER = (
    INDEX
    + f"""
parameters = _native.ScanParameters({WINDOW!r}, {list(GAINS)}, {LISTED}, {LO}, {HI}, {LATTICE})
records, seeds = [], []
for _ in range(2):
    seed, noise, public, scores, vector, salt_c, positions, salt_k = (take() for _ in range(8))
    seeds.append(seed)
    records.append((public, noise, scores, (vector, salt_c), (positions, salt_k)))
slots = [record[0][:96] for record in records]
certificate = _native.scan_prove_noise(index, parameters, slots, seeds, False)
_native.scan_prove(index, parameters, records, certificate, key, False)
give(b"".join(map(keep, certificate[2])))
"""
)


def test_a_proof_of_several_records_leaves_nothing_of_any_in_memory() -> None:
    both = [Asked.of(slot, sampled=False) for slot in (SLOT, SLOT + 1)]
    handed = [
        part
        for requested in both
        for part in (elements(S0, S1), packed(requested.noise, "i"), *requested.handed)
    ]
    secrets = dict(both[0].of_the_index)
    for requested in both:
        result = requested.secrets | secrets_of_seed(requested.slot)
        secrets |= {f"{name} of slot {requested.slot}": form for name, form in result.items()}
    with Child(TOGETHER) as child:
        child.hand(both[0].key, both[0].entries, *handed)
        created = child.get()
        child.wait()
        assert counted(child.pid, secrets | blindings("blinding", created)) == {}


VOCABULARY, TOKENS = 500, 40
EMBED = f"""
rows = os.read(0, int.from_bytes(os.read(0, 8), "little"))
table = _native.ScanTable.commit(rows, {DIMENSION})
statement, tokens, salts = take(), take(), take()
_native.scan_embed_prove(table, ({TOKENS}, 8145), statement, rows, tokens, salts)
"""


def test_a_proof_of_an_embedding_leaves_neither_tokens_nor_vector_in_memory() -> None:
    rng = random.Random(4)
    rows = [[rng.randint(-7, 7) for _ in range(DIMENSION)] for _ in range(VOCABULARY)]
    tokens = [rng.randrange(VOCABULARY) for _ in range(TOKENS - 10)]
    salts = [rng.randrange(MODULUS) for _ in range(2)]
    sums = np.array([rows[t] for t in tokens], dtype=np.int64).sum(axis=0)
    vector = [int(v) for v in normalise(sums, DEFAULT_TABLE.norm_factor, field="query")]
    statement = elements(5, query_commitment(salts[0], tokens), vector_commitment(salts[1], vector))
    handed = [packed([v for row in rows for v in row], "b"), statement, packed(tokens, "I"), elements(*salts)]
    secrets = column("tokens", tokens, "I") | column("vector", vector, "b")
    secrets |= column("sums of rows", [int(v) for v in sums])
    secrets |= element("salt of the tokens", salts[0]) | element("salt of the vector", salts[1])
    assert left_behind(EMBED, handed, secrets) == {}


COALITION = f"""
public, accounts, tenants, first = take(), [0, 0, 1, 1], [0, 0], [0, 0, 0, 0]
vectors, salts = take(), take()
room = _native.ScanCoalition.room(vectors, {DIMENSION})
statement = _native.ScanCoalition({CONTEXT!r}, {DIMENSION}, public, accounts, tenants, first, (1, 2), (2, 2), room)
witness = (vectors, salts, [0, 1])
records, openings = statement.prove_records(witness)
for run in range(statement.runs()):
    statement.prove_pairs(witness, records, openings, run)
give(keep(openings))
"""


def test_a_coalition_proof_leaves_no_query_in_memory() -> None:
    rng = random.Random(6)
    vectors = [[rng.randint(-7, 7) for _ in range(DIMENSION)] for _ in range(4)]
    salts = [rng.randrange(MODULUS) for _ in vectors]
    public = elements(*(vector_commitment(s, v) for s, v in zip(salts, vectors, strict=True)))
    secrets = {}
    for i, (salt, vector) in enumerate(zip(salts, vectors, strict=True)):
        secrets |= column(f"query {i}", vector, "b") | element(f"salt {i}", salt)
    with Child(COALITION) as child:
        child.hand(public, packed([x for v in vectors for x in v], "b"), elements(*salts))
        result = child.get()
        child.wait()
        assert counted(child.pid, secrets | blindings("blinding", result)) == {}


JOB = """
import gc, pickle
job = pickle.loads(take())
job.run()
del job
gc.collect()
"""


def test_python_overwrites_what_it_gives_back_where_it_is_asked_to() -> None:
    """By itself it does not: a job's secrets stay after it. docs/security.md says so, and names the setting."""
    requested = Asked.of(SLOT, sampled=False)
    points = commit_index(requested.entries, DIMENSION, CAPACITY, requested.key)
    key = ScanKey(points, DIMENSION, CAPACITY, WINDOW, GAINS, LISTED, LO, HI, LATTICE)
    seed = seed_commitment(S0, S1)
    salt_c, salt_k = requested.salts
    cq, htopk = vector_commitment(salt_c, requested.vector), topk_commitment(salt_k, requested.positions)
    record = RecordInputs(
        key,
        Statement(5, seed, BEACON, SLOT, key.c_idx, cq, htopk),
        SlotProofJob(key, seed, BEACON, SLOT, S0, S1),
        packed(requested.noise, "i"),
        packed(requested.scores, "i"),
        packed(requested.vector, "b"),
        salt_c,
        salt_k,
        requested.positions,
        requested.key,
    )
    secrets = requested.secrets | {"key of the index": requested.key}
    secrets |= {f"{name} as handed on": to_bytes(x) for name, x in (("s0", S0), ("s1", S1), ("salt", salt_c))}
    result = {}
    for setting in ("debug", "default"):
        with Child(JOB, {"PYTHONMALLOC": setting}) as child:
            child.hand(pickle.dumps(job(record)))
            child.wait()
            result[setting] = counted(child.pid, secrets, tries=3)
    assert result["debug"] == {}
    assert "key of the index" in result["default"]
