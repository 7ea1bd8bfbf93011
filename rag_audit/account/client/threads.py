"""Asking from an event loop: the account's files are used in a thread, the request leaves from the loop."""

from __future__ import annotations

import asyncio
import concurrent.futures
from collections.abc import Callable, Coroutine

from rag_audit._internal.canonical import Json
from rag_audit.account.account import Account
from rag_audit.log.keys import VerifierKey
from rag_audit.models.publication import Publication
from rag_audit.models.requests import Answer, SignedRequest
from rag_audit.retrieval.embedders import Embedder


async def ask_in_a_thread(
    account: Account,
    window: Publication,
    text: str,
    provider: VerifierKey,
    send: Callable[[SignedRequest], Coroutine[None, None, Json]],
    *,
    embedder: Embedder | None = None,
) -> Answer:
    """`Account.ask` with a coroutine of the running event loop that sends the requests.

    :raises asyncio.CancelledError: the call was cancelled; the next call repeats its request
    """
    loop = asyncio.get_running_loop()
    sending: list[concurrent.futures.Future[Json]] = []

    def send_from_the_loop(request: SignedRequest) -> Json:
        future = asyncio.run_coroutine_threadsafe(send(request), loop)
        sending.append(future)
        return future.result()

    try:
        return await asyncio.to_thread(
            account.ask, window, text, provider, send_from_the_loop, embedder=embedder
        )
    except asyncio.CancelledError:
        for future in sending:
            future.cancel()  # the thread must not wait for a loop that may be at its end
        raise
