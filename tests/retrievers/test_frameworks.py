"""The retrievers in the real frameworks. What is not installed is skipped: `make test-full` installs all of them."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from typing import Any

import pytest

from rag_audit.account.retrievers.evidence import KEY, Evidence
from rag_audit.account.retrievers.source import Found, Names, Source
from tests.retrievers.conftest import DESCRIBED, Program
from tests.window.simulator import QUESTIONS, TEXTS

os.environ["HAYSTACK_TELEMETRY_ENABLED"] = "False"
Make = Callable[[], Program]
QUESTION = QUESTIONS["law"][0]
KNOWN = {p.text: p.fields for p in DESCRIBED["law"]}


def checked(actual: list[tuple[str, dict[str, Any]]], told: Program) -> None:
    """Passages that a framework handed on are the committed ones, and lead to their receipts."""
    for text, metadata in actual:
        assert {k: v for k, v in metadata.items() if k != KEY} == KNOWN[text]
        assert Evidence.of(metadata).receipt().query == QUESTION


def test_langchain(program: Make) -> None:
    from langchain_core.callbacks import BaseCallbackHandler
    from langchain_core.runnables import RunnableLambda

    from rag_audit.account.retrievers.langchain import RagAuditRetriever

    seen: list[str] = []

    class Handler(BaseCallbackHandler):
        def on_retriever_start(self, serialized: Any, query: str, **_: Any) -> None:
            seen.append(query)

        def on_retriever_end(self, documents: Any, **_: Any) -> None:
            seen.append("end")

    told = program()
    retriever = RagAuditRetriever(url=told.url, account=told.account, provider=told.provider)
    chain = retriever | RunnableLambda(lambda documents: [(d.page_content, d.metadata) for d in documents])
    result = chain.invoke(QUESTION, {"callbacks": [Handler()]}) + asyncio.run(chain.ainvoke(QUESTION))
    for batch in retriever.batch([QUESTION] * 4):
        result += [(d.page_content, d.metadata) for d in batch]
        assert all(d.id == d.metadata["id"] for d in batch)
    assert seen == [QUESTION, "end"] and len(told.served.window.records) == 6
    checked(result, told)


@pytest.mark.frameworks
def test_llama_index(program: Make) -> None:
    from llama_index.core.schema import MetadataMode

    from rag_audit.account.retrievers.llama_index import RagAuditRetriever

    told = program()
    retriever = RagAuditRetriever(told.url, told.account, told.provider)
    nodes = [node for _ in range(3) for node in retriever.retrieve(QUESTION)]
    nodes += asyncio.run(retriever.aretrieve(QUESTION))
    assert len(told.served.window.records) == 4
    for node in nodes:
        shown = node.get_content(metadata_mode=MetadataMode.LLM)
        assert "law.txt" in shown and told.provider not in shown and "header" not in shown
    checked([(n.get_content(metadata_mode=MetadataMode.NONE), n.metadata) for n in nodes], told)


@pytest.mark.frameworks
def test_haystack(program: Make) -> None:
    from haystack import Pipeline

    from rag_audit.account.retrievers.haystack import RagAuditRetriever

    told = program()
    pipeline = Pipeline()
    pipeline.add_component(
        "retriever", RagAuditRetriever(told.url, str(told.account), told.provider, top_k=1)
    )
    written = Pipeline.loads(pipeline.dumps(), allowed_modules=["rag_audit.account.retrievers.haystack"])
    result = [
        d for _ in range(3) for d in written.run({"retriever": {"query": QUESTION}})["retriever"]["documents"]
    ]
    other = RagAuditRetriever(told.url, str(told.account), told.provider)
    result += asyncio.run(other.run_async(query=QUESTION))["documents"]
    assert len(told.served.window.records) == 4
    checked([(d.content, d.meta) for d in result], told)


class Answers:
    """Answers to questions that find the same passages, each with the evidence of its own question, as `Source.ask`
    gives them; made by hand, so that no chance decides which passages come twice."""

    def __init__(self) -> None:
        self.i = 0

    def ask(self, _: Source, question: str) -> list[Found]:
        self.i += 1
        evidence = {
            "window": "w-1",
            "header": "ab" * 32,
            "account": "alice",
            "i": self.i,
            "service": "http://a",
        }
        described = [
            (n, text, {"id": f"law/{n}", "source": "law.txt"}) for n, text in enumerate(TEXTS["law"][:3])
        ]
        plain = [(7, TEXTS["law"][3], dict[str, Any]())]  # a passage without an id
        return [
            Found(Names("ab" * 32).name("law", n, fields), text, {**fields, KEY: {**evidence, "position": n}})
            for n, text, fields in described + plain
        ]


EXPECTED = {
    "law/0": TEXTS["law"][0],
    "law/1": TEXTS["law"][1],
    "law/2": TEXTS["law"][2],
    f"{'ab' * 8}/law/7": TEXTS["law"][3],
}


@pytest.mark.frameworks
def test_haystack_joins_answers_by_committed_passage(program: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    from haystack.components.joiners import DocumentJoiner

    from rag_audit.account.retrievers.haystack import RagAuditRetriever

    told, answers = program(), Answers()
    monkeypatch.setattr(Source, "ask", lambda source, question: answers.ask(source, question))
    retriever = RagAuditRetriever(told.url, str(told.account), told.provider)
    for mode in ("concatenate", "merge", "reciprocal_rank_fusion"):
        result = [retriever.run(query=QUESTION)["documents"] for _ in range(3)]
        assert all({d.id: d.content for d in answer} == EXPECTED for answer in result)
        joined = DocumentJoiner(join_mode=mode).run(result)["documents"]
        assert {d.id: d.content for d in joined} == EXPECTED and len(joined) == len(EXPECTED)


@pytest.mark.frameworks
def test_llama_index_joins_answers_by_committed_passage(
    program: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    from llama_index.core.llms import MockLLM
    from llama_index.core.retrievers import QueryFusionRetriever

    from rag_audit.account.retrievers.llama_index import RagAuditRetriever

    told, answers = program(), Answers()
    monkeypatch.setattr(Source, "ask", lambda source, question: answers.ask(source, question))
    retriever = RagAuditRetriever(told.url, told.account, told.provider)
    first, second = retriever.retrieve(QUESTION), retriever.retrieve(QUESTION)
    assert {n.node_id: n.text for n in first} == EXPECTED
    assert [n.node.hash for n in first] == [n.node.hash for n in second]
    assert len({n.node.hash for n in first}) == len(EXPECTED)
    for mode in ("simple", "reciprocal_rerank", "relative_score"):
        fused = QueryFusionRetriever([retriever, retriever], llm=MockLLM(), num_queries=1, similarity_top_k=10,
                                     mode=mode, use_async=False).retrieve(QUESTION)  # fmt: skip
        assert {n.node_id: n.text for n in fused} == EXPECTED and len(fused) == len(EXPECTED)


def test_langchain_names_a_committed_passage(program: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    from rag_audit.account.retrievers.langchain import RagAuditRetriever

    told, answers = program(), Answers()
    monkeypatch.setattr(Source, "ask", lambda source, question: answers.ask(source, question))
    retriever = RagAuditRetriever(url=told.url, account=told.account, provider=told.provider)
    for _ in range(2):
        assert {d.id: d.page_content for d in retriever.invoke(QUESTION)} == EXPECTED
