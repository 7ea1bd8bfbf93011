"""Steps that the machine cannot hold are refused before they start, and the estimates hold for real proofs."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from rag_audit.errors import MemoryLimitError
from rag_audit.proofs import Statement
from rag_audit.proofs.scan import CertificateJob, NoiseCertificate, ProofJob, ScanKey, commit_index, memory
from rag_audit.proofs.scan.store import commit_index_file
from rag_audit.relation.commitments import seed_commitment

CAPACITY, DIMENSION, GAINS = 30_000, 2, (1, 8, 64)
ROWS = np.zeros((CAPACITY, DIMENSION), np.int8)


@pytest.fixture(scope="module")
def key() -> ScanKey:
    points = commit_index(ROWS.tobytes(), DIMENSION, CAPACITY, bytes(32))
    return ScanKey(points, DIMENSION, CAPACITY, bytes(32), GAINS, 2, lo=5, hi=90, lattice=64)


@pytest.fixture
def job(key: ScanKey) -> CertificateJob:
    return CertificateJob(key, seed_commitment(1, 2), 3, 4, 1, 2)


def free(monkeypatch: pytest.MonkeyPatch, count: int | None) -> None:
    monkeypatch.setattr(memory, "available_bytes", lambda: count)


def test_a_certificate_that_does_not_fit_is_not_started(
    job: CertificateJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rag_audit._native.scan_certify", lambda *a: pytest.fail("started"))
    needed = memory.certificate_bytes(CAPACITY, GAINS)
    free(monkeypatch, needed - 1)
    with pytest.raises(MemoryLimitError, match=r"needs 0\.\d GB, 0\.\d free; at noise certificate"):
        job.run()


def test_a_query_proof_that_does_not_fit_is_not_started(
    key: ScanKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rag_audit._native.scan_prove", lambda *a: pytest.fail("started"))
    statement = Statement(**{f.name: 1 for f in dataclasses.fields(Statement)})
    job = ProofJob(key, statement, NoiseCertificate(b"", b"", b""), b"", b"", b"", 1, 1, [0], bytes(32))
    free(monkeypatch, memory.query_proof_bytes(CAPACITY) - 1)
    with pytest.raises(MemoryLimitError, match="query proof"):
        job.run()


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


@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak from /proc")
def test_a_certificate_stays_within_its_estimate() -> None:
    program = f"""
import re
from pathlib import Path
from rag_audit.proofs.scan import CertificateJob, ScanKey, commit_index, memory
from rag_audit.relation.commitments import seed_commitment

def size(name):
    return 1024 * int(re.search(name + r":\\s+(\\d+)", Path("/proc/self/status").read_text())[1])

points = commit_index(bytes({CAPACITY * DIMENSION}), {DIMENSION}, {CAPACITY}, bytes(32))
key = ScanKey(points, {DIMENSION}, {CAPACITY}, bytes(32), {GAINS}, 2, lo=5, hi=90, lattice=64)
key.c_idx
before = size("VmRSS")
CertificateJob(key, seed_commitment(1, 2), 3, 4, 1, 2).run()
print(size("VmHWM") - before, memory.certificate_bytes({CAPACITY}, {GAINS}))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    taken, estimated = map(int, done.stdout.split())
    assert estimated / 4 < taken < estimated
