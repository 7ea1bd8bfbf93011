"""The relevance threshold of a policy: passages that reach it, score bands, and its measurement."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from rag_audit.account.relevance import band, relevant
from rag_audit.account.retrievers.evidence import KEY
from rag_audit.account.retrievers.source import Source
from rag_audit.cli import main
from rag_audit.commit.explore.samples import Sample
from rag_audit.errors import PolicyError, SchemaError
from rag_audit.lab.relevance import measure
from rag_audit.models.requests import AnsweredDocument
from rag_audit.retrieval.embedders import get_embedder, published_constants
from rag_audit.retrieval.engine import TenantIndex
from tests.serving.conftest import serving
from tests.window.simulator import QUESTIONS, Service

QUESTION = "What does the law say about contracts?"
TEXTS = ("A contract is an agreement that the law enforces.", "", "Photosynthesis turns light into sugar.")


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(a) for a in arguments])


def answered(texts: Sequence[str]) -> list[AnsweredDocument]:
    return [AnsweredDocument(position=n, text=text, metadata={}, name=None) for n, text in enumerate(texts)]


def test_only_passages_that_reach_the_threshold_are_returned_in_their_order() -> None:
    embedder = get_embedder()
    query = embedder.embed_query(QUESTION).astype(int)
    scores = [int(query @ embedder.embed_documents([t])[0].astype(int)) for t in (TEXTS[0], TEXTS[2])]
    assert scores[0] > scores[1]
    for threshold, expected in (
        (scores[1], [0, 2]), (scores[1] + 1, [0]), (scores[0], [0]), (scores[0] + 1, [])
    ):  # fmt: skip
        result = relevant(answered(TEXTS), QUESTION, embedder, threshold)
        assert [d.position for d, _ in result] == expected


def test_a_band_is_the_tenth_of_the_cosine() -> None:
    for a, b in ((3, 4), (1, 7), (-2, 5), (6, -6)):
        query, passage = np.array([a, b, 1], np.int8), np.array([b, 7, a], np.int8)
        cosine = (query.astype(int) @ passage.astype(int)) / np.linalg.norm(query) / np.linalg.norm(passage)
        assert band(query, passage) == max(0, int(np.floor(10 * cosine)))
    one = np.array([7, 7], np.int8)
    assert band(one, one) == 10 and band(one, -one) == 0
    # cosine exactly 0.6: floating-point arithmetic would decide the edge by rounding
    assert band(np.array([3, 4], np.int8), np.array([5, 0], np.int8)) == 6


def test_a_retriever_returns_no_passage_below_the_threshold(tmp_path: Path) -> None:
    """The same questions to windows with other noise: each band is a function of question and text only."""
    bands: dict[tuple[str, str], set[int]] = {}
    counts = []
    for name, threshold in (("low", 1), ("lower", 1), ("high", 49 * 64)):
        parties = Service(tmp_path / name)
        with (
            parties.open(system="scan", n=8, eps_acc="60", relevance=threshold) as window,
            serving(parties, window) as served,
        ):
            source = Source(
                served.service.url, parties.accounts["law-1"].directory, str(parties.key.verifier)
            )
            result = [(q, p) for q in 2 * QUESTIONS["law"] for p in source.ask(q)]
            counts.append(len(result))
            assert len(window.records) == 6  # an empty answer has a record as well
        for question, passage in result:
            evidence = passage.metadata[KEY]
            assert passage.band is not None and isinstance(evidence, dict)
            assert evidence["band"] == passage.band
            assert passage.score == passage.band / 10
            bands.setdefault((question, passage.text), set()).add(passage.band)
    # Under noise a question finds no passage in three of ten trials: all twelve fail once in two million.
    assert counts[2] == 0 < counts[0] + counts[1]
    assert all(len(values) == 1 for values in bands.values())


@pytest.mark.parametrize("value", [0, -1, 64 * 64 + 1, "229"])
def test_a_threshold_out_of_range_is_refused(value: object, tmp_path: Path) -> None:
    with pytest.raises((PolicyError, SchemaError)) as caught:
        Service(tmp_path).open(relevance=value)
    assert caught.value.field == "policy.relevance"


def test_the_measured_threshold_keeps_the_share_of_questions() -> None:
    """Ten questions with own scores 5, 10, .. 50: all reach 5, and nine of ten reach 10."""
    queries = np.zeros((10, 20), np.int8)
    rows = np.zeros((16, 20), np.int8)
    for i in range(10):
        queries[i, 2 * i : 2 * i + 2] = 5
        rows[i, 2 * i : 2 * i + 2] = (i + 1) // 2, (i + 2) // 2
    sample = Sample(TenantIndex(rows, tuple(range(10))), queries, [frozenset({i}) for i in range(10)])
    everyone, most = measure(sample, 1.0), measure(sample, 0.9)
    assert (everyone.score, everyone.own, everyone.other) == (5, 1.0, 0.0)
    assert (most.score, most.own) == (10, 0.9)
    near = Sample(sample.index, np.full_like(queries, 1), sample.relevant)
    assert measure(near, 1.0).score == 1 and measure(near, 1.0).other == 1.0


def test_policy_new_takes_the_embedder_s_threshold(tmp_path: Path) -> None:
    known = published_constants("wordllama-lexical-768").relevance
    for options, expected in (((), known), (("--relevance", "7"), 7), (("--relevance", "none"), None)):
        out = tmp_path / f"{len(options)}{options[-1:]}.json"
        result = run("provider", "policy", "new", str(out), "--window", "w", "--tenant", "law=64",
                     "--accounts", "16", "--n", "200", "--mechanism", "sampling", *options)  # fmt: skip
        assert result.exit_code == 0, result.stderr
        assert json.loads(out.read_text())["relevance"] == expected
    result = run(
        "provider",
        "policy",
        "new",
        str(tmp_path / "x"),
        "--window",
        "w",
        "--tenant",
        "law=64",
        "--relevance",
        "-3",
    )
    assert result.exit_code == 2 and "an integer >= 1, or none" in result.stderr


def test_lab_relevance_measures_public_texts(tmp_path: Path) -> None:
    passages, questions = tmp_path / "p.jsonl", tmp_path / "q.jsonl"
    passages.write_text(
        "".join(json.dumps({"id": f"{n}", "text": t}) + "\n" for n, t in enumerate(TEXTS[::2]))
    )
    questions.write_text(json.dumps({"question": QUESTION, "passage": "0"}) + "\n")
    result = run("lab", "relevance", "--index", str(passages), "--questions", str(questions), "--json")
    value = json.loads(result.stdout)
    embedder = get_embedder()
    own = int(
        embedder.embed_query(QUESTION).astype(int) @ embedder.embed_documents([TEXTS[0]])[0].astype(int)
    )
    assert value["relevance"] == own and value["own"] == "1.0000" and value["questions"] == 1
