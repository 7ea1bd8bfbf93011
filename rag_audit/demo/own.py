"""The demo on a person's own texts: tenants, questions that the texts themselves suggest, and who asks which."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

import numpy as np
import numpy.typing as npt

from rag_audit.demo.corpus import Question
from rag_audit.estimate import estimate
from rag_audit.index.embedders import Embedder, NothingToEmbed
from rag_audit.index.texts import Document, DocumentsError, load_directory

LEAST_CAPACITY = 64
"""Empty positions get noise too: among many, few texts would hardly ever be found."""
MAX_TEXTS = 1 << 16
"""Texts a tenant that the demo commits to: more take minutes. The rest is left out, and said to be."""
QUESTIONS = 8
"""questions a tenant"""
FEWEST_WORDS, MOST_WORDS = 4, 20

_ENDS = re.compile(r"\n|(?<=[.!?])(?<![0-9]\.)\s+|(?<=[。！？])")
_MARKS = re.compile(r"\A(?:[#>*+\-=\s|]+|[0-9]{1,3}[.)]\s)+")
"""What leads a heading, a quotation or an item of a list."""
_SPEAKER = re.compile(r"\A[A-Z]\w{0,19}(?: \w{1,12})?:\s+")
"""What leads a line of a dialogue."""
MAX_SENTENCES = 200
"""of a text that are looked at"""


def own_texts(path: Path) -> tuple[dict[str, list[Document]], dict[str, int]]:
    """The folder's texts by tenant, and how many of a tenant's are left out.

    :raises DocumentsError: no texts, or a tenant without one
    """
    tenants, left_out = load_directory(path), {}
    for name, texts in tenants.items():
        if not texts:
            raise DocumentsError(
                "tenant holds no text", field=str(path / f"{name}.jsonl"), expected="a text or more"
            )
        if len(texts) > MAX_TEXTS:
            left_out[name] = len(texts) - MAX_TEXTS
            tenants[name] = texts[:MAX_TEXTS]
    return tenants, left_out


def capacity(texts: int) -> int:
    """Positions for so many texts: a power of two."""
    return max(LEAST_CAPACITY, 1 << (texts - 1).bit_length())


def own_questions(tenants: Mapping[str, Sequence[Document]], embedder: Embedder) -> list[Question]:
    """Up to `QUESTIONS` a tenant, whole sentences of texts that lie evenly between the first and the last.

    :raises DocumentsError: a tenant whose texts have nothing to ask about
    """
    questions: list[Question] = []
    for tenant, texts in tenants.items():
        count = min(QUESTIONS, len(texts))
        chosen = [texts[n * len(texts) // count] for n in range(count)]
        asked: dict[str, Question] = {}
        # The best sentence of each text first, then each one's second, until there are enough.
        for row in zip_longest(*([(s, d) for s in sentences(d.text, embedder)] for d in chosen)):
            for sentence, document in filter(None, row):
                if len(asked) < QUESTIONS:
                    asked.setdefault(sentence, Question(sentence, tenant, document.title))
        if not asked:
            raise DocumentsError(
                "texts hold nothing to ask about", field=f"tenant {tenant}", expected="words"
            )
        questions += asked.values()
    return questions


def sentences(text: str, embedder: Embedder) -> list[str]:
    """The text's own sentences and headings, best question first: questions, then what is as long as a question that
    is asked whole (`Embedder.limits`), then the shortest others. Each without marks of headings and lists, in one line.
    """
    found = []
    for place, part in enumerate(_ENDS.split(text, MAX_SENTENCES)[:MAX_SENTENCES]):
        sentence = " ".join(_SPEAKER.sub("", _MARKS.sub("", part)).split())
        if not sentence.isprintable() or not any(map(str.isalnum, sentence)):
            continue
        try:
            tokens = len(embedder.tokenize(sentence))
            embedder.embed_query(sentence)
        except NothingToEmbed:
            continue
        # Tokens end at the limit: below it nothing was cut.
        whole = tokens < embedder.limits.query
        fit = whole and FEWEST_WORDS <= len(sentence.split()) <= MOST_WORDS
        asks = fit and sentence.endswith(("?", "？"))
        found.append((not asks, not fit, not whole, 0 if fit else abs(len(sentence) - 40), place, sentence))
    return [sentence for *_, sentence in sorted(found)]


@dataclass(frozen=True)
class _Turn:
    """A query as the estimator takes it."""

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
    """(account, tenant, question) of each query: accounts in turn, each asks what its tenant has not asked while there
    is such a question.

    Own texts may hold the same sentence for two accounts. A turn that would make more than `k_max` accounts look like
    one coalition is passed over, and nobody asks more than `each` times: the window must stay within its policy.

    :param accounts: (account, tenant), in the order of their turns
    :param queries: how many queries at most
    """
    done: list[_Turn] = []
    vectors: list[npt.NDArray[np.int8]] = []
    asked: set[tuple[str, str]] = set()
    for number in range(each * len(accounts)):
        if len(done) == queries:
            return
        account, tenant = accounts[number % len(accounts)]
        own = [q for q in questions if q.tenant == tenant]
        for question in sorted(own, key=lambda q: (q.tenant, q.question) in asked):
            turn, vector = _Turn(number, account, tenant), embedder.embed_query(question.question)
            if estimate([*done, turn], np.stack([*vectors, vector]), theta=theta).c <= k_max:
                done.append(turn)
                vectors.append(vector)
                asked.add((tenant, question.question))
                yield account, tenant, question
                break
