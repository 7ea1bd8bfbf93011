"""The demo's corpus: what is in it, that it is the same everywhere, and the user's own text in its place."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from dataclasses import replace
from hashlib import sha256
from importlib.resources import files

import numpy as np
import pytest

from rag_audit.cli.demo import corpus
from rag_audit.cli.demo.corpus import (
    MIN_CHARS,
    SOURCES,
    collect,
    load_questions,
    passages,
)

CAPACITY = 64


def run_python(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def shingles(text: str, length: int) -> set[tuple[str, ...]]:
    words = ["".join(c for c in word if c.isalnum()) for word in text.lower().split()]
    return {tuple(words[i : i + length]) for i in range(len(words) - length + 1)}


def test_sources_are_named_once_and_none_acts_when_imported() -> None:
    names = [name for sources in SOURCES.values() for name in sources]
    assert len(set(names)) == len(names)
    assert not {"antigravity", "idlelib", "readline", "rlcompleter", "this", "tkinter", "turtle"} & {
        name.partition(".")[0] for name in names
    }


def test_the_corpus_has_its_size_and_no_duplicates() -> None:
    documents = collect()
    assert 2_500 <= len(documents) <= 4_500
    assert {d.group for d in documents} == set(SOURCES)
    assert len({d.id for d in documents}) == len(documents)
    assert len({d.text for d in documents}) == len(documents)
    assert min(len(d.text) for d in documents) >= MIN_CHARS


def test_the_shortest_text_is_the_callers_choice() -> None:
    assert len(collect(300)) < len(collect())
    assert min(len(d.text) for d in collect(300)) >= 300


def test_texts_are_cleaned_docstrings_under_the_name_that_people_use() -> None:
    by_title = {d.title: d for d in collect()}
    rmtree = by_title["shutil.rmtree"]
    assert (rmtree.id, rmtree.group) == ("files/shutil.rmtree", "files")
    assert rmtree.text.startswith("Recursively delete a directory tree.")
    assert "\n    " not in by_title["textwrap.shorten"].text.partition("::")[0]
    # An inherited docstring stays with the class that wrote it, a method's with the function that people call.
    assert "queue.Queue.task_done" in by_title and "queue.LifoQueue.task_done" not in by_title
    assert "random.sample" in by_title and "random.Random.sample" not in by_title


def test_passages_begin_with_the_name_of_their_object() -> None:
    documents = collect()
    assert [replace(d, text=f"{d.title}: {d.text}") for d in documents] == passages()


def test_the_order_does_not_depend_on_the_process() -> None:
    script = (
        "import hashlib; from rag_audit.cli.demo.corpus import collect;"
        "print(hashlib.sha256(repr(collect()).encode()).hexdigest())"
    )
    # Fresh processes only: in this one, packages that other tests import may have changed the standard library's texts.
    outputs = {run_python("-c", script, PYTHONHASHSEED=seed).stdout.strip() for seed in ("1", "2", "3")}
    assert len(outputs) == 1 and len(outputs.pop()) == 64


def test_collecting_prints_nothing() -> None:
    done = run_python("-c", "from rag_audit.cli.demo.corpus import collect; collect()")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_module_that_the_platform_lacks_is_skipped_and_reported(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(corpus, "SOURCES", {"text": ("no_such_module", "textwrap")})
    with caplog.at_level(logging.WARNING):
        titles = {d.title for d in collect()}
    assert "textwrap.dedent" in titles
    assert "no_such_module" in caplog.text


def test_an_interpreter_without_docstrings_is_refused() -> None:
    script = (
        "from rag_audit.cli.demo.corpus import collect\nfrom rag_audit.errors import SetupError\n"
        "try: collect()\nexcept SetupError as exc: print(exc.actual)"
    )
    assert run_python("-OO", "-c", script).stdout.strip() == "python -OO"


def test_there_are_sixty_questions_about_all_groups() -> None:
    questions = load_questions()
    assert len(questions) == 60
    assert len({q.question for q in questions}) == len({q.answer for q in questions}) == 60
    assert {q.tenant for q in questions} == set(SOURCES)


def test_a_second_set_asks_about_other_objects_of_every_group() -> None:
    questions = load_questions(blind=True)
    assert len(questions) == len({q.question for q in questions}) == len({q.answer for q in questions}) == 60
    assert {q.tenant for q in questions} == set(SOURCES)
    assert not {q.answer for q in questions} & {q.answer for q in load_questions()}


def test_the_second_set_stays_as_it_was_written() -> None:
    """Nothing was measured on it before; a question that is reworded would make its recall a tuned figure."""
    text = files("rag_audit.cli.demo").joinpath("questions-blind.json").read_bytes()
    assert sha256(text).hexdigest() == "c70351b891dc297c181737efbf48bcfd5ac0ef951f8db01c95355349b2ad5acc"


@pytest.mark.parametrize("blind", [False, True])
def test_every_answer_is_in_the_corpus(blind: bool) -> None:
    there = {(d.group, d.title) for d in collect()}
    assert [q for q in load_questions(blind=blind) if (q.tenant, q.answer) not in there] == []


@pytest.mark.parametrize("blind", [False, True])
def test_questions_do_not_copy_their_answers(blind: bool) -> None:
    texts = {d.title: d.text for d in collect()}
    for question in load_questions(blind=blind):
        assert question.answer not in question.question
        assert not shingles(question.question, 5) & shingles(texts[question.answer], 5), question


def test_questions_find_their_answers_without_noise() -> None:
    pytest.importorskip("wordllama")
    from rag_audit.retrieval.embedders import get_embedder

    embedder, documents = get_embedder(), collect()
    hits = []
    for group in ("files", "numbers", "text"):
        own = [document for document in documents if document.group == group]
        vectors = embedder.embed_documents([d.text for d in own]).astype(np.int64)
        for question in (q for q in load_questions() if q.tenant == group):
            scores = vectors @ embedder.embed_query(question.question).astype(np.int64)
            best = np.argsort(-scores, kind="stable")[:5]
            hits.append(question.answer in {own[i].title for i in best})
    assert np.mean(hits) > 0.5  # five of several hundred at random: about 0.02
