"""Requests on their way to an answer, several at a time, step by step."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from rag_audit.attest.answering import Retained
from rag_audit.attest.state import Appending
from rag_audit.models.publics import SlotKey
from rag_audit.models.records import DocumentOpening, QueryRecord
from rag_audit.models.requests import Answer, SignedRequest
from rag_audit.retrieval.query import OpenedQuery


@dataclass
class Turn:
    """A request on its way, with what each step made of it. It is at its end once it has an outcome."""

    request: SignedRequest = field(repr=False)
    asked: OpenedQuery = field(repr=False)
    drawn: bool = False
    """whether what is drawn for its slot was taken from the pool"""
    positions: tuple[int, ...] = field(default=(), repr=False)
    withheld: frozenset[int] = field(default=frozenset(), repr=False)
    """the positions that the answer returns without a text"""
    htopk: str | None = None
    documents: Sequence[DocumentOpening] = field(default=(), repr=False)
    retained: Retained | None = field(default=None, repr=False)
    sealed: bytes | None = None
    record: QueryRecord | None = None
    """its draft, and from the append on what is in the ledger"""
    appending: Appending | None = None
    outcome: Answer | Exception | None = field(default=None, repr=False)

    @property
    def slot(self) -> SlotKey:
        return SlotKey(self.request.tenant, self.request.account, self.request.i)

    @property
    def drafted(self) -> QueryRecord:
        assert self.record is not None
        return self.record


def each(turns: Iterable[Turn], *steps: Callable[[Turn], None]) -> None:
    """Do each step of every turn that has no outcome before the next step. What one raises is its turn's outcome."""
    for step in steps:
        for turn in turns:
            if turn.outcome is None:
                try:
                    step(turn)
                except Exception as exc:
                    turn.outcome = exc
