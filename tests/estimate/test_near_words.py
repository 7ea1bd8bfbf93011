"""What counts as near at the default theta: a question that is repeated almost word for word, and no other."""

from __future__ import annotations

from fractions import Fraction

import pytest

from rag_audit.mechanisms import defaults
from rag_audit.relation.scores import dot
from rag_audit.retrieval.embedders import get_embedder

QUESTIONS = (
    "What is bail?",
    "Who was the first president of the United States?",
    "How does insulin lower the glucose level in the blood?",
    "When may a prisoner challenge an unlawful detention before a court?",
)
GREETING = "Good morning, dear assistant, I hope you are well today."
EMBEDDER = get_embedder()


def cosine(one: str, other: str) -> float:
    a, b = (EMBEDDER.embed_query(text).tolist() for text in (one, other))
    return float(dot(a, b) / (dot(a, a) * dot(b, b)) ** 0.5)


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_greeting_before_the_same_question_is_not_near(question: str) -> None:
    theta = float(Fraction(defaults.THETA))
    assert cosine(question, question) == pytest.approx(1)
    assert 0.3 < cosine(question, f"{GREETING} {question}") < 0.85 < theta
