"""Steps that the machine cannot hold are refused before they start, and the estimates hold for real proofs."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from rag_audit.errors import MemoryLimitError, WitnessError
from rag_audit.proofs.backends.scan import memory
from rag_audit.proofs.backends.scan.column import SlotProofJob
from rag_audit.proofs.backends.scan.key import ScanKey, commit_index
from rag_audit.proofs.backends.scan.retrieve import RecordInputs, RecordsJob
from rag_audit.proofs.backends.scan.store import commit_index_file
from rag_audit.proofs.statements.private import NoiseProof
from rag_audit.proofs.statements.retrieve import Statement
from rag_audit.relation.commitments import seed_commitment

CAPACITY, DIMENSION, GAINS = 30_000, 2, (1, 8, 64)
ROWS = np.zeros((CAPACITY, DIMENSION), np.int8)


@pytest.fixture(scope="module")
def key() -> ScanKey:
    points = commit_index(ROWS.tobytes(), DIMENSION, CAPACITY, bytes(32))
    return ScanKey(points, DIMENSION, CAPACITY, bytes(32), GAINS, 2, lo=5, hi=90, lattice=64)


@pytest.fixture
def job(key: ScanKey) -> SlotProofJob:
    return SlotProofJob(key, seed_commitment(1, 2), 3, 4, 1, 2)


def free(monkeypatch: pytest.MonkeyPatch, count: int | None) -> None:
    monkeypatch.setattr(memory, "available_bytes", lambda: count)


def test_a_certificate_that_does_not_fit_is_not_started(
    job: SlotProofJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rag_audit._native.scan_prove_noise", lambda *a: pytest.fail("started"))
    needed = memory.drawn_proof_bytes(CAPACITY, GAINS)
    free(monkeypatch, needed - 1)
    with pytest.raises(MemoryLimitError, match=r"needs 0\.\d GB, 0\.\d free.* at noise proof"):
        job.run()


def test_a_query_proof_that_does_not_fit_is_not_started(
    key: ScanKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rag_audit._native.scan_prove", lambda *a: pytest.fail("started"))
    statement = Statement(**{f.name: 1 for f in dataclasses.fields(Statement)})
    record = RecordInputs(key, statement, NoiseProof(b"", b"", b""), b"", b"", b"", 1, 1, [0], bytes(32))
    free(monkeypatch, memory.query_proof_bytes(CAPACITY) - 1)
    with pytest.raises(MemoryLimitError, match="query proof"):
        RecordsJob((record,), ("record",)).run()


def test_an_index_that_does_not_fit_is_not_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    free(monkeypatch, 1 << 20)
    with pytest.raises(MemoryLimitError, match="index commitment"):
        commit_index(ROWS.tobytes(), DIMENSION, CAPACITY, bytes(32))
    with pytest.raises(MemoryLimitError, match="index commitment"):
        commit_index_file(tmp_path / "a.points", ROWS, CAPACITY, bytes(32))
    assert list(tmp_path.iterdir()) == []


def test_where_the_system_does_not_say_nothing_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    free(monkeypatch, None)
    memory.require(1 << 60, "anything")


def test_the_system_says_how_much_is_free() -> None:
    free = memory.available_bytes()
    if sys.platform == "linux":
        assert free is not None
        assert 0 < free < 1 << 50


def test_low_memory_is_named_where_it_would_do(
    key: ScanKey, job: SlotProofJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    low = memory.drawn_proof_bytes(CAPACITY, GAINS, low_memory=True)
    assert low < 0.7 * memory.drawn_proof_bytes(CAPACITY, GAINS)
    free(monkeypatch, low)
    with pytest.raises(
        MemoryLimitError, match=r"needs 0\.\d GB, 0\.\d free; use --low-memory; at noise proof"
    ):
        job.run()
    free(monkeypatch, low - 1)
    for each in (job, dataclasses.replace(job, low_memory=True)):
        with pytest.raises(MemoryLimitError) as caught:
            each.run()
        assert "--low-memory" not in caught.value.diagnostics() and "--executor" in caught.value.diagnostics()
    free(monkeypatch, low)
    result = dataclasses.replace(job, low_memory=True).run()
    assert len(result.proof) == len(dataclasses.replace(job, slot=5, low_memory=True).run().proof)
    free(monkeypatch, memory.query_proof_bytes(CAPACITY, low_memory=True))
    statement = Statement(**{f.name: 1 for f in dataclasses.fields(Statement)})
    record = RecordInputs(key, statement, result, b"", b"", b"", 1, 1, [0], bytes(32))
    with pytest.raises(MemoryLimitError, match="use --low-memory; at query proof"):
        RecordsJob((record,), ("record",)).run()
    with pytest.raises(WitnessError):  # it starts
        RecordsJob((dataclasses.replace(record, low_memory=True),), ("record",)).run()


PEAK = f"""
import ctypes, dataclasses, pickle, re, sys
from pathlib import Path
import numpy as np
from rag_audit import _native
from rag_audit.models.constants import Constants
from rag_audit.proofs.statements.document_table import DocumentTablePublic
from rag_audit.proofs.statements.private import DocumentTablePrivate, TablePrivate
from rag_audit.proofs.statements.retrieve import Statement
from rag_audit.proofs.statements.tenant import TenantPublic
from rag_audit.proofs.backends.scan import memory
from rag_audit.proofs.backends.scan.system import SYSTEM
from rag_audit.proofs.backends.scan.column import SlotProofJob
from rag_audit.proofs.backends.scan.retrieve import RecordInputs, RecordsJob
from rag_audit.proofs.backends.scan.key import ScanKey, commit_index
from bench.proofs import parts, verify_batch
from rag_audit.relation.commitments import noise_key, seed_commitment, topk_commitment, vector_commitment
from rag_audit.relation.field import to_bytes

def size(name):
    return 1024 * int(re.search(name + r":\\s+(\\d+)", Path("/proc/self/status").read_text())[1])

def taken(step):
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")  # the peak counts from here
    before = size("VmRSS")
    return step(), size("VmHWM") - before

CAPACITY, DIMENSION, GAINS, LISTED = {CAPACITY}, {DIMENSION}, {GAINS}, 2
low = sys.argv[1] == "low"
rows = np.ones((CAPACITY, DIMENSION), np.int8)
points = commit_index(rows.tobytes(), DIMENSION, CAPACITY, bytes(32))
if sys.argv[1] == "index":
    wide = np.ones((CAPACITY, 64), np.int8)
    points, peak = taken(lambda: commit_index(wide.tobytes(), 64, CAPACITY, bytes(32)))
    print(peak, memory.index_bytes(CAPACITY, 64))
    sys.exit()
if sys.argv[2] in ("table", "sample"):
    table = TablePrivate(bytes(32), np.arange(CAPACITY, dtype=np.int32).tobytes(), [bytes(32)] * CAPACITY)
    committed, peak = taken(lambda: SYSTEM.commit_document_table(CAPACITY, table))
    if sys.argv[2] == "table":
        print(peak, memory.table_bytes(CAPACITY, CAPACITY))
        sys.exit()
    constants = Constants(CAPACITY, 16, 5, (), 20, 160, 64, 32, None, ("sample",), by_document=True)
    public = DocumentTablePublic(
        tenant=TenantPublic("law", "00" * 32, "22" * 32, constants, {{}}), c_seed=seed_commitment(1, 2), beacon=3, slot=4,
        name="sample", bound=1 << 39, rows=CAPACITY, positions_per_document=1, drawn=CAPACITY, table=committed, previous=None,
    )
    job = SYSTEM.column("sample").prove(public, DocumentTablePrivate(1, 2, table, None, low))
    _, peak = taken(job.run)
    print(peak, memory.table_proof_bytes(CAPACITY, CAPACITY, CAPACITY, low_memory=low))
    sys.exit()
key = ScanKey(points, DIMENSION, CAPACITY, bytes(32), GAINS, LISTED, lo=5, hi=90, lattice=64)
c_idx, c_seed = key.c_idx, seed_commitment(1, 2)
certificate = SlotProofJob(key, c_seed, 3, 4, 1, 2, low_memory=low)
if sys.argv[2] == "noise_proof":
    made, peak = taken(certificate.run)
    print(peak, memory.drawn_proof_bytes(CAPACITY, GAINS, low_memory=low))
    Path(sys.argv[3]).write_bytes(pickle.dumps(made))
    sys.exit()
vector = np.ones(DIMENSION, np.int8)
scores = _native.PackedIndex(rows.tobytes(), DIMENSION).scores(vector.tobytes())
noise = _native.draw_noise(to_bytes(noise_key(1, 2, 3, 4)), CAPACITY, list(GAINS))
positions = _native.noised_top_k(scores, 5, 90, 64, noise, LISTED)
cq, htopk = vector_commitment(7, vector.tolist()), topk_commitment(8, positions)
statement = Statement(ctx=5, c_seed=c_seed, beacon=3, slot=4, c_idx=c_idx, cq=cq, htopk=htopk)
if sys.argv[2] == "batch":
    count = int(sys.argv[3])
    record = RecordInputs(key, statement, certificate, noise, scores, vector.tobytes(), 7, 8, positions, bytes(32), low)
    _, peak = taken(RecordsJob((record,) * count, ("record",) * count).run)
    print(peak, memory.batch_bytes(CAPACITY, GAINS, count, low_memory=low))
    sys.exit()
made = pickle.loads(Path(sys.argv[3]).read_bytes())
record = RecordInputs(key, statement, made, noise, scores, vector.tobytes(), 7, 8, positions, bytes(32), low)
proof, peak = taken(RecordsJob((record,), ("record",)).run)
assert verify_batch(key, [parts(key, proof)], [statement]) == []
print(peak, memory.query_proof_bytes(CAPACITY, low_memory=low))
"""


def peak(*step: str) -> tuple[int, int]:
    """What a step took, and what it was estimated to take: each in a process of its own, since what a step before has
    freed may be taken again without growing the process."""
    done = subprocess.run([sys.executable, "-c", PEAK, *step], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    taken, estimated = done.stdout.split()
    return int(taken), int(estimated)


def stays_within(*step: str) -> int:
    taken, estimated = peak(*step)
    assert estimated / 10 < taken < estimated, step
    return taken


@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak from /proc")
def test_certificate_and_query_proof_stay_within_their_estimates(tmp_path: Path) -> None:
    result = str(tmp_path / "noise_proof")
    by_default, in_low_memory = (stays_within(mode, "noise_proof", result) for mode in ("default", "low"))
    assert in_low_memory < by_default
    for mode in ("default", "low"):
        stays_within(mode, "query", result)


@pytest.mark.full  # seconds, most of them a proof of four records
@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak from /proc")
def test_proofs_of_several_records_stay_within_their_estimate() -> None:
    for mode in ("default", "low"):
        stays_within(mode, "batch", "4")


@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak from /proc")
def test_an_index_stays_within_its_estimate() -> None:
    stays_within("index")


@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak from /proc")
def test_a_document_table_and_its_proof_stay_within_their_estimates() -> None:
    stays_within("default", "table")
    by_default, in_low_memory = (stays_within(mode, "sample") for mode in ("default", "low"))
    assert in_low_memory < by_default
