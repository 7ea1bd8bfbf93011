"""The client of a program with asyncio: as `sync`, with the account's files used in threads."""

from __future__ import annotations

import asyncio
import concurrent.futures
import time
from types import TracebackType
from typing import Self, TypeVar

import httpx

from rag_audit._internal.canonical import Json
from rag_audit._internal.errors import OtherWindow, RequestRefused, SignatureError
from rag_audit.account.account import Account
from rag_audit.account.client.attempts import Attempts, Patience, Wait
from rag_audit.account.client.enrolling import ENROLMENTS, MAX_BYTES, answered, offered, request_of
from rag_audit.account.client.reading import Held, Reading, Recorded, held, published, recorded
from rag_audit.account.client.web import (
    HEADERS,
    QUERY,
    base_url,
    found_of,
    limits_of,
    may_have_left,
    not_fetched,
    options_of,
    too_large,
)
from rag_audit.log.keys import VerifierKey
from rag_audit.models.enrolling import EnrolmentAnswer, EnrolmentOffer
from rag_audit.models.publication import Publication
from rag_audit.models.requests import MAX_ANSWER_BYTES, Answer, SignedRequest
from rag_audit.retrieval.embedders import Embedder

T = TypeVar("T")


class AsyncClient:
    """A provider's service as an account sees it (`sync.Client`), for one event loop."""

    def __init__(
        self,
        url: str,
        provider: VerifierKey,
        *,
        patience: Patience | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self.provider = provider
        self._patience = patience or Patience()
        self._url = base_url(url)
        self._window: Publication | None = None
        self._http = httpx.AsyncClient(
            headers=HEADERS,
            timeout=self._patience.response_s,
            limits=limits_of(),
            transport=transport,
            **({} if transport is not None else options_of(self._url)),
        )

    async def publication(self) -> Publication:
        """See `sync.Client.publication`."""
        self._window = await self._read(published(self.provider))
        return self._window

    async def held(
        self, account: Account, window: Publication, witnesses: tuple[VerifierKey, ...] = ()
    ) -> Held:
        """See `sync.Client.held`."""
        return await self._read(held(account, window, self.provider, witnesses))

    async def recorded(self, account: str, window: Publication) -> Recorded:
        """See `sync.Client.recorded`."""
        return await self._read(recorded(account, window, self.provider))

    async def ask(
        self,
        account: Account,
        text: str,
        *,
        window: Publication | None = None,
        embedder: Embedder | None = None,
    ) -> Answer:
        """See `sync.Client.ask`. A call that is cancelled leaves its request to be repeated by the next."""
        where, loop = window or self._window or await self.publication(), asyncio.get_running_loop()
        sending: list[concurrent.futures.Future[Json]] = []

        def send(request: SignedRequest) -> Json:
            future = asyncio.run_coroutine_threadsafe(self.send(request), loop)
            sending.append(future)
            return future.result()

        try:
            return await asyncio.to_thread(account.ask, where, text, self.provider, send, embedder=embedder)
        except (OtherWindow, RequestRefused, SignatureError):
            self._window = None
            raise
        except asyncio.CancelledError:
            for future in sending:
                future.cancel()  # the thread must not wait for a loop that may be at its end
            raise

    async def enrolments(self) -> EnrolmentOffer:
        """See `sync.Client.enrolments`."""
        return await self._read(offered())

    async def enrol(self, account: Account, window: str | None = None) -> EnrolmentAnswer:
        """See `sync.Client.enrol`."""
        request = request_of(account, await self.enrolments(), window)
        attempts, body = Attempts(self._patience, self._url), request.canonical()
        while True:
            try:
                async with self._http.stream("POST", self._url + ENROLMENTS, content=body) as response:
                    content = await self._content(response, MAX_BYTES)
                after = response.headers.get("retry-after")
                found = answered(attempts, request, self.provider, response.status_code, after, content)
            except httpx.HTTPError as exc:
                found = attempts.lost(found_of(exc), sent=may_have_left(exc))
            if not isinstance(found, Wait):
                return found
            await asyncio.sleep(found.seconds)

    async def send(self, request: SignedRequest) -> Json:
        """See `sync.Client.send`."""
        attempts, body = Attempts(self._patience, self._url), request.canonical()
        while True:
            try:
                async with self._http.stream("POST", self._url + QUERY, content=body) as response:
                    content = await self._content(response, MAX_ANSWER_BYTES)
                found = attempts.reply(response.status_code, response.headers.get("retry-after"), content)
            except httpx.HTTPError as exc:
                found = attempts.lost(found_of(exc), sent=may_have_left(exc))
            if not isinstance(found, Wait):
                return found
            await asyncio.sleep(found.seconds)

    async def _read(self, reading: Reading[T]) -> T:
        try:
            path, most = next(reading)
            while True:
                path, most = reading.send(await self._get(path, most))
        except StopIteration as end:
            result: T = end.value
            return result

    async def _get(self, path: str, most: int) -> bytes:
        try:
            async with self._http.stream("GET", self._url + path) as response:
                if response.status_code != 200:
                    raise not_fetched(
                        self._url + path, f"status {response.status_code}", response.status_code
                    )
                return await self._content(response, most)
        except httpx.HTTPError as exc:
            raise not_fetched(self._url + path, found_of(exc)) from exc

    async def _content(self, response: httpx.Response, most: int) -> bytes:
        parts, size = list[bytes](), 0
        until = time.monotonic() + self._patience.response_s  # the client's own limit is one of each read
        async for part in response.aiter_raw():
            parts.append(part)
            size += len(part)
            if size > most:
                raise too_large(response, most)
            if time.monotonic() >= until:
                raise httpx.ReadTimeout("the response does not end", request=response.request)
        return b"".join(parts)

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
