"""Documents and questions with known answers, read from files and embedded as in a window."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import numpy as np

from rag_audit._internal.errors import RagAuditError, SchemaError
from rag_audit._internal.jsonlines import parse_row, records, string, text_lines
from rag_audit.models.passage import Passage as Committed
from rag_audit.retrieval.embedders import Embedder, NothingToEmbed
from rag_audit.retrieval.embedders.base import document_number
from rag_audit.retrieval.engine import Int8Array, TenantIndex, build_index, smallest_capacity
from rag_audit.retrieval.inventory import Inventory


class SampleError(RagAuditError):
    """Recall cannot be measured on the documents or questions."""


@dataclass(frozen=True)
class Passage:
    """One document, its names in questions, and its place in its file."""

    names: tuple[str, ...]
    text: str
    place: str | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Question:
    """A question, the names of the passages that answer it, and its place in its file."""

    text: str
    passages: tuple[str, ...]
    place: str


@dataclass(frozen=True, eq=False)
class Sample:
    """An index and questions with known answers.

    :param queries: shape (questions, d), int8 in -7..7
    :param relevant: for each question the positions of its passages, at least one
    """

    index: TenantIndex
    queries: Int8Array
    relevant: Sequence[frozenset[int]]

    def __post_init__(self) -> None:
        if len(self.queries) == 0 or len(self.queries) != len(self.relevant) or not all(self.relevant):
            raise SampleError(
                "the sample lacks a question or a passage",
                field="questions",
                expected="at least one, each with a passage",
            )


def make_sample(
    passages: Sequence[Passage],
    questions: Sequence[Question],
    embedder: Embedder,
    *,
    capacity: int | None = None,
    seed: int = 0,
) -> Sample:
    """Embed documents and questions, and place the documents as a window does.

    :param capacity: committed positions; by default the smallest power of two that fits the documents
    :raises SampleError: there are no documents or no questions, or a question is about a passage that is missing
    :raises NothingToEmbed: a text has no direction; its place is named
    :raises CapacityError: there are more documents than positions
    """
    if not passages:
        raise SampleError("the sample has no documents", field="--index", expected="at least one")
    if not questions:
        raise SampleError("the sample has no questions", field="--questions", expected="at least one")
    named: dict[str, set[int]] = {}
    for number, passage in enumerate(passages):
        for name in passage.names:
            named.setdefault(name, set()).add(number)
    for question in questions:
        for name in question.passages:
            if name not in named:
                raise SampleError(
                    "a question's passage is not in the index",
                    field=question.place,
                    expected="the id of a document",
                    actual=name,
                )
    try:
        rows = embedder.embed_documents([passage.text for passage in passages])
    except NothingToEmbed as exc:
        if (at := document_number(exc)) is not None:
            exc.field = f"--index, {passages[at].place or passages[at].names[0]}"
        raise
    index = build_index(rows, capacity or smallest_capacity(len(rows), 8), Random(seed))
    relevant = [
        frozenset(index.positions[i] for name in question.passages for i in named[name])
        for question in questions
    ]
    return Sample(index, np.stack([_embed(question, embedder) for question in questions]), relevant)


def _embed(question: Question, embedder: Embedder) -> Int8Array:
    try:
        return embedder.embed_query(question.text)
    except NothingToEmbed as exc:
        raise NothingToEmbed(exc.message, field=question.place, expected=exc.expected) from exc


def load_passages(
    path: Path,
    tenant: str | None = None,
    inventory: Inventory | None = None,
    *,
    skip_unreadable: bool = False,
) -> list[Passage]:
    """Read the documents of one tenant.

    From a file: JSON Lines, plain or gzip, ``{"text": "..", "id": ".."}``; the default id is the line's number. From a
    folder, as `rag-audit provider open --docs` takes it: ``<tenant>.jsonl`` files, or folders of text files that are
    cut into
    pieces ``name.md#1``, ..; a question may name a piece or the file.

    :param inventory: records the documents that are read and the parts that are omitted
    :param skip_unreadable: whether to omit an unreadable file or line, or one without text; otherwise the error is
        raised. An empty text is then a passage, which no embedder accepts
    :raises EncodingError: a file is unreadable or not JSON Lines
    :raises SchemaError: a line has no text, or an id occurs twice
    :raises SampleError: the folder has several tenants and none is named, or there is no such tenant
    """
    if not path.is_dir():
        return _passages(path, _tenant(path), inventory, skip_unreadable)
    lists = {_tenant(p): p for p in sorted(path.glob("*.jsonl*"))}
    if lists:
        name = _choose(lists, tenant, path)
        chosen = lists[name]
        if inventory is not None:
            for other in sorted(path.iterdir()):
                if other != chosen:
                    inventory.omit(other.name, f"only {chosen.name} is read")
        return _passages(chosen, name, inventory, skip_unreadable)
    from rag_audit.retrieval.texts import load_directory

    pieces = load_directory(path, inventory=inventory, skip_unreadable=skip_unreadable)
    return [
        Passage((piece.id, piece.id.rpartition("#")[0]), piece.text, piece.place)
        for piece in pieces[_choose(pieces, tenant, path)]
    ]


def _choose(tenants: Mapping[str, object], tenant: str | None, path: Path) -> str:
    if tenant is None and len(tenants) == 1:
        return next(iter(tenants))
    if tenant is None or tenant not in tenants:
        raise SampleError(
            "name one of the folder's tenants" if tenant is None else "no tenant has this name",
            field=f"--tenant, in {path}",
            expected=", ".join(tenants),
            actual=tenant,
        )
    return tenant


def _tenant(path: Path) -> str:
    return path.name.partition(".jsonl")[0]


def _passages(path: Path, tenant: str, inventory: Inventory | None, skip: bool) -> list[Passage]:
    """The lines of a JSON Lines file of one tenant (`load_passages`)."""
    from rag_audit.retrieval.readers import NoTextError
    from rag_audit.retrieval.texts import has_text

    passages: list[Passage] = []
    seen: set[str] = set()
    for place, number, line in text_lines(path):
        try:
            value = parse_row(line, source=place)
            name, text = str(value.get("id", number)), string(value, "text", place)
            if name in seen:
                raise SchemaError("an id occurs twice", field=place, actual=name)
            if skip and not has_text(text):
                raise NoTextError("the line holds no text", field=place)
        except RagAuditError as exc:
            if not skip:
                raise
            if inventory is not None:
                inventory.omit(exc.field or place, exc.message, exc.actual)
            continue
        seen.add(name)
        passages.append(Passage((name,), text, place))
        if inventory is not None:
            inventory.count(tenant, Committed(text, place=place, document=name))
    if inventory is not None:
        inventory.sources[tenant] += 1
        inventory.documents.setdefault(tenant, Counter())
    return passages


def load_questions(path: Path) -> list[Question]:
    """Read questions with known answers from JSON Lines, plain or gzip, ``{"question": "..", "passage": "<id>"}`` or
    ``"passages": ["<id>", ..]``.

    :raises EncodingError: the file is unreadable or not JSON Lines
    :raises SchemaError: a line has no question, or no passage
    """
    questions = []
    for place, _, value in records(path):
        wanted = value.get("passages", [value["passage"]] if "passage" in value else None)
        if not isinstance(wanted, list) or not wanted or not all(isinstance(w, str | int) for w in wanted):
            raise SchemaError(
                "a question has no passage",
                field=place,
                expected='"passage": "<id>" or "passages": ["<id>", ..]',
                actual=repr(wanted),
            )
        questions.append(Question(string(value, "question", place), tuple(map(str, wanted)), place))
    return questions
