"""What an account checks of an answer before it keeps the receipt."""

from collections.abc import Callable
from typing import Any

import pytest

from rag_audit.commit import commitment
from rag_audit.errors import InvalidProof, PolicyError
from rag_audit.formats.publication import Publication
from tests.window.simulator import QUESTIONS, Service

Documents = list[dict[str, Any]]


def another_text(documents: Documents) -> Documents:
    return [{**documents[0], "text": "Something else."}, *documents[1:]]


def left_out(documents: Documents) -> Documents:
    return documents[1:]


def added(documents: Documents) -> Documents:
    spare = next(p for p in range(8) if p not in {d["position"] for d in documents})
    return [*documents, {"position": spare, "text": "A text at a position that was not selected."}]


def repeated(documents: Documents) -> Documents:
    return [*documents, documents[0]]


def reordered(documents: Documents) -> Documents:
    return documents[::-1]


def _answered(service: Service) -> tuple[Any, Any, Any, dict[str, Any]]:
    """An answer with at least two texts: five of eight positions are listed, and three are empty."""
    window = service.open(top_k=5)
    publication = Publication.load(window.directory / "public")
    request = service.accounts["law-1"].request(publication, QUESTIONS["law"][0])
    return service.accounts["law-1"], publication, request, window.handle(request.dump()).dump()


@pytest.mark.parametrize(
    "cheat", [another_text, left_out, added, repeated, reordered], ids=lambda c: c.__name__
)
def test_texts_that_are_not_the_receipts_are_refused(
    service: Service, cheat: Callable[[Documents], Documents]
) -> None:
    account, publication, request, reply = _answered(service)
    with pytest.raises(InvalidProof):
        account.accept(
            publication, request, {**reply, "documents": cheat(reply["documents"])}, service.key.verifier
        )
    kept = account.accept(publication, request, reply, service.key.verifier)
    assert [d.dump() for d in kept.documents] == reply["documents"]


def test_no_answer_is_longer_than_accounts_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """The two longest of three texts: quotes, and what JSON makes of a line break, count."""
    room = commitment.MAX_PROOF_BYTES + 2 * 64 + 20
    monkeypatch.setattr(commitment, "MAX_ANSWER_BYTES", room)
    texts = ["a" * 10, "b", "\n" * 3]
    commitment.check_answers("law", texts, 2)
    with pytest.raises(PolicyError, match="the longest answer of the tenant would be too large") as caught:
        commitment.check_answers("law", [*texts, "c" * 7], 2)
    assert caught.value.field == "documents.law"
    assert str(caught.value.expected).startswith("at most 20 bytes of JSON in the 2 longest texts")
    assert caught.value.found == 21
