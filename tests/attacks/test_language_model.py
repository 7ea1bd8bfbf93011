"""The attacks against a real language model in process: a run of ten members and ten others, within two minutes."""

from __future__ import annotations

import importlib.util
import os
import time
from pathlib import Path

import numpy as np
import pytest

from rag_audit.commit.explore.collections import collection
from rag_audit.lab.attacks import campaign, report, runner
from rag_audit.lab.attacks.cells import Bench, Cell
from rag_audit.lab.attacks.generators.local import LocalGenerator
from rag_audit.lab.attacks.generators.stored import StoredGenerator
from rag_audit.lab.attacks.interface import Continue, NextWord
from rag_audit.lab.attacks.language.file import OBTAIN, VARIABLE
from rag_audit.lab.attacks.language.model import LlamaModel, log_probabilities, open_model
from rag_audit.lab.attacks.language.proxy import LanguageProxy
from rag_audit.lab.attacks.methods import chosen
from rag_audit.lab.attacks.passages import Passage
from rag_audit.lab.attacks.quality import Form
from rag_audit.lab.attacks.split import make_split, only
from rag_audit.retrieval.embedders import get_embedder

pytestmark = pytest.mark.data
MEMBERS = 10
PROCESSOR_SECONDS = 120
"""Two minutes on one idle processor. A test counts processor time, since other tests run beside it."""
LONGEST = 40
"""Words of an attacked document."""
TEXT = "The lighthouse keeper of Utsira counts the ships by their bells when the fog is thick."


@pytest.fixture(scope="module")
def model() -> LlamaModel:
    if importlib.util.find_spec("llama_cpp") is None:
        pytest.skip("llama-cpp-python is not installed: pip install 'ragaudit-zk[language-model]'")
    path = os.environ.get(VARIABLE)
    if path is None or not Path(path).is_file():
        pytest.skip(f"RAG_AUDIT_MODEL names no model file: {OBTAIN}")
    return open_model(Path(path))


def test_scores_do_not_depend_on_what_was_read_before(model: LlamaModel) -> None:
    tokens = model.tokens(TEXT)
    fresh = model.scores(tokens, 3)
    model.scores(model.tokens("Something else."), 1)
    again = model.scores(tokens, 3)
    continued = model.scores([*tokens[:-1], tokens[0]], 1)
    assert fresh.shape == (3, continued.shape[1])
    assert np.abs(log_probabilities(fresh) - log_probabilities(again)).max() < 0.1
    assert np.exp(log_probabilities(fresh)).sum(axis=1) == pytest.approx([1, 1, 1])
    assert b"".join(map(model.piece, tokens)).decode() == TEXT


def test_an_answer_s_log_probabilities_are_those_of_its_words(model: LlamaModel) -> None:
    generator = LocalGenerator(model)
    first = generator.answer(Continue("The lighthouse keeper", 6), [Passage(TEXT)])
    assert first.log_probabilities is not None and max(first.log_probabilities) <= 0
    word = first.text.split()[0]
    told = generator.answer(NextWord("The lighthouse keeper", word), [Passage(TEXT)]).log_probabilities
    rare = generator.answer(NextWord("The lighthouse keeper", "zebra"), [Passage(TEXT)]).log_probabilities
    assert told is not None and rare is not None and told[0] > rare[0]


def test_ten_members_are_attacked_in_two_minutes(model: LlamaModel, tmp_path: Path) -> None:
    texts = [text for text in collection("mts").passages if len(text.split()) <= LONGEST]
    split = only(make_split(texts, members=20, others=20), MEMBERS)
    embedder = get_embedder(query_tokens=512)
    tools = campaign.tools_of(split.own, campaign.Unit(embedder), 0, LanguageProxy(model))
    generator = StoredGenerator(LocalGenerator(model), tmp_path / "generated.jsonl")
    bench = Bench(split.index, embedder, tools, 2, 0, generator)
    names, cell = ("rag-mia", "s2mia-s", "s2mia-p", "mba"), Cell("none")
    plan = runner.Plan(
        names, (cell,), 0, 0, (200, 1), runner.digest_of(split), (generator.label, tools.proxy.name)
    )
    wall, start = time.monotonic(), time.process_time()
    results = runner.run(plan, chosen(list(names)), bench, split, tmp_path)
    taken = time.process_time() - start
    print(*report.table(results), f"{taken:.0f} s of processors, {time.monotonic() - wall:.0f} s", sep="\n")
    assert taken < PROCESSOR_SECONDS
    assert all(r.written is not None and r.written.count == 2 * MEMBERS for r in results)
    assert all(r.retrieval is not None and r.retrieval[0] >= 0.8 for r in results)
    assert any(r.written is not None and r.written.forms[Form.FOLLOWED] for r in results)
    assert any(r.written is not None and r.written.longest >= 5 for r in results)
    again = time.process_time()
    assert runner.run(plan, chosen(list(names)), bench, split, tmp_path) == results
    assert time.process_time() - again < taken / 4
