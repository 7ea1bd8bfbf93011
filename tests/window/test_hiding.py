"""What is published about secrets has one shape and opens to nothing that can be guessed."""

import json
from pathlib import Path
from typing import Any

import pytest

from rag_audit import _native
from rag_audit._internal.canonical import jcs
from rag_audit.models.windowfile import WindowFile
from rag_audit.relation.field import MODULUS, to_bytes
from rag_audit.relation.tags import TAG_INDEX, TAG_QUERY, TAG_SEED, TAG_TOPK, TAG_VECTOR
from tests.window.simulator import QUESTIONS, TEXTS, Finished, Service


def shape(value: Any) -> Any:
    """A JSON value with every string replaced by its length: what an observer sees without reading contents."""
    if isinstance(value, dict):
        return {key: shape(item) for key, item in value.items()}
    if isinstance(value, list):
        return [shape(item) for item in value]
    return len(value) if isinstance(value, str) else type(value).__name__


def shapes_by_tenant(finished: Finished) -> dict[str, set[str]]:
    shapes: dict[str, set[str]] = {}
    for entry in finished.file.entries:
        if entry["type"] == "query":
            result = shape(finished.file.proofs[str(entry["seq"])])
            shapes.setdefault(entry["tenant"], set()).add(json.dumps(result, sort_keys=True))
    return shapes


def test_proofs_of_different_queries_have_one_shape(finished: Finished, scanned: Finished) -> None:
    for window in (finished, scanned):
        assert len(window.file.proofs) == 6
        assert [len(shapes) for shapes in shapes_by_tenant(window).values()] == [1, 1]
    # Both tenants of the first have one capacity, those of the second do not.
    assert len(set.union(*shapes_by_tenant(finished).values())) == 1
    assert len(set.union(*shapes_by_tenant(scanned).values())) == 2


def test_records_of_different_queries_have_one_shape(finished: Finished) -> None:
    hidden = ("hq", "cq", "htopk", "hans", "sig")
    records = [e for e in finished.file.entries if e["type"] == "query"]
    shapes = {json.dumps(shape({k: r[k] for k in hidden}), sort_keys=True) for r in records}
    assert len(shapes) == 1
    # Six queries, three of them asked twice over: nothing published repeats.
    values = [r[k] for r in records for k in hidden]
    assert len(set(values)) == len(values)


def test_indices_that_differ_in_one_document_look_alike(tmp_path: Path) -> None:
    service = Service(tmp_path)
    sizes = []
    for name, texts in (("with", TEXTS), ("without", {**TEXTS, "law": TEXTS["law"][1:]})):
        with service.commit(name, window=name, documents=texts) as window:
            public = json.loads((window.directory / "public" / "header.json").read_text())
        public["header"]["window"] = public["policy"]["window"] = "w"
        sizes.append(shape(public))
    assert sizes[0] == sizes[1]


def test_scan_proofs_over_indices_that_differ_in_one_document_look_alike(tmp_path: Path) -> None:
    """Index commitment, certificate and query proof: one question, its passage there or not."""
    sizes = []
    for name, texts in (("with", TEXTS["law"]), ("without", TEXTS["law"][1:])):
        service = Service(tmp_path / name)
        with service.open(system="scan", documents={**TEXTS, "law": texts}) as window:
            service.ask(window, "law-1", QUESTIONS["law"][0])
            window.prove()
            file = WindowFile.load(window.directory / "public")
            sizes.append(
                (shape(file.proofs), sorted(map(json.dumps, shape(list(file.verification_keys.values())))))
            )
    assert sizes[0] == sizes[1]


@pytest.mark.parametrize("system", ["groth16", "scan"])
def test_the_same_texts_commit_to_other_values_each_window(tmp_path: Path, system: str) -> None:
    service = Service(tmp_path)
    result = []
    for name in ("first", "second"):
        with service.commit(name, window=name, system=system) as window:
            header = window.header
            tenants = window.commitment.tenants.values()
            result += [header.c_seed, *(t.entry.c_idx for t in tenants), *(t.entry.c_docs for t in tenants)]
            # Also point by point: the difference of two commitments would be the difference of the texts.
            result += [t.points[i : i + 32] for t in tenants for i in range(0, len(t.points), 32)]
    assert len(set(result)) == len(result) >= (2 * 2 * 64 if system == "scan" else 10)


@pytest.mark.parametrize("reach", [100, pytest.param(1100, marks=pytest.mark.full)])
def test_no_commitment_opens_to_a_small_value(finished: Finished, reach: int) -> None:
    """Up to all scores and noise values of the demo's mechanism, unsalted and under the salts that people forget: 0,
    1."""
    published = {
        e[k] for e in finished.file.entries if e["type"] == "query" for k in ("hq", "cq", "htopk", "hans")
    }
    published |= {t["c_idx"] for t in finished.file.tenants} | {finished.file.entries[0]["c_seed"]}
    for value in range(-reach, reach + 1):
        element = to_bytes(value % MODULUS)
        for tag in (TAG_SEED, TAG_QUERY, TAG_VECTOR, TAG_TOPK, TAG_INDEX):
            guesses = [_native.poseidon_hash(to_bytes(tag) + element)]
            for salt in (0, 1):
                guesses.append(_native.poseidon_hash(to_bytes(tag) + to_bytes(salt) + element))
                guesses.append(_native.poseidon_hash_list(tag, to_bytes(salt) + element))
            assert published.isdisjoint(guess.hex() for guess in guesses)


@pytest.mark.parametrize("window", ["finished", "scanned"])
def test_nothing_secret_is_in_the_published_folder(window: str, request: pytest.FixtureRequest) -> None:
    finished: Finished = request.getfixturevalue(window)
    secrets = json.loads((finished.window / "secrets.json").read_text())
    words = [
        secrets["s0"],
        secrets["s1"],
        secrets["document_key"],
        secrets["retention_key"],
        *secrets["index_salts"].values(),
    ]
    texts = [path.read_bytes() for path in (finished.window / "public").rglob("*") if path.is_file()]
    assert len(texts) >= 3
    everything = b"".join(texts)
    assert jcs(finished.file.policy) in everything
    for word in words:
        assert word.encode() not in everything
        assert bytes.fromhex(word) not in everything
