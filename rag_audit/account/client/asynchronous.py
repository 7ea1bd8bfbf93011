"""The client of an account (docs/http.md, "The account's client"); `sync.py` is generated from this file.

After a change: `python packaging/sync_client.py`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TypeVar

import httpx

from rag_audit._internal.canonical import Json
from rag_audit._internal.closing import AsyncClosing
from rag_audit._internal.errors import OtherWindow, RequestRefused, SignatureError
from rag_audit._internal.http import body_of_async, error_in_words
from rag_audit.account.account import Account
from rag_audit.account.client.attempts import Attempts, Patience, Wait
from rag_audit.account.client.enrolling import ENROLMENTS, MAX_BYTES, answered, offered, request_of
from rag_audit.account.client.naming import NAMES, proved
from rag_audit.account.client.reading import (
    ComparedReceipts,
    Reading,
    Recorded,
    compared,
    published,
    recorded,
)
from rag_audit.account.client.threads import ask_in_a_thread
from rag_audit.account.client.web import (
    HEADERS,
    LIMITS,
    QUERY,
    base_url,
    may_have_left,
    not_fetched,
    options_of,
)
from rag_audit.account.names import NamesReport
from rag_audit.log.keys import VerifierKey
from rag_audit.models.enrolling import EnrolmentAnswer, EnrolmentOffer
from rag_audit.models.names import MAX_NAMES_ANSWER_BYTES
from rag_audit.models.publication import Publication
from rag_audit.models.requests import MAX_ANSWER_BYTES, Answer, SignedRequest
from rag_audit.proofs.interface import Pins
from rag_audit.retrieval.embedders import Embedder

T = TypeVar("T")


class AsyncClient(AsyncClosing):
    """An account's view of a provider's service.

    Several threads may share a `Client`; an `AsyncClient` belongs to one event loop, and uses the account's files in
    threads.

    :param url: the address of the service; a service below a proxy's path has an address that ends with this path
    :param provider: the provider's key, for checking all received data
    :param transport: the carrier of requests, for tests
    :raises SetupError: the URL is not one of HTTP, or the environment names an unusable proxy (`proxies.proxy_of`)
    """

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
            limits=LIMITS,
            transport=transport,
            **({} if transport is not None else options_of(self._url)),
        )

    async def publication(self) -> Publication:
        """The window that is served now, checked (`reading.published`)."""
        self._window = await self._read(published(self.provider))
        return self._window

    async def compare_receipts(
        self, account: Account, window: Publication, witnesses: tuple[VerifierKey, ...] = ()
    ) -> ComparedReceipts:
        """Check the account's receipts against the window's log (`reading.compared`)."""
        return await self._read(compared(account, window, self.provider, witnesses))

    async def recorded(self, account: str, window: Publication) -> Recorded:
        """Read the log for the records of one account (`reading.recorded`)."""
        return await self._read(recorded(account, window, self.provider))

    async def ask(
        self,
        account: Account,
        text: str,
        *,
        window: Publication | None = None,
        embedder: Embedder | None = None,
    ) -> Answer:
        """Ask one question (`Account.ask`). The request is durable before it leaves, and is repeated until it is
        answered, also by a later call or another process. The receipt is stored in the account's folder. If a call is
        cancelled, the next call repeats its request.

        :param window: the window to ask in; if None, the served window of the last read, which a refusal causes to be
            read anew
        :raises RequestRefused: the provider refused, with its signed reason
        :raises SetupError: the provider did not answer in time; ask the same question a second time
        """
        where = window or self._window or await self.publication()
        try:
            return await ask_in_a_thread(account, where, text, self.provider, self.send, embedder=embedder)
        except (OtherWindow, RequestRefused, SignatureError):
            self._window = None  # another window may be served by now
            raise

    async def enrolments(self) -> EnrolmentOffer:
        """For which windows the provider takes enrolment requests.

        :raises SetupError: it takes none over HTTP, or does not answer
        """
        return await self._read(offered())

    async def enrol(self, account: Account, window: str | None = None) -> EnrolmentAnswer:
        """Ask for a place on a window's roster, under the account's newest key, or for the outcome of that request; the
        request is the same each time. The caller has to wait for the decision.

        :param window: the window's id; by default the last window for which the provider takes requests
        :raises RequestRefused: the service does not take the request
        :raises SetupError: the provider did not answer in time
        """
        request = request_of(account, await self.enrolments(), window)
        attempts = Attempts(self._patience, self._url)
        reply = partial(answered, attempts, request, self.provider)
        return await self._post(ENROLMENTS, request.canonical(), MAX_BYTES, attempts, reply)

    async def names(
        self, account: Account, window: Publication, *, column: str | None = None, pins: Pins | None = None
    ) -> NamesReport:
        """Check the names of the documents of the account's passages in the served window, with the provider's proof.
        The account's folder stores the proof, and a later call for the same passages reads it there. The method
        replaces a stored proof that it cannot use.

        :param column: the metadata field that names documents (`names.check_names`)
        :param pins: the account's pins of verification keys, such as those of a trust file, for a tenant with circuits
        :raises InvalidProof: a comparison fails, or the proof is false
        :raises RequestRefused: the service does not take the request
        :raises SetupError: the account has no passage of the window, or the provider did not answer in time
        """
        # The proof comes before the comparison: two proved names of one document are evidence, and stay in the folder.
        at = account.passages(window)
        found = account.usable_proof(window, at, pins)
        setup = None if found == "damaged" else found
        requests, answers = [] if setup else account.names_requests(window, at), []
        for request in requests:
            attempts = Attempts(self._patience, self._url)
            reply = partial(proved, attempts)
            answers.append(
                await self._post(NAMES, request.canonical(), MAX_NAMES_ANSWER_BYTES, attempts, reply)
            )
        if setup is None:
            setup = account.accept_names(window, at, requests, answers, pins)
        report = account.check_names(window, column=column)
        return replace(report.with_proof(setup), replaced=found == "damaged")

    async def send(self, request: SignedRequest) -> Json:
        """Send a signed request until there is a reply, which is not checked here."""
        attempts = Attempts(self._patience, self._url)
        return await self._post(QUERY, request.canonical(), MAX_ANSWER_BYTES, attempts, attempts.reply)

    async def _post(
        self,
        path: str,
        content: bytes,
        maximum: int,
        attempts: Attempts,
        reply: Callable[[int, str | None, bytes], T | Wait],
    ) -> T:
        """Send a request until `reply` takes a response as its reply."""
        while True:
            try:
                async with self._http.stream("POST", self._url + path, content=content) as response:
                    body = await body_of_async(response, maximum, self._patience.response_s)
                result = reply(response.status_code, response.headers.get("retry-after"), body)
            except httpx.HTTPError as exc:
                result = attempts.lost(error_in_words(exc), sent=may_have_left(exc))
            if not isinstance(result, Wait):
                return result
            await asyncio.sleep(result.seconds)

    async def _read(self, reading: Reading[T]) -> T:
        try:
            path, maximum = next(reading)
            while True:
                path, maximum = reading.send(await self._get(path, maximum))
        except StopIteration as end:
            result: T = end.value
            return result

    async def _get(self, path: str, maximum: int) -> bytes:
        address = self._url + path
        try:
            async with self._http.stream("GET", address) as response:
                if response.status_code != 200:
                    raise not_fetched(address, f"status {response.status_code}", response.status_code)
                return await body_of_async(response, maximum, self._patience.response_s)
        except httpx.HTTPError as exc:
            raise not_fetched(address, error_in_words(exc)) from exc

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()
