"""The second verifier against published bytes: generators, transcript, and the proofs of a noise certificate so far."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from rag_audit.errors import EncodingError
from rag_audit.proofs.reference import noise
from rag_audit.proofs.reference.group import NEUTRAL, decode, encode, generator, vanishes
from rag_audit.proofs.reference.session import Session
from rag_audit.proofs.reference.transcript import Transcript

VECTORS = Path(__file__).parents[2] / "vectors/v2/scan"


@pytest.fixture(scope="module")
def answer() -> dict[str, Any]:
    made: dict[str, Any] = json.loads((VECTORS / "proofs.json").read_text(encoding="utf-8"))["answer"]
    return made


def slot(answer: dict[str, Any]) -> noise.Slot:
    seed, beacon, number = (int(answer[name], 16) for name in ("c_seed", "beacon", "slot"))
    window = bytes.fromhex(answer["window"])
    return noise.Slot(window, seed, beacon, number, answer["capacity"], answer["gains"])


def read(answer: dict[str, Any], proof: bytes) -> tuple[Session, bytes, bytes]:
    states: list[bytes] = []
    transcript = Transcript("noise certificate", lambda _kind, _label, state: states.append(state[:4]))
    session, _ = noise.read(slot(answer), transcript, proof)
    return session, b"".join(states), transcript.state


def test_generators_are_the_published_ones() -> None:
    published = json.loads((VECTORS / "generators.json").read_text(encoding="utf-8"))
    for family in "GQ":
        for i, point in enumerate(published[f"{family}_first"]):
            assert encode(generator(f"{family}/{i}")).hex() == point
    for name in "HU":
        assert encode(generator(f"{name}/0")).hex() == published[name]


def test_points_have_one_encoding() -> None:
    assert encode(decode(encode(NEUTRAL))) == encode(NEUTRAL)
    for bad in (b"\xc0" + bytes(31), b"\x40" + bytes(30) + b"\x01", b"\x3f" + b"\xff" * 31):
        with pytest.raises(EncodingError):
            decode(bad)


def test_a_certificate_is_read_through_every_published_state(answer: dict[str, Any]) -> None:
    certificate = answer["certificate"]
    _, states, last = read(answer, base64.b64decode(certificate["proof"]))
    assert states == base64.b64decode(certificate["states"])
    assert last.hex() == certificate["last_state"]


def test_schnorr_proofs_of_a_certificate_hold_and_a_changed_response_does_not(answer: dict[str, Any]) -> None:
    proof = bytearray(base64.b64decode(answer["certificate"]["proof"]))
    session, _, _ = read(answer, bytes(proof))
    assert len(session.equations) == 4
    assert all(vanishes(terms) for terms in session.equations)
    rows = slot(answer).row_bits
    # Behind the product's responses stand the column opening (2 points, 2 scalars), the folds and a last scalar.
    proof[-32 * (2 + 2 + 2 * rows + 1) - 1] ^= 1
    session, _, _ = read(answer, bytes(proof))
    assert [vanishes(terms) for terms in session.equations] == [True, True, True, False]


@pytest.mark.parametrize("change", [lambda p: p[:-32], lambda p: p + bytes(32)])
def test_a_certificate_has_one_length(answer: dict[str, Any], change: Any) -> None:
    with pytest.raises(EncodingError):
        read(answer, change(base64.b64decode(answer["certificate"]["proof"])))


@pytest.mark.parametrize(
    ("sizes", "capacity", "gains"),
    [
        ("3 positions, gains 1", 3, [1]),
        ("1,000 positions, gains 1, 8", 1000, [1, 8]),
        ("300,000 positions, gains 1, 8, 64", 300_000, [1, 8, 64]),
    ],
)
def test_sizes_are_those_of_the_published_traces(sizes: str, capacity: int, gains: list[int]) -> None:
    runs = json.loads((VECTORS / "trace.json").read_text(encoding="utf-8"))["runs"]
    counts = next(run["counts"] for run in runs if (run["run"], run["sizes"]) == ("noise certificate", sizes))
    asked = noise.Slot(b"", 0, 0, 0, capacity, gains)
    assert f"{asked.points} x 4 32 noise columns" in counts
    assert f"{asked.depth} x 4 32 lookup children" in counts
    assert f"{2 * asked.row_bits} x 4 32 fold" in counts
