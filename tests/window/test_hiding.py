"""What is published about secrets has one shape and opens to nothing that can be guessed."""

import json
from pathlib import Path
from typing import Any

from rag_audit import _native
from rag_audit.canonical import jcs
from rag_audit.relation.field import MODULUS, to_bytes
from rag_audit.relation.poseidon import TAG_INDEX, TAG_QUERY, TAG_SEED, TAG_TOPK, TAG_VECTOR
from tests.window.simulator import TEXTS, Finished, Service


def shape(value: Any) -> Any:
    """A JSON value with every string replaced by its length: what an observer sees without reading contents."""
    if isinstance(value, dict):
        return {key: shape(item) for key, item in value.items()}
    if isinstance(value, list):
        return [shape(item) for item in value]
    return len(value) if isinstance(value, str) else type(value).__name__


def test_proofs_of_different_queries_have_one_shape(finished: Finished) -> None:
    shapes = {json.dumps(shape(proof), sort_keys=True) for proof in finished.file.proofs.values()}
    assert len(finished.file.proofs) == 6
    assert len(shapes) == 1


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
            public = json.loads((window.directory / "public" / "opening.json").read_text())
        public["opening"]["window"] = public["policy"]["window"] = "w"
        sizes.append(shape(public))
    assert sizes[0] == sizes[1]


def test_the_same_texts_commit_to_other_values_each_window(tmp_path: Path) -> None:
    service = Service(tmp_path)
    found = []
    for name in ("first", "second"):
        with service.commit(name, window=name) as window:
            opening = window.opening
            entries = [t.entry for t in window.commitment.tenants.values()]
            found += [opening.c_seed, *(e.c_idx for e in entries), *(e.c_docs for e in entries)]
    assert len(set(found)) == len(found)


def test_no_commitment_opens_to_a_small_value(finished: Finished) -> None:
    """All scores and noise values of the demo's mechanism, unsalted and under the salts that people forget: 0, 1."""
    published = {
        e[k] for e in finished.file.entries if e["type"] == "query" for k in ("hq", "cq", "htopk", "hans")
    }
    published |= {t["c_idx"] for t in finished.file.tenants} | {finished.file.entries[0]["c_seed"]}
    reach = 1100
    for value in range(-reach, reach + 1):
        element = to_bytes(value % MODULUS)
        for tag in (TAG_SEED, TAG_QUERY, TAG_VECTOR, TAG_TOPK, TAG_INDEX):
            guesses = [_native.poseidon_hash(to_bytes(tag) + element)]
            for salt in (0, 1):
                guesses.append(_native.poseidon_hash(to_bytes(tag) + to_bytes(salt) + element))
                guesses.append(_native.poseidon_hash_list(tag, to_bytes(salt) + element))
            assert published.isdisjoint(guess.hex() for guess in guesses)


def test_nothing_secret_is_in_the_published_folder(finished: Finished) -> None:
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
