"""What is kept of a large run is bounded, and the bounds change no figure."""

import numpy as np
import pytest

from rag_audit.lab.attacks import campaign, runner
from rag_audit.lab.attacks.cells import Bench, Cell
from rag_audit.lab.attacks.methods import chosen
from rag_audit.lab.attacks.split import make_split
from rag_audit.lab.attacks.targets import engine as engines
from rag_audit.retrieval.embedders import get_embedder

NAMES = ("mba", "embedding")


def test_small_portions_give_the_same_figures(texts: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    split = make_split(texts[:120], members=20, others=20, seed=1)
    plan = runner.Plan(
        NAMES, (Cell("noise:1,1,1,1:64", accounts=2),), 10, 1, (200, 2), runner.digest_of(split)
    )

    def results() -> list[runner.Result]:
        embedder = get_embedder(query_tokens=512)
        tools = campaign.tools_of(split.own, campaign.Unit(embedder), 1)
        return runner.run(plan, chosen([*NAMES]), Bench(split.index, embedder, tools, seed=1), split)

    whole = results()
    for name, value in (("_SCORES", 1 << 11), ("_EMBEDDED", 64), ("PASSAGES", 5)):
        monkeypatch.setattr(engines, name, value)
    for name, value in (("_TOGETHER", 19), ("VECTORS", 150)):
        monkeypatch.setattr(campaign, name, value)
    assert results() == whole


def test_few_vectors_and_passages_are_kept(
    texts: list[str], bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(campaign, "VECTORS", 10)
    unit = campaign.Unit(get_embedder(query_tokens=512))
    first = unit(texts[:40])
    assert len(unit._known) == 10
    assert np.array_equal(unit(texts[:40]), first), "a vector that was dropped is made again"
    monkeypatch.setattr(engines, "PASSAGES", 5)
    corpus = engines.Corpus(texts[:40], bench.embedder, 64)
    here = corpus.passages(range(64))
    assert sorted(p.text for p in here) == sorted(texts[:40])
    assert corpus._passage.cache_info().currsize == 5
