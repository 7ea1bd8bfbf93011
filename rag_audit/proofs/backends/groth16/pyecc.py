"""A Groth16 verifier on py_ecc's fields, curves and pairing. It is independent of the native one in arithmetic, parsing
and checks, and therefore slow.

This module shares no code with the native core or with the parsers of this package's file formats, so that it does not
repeat their mistakes (Groth 2016, section 3.2; EIP-197 for the byte order).
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from itertools import accumulate
from typing import Any, TypeAlias, cast

from rag_audit._internal.errors import EncodingError, kind_of


def import_py_ecc(name: str) -> Any:
    """Import a module of py_ecc by its full name and leave the recursion limit as it was.

    `import py_ecc` raises the interpreter's recursion limit to 100,000, and from then on a deeply nested JSON document
    ends the process with a stack overflow instead of a RecursionError. The curves here recurse a few hundred levels.
    """
    limit = sys.getrecursionlimit()
    try:
        return import_module(name)
    finally:
        sys.setrecursionlimit(limit)


_fields = import_py_ecc("py_ecc.fields")
curve = import_py_ecc("py_ecc.optimized_bn128.optimized_curve")
_pairing = import_py_ecc("py_ecc.optimized_bn128.optimized_pairing")
FQ, FQ2, FQ12 = (_fields.optimized_bn128_FQ, _fields.optimized_bn128_FQ2, _fields.optimized_bn128_FQ12)

P = 21888242871839275222246405745257275088696311157297823662689037894645226208583
R = 21888242871839275222246405745257275088548364400416034343698204186575808495617
PROOF_BYTES = 256
MAX_KEY_CHARACTERS = 1 << 20
_DECIMAL = re.compile(r"(0|[1-9][0-9]{0,76})\Z", re.ASCII)
_KEYS = {"protocol", "curve", "nPublic", "vk_alpha_1", "vk_beta_2", "vk_gamma_2", "vk_delta_2", "IC"}

Point: TypeAlias = Any
"""A point in py_ecc's projective form (x, y, z) over FQ or FQ2, of types that it makes as it is imported."""


@dataclass(frozen=True)
class Key:
    """A verification key, with every point checked.

    :param ic: one point more than there are public inputs
    :param alpha_beta: the pairing of -alpha and beta before the final exponentiation
    """

    gamma: Point
    delta: Point
    ic: Sequence[Point]
    alpha_beta: Any


@dataclass(frozen=True)
class Parsed:
    """A key, a proof and its public inputs, with every point checked.

    :param a: A, like B and C a part of the proof
    :param inputs: the public inputs, below r
    """

    key: Key
    a: Point
    b: Point
    c: Point
    inputs: Sequence[int]


def verify(vk_json: str, proof: bytes, inputs: bytes) -> bool:
    """Whether a proof verifies.

    :raises EncodingError: as `parse`
    """
    p = parse(vk_json, proof, inputs)
    total = p.key.ic[0]
    for value, point in zip(p.inputs, p.key.ic[1:], strict=True):
        total = curve.add(total, curve.multiply(point, value))
    product = p.key.alpha_beta
    for q, point in ((p.b, p.a), (p.key.gamma, curve.neg(total)), (p.key.delta, curve.neg(p.c))):
        product *= _pairing.pairing(q, point, final_exponentiate=False)
    return bool(_pairing.final_exponentiate(product) == FQ12.one())


def parse(vk_json: str, proof: bytes, inputs: bytes) -> Parsed:
    """Parse a key, a proof and its inputs, with every check that must precede the pairing.

    :param vk_json: verification key, snarkjs's JSON
    :param proof: 256 bytes: A.x A.y, B.x1 B.x0 B.y1 B.y0, C.x C.y, each 32 bytes big-endian
    :param inputs: public inputs, 32 bytes big-endian each
    :raises EncodingError: a part is not canonical, a point is at infinity, off the curve or outside the subgroup of
        order r, delta is gamma or its negative, an input is not below r, or the number of inputs is not the key's
    """
    key = _key(vk_json)
    values = _inputs(inputs)
    if len(values) != len(key.ic) - 1:
        raise EncodingError(
            "the number of public inputs is wrong",
            field="inputs",
            expected=f"{len(key.ic) - 1}",
            actual=f"{len(values)}",
        )
    return Parsed(key, *_proof(proof), values)


def check_key(vk_json: str) -> None:
    """Refuse a key that can verify no proof.

    :raises EncodingError: as `parse`, only for the key
    """
    _key(vk_json)


@lru_cache(maxsize=64)
def _key(vk_json: str) -> Key:
    """A key from its text, cached. Its checks take a third of a verification, and a window has few keys and many
    proofs."""
    key = _object(vk_json)
    if key["protocol"] != "groth16" or key["curve"] != "bn128":
        raise EncodingError(
            "the key is not a Groth16 key over bn128", field="vk", actual=f"{key['protocol']} {key['curve']}"
        )
    alpha = _g1_json(key["vk_alpha_1"], "vk.vk_alpha_1")
    beta, gamma, delta = (
        _g2_json(key[name], f"vk.{name}") for name in ("vk_beta_2", "vk_gamma_2", "vk_delta_2")
    )
    if curve.normalize(delta)[0] == curve.normalize(gamma)[0]:
        raise EncodingError("delta is gamma: anyone can forge proofs under this key", field="vk.vk_delta_2")
    if not isinstance(key["IC"], list) or type(key["nPublic"]) is not int:
        raise EncodingError("IC and nPublic are not a list and an integer", field="vk.IC")
    ic = [_g1_json(point, f"vk.IC[{i}]") for i, point in enumerate(key["IC"])]
    if key["nPublic"] != len(ic) - 1:
        raise EncodingError(
            "IC does not have one point more than there are inputs",
            field="vk.IC",
            expected=f"{key['nPublic'] + 1}",
            actual=f"{len(ic)}",
        )
    return Key(gamma, delta, ic, _pairing.pairing(beta, curve.neg(alpha), final_exponentiate=False))


def _object(text: str) -> dict[str, object]:
    def pairs(items: list[tuple[str, object]]) -> dict[str, object]:
        out = dict(items)
        if len(out) != len(items):
            raise EncodingError("duplicate JSON key", field="vk")
        return out

    if len(text) > MAX_KEY_CHARACTERS or _depth(text) > 4:
        raise EncodingError(
            "the key is too long or nested too deeply",
            field="vk",
            expected=f"{MAX_KEY_CHARACTERS} characters",
        )
    try:
        value: object = json.loads(text, object_pairs_hook=pairs)
    except (json.JSONDecodeError, RecursionError) as exc:
        raise EncodingError("not valid JSON", field="vk", actual=str(exc)) from exc
    if not isinstance(value, dict) or set(value) - {"vk_alphabeta_12"} != _KEYS:
        actual = sorted(value) if isinstance(value, dict) else kind_of(value)
        raise EncodingError("the fields do not match a verification key", field="vk", actual=actual)
    return value


def _depth(text: str) -> int:
    """The deepest nesting of brackets in a key's text; no string of a key has brackets."""
    steps = (1 if bracket in "[{" else -1 for bracket in re.findall(r"[][{}]", text))
    return max(accumulate(steps), default=0)


def _proof(data: bytes) -> tuple[Point, Point, Point]:
    if len(data) != PROOF_BYTES:
        raise EncodingError(
            "the proof has another size", field="proof", expected=PROOF_BYTES, actual=len(data)
        )
    n = [int.from_bytes(data[i : i + 32], "big") for i in range(0, PROOF_BYTES, 32)]
    for i, value in enumerate(n):
        if value >= P:
            raise EncodingError("a coordinate is not below p", field=f"proof[{i}]")
    return (
        _g1(n[0], n[1], "proof.a"),
        _g2((n[3], n[2]), (n[5], n[4]), "proof.b"),
        _g1(n[6], n[7], "proof.c"),
    )


def _inputs(data: bytes) -> list[int]:
    if len(data) % 32:
        raise EncodingError("the public inputs are not 32 bytes each", field="inputs", actual=len(data))
    values = [int.from_bytes(data[i : i + 32], "big") for i in range(0, len(data), 32)]
    for i, value in enumerate(values):
        if value >= R:
            raise EncodingError("a public input is not below r", field=f"inputs[{i}]", expected="below r")
    return values


def _g1(x: int, y: int, field: str) -> Point:
    if x == 0 and y == 0:
        raise EncodingError("the point is at infinity", field=field)
    point = (FQ(x), FQ(y), FQ.one())
    if not curve.is_on_curve(point, curve.b):
        raise EncodingError("the point is not on the curve", field=field)
    return point


def _g2(x: tuple[int, int], y: tuple[int, int], field: str) -> Point:
    if not any((*x, *y)):
        raise EncodingError("the point is at infinity", field=field)
    point = (FQ2(x), FQ2(y), FQ2.one())
    if not curve.is_on_curve(point, curve.b2):
        raise EncodingError("the point is not on the curve", field=field)
    if not curve.is_inf(curve.multiply(point, R)):
        raise EncodingError("the point is not in the subgroup of order r", field=field)
    return point


def _g1_json(value: object, field: str) -> Point:
    x, y, z = _decimals(value, 3, field)
    if z != 1:
        raise EncodingError("the point is at infinity or not affine", field=field)
    return _g1(x, y, field)


def _g2_json(value: object, field: str) -> Point:
    if not isinstance(value, list) or len(value) != 3:
        raise EncodingError("not a list of 3", field=field)
    x, y, z = (tuple(_decimals(pair, 2, field)) for pair in value)
    if z != (1, 0):
        raise EncodingError("the point is at infinity or not affine", field=field)
    return _g2(cast("tuple[int, int]", x), cast("tuple[int, int]", y), field)


def _decimals(value: object, count: int, field: str) -> Iterator[int]:
    if not isinstance(value, list) or len(value) != count:
        raise EncodingError(f"not a list of {count}", field=field)
    for text in value:
        if not isinstance(text, str) or not _DECIMAL.match(text) or int(text) >= P:
            raise EncodingError("not a canonical decimal below p", field=field, actual=text)
        yield int(text)
