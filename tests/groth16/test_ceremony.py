"""Our key files and snarkjs's are interchangeable: each accepts, continues and checks the other's."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from conftest import Setup, encode, make, verifies
from systems import random_system

from rag_audit import _native
from rag_audit.errors import SetupError
from rag_audit.proofs.backends.groth16 import snarkjs

pytestmark = pytest.mark.circuits


def test_powers_of_tau(setup: Setup) -> None:
    out = snarkjs.run(["powersoftau", "verify", setup.ptau.name], cwd=setup.folder)
    assert "Powers of Tau Ok!" in out


def test_initial_key_is_snarkjs_s(setup: Setup, tmp_path: Path) -> None:
    arguments = ["groth16", "setup", str(setup.r1cs), str(setup.ptau), "theirs.zkey"]
    snarkjs.run(arguments, cwd=tmp_path)
    _native.zkey_new(setup.r1cs, setup.ptau, tmp_path / "ours.zkey")
    assert (tmp_path / "ours.zkey").read_bytes() == (tmp_path / "theirs.zkey").read_bytes()


def test_contribution(setup: Setup) -> None:
    arguments = ["zkey", "verify", setup.r1cs.name, setup.ptau.name, setup.zkey.name]
    out = snarkjs.run(arguments, cwd=setup.folder)
    assert "ZKey Ok!" in out and "local contribution" in out


def test_one_party(setup: Setup, tmp_path: Path) -> None:
    """Keys made with all secrets in one process are those that the powers written beside them give."""
    _native.groth16_setup_one_party(setup.r1cs, tmp_path / "k.zkey", tmp_path / "p.ptau")
    arguments = ["zkey", "verify", str(setup.r1cs), "p.ptau", "k.zkey"]
    assert "ZKey Ok!" in snarkjs.run(arguments, cwd=tmp_path)
    assert "Powers of Tau Ok!" in snarkjs.run(["powersoftau", "verify", "p.ptau"], cwd=tmp_path)


def test_altered_contribution_is_refused(setup: Setup, tmp_path: Path) -> None:
    data = bytearray(setup.zkey.read_bytes())
    data[-30] ^= 1
    (tmp_path / "k.zkey").write_bytes(data)
    arguments = ["zkey", "verify", str(setup.r1cs), str(setup.ptau), "k.zkey"]
    with pytest.raises(SetupError, match="snarkjs failed"):
        snarkjs.run(arguments, cwd=tmp_path)


def test_contributions_by_turns(setup: Setup, tmp_path: Path) -> None:
    snarkjs.run(["zkey", "contribute", str(setup.zkey), "two.zkey", "--name=them", "-e=x"], cwd=tmp_path)
    _native.zkey_contribute(tmp_path / "two.zkey", tmp_path / "three.zkey", "us")
    out = snarkjs.run(["zkey", "verify", str(setup.r1cs), str(setup.ptau), "three.zkey"], cwd=tmp_path)
    assert "ZKey Ok!" in out and "contribution #3 us" in out
    proof = _native.groth16_prove(tmp_path / "three.zkey", setup.system.wtns())
    vk = _native.groth16_verification_key(tmp_path / "three.zkey")
    assert verifies(vk, proof, setup.inputs)
    assert snarkjs.verify(vk, proof, setup.inputs)


def test_verification_key_is_snarkjs_s(setup: Setup, tmp_path: Path) -> None:
    snarkjs.run(["zkey", "export", "verificationkey", str(setup.zkey), "vk.json"], cwd=tmp_path)
    assert (tmp_path / "vk.json").read_text() == setup.vk


def test_powers_by_snarkjs(tmp_path: Path) -> None:
    """A prepared file of snarkjs's own, larger than the circuit needs."""
    for arguments in (
        ["new", "bn128", "6", "a.ptau"],
        ["contribute", "a.ptau", "b.ptau", "--name=x", "-e=x"],
        ["prepare", "phase2", "b.ptau", "p.ptau"],
    ):
        snarkjs.run(["powersoftau", *arguments], cwd=tmp_path)
    system = random_system(20)
    (tmp_path / "c.r1cs").write_bytes(system.r1cs())
    _native.groth16_setup(tmp_path / "c.r1cs", tmp_path / "p.ptau", tmp_path / "k.zkey")
    assert "ZKey Ok!" in snarkjs.run(["zkey", "verify", "c.r1cs", "p.ptau", "k.zkey"], cwd=tmp_path)
    vk = _native.groth16_verification_key(tmp_path / "k.zkey")
    proof = _native.groth16_prove(tmp_path / "k.zkey", system.wtns())
    assert verifies(vk, proof, encode(system.inputs()))
    with pytest.raises(ValueError, match="not prepared for phase 2"):
        _native.groth16_setup(tmp_path / "c.r1cs", tmp_path / "b.ptau", tmp_path / "x.zkey")


@pytest.mark.full
@pytest.mark.parametrize("power", [15, 16])
def test_circuit_hash_of_large_circuits(tmp_path: Path, power: int) -> None:
    """From 2^15 rows on snarkjs hashes one point more, past the end of the powers if they just fit."""
    system = random_system((1 << 14) + 1, width=2)
    setup = make(tmp_path, system, power)
    out = snarkjs.run(["zkey", "verify", setup.r1cs.name, setup.ptau.name, setup.zkey.name], cwd=tmp_path)
    assert "ZKey Ok!" in out
    if power == 15:
        _native.groth16_setup_one_party(setup.r1cs, tmp_path / "o.zkey", tmp_path / "o.ptau")
        out = snarkjs.run(["zkey", "verify", setup.r1cs.name, "o.ptau", "o.zkey"], cwd=tmp_path)
        assert "ZKey Ok!" in out


def test_proof_json_round_trip(setup: Setup) -> None:
    proof = snarkjs._proof_json(setup.proof)
    assert json.loads(json.dumps(proof))["pi_b"][2] == ["1", "0"]
    assert int(proof["pi_a"][0]).to_bytes(32, "big") == setup.proof[:32]
    assert int(proof["pi_b"][0][1]).to_bytes(32, "big") == setup.proof[64:96]
