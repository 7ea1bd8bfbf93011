"""What every framework's retriever asks: one account's questions to a service over HTTP, and its passages."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from rag_audit.client.asynchronous import AsyncClient
from rag_audit.client.sync import Client
from rag_audit.client.web import base_url
from rag_audit.encoding.canonical import Json
from rag_audit.errors import OtherWindow, RagAuditError, RequestRefused, SetupError, SignatureError
from rag_audit.formats.policy import Policy
from rag_audit.formats.publication import Publication
from rag_audit.formats.records import ListingRecord
from rag_audit.formats.requests import Answer, AnsweredDocument, DescribedDocument
from rag_audit.index.embedders import Embedder
from rag_audit.ledger.keys import VerifierKey
from rag_audit.parties.account import Account, check_receipt, embedder_of
from rag_audit.retrievers.evidence import KEY, Evidence

OVER = ("closed", "wrong-window")
"""Refusals after which another window may be served."""


@dataclass(frozen=True)
class Found:
    """A passage that a question found.

    :param metadata: what the provider keeps beside the text, and under `KEY` where the evidence of the answer is
    """

    text: str
    metadata: dict[str, Json]


@dataclass
class Source:
    """One account's questions to a service. Safe to use from several threads; questions of one account wait for each
    other.

    :param url: the service
    :param account: the account's folder, in which its requests and receipts are kept
    :param provider: the provider's vkey
    :param model: the folder of the window's embedder's files, if it has any
    :param top_k: the most passages; None for as many as the policy says
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

    def __post_init__(self) -> None:
        if self.top_k is not None and self.top_k < 1:
            raise SetupError(
                "a retriever needs passages", field="top_k", expected="1 or more", found=self.top_k
            )
        base_url(self.url)  # which is refused here, and not with the first question
        self._party = Account(Path(self.account))
        self._key = VerifierKey.parse(self.provider, field="provider")

    def ask(self, question: str) -> list[Found]:
        """The passages that answer a question, in the window that is served.

        :raises RequestRefused: the provider refused, with its signed reason
        :raises SetupError: the provider did not answer in time; the same question sends the same request again
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
        digest = window.opening_digest()
        if digest not in self._embedders:
            self._embedders = {digest: embedder_of(window, self.model)}
        return self._embedders[digest]

    def _found(self, question: str, window: Publication, answer: Answer) -> list[Found]:
        """An answer's passages; of an account whose tenant lists, the best of all that it was handed."""
        record = check_receipt(answer.receipt, window, self._key).record
        documents = [d for d in answer.documents if d.text]
        most = self.top_k or Policy.parse(window.policy, field="policy").top_k
        if isinstance(record, ListingRecord):
            documents = self._party.holdings(window).best(question, self._embedder(window), most)
        evidence = Evidence(
            window=record.window, opening=window.opening_digest(), account=str(self.account), i=record.i,
            service=self.url,
        )  # fmt: skip
        return [self._passage(document, evidence) for document in documents[:most]]

    @staticmethod
    def _passage(document: AnsweredDocument, evidence: Evidence) -> Found:
        fields = document.metadata if isinstance(document, DescribedDocument) else {}
        return Found(document.text, {**fields, KEY: {**evidence.dump(), "position": document.position}})


def _moved(refused: RagAuditError, before: Publication, now: Publication) -> bool:
    """Whether a request was refused because another window is served by now, which signs its refusals for itself."""
    over = isinstance(refused, OtherWindow | SignatureError)
    over = over or (isinstance(refused, RequestRefused) and refused.reason in OVER)
    return over and before.opening_digest() != now.opening_digest()
