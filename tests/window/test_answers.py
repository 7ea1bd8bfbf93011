"""What an account checks of an answer before it keeps the receipt."""

from collections.abc import Callable
from typing import Any, cast

import pytest

from rag_audit._internal.canonical import MAX_DEPTH, Json
from rag_audit.attest.query import Query
from rag_audit.commit import commitment
from rag_audit.errors import EncodingError, InvalidProof, PolicyError, SchemaError, SizeError
from rag_audit.models.passage import MAX_METADATA_BYTES, MAX_METADATA_VALUES, Passage
from rag_audit.models.publication import Publication
from rag_audit.models.requests import Answer, Refusal
from tests.window.simulator import QUESTIONS, TEXTS, Service

Documents = list[dict[str, Any]]


def another_text(documents: Documents) -> Documents:
    return [{**documents[0], "text": "Something else."}, *documents[1:]]


def left_out(documents: Documents) -> Documents:
    return documents[1:]


def added(documents: Documents) -> Documents:
    spare = next(p for p in range(8) if p not in {d["position"] for d in documents})
    return [
        *documents,
        {
            "position": spare,
            "text": "A text at a position that was not selected.",
            "metadata": {},
            "name": None,
        },
    ]


def repeated(documents: Documents) -> Documents:
    return [*documents, documents[0]]


def reordered(documents: Documents) -> Documents:
    return documents[::-1]


def _answered(service: Service, **changes: Any) -> tuple[Any, Any, Any, dict[str, Any]]:
    """An answer with at least two texts: five of eight positions are listed, and three are empty."""
    window = service.open(top_k=5, **changes)
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
    room = commitment.MAX_PROOF_BYTES + 2 * commitment._DOCUMENT_BYTES + 20
    monkeypatch.setattr(commitment, "MAX_ANSWER_BYTES", room)
    texts = [Passage("a" * 10), Passage("b"), Passage("\n" * 3)]
    commitment.check_answers("law", texts, 2)
    with pytest.raises(PolicyError, match="the longest answer of the tenant would be too large") as caught:
        commitment.check_answers("law", [*texts, Passage("c" * 7)], 2)
    assert caught.value.field == "documents.law"
    assert str(caught.value.expected).startswith("at most 20 bytes of JSON in the 2 longest documents")
    assert caught.value.actual == "21 bytes; the longest is documents.law[0] with 12"
    with pytest.raises(PolicyError):
        commitment.check_answers("law", [*texts, Passage.of("b", {"id": 1})], 2)
    keyed = [Passage("a" * 8, document="k"), Passage("b", document="k" * 7)]  # 10 + 3, 3 + 9 with quotes
    commitment.check_answers("law", keyed, 2)
    with pytest.raises(PolicyError) as longer:
        commitment.check_answers("law", keyed, 2, named=True)
    assert longer.value.actual == "25 bytes; the longest is documents.law[0] with 13"


DESCRIBED = [Passage.of(text, {"id": f"law/{n}", "year": 1900 + n}) for n, text in enumerate(TEXTS["law"])]


def another_value(documents: Documents) -> Documents:
    return [{**documents[0], "metadata": {**documents[0]["metadata"], "year": 2000}}, *documents[1:]]


def no_metadata(documents: Documents) -> Documents:
    return [{**documents[0], "metadata": {}}, *documents[1:]]


def exchanged(documents: Documents) -> Documents:
    first, second = documents[0]["metadata"], documents[1]["metadata"]
    return [{**documents[0], "metadata": second}, {**documents[1], "metadata": first}, *documents[2:]]


def described_otherwise(documents: Documents) -> Documents:
    """The bytes under the leaf are read as a text as far as a text can hold them."""
    data = Passage.of(documents[0]["text"], documents[0]["metadata"]).data
    return [{**documents[0], "text": data[1:].decode(), "metadata": {}}, *documents[1:]]


@pytest.mark.parametrize(
    "cheat", [another_value, no_metadata, exchanged, described_otherwise], ids=lambda c: c.__name__
)
def test_metadata_that_is_not_the_committed_one_is_refused(
    service: Service, cheat: Callable[[Documents], Documents]
) -> None:
    account, publication, request, reply = _answered(service, documents={**TEXTS, "law": DESCRIBED})
    with pytest.raises(InvalidProof):
        account.accept(
            publication, request, {**reply, "documents": cheat(reply["documents"])}, service.key.verifier
        )
    kept = account.accept(publication, request, reply, service.key.verifier)
    assert {d.passage for d in kept.documents} <= set(DESCRIBED)


def test_a_described_document_is_no_text() -> None:
    """What begins with a byte that UTF-8 never has is the bytes of no text alone, whatever a provider commits to."""
    data = Passage.of("a", {"b": 1}).data
    assert data == b'\xffrag-audit/document/v1{"metadata":{"b":1},"text":"a"}'
    with pytest.raises(UnicodeDecodeError):
        data.decode()
    assert (Passage("a").data, Passage.of("a", {}).data) == (b"a", b"a")


@pytest.mark.parametrize("version, metadata", [(1, None), (1, []), (2, {}), (True, {}), (1.0, {})])
def test_an_answer_of_another_version_or_without_metadata_is_refused(version: int, metadata: Json) -> None:
    document: dict[str, Json] = {"position": 0, "text": "a", "metadata": metadata, "name": None}
    value: Json = {"type": "answer", "v": version, "receipt": "", "documents": [document]}
    with pytest.raises(SchemaError):
        Answer.parse(value, field="reply")


def test_metadata_that_cannot_be_committed_to_is_refused() -> None:
    for value, error in (
        (0.5, EncodingError),
        (1 << 53, EncodingError),
        ("x" * MAX_METADATA_BYTES, SizeError),
    ):
        with pytest.raises(error):
            Passage.of("a", {"b": cast(Json, value)})
    assert len(Passage.of("a", {"b": "x" * (MAX_METADATA_BYTES - 8)}).metadata or b"") == MAX_METADATA_BYTES
    with pytest.raises(SizeError):
        Passage.of("a", {"b": [0] * MAX_METADATA_VALUES})
    deep: Json = 0
    for _ in range(MAX_DEPTH - 3):
        deep = [deep]
    with pytest.raises(EncodingError):  # an account could not read the answer
        Passage.of("a", {"b": deep})
    for stored in ('{"b": 1}', "{}", "[1]", '{"b":1,"a":1}'):
        with pytest.raises(SchemaError):
            Passage.stored("a", stored, field="document")


def test_noise_of_the_next_slots_is_drawn_once_a_query_is_answered(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A draw takes all threads, which the query's scores would share with it. What is refused plans no draw."""
    window = service.open()
    publication = Publication.load(window.directory / "public")
    pool, append, drawn = window.noise_pool, window.answers._append, []

    def watched(query: Query) -> None:
        drawn.append(bool(pool._planned or pool._ready or pool._drawing))
        append(query)

    monkeypatch.setattr(window.answers, "_append", watched)
    request = service.accounts["law-1"].request(publication, QUESTIONS["law"][0])
    assert isinstance(window.handle({**request.dump(), "i": 7}), Refusal)
    assert not (pool._planned or pool._ready or pool._drawing)
    assert isinstance(window.handle(request.dump()), Answer)
    assert drawn == [False]
    with pool._changed:
        assert pool._changed.wait_for(lambda: {slot.i for slot in pool._ready} == {2, 3}, 20)
