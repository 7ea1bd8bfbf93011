"""The native checks of a ceremony: what snarkjs makes passes, and every lie is named."""

from __future__ import annotations

import re
import shutil
import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Setup
from systems import container, off_subgroup, random_system, section, sections

from rag_audit import _native
from rag_audit.proofs.backends.groth16 import pyecc, snarkjs

POINT1, POINT2 = 64, 128
BEACON = bytes.fromhex("00112233445566778899aabbccddeeff")


def rewrite(source: Path, target: Path, change: Callable[[dict[int, bytearray]], None]) -> Path:
    """A copy of a container with its sections changed."""
    data = source.read_bytes()
    parts = {k: bytearray(v) for k, v in sections(data).items()}
    change(parts)
    version = struct.unpack_from("<I", data, 4)[0]
    target.write_bytes(container(data[:4], version, *(section(k, bytes(v)) for k, v in parts.items())))
    return target


def swap(body: bytearray, size: int, i: int, j: int) -> None:
    """Exchange two points, or other equal parts."""
    a, b = slice(i * size, (i + 1) * size), slice(j * size, (j + 1) * size)
    assert body[a] != body[b]
    body[a], body[b] = body[b], body[a]


@pytest.fixture(scope="module")
def two(setup: Setup, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A key with two contributions."""
    path = tmp_path_factory.mktemp("two") / "k.zkey"
    _native.zkey_contribute(setup.zkey, path, "second")
    return path


def test_own_files_pass(setup: Setup, two: Path, tmp_path: Path) -> None:
    assert _native.ptau_fault(setup.ptau) is None
    _native.zkey_new(setup.r1cs, setup.ptau, tmp_path / "0.zkey")
    for key in (tmp_path / "0.zkey", setup.zkey, two):
        assert _native.zkey_fault(setup.r1cs, setup.ptau, key) is None
    assert [(name, beacon) for name, beacon, _ in _native.zkey_contributions(two)] == [
        ("local contribution", None),
        ("second", None),
    ]
    ((name, beacon, digest),) = _native.ptau_contributions(setup.ptau)
    assert (name, beacon, len(digest)) == ("one-party phase 1 (unsafe)", None, 64)


def test_hash_names_a_contribution_in_later_keys(setup: Setup, tmp_path: Path) -> None:
    first = _native.zkey_contribute(setup.zkey, tmp_path / "1.zkey", "a")
    second = _native.zkey_beacon(tmp_path / "1.zkey", tmp_path / "2.zkey", "b", BEACON, 10)
    result = _native.zkey_contributions(tmp_path / "2.zkey")
    assert [digest for _, _, digest in result[1:]] == [first, second]
    assert [beacon for _, beacon, _ in result] == [None, None, BEACON]
    assert _native.zkey_fault(setup.r1cs, setup.ptau, tmp_path / "2.zkey") is None


def test_one_party_key_passes_under_its_own_powers(setup: Setup, tmp_path: Path) -> None:
    _native.groth16_setup_one_party(setup.r1cs, tmp_path / "k.zkey", tmp_path / "p.ptau")
    assert _native.ptau_fault(tmp_path / "p.ptau") is None
    assert _native.zkey_fault(setup.r1cs, tmp_path / "p.ptau", tmp_path / "k.zkey") is None
    assert "other powers" in (_native.zkey_fault(setup.r1cs, setup.ptau, tmp_path / "k.zkey") or "")


ALPHA1 = 4 + 32 + 4 + 32 + 12
DELTA1 = ALPHA1 + 2 * POINT1 + 2 * POINT2
RECORD = 3 * POINT1 + POINT2 + 64
"""A contribution before its parameters: delta, s, x s, x Q, transcript."""


def second_record(parts: dict[int, bytearray]) -> int:
    """Where the second contribution starts."""
    first = 64 + 4
    length = struct.unpack_from("<I", parts[10], first + RECORD + 4)[0]
    return first + RECORD + 8 + length


def old_delta(parts: dict[int, bytearray]) -> None:
    parts[2][DELTA1 : DELTA1 + POINT1] = parts[10][68 : 68 + POINT1]


def other_proof(parts: dict[int, bytearray]) -> None:
    """The second contribution with the first one's x Q."""
    at = second_record(parts) + 3 * POINT1
    parts[10][at : at + POINT2] = parts[10][68 + 3 * POINT1 : 68 + 3 * POINT1 + POINT2]


def other_delta(parts: dict[int, bytearray]) -> None:
    """The second contribution claims a delta that its secret does not give; so does the header."""
    at = second_record(parts)
    parts[10][at : at + POINT1] = parts[2][ALPHA1 : ALPHA1 + POINT1]
    parts[2][DELTA1 : DELTA1 + POINT1] = parts[2][ALPHA1 : ALPHA1 + POINT1]


def transcript(parts: dict[int, bytearray]) -> None:
    parts[10][second_record(parts) + RECORD - 1] ^= 1


def drop_last(parts: dict[int, bytearray]) -> None:
    """Hide the second contribution but keep its delta."""
    del parts[10][second_record(parts) :]
    parts[10][64:68] = struct.pack("<I", 1)


def disguise(parts: dict[int, bytearray]) -> None:
    """A secret contribution that poses as a beacon's."""
    at = second_record(parts)
    parameters = bytes([1, 1, 98, 2, 10, 3, len(BEACON)]) + BEACON
    parts[10][at + RECORD :] = struct.pack("<II", 1, len(parameters)) + parameters


KEY_FAULTS: dict[str, Callable[[dict[int, bytearray]], None]] = {
    "coefficients": lambda p: p[4].__setitem__(16, p[4][16] ^ 1),
    "points A ": lambda p: swap(p[5], POINT1, 1, 2),
    "points B in G1": lambda p: swap(p[6], POINT1, 1, 3),
    "points B in G2": lambda p: swap(p[7], POINT2, 1, 3),
    "points IC": lambda p: swap(p[3], POINT1, 0, 1),
    "points C ": lambda p: swap(p[8], POINT1, 1, 2),
    "points H ": lambda p: swap(p[9], POINT1, 1, 2),
    "circuit hash": lambda p: p[10].__setitem__(0, p[10][0] ^ 1),
    "not the one after the last": old_delta,
    "second.*proof of knowledge": other_proof,
    "delta is not multiplied": other_delta,
    "does not continue": transcript,
    "after the last contribution": drop_last,
    "does not follow from its beacon": disguise,
}


@pytest.mark.parametrize("reason", KEY_FAULTS)
def test_false_key(setup: Setup, two: Path, tmp_path: Path, reason: str) -> None:
    key = rewrite(two, tmp_path / "k.zkey", KEY_FAULTS[reason])
    fault = _native.zkey_fault(setup.r1cs, setup.ptau, key)
    assert fault is not None and re.search(reason, fault), fault


def test_header_without_delta_in_g2(setup: Setup, two: Path, tmp_path: Path) -> None:
    """delta in G2, on which C and H depend, must be the delta that the contributions made in G1."""
    first = sections(setup.zkey.read_bytes())
    end = DELTA1 + POINT1

    def change(parts: dict[int, bytearray]) -> None:
        parts[2][end:] = first[2][end:]
        parts[8][:], parts[9][:] = first[8], first[9]

    key = rewrite(two, tmp_path / "k.zkey", change)
    assert _native.zkey_fault(setup.r1cs, setup.ptau, key) == "delta in G1 and delta in G2 differ"


def test_key_of_another_circuit(setup: Setup, two: Path, tmp_path: Path) -> None:
    larger, other = tmp_path / "larger.r1cs", tmp_path / "other.r1cs"
    larger.write_bytes(random_system(41, seed=3).r1cs())
    other.write_bytes(random_system(40, seed=9).r1cs())
    assert "another circuit" in (_native.zkey_fault(larger, setup.ptau, two) or "")
    assert "another circuit" in (_native.zkey_fault(other, setup.ptau, two) or "")


def test_key_under_other_powers(setup: Setup, two: Path, tmp_path: Path) -> None:
    _native.ptau_new(6, tmp_path / "p.ptau")
    assert "other powers" in (_native.zkey_fault(setup.r1cs, tmp_path / "p.ptau", two) or "")


def test_truncated_key(setup: Setup, two: Path, tmp_path: Path) -> None:
    data = two.read_bytes()
    for size in (len(data) - 1, len(data) // 2, 20, 3):
        (tmp_path / "k.zkey").write_bytes(data[:size])
        with pytest.raises(ValueError, match="truncated"):
            _native.zkey_fault(setup.r1cs, setup.ptau, tmp_path / "k.zkey")


@pytest.mark.parametrize(
    "parameters, kind",
    [
        (b"\x01\x01a", 2),
        (b"\x01\x01a\x02\x0a", 1),
        (b"\x03\x01a\x02\x0a", 1),
        (b"\x02\x09\x03\x01a", 1),
        (b"\x02\x1c\x03\x01a", 1),
        (b"\x01\x05a", 0),
        (b"\x04\x01a", 0),
        (b"\x02\x0a\x03\x01a", 0),
    ],
)
def test_malformed_parameters(setup: Setup, two: Path, tmp_path: Path, parameters: bytes, kind: int) -> None:
    """Unknown types, a beacon without its value, out of order, too few or too many hashes, past the end."""

    def change(parts: dict[int, bytearray]) -> None:
        at = second_record(parts) + RECORD
        parts[10][at:] = struct.pack("<II", kind, len(parameters)) + parameters

    key = rewrite(two, tmp_path / "k.zkey", change)
    with pytest.raises(ValueError, match="contributions"):
        _native.zkey_fault(setup.r1cs, setup.ptau, key)


PHASE1 = 4
"""Where the contribution starts in section 7."""
KEYS = PHASE1 + POINT1 + POINT2 + 2 * POINT1 + POINT2
PHASE1_RECORD = KEYS - PHASE1 + 6 * POINT1 + 3 * POINT2 + 216 + 64


def lift(section: int, size: int, i: int, j: int) -> Callable[[dict[int, bytearray]], None]:
    return lambda parts: swap(parts[section], size, i, j)


POWERS_FAULTS: dict[str, Callable[[dict[int, bytearray]], None]] = {
    "section 2: the points are not powers": lift(2, POINT1, 3, 4),
    "section 2: the first point": lift(2, POINT1, 0, 4),
    "section 3: the points are not powers": lift(3, POINT2, 3, 4),
    "section 4: the points are not powers": lift(4, POINT1, 3, 4),
    "section 5: the points are not powers": lift(5, POINT1, 3, 4),
    "section 4: the first point": lambda p: p[4].__setitem__(slice(None), p[5]),
    "beta in G2 is not": lambda p: p[6].__setitem__(slice(None), p[3][POINT2 : 2 * POINT2]),
    "section 12: the points are not the Lagrange forms": lift(12, POINT1, 200, 201),
    "section 13: the points are not the Lagrange forms": lift(13, POINT2, 100, 101),
    "section 14: the points are not the Lagrange forms": lift(14, POINT1, 2, 1),
    "section 15: the points are not the Lagrange forms": lift(15, POINT1, 70, 71),
    "proof of knowledge of beta": lambda p: p[7].__setitem__(
        slice(KEYS + 6 * POINT1 + 2 * POINT2, KEYS + 6 * POINT1 + 3 * POINT2),
        p[7][KEYS + 6 * POINT1 : KEYS + 6 * POINT1 + POINT2],
    ),
    "tau is not multiplied": lambda p: p[7].__setitem__(
        slice(PHASE1, PHASE1 + POINT1), p[2][2 * POINT1 : 3 * POINT1]
    ),
    "tau in G2 is not multiplied": lambda p: p[7].__setitem__(
        slice(PHASE1 + POINT1, PHASE1 + POINT1 + POINT2), p[3][2 * POINT2 : 3 * POINT2]
    ),
    "that the last contribution hashed": lambda p: p[7].__setitem__(
        PHASE1 + PHASE1_RECORD - 1, p[7][PHASE1 + PHASE1_RECORD - 1] ^ 1
    ),
}


@pytest.mark.parametrize("reason", POWERS_FAULTS)
def test_false_powers(setup: Setup, tmp_path: Path, reason: str) -> None:
    powers = rewrite(setup.ptau, tmp_path / "p.ptau", POWERS_FAULTS[reason])
    fault = _native.ptau_fault(powers)
    assert fault is not None and reason in fault, fault


@pytest.mark.parametrize("number", [3, 13])
def test_powers_outside_the_subgroup(setup: Setup, tmp_path: Path, number: int) -> None:
    """Pairings say nothing about a point outside, so it is refused for being there."""
    point = off_subgroup()
    halves = [int.from_bytes(point[i : i + 32], "big") * 2**256 % pyecc.P for i in (32, 0, 96, 64)]
    encoded = b"".join(x.to_bytes(32, "little") for x in halves)
    powers = rewrite(
        setup.ptau,
        tmp_path / "p.ptau",
        lambda p: p[number].__setitem__(slice(5 * POINT2, 6 * POINT2), encoded),
    )
    fault = _native.ptau_fault(powers) or ""
    assert f"section {number}: a point is not in the subgroup" in fault


def test_powers_of_another_tau(setup: Setup, tmp_path: Path) -> None:
    """Consistent powers, but not the ones that the contributions made."""
    _native.ptau_new(6, tmp_path / "other.ptau")
    other = sections((tmp_path / "other.ptau").read_bytes())

    def change(parts: dict[int, bytearray]) -> None:
        for number in (2, 3, 4, 5, 6, 12, 13, 14, 15):
            parts[number][:] = other[number]

    powers = rewrite(setup.ptau, tmp_path / "p.ptau", change)
    assert "section 2: the points are not powers" in (_native.ptau_fault(powers) or "")


def claim_ceremony(power: int) -> Callable[[dict[int, bytearray]], None]:
    """The header says that the file is from a ceremony for so many powers."""
    return lambda parts: parts[1].__setitem__(slice(40, 44), struct.pack("<I", power))


def test_powers_without_contributions(setup: Setup, tmp_path: Path) -> None:
    """tau, alpha and beta are one, and nobody had to know a secret: all points are generators."""

    def montgomery(value: int) -> bytes:
        return (value * 2**256 % pyecc.P).to_bytes(32, "little")

    x, y = pyecc.curve.normalize(pyecc.curve.G2)
    g1 = montgomery(1) + montgomery(2)
    g2 = b"".join(montgomery(int(c)) for v in (x, y) for c in v.coeffs)

    def change(parts: dict[int, bytearray]) -> None:
        n = 64
        for number, point, count in ((2, g1, 2 * n - 1), (3, g2, n), (4, g1, n), (5, g1, n), (6, g2, 1)):
            parts[number][:] = point * count
        for number, point, top in ((12, g1, 7), (13, g2, 6), (14, g1, 6), (15, g1, 6)):
            # At tau = 1 the first Lagrange form of each domain is one, the others are zero.
            parts[number][:] = b"".join(point + bytes(len(point)) * (2**k - 1) for k in range(top + 1))
        parts[7][:] = bytes(4)

    for ceremony in (6, 7):
        powers = tmp_path / f"{ceremony}.ptau"
        rewrite(setup.ptau, powers, lambda p, c=ceremony: (change(p), claim_ceremony(c)(p)))  # type: ignore[misc]
        assert "nobody contributed" in (_native.ptau_fault(powers, part=True) or "")


def test_powers_that_claim_a_larger_ceremony(setup: Setup, tmp_path: Path) -> None:
    """They would not have to be the points that the last contribution hashed."""
    powers = rewrite(setup.ptau, tmp_path / "p.ptau", claim_ceremony(7))
    assert _native.ptau_powers(powers) == (6, 7)
    fault = _native.ptau_fault(powers) or ""
    assert "from a ceremony for 2^7, and holds 2^6" in fault
    # The first contribution answered another ceremony's challenge.
    assert "proof of knowledge of tau" in (_native.ptau_fault(powers, part=True) or "")
    with pytest.raises(ValueError, match=r"a ceremony for 2\^6 to 2\^28, found one for 2\^29"):
        _native.ptau_fault(rewrite(setup.ptau, tmp_path / "29.ptau", claim_ceremony(29)))


def test_truncated_powers(setup: Setup, tmp_path: Path) -> None:
    (tmp_path / "p.ptau").write_bytes(setup.ptau.read_bytes()[:-100])
    with pytest.raises(ValueError, match="truncated"):
        _native.ptau_fault(tmp_path / "p.ptau")


@pytest.mark.circuits
def test_a_ceremony_of_both_programs(setup: Setup, tmp_path: Path) -> None:
    """Both phases by turns with snarkjs, beacons included: both programs accept the whole, and its parts."""
    for arguments in (
        ["new", "bn128", "6", "0.ptau"],
        ["contribute", "0.ptau", "1.ptau", "--name=one", "-e=x"],
        ["contribute", "1.ptau", "2.ptau", "--name=two", "-e=y"],
        ["beacon", "2.ptau", "3.ptau", BEACON.hex(), "10", "--name=b"],
        ["prepare", "phase2", "3.ptau", "p.ptau"],
    ):
        snarkjs.run(["powersoftau", *arguments], cwd=tmp_path)
    assert _native.ptau_fault(tmp_path / "p.ptau") is None
    phase1 = _native.ptau_contributions(tmp_path / "p.ptau")
    assert [(n, b) for n, b, _ in phase1] == [("one", None), ("two", None), ("b", BEACON)]
    out = snarkjs.run(["powersoftau", "verify", "p.ptau"], cwd=tmp_path)
    printed = "".join(re.findall(r"(?:[0-9a-f]{8} ){3}[0-9a-f]{8}", out)).replace(" ", "")
    assert all(digest.hex() in printed for _, _, digest in phase1)
    shutil.copy(setup.r1cs, tmp_path / "c.r1cs")
    _native.zkey_new(tmp_path / "c.r1cs", tmp_path / "p.ptau", tmp_path / "0.zkey")
    snarkjs.run(["zkey", "contribute", "0.zkey", "1.zkey", "--name=one", "-e=x"], cwd=tmp_path)
    _native.zkey_contribute(tmp_path / "1.zkey", tmp_path / "2.zkey", "two")
    snarkjs.run(["zkey", "beacon", "2.zkey", "theirs.zkey", BEACON.hex(), "10", "--name=end"], cwd=tmp_path)
    _native.zkey_beacon(tmp_path / "2.zkey", tmp_path / "ours.zkey", "end", BEACON, 10)
    theirs, ours = (sections((tmp_path / f"{name}.zkey").read_bytes()) for name in ("theirs", "ours"))
    assert theirs == ours
    for key in ("1.zkey", "2.zkey", "theirs.zkey"):
        assert _native.zkey_fault(tmp_path / "c.r1cs", tmp_path / "p.ptau", tmp_path / key) is None
    out = snarkjs.run(["zkey", "verify", "c.r1cs", "p.ptau", "ours.zkey"], cwd=tmp_path)
    assert "ZKey Ok!" in out
    digests = re.findall(r"(?:[0-9a-f]{8} ){3}[0-9a-f]{8}", out)
    printed = "".join(digests).replace(" ", "")
    for _, _, digest in _native.zkey_contributions(tmp_path / "ours.zkey"):
        assert digest.hex() in printed


@pytest.mark.circuits
def test_powers_cut_from_a_larger_ceremony(setup: Setup, tmp_path: Path) -> None:
    """The largest domain's forms then have a power that the cut file has not; any other point there is refused."""
    shutil.copy(setup.ptau, tmp_path / "cut.ptau")
    snarkjs.run(["powersoftau", "truncate", "cut.ptau"], cwd=tmp_path)
    (cut,) = tmp_path.glob("cut*05*.ptau")
    assert "from a ceremony for 2^6, and holds 2^5" in (_native.ptau_fault(cut) or "")
    assert _native.ptau_fault(cut, part=True) is None
    (tmp_path / "c.r1cs").write_bytes(random_system(20).r1cs())
    _native.groth16_setup(tmp_path / "c.r1cs", cut, tmp_path / "k.zkey")
    assert _native.zkey_fault(tmp_path / "c.r1cs", cut, tmp_path / "k.zkey") is None
    for number, index, reason in (
        (12, 100, "section 12: the points are not the Lagrange forms"),
        (2, 3, "section 2: the points are not powers"),
    ):
        false = rewrite(cut, tmp_path / "p.ptau", lift(number, POINT1, index, index + 1))
        assert reason in (_native.ptau_fault(false, part=True) or "")
