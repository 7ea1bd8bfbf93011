"""The common part of the retrievers for all frameworks: one account's questions to a service over HTTP, and its
passages."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from rag_audit._internal.canonical import Json
from rag_audit._internal.errors import OtherWindow, RagAuditError, RequestRefused, SetupError, SignatureError
from rag_audit._internal.printable import printable
from rag_audit.account.account import Account, check_receipt, embedder_of
from rag_audit.account.client.asynchronous import AsyncClient
from rag_audit.account.client.sync import Client
from rag_audit.account.client.web import base_url
from rag_audit.account.relevance import BANDS, relevant
from rag_audit.account.retrievers.evidence import KEY, Evidence
from rag_audit.log.keys import VerifierKey
from rag_audit.models.passage import name_of
from rag_audit.models.publication import Publication
from rag_audit.models.requests import Answer, AnsweredDocument
from rag_audit.retrieval.embedders import Embedder

OVER = ("closed", "wrong-window")
"""Refusals after which another window may be served."""


class RepeatedId(UserWarning):
    """Two committed passages of one tenant have the same id in their metadata."""


@dataclass(frozen=True)
class Found:
    """A passage in an answer to a question.

    :param id: the same for each answer with this committed passage, and different for other passages of the window
    :param metadata: the metadata of the document, and under `KEY` the place of the answer's evidence
    :param band: the passage's score band, 0 to 10 (`rag_audit.account.relevance.band`); None if the policy has no
        threshold
    """

    id: str
    text: str
    metadata: dict[str, Json]
    band: int | None = None

    @property
    def score(self) -> float | None:
        """The lower edge of the score band as a cosine, for frameworks that want a score."""
        return None if self.band is None else self.band / BANDS


class Names:
    """The ids of one window's passages as retrievers hand them on. Safe to use from several threads.

    A passage's id is the one in its metadata, so that it is also the id that other retrievers over the same documents
    give it. Without one it is ``<window>/<tenant>/<position>`` with the first 16 digits of the window header's digest
    for the window. A program that joins answers drops all but one of the passages with an id. If a second passage has
    an id that belongs to another passage, it therefore gets the id of its position, and the warning `RepeatedId` is
    issued.

    :param header: the digest of the window header
    """

    def __init__(self, header: str) -> None:
        self.header = header
        self._positions: dict[tuple[str, str], int] = {}

    def name(self, tenant: str, position: int, fields: Mapping[str, Json]) -> str:
        """The id of the passage with these metadata fields at a tenant's position."""
        placed = f"{self.header[:16]}/{tenant}/{position}"
        name = name_of(fields)
        if name is None:
            return placed
        owner = self._positions.setdefault((tenant, name), position)
        if owner == position:
            return name
        warnings.warn(
            f"the passages at positions {owner} and {position} of tenant {tenant} have the same id in their metadata:"
            f" {printable(name)[:80]}; the one at {position} is handed on as {placed}",
            RepeatedId,
            stacklevel=2,
        )
        return placed


@dataclass
class Source:
    """One account's questions to a service. Safe to use from several threads; questions of one account run one after
    another.

    :param url: the service
    :param account: the account's folder, with its requests and receipts
    :param provider: the provider's vkey
    :param model: the folder with the files of the window's embedder, if it has any
    :param top_k: the maximum number of passages; None uses the policy's number
    """

    url: str
    account: Path
    provider: str
    model: Path | None = None
    top_k: int | None = None
    _party: Account = field(init=False, repr=False)
    _key: VerifierKey = field(init=False, repr=False)
    _window: Publication | None = field(init=False, repr=False, default=None)
    _embedders: dict[str, Embedder] = field(init=False, repr=False, default_factory=dict)
    _names: Names = field(init=False, repr=False, default_factory=lambda: Names(""))

    def __post_init__(self) -> None:
        if self.top_k is not None and self.top_k < 1:
            raise SetupError(
                "a retriever needs passages", field="top_k", expected="1 or more", actual=self.top_k
            )
        base_url(self.url)  # which is refused here, and not with the first question
        self._party = Account(Path(self.account))
        self._key = VerifierKey.parse(self.provider, field="provider")

    def ask(self, question: str) -> list[Found]:
        """The passages that answer a question, in the served window.

        :raises RequestRefused: the provider refused, with its signed reason
        :raises SetupError: the provider did not answer in time; asking the same question sends the same request a
            second time
        """
        with Client(self.url, self._key) as client:
            window = self._window = self._window or client.publication()
            try:
                answer = client.ask(self._party, question, window=window, embedder=self._embedder(window))
            except (OtherWindow, RequestRefused, SignatureError) as exc:
                before, self._window = window, None
                window = client.publication()
                if not _moved(exc, before, window):
                    raise
                answer = client.ask(self._party, question, window=window, embedder=self._embedder(window))
                self._window = window
        return self._found(question, window, answer)

    async def ask_async(self, question: str) -> list[Found]:
        """`ask` for a program with asyncio."""
        async with AsyncClient(self.url, self._key) as client:
            window = self._window = self._window or await client.publication()
            try:
                answer = await client.ask(
                    self._party, question, window=window, embedder=self._embedder(window)
                )
            except (OtherWindow, RequestRefused, SignatureError) as exc:
                before, self._window = window, None
                window = await client.publication()
                if not _moved(exc, before, window):
                    raise
                answer = await client.ask(
                    self._party, question, window=window, embedder=self._embedder(window)
                )
                self._window = window
        return self._found(question, window, answer)

    def _embedder(self, window: Publication) -> Embedder:
        digest = window.header_digest()
        if digest not in self._embedders:
            self._embedders = {digest: embedder_of(window, self.model)}
        return self._embedders[digest]

    def _found(self, question: str, window: Publication, answer: Answer) -> list[Found]:
        """An answer's passages that reach the policy's relevance threshold."""
        record = check_receipt(answer.receipt, window, self._key).record
        documents = [d for d in answer.documents if d.text]
        policy = window.parsed_policy()
        maximum = self.top_k or policy.top_k
        evidence = Evidence.parse(
            {"window": record.window, "header": window.header_digest(), "account": str(self.account),
             "i": record.i, "service": self.url},
            field=KEY,
        )  # fmt: skip
        names = self._names
        if names.header != evidence.header:
            names = self._names = Names(evidence.header)
        banded: list[tuple[AnsweredDocument, int | None]] = [(document, None) for document in documents]
        if policy.relevance is not None:
            banded = [*relevant(documents, question, self._embedder(window), policy.relevance)]
        return [self._passage(d, band, evidence, names, record.tenant) for d, band in banded[:maximum]]

    @staticmethod
    def _passage(
        document: AnsweredDocument, band: int | None, evidence: Evidence, names: Names, tenant: str
    ) -> Found:
        fields = document.metadata
        named = {} if document.name is None else {"document": document.name.key}
        return Found(
            names.name(tenant, document.position, fields),
            document.text,
            {**fields, KEY: {**evidence.dump(), "position": document.position, "band": band, **named}},
            band,
        )


def _moved(refused: RagAuditError, before: Publication, now: Publication) -> bool:
    """Whether a request was refused because another window is served by now, which signs its refusals for itself."""
    over = isinstance(refused, OtherWindow | SignatureError)
    over = over or (isinstance(refused, RequestRefused) and refused.reason in OVER)
    return over and before.header_digest() != now.header_digest()
