"""The retrievers in the real frameworks. What is not installed is skipped: `make test-full` installs all of them."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from typing import Any

import pytest

from rag_audit.retrievers.evidence import KEY, Evidence
from tests.retrievers.conftest import DESCRIBED, Program
from tests.window.simulator import QUESTIONS

os.environ["HAYSTACK_TELEMETRY_ENABLED"] = "False"
Make = Callable[[], Program]
QUESTION = QUESTIONS["law"][0]
KNOWN = {p.text: p.fields for p in DESCRIBED["law"]}


def checked(found: list[tuple[str, dict[str, Any]]], told: Program) -> None:
    """Passages that a framework handed on are the committed ones, and lead to their receipts."""
    for text, metadata in found:
        assert {k: v for k, v in metadata.items() if k != KEY} == KNOWN[text]
        assert Evidence.of(metadata).receipt().query == QUESTION


def test_langchain(program: Make) -> None:
    from langchain_core.callbacks import BaseCallbackHandler
    from langchain_core.runnables import RunnableLambda

    from rag_audit.retrievers.langchain import RagAuditRetriever

    seen: list[str] = []

    class Handler(BaseCallbackHandler):
        def on_retriever_start(self, serialized: Any, query: str, **_: Any) -> None:
            seen.append(query)

        def on_retriever_end(self, documents: Any, **_: Any) -> None:
            seen.append("end")

    told = program()
    retriever = RagAuditRetriever(url=told.url, account=told.account, provider=told.provider)
    chain = retriever | RunnableLambda(lambda documents: [(d.page_content, d.metadata) for d in documents])
    found = chain.invoke(QUESTION, {"callbacks": [Handler()]}) + asyncio.run(chain.ainvoke(QUESTION))
    for batch in retriever.batch([QUESTION] * 4):
        found += [(d.page_content, d.metadata) for d in batch]
        assert all(d.id == d.metadata["id"] for d in batch)
    assert seen == [QUESTION, "end"] and len(told.served.window.records) == 6
    checked(found, told)


@pytest.mark.frameworks
def test_llama_index(program: Make) -> None:
    from llama_index.core.schema import MetadataMode

    from rag_audit.retrievers.llama_index import RagAuditRetriever

    told = program()
    retriever = RagAuditRetriever(told.url, told.account, told.provider)
    nodes = [node for _ in range(3) for node in retriever.retrieve(QUESTION)]
    nodes += asyncio.run(retriever.aretrieve(QUESTION))
    assert len(told.served.window.records) == 4
    for node in nodes:
        shown = node.get_content(metadata_mode=MetadataMode.LLM)
        assert "law.txt" in shown and told.provider not in shown and "opening" not in shown
    checked([(n.get_content(metadata_mode=MetadataMode.NONE), n.metadata) for n in nodes], told)


@pytest.mark.frameworks
def test_haystack(program: Make) -> None:
    from haystack import Pipeline

    from rag_audit.retrievers.haystack import RagAuditRetriever

    told = program()
    pipeline = Pipeline()
    pipeline.add_component(
        "retriever", RagAuditRetriever(told.url, str(told.account), told.provider, top_k=1)
    )
    written = Pipeline.loads(pipeline.dumps(), allowed_modules=["rag_audit.retrievers.haystack"])
    found = [
        d for _ in range(3) for d in written.run({"retriever": {"query": QUESTION}})["retriever"]["documents"]
    ]
    other = RagAuditRetriever(told.url, str(told.account), told.provider)
    found += asyncio.run(other.run_async(query=QUESTION))["documents"]
    assert len(told.served.window.records) == 4
    checked([(d.content, d.meta) for d in found], told)


@pytest.mark.frameworks
def test_haystack_joins_answers_by_committed_passage(program: Make) -> None:
    from haystack.components.joiners import DocumentJoiner

    from rag_audit.retrievers.haystack import RagAuditRetriever

    told = program()
    retriever = RagAuditRetriever(told.url, str(told.account), told.provider)
    answers = [retriever.run(query=question)["documents"] for question in (*QUESTIONS["law"], QUESTION)]
    committed = {d.content: KNOWN[d.content]["id"] for answer in answers for d in answer}
    assert sum(map(len, answers)) > len(committed) > 0  # some passage was handed out twice
    assert all(d.id == committed[d.content] for answer in answers for d in answer)
    for mode in ("concatenate", "merge", "reciprocal_rank_fusion"):
        joined = DocumentJoiner(join_mode=mode).run(answers)["documents"]
        assert sorted(d.content for d in joined) == sorted(committed)


@pytest.mark.frameworks
def test_llama_index_joins_answers_by_committed_passage(program: Make) -> None:
    from llama_index.core.llms import MockLLM
    from llama_index.core.retrievers import QueryFusionRetriever

    from rag_audit.retrievers.llama_index import RagAuditRetriever

    told = program()
    retriever = RagAuditRetriever(told.url, told.account, told.provider)
    answers = [retriever.retrieve(QUESTION) for _ in range(2)]
    nodes = [n.node for answer in answers for n in answer]
    assert all(n.node_id == KNOWN[n.text]["id"] for n in nodes)
    by_text = {n.text: n.hash for n in nodes}
    assert all(n.hash == by_text[n.text] for n in nodes) and len({*by_text.values()}) == len(by_text)
    for mode in ("simple", "reciprocal_rerank", "relative_score"):
        fused = QueryFusionRetriever([retriever, retriever], llm=MockLLM(), num_queries=1, similarity_top_k=10,
                                     mode=mode, use_async=False).retrieve(QUESTION)  # fmt: skip
        assert len(fused) == len({n.text for n in fused})
