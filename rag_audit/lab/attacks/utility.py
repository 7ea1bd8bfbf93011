"""What mechanisms and defences cost the people who ask: recall, and whether the answer can be copied."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rag_audit.lab.attacks.generators.extractive import exact_match
from rag_audit.lab.attacks.interface import Floats
from rag_audit.lab.attacks.metrics import Figure, proportion
from rag_audit.lab.attacks.targets.engine import Engine
from rag_audit.lab.attacks.targets.ranking import Ranking


@dataclass(frozen=True)
class Question:
    """A question, the documents that answer it by their number in the index, and its gold answers, if any."""

    text: str
    documents: frozenset[int]
    answers: tuple[str, ...] = ()


@dataclass(frozen=True)
class Utility:
    """What is left of retrieval.

    :param recall: questions with one of their documents among the first K
    :param exact: questions with a gold answer in a passage that was handed over; None where there are no gold answers
    :param hidden: questions from which Mirabel hid a document
    """

    recall: Figure
    exact: Figure | None
    hidden: Figure


def utility(engine: Engine, questions: Sequence[Question], seed: int = 0) -> Utility:
    """Ask an engine honest questions, each in a window of its own."""
    corpus = engine.corpus
    filled = np.array(sorted(corpus.positions))
    ranking = Ranking(engine.mechanism, corpus.capacity, filled, engine.top_k, engine.hiding, engine.seed)
    texts = [engine.rewrite(q.text) if engine.rewrite is not None else q.text for q in questions]
    found, exact, hidden = [], [], []
    for number, (question, row) in enumerate(zip(questions, corpus.scores(texts), strict=True)):
        selected = ranking.window(number, 2).select(row, 0)
        wanted = {corpus.positions[d] for d in question.documents}
        passages = corpus.passages(selected.positions)
        found.append(bool(wanted & set(selected.positions)))
        exact.append(exact_match(passages, question.answers))
        hidden.append(selected.hidden is not None)
    told = any(q.answers for q in questions)
    return Utility(
        proportion(_floats(found), seed),
        proportion(_floats(exact), seed) if told else None,
        proportion(_floats(hidden), seed),
    )


def _floats(values: Sequence[bool]) -> Floats:
    return np.array(values, np.float64)
