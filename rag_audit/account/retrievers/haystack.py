"""Haystack: `pip install 'ragaudit-zk[haystack]'`.

A `Document` has the passage, the provider's metadata and, under "rag_audit", its evidence (`Evidence.of`).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from haystack import Document, component, default_from_dict, default_to_dict

from rag_audit.account.retrievers.source import Found, Source


@component
class RagAuditRetriever:
    """An account's questions to a service as a component of a Haystack pipeline.

    The parameters are the parameters of `Source`, as text, so that a pipeline with this component can be serialised.
    """

    def __init__(
        self, url: str, account: str, provider: str, model: str | None = None, top_k: int | None = None
    ) -> None:
        self._given = {"url": url, "account": account, "provider": provider, "model": model, "top_k": top_k}
        self._source = Source(url, Path(account), provider, None if model is None else Path(model), top_k)

    def to_dict(self) -> dict[str, Any]:
        """The component as a pipeline's file has it."""
        written: dict[str, Any] = default_to_dict(self, **self._given)
        return written

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> RagAuditRetriever:
        """The component that a pipeline's file describes."""
        result: RagAuditRetriever = default_from_dict(cls, data)
        return result

    @component.output_types(documents=list[Document])
    def run(self, query: str) -> dict[str, list[Document]]:
        """Retrieve the passages that answer a question."""
        return {"documents": [_document(result) for result in self._source.ask(query)]}

    @component.output_types(documents=list[Document])
    async def run_async(self, query: str) -> dict[str, list[Document]]:
        """`run` for a pipeline with asyncio."""
        return {"documents": [_document(result) for result in await self._source.ask_async(query)]}


def _document(actual: Found) -> Document:
    # Haystack's own id would be a digest of the metadata too, which names the question.
    return Document(id=actual.id, content=actual.text, meta=dict(actual.metadata), score=actual.score)
