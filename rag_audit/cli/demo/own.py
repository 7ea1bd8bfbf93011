"""The demo on a person's own texts: tenants, questions taken from the texts, and the accounts that ask them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from rag_audit.cli.demo.corpus import Question
from rag_audit.estimate.clusters import estimate
from rag_audit.retrieval.embedders import Embedder, NothingToEmbed
from rag_audit.retrieval.inventory import Inventory, NoDocumentsError
from rag_audit.retrieval.readers import DocumentsError
from rag_audit.retrieval.texts import DocumentPart, load_directory

MAX_TEXTS = 1 << 16
"""Maximum texts of a tenant in the demo, since more take minutes. The demo reports the number of omitted texts."""
QUESTIONS = 8
"""Maximum questions for each tenant."""
FEWEST_WORDS, MAX_WORDS = 4, 20

_ENDS = re.compile(r"\n|(?<=[.!?])(?<![0-9]\.)\s+|(?<=[。！？])")
_MARKS = re.compile(r"\A(?:[#>*+\-=\s|]+|[0-9]{1,3}[.)]\s)+")
"""The marks before a heading, a quotation or an item of a list."""
_SPEAKER = re.compile(r"\A[A-Z]\w{0,19}(?: \w{1,12})?:\s+")
"""The speaker's name before a line of a dialogue."""
MAX_SENTENCES = 200
"""Maximum characters of a text that are searched for questions."""


def own_texts(
    path: Path, inventory: Inventory | None = None, *, skip_unreadable: bool = False
) -> tuple[dict[str, list[DocumentPart]], dict[str, int]]:
    """Read a folder's texts by tenant, with the number of each tenant's omitted texts.

    :param inventory: records the texts that are read and the parts that are omitted
    :param skip_unreadable: whether to omit an unreadable file; otherwise the error is raised
    :raises NoDocumentsError: there are no texts, or a tenant has none; the error names the omitted parts
    """
    inventory, left_out = inventory or Inventory(), {}
    tenants = load_directory(path, inventory=inventory, skip_unreadable=skip_unreadable)
    for name, texts in tenants.items():
        if not texts:
            raise NoDocumentsError("a tenant has no text", field=str(path / f"{name}.jsonl"),
                                   expected="a text or more", inventory=inventory)  # fmt: skip
        if len(texts) > MAX_TEXTS:
            left_out[name] = len(texts) - MAX_TEXTS
            tenants[name] = texts[:MAX_TEXTS]
    return tenants, left_out


def own_questions(tenants: Mapping[str, Sequence[DocumentPart]], embedder: Embedder) -> list[Question]:
    """Up to `QUESTIONS` questions for each tenant: whole sentences of texts that are spread evenly over its texts.

    :raises DocumentsError: a tenant's texts contain no sentence for a question
    """
    questions: list[Question] = []
    for tenant, texts in tenants.items():
        count = min(QUESTIONS, len(texts))
        chosen = [texts[n * len(texts) // count] for n in range(count)]
        own: dict[str, Question] = {}
        # The best sentence of each text comes first, then the second of each, until there are enough.
        for row in zip_longest(*([(s, d) for s in sentences(d.text, embedder)] for d in chosen)):
            for sentence, document in filter(None, row):
                if len(own) < QUESTIONS:
                    own.setdefault(sentence, Question(sentence, tenant, document.title))
        if not own:
            raise DocumentsError(
                "the texts contain no sentence for a question",
                field=f"tenant {tenant}",
                expected="a sentence with words",
            )
        questions += own.values()
    return questions


def sentences(text: str, embedder: Embedder) -> list[str]:
    """A text's sentences and headings without marks, each on one line, best question first: questions, then sentences
    of a question's length that are not cut (`Embedder.limits`), then the shortest others.
    """
    result = []
    for place, part in enumerate(_ENDS.split(text, MAX_SENTENCES)[:MAX_SENTENCES]):
        sentence = " ".join(_SPEAKER.sub("", _MARKS.sub("", part)).split())
        if not sentence.isprintable() or not any(map(str.isalnum, sentence)):
            continue
        try:
            tokens = len(embedder.tokenize(sentence))
            embedder.embed_query(sentence)
        except NothingToEmbed:
            continue
        # A text with fewer tokens than the limit was not cut.
        whole = tokens < embedder.limits.query
        fit = whole and FEWEST_WORDS <= len(sentence.split()) <= MAX_WORDS
        asks = fit and sentence.endswith(("?", "？"))
        result.append((not asks, not fit, not whole, 0 if fit else abs(len(sentence) - 40), place, sentence))
    return [sentence for *_, sentence in sorted(result)]


class _Turn(NamedTuple):
    """A query in the form that the estimator takes."""

    seq: int
    account: str
    tenant: str
    ts: int = 0


def turns(
    accounts: Sequence[tuple[str, str]],
    questions: Sequence[Question],
    embedder: Embedder,
    *,
    queries: int,
    each: int,
    k_max: int,
    theta: tuple[int, int],
) -> Iterator[tuple[str, str, Question]]:
    """Yield (account, tenant, question) for each query. The accounts take turns, and each asks a question that its
    tenant has not asked yet, if there is one.

    A person's texts may contain the same sentence for two accounts. The window must stay within its policy, so a turn
    that would make more than `k_max` accounts look like one coalition is skipped, and no account asks more than `each`
    times.

    :param accounts: (account, tenant), in the order of their turns
    :param queries: maximum queries
    """
    done: list[_Turn] = []
    vectors: list[npt.NDArray[np.int8]] = []
    requested: set[tuple[str, str]] = set()
    for number in range(each * len(accounts)):
        if len(done) == queries:
            return
        account, tenant = accounts[number % len(accounts)]
        own = [q for q in questions if q.tenant == tenant]
        for question in sorted(own, key=lambda q: (q.tenant, q.question) in requested):
            turn, vector = _Turn(number, account, tenant), embedder.embed_query(question.question)
            if estimate([*done, turn], np.stack([*vectors, vector]), theta=theta).c <= k_max:
                done.append(turn)
                vectors.append(vector)
                requested.add((tenant, question.question))
                yield account, tenant, question
                break
