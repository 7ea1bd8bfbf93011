"""Jobs, keys, proofs and their files: what verifies, what does not, and what is refused by name."""

from __future__ import annotations

import copy
import json
import pickle
import shutil
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, fields, replace
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal

import pytest

from rag_audit import _native
from rag_audit._internal.cache import write_manifest
from rag_audit._internal.canonical import digest_hex, jcs, read_json
from rag_audit._internal.node import npm_packages
from rag_audit.errors import (
    CeremonyError,
    EncodingError,
    InvalidProof,
    SchemaError,
    SetupError,
    VersionError,
    WitnessError,
)
from rag_audit.proofs.backends.groth16 import system as package
from rag_audit.proofs.backends.groth16.circuit import FOLDER as CIRCUITS
from rag_audit.proofs.backends.groth16.circuit import compile_circuit
from rag_audit.proofs.backends.groth16.encoding import BASE_MODULUS
from rag_audit.proofs.backends.groth16.job import RecordsJob
from rag_audit.proofs.backends.groth16.keys import VerificationKey, load_verification_key, proving_key
from rag_audit.proofs.backends.groth16.shared import bound, pinned_key
from rag_audit.proofs.backends.groth16.verifiers import (
    ENGINES,
    parse_records_proof,
    proof_json,
    verify,
    verify_batch,
)
from rag_audit.proofs.proving import backend
from rag_audit.proofs.statements.retrieve import Statement
from rag_audit.relation.field import MODULUS
from tests.circuits.many_case import part, proof_job, record_inputs
from tests.circuits.retrieve_case import TINY, Case, random_case

pytestmark = pytest.mark.circuits

CIRCUIT = TINY.digest()


def parsed(value: Any) -> bytes:
    """The points of a proof of one record."""
    return part(parse_records_proof(value, CIRCUIT, 1, field="proof"))


@pytest.fixture(scope="module")
def cases() -> list[Case]:
    return [random_case(TINY, seed) for seed in (21, 22)]


@pytest.fixture(scope="module")
def proofs(cases: list[Case]) -> list[dict[str, Any]]:
    return [proof_job(case).run() for case in cases]


@pytest.fixture(scope="module")
def statements(cases: list[Case]) -> list[Statement]:
    return [Statement(**case.public()) for case in cases]


@pytest.fixture(scope="module")
def key() -> VerificationKey:
    return VerificationKey.parse(proving_key(TINY).vk, field="vk")


@pytest.fixture(scope="module")
def raw(proofs: list[dict[str, Any]]) -> list[bytes]:
    return [parsed(proof) for proof in proofs]


@pytest.mark.parametrize("engine", ENGINES)
def test_proof_verifies_and_no_public_value_can_be_changed(
    key: VerificationKey, raw: list[bytes], statements: list[Statement], engine: str
) -> None:
    assert verify(key, raw[0], statements[0], engine=engine)
    assert not verify(key, raw[0], statements[1], engine=engine)
    names = [f.name for f in fields(Statement)] if engine == "native" else ["ctx"]
    for name in names:
        swapped = replace(statements[0], **{name: getattr(statements[1], name)})
        assert not verify(key, raw[0], swapped, engine=engine), name


def test_batch_names_the_bad_ones(
    key: VerificationKey, raw: list[bytes], statements: list[Statement]
) -> None:
    proofs = [raw[0], raw[1], raw[0], raw[1]]
    assert verify_batch(key, proofs, [*statements, *statements]) == []
    assert verify_batch(key, proofs, [statements[0], statements[0], statements[0], statements[0]]) == [1, 3]


def test_two_proofs_of_one_statement_differ(cases: list[Case], proofs: list[dict[str, Any]]) -> None:
    """Fresh randomness: equal records do not give equal proofs."""
    again = proof_job(cases[0]).run()
    assert again != proofs[0] and len(jcs(again)) == len(jcs(proofs[0]))


def test_job_runs_in_another_process(
    cases: list[Case], key: VerificationKey, statements: list[Statement]
) -> None:
    with ProcessPoolExecutor(1) as pool:
        proof = pool.submit(pickle.loads(pickle.dumps(proof_job(cases[0]))).run).result()
    assert verify(key, parsed(proof), statements[0])


def test_job_does_not_show_its_secrets(cases: list[Case]) -> None:
    text = repr(proof_job(cases[0]))
    for name in ("s0", "s1", "index_salt", "salt_c", "salt_k"):
        assert str(getattr(cases[0], name)) not in text


def test_job_whose_private_values_do_not_fit(cases: list[Case]) -> None:
    good = record_inputs(cases[0])
    with pytest.raises(WitnessError, match="private inputs do not satisfy"):
        RecordsJob(TINY, (replace(good, s0=cases[0].s0 + 1),)).run()
    for name in ("rows", "vector", "positions"):
        with pytest.raises(WitnessError) as caught:
            RecordsJob(TINY, (replace(good, **{name: getattr(good, name)[:-1]}),)).run()
        assert caught.value.field == name


def test_statement_refuses_what_is_no_field_element(statements: list[Statement]) -> None:
    for value in (MODULUS, -1):
        with pytest.raises(EncodingError):
            replace(statements[0], cq=value).encode(TINY.public_inputs)


def test_proof_form_round_trips(proofs: list[dict[str, Any]], raw: list[bytes]) -> None:
    assert {**proof_json(raw[0], CIRCUIT), "records": proofs[0]["records"]} == proofs[0]
    assert json.loads(jcs(proofs[0])) == proofs[0]


def p_hex() -> str:
    return f"{BASE_MODULUS:064x}"


@pytest.mark.parametrize(
    "fault, change, error, field",
    [
        ("extra field", lambda p: p.update(d=[]), SchemaError, "proof"),
        ("missing field", lambda p: p.pop("c"), SchemaError, "proof"),
        ("other system", lambda p: p.update(system="plonk"), SchemaError, "proof.system"),
        ("other circuit", lambda p: p.update(circuit="00" * 32), SchemaError, "proof.circuit"),
        ("upper case", lambda p: p["a"].__setitem__(0, p["a"][0][:-1] + "A"), EncodingError, "proof.a[0]"),
        ("short coordinate", lambda p: p["a"].__setitem__(1, p["a"][1][1:]), EncodingError, "proof.a[1]"),
        ("decimal coordinate", lambda p: p["a"].__setitem__(0, 5), EncodingError, "proof.a[0]"),
        ("negative", lambda p: p["a"].__setitem__(0, "-" + p["a"][0][1:]), EncodingError, "proof.a[0]"),
        ("coordinate p", lambda p: p["c"].__setitem__(0, p_hex()), EncodingError, "proof.c[0]"),
        ("coordinate p in G2", lambda p: p["b"][0].__setitem__(1, p_hex()), EncodingError, "proof.b[0][1]"),
        ("three coordinates", lambda p: p["a"].append("00" * 32), EncodingError, "proof.a"),
        ("infinity in G1", lambda p: p.update(a=["00" * 32] * 2), EncodingError, "proof.a"),
        ("infinity in G2", lambda p: p.update(b=[["00" * 32] * 2] * 2), EncodingError, "proof.b"),
        ("off the curve in G1", lambda p: p["c"].reverse(), EncodingError, "proof.c"),
        ("off the curve in G2", lambda p: p["b"].reverse(), EncodingError, "proof.b"),
        ("Fp2 parts swapped", lambda p: [x.reverse() for x in p["b"]], EncodingError, "proof.b"),
    ],
)
def test_proof_that_is_refused(
    proofs: list[dict[str, Any]], fault: str, change: Any, error: type[Exception], field: str
) -> None:
    broken = copy.deepcopy(proofs[0])
    change(broken)
    with pytest.raises(error) as caught:
        parsed(broken)
    assert caught.value.field == field, fault  # type: ignore[attr-defined]


def test_list_for_a_proof_is_refused() -> None:
    with pytest.raises(SchemaError):
        parsed([])


def test_point_outside_the_subgroup_is_refused_by_the_verifier(
    key: VerificationKey, proofs: list[dict[str, Any]], statements: list[Statement]
) -> None:
    broken = copy.deepcopy(proofs[0])
    broken["b"] = off_subgroup()
    proof = parsed(broken)
    for engine in ENGINES:
        with pytest.raises(EncodingError):
            verify(key, proof, statements[0], engine=engine)


def off_subgroup() -> list[list[str]]:
    """A point of the twist that is not in the subgroup of order r: one with small x, almost surely."""
    from py_ecc.fields import bn128_FQ2 as FQ2

    p = BASE_MODULUS
    twist = FQ2([3, 0]) / FQ2([9, 1])
    for x in range(1, 100):
        square = FQ2([x, 0]) ** 3 + twist
        # A root in Fp2, p = 3 mod 4: by the norm.
        a, b = (int(c) for c in square.coeffs)
        norm = pow(a * a + b * b, (p + 1) // 4, p)
        for sign in (1, -1):
            half = (a + sign * norm) * pow(2, -1, p) % p
            re = pow(half, (p + 1) // 4, p)
            if re and re * re % p == half:
                im = b * pow(2 * re, -1, p) % p
                if FQ2([re, im]) ** 2 == square:
                    return [[f"{x:064x}", f"{0:064x}"], [f"{re:064x}", f"{im:064x}"]]
    raise AssertionError("no point found")


def negative(point: list[list[str]]) -> list[list[str]]:
    """A point of G2 in our JSON, negated."""
    return [point[0], [f"{BASE_MODULUS - int(c, 16):064x}" for c in point[1]]]


def test_key_is_pinned_with_its_circuit(key: VerificationKey) -> None:
    files = proving_key(TINY)
    assert key.circuit == CIRCUIT
    assert key.digest == files.vk_digest == digest_hex(files.vk)
    names = ["key.zkey", "verification_key.json"]
    assert files.manifest == {
        "circuit": CIRCUIT,
        "contributions": 1,
        "files": {name: sha256((files.zkey.parent / name).read_bytes()).hexdigest() for name in names},
        "name": TINY.name,
        "phase1": "native-one-party",
        "setup": "unsafe",
        "vk": key.digest,
    }
    other = {**files.vk, "circuit": "00" * 32}
    assert VerificationKey.parse(other, field="vk").digest != key.digest


@pytest.mark.parametrize(
    "change, error",
    [
        (lambda k: k.update(extra=1), SchemaError),
        (lambda k: k.update(system="plonk"), SchemaError),
        (lambda k: k.update(circuit="xyz"), EncodingError),
        (lambda k: k.update(ic=k["ic"][:1]), SchemaError),
        (lambda k: k["ic"].__setitem__(3, ["00" * 32] * 2), EncodingError),
        (lambda k: k["alpha"].reverse(), EncodingError),
        (lambda k: k["gamma"][0].__setitem__(0, p_hex()), EncodingError),
        (lambda k: k.update(delta=k["gamma"]), CeremonyError),
        (lambda k: k.update(delta=negative(k["gamma"])), CeremonyError),
    ],
)
def test_key_that_is_refused(
    key: VerificationKey, tmp_path: Path, change: Any, error: type[Exception]
) -> None:
    value = copy.deepcopy(key.value)
    change(value)
    path = tmp_path / "verification_key.json"
    path.write_bytes(jcs(value))
    with pytest.raises(error):
        load_verification_key(path)


def test_key_with_fewer_inputs_than_the_statement(
    key: VerificationKey, raw: list[bytes], statements: list[Statement]
) -> None:
    short = VerificationKey.parse({**key.value, "ic": key.value["ic"][:-1]}, field="vk")
    with pytest.raises(EncodingError):
        verify(short, raw[0], statements[0])


@pytest.fixture
def copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of the test's own, with copies of TINY's circuit and key; the latter's folder."""
    compiled, key = compile_circuit(TINY).folder, proving_key(TINY).zkey.parent
    packages = npm_packages().parent
    own = tmp_path / "cache" / "rag-audit"
    for source in (compiled, key):
        shutil.copytree(source, own / source.parent.name / source.name)
    (own / packages.name).symlink_to(packages)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return own / key.parent.name / key.name


def swap_inputs(path: Path) -> None:
    value = json.loads(path.read_bytes())
    value["ic"][1], value["ic"][2] = value["ic"][2], value["ic"][1]
    path.write_bytes(jcs(value))


def flip_middle(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


@pytest.mark.parametrize(
    "name, change", [("verification_key.json", swap_inputs), ("key.zkey", flip_middle)], ids=["vk", "zkey"]
)
def test_altered_cached_key_is_noticed(copied: Path, name: str, change: Callable[[Path], None]) -> None:
    proving_key(TINY)
    change(copied / name)
    with pytest.raises(SetupError, match="a cached file does not match its manifest") as caught:
        proving_key(TINY)
    assert caught.value.field == str(copied / name)
    assert caught.value.hint is not None and str(copied) in caught.value.hint


def test_altered_verification_key_under_an_altered_manifest_is_noticed(copied: Path) -> None:
    swap_inputs(copied / "verification_key.json")
    write_manifest(copied, read_json(copied / "manifest.json", max_bytes=1 << 20))
    with pytest.raises(SetupError, match="a cached key does not match its manifest"):
        proving_key(TINY)


@pytest.mark.parametrize(
    "name", ["main.r1cs", "main.sym", "main_js/main.wasm", "main_js/witness_calculator.js"]
)
def test_altered_cached_circuit_is_noticed(copied: Path, name: str) -> None:
    path = copied.parents[1] / CIRCUITS / CIRCUIT / name
    flip_middle(path)
    with pytest.raises(SetupError, match="a cached file does not match its manifest") as caught:
        compile_circuit(TINY)
    assert caught.value.field == str(path)


def test_cached_circuit_of_another_digest_is_noticed(copied: Path) -> None:
    folder = copied.parents[1] / CIRCUITS / CIRCUIT
    manifest = read_json(folder / "manifest.json", max_bytes=1 << 20)
    write_manifest(folder, {**manifest, "circuit": "00" * 32})
    with pytest.raises(SetupError, match="the cached circuit is another one"):
        compile_circuit(TINY)


def test_a_proof_is_checked_under_the_published_key(cases: list[Case], copied: Path) -> None:
    """The cache's proving key is a whole and working one of the circuit, but not the verification key's."""
    _native.groth16_setup_one_party(compile_circuit(TINY).r1cs, copied / "key.zkey")
    write_manifest(copied, read_json(copied / "manifest.json", max_bytes=1 << 20))
    with pytest.raises(SetupError, match="the proof does not verify under the published key") as caught:
        proof_job(cases[0]).run()
    assert caught.value.field == str(copied / "key.zkey")


def test_a_job_proves_under_no_other_key_than_its_own(cases: list[Case]) -> None:
    """On a machine whose cache has another key than the one that the window publishes."""
    job = bound(proof_job(cases[0]))
    keys = job.keys
    assert keys == {CIRCUIT: proving_key(TINY).vk_digest} == {CIRCUIT: job.vk}
    with pytest.raises(SetupError, match="another than the published one") as caught:
        replace(job, vk="ab" * 32).run()
    assert caught.value.expected == f"vk {'ab' * 32}"


@dataclass(frozen=True)
class Pinned:
    """Accepts one digest for one circuit."""

    circuit: str
    vk: str
    setup: Literal["unsafe", "ceremony"] = "ceremony"

    def key(self, circuit: str) -> Pinned | None:
        return self if circuit == self.circuit else None

    def artefact(self, name: str) -> str | None:
        return None


def test_key_that_names_another_circuit(key: VerificationKey) -> None:
    """Even if it is the pinned one: whoever made the pin was given another circuit's key."""
    assert pinned_key(CIRCUIT, {CIRCUIT: key.value}, Pinned(CIRCUIT, key.digest)).key == key
    other = "ab" * 32
    with pytest.raises(InvalidProof, match="another circuit's") as caught:
        pinned_key(other, {other: key.value}, Pinned(other, key.digest))
    assert (caught.value.expected, caught.value.actual) == (other, CIRCUIT)


@pytest.mark.parametrize(
    "damage",
    [lambda d: b"", lambda d: d[:-100], lambda d: d[:3] + b"x" + d[4:], lambda d: d[: len(d) // 2]],
    ids=["empty", "end cut off", "another kind of file", "cut in the middle"],
)
def test_damaged_proving_key_is_named(
    cases: list[Case], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: Any
) -> None:
    files = proving_key(TINY)
    broken = tmp_path / "key.zkey"
    broken.write_bytes(damage(files.zkey.read_bytes()))
    monkeypatch.setattr(
        "rag_audit.proofs.backends.groth16.job.proving_key", lambda _: replace(files, zkey=broken)
    )
    with pytest.raises(SetupError, match="the prover failed") as caught:
        proof_job(cases[0]).run()
    assert caught.value.field == str(broken)


def test_missing_powers_of_tau_are_named(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="powers of tau cannot be read") as caught:
        proving_key(TINY, ptau=tmp_path / "none.ptau")
    assert caught.value.field == str(tmp_path / "none.ptau")


def test_registry() -> None:
    assert backend("groth16") is package.SYSTEM
    with pytest.raises(VersionError):
        backend("plonk")
