"""Valid proofs verify and broken ones fail in each verifier; what is malformed is refused by name in each.

Broken proofs are made of valid curve points, so that they reach every verifier's own pairing check.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest
from conftest import Setup, encode, verifies
from systems import off_subgroup, random_system

from rag_audit import _native
from rag_audit.errors import EncodingError
from rag_audit.proofs.backends.groth16 import pyecc, snarkjs, verifiers
from rag_audit.proofs.backends.groth16.keys import VerificationKey
from rag_audit.relation.field import MODULUS

P = pyecc.P
G1, G2, add, multiply, neg, normalize = (
    getattr(pyecc.curve, name) for name in ("G1", "G2", "add", "multiply", "neg", "normalize")
)
Verifier = Callable[[str, bytes, bytes], bool]
STRICT = [
    pytest.param(verifies, id="native"),
    pytest.param(pyecc.verify, id="py_ecc"),
    pytest.param(snarkjs.verify, id="snarkjs"),
]
"""Malformed parts are refused before Node is started."""
ALL = [*STRICT[:2], pytest.param(snarkjs.verify, id="snarkjs", marks=pytest.mark.circuits)]
REFUSED = (ValueError, EncodingError)


def words(*values: int) -> bytes:
    return b"".join(v.to_bytes(32, "big") for v in values)


def g1_bytes(point: Any) -> bytes:
    x, y = normalize(point)
    return words(int(x), int(y))


def g2_bytes(point: Any) -> bytes:
    x, y = normalize(point)
    return words(*(int(v.coeffs[i]) for v in (x, y) for i in (1, 0)))


def g1_point(data: bytes) -> Any:
    return pyecc._g1(int.from_bytes(data[:32], "big"), int.from_bytes(data[32:64], "big"), "test")


@pytest.mark.parametrize("verify", ALL)
def test_valid_proof(setup: Setup, verify: Verifier) -> None:
    assert verify(setup.vk, setup.proof, setup.inputs)


@pytest.mark.parametrize("verify", ALL)
@pytest.mark.parametrize("part", ["a", "b", "c"])
def test_another_point(setup: Setup, verify: Verifier, part: str) -> None:
    a, b, c = setup.proof[:64], setup.proof[64:192], setup.proof[192:]
    if part == "a":
        a = g1_bytes(add(g1_point(a), G1))
    elif part == "b":
        b = g2_bytes(multiply(G2, 7))
    else:
        c = g1_bytes(neg(g1_point(c)))
    assert not verify(setup.vk, a + b + c, setup.inputs)


@pytest.mark.parametrize("verify", ALL)
@pytest.mark.parametrize("index", [0, 1, 2])
def test_another_input(setup: Setup, verify: Verifier, index: int) -> None:
    inputs = setup.system.inputs()
    inputs[index] = (inputs[index] + 1) % MODULUS
    assert not verify(setup.vk, setup.proof, encode(inputs))


@pytest.mark.parametrize("verify", ALL)
def test_swapped_inputs(setup: Setup, verify: Verifier) -> None:
    x, y, z = setup.system.inputs()
    assert not verify(setup.vk, setup.proof, encode([y, x, z]))


@pytest.mark.parametrize("verify", ALL)
def test_key_of_another_delta(setup: Setup, verify: Verifier) -> None:
    vk = json.loads(setup.vk)
    vk["vk_delta_2"] = vk["vk_beta_2"]
    assert not verify(json.dumps(vk), setup.proof, setup.inputs)


def negated(point: list[list[str]]) -> list[list[str]]:
    """A point of G2 in snarkjs's JSON, negated."""
    return [point[0], [str(P - int(c)) for c in point[1]], point[2]]


@pytest.mark.parametrize("verify", STRICT)
@pytest.mark.parametrize("sign", [1, -1])
def test_forged_proof_under_a_key_without_a_secret(setup: Setup, verify: Verifier, sign: int) -> None:
    """Where delta is gamma, or its negative, A = alpha, B = beta, C = -+IC(x) satisfy the equation for any x."""
    vk = json.loads(setup.vk)
    del vk["vk_alphabeta_12"]
    vk["vk_delta_2"] = vk["vk_gamma_2"] if sign == 1 else negated(vk["vk_gamma_2"])
    values = [1, 2, 3]
    alpha, *ic = (pyecc._g1_json(point, "test") for point in (vk["vk_alpha_1"], *vk["IC"]))
    total = ic[0]
    for value, point in zip(values, ic[1:], strict=True):
        total = add(total, multiply(point, value))
    forged = g1_bytes(neg(total) if sign == 1 else total)
    proof = g1_bytes(alpha) + g2_bytes(pyecc._g2_json(vk["vk_beta_2"], "test")) + forged
    with pytest.raises(REFUSED, match="delta is gamma"):
        verify(json.dumps(vk), proof, encode(values))


def test_no_verification_key_before_a_contribution(setup: Setup, tmp_path: Any) -> None:
    _native.zkey_new(setup.r1cs, setup.ptau, tmp_path / "0.zkey")
    with pytest.raises(ValueError, match="delta is gamma"):
        _native.groth16_verification_key(tmp_path / "0.zkey")
    with pytest.raises(ValueError, match="delta is gamma"):
        _native.groth16_prove(tmp_path / "0.zkey", setup.system.wtns())


def test_proofs_are_randomised(setup: Setup) -> None:
    again = _native.groth16_prove(setup.zkey, setup.system.wtns())
    assert again != setup.proof
    assert all(again[i : i + 64] != setup.proof[i : i + 64] for i in range(0, 256, 64))
    assert verifies(setup.vk, again, setup.inputs)


@pytest.mark.circuits
def test_snarkjs_proves_under_our_key(setup: Setup) -> None:
    proof = snarkjs.prove(setup.zkey, setup.system.wtns())
    assert verifies(setup.vk, proof, setup.inputs)
    assert pyecc.verify(setup.vk, proof, setup.inputs)


MALFORMED_PROOFS = {
    "empty": lambda p: b"",
    "truncated": lambda p: p[:-1],
    "extended": lambda p: p + b"\0",
    "a_at_infinity": lambda p: bytes(64) + p[64:],
    "b_at_infinity": lambda p: p[:64] + bytes(128) + p[192:],
    "c_at_infinity": lambda p: p[:192] + bytes(64),
    "a_off_curve": lambda p: words(1, 1) + p[64:],
    "b_off_curve": lambda p: p[:64] + words(1, 1, 1, 1) + p[192:],
    "b_outside_subgroup": lambda p: p[:64] + off_subgroup() + p[192:],
    "coordinate_plus_p": lambda p: words(int.from_bytes(p[:32], "big") + P) + p[32:],
    "coordinate_all_ones": lambda p: p[:192] + b"\xff" * 32 + p[224:],
}


@pytest.mark.parametrize("verify", STRICT)
@pytest.mark.parametrize("fault", MALFORMED_PROOFS)
def test_malformed_proof(setup: Setup, verify: Verifier, fault: str) -> None:
    with pytest.raises(REFUSED, match="proof"):
        verify(setup.vk, MALFORMED_PROOFS[fault](setup.proof), setup.inputs)


def test_off_subgroup_point_is_on_the_curve(setup: Setup) -> None:
    """The subgroup check is what refuses it: it passes the check before."""
    with pytest.raises(ValueError, match="proof: B: the point is not in the subgroup of order r"):
        verifies(setup.vk, setup.proof[:64] + off_subgroup() + setup.proof[192:], setup.inputs)


MALFORMED_INPUTS = {
    "none": lambda x: b"",
    "one_less": lambda x: x[:-32],
    "one_more": lambda x: x + bytes(32),
    "part_of_one": lambda x: x[:-1],
    "r": lambda x: words(MODULUS) + x[32:],
    "plus_r": lambda x: words(int.from_bytes(x[:32], "big") + MODULUS) + x[32:],
    "all_ones": lambda x: x[:-32] + b"\xff" * 32,
}


@pytest.mark.parametrize("verify", STRICT)
@pytest.mark.parametrize("fault", MALFORMED_INPUTS)
def test_malformed_inputs(setup: Setup, verify: Verifier, fault: str) -> None:
    with pytest.raises(REFUSED, match="input"):
        verify(setup.vk, setup.proof, MALFORMED_INPUTS[fault](setup.inputs))


def edit(path: list[Any], value: Any) -> Callable[[dict[str, Any]], None]:
    def apply(vk: dict[str, Any]) -> None:
        target: Any = vk
        for step in path[:-1]:
            target = target[step]
        target[path[-1]] = value

    return apply


MALFORMED_KEYS: dict[str, Callable[[dict[str, Any]], None]] = {
    "extra_field": edit(["comment"], "x"),
    "missing_field": lambda vk: vk.pop("vk_gamma_2"),
    "other_protocol": edit(["protocol"], "plonk"),
    "other_curve": edit(["curve"], "bls12381"),
    "negative_decimal": edit(["vk_alpha_1", 0], "-1"),
    "leading_zero": lambda vk: vk["vk_alpha_1"].__setitem__(0, "0" + vk["vk_alpha_1"][0]),
    "plus_sign": lambda vk: vk["vk_alpha_1"].__setitem__(0, "+" + vk["vk_alpha_1"][0]),
    "trailing_newline": lambda vk: vk["vk_alpha_1"].__setitem__(0, vk["vk_alpha_1"][0] + "\n"),
    "arabic_digits": edit(["vk_alpha_1", 0], "١٢"),
    "hexadecimal": edit(["vk_alpha_1", 0], "0x1"),
    "huge_decimal": edit(["vk_alpha_1", 0], "1" * 5000),
    "plus_p": lambda vk: vk["vk_alpha_1"].__setitem__(0, str(int(vk["vk_alpha_1"][0]) + P)),
    "number_for_string": edit(["vk_alpha_1", 0], 1),
    "alpha_at_infinity": edit(["vk_alpha_1"], ["0", "1", "0"]),
    "alpha_zero": edit(["vk_alpha_1"], ["0", "0", "1"]),
    "alpha_off_curve": edit(["vk_alpha_1"], ["1", "1", "1"]),
    "beta_at_infinity": edit(["vk_beta_2"], [["0", "0"], ["1", "0"], ["0", "0"]]),
    "delta_outside_subgroup": lambda vk: edit(
        ["vk_delta_2"],
        [
            *([str(int.from_bytes(off_subgroup()[i : i + 32], "big")) for i in (k + 32, k)] for k in (0, 64)),
            ["1", "0"],
        ],
    )(vk),
    "point_of_another_curve": edit(
        ["vk_alpha_1"],
        [
            "3685416753713387016781088315183077757961620795782546409894578378688607592378",
            "1339506544944476473020471379941921221584933875938349620426543736416511423956",
            "1",
        ],
    ),
    "ic_too_short": lambda vk: vk["IC"].pop(),
    "ic_too_long": lambda vk: vk["IC"].append(vk["IC"][0]),
    "ic_at_infinity": edit(["IC", 1], ["0", "1", "0"]),
    "n_public": edit(["nPublic"], 2),
}


@pytest.mark.parametrize("verify", STRICT)
@pytest.mark.parametrize("fault", MALFORMED_KEYS)
def test_malformed_key(setup: Setup, verify: Verifier, fault: str) -> None:
    vk = json.loads(setup.vk)
    MALFORMED_KEYS[fault](vk)
    with pytest.raises(REFUSED, match=r"key|vk|input"):
        verify(json.dumps(vk), setup.proof, setup.inputs)


@pytest.mark.parametrize("verify", STRICT)
@pytest.mark.parametrize(
    "text", ["", "[]", "{", '{"protocol": "groth16", "protocol": "groth16"}', "[" * 100000]
)
def test_key_that_is_no_object(setup: Setup, verify: Verifier, text: str) -> None:
    with pytest.raises(REFUSED, match=r"key|vk"):
        verify(text, setup.proof, setup.inputs)


@pytest.mark.parametrize("verify", STRICT)
def test_duplicate_field(setup: Setup, verify: Verifier) -> None:
    text = setup.vk.replace('"nPublic": 3', '"nPublic": 3, "nPublic": 3')
    assert text != setup.vk
    with pytest.raises(REFUSED, match="duplicate"):
        verify(text, setup.proof, setup.inputs)


def test_alphabeta_must_be_the_pairing(setup: Setup) -> None:
    vk = json.loads(setup.vk)
    vk["vk_alphabeta_12"][0][0][0] = "1"
    with pytest.raises(ValueError, match="vk_alphabeta_12: the value is not the pairing"):
        verifies(json.dumps(vk), setup.proof, setup.inputs)
    del vk["vk_alphabeta_12"]
    assert verifies(json.dumps(vk), setup.proof, setup.inputs)


def batch(setup: Setup, count: int) -> tuple[list[bytes], list[bytes]]:
    """Proofs of one circuit for different inputs: each system draws its own values, the key is for one shape."""
    proofs = [_native.groth16_prove(setup.zkey, setup.system.wtns()) for _ in range(count)]
    return proofs, [setup.inputs] * count


@pytest.mark.parametrize("bad", [[], [0], [12], [5], [3, 4], [0, 7, 12], list(range(13))])
def test_batch_names_the_bad_ones(setup: Setup, bad: list[int]) -> None:
    proofs, inputs = batch(setup, 13)
    wrong = encode([v ^ 1 for v in setup.system.inputs()])
    inputs = [wrong if i in bad else x for i, x in enumerate(inputs)]
    assert _native.groth16_verify_batch(setup.vk, proofs, inputs) == [(i, None) for i in bad]


def test_batch_errors_that_cancel_without_weights(setup: Setup) -> None:
    """C + D in one proof and C - D in another: an unweighted product would accept both."""
    proofs, inputs = batch(setup, 4)
    shift = multiply(G1, 12345)
    for i, delta in ((1, shift), (2, neg(shift))):
        proofs[i] = proofs[i][:192] + g1_bytes(add(g1_point(proofs[i][192:]), delta))
    assert _native.groth16_verify_batch(setup.vk, proofs, inputs) == [(1, None), (2, None)]


def test_batch_of_none(setup: Setup) -> None:
    assert _native.groth16_verify_batch(setup.vk, [], []) == []


def test_batch_malformed_is_named_and_hides_no_false_one(setup: Setup) -> None:
    proofs, inputs = batch(setup, 5)
    proofs[1] = proofs[1][:64] + off_subgroup() + proofs[1][192:]
    inputs[2] = words(MODULUS) + inputs[2][32:]
    inputs[3] = encode([v ^ 1 for v in setup.system.inputs()])
    inputs[4] = inputs[4][:64]
    assert _native.groth16_verify_batch(setup.vk, proofs, inputs) == [
        (1, "proof: B: the point is not in the subgroup of order r"),
        (2, "public input 0: the value is not below the group order"),
        (3, None),
        (4, "public inputs: expected 3 values, found 2"),
    ]
    with pytest.raises(ValueError, match="expected 5 lists, one for each proof, found 4"):
        _native.groth16_verify_batch(setup.vk, proofs, inputs[:4])


def test_an_engine_s_malformed_proof_hides_no_false_one(setup: Setup) -> None:
    """One by one as well: `failures` names each, with any engine."""
    outside = setup.proof[:64] + off_subgroup() + setup.proof[192:]
    wrong = encode([v ^ 1 for v in setup.system.inputs()])
    key = cast(VerificationKey, SimpleNamespace(snarkjs=setup.vk))
    for engine in ("native", "py_ecc"):
        result = dict(verifiers._refused(key, [outside, setup.proof], [setup.inputs, wrong], engine))
        assert result.keys() == {0, 1} and result[1] is None
        assert "not in the subgroup of order r" in str(result[0])
    no_key = cast(VerificationKey, SimpleNamespace(snarkjs=setup.vk.replace("groth16", "other")))
    with pytest.raises(EncodingError, match="not a Groth16 key"):
        verifiers._refused(no_key, [outside], [setup.inputs], "py_ecc")


def test_keys_with_the_same_text_prefix_are_not_confused(setup: Setup, tmp_path: Any) -> None:
    """Verification remembers parsed keys: another key must not be answered from memory."""
    assert verifies(setup.vk, setup.proof, setup.inputs)
    other = random_system(40, seed=2)
    (tmp_path / "o.r1cs").write_bytes(other.r1cs())
    _native.groth16_setup(tmp_path / "o.r1cs", setup.ptau, tmp_path / "o.zkey")
    vk = _native.groth16_verification_key(tmp_path / "o.zkey")
    assert not verifies(vk, setup.proof, setup.inputs)
    assert verifies(setup.vk, setup.proof, setup.inputs)
