"""One small set-up for all Groth16 tests: a system of 40 constraints under powers of tau for 2^6."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from rag_audit import _native
from rag_audit.models.layout import Named
from rag_audit.relation.field import to_bytes

sys.path.insert(0, str(Path(__file__).parent))

from systems import System, random_system


@dataclass(frozen=True)
class Setup:
    """Files and values of one circuit with a valid proof."""

    folder: Path
    system: System
    vk: str
    proof: bytes
    inputs: bytes

    r1cs = Named("c.r1cs")
    ptau = Named("p.ptau")
    zkey = Named("k.zkey")


def encode(values: list[int]) -> bytes:
    return b"".join(map(to_bytes, values))


def make(folder: Path, system: System, power: int) -> Setup:
    (folder / "c.r1cs").write_bytes(system.r1cs())
    _native.ptau_new(power, folder / "p.ptau")
    _native.groth16_setup(folder / "c.r1cs", folder / "p.ptau", folder / "k.zkey")
    vk = _native.groth16_verification_key(folder / "k.zkey")
    proof = _native.groth16_prove(folder / "k.zkey", system.wtns())
    return Setup(folder, system, vk, proof, encode(system.inputs()))


def verifies(vk: str, proof: bytes, inputs: bytes) -> bool:
    """Whether the native core takes the proof, as a batch of one; ValueError if proof or inputs are malformed."""
    for _, reason in _native.groth16_verify_batch(vk, [proof], [inputs]):
        if reason is not None:
            raise ValueError(reason)
        return False
    return True


@pytest.fixture(scope="session")
def setup(tmp_path_factory: pytest.TempPathFactory) -> Setup:
    return make(tmp_path_factory.mktemp("groth16"), random_system(40), 6)
