"""What a proof leaves in the memory of its process, as its parent reads it."""

from __future__ import annotations

import re
import struct
import subprocess
import sys
import time
from pathlib import Path

import pytest

from rag_audit.relation import commitments, noise
from rag_audit.relation.field import MODULUS

CAPACITY, GAINS, S0, S1, BEACON, SLOT = 600, (1, 8), 3**150, 5**100, 7, 9
MARK = bytes(range(7, 71))
"""What the child keeps, so that a reader that sees nothing is noticed."""
RUN = 24
"""Successive values that are looked for: no chance makes so many."""

CHILD = f"""
import sys
from rag_audit.proofs.scan import CertificateJob, ScanKey, commit_index
from rag_audit.relation.commitments import seed_commitment
mark = bytes(range(7, 71))
rows = bytes({CAPACITY * 16})
points = commit_index(rows, 16, {CAPACITY}, bytes(32))
key = ScanKey(points, 16, {CAPACITY}, bytes(32), {GAINS}, 5, 20, 160, 64)
CertificateJob(key, seed_commitment({S0}, {S1}), {BEACON}, {SLOT}, {S0}, {S1}).run()
print("made", flush=True)
sys.stdin.read()
"""


def _montgomery(x: int) -> bytes:
    return (x * 2**256 % MODULUS).to_bytes(32, "little")


def _secrets() -> dict[str, bytes]:
    """What only native code has of the seed and of what is drawn with it, in the forms that it has there."""
    kappa = commitments.noise_key(S0, S1, BEACON, SLOT)
    z = noise.draw(kappa, CAPACITY, GAINS)
    x = noise.draw(kappa, CAPACITY * len(GAINS), (1,))
    places = {"the first": 0, "the last": CAPACITY - RUN}
    return {
        "s0": _montgomery(S0),
        "s1": _montgomery(S1),
        "kappa": _montgomery(kappa),
        **{f"{name} noise": struct.pack(f"<{RUN}q", *z[at : at + RUN]) for name, at in places.items()},
        **{f"{name} draws": struct.pack(f"<{RUN}q", *x[at : at + RUN]) for name, at in places.items()},
        "draws in bytes": struct.pack("<64b", *x[:64]),
    }


def _memory(pid: int) -> list[bytes]:
    """What a process can read and write, mapping by mapping."""
    found = []
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
            match = re.match(r"(\w+)-(\w+) rw\S+ \S+ \S+ \S+ *(.*)", line)
            if match is None or match[3].startswith(("/dev", "[v")):
                continue
            start, end = int(match[1], 16), int(match[2], 16)
            memory.seek(start)
            found.append(memory.read(end - start))
    return found


@pytest.mark.full
@pytest.mark.skipif(sys.platform != "linux", reason="reads another process's memory under /proc")
def test_a_certificate_leaves_neither_seed_nor_noise_in_memory() -> None:
    secrets = {"mark": MARK, **_secrets()}
    with subprocess.Popen(
        [sys.executable, "-c", CHILD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None and child.stdout.readline() == "made\n"
        # Threads overwrite their stacks as soon as they are free, for which nobody waits.
        for _ in range(20):
            memory = _memory(child.pid)
            count = {name: sum(held.count(secret) for held in memory) for name, secret in secrets.items()}
            assert count.pop("mark") > 0
            if not any(count.values()):
                break
            time.sleep(0.5)
        child.communicate()
    assert count == {name: 0 for name in count}
