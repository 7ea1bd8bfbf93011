"""`rag-audit provider setup` by several parties: from the first key to the verdict's label, and what is refused on the
way."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import cache as cache_results
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from rag_audit import _native
from rag_audit._internal import cache
from rag_audit._internal.canonical import read_json
from rag_audit._internal.node import npm_packages
from rag_audit.cli import main
from rag_audit.cli import setup as commands
from rag_audit.cli import trust as trusts
from rag_audit.log.signing import SigningKey
from rag_audit.models.trust import Trust
from rag_audit.proofs.backends.groth16 import ceremony as ceremonies
from rag_audit.proofs.backends.groth16 import snarkjs
from rag_audit.proofs.backends.groth16.circuit import Circuit, compile_circuit, compiled_anew
from rag_audit.proofs.backends.groth16.instance import Instance, circuit_digest
from rag_audit.proofs.backends.groth16.keys import VerificationKey, proving_key
from tests.docs.blocks import named_block
from tests.interop.npx import pinned_npx
from tests.named import error_name

pytestmark = pytest.mark.circuits

BEACON = "00112233445566778899aabbccddeeff"
Anew = Callable[[Instance], AbstractContextManager[Circuit]]


@dataclass(frozen=True)
class Powers:
    """y = x^(2^steps): an instance as small as its name."""

    steps: int

    @property
    def name(self) -> str:
        return f"powers-{self.steps}"

    @property
    def public_inputs(self) -> tuple[str, ...]:
        return ("y",)

    def main_source(self) -> str:
        return (
            "pragma circom 2.2.0;\n"
            "template Powers(n) { signal input y; signal input x; signal s[n + 1]; s[0] <== x;\n"
            "  for (var i = 0; i < n; i++) { s[i + 1] <== s[i] * s[i]; } s[n] === y; }\n"
            f"component main {{public [y]}} = Powers({self.steps});\n"
        )

    def digest(self) -> str:
        return circuit_digest(self, {})


CIRCUIT, OTHER = Powers(5), Powers(6)


@dataclass
class Place:
    """A folder with the ceremony's files, and the command run in this process."""

    root: Path

    def path(self, name: str) -> Path:
        return self.root / name

    def run(self, *arguments: object) -> Any:
        return CliRunner().invoke(main, ["provider", "setup", *map(str, arguments)])

    def ok(self, *arguments: object) -> dict[str, Any]:
        done = self.run(*arguments, "--json")
        assert done.exit_code == 0, done.output
        value: dict[str, Any] = json.loads(done.stdout)
        return value

    def fails(self, code: int, error: str, *arguments: object) -> str:
        done = self.run(*arguments)
        assert done.exit_code == code and error_name(done) == error, done.output
        return str(done.stderr)

    @property
    def powers(self) -> tuple[object, ...]:
        return ("--ptau", self.path("p.ptau"))

    @property
    def policy(self) -> tuple[object, ...]:
        return ("--policy", "policy.json", "--circuit", CIRCUIT.name)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Powers of tau by two parties of snarkjs's, others by one."""
    root = tmp_path_factory.mktemp("phase1")
    for arguments in (
        ["new", "bn128", "4", "0.ptau"],
        ["contribute", "0.ptau", "1.ptau", "--name=one", "-e=x"],
        ["contribute", "1.ptau", "2.ptau", "--name=two", "-e=y"],
        ["prepare", "phase2", "2.ptau", "p.ptau"],
        ["beacon", "0.ptau", "b.ptau", BEACON, "10", "--name=only"],
        ["prepare", "phase2", "b.ptau", "public.ptau"],
    ):
        snarkjs.run(["powersoftau", *arguments], cwd=root)
    _native.ptau_new(4, root / "alone.ptau")
    return root


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache that has both circuits and the packages, and nothing else."""
    packages = npm_packages().parent
    root = tmp_path_factory.mktemp("compiled")
    (root / "rag-audit").mkdir()
    (root / "rag-audit" / packages.name).symlink_to(packages)
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("XDG_CACHE_HOME", str(root))
        for circuit in (CIRCUIT, OTHER):
            compile_circuit(circuit)
    return root


@pytest.fixture(scope="module")
def compiled_apart(tmp_path_factory: pytest.TempPathFactory) -> Anew:
    """What `compiled_anew` gives, from the compiler once for all tests, for time; no cache has it."""
    root = tmp_path_factory.mktemp("anew")
    real = ceremonies.compiled_anew

    @contextmanager
    def anew(instance: Instance) -> Iterator[Circuit]:
        folder = root / instance.digest()
        if not folder.exists():
            with real(instance) as circuit:
                shutil.copytree(circuit.folder, folder)
        yield Circuit(folder)

    return anew


@pytest.fixture
def place(
    files: Path, compiled: Path, compiled_apart: Anew, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Place:
    """An own cache, in which both circuits are compiled, and a policy of these two."""
    shutil.copytree(compiled, tmp_path / "cache", symlinks=True)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(ceremonies, "compiled_anew", compiled_apart)
    monkeypatch.setattr(commands.Circuits, "of", lambda *_: [CIRCUIT, OTHER])
    monkeypatch.setattr(trusts, "_mechanisms", lambda _: ["noise"])
    root = tmp_path / "ceremony"
    shutil.copytree(files, root)
    return Place(root)


def ceremony(place: Place, parties: int = 2) -> Path:
    """The key after so many contributions."""
    place.ok("start", "policy.json", "--circuit", CIRCUIT.name, *place.powers, "--out", place.path("0.zkey"))
    for i in range(parties):
        place.ok("contribute", place.path(f"{i}.zkey"), place.path(f"{i + 1}.zkey"), "--name", f"party {i}")
    return place.path(f"{parties}.zkey")


def test_two_parties_make_a_ceremony(place: Place) -> None:
    key = ceremony(place)
    checked = place.ok("verify", key, *place.policy, *place.powers)
    assert [c["name"] for c in checked["contributions"]] == ["party 0", "party 1"]
    assert [c["name"] for c in checked["phase1"]["contributions"]] == ["one", "two"]
    assert checked["setup"] == "ceremony"
    printed = place.ok("finalise", key, *place.policy, *place.powers, "--beacon", BEACON)
    (pinned,) = printed["keys"]
    assert (pinned["circuit"], pinned["name"]) == (CIRCUIT.digest(), CIRCUIT.name)
    assert pinned["setup"] == "ceremony"
    # The key that windows are proved with.
    used = proving_key(CIRCUIT)
    assert used.vk_digest == pinned["vk"]
    assert used.manifest["contributions"] == 2
    assert used.manifest["phase1"] == f"sha256:{checked['phase1']['sha256']}"
    assert [c["beacon"] for c in used.manifest["contributors"]] == [None, None, BEACON]
    assert place.ok("new", "policy.json")["keys"][0] == pinned
    out = snarkjs.run(
        ["zkey", "verify", str(compile_circuit(CIRCUIT).r1cs), "p.ptau", str(used.zkey)], cwd=place.root
    )
    assert "ZKey Ok!" in out and "party 1" in out


@pytest.mark.full
def test_snarkjs_s_commands_of_the_page(place: Place) -> None:
    """docs/interop.md, as it stands there, of this circuit's key and of another's constraints."""
    shutil.copy(ceremony(place), place.path("final.zkey"))
    place.path("p.ptau").rename(place.path("final.ptau"))
    commands = pinned_npx(place.path("bin"))

    def read(circuit: Powers) -> subprocess.CompletedProcess[str]:
        shutil.copy(compile_circuit(circuit).r1cs, place.path("circuit.r1cs"))
        return subprocess.run(
            ["bash", "-euo", "pipefail", "-c", named_block("interop.md", "zkey")], cwd=place.root, text=True,
            env={**os.environ, "PATH": f"{commands}{os.pathsep}{os.environ['PATH']}"}, capture_output=True,
            check=False, timeout=600,
        )  # fmt: skip

    refused = read(OTHER)
    exported = place.path("verification_key.json")
    assert refused.returncode and "ZKey Ok!" not in refused.stdout and not exported.exists()
    done = read(CIRCUIT)
    assert done.returncode == 0 and "ZKey Ok!" in done.stdout and "party 1" in done.stdout, done.stdout
    told = place.ok("verify", place.path("final.zkey"), *place.policy, "--ptau", place.path("final.ptau"))
    assert told["verification_key"]["sha256"] == hashlib.sha256(exported.read_bytes()).hexdigest()
    assert told["r1cs"]["sha256"] == hashlib.sha256(place.path("circuit.r1cs").read_bytes()).hexdigest()


def test_by_turns_with_snarkjs(place: Place) -> None:
    ceremony(place, 1)
    snarkjs.run(["zkey", "contribute", "1.zkey", "2.zkey", "--name=them", "-e=x"], cwd=place.root)
    mine = place.ok("contribute", place.path("2.zkey"), place.path("3.zkey"), "--name", "again")
    checked = place.ok("verify", place.path("3.zkey"), *place.policy, *place.powers)
    assert [c["name"] for c in checked["contributions"]] == ["party 0", "them", "again"]
    assert checked["contributions"][2]["digest"] == mine["digest"]


def test_verify_by_constraints(place: Place) -> None:
    key = ceremony(place, 1)
    r1cs = compile_circuit(CIRCUIT).r1cs
    text = place.run("verify", key, "--r1cs", r1cs, *place.powers).stdout
    assert "phase 1: one\n" in text and "phase 2: party 0\n" in text and text.endswith("setup: unsafe\n")
    # A verification key is pinned with its circuit's digest.
    assert "circuit (not named)\nverification key (none)\n" in text
    unnamed = place.ok("verify", key, "--r1cs", r1cs, *place.powers)
    assert (unnamed["vk"], unnamed["keys"]) == (None, [])
    named = place.ok("verify", key, "--r1cs", r1cs, "--circuit", CIRCUIT.digest(), *place.powers)
    assert named["vk"] == place.ok("verify", key, *place.policy, *place.powers)["vk"]
    # It may be another circuit's constraints, so that it is nothing to pin.
    assert named["keys"] == []


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_verify_prints_digests_of_all_that_it_checked(place: Place) -> None:
    key = ceremony(place)
    result = place.ok("verify", key, *place.policy, *place.powers)
    snarkjs.run(["zkey", "export", "verificationkey", str(key), "vk.json"], cwd=place.root)
    exported = place.path("vk.json")
    vk = VerificationKey.from_snarkjs(exported.read_text(), CIRCUIT.digest()).digest
    expected = {
        "circuit": CIRCUIT.digest(),
        "name": CIRCUIT.name,
        "vk": vk,
        "verification_key": {"sha256": sha256(exported)},
        "r1cs": {"sha256": sha256(compile_circuit(CIRCUIT).r1cs)},
        "zkey": {"sha256": sha256(key)},
        "keys": [{"circuit": CIRCUIT.digest(), "name": CIRCUIT.name, "vk": vk, "setup": "ceremony"}],
        "setup": "ceremony",
    }
    assert {name: result[name] for name in expected} == expected
    assert result["phase1"]["sha256"] == sha256(place.path("p.ptau"))
    contributions = [*result["phase1"]["contributions"], *result["contributions"]]
    digests = [c["digest"] for c in contributions]
    assert len(set(digests)) == 4 and {len(digest) for digest in digests} == {128}
    # snarkjs prints them in groups of eight digits.
    printed = ""
    for arguments in (
        ["powersoftau", "verify", "p.ptau"],
        ["zkey", "verify", str(compile_circuit(CIRCUIT).r1cs), "p.ptau", str(key)],
    ):
        out = snarkjs.run(arguments, cwd=place.root)
        printed += "".join(re.findall(r"(?:[0-9a-f]{8} ){3}[0-9a-f]{8}", out)).replace(" ", "")
    assert all(digest in printed for digest in digests)
    text = place.run("verify", key, *place.policy, *place.powers).stdout
    for digest in (
        *digests,
        vk,
        sha256(exported),
        sha256(key),
        expected["r1cs"]["sha256"],
        sha256(place.path("p.ptau")),
    ):  # type: ignore[index]
        assert digest in text


def test_verify_compiles_again(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache that says that the circuit's constraints are another's, under a manifest that fits."""
    monkeypatch.setattr(ceremonies, "compiled_anew", compiled_anew)
    for name, instance in (("c.r1cs", CIRCUIT), ("o.r1cs", OTHER)):
        shutil.copy(compile_circuit(instance).r1cs, place.path(name))
    folder = compile_circuit(CIRCUIT).folder
    shutil.copy(place.path("o.r1cs"), folder / "main.r1cs")
    cache.write_manifest(folder, read_json(folder / "manifest.json", max_bytes=1 << 20))
    key = ceremony(place)  # `start` takes the cached constraints
    assert _native.zkey_fault(place.path("o.r1cs"), place.path("p.ptau"), key) is None
    for command in ("verify", "finalise"):
        error = place.fails(1, "CeremonyError", command, key, *place.policy, *place.powers)
        assert "another circuit" in error
    assert "another circuit" in trust_fails(place, 1, "CeremonyError", f"{CIRCUIT.name}={key}")


def trust(place: Place, *arguments: object) -> Any:
    """`trust new` for two made-up parties."""
    vkeys = [str(SigningKey.generate(name).verifier) for name in ("provider", "witness")]
    parties = ("--origin", "example.org/rag", "--provider", vkeys[0], "--witness", vkeys[1])
    words = ["verifier", "trust", "new", place.path("trust.toml"), *parties, *arguments]
    return CliRunner().invoke(main, list(map(str, words)))


def checked(place: Place, *zkeys: object) -> tuple[object, ...]:
    return (*(word for z in zkeys for word in ("--zkey", z)), "--policy", "policy.json", *place.powers)


def trust_fails(place: Place, code: int, error: str, *zkeys: object) -> str:
    done = trust(place, *checked(place, *zkeys))
    assert done.exit_code == code and error_name(done) == error, done.output
    assert not place.path("trust.toml").exists()
    return str(done.stderr)


@pytest.mark.parametrize("parties, label", [(1, "unsafe"), (2, "ceremony")])
def test_trust_pins_a_key_that_it_checked(place: Place, parties: int, label: str) -> None:
    key = ceremony(place, parties)
    final = place.path("final.zkey")
    result = place.ok("finalise", key, *place.policy, *place.powers, "--beacon", BEACON, "--out", final)
    assert final.read_bytes() == proving_key(CIRCUIT).zkey.read_bytes()
    done = trust(place, *checked(place, f"{CIRCUIT.digest()}={final}"))
    assert done.exit_code == 0, done.output
    (pin,) = Trust.load(place.path("trust.toml")).pins.groth16
    assert (pin.circuit, pin.vk, pin.setup) == (CIRCUIT.digest(), result["keys"][0]["vk"], label)


def test_trust_pins_no_key_that_it_cannot_check(place: Place) -> None:
    key, false = ceremony(place), place.path("false.zkey")
    done = trust(place, "--zkey", key, "--policy", "policy.json")
    assert done.exit_code == 2 and "must be checked before it is pinned" in done.stderr, done.output
    assert "name one of the policy's circuits" in trust_fails(place, 2, "SetupError", key)
    assert "another circuit" in trust_fails(place, 1, "CeremonyError", f"{OTHER.name}={key}")
    false.write_bytes(flip(place, key, -30).read_bytes())
    assert "does not continue" in trust_fails(place, 1, "CeremonyError", f"{CIRCUIT.name}={false}")
    first = f"{CIRCUIT.name}={place.path('0.zkey')}"
    assert "no party contributed a secret, so anybody can forge proofs with this key" in trust_fails(
        place, 1, "CeremonyError", first
    )
    missing = f"{CIRCUIT.name}={place.path('none.zkey')}"
    assert "No such file" in trust_fails(place, 2, "SetupError", missing)


def test_trust_takes_nobody_s_word_for_a_ceremony(place: Place) -> None:
    """The provider's file says so, of whatever key it likes."""
    vk = "ab" * 32
    said = {"keys": [{"circuit": CIRCUIT.digest(), "name": "x", "vk": vk, "setup": "ceremony"}]}
    place.path("setup.json").write_text(json.dumps(said))
    done = trust(place, "--setup", place.path("setup.json"))
    assert done.exit_code == 0 and "pinned as unsafe" in done.stderr, done.output
    (pin,) = Trust.load(place.path("trust.toml")).pins.groth16
    assert (pin.vk, pin.setup) == (vk, "unsafe")


def test_key_that_nobody_has_contributed_to_is_said_to_be_one(place: Place) -> None:
    """Its first contributor may check it; there is no verification key of it to pin."""
    key = ceremony(place, 0)
    done = place.run("verify", key, *place.policy, *place.powers)
    assert done.exit_code == 0 and "no party contributed a secret" in done.stderr, done.output
    assert "verification key (none)" in done.stdout
    result = place.ok("verify", key, *place.policy, *place.powers)
    assert (result["vk"], result["verification_key"]["sha256"], result["keys"]) == (None, None, [])
    # A beacon's factor is known to all.
    _native.zkey_beacon(key, place.path("b.zkey"), "b", bytes.fromhex(BEACON), 10)
    result = place.ok("verify", place.path("b.zkey"), *place.policy, *place.powers)
    assert (result["vk"], result["keys"], result["setup"]) == (None, [], "unsafe")
    named = f"{CIRCUIT.name}={place.path('b.zkey')}"
    assert "no party contributed a secret, so anybody can forge proofs with this key" in trust_fails(
        place, 1, "CeremonyError", named
    )


def test_final_key_is_not_written_over_another_file(place: Place) -> None:
    key = ceremony(place)
    error = place.fails(2, "SetupError", "finalise", key, *place.policy, *place.powers, "--out", key)
    assert "exists already" in error and proving_key(CIRCUIT).manifest["phase1"] == "native-one-party"


def test_powers_to_which_only_a_beacon_contributed(place: Place) -> None:
    """Everyone knows tau."""
    shutil.copy(place.path("public.ptau"), place.path("p.ptau"))
    out = ("--out", place.path("0.zkey"))
    start = ("start", "policy.json", "--circuit", CIRCUIT.name, *place.powers, *out)
    assert (
        "no party contributed a secret to the powers of tau, so anybody can forge proofs with them"
        in place.fails(1, "CeremonyError", *start)
    )
    result = ("new", "policy.json", *place.powers)
    assert (
        "no party contributed a secret to the powers of tau, so anybody can forge proofs with them"
        in place.fails(1, "CeremonyError", *result)
    )


def test_powers_cut_from_a_larger_ceremony_are_taken_by_their_digest_only(place: Place) -> None:
    shutil.copy(place.path("p.ptau"), place.path("cut.ptau"))
    snarkjs.run(["powersoftau", "truncate", "cut.ptau"], cwd=place.root)
    (cut,) = place.root.glob("cut*03*.ptau")
    digest = sha256(cut)
    start = ("start", "policy.json", "--circuit", CIRCUIT.name, "--ptau", cut, "--out", place.path("0.zkey"))
    error = place.fails(1, "CeremonyError", *start)
    assert "claim a larger ceremony than they hold" in error and f"--ptau-sha256 {digest}" in error
    wrong = place.fails(1, "CeremonyError", *start, "--ptau-sha256", "ab" * 32)
    assert "the powers of tau are not the named ones" in wrong
    assert "hexadecimal" in place.fails(2, "EncodingError", *start, "--ptau-sha256", "AB")
    place.ok(*start, "--ptau-sha256", digest)
    named = ("--ptau", cut, "--ptau-sha256", digest)
    place.ok("contribute", place.path("0.zkey"), place.path("1.zkey"), "--name", "x")
    assert place.ok("verify", place.path("1.zkey"), *place.policy, *named)["phase1"]["sha256"] == digest
    place.fails(1, "CeremonyError", "verify", place.path("1.zkey"), *place.policy, "--ptau", cut)
    words = ("--zkey", f"{CIRCUIT.name}={place.path('1.zkey')}", "--policy", "policy.json")
    assert trust(place, *words, *named).exit_code == 0


def test_one_party_of_phase_2_is_unsafe(place: Place) -> None:
    key = ceremony(place, 1)
    # A beacon is no second party: everyone knows its secret.
    done = place.run("finalise", key, *place.policy, *place.powers, "--beacon", BEACON)
    assert done.exit_code == 0 and "UNSAFE" in done.stderr
    assert proving_key(CIRCUIT).manifest["setup"] == "unsafe"
    assert proving_key(CIRCUIT).manifest["contributions"] == 1


def test_one_party_of_phase_1_is_unsafe(place: Place) -> None:
    shutil.copy(place.path("alone.ptau"), place.path("p.ptau"))
    key = ceremony(place, 3)
    assert place.ok("verify", key, *place.policy, *place.powers)["setup"] == "unsafe"
    assert place.ok("finalise", key, *place.policy, *place.powers)["keys"][0]["setup"] == "unsafe"


def test_powers_given_to_new_are_used(place: Place) -> None:
    result = place.ok("new", "policy.json", *place.powers)["keys"]
    assert [k["setup"] for k in result] == ["unsafe", "unsafe"]
    assert proving_key(CIRCUIT).vk_digest == result[0]["vk"]
    error = place.fails(2, "SetupError", "new", "policy.json", "--ptau", place.path("alone.ptau"))
    assert "the installed key has other powers of tau" in error


def test_installed_key_is_not_replaced(place: Place) -> None:
    key = ceremony(place)
    vk = place.ok("finalise", key, *place.policy, *place.powers)["keys"][0]["vk"]
    error = place.fails(2, "SetupError", "finalise", key, *place.policy, *place.powers)
    assert "installed already" in error and vk in error
    assert proving_key(CIRCUIT).vk_digest == vk


def flip(place: Place, key: Path, at: int) -> Path:
    data = bytearray(key.read_bytes())
    data[at] ^= 1
    path = place.path("flipped.zkey")
    path.write_bytes(data)
    return path


FAULTS: dict[str, tuple[int, str, str, Callable[[Place, Path], Path]]] = {
    "truncated": (2, "SetupError", "truncated", lambda p, k: cut(p, k)),
    "not a key": (2, "SetupError", "not a .zkey file", lambda p, k: p.path("p.ptau")),
    "missing": (2, "SetupError", "No such file", lambda p, k: p.path("none.zkey")),
    "corrupted point": (2, "SetupError", "not on the curve", lambda p, k: flip(p, k, 12 + 12 + 4 + 12 + 90)),
    "corrupted record": (1, "CeremonyError", "does not continue", lambda p, k: flip(p, k, -30)),
}


def cut(place: Place, key: Path) -> Path:
    path = place.path("cut.zkey")
    path.write_bytes(key.read_bytes()[:-7])
    return path


@pytest.mark.parametrize("name", FAULTS)
def test_false_key_is_neither_verified_nor_installed(place: Place, name: str) -> None:
    code, error, reason, spoil = FAULTS[name]
    key = spoil(place, ceremony(place))
    for command in ("verify", "finalise"):
        assert reason in place.fails(code, error, command, key, *place.policy, *place.powers)
    assert proving_key(CIRCUIT).manifest["phase1"] == "native-one-party"


def test_key_of_another_circuit(place: Place) -> None:
    key = ceremony(place)
    other = ("--policy", "policy.json", "--circuit", OTHER.name, *place.powers)
    for command in ("verify", "finalise"):
        assert "another circuit" in place.fails(1, "CeremonyError", command, key, *other)
    r1cs = compile_circuit(OTHER).r1cs
    assert "another circuit" in place.fails(1, "CeremonyError", "verify", key, "--r1cs", r1cs, *place.powers)


def test_key_under_other_powers(place: Place) -> None:
    key = ceremony(place)
    other = ("--ptau", place.path("alone.ptau"))
    for command in ("verify", "finalise"):
        assert "other powers" in place.fails(1, "CeremonyError", command, key, *place.policy, *other)


def test_false_powers(place: Place) -> None:
    data = bytearray(place.path("p.ptau").read_bytes())
    # tau^1 and tau^2 of section 2 change places.
    at = 12 + 12 + 44 + 12 + 64
    data[at : at + 64], data[at + 64 : at + 128] = data[at + 64 : at + 128], data[at : at + 64]
    place.path("p.ptau").write_bytes(data)
    start = ("start", "policy.json", "--circuit", CIRCUIT.name, *place.powers, "--out", place.path("0.zkey"))
    assert "section 2" in place.fails(1, "CeremonyError", *start)
    assert not place.path("0.zkey").exists()


def test_key_that_nobody_contributed_to(place: Place) -> None:
    key = ceremony(place, 0)
    reason = "no party contributed a secret, so anybody can forge proofs with this key"
    assert reason in place.fails(1, "CeremonyError", "finalise", key, *place.policy, *place.powers)
    # Not even with a beacon: its secret is public.
    beacon = ("--beacon", BEACON)
    assert reason in place.fails(1, "CeremonyError", "finalise", key, *place.policy, *place.powers, *beacon)


def test_existing_output_is_kept(place: Place) -> None:
    key = ceremony(place)
    before = key.read_bytes()
    error = place.fails(2, "SetupError", "contribute", place.path("0.zkey"), key, "--name", "x")
    assert "exists already" in error and key.read_bytes() == before
    start = ("start", "policy.json", "--circuit", CIRCUIT.name, *place.powers, "--out", key)
    assert "exists already" in place.fails(2, "SetupError", *start)
    assert key.read_bytes() == before


@pytest.mark.parametrize("name", ["", "x" * 65, "ü" * 33, "a\x1b[31mred", "two\nlines"])
def test_name_that_is_refused(place: Place, name: str) -> None:
    ceremony(place, 0)
    done = ("contribute", place.path("0.zkey"), place.path("1.zkey"), "--name", name)
    assert "the contributor's name is not valid" in place.fails(2, "SetupError", *done)


def test_name_that_would_steer_a_terminal(place: Place) -> None:
    """Of a file that another program wrote."""
    ceremony(place, 1)
    _native.zkey_contribute(place.path("1.zkey"), place.path("2.zkey"), "a\x1b[31mred")
    text = place.run("verify", place.path("2.zkey"), *place.policy, *place.powers).stdout
    assert "\x1b" not in text and "a?[31mred" in text


@pytest.mark.parametrize("circuit", [CIRCUIT, pytest.param(None, marks=pytest.mark.full)])
def test_circuit_of_a_policy(
    circuit: Powers | None, compiled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A policy's own circuit, for which one circuit of two tenants needs no name; for time, with a small one's
    constraints in the place of its own.
    """
    # That nothing in the cache is trusted, and that powers are checked each time, is asserted of smaller ones above.
    cached = ceremonies.compile_circuit
    if circuit is not None:
        monkeypatch.setenv("XDG_CACHE_HOME", str(compiled))
        monkeypatch.setattr(ceremonies, "compile_circuit", lambda _: cached(circuit))
    monkeypatch.setattr(ceremonies, "compiled_anew", lambda i: nullcontext(ceremonies.compile_circuit(i)))
    monkeypatch.setattr(_native, "ptau_fault", cache_results(_native.ptau_fault))
    policy, folder = tmp_path / "policy.json", Place(tmp_path)
    tenants = ("--tenant", "law=8", "--tenant", "medicine=8", "--system", "groth16")
    result = ("--window", "w-1", "--n", "3", "--k-max", "2", "--eps-acc", "14", "--gains", "1,4")
    small = (
        "--lattice",
        "64",
        "--top-k",
        "2",
        "--accounts-max",
        "3",
        "--lasts",
        "1h",
        "--mechanism",
        "noise",
    )
    embedder = ("--embedder", "hashed-words-64")
    done = CliRunner().invoke(
        main, ["provider", "policy", "new", str(policy), *tenants, *result, *small, *embedder]
    )
    assert done.exit_code == 0, done.output
    _native.ptau_new(4 if circuit else 13, folder.path("p.ptau"))
    name = "retrieve-n8-d64-k2-g1x4-w40x320-r64"
    chosen = (*embedder, "--circuit", name)
    started = folder.ok("start", policy, *chosen, *folder.powers, "--out", folder.path("0.zkey"))
    assert started["name"] == name
    folder.ok("contribute", folder.path("0.zkey"), folder.path("1.zkey"), "--name", "x")
    key = ("verify", folder.path("1.zkey"), "--policy", policy, *folder.powers)
    assert folder.ok(*key, *chosen)["setup"] == "unsafe"
    assert "name one of the policy's circuits" in folder.fails(2, "SetupError", *key, *embedder)


def test_usage(place: Place) -> None:
    key = ceremony(place, 1)
    assert "exactly one" in place.fails(2, "SetupError", "verify", key, *place.powers)
    several = place.fails(2, "SetupError", "verify", key, "--policy", "policy.json", *place.powers)
    assert f"{CIRCUIT.name} or {OTHER.name}" in several
    beacon = (*place.policy, *place.powers, "--beacon", "xyz")
    assert "not canonical hexadecimal" in place.fails(2, "EncodingError", "finalise", key, *beacon)
    empty = (*place.policy, *place.powers, "--beacon", "")
    assert "beacon" in place.fails(2, "EncodingError", "finalise", key, *empty)
