"""What answers look like: whether they follow the requested format, and how much of a returned passage they contain.

The bound on lists excludes the text of answers. `copied` measures this channel: the words of a returned passage that an
answer repeats and that the question did not contain.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np

from rag_audit.lab.attacks.interface import (
    Answer,
    AttackError,
    Copied,
    FillMasks,
    NextWord,
    Task,
    YesNo,
    mask_answers,
    verdict_of,
)
from rag_audit.lab.attacks.metrics import Figure, proportion
from rag_audit.lab.attacks.passages import Passage
from rag_audit.lab.attacks.text import grams, words

SIZE = 5
"""Words of an n-gram that counts as copied; a shorter run also occurs in texts that do not know the passage."""
_LEAST_REPEATED = 12
_REPEATED = 0.5
"""An answer repeats itself if less than this share of its three-word sequences are different."""
_DECLINED = (
    "i don't know",
    "i do not know",
    "i'm not sure",
    "i am not sure",
    "i cannot",
    "i can't",
    "i'm sorry",
    "i am sorry",
)


class Form(StrEnum):
    """The form of an answer, next to the format that its task requests."""

    FOLLOWED = "followed"
    """it has the requested format"""
    DECLINED = "declined"
    """it says that the model does not know or does not answer"""
    IGNORED = "ignored"
    """it has another format"""
    REPEATED = "repeated"
    """it repeats a few words without end"""
    EMPTY = "empty"


def form_of(task: Task, text: str) -> Form | None:
    """The form of an answer; None for a task that asks only for a probability."""
    if isinstance(task, NextWord):
        return None
    if not text.strip():
        return Form.EMPTY
    w = words(text)
    if len(w) >= _LEAST_REPEATED and len(grams(w, 3)) < _REPEATED * (len(w) - 2):
        return Form.REPEATED
    if text.lower().replace("’", "'").lstrip(" -*\"'\n").startswith(_DECLINED):
        return Form.DECLINED
    if isinstance(task, FillMasks):
        filled = {n for n, word in mask_answers(text).items() if words(word) and "mask" not in word}
        return Form.FOLLOWED if filled & set(range(1, task.count + 1)) else Form.IGNORED
    if isinstance(task, YesNo):
        return Form.IGNORED if verdict_of(text) is None else Form.FOLLOWED
    return Form.FOLLOWED


def copied(task: Task, text: str, passages: Sequence[Passage]) -> Copied | None:
    """What an answer repeats of its passages; None without a passage or for a task that asks only for a probability."""
    if isinstance(task, NextWord) or not passages:
        return None
    said, asked = words(text), words(task.retrieval)
    known = grams(asked, SIZE)
    answer = grams(said, SIZE) - known
    share = 0.0
    for passage in passages:
        own = grams(passage.words, SIZE) - known
        share = max(share, len(own & answer) / len(own) if own else 0.0)
    return Copied(share, max(_span(said, passage, asked) for passage in passages))


def _span(said: Sequence[str], passage: Passage, asked: Sequence[str]) -> int:
    """The length of the longest run of words that answer and passage have in common and that the question lacks; 0 for
    a run below `SIZE`."""
    of, question, best = passage.words, f" {' '.join(asked)} ", 0
    for start, word in enumerate(said):
        for place in passage.places.get(word, ()):
            if start and place and said[start - 1] == of[place - 1]:
                continue  # a part of a longer run
            length = 0
            while (
                start + length < len(said)
                and place + length < len(of)
                and said[start + length] == of[place + length]
            ):
                length += 1
            run = " ".join(said[start : start + length])
            if length > max(best, SIZE - 1) and f" {run} " not in question:
                best = length
    return best


@dataclass(frozen=True)
class Written:
    """The answers of one attack in one cell.

    :param forms: the number of answers of each form
    :param copied: the average share of a returned passage's five-word sequences in the answer; the passage with the
        largest share counts
    :param verbatim: the share of answers with a run of at least `SIZE` words from a passage
    :param longest: words of the longest such run
    """

    forms: dict[str, int]
    copied: Figure | None = None
    verbatim: Figure | None = None
    longest: int = 0

    @property
    def count(self) -> int:
        """The number of answers."""
        return sum(self.forms.values())

    @classmethod
    def of(cls, tasks: Sequence[Task], answers: Sequence[Answer], seed: int = 0) -> Written | None:
        """The answers to tasks; None if no task asks for a text."""
        forms = Counter(
            form for task, a in zip(tasks, answers, strict=True) if (form := form_of(task, a.reply.text))
        )
        if not forms:
            return None
        found = [answer.copied for answer in answers if answer.copied is not None]
        counts = {form.value: forms[form] for form in Form}
        if not found:
            return cls(counts)
        shares = np.array([f.share for f in found])
        spans = np.array([f.span for f in found])
        return cls(
            counts,
            proportion(shares, seed),
            proportion((spans > 0).astype(np.float64), seed),
            int(spans.max()),
        )

    @classmethod
    def parse(cls, value: dict[str, Any]) -> Written:
        """The value of its JSON form."""
        figures = {
            name: None if value[name] is None else (value[name][0], value[name][1], value[name][2])
            for name in ("copied", "verbatim")
        }
        return cls(
            {str(k): int(v) for k, v in value["forms"].items()}, **figures, longest=int(value["longest"])
        )

    def check(self, attack: str) -> None:
        """Check that at least one answer can be used.

        :raises AttackError: every answer is empty or repeats itself
        """
        bad = self.forms[Form.EMPTY] + self.forms[Form.REPEATED]
        if bad == self.count:
            raise AttackError("the generator gives no usable answer", field=attack, expected="answers with words",
                              actual=f"{self.forms[Form.EMPTY]} empty and {self.forms[Form.REPEATED]} repeated answers"
                                     f" of {self.count}",
                              hint="choose another model")  # fmt: skip
