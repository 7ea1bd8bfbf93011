"""An account's client over HTTP, with and without asyncio (docs/http.md, "The account's client")."""

from rag_audit.account.client.asynchronous import AsyncClient
from rag_audit.account.client.attempts import Patience
from rag_audit.account.client.sync import Client

__all__ = ["AsyncClient", "Client", "Patience"]
