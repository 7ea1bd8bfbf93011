"""Attacks that ask questions: whether the document is present (RAG-MIA), and about facts that only it contains (IA)."""

from __future__ import annotations

from typing import ClassVar

from rag_audit.lab.attacks.interface import AttackError, Replies, Task, Tasks, Tools, YesNo, verdict_of
from rag_audit.lab.attacks.methods.common import FirstFeature
from rag_audit.lab.attacks.text import STOP_WORDS, sentences, telling, words

QUESTIONS = 10
"""Questions of IA on a document; the paper asks 30, written by a chat model."""
PENALTY = 0.5
"""Lambda: the cost of an "I don't know" answer, in right answers."""
_CLAUSE = 9


class RagMia(FirstFeature):
    """Asks whether the document appears in the context, and takes the answer."""

    name: ClassVar[str] = "rag-mia"
    paper: ClassVar[str] = "RAG-MIA (baseline of papers 000 and 002)"
    about: ClassVar[str] = "asks whether the document appears in the context"

    def prepare(self, text: str, tools: Tools) -> list[Task]:
        """One question with the whole document in it."""
        return [YesNo(text, text, presence=True)]

    def features(self, text: str, tasks: Tasks, replies: Replies, tools: Tools) -> list[float]:
        """The share of answers that say yes."""
        return [sum(verdict_of(r.text) is True for r in replies) / len(replies)]


class Interrogation(FirstFeature):
    """Asks natural questions that are hard to answer without the document.

    Without a chat model to write them, a question is about a clause of the document under its most telling words; half
    of the clauses have one word replaced, and the right answer to those is no.
    """

    name: ClassVar[str] = "ia"
    paper: ClassVar[str] = "Interrogation attack (baseline of paper 004)"
    about: ClassVar[str] = "natural yes/no questions about statements of only this document"

    def __init__(self) -> None:
        self._right: dict[str, bool] = {}

    def prepare(self, text: str, tools: Tools) -> list[Task]:
        """Up to ten questions."""
        clauses = [
            part[i : i + _CLAUSE]
            for part in map(words, sentences(text))
            for i in range(0, max(1, len(part) - _CLAUSE + 1), _CLAUSE)
        ]
        clauses = [c for c in clauses if sum(w not in STOP_WORDS for w in c) >= 3]
        if not clauses:
            raise AttackError(
                "the document has no clause for a question", expected="three telling words in a row"
            )
        rare = sorted(set(telling(text)), key=lambda w: (-tools.model.rank(w, None), w))[:6]
        tasks: list[Task] = []
        for number, clause in enumerate(tools.random.sample(clauses, min(QUESTIONS, len(clauses)))):
            said, right = list(clause), number % 2 == 0
            if not right:
                place = tools.random.choice([i for i, w in enumerate(said) if w not in STOP_WORDS])
                said[place] = tools.random.choice(tools.model.vocabulary[:5000])
                right = said == clause
            statement = " ".join(said)
            question = f"Concerning {', '.join(rare)}: is it said that {statement}?"
            self._right[question] = right
            tasks.append(YesNo(question, statement))
        return tasks

    def features(self, text: str, tasks: Tasks, replies: Replies, tools: Tools) -> list[float]:
        """Right answers, less the penalty for answers without knowledge, over the number of questions."""
        score = 0.0
        for task, reply in zip(tasks, replies, strict=True):
            assert isinstance(task, YesNo)
            said = verdict_of(reply.text)
            score += -PENALTY if said is None else float(said == self._right[task.retrieval])
        return [score / len(tasks)]
