"""The demo on a person's own texts: what is asked, by whom, and what is refused."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from rag_audit.cli.demo import own
from rag_audit.cli.demo.corpus import Question
from rag_audit.cli.demo.own import own_questions, own_texts, sentences, turns
from rag_audit.estimate.clusters import estimate
from rag_audit.retrieval.embedders import Embedder, get_embedder
from rag_audit.retrieval.embedders.integer_bert.installed import installed_folder
from rag_audit.retrieval.engine import smallest_capacity
from rag_audit.retrieval.readers import DocumentsError
from rag_audit.retrieval.texts import DocumentPart

pytest.importorskip("wordllama")
THETA = (4, 5)
DIALOGUE = """Doctor: What brings you back into the clinic today, miss?
Patient: I came in for a refill of my blood pressure medicine.
Doctor: It looks like Doctor Kumar followed up with you last time regarding your hypertension, osteoarthritis, \
osteoporosis, hypothyroidism, allergic rhinitis and kidney stones. Have you noticed any changes?
Patient: No.
"""


@pytest.fixture(scope="module")
def embedder() -> Embedder:
    return get_embedder(query_tokens=24)


def documents(*texts: str, tenant: str = "default") -> list[DocumentPart]:
    return [
        DocumentPart(f"{tenant}#{n}", tenant, f"{tenant}#{n}", text, str(n))
        for n, text in enumerate(texts, 1)
    ]


def two(*tenants: str) -> list[tuple[str, str]]:
    return [(f"{tenant}-{number}", tenant) for tenant in tenants for number in (1, 2)]


def plan(
    accounts: list[tuple[str, str]], questions: list[Question], embedder: Embedder, each: int = 4
) -> list[tuple[str, str, Question]]:
    return list(turns(accounts, questions, embedder, queries=6, each=each, k_max=2, theta=THETA))


def test_questions_of_a_dialogue_are_what_is_asked_in_it(embedder: Embedder) -> None:
    result = sentences(DIALOGUE, embedder)
    assert result[:2] == [
        "What brings you back into the clinic today, miss?",
        "Have you noticed any changes?",
    ]
    assert result[2] == "I came in for a refill of my blood pressure medicine."


def test_marks_of_headings_lists_and_quotations_are_left_out(embedder: Embedder) -> None:
    text = "## How bail is set\n\n- one of the points here\n3. third of the points\n> quoted words stand here\n\n---\n"
    assert set(sentences(text, embedder)) == {
        "How bail is set",
        "one of the points here",
        "third of the points",
        "quoted words stand here",
    }


@pytest.mark.parametrize(
    "text",
    [
        "word " * 300,
        "x" * 900,
        "これは長い文章です。" * 40,
        "a\x1b[31mb and more\nA whole sentence with words.",
        "Yes.",
        "1,024",
    ],
)
def test_a_question_is_whole_and_can_be_embedded(embedder: Embedder, text: str) -> None:
    questions = own_questions({"default": documents(text)}, embedder)
    assert 1 <= len(questions) <= own.QUESTIONS
    for question in questions:
        assert question.question.isprintable() and question.question in " ".join(text.split())
        assert embedder.embed_query(question.question).any()


def test_one_chunk_is_enough(embedder: Embedder) -> None:
    texts = documents("Bail is money paid to release an accused person until the trial.")
    requested = plan(two("default"), own_questions({"default": texts}, embedder), embedder)
    assert len(requested) == 6 and {account for account, *_ in requested} == {"default-1", "default-2"}


@pytest.mark.parametrize("count", [1, 2, 3, 6, 8, 200])
def test_any_number_of_chunks(embedder: Embedder, count: int) -> None:
    texts = documents(
        *(f"Statute {n} is about the {n}th kind of contract. It has {n} parts." for n in range(count))
    )
    questions = own_questions({"default": texts}, embedder)
    assert min(2 * count, own.QUESTIONS) == len(questions) == len({q.question for q in questions})
    named = [int(q.answer.partition("#")[2]) for q in questions]
    assert count < 8 or (named == sorted(named) and named[-1] > count * 3 // 4)
    requested = plan(two("default"), questions, embedder)
    assert len(requested) == 6 and max(Counter(account for account, *_ in requested).values()) == 3


def test_questions_are_not_repeated_while_there_are_others(embedder: Embedder) -> None:
    texts = documents("Bail frees people.", "Insulin lowers sugar.", "Torts are wrongs.", "Rivers run to the sea.",
                      "Bread is made of flour.", "The moon moves the tides.")  # fmt: skip
    requested = plan(two("default"), own_questions({"default": texts}, embedder), embedder)
    assert len({q.question for _, _, q in requested}) == 6


def test_equal_texts_of_several_tenants_make_no_coalition_above_the_cap(embedder: Embedder) -> None:
    tenants = {name: documents("Bail is money paid to release an accused.", tenant=name) for name in "abc"}
    requested = plan(two(*tenants), own_questions(tenants, embedder), embedder)
    records = [own._Turn(n, account, tenant) for n, (account, tenant, _) in enumerate(requested)]
    vectors = np.stack([embedder.embed_query(q.question) for *_, q in requested])
    assert estimate(records, vectors, theta=THETA).c == 2
    # Every third account would have joined them; these two ask in its turns.
    assert {account for account, *_ in requested} == {"a-1", "a-2"} and len(requested) == 6


def test_nobody_asks_more_than_the_policy_allows(embedder: Embedder) -> None:
    questions = own_questions({"default": documents("Bail frees an accused person.")}, embedder)
    assert len(plan(two("default"), questions, embedder, each=2)) == 4


def test_a_tenant_without_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "law.jsonl").write_text("\n")
    with pytest.raises(DocumentsError, match="the file contains no documents") as caught:
        own_texts(tmp_path)
    assert caught.value.field == "law.jsonl"
    with pytest.raises(DocumentsError, match="a tenant has no text") as caught:
        own_texts(tmp_path, skip_unreadable=True)
    assert caught.value.field == str(tmp_path / "law.jsonl")


def test_texts_beyond_what_the_demo_commits_to_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "law.jsonl").write_text('{"text": "Alpha."}\n' * 5)
    monkeypatch.setattr(own, "MAX_TEXTS", 3)
    tenants, left_out = own_texts(tmp_path)
    assert (len(tenants["law"]), left_out) == (3, {"law": 2})


def test_positions_are_a_power_of_two_and_hold_the_texts() -> None:
    assert [smallest_capacity(n) for n in (1, 64, 65, 4096, 4097, 1 << 16)] == [
        64,
        64,
        128,
        4096,
        8192,
        1 << 16,
    ]


def test_texts_without_words_are_refused(embedder: Embedder) -> None:
    with pytest.raises(DocumentsError, match="no sentence for a question"):
        own_questions({"default": documents("---", "***")}, embedder)


@pytest.mark.full
@pytest.mark.circuits
@pytest.mark.parametrize("files, name", [(1, "wordllama-lexical-768"), (3, "minilm-int")])
def test_a_whole_demo_on_a_few_files(tmp_path: Path, files: int, name: str) -> None:
    if name == "minilm-int" and installed_folder() is None:
        pytest.skip("the files of minilm-int are not installed")
    (tmp_path / "docs").mkdir()
    for number in range(files):
        (tmp_path / "docs" / f"{number}.txt").write_text(f"Visit {number}\n{DIALOGUE}")
    done = subprocess.run(
        [sys.executable, "-m", "rag_audit", "demo", "--docs", "docs", "--dir", "demo", "--embedder", name],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "PASS eps_audit" in done.stdout and "Traceback" not in done.stderr
    assert f"embedder {name}: --embedder names it" in done.stdout
    vectors = tmp_path / "demo" / "provider" / "vectors"
    assert vectors.exists() == (name == "minilm-int")
    receipt = json.loads(next((tmp_path / "demo" / "verifier" / "receipts").glob("*.json")).read_text())
    assert receipt["disclosed"]["query"] in DIALOGUE


@pytest.mark.full
def test_a_whole_demo_with_minilm_int(tmp_path: Path) -> None:
    """The docstrings and the blind questions: minutes, mostly for the vectors of 2,901 texts and the proofs."""
    if installed_folder() is None:
        pytest.skip("the files of minilm-int are not installed")
    done = subprocess.run(
        [sys.executable, "-m", "rag_audit", "demo", "--dir", "demo"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "embedder minilm-int: its files are installed" in done.stdout
    found = re.search(r"exact retrieval finds (\d+) passages", done.stdout)
    assert found is not None and int(found[1]) >= 18  # the docstrings of other Python releases differ
    verifier = tmp_path / "demo" / "verifier"
    words = [
        verifier / "window.json",
        "--trust",
        verifier / "trust.toml",
        "--receipts",
        verifier / "receipts",
    ]
    full = subprocess.run(
        [sys.executable, "-m", "rag_audit", "verify", *map(str, words), "--format", "text"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert full.returncode == 0 and " query_embedding=proved " in full.stdout
