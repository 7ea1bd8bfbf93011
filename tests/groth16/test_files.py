"""Readers of circom's and snarkjs's files: valid ones work, damaged ones are refused without a crash."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Setup, encode, make, verifies
from systems import System, container, le, random_system, section, sections, wtns

from rag_audit import _native
from rag_audit.relation.field import MODULUS

Q = 21888242871839275222246405745257275088696311157297823662689037894645226208583


def damaged(data: bytes, seed: int = 1) -> list[bytes]:
    """The file cut at about every thousandth byte, and with single bits flipped across it."""
    rng = random.Random(seed)
    step = min(1000, max(1, len(data) // 24))
    out = [data[:n] for n in range(0, len(data), step)]
    for _ in range(60):
        i = rng.randrange(len(data) if rng.random() < 0.5 else min(len(data), 200))
        out.append(data[:i] + bytes([data[i] ^ (1 << rng.randrange(8))]) + data[i + 1 :])
    out += [data + b"\0", data + data[12:]]
    return out


def test_witness_errors(setup: Setup) -> None:
    values = setup.system.values
    good = wtns(values)
    header = struct.pack("<I", 32) + le(MODULUS)
    faults = {
        "not a .wtns file": b"r1cs" + good[4:],
        "expected a version of 1 to 2, found 3": good[:4] + struct.pack("<I", 3) + good[8:],
        "there are 1 bytes after the last section": good + b"\0",
        "the file is truncated": good[:-1],
        "the witness has": wtns(values[:-1]),
        r"witness\[0\]: the first value must be one": wtns([2, *values[1:]]),
        r"witness\[1\]: the value is not below": wtns([1, MODULUS, *values[2:]]),
        "not over the scalar field": good.replace(le(MODULUS), le(Q)),
        "section 2 is missing": container(b"wtns", 2, section(1, header + struct.pack("<I", 1))),
        "section 2 occurs twice": good.replace(struct.pack("<II", 2, 2), struct.pack("<II", 2, 3))
        + section(2, b""),
        "expected 32 bytes, found 0": container(
            b"wtns", 2, section(1, header + struct.pack("<I", 1)), section(2, b"")
        ),
        "section 7 is unknown": container(b"wtns", 2, section(7, b"")),
    }
    for message, data in faults.items():
        with pytest.raises(ValueError, match=message):
            _native.groth16_prove(setup.zkey, data)


def test_witness_that_breaks_a_constraint(setup: Setup) -> None:
    values = list(setup.system.values)
    values[-1] = (values[-1] + 2) % MODULUS
    assert _native.r1cs_unsatisfied(setup.r1cs, wtns(setup.system.values)) == []
    broken = _native.r1cs_unsatisfied(setup.r1cs, wtns(values))
    assert len(setup.system.rows) - 1 in broken
    with pytest.raises(ValueError, match="does not satisfy the circuit"):
        _native.groth16_prove(setup.zkey, wtns(values))


def test_lengths_of_values_are_read_from_the_constraints(setup: Setup, tmp_path: Path) -> None:
    system = System(1)
    system.wire(0)
    bits = [system.wire(i % 2) for i in range(5)]
    for bit in bits:
        system.rows.append(({bit: 1}, {bit: 1, 0: MODULUS - 1}, {}))
    # Of so many values most are bits, so that these are summed apart.
    product = system.multiply({bits[1]: 1}, {bits[2]: 3, 0: 7})
    system.rows.append(({product: 1}, {0: 1}, {1: 1}))
    system.values[1] = system.values[product]
    result = make(tmp_path, system, 4)
    proof = _native.groth16_prove(result.zkey, system.wtns(), result.r1cs)
    assert verifies(result.vk, proof, result.inputs)
    for value in (2, MODULUS - 1, 1 << 200):
        values = list(system.values)
        values[bits[0]] = value
        with pytest.raises(ValueError, match="does not satisfy the circuit"):
            _native.groth16_prove(result.zkey, wtns(values), result.r1cs)
    with pytest.raises(
        ValueError, match=f"the constraints have {len(setup.system.values)} wires, but the key"
    ):
        _native.groth16_prove(result.zkey, system.wtns(), setup.r1cs)
    with pytest.raises(OSError, match=r"none\.r1cs"):
        _native.groth16_prove(result.zkey, system.wtns(), tmp_path / "none.r1cs")


def test_circuit_errors(setup: Setup, tmp_path: Path) -> None:
    good = setup.system.r1cs()
    path = tmp_path / "bad.r1cs"
    parts = sections(good)
    body = parts[2]
    count = len(setup.system.values)
    faults = {
        "not over the scalar field": good.replace(le(MODULUS), le(Q)),
        "a coefficient is not below": container(
            b"r1cs",
            1,
            section(1, parts[1]),
            section(2, struct.pack("<II", 1, 0) + le(MODULUS) + body),
        ),
        f"expected a wire below {count}, found {count}": container(
            b"r1cs", 1, section(1, parts[1]), section(2, struct.pack("<II", 1, count) + le(1) + body)
        ),
        "constraints: there are 3 bytes after the end": container(
            b"r1cs", 1, section(1, parts[1]), section(2, body + b"\0\0\0")
        ),
        "constraints: the data are truncated": container(
            b"r1cs", 1, section(1, parts[1]), section(2, body[:-1])
        ),
        "section 1 is missing": container(b"r1cs", 1, section(2, body)),
        # Found by mutation: millions of claimed wires in a file of 7 KB took gigabytes and minutes.
        f"expected {8 * 15_000_000} bytes, found {len(parts[3])}": container(
            b"r1cs",
            1,
            section(1, parts[1][:36] + struct.pack("<I", 15_000_000) + parts[1][40:]),
            *(section(n, parts[n]) for n in (2, 3)),
        ),
        "section 3 is missing": container(b"r1cs", 1, section(1, parts[1]), section(2, body)),
        "custom gates": container(
            b"r1cs", 1, section(1, parts[1]), section(2, body), section(4, struct.pack("<I", 1))
        ),
    }
    for message, data in faults.items():
        path.write_bytes(data)
        with pytest.raises(ValueError, match=message):
            _native.groth16_setup(path, setup.ptau, tmp_path / "k.zkey")
    assert not list(tmp_path.glob("k.zkey*"))


def test_key_of_another_circuit(setup: Setup) -> None:
    other = random_system(41, seed=3)
    with pytest.raises(ValueError, match=r"the witness has \d+ values, but the key has \d+ wires"):
        _native.groth16_prove(setup.zkey, other.wtns())


def test_missing_files(setup: Setup, tmp_path: Path) -> None:
    missing = tmp_path / "none"
    with pytest.raises(OSError, match="none"):
        _native.groth16_prove(missing, setup.system.wtns())
    with pytest.raises(OSError, match="none"):
        _native.groth16_setup(missing, setup.ptau, tmp_path / "k")
    with pytest.raises(OSError, match="nowhere"):
        _native.ptau_new(3, tmp_path / "nowhere" / "p.ptau")


@pytest.mark.parametrize("power", [0, 28, 4_000_000_000])
def test_power_out_of_range(tmp_path: Path, power: int) -> None:
    with pytest.raises(ValueError, match="power"):
        _native.ptau_new(power, tmp_path / "p.ptau")


def test_circuit_too_large_for_the_powers(setup: Setup, tmp_path: Path) -> None:
    (tmp_path / "c.r1cs").write_bytes(random_system(64).r1cs())
    with pytest.raises(ValueError, match=r"needs powers of tau up to 2\^7, and the file has them up to 2\^6"):
        _native.groth16_setup(tmp_path / "c.r1cs", setup.ptau, tmp_path / "k.zkey")


def test_full_disk_leaves_no_key(setup: Setup, tmp_path: Path) -> None:
    """A file-size limit stands for a full disk: the error names the file, and no part of it stays."""
    import subprocess
    import sys

    code = (
        "import resource, signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN);"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096));"
        "from rag_audit import _native\n"
        "try: _native.groth16_setup(*sys.argv[1:])\n"
        "except OSError as e: print('refused', e)"
    )
    paths = [str(setup.r1cs), str(setup.ptau), str(tmp_path / "k.zkey")]
    done = subprocess.run([sys.executable, "-c", code, *paths], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("refused") and "k.zkey" in done.stdout
    assert list(tmp_path.iterdir()) == []


def refused(call: Callable[[], object]) -> bool:
    """True if the input is refused; a crash or another exception ends the test."""
    try:
        call()
    except (ValueError, OSError):
        return True
    return False


def test_damaged_witness(setup: Setup) -> None:
    for data in damaged(setup.system.wtns()):
        refused(lambda data=data: _native.groth16_prove(setup.zkey, data))


def test_damaged_circuit(setup: Setup, tmp_path: Path) -> None:
    path = tmp_path / "c.r1cs"
    data = setup.system.r1cs()
    for cut in range(0, len(data), max(1, len(data) // 24)):
        path.write_bytes(data[:cut])
        assert refused(lambda: _native.r1cs_unsatisfied(path, setup.system.wtns()))
    for bad in damaged(data):
        path.write_bytes(bad)
        refused(lambda: _native.r1cs_unsatisfied(path, setup.system.wtns()))
        refused(lambda: _native.groth16_setup(path, setup.ptau, tmp_path / "k.zkey"))


def test_damaged_powers(setup: Setup, tmp_path: Path) -> None:
    path = tmp_path / "p.ptau"
    data = setup.ptau.read_bytes()
    for bad in damaged(data):
        path.write_bytes(bad)
        refused(lambda: _native.zkey_new(setup.r1cs, path, tmp_path / "k.zkey"))


def test_damaged_key(setup: Setup, tmp_path: Path) -> None:
    """A damaged key is refused or proves nothing false: what comes out verifies under the key's own vk."""
    path = tmp_path / "k.zkey"
    data = setup.zkey.read_bytes()
    survivors = 0
    for bad in damaged(data):
        path.write_bytes(bad)
        if not refused(lambda: _native.groth16_prove(path, setup.system.wtns())):
            survivors += 1
            proof = _native.groth16_prove(path, setup.system.wtns())
            assert verifies(_native.groth16_verification_key(path), proof, setup.inputs)
        refused(lambda: _native.zkey_contribute(path, tmp_path / "n.zkey", "x"))
    assert survivors < 30


def test_key_with_points_at_infinity(setup: Setup, tmp_path: Path) -> None:
    path = tmp_path / "k.zkey"
    data = setup.zkey.read_bytes()
    parts = sections(data)
    at = data.index(parts[2]) + 4 + 32 + 4 + 32 + 12
    for name, offset, size in (
        ("alpha1", 0, 64),
        ("beta1", 64, 64),
        ("beta2", 128, 128),
        ("delta2", 448, 128),
    ):
        path.write_bytes(data[: at + offset] + bytes(size) + data[at + offset + size :])
        with pytest.raises(ValueError, match=f"{name}: the point is at infinity"):
            _native.groth16_prove(path, setup.system.wtns())


def test_contributions_chain(setup: Setup, tmp_path: Path) -> None:
    new = tmp_path / "two.zkey"
    _native.zkey_contribute(setup.zkey, new, "second")
    vk = _native.groth16_verification_key(new)
    assert vk != setup.vk
    proof = _native.groth16_prove(new, setup.system.wtns())
    assert verifies(vk, proof, setup.inputs)
    assert not verifies(setup.vk, proof, setup.inputs)
    assert not verifies(vk, setup.proof, setup.inputs)
    assert struct.unpack_from("<I", sections(new.read_bytes())[10], 64) == (2,)


def test_one_party(setup: Setup, tmp_path: Path) -> None:
    """The short way gives keys of the same circuit: same coefficients, another secret, a proof that verifies."""
    _native.groth16_setup_one_party(setup.r1cs, tmp_path / "k.zkey")
    ours, theirs = (sections(p.read_bytes()) for p in (tmp_path / "k.zkey", setup.zkey))
    assert ours[4] == theirs[4] and ours[5] != theirs[5]
    assert {k: len(v) for k, v in ours.items()} == {k: len(v) for k, v in theirs.items()}
    vk = _native.groth16_verification_key(tmp_path / "k.zkey")
    proof = _native.groth16_prove(tmp_path / "k.zkey", setup.system.wtns())
    assert verifies(vk, proof, setup.inputs)
    assert not verifies(setup.vk, proof, setup.inputs)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["k.zkey"]


@pytest.mark.parametrize("constraints, public", [(1, 0), (1, 1), (2, 5), (30, 1), (31, 0), (32, 0), (59, 4)])
def test_small_shapes(tmp_path: Path, constraints: int, public: int) -> None:
    setup = make(tmp_path, random_system(constraints, public, seed=constraints), 6)
    assert verifies(setup.vk, setup.proof, setup.inputs)
    if public:
        wrong = [v ^ 1 for v in setup.system.inputs()]
        assert not verifies(setup.vk, setup.proof, encode(wrong))


def test_columns_of_every_kind(tmp_path: Path) -> None:
    """A wire in thousands of rows (bucket method), long sums with all coefficient sizes, and repeated points."""
    rng = random.Random(5)
    system = System(2)
    system.wire(7)
    system.wire(MODULUS - 1)
    pool = [1, -1, 2, 1 << 63, 1 << 64, 1 << 128, 1 << 253, MODULUS // 2, MODULUS // 2 + 1, MODULUS - 2]
    for _ in range(2300):
        row = {rng.randrange(len(system.values)): rng.choice(pool) for _ in range(3)}
        system.multiply({0: rng.randrange(MODULUS), **row}, {1: 1, 2: rng.choice(pool)})
    setup = make(tmp_path, system, 12)
    assert _native.r1cs_unsatisfied(setup.r1cs, system.wtns()) == []
    assert verifies(setup.vk, setup.proof, setup.inputs)
