"""The study of noise with a document table, on a few texts."""

from __future__ import annotations

import json
import math
import sys
from argparse import Namespace

import pytest

from bench import frontier
from rag_audit.commit.explore.collections import Collection
from rag_audit.errors import SetupError
from rag_audit.mechanisms import accounting
from rag_audit.mechanisms.accounting.absence import log_noise_exclusion_factor
from rag_audit.retrieval.embedders import DEFAULT_EMBEDDER, get_embedder

WORDS = ("bail", "contract", "copyright", "custody", "damages", "evidence", "felony", "habeas")
QUERIES, SIZES = 3, (1, 2)
NOISES = frontier.NOISES[::3]


@pytest.fixture(scope="module")
def result() -> dict[str, object]:
    """Eight documents of two passages each, and a question about each passage."""
    texts = [f"{word} {part} is a matter of law" for word in WORDS for part in ("early", "late")]
    collection = Collection("eight", texts, texts, [frozenset({i}) for i in range(len(texts))])
    options = Namespace(
        seed=1, lists=60, windows=10, repeats=1, positions_per_document=[2], only_documents=True
    )
    with pytest.MonkeyPatch.context() as patch:  # with more questions every list of so few positions is full
        patch.setattr(frontier, "QUERIES", QUERIES)
        patch.setattr(frontier, "SIZES", SIZES)
        patch.setattr(frontier, "NOISES", NOISES)
        return frontier.study(collection, get_embedder("hashed-words-64"), options)


def test_every_cell_has_the_figures_of_the_losses_of_a_document(result: dict[str, object]) -> None:
    (part,) = result["by_document"]  # type: ignore[misc]
    assert (part["documents"], part["positions"], result["cells"]) == (8, 2, [])
    assert 0.75 < part["recall"] <= 1, "exact retrieval finds almost every document by its own text"
    assert part["blind"] == pytest.approx(1 - 11 * 10 / (16 * 15))
    sizes = [cell["k"] for cell in part["cells"]]
    assert sizes == [*SIZES] * len(NOISES)
    for number, cell in enumerate(part["cells"]):
        gains, lattice = NOISES[number // len(SIZES)]
        mechanism, queries = accounting.Mechanism(gains, lattice), cell["k"] * QUERIES
        eps = accounting.audit_bounds(mechanism, n=QUERIES, eps_acc=4, delta_acc="1e-7", k=cell["k"],
                                      delta=frontier.DELTA, positions=2).best.eps  # fmt: skip
        assert cell["certified"] == eps
        log = log_noise_exclusion_factor(
            mechanism, listed=frontier.TOP_K, capacity=16, queries=queries, positions=2
        )
        most = math.inf if math.isinf(log) else math.log(sys.float_info.max)
        assert math.log(cell["exclusion_factor"]) == pytest.approx(min(log, most))
        assert cell["odds_shown"] <= cell["exclusion_factor"]
        assert 0 < cell["read"] <= cell["read_at_most"] == 8 < QUERIES * frontier.TOP_K
        assert cell["distance"] >= 0


def test_the_table_names_documents_and_its_own_recall(result: dict[str, object]) -> None:
    stored = json.loads(json.dumps(result))
    stored["by_document"][0]["recall"] = 0.5  # distinguishes this table from that of passages
    for cell, odds in zip(stored["by_document"][0]["cells"], (math.inf, sys.float_info.max), strict=False):
        cell["exclusion_factor"] = odds
    text = frontier.table(stored)
    assert text.startswith("### eight, noise with a document table\n\n8 documents of at most 2 positions")
    assert "exact top 5 finds 50.0 %" in text
    lines = [line for line in text.splitlines() if line.startswith("| noise")]
    for line, cell in zip(lines, stored["by_document"][0]["cells"], strict=True):
        odds = cell["exclusion_factor"]
        shown = "none" if math.isinf(odds) else "above 1e300" if odds > 1e300 else f"{odds:.3g}"
        assert f"| {shown}, " in line
    assert {"none", "above 1e300"} <= {line.split(" | ")[8].partition(",")[0] for line in lines}


def test_an_embedder_without_a_published_threshold_needs_one() -> None:
    args = Namespace(embedder="bge-small-en-v1.5", model=None, relevance=None)
    with pytest.raises(SetupError, match=r"no threshold of pooled listing.*rag-audit lab relevance"):
        frontier.threshold(args)
    assert frontier.threshold(Namespace(embedder="bge-small-en-v1.5", model=None, relevance=5)) == 5
    assert frontier.threshold(Namespace(embedder=DEFAULT_EMBEDDER, model=None, relevance=None)) == 601


def test_two_runs_stand_beside_each_other() -> None:
    def run(recall: float, read: float, eps: float) -> dict[str, object]:
        cell = {"mechanism": "noise", "recall": recall, "certified": math.inf, "attack": {"eps": eps, "auc": 0.5},
                "odds_shown": 2.0, "read": read}  # fmt: skip
        own = [{**cell, "k": k} for k in (2, 10)]
        quiet = {"recall": recall}
        return {"collections": [
            {"collection": "eight", "without_noise": quiet, "read_exactly": {"2": 8}, "cells": own}
        ]}  # fmt: skip

    lines = frontier.beside(run(0.5, 4, 0), run(0.75, 2, 1)).splitlines()
    assert lines[2:] == [
        "| eight | exact retrieval | 50.0 → 75.0 % | none | none | | | 8 → 8 | |",
        "| eight | noise | 50.0 → 75.0 % | none | 0.00 → 1.00 | 0.500 | 2 | 4 → 2 | 0.50 → 0.25 |",
    ]
