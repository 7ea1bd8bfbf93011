"""LangChain: `pip install 'ragaudit-zk[langchain]'`.

A `Document` has the passage, the provider's metadata and, under "rag_audit", its evidence (`Evidence.of`).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from pydantic import PrivateAttr

from rag_audit.account.retrievers.source import Found, Source


class RagAuditRetriever(BaseRetriever):
    """An account's questions to a service as a LangChain retriever: `invoke`, `ainvoke`, `batch`, callbacks.

    `Source` describes the parameters. Questions of one account run one after another, also within a batch.
    """

    url: str
    account: Path
    provider: str
    model: Path | None = None
    top_k: int | None = None
    _source: Source = PrivateAttr()

    def model_post_init(self, context: Any, /) -> None:
        self._source = Source(self.url, self.account, self.provider, self.model, self.top_k)

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        return [_document(result) for result in self._source.ask(query)]

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun
    ) -> list[Document]:
        return [_document(result) for result in await self._source.ask_async(query)]


def _document(actual: Found) -> Document:
    return Document(page_content=actual.text, metadata=dict(actual.metadata), id=actual.id)
