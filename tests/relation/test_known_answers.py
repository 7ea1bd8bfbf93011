"""The published known answers against the Python reference, case by case and file by file."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from rag_audit.errors import EncodingError, PolicyError
from rag_audit.relation import (
    commitments,
    draws,
    field,
    noise,
    poseidon,
    scores,
    selection,
    table,
    tokens,
    vectors,
)

ROOT = Path(__file__).resolve().parents[2] / "vectors"


def load(name: str) -> dict[str, Any]:
    return json.loads((ROOT / "v1" / f"{name}.json").read_text())


def ints(xs: list[str]) -> list[int]:
    return [field.from_hex(x, field="vector") for x in xs]


def negatives(name: str) -> list[Any]:
    return [pytest.param(case, id=case["name"]) for case in load(name)["negative"]]


def test_files_are_what_the_generator_writes() -> None:
    done = subprocess.run([sys.executable, ROOT / "generate.py", "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_field() -> None:
    for case in load("field")["encodings"]:
        assert field.from_hex(case["hex"], field="x") == int(case["value"])
        assert field.to_hex(int(case["value"])) == case["hex"]
    for case in load("field")["digest_to_field"]:
        assert field.to_hex(field.digest_to_field(bytes.fromhex(case["data_hex"]))) == case["result"]


@pytest.mark.parametrize("case", negatives("field"))
def test_field_refuses(case: dict[str, Any]) -> None:
    with pytest.raises(EncodingError) as caught:
        field.from_hex(case["hex"], field="records[3].hq")
    assert caught.value.field == "records[3].hq"


def test_poseidon() -> None:
    body = load("poseidon")
    for case in body["permute"]:
        assert poseidon.permute(ints(case["state"])) == ints(case["result"])
    for case in body["hash"]:
        assert field.to_hex(poseidon.hash_elements(*ints(case["inputs"]))) == case["result"]
    for case in body["hash_list"]:
        assert field.to_hex(poseidon.hash_list(case["tag"], ints(case["elements"]))) == case["result"]


@pytest.mark.parametrize("case", negatives("poseidon"))
def test_poseidon_refuses(case: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="at most 16"):
        poseidon.hash_elements(*ints(case["inputs"]))


def test_table() -> None:
    body = load("table")
    for case in body["permute"]:
        assert poseidon.permute(ints(case["state"])) == ints(case["result"])
    for case in body["leaf"]:
        assert field.to_hex(table.leaf(case["row"])) == case["result"]
    for case in body["tree"]:
        assert field.to_hex(table.TableTree(case["rows"], case["depth"]).root) == case["result"]


def test_packing() -> None:
    body = load("packing")
    for case in body["nibbles"]:
        assert vectors.pack_nibbles(case["values"]) == ints(case["elements"])
        assert vectors.unpack_nibbles(ints(case["elements"]), len(case["values"])) == case["values"]
    for case in body["tokens"]:
        assert tokens.pack_tokens(case["tokens"]) == ints(case["elements"])


def test_scores() -> None:
    body = load("scores")
    for case in body["dot"]:
        assert scores.dot(case["q"], case["e"]) == case["result"]
    for case in body["quantise"]:
        window = scores.ScoreWindow(case["lo"], case["hi"], case["lattice"])
        assert [window.quantise(s) for s in case["scores"]] == case["result"]
    for case in body["default_window"]:
        window = scores.ScoreWindow.for_scale(Fraction(case["scale"]), case["lattice"])
        assert (window.lo, window.hi) == (case["lo"], case["hi"])


def test_noise() -> None:
    body = load("noise")
    data = (ROOT / "v1" / "dgs1-table.json").read_bytes()
    assert hashlib.sha256(data).hexdigest() == body["table_sha256"] == noise.table_digest()
    assert json.loads(data)["thresholds"] == list(noise.alias_table().thresholds)
    for case in body["draw"]:
        kappa = field.from_hex(case["kappa"], field="kappa")
        assert draws.draw(kappa, case["positions"], case["gains"]) == case["result"]


@pytest.mark.parametrize("case", [c for c in negatives("noise") if "gains" in c.values[0]])
def test_gains_refuse(case: dict[str, Any]) -> None:
    with pytest.raises(PolicyError):
        noise.check_gains(case["gains"])


def test_noise_word_second_decomposition_is_the_same_word_above_the_limit() -> None:
    body = load("noise")
    case = next(c for c in body["negative"] if c["name"] == "word_not_canonical")
    low, high, word = int(case["low_hex"], 16), int(case["high"]), field.from_hex(case["word"], field="word")
    assert (low + (high << 200)) % field.MODULUS == word
    assert low != word % 2**200
    assert high >= int(body["word_high_limit"]) == field.MODULUS >> 200


def test_selection() -> None:
    for case in load("selection")["top_k"]:
        assert selection.top_k(case["y"], case["k"]) == case["result"]


def pack(case: dict[str, Any]) -> object:
    """Pack what a case of `packing` has."""
    if "values" in case:
        return vectors.pack_nibbles(case["values"])
    if "tokens" in case:
        return tokens.pack_tokens(case["tokens"])
    return vectors.unpack_nibbles(ints(case["elements"]), case["count"])


REFUSALS: dict[str, tuple[type[Exception], Callable[[dict[str, Any]], object]]] = {
    "table": (EncodingError, lambda case: table.TableTree(case["rows"], case["depth"])),
    "packing": (EncodingError, pack),
    "scores": (PolicyError, lambda case: scores.ScoreWindow(case["lo"], case["hi"], case["lattice"])),
    "selection": (PolicyError, lambda case: selection.top_k(case["y"], case["k"])),
}


@pytest.mark.parametrize(
    ("file", "case"),
    [
        pytest.param(file, case, id=f"{file}-{case['name']}")
        for file in REFUSALS
        for case in load(file)["negative"]
    ],
)
def test_what_is_refused(file: str, case: dict[str, Any]) -> None:
    error, work = REFUSALS[file]
    with pytest.raises(error):
        work(case)


def test_commitments() -> None:
    body = load("commitments")

    def element(case: dict[str, Any], key: str) -> int:
        return field.from_hex(case[key], field=key)

    computed = {
        "seed": lambda c: commitments.seed_commitment(element(c, "s0"), element(c, "s1")),
        "slot": lambda c: commitments.slot_id(c["window"], c["tenant"], c["account"], c["i"]),
        "noise_key": lambda c: commitments.noise_key(
            *(element(c, k) for k in ("s0", "s1", "beacon", "slot"))
        ),
        "salt": lambda c: field.derive_salt(bytes.fromhex(c["master_hex"]), c["label"]),
        "query": lambda c: commitments.query_commitment(element(c, "salt"), c["tokens"]),
        "text_query": lambda c: commitments.text_query_commitment(element(c, "salt"), c["text"].encode()),
        "vector": lambda c: commitments.vector_commitment(element(c, "salt"), c["vector"]),
        "topk": lambda c: commitments.topk_commitment(element(c, "salt"), c["positions"]),
        "index": lambda c: commitments.index_commitment(element(c, "salt"), c["rows"]),
    }
    for name, compute in computed.items():
        results = []
        for case in body[name]:
            assert field.to_hex(compute(case)) == case["result"], name
            results.append(case["result"])
        assert len(set(results)) == len(results), name


@pytest.mark.parametrize("case", negatives("commitments"))
def test_commitments_refuse(case: dict[str, Any]) -> None:
    with pytest.raises(EncodingError):
        if "slot" in case:
            commitments.slot_id(**case["slot"])
        else:
            commitments.index_commitment(1, case["rows"])
