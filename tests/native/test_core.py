"""The native core against the Python reference and the published vectors, bit for bit."""

from __future__ import annotations

import json
import random
import struct
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest

from rag_audit import _native as native
from rag_audit.relation import commitments, draws, field, poseidon, scores, selection, table

VECTORS = Path(__file__).resolve().parents[2] / "vectors" / "v1"
EDGES = [0, 1, 2**64 - 1, 2**200, field.MODULUS - 2, field.MODULUS - 1]


def load(name: str) -> dict[str, Any]:
    return json.loads((VECTORS / f"{name}.json").read_text())


def negatives(name: str, key: str) -> list[Any]:
    return [pytest.param(case, id=case["name"]) for case in load(name)["negative"] if key in case]


def join(xs: Sequence[int]) -> bytes:
    return b"".join(field.to_bytes(x) for x in xs)


def split(data: bytes) -> list[int]:
    return [field.from_bytes(data[i : i + 32], field="x") for i in range(0, len(data), 32)]


def unhex(xs: Sequence[str]) -> bytes:
    return b"".join(bytes.fromhex(x) for x in xs)


def int8(xs: Sequence[int]) -> bytes:
    return struct.pack(f"<{len(xs)}b", *xs)


def int32(xs: Sequence[int]) -> bytes:
    return struct.pack(f"<{len(xs)}i", *xs)


def from_int32(data: bytes) -> list[int]:
    return list(struct.unpack(f"<{len(data) // 4}i", data))


def vector(rng: random.Random, dimension: int) -> list[int]:
    return [rng.randint(-8, 7) for _ in range(dimension)]


@contextmanager
def refused(reason: str) -> Iterator[None]:
    """ValueError whose text contains the reason."""
    with pytest.raises(ValueError) as caught:
        yield
    assert reason in str(caught.value)


@pytest.fixture
def threads() -> Iterator[None]:
    before = native.threads()
    yield
    native.set_threads(before)


# Poseidon


def test_permutation_agrees_with_reference() -> None:
    rng = random.Random(1)
    states = [[0] * 17, [field.MODULUS - 1] * 17]
    states += [
        [rng.choice([rng.randrange(field.MODULUS), *EDGES]) for _ in range(width)]
        for width, count in ((17, 40), (9, 10))
        for _ in range(count)
    ]
    for state in states:
        assert split(native.poseidon_permute(join(state))) == poseidon.permute(state)


def test_hashes_agree_with_reference() -> None:
    rng = random.Random(2)
    for count in [1, 2, 5, 15, 16]:
        xs = [rng.randrange(field.MODULUS) for _ in range(count)]
        assert split(native.poseidon_hash(join(xs))) == [poseidon.hash_elements(*xs)]
    for count in [0, 1, 14, 15, 16, 30, 31]:
        xs = [rng.randrange(field.MODULUS) for _ in range(count)]
        assert split(native.poseidon_hash_list(5, join(xs))) == [poseidon.hash_list(5, xs)]


def test_poseidon_vectors() -> None:
    body = load("poseidon")
    for case in body["permute"]:
        assert native.poseidon_permute(unhex(case["state"])) == unhex(case["result"])
    for case in filter(lambda c: c["inputs"], body["hash"]):
        assert native.poseidon_hash(unhex(case["inputs"])).hex() == case["result"]
    for case in body["hash_list"]:
        assert native.poseidon_hash_list(case["tag"], unhex(case["elements"])).hex() == case["result"]


def test_table_tree_agrees_with_reference_node_by_node() -> None:
    rng = random.Random(3)
    for count, dimension, depth in [(1, 1, 1), (7, 251, 1), (8, 375, 2), (30, 376, 2), (9, 768, 3)]:
        rows = [vector(rng, dimension) for _ in range(count)]
        nodes = split(native.table_tree(int8([v for row in rows for v in row]), dimension, depth))
        assert nodes == [x for level in table.TableTree(rows, depth).levels for x in level]


def test_table_vectors() -> None:
    body = load("table")
    for case in body["permute"]:
        assert native.poseidon_permute(unhex(case["state"])) == unhex(case["result"])
    for case in body["leaf"]:
        assert native.table_tree(int8(case["row"]), len(case["row"]), 1)[:32].hex() == case["result"]
    for case in body["tree"]:
        rows = int8([v for row in case["rows"] for v in row])
        assert native.table_tree(rows, 256, case["depth"])[-32:].hex() == case["result"]


@pytest.mark.parametrize("case", negatives("table", "rows"))
def test_table_tree_refuses(case: dict[str, Any]) -> None:
    with refused("rows: expected 1 to 7 rows"):
        native.table_tree(int8([v for row in case["rows"] for v in row]), 256, case["depth"])


def test_table_tree_refuses_what_fits_no_circuit() -> None:
    with refused("dimension: expected 1 to 4096"):
        native.table_tree(bytes(4097), 4097, 1)
    for depth in (0, 6):
        with refused("depth: expected 1 to 5"):
            native.table_tree(bytes(256), 256, depth)
    with refused("rows: expected a multiple of 256 components, found 257"):
        native.table_tree(bytes(257), 256, 1)
    with refused("rows"):
        native.table_tree(int8([8] * 256), 256, 1)


@pytest.mark.parametrize("case", negatives("poseidon", "inputs"))
def test_poseidon_refuses(case: dict[str, Any]) -> None:
    with refused("inputs: expected 1 to 16 elements, found 17"):
        native.poseidon_hash(unhex(case["inputs"]))


@pytest.mark.parametrize("value", [field.MODULUS, field.MODULUS + 1, 2**256 - 1])
def test_number_not_below_the_modulus_is_refused_everywhere(value: int) -> None:
    bad = value.to_bytes(32, "big")
    good = bytes(32)
    calls = {
        "inputs[1]": lambda: native.poseidon_hash(good + bad),
        "elements[2]": lambda: native.poseidon_hash_list(5, good + good + bad),
        "state[16]": lambda: native.poseidon_permute(good * 16 + bad),
        "salt": lambda: native.index_commitment(bad, b"\0", 1),
        "kappa": lambda: native.draw_noise(bad, 1, [1]),
    }
    for place, call in calls.items():
        with pytest.raises(ValueError) as caught:
            call()
        reason = f"{place}: expected an integer below the field's modulus, found {bad.hex()}"
        assert str(caught.value) == reason


def test_wrong_lengths_are_refused() -> None:
    with refused("state: expected 9 or 17 elements, found 16"):
        native.poseidon_permute(bytes(32 * 16))
    with refused("state: expected a multiple of 32 bytes, found 543"):
        native.poseidon_permute(bytes(543))
    with refused("inputs: expected 1 to 16 elements, found 0"):
        native.poseidon_hash(b"")
    with refused("kappa: expected 32 bytes, found 31"):
        native.draw_noise(bytes(31), 1, [1])
    with refused("salt: expected 32 bytes, found 64"):
        native.index_commitment(bytes(64), b"", 1)


# Commitment to the index


def test_index_commitment_agrees_with_reference_and_vectors() -> None:
    rng = random.Random(3)
    for count, dimension in [(1, 1), (3, 21), (4, 63), (8, 256), (5, 100)]:
        salt = rng.randrange(field.MODULUS)
        rows = [vector(rng, dimension) for _ in range(count)]
        flat = int8([v for row in rows for v in row])
        expected = field.to_bytes(commitments.index_commitment(salt, rows))
        assert native.index_commitment(field.to_bytes(salt), flat, dimension) == expected
    for case in load("commitments")["index"]:
        flat = int8([v for row in case["rows"] for v in row])
        result = native.index_commitment(bytes.fromhex(case["salt"]), flat, len(case["rows"][0]))
        assert result.hex() == case["result"]


def test_index_commitment_refuses_malformed_rows() -> None:
    salt = bytes(32)
    for value in (-9, 8, 127, -128):
        with refused(f"rows[1]: expected -8 to 7, found {value}"):
            native.index_commitment(salt, int8([0, value]), 2)
    with refused("rows: expected a multiple of 2 components, found 3"):
        native.index_commitment(salt, int8([0, 0, 0]), 2)
    with refused("dimension: expected 1 to 4096, found 0"):
        native.index_commitment(salt, b"", 0)


# Noise


def test_noise_table_is_the_published_one() -> None:
    published = load("dgs1-table")
    records = zip(published["thresholds"], published["aliases"], strict=True)
    assert native.noise_table() == b"".join(struct.pack("<IB", t, w) for t, w in records)


def test_noise_vectors() -> None:
    for case in load("noise")["draw"]:
        drawn = native.draw_noise(bytes.fromhex(case["kappa"]), case["positions"], case["gains"])
        assert from_int32(drawn) == case["result"]


def test_noise_agrees_with_reference() -> None:
    rng = random.Random(4)
    for gains in [[1], [1, 8], [1, 2, 4], [1, 8, 64], [1, 8, 64, 512, 4096, 32768], [1, 1, 1]]:
        for positions in [0, 1, 26, 27, 80, 81]:
            kappa = rng.choice([rng.randrange(field.MODULUS), *EDGES])
            drawn = native.draw_noise(field.to_bytes(kappa), positions, gains)
            assert from_int32(drawn) == draws.draw(kappa, positions, gains)


@pytest.mark.parametrize("case", negatives("noise", "gains"))
def test_gains_are_refused(case: dict[str, Any]) -> None:
    with refused("gains"):
        native.draw_noise(bytes(32), 1, case["gains"])


def test_noise_refuses_negative_gains_and_too_many_positions() -> None:
    with refused("gains[1]: expected a positive integer, found -8"):
        native.draw_noise(bytes(32), 1, [1, -8])
    with refused("positions: expected at most"):
        native.draw_noise(bytes(32), 2**40, [1])


# Scores and selection


def test_scores_agree_with_reference() -> None:
    rng = random.Random(5)
    for count, dimension in [(0, 4), (1, 1), (5, 63), (6, 64), (7, 65), (9, 256), (4, 384)]:
        rows = [vector(rng, dimension) for _ in range(count)]
        query = vector(rng, dimension)
        index = native.PackedIndex(int8([v for row in rows for v in row]), dimension)
        assert (index.rows, index.dimension) == (count, dimension)
        assert from_int32(index.scores(int8(query))) == [scores.dot(query, row) for row in rows]


def test_score_vectors() -> None:
    for case in load("scores")["dot"]:
        index = native.PackedIndex(int8(case["e"]), len(case["e"]))
        assert from_int32(index.scores(int8(case["q"]))) == [case["result"]]


def test_index_refuses_malformed_input() -> None:
    with refused("rows: expected a multiple of 2 components, found 3"):
        native.PackedIndex(bytes(3), 2)
    with refused("rows[3]: expected -8 to 7, found 8"):
        native.PackedIndex(int8([0, 0, 0, 8]), 2)
    with refused("dimension: expected 1 to 4096, found 4097"):
        native.PackedIndex(b"", 4097)
    index = native.PackedIndex(bytes(4), 2)
    with refused("query: expected 2 components, found 1"):
        index.scores(b"\0")
    with refused("query[0]: expected -8 to 7, found -9"):
        index.scores(int8([-9, 0]))


def expected_top_k(raw: Sequence[int], window: scores.ScoreWindow, z: Sequence[int], k: int) -> list[int]:
    return selection.top_k([window.quantise(s) + x for s, x in zip(raw, z, strict=True)], k)


def native_top_k(raw: Sequence[int], window: scores.ScoreWindow, z: Sequence[int], k: int) -> list[int]:
    return native.noised_top_k(int32(raw), window.lo, window.hi, window.lattice, int32(z), k)


def test_top_k_agrees_with_reference() -> None:
    rng = random.Random(6)
    for lo, hi, lattice in [(101, 810, 128), (218, 1742, 64), (0, 1, 1), (0, 7, 256), (101, 810, 2**20)]:
        window = scores.ScoreWindow(lo, hi, lattice)
        for count in [1, 7, 300]:
            raw = [rng.randint(lo - 50, hi + 50) for _ in range(count)]
            z = [rng.choice([0, 0, rng.randint(-(10**6), 10**6)]) for _ in range(count)]
            for k in {1, min(5, count), count}:
                assert native_top_k(raw, window, z, k) == expected_top_k(raw, window, z, k)


def test_quantiser_and_selection_vectors() -> None:
    for case in load("scores")["quantise"]:
        window = scores.ScoreWindow(case["lo"], case["hi"], case["lattice"])
        raw, count = case["scores"], len(case["scores"])
        # A noise of -u makes all y equal, so the order is that of the positions only if every u agrees.
        cancel = [-u for u in case["result"]]
        assert native_top_k(raw, window, cancel, count) == list(range(count))
        for i in range(count):
            raised = [x + (j == i) for j, x in enumerate(cancel)]
            assert native_top_k(raw, window, raised, 1) == [i]
    lattice_only = scores.ScoreWindow(0, 1, 1)
    for case in load("selection")["top_k"]:
        assert native_top_k([0] * len(case["y"]), lattice_only, case["y"], case["k"]) == case["result"]


@pytest.mark.parametrize("case", negatives("selection", "k"))
def test_k_is_refused(case: dict[str, Any]) -> None:
    y = case["y"]
    with refused(f"k: expected 1 to {len(y)}, found {case['k']}"):
        native.noised_top_k(int32(y), 0, 64, 64, int32(y), case["k"])


@pytest.mark.parametrize("case", negatives("scores", "lattice"))
def test_score_window_is_refused(case: dict[str, Any]) -> None:
    with refused(": expected "):
        native.noised_top_k(int32([1]), case["lo"], case["hi"], case["lattice"], int32([0]), 1)


def test_top_k_refuses_inputs_that_do_not_fit() -> None:
    with refused("noise: expected 2 values, as many as scores, found 1"):
        native.noised_top_k(int32([1, 2]), 0, 64, 64, int32([0]), 1)
    with refused("scores: expected a multiple of 4 bytes, found 5"):
        native.noised_top_k(bytes(5), 0, 64, 64, bytes(4), 1)


@pytest.mark.full
def test_ten_thousand_random_queries_agree() -> None:
    rng = random.Random(7)
    window = scores.ScoreWindow(5, 90, 64)
    gains, count, dimension, k = [1, 2, 4], 26, 16, 5
    for _ in range(10_000):
        rows = [vector(rng, dimension) for _ in range(count)]
        query = vector(rng, dimension)
        kappa = rng.randrange(field.MODULUS)
        raw = native.PackedIndex(int8([v for row in rows for v in row]), dimension).scores(int8(query))
        z = native.draw_noise(field.to_bytes(kappa), count, gains)
        assert from_int32(raw) == [scores.dot(query, row) for row in rows]
        assert from_int32(z) == draws.draw(kappa, count, gains)
        top = native.noised_top_k(raw, window.lo, window.hi, window.lattice, z, k)
        assert top == expected_top_k(from_int32(raw), window, from_int32(z), k)


# Threads and processes


@pytest.mark.parametrize("n", [0, 1025])
def test_thread_count_out_of_range_is_refused(n: int) -> None:
    before = native.threads()
    with refused(f"threads: expected 1 to 1024, found {n}"):
        native.set_threads(n)
    assert native.threads() == before


@pytest.mark.usefixtures("threads")
def test_results_do_not_depend_on_the_number_of_threads() -> None:
    results = set()
    for n in (1, 2, 5):
        native.set_threads(n)
        assert native.threads() == n
        results.add(native.draw_noise(field.to_bytes(9), 3000, [1, 8]))
    assert len(results) == 1


def test_python_threads_share_the_pool() -> None:
    keys = [field.to_bytes(i) for i in range(8)]
    with ThreadPoolExecutor(4) as executor:
        parallel = list(executor.map(lambda key: native.draw_noise(key, 500, [1, 8]), keys))
    assert parallel == [native.draw_noise(key, 500, [1, 8]) for key in keys]


def _noise_in_child(kappa: bytes) -> bytes:
    return native.draw_noise(kappa, 500, [1, 8])


def test_a_forked_process_gets_its_own_pool() -> None:
    """A child that waited for its parent's threads, which a fork does not copy, would never end."""
    kappa = field.to_bytes(3)
    expected = _noise_in_child(kappa)  # starts the parent's pool
    executor = ProcessPoolExecutor(1, mp_context=get_context("fork"))
    try:
        assert executor.submit(_noise_in_child, kappa).result(timeout=60) == expected
    finally:
        for child in list(executor._processes.values()):
            child.kill()
        executor.shutdown(wait=False, cancel_futures=True)
