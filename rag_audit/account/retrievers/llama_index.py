"""LlamaIndex: `pip install 'ragaudit-zk[llama-index]'`.

A node has the passage, the provider's metadata and, under "rag_audit", its evidence (`Evidence.of`), which no
prompt shows.
"""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from typing import Any

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

from rag_audit.account.retrievers.evidence import KEY
from rag_audit.account.retrievers.source import Found, Source


class RagAuditRetriever(BaseRetriever):
    """An account's questions to a service as a LlamaIndex retriever. The score of a node is its score band, and None
    if the policy has no relevance threshold.

    `Source` describes the parameters.
    """

    def __init__(
        self, url: str, account: Path, provider: str, model: Path | None = None, top_k: int | None = None
    ) -> None:
        super().__init__()
        self._source = Source(url, account, provider, model, top_k)

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return [_node(result) for result in self._source.ask(query_bundle.query_str)]

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return [_node(result) for result in await self._source.ask_async(query_bundle.query_str)]


class PassageNode(TextNode):
    """A node of a committed passage."""

    @property
    def hash(self) -> str:
        """The digest that LlamaIndex uses to identify nodes. It covers only the id, since the metadata names the
        question."""
        return sha256(self.id_.encode("utf-8", "surrogatepass")).hexdigest()


def _node(actual: Found) -> NodeWithScore:
    # LlamaIndex accepts `metadata` by this name, but its declared types only name the field `extra_info`.
    values: dict[str, Any] = {
        "id_": actual.id,
        "text": actual.text,
        "metadata": dict(actual.metadata),
        "excluded_embed_metadata_keys": [KEY],
        "excluded_llm_metadata_keys": [KEY],
    }
    return NodeWithScore(node=PassageNode(**values), score=actual.score)
